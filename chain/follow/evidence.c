/* What was seen to contradict is turned into evidence that others can check without trusting this copy. It
 * is verified here before it is handed out: a consistency proof that fails may also come from tiles that
 * are damaged or made up, and a wrong accusation is worse than none. What a remote log serves is called a
 * fork only if the evidence holds; a signed root that differs from the copy's own is one in any case. */
#include "chain/follow/evidence.h"

#include <string.h>

#include "chain/log/fork_evidence.h"
#include "common/base/mem.h"
#include "common/base/try.h"

/* The copy's own consistency path with its first hash spelled out. */
static int path_of_copy(struct kedge_ledger *copy, uint64_t old_size, uint64_t size, struct kedge_path *ret)
{
    struct kedge_path path;
    struct kedge_hash root;
    KEDGE_TRY(kedge_ledger_consistency(copy, old_size, size, &path));
    KEDGE_TRY(kedge_ledger_root(copy, old_size, &root));
    bool is_whole = (old_size & (old_size - 1)) == 0; /* then verifiers begin with the root itself */
    if (path.count + is_whole > KEDGE_PROOF_MAX) {
        return KEDGE_E_BUG;
    }
    ret->count = path.count + is_whole;
    ret->hashes[0] = root;
    memcpy(&ret->hashes[is_whole], path.hashes, path.count * sizeof path.hashes[0]);
    return KEDGE_OK;
}

static int verify_evidence(const struct kedge_follow *f, struct kedge_view text)
{
    struct kedge_fork_evidence *e KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *e);
    KEDGE_TRY(e ? kedge_fork_evidence_decode(text, e) : KEDGE_E_NOMEM);
    return kedge_fork_evidence_verify(e, &f->vkey, 1, NULL, NULL);
}

/* Appends the evidence when it proves something. */
static int write_evidence(const struct kedge_follow *f, struct kedge_view known, struct kedge_view note,
                          const struct kedge_path *path, struct kedge_buf *ret)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, KEDGE_FORK_EVIDENCE_MAX);
    KEDGE_TRY(kedge_fork_evidence_encode(known, note, path, &text));
    KEDGE_TRY(verify_evidence(f, kedge_buf_view(&text)));
    kedge_buf_put(ret, text.ptr, text.len);
    return ret->err;
}

int kedgei_follow_convict(const struct kedge_follow *f, struct kedgei_remote *remote, struct kedge_view note,
                          const struct kedge_checkpoint *target, struct kedge_buf *ret_evidence,
                          struct kedge_diag *reterr)
{
    struct kedge_buf known;
    struct kedge_path path = {.count = 0};
    uint64_t size = 0;
    kedge_buf_init(&known, KEDGE_NOTE_MAX);
    int err = kedge_ledger_checkpoint(f->copy, &known, &size);
    if (!err && remote) {
        err = size > 0
                  ? kedge_consistency_prove_explicit(kedgei_remote_subtree, remote, size, target->size, &path)
                  : KEDGE_E_NOT_FOUND;
    } else if (!err && target->size < size) {
        err = target->size > 0 ? path_of_copy(f->copy, target->size, size, &path) : KEDGE_E_VERIFY;
    } else if (!err && target->size > size) {
        err = KEDGE_E_NOT_FOUND; /* the copy is on its way to a checkpoint that it does not have any more */
    }
    if (!err) {
        err = write_evidence(f, kedge_buf_view(&known), note, path.count > 0 ? &path : NULL, ret_evidence);
    }
    kedge_buf_deinit(&known);
    if (err == KEDGE_E_NOMEM) {
        return kedge_diag_set(reterr, err, "log %s: out of memory", f->vkey.name);
    }
    if (err && remote) {
        return kedge_diag_set(reterr, KEDGE_E_VERIFY,
                              "log %s: what it serves does not add up to its checkpoint of %llu entries",
                              f->vkey.name, (unsigned long long)target->size);
    }
    (void)kedge_diag_set(reterr, KEDGE_E_FORK,
                         "log %s signed two histories: of %llu entries it shows others than before%s",
                         f->vkey.name, (unsigned long long)target->size,
                         err ? "; the checkpoint that would prove it is not at hand" : "");
    (void)kedge_diag_hint(reterr, "keep this folder as it is, and show the evidence to the other tenants");
    return KEDGE_E_FORK;
}
