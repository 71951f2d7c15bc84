/* Anchors outside, as the process that anchors left them: each file is
 * checked against itself and against the main chain before it is taken along. */
#include "chain/state/anchors.h"

#include <jansson.h>

#include "chain/export/work.h"
#include "common/base/mem.h"
#include "common/base/try.h"

/* Nobody's word is taken here (`nobody`), not even the exporter's: an anchor goes along if it is what it
 * claims to be and about this main chain. Whom to believe is for the one who checks the export. */
static int check_claim(struct kedgei_ex_work *w, const struct kedge_anchor_kind *kind,
                       const struct kedge_anchor_files *files)
{
    static const struct kedge_trust_anchors nobody = {.required = false};
    struct kedge_anchor_main main = {w->r.main.log.origin, NULL};
    struct kedge_anchor_claim claim;
    struct kedge_hash root;
    KEDGE_TRY(kind->claim(files, &main, &nobody, &claim, w->reterr));
    if (kedge_ledger_root(w->r.main.log.ledger, claim.size, &root) != KEDGE_OK) {
        return kedge_diag_set(w->reterr, KEDGE_E_VERIFY,
                              "is about %llu entries, which this main chain has not",
                              (unsigned long long)claim.size);
    }
    return kedge_hash_eq(&root, &claim.root)
               ? KEDGE_OK
               : kedge_diag_set(w->reterr, KEDGE_E_VERIFY,
                                "is about another root of %llu entries than this main chain has",
                                (unsigned long long)claim.size);
}

static int put_anchor(struct kedgei_ex_work *w, size_t place, uint64_t number)
{
    const struct kedge_anchor_kind *kind = kedge_anchor_kind_at(place);
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit), note KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_view checkpoint = kedge_view_of(NULL, 0);
    char path[KEDGE_PATH_MAX], name[KEDGE_ANCHOR_NAME_MAX];
    kedge_buf_init(&text, kind->most);
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    kedge_anchor_name(kind, number, name);
    KEDGE_TRY(kedge_state_path(path, w->reterr, w->r.state, "%s", name));
    KEDGE_TRY(kedge_file_read(path, &text, w->reterr));
    struct kedge_anchor_files files = {number, kedge_buf_view(&text), kedge_view_of(NULL, 0)};
    int err = check_claim(w, kind, &files);
    if (!err && kind->checkpoint) {
        err = kind->checkpoint(&files, &note, &checkpoint, w->reterr);
    }
    if (err) {
        return kedge_diag_wrap(w->reterr, err, "%s", path);
    }
    w->anchors[place]++;
    err = kedgei_ex_put(&w->f, kedge_buf_view(&text), w->reterr, "anchors/%s-%08llu%s", kind->name,
                        (unsigned long long)number, kind->suffix);
    return err || checkpoint.len == 0 ? err : kedgei_ex_main_note(w, checkpoint, "anchored");
}

/* Kinds whose checkpoint lies beside the anchor are exported in a form of their own: time stamps below. */
int kedgei_ex_anchors(struct kedgei_ex_work *w)
{
    int err = KEDGE_OK;
    for (size_t place = 0; place < kedge_anchor_kind_count() && !err; place++) {
        uint64_t *numbers = NULL;
        size_t count = 0;
        if (kedge_anchor_kind_at(place)->note_suffix) {
            continue;
        }
        err = kedge_anchor_list(w->r.state, kedge_anchor_kind_at(place), &numbers, &count, w->reterr);
        for (size_t i = 0; i < count && !err; i++) {
            err = put_anchor(w, place, numbers[i]);
        }
        kedge_mem_free(numbers);
    }
    return err;
}

/* ---- time stamps ---- */

static int put_stamp(struct kedgei_ex_work *w, uint64_t size, struct kedge_view ca)
{
    struct kedge_buf note KEDGE_CLEANUP(kedge_buf_deinit);
    char path[KEDGE_PATH_MAX], name[KEDGE_ANCHOR_NAME_MAX];
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    kedge_anchor_note_name(&kedge_anchor_tsa, size, name);
    KEDGE_TRY(kedge_state_path(path, w->reterr, w->r.state, "%s", name));
    KEDGE_TRY(kedge_file_read(path, &note, w->reterr));
    KEDGE_TRY(kedgei_ex_main_note(w, kedge_buf_view(&note), "stamped"));
    kedge_anchor_name(&kedge_anchor_tsa, size, name);
    KEDGE_TRY(kedge_state_path(path, w->reterr, w->r.state, "%s", name));
    return kedgei_ex_token(w, path, ca);
}

/* Whether it is the first of the sizes that has one of the exported releases. */
static bool has_release(const struct kedgei_ex_work *w, const uint64_t *sizes, size_t i)
{
    uint64_t before = i > 0 ? sizes[i - 1] : 0;
    for (uint32_t j = 0; j < w->r.job_count; j++) {
        for (size_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
            uint64_t index = w->r.jobs[j]->releases[g];
            if (index != KEDGEI_EX_NONE && index >= before && index < sizes[i]) {
                return true;
            }
        }
    }
    return false;
}

/* There may be a stamp for every hour of years. Those are taken along that say something which no other
 * one does: the newest, and for each exported release the first whose checkpoint holds it, because the
 * earliest time is what proves that a model was there. From the newest to the oldest, until the export
 * has as many as it may have. */
int kedgei_ex_stamps(struct kedgei_ex_work *w, struct kedge_view ca)
{
    uint64_t *sizes = NULL;
    size_t count = 0;
    int err = kedge_anchor_list(w->r.state, &kedge_anchor_tsa, &sizes, &count, w->reterr);
    while (count > 0 && sizes[count - 1] > w->r.main.size) {
        count--; /* newer than what is exported, beside a coordinator */
    }
    for (size_t i = count; i-- > 0 && !err && w->token_count < KEDGE_EXPORT_TIMESTAMPS_MAX;) {
        if (i + 1 == count || has_release(w, sizes, i)) {
            err = put_stamp(w, sizes[i], ca);
        }
    }
    kedge_mem_free(sizes);
    return err;
}

int kedgei_ex_timestamps(struct kedgei_ex_work *w)
{
    struct kedge_buf ca KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&ca, KEDGE_TSA_PEM_MAX);
    if (!w->o->tsa_ca) {
        return KEDGE_OK;
    }
    KEDGE_TRY(kedge_file_read(w->o->tsa_ca, &ca, w->reterr));
    for (size_t i = 0; i < w->o->timestamp_count; i++) {
        KEDGE_TRY(kedgei_ex_token(w, w->o->timestamps[i], kedge_buf_view(&ca)));
    }
    KEDGE_TRY(kedgei_ex_stamps(w, kedge_buf_view(&ca)));
    if (w->token_count == 0) {
        return KEDGE_OK;
    }
    KEDGE_TRY(kedgei_ex_put(&w->f, kedge_buf_view(&ca), w->reterr, "tsa/ca.pem"));
    json_t *rows = json_array();
    for (size_t i = 0; i < w->token_count; i++) {
        const struct kedgei_ex_token *t = &w->tokens[i];
        struct kedge_utc time = kedgei_ex_time(t->stamp.time_s);
        json_array_append_new(rows, json_pack("{s:s,s:s,s:s,s:s,s:s,s:s}", "token", t->path, "checkpoint",
                                              t->checkpoint, "time", time.s, "serial", t->stamp.serial,
                                              "policy", t->stamp.policy, "authority", t->stamp.authority));
    }
    return kedgei_ex_put_json(w, json_pack("{s:o}", "tokens", rows), "tsa/index.json");
}
