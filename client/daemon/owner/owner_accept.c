/* kedge-client accept-main: the owner accepts another history of the main chain than the site has seen,
 * knowing what was lost. Nothing but a fingerprint that somebody else has told can stand for that knowledge.
 */
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "chain/log/checkpoint.h"
#include "client/daemon/host.h"
#include "client/daemon/owner/owner.h"
#include "common/base/os/file.h"
#include "common/base/try.h"

enum { FINGERPRINT_LEAST = 16, CHAINS = 3 };

struct chain {
    const char *name; /* below the site's folder */
    uint64_t size;
    char root[2 * KEDGE_HASH_LEN + 1];
    struct kedge_buf note;
};

static int usage(FILE *out, int code)
{
    fputs(
        "Usage: kedge-client accept-main [FINGERPRINT] --site DIR [--format json|text]\n"
        "A site that was shown another main chain than the one that it had seen refuses all work. It goes on "
        "by\n"
        "itself when the coordinator shows what has grown out of that one. To accept the other one, ask the\n"
        "coordinator's operator for the root of its main chain (kedge status) over another way, and say at "
        "least\n"
        "16 digits of it. Without FINGERPRINT it tells what was seen and what was shown.\n"
        "Example: kedge-client accept-main 4f0c2b9a77d1e835 --site /var/lib/kedge-client\n"
        "Exit codes: 0 accepted, or told; 1 it is none of the chains that were shown; 2 usage; 3 nothing is "
        "refused.\n",
        out);
    return code;
}

static int read_chain(const char *dir, struct chain *c, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_note note;
    struct kedge_checkpoint cp;
    kedge_buf_init(&c->note, KEDGE_NOTE_MAX);
    KEDGE_TRY(kedge_path_join(path, dir, c->name));
    KEDGE_TRY(kedge_file_read(path, &c->note, d));
    KEDGE_TRY(kedge_note_parse(kedge_buf_view(&c->note), &note));
    KEDGE_TRY(kedge_checkpoint_parse(note.text, &cp));
    c->size = cp.size;
    kedge_hash_hex(&cp.root, c->root);
    return KEDGE_OK;
}

static bool is_fingerprint_of(const char *said, const struct chain *c)
{
    const size_t n = strlen(said);
    return n >= FINGERPRINT_LEAST && n <= 2 * KEDGE_HASH_LEN && c->size > 0 && strncmp(said, c->root, n) == 0;
}

/* The daemon that runs looks again; one that does not will when it starts. */
static void tell_daemon(const char *dir)
{
    json_t *o = NULL;
    struct kedge_diag d;
    if (kedgei_owner_read_status(dir, &o, &d) == KEDGE_OK && kedgei_owner_runs(o)) {
        (void)kill((pid_t)json_integer_value(json_object_get(o, "pid")), SIGHUP);
    }
    json_decref(o);
}

/* The order is the one that a crash needs: with seen-main written and the evidence still there, the site
 * still refuses, and the command can be given again. The other way round it would go on with neither the old
 * history nor the new one. */
static int accept(const char *dir, const struct chain *c, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    KEDGE_TRY(kedge_path_join(path, dir, "seen-main"));
    KEDGE_TRY(kedge_file_write(path, kedge_buf_view(&c->note), 0600, d));
    KEDGE_TRY(kedge_client_heal_set_aside(dir, "accepted", d));
    tell_daemon(dir);
    return KEDGE_OK;
}

static void answer(bool json, const struct chain chains[CHAINS], const struct chain *accepted)
{
    static const char *const words[CHAINS] = {"seen", "shown", "latest"}, *const said[CHAINS] = {
                                                                              "this site had seen",
                                                                              "it was shown",
                                                                              "it was shown last"};
    json_t *data = json_object();
    for (size_t i = 0; i < CHAINS; i++) {
        if (chains[i].size > 0) {
            json_object_set_new(
                data, words[i],
                json_pack("{s:I,s:s}", "size", (json_int_t)chains[i].size, "root", chains[i].root));
            if (!json && !accepted) {
                printf("%-18s %" PRIu64 " entries, root %s\n", said[i], chains[i].size, chains[i].root);
            }
        }
    }
    json_object_set_new(data, "accepted", accepted ? json_string(accepted->root) : json_null());
    if (json) {
        json_t *o = json_pack("{s:i,s:s,s:O}", "schema_version", 1, "status", "ok", "data", data);
        (void)json_dumpf(o, stdout, JSON_COMPACT);
        puts("");
        json_decref(o);
    } else if (accepted) {
        printf("Accepted: the main chain with %" PRIu64 " entries. kedge-client goes on.\n", accepted->size);
    }
    json_decref(data);
}

int kedge_client_accept_main(int argc, char **argv)
{
    struct kedgei_owner_asked asked = {.may_name = true};
    struct kedge_diag d = {.text = "", .hint = ""};
    struct chain chains[CHAINS] = {
        {.name = "refused-main/seen"}, {.name = "refused-main/shown"}, {.name = "refused-main/latest"}};
    const struct chain *accepted = NULL;
    int code;
    if (!kedgei_owner_options(argc, argv, &asked, &code, usage)) {
        return code;
    }
    const char *said = asked.first_name < argc ? argv[asked.first_name] : NULL;
    if (argc - asked.first_name > 1 || (said && strlen(said) < FINGERPRINT_LEAST)) {
        return usage(stderr, 2);
    }
    int err = kedge_doctor_become_owner(asked.dir);
    if (!err) {
        (void)read_chain(asked.dir, &chains[0], NULL); /* may be damaged */
        (void)read_chain(asked.dir, &chains[2], NULL); /* may not be there */
        err = read_chain(asked.dir, &chains[1], &d);
    }
    if (err) {
        (void)kedge_diag_set(&d, err, "%s: nothing is refused here (refused-main/shown cannot be read)",
                             asked.dir);
    }
    for (size_t i = 1; i < CHAINS && !err && said; i++) {
        accepted = is_fingerprint_of(said, &chains[i]) ? &chains[i] : accepted;
    }
    if (!err && said && !accepted) {
        err = kedge_diag_set(&d, KEDGE_E_VERIFY, "%.70s is not the root of a chain that this site was shown",
                             said);
        (void)kedge_diag_hint(&d, "shown: %s%s%s; accept none that the operator has not told you",
                              chains[1].root, chains[2].size > 0 ? ", " : "", chains[2].root);
    }
    if (!err && accepted) {
        err = accept(asked.dir, accepted, &d);
    }
    if (err) {
        code = kedgei_owner_fail(asked.json, err, &d);
    } else {
        answer(asked.json, chains, accepted);
        code = 0;
    }
    for (size_t i = 0; i < CHAINS; i++) {
        kedge_buf_deinit(&chains[i].note);
    }
    return code;
}
