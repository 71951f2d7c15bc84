/* Evidence of anchors on an Ethereum-compatible chain, as the process that anchors left it: each file is
 * checked against itself and against the main chain before it is taken along. */
#include <stdio.h>
#include <string.h>

#include "chain/anchor/evm_evidence.h"
#include "chain/export/work.h"
#include "chain/state/anchors.h"
#include "common/base/mem.h"

static int put_anchor(struct kedgei_ex_work *w, uint64_t number, struct kedge_evm_evidence *e)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_hash root;
    char path[KEDGE_PATH_MAX], name[KEDGE_ANCHOR_NAME_MAX];
    kedge_buf_init(&text, KEDGE_EVM_EVIDENCE_MAX);
    kedge_anchor_name(KEDGE_ANCHOR_EVM, number, name);
    int err = kedge_state_path(path, w->reterr, w->r.state, "%s", name);
    err = err ? err : kedge_file_read(path, &text, w->reterr);
    if (err) {
        return err;
    }
    err = kedge_evm_evidence_read(kedge_buf_view(&text), e, w->reterr);
    if (!err) {
        err = kedge_ledger_root(w->r.main.log.ledger, e->point.size, &root);
        err = err ? kedge_diag_set(w->reterr, KEDGE_E_VERIFY,
                                   "is about %llu entries, which this main chain has not",
                                   (unsigned long long)e->point.size)
                  : kedge_evm_evidence_is_about(e, kedge_view_str(w->r.main.log.origin), e->point.size, &root,
                                                w->reterr);
    }
    if (err) {
        return kedge_diag_wrap(w->reterr, err, "%s", path);
    }
    w->anchors++;
    err = kedgei_ex_put(&w->f, kedge_buf_view(&text), w->reterr, "anchors/evm-%08llu.json",
                        (unsigned long long)number);
    return err || e->checkpoint.len == 0 ? err : kedgei_ex_main_note(w, e->checkpoint, "anchored");
}

int kedgei_ex_anchors(struct kedgei_ex_work *w)
{
    uint64_t *numbers = NULL;
    size_t count = 0;
    int err = kedge_anchor_list(w->r.state, KEDGE_ANCHOR_EVM, &numbers, &count, w->reterr);
    struct kedge_evm_evidence *e = kedge_mem_new(1, sizeof *e);
    if (!err && !e) {
        err = kedge_diag_set(w->reterr, KEDGE_E_NOMEM, "out of memory");
    }
    for (size_t i = 0; i < count && !err; i++) {
        memset(e, 0, sizeof *e);
        err = put_anchor(w, numbers[i], e);
        kedge_evm_evidence_deinit(e);
    }
    kedge_mem_free(e);
    kedge_mem_free(numbers);
    return err;
}

/* ---- time stamps ---- */

static int put_stamp(struct kedgei_ex_work *w, uint64_t size, struct kedge_view ca)
{
    struct kedge_buf note KEDGE_CLEANUP(kedge_buf_deinit);
    char path[KEDGE_PATH_MAX], name[KEDGE_ANCHOR_NAME_MAX];
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    kedge_anchor_note_name(size, name);
    int err = kedge_state_path(path, w->reterr, w->r.state, "%s", name);
    err = err ? err : kedge_file_read(path, &note, w->reterr);
    err = err ? err : kedgei_ex_main_note(w, kedge_buf_view(&note), "stamped");
    kedge_anchor_name(KEDGE_ANCHOR_TSA, size, name);
    err = err ? err : kedge_state_path(path, w->reterr, w->r.state, "%s", name);
    return err ? err : kedgei_ex_token(w, path, ca);
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

int kedgei_ex_stamps(struct kedgei_ex_work *w, struct kedge_view ca)
{
    uint64_t *sizes = NULL;
    size_t count = 0;
    int err = kedge_anchor_list(w->r.state, KEDGE_ANCHOR_TSA, &sizes, &count, w->reterr);
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
