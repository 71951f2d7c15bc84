/* kedge anchor run, status and verify: the main chain's roots outside, in each kind of anchor. They are
 * processes of their own beside the coordinator; docs/modules/anchor.md. */
#include "cli/anchor/anchor.h"

#include "chain/anchor/evm_evidence.h"
#include "cli/local.h"

enum { TIMEOUT_MAX_S = 31 * 86400 };

/* A row for each kind, in the order of chain/anchor/kinds.def. The first row has no option and no mark in its
 * bytes, so the loops below go from the end: the others are asked first, and the first row takes what
 * remains. */
static const struct kedge_cli_anchor_kind *const kinds[] = {
#define KEDGE_ANCHOR_KIND(name) &kedge_cli_anchor_##name,
#include "chain/anchor/kinds.def"
#undef KEDGE_ANCHOR_KIND
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* Asked by each kind's loop between two steps. With --once the end is "nothing is under way", not "one step
 * was made": an anchor that was sent but is not yet final is still waited for. */
bool kedge_cli_anchor_goes_on(struct kedge_cli_anchor_run *run, bool is_settled)
{
    if (run->once && is_settled) {
        return false;
    }
    run->timed_out = kedge_cli_now_ms(NULL) >= run->deadline_ms;
    return !kedge_cli_interrupted() && !run->timed_out;
}

/* The kind whose option is given; without one, the kind that needs none. */
int kedge_cmd_anchor_run(struct kedge_cli *c)
{
    struct kedge_cli_anchor_run run = {.c = c, .deadline_ms = UINT64_MAX};
    const struct kedge_cli_anchor_kind *kind = NULL;
    for (size_t i = KINDS; i-- > 0 && !run.value;) {
        kind = kinds[i];
        run.value = kind->run_option ? kedge_cli_option(c, kind->run_option, NULL) : NULL;
    }
    run.once = kedge_cli_flag(c, "once");
    if (!kedge_cli_number(c, "timeout", 1, TIMEOUT_MAX_S, 0, &run.seconds)) {
        return 2;
    }
    if (run.seconds > 0 && !run.once) {
        return kedge_cli_usage(c, "--timeout SECONDS goes with --once");
    }
    if (run.seconds > 0) {
        run.deadline_ms = kedge_cli_now_ms(NULL) + run.seconds * 1000;
    }
    return kind->run(&run);
}

/* A kind that is not in use says nothing, unless none is. */
int kedge_cmd_anchor_status(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    int code = 0, err = KEDGE_OK;
    if (!kedge_cli_no_more(c, 0)) {
        return 2;
    }
    json_t *data = json_object();
    for (size_t i = KINDS; i-- > 0 && (!err || err == KEDGE_E_NOT_FOUND);) {
        err = kinds[i]->status(c, data, &code, &d);
    }
    if (err && (err != KEDGE_E_NOT_FOUND || json_object_size(data) == 0)) {
        json_decref(data);
        return kedge_cli_fail(c, err, &d);
    }
    return kedge_cli_answer(c, data, code);
}

/* The kind is told by the file's bytes and not by its name: evidence is handed around and renamed. All
 * options of trust are taken first, so that one which belongs to another kind is no unknown option. */
int kedge_cmd_anchor_verify(struct kedge_cli *c)
{
    struct kedge_buf bytes KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_diag d = {.text = ""};
    const char *trusted[KINDS] = {NULL};
    struct kedge_cli_anchor_file file = {.checkpoint = kedge_cli_option(c, "checkpoint", NULL),
                                         .log = kedge_cli_option(c, "log", NULL)};
    kedge_buf_init(&bytes, KEDGE_EVM_EVIDENCE_MAX);
    for (size_t i = 0; i < KINDS; i++) {
        trusted[i] = kinds[i]->verify_option ? kedge_cli_option(c, kinds[i]->verify_option, NULL) : NULL;
    }
    if (!kedge_cli_no_more(c, 1)) {
        return 2;
    }
    file.path = kedge_cli_argument(c, 0);
    if (!file.path) {
        return kedge_cli_usage(c,
                               "FILE is missing: STATE/anchors/evm/SEQ.json or STATE/anchors/tsa/SIZE.tsr");
    }
    int err = kedge_file_read(file.path, &bytes, &d);
    if (err) {
        return kedge_cli_fail(c, err, &d);
    }
    file.bytes = kedge_buf_view(&bytes);
    size_t kind = KINDS - 1;
    while (kind > 0 && kinds[kind]->is_evidence && !kinds[kind]->is_evidence(file.bytes)) {
        kind--;
    }
    file.trusted = trusted[kind];
    return kinds[kind]->verify(c, &file);
}
