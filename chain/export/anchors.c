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
