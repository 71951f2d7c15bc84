/* Receipts and signed "closed" of a run with real signatures: made by the coordinator's host, checked by the
 * sites'. */
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "sim/real_impl.h"

enum { TEXT_MAX = KEDGE_PROOF_TEXT_MAX };

static struct kedge_hash as_hash(const uint8_t *b)
{
    struct kedge_hash h;
    memcpy(h.b, b, sizeof h.b);
    return h;
}

int sim_real_subtree(void *arg, unsigned level, uint64_t index, struct kedge_hash *ret)
{
    const struct sim_log *l = arg;
    struct kedge_frontier tree = {.size = 0};
    int err = KEDGE_OK;
    for (uint64_t i = index << level; i < (index + 1) << level && !err; i++) {
        err = i < l->count ? kedge_frontier_append(&tree, &l->leaves[i]) : KEDGE_E_ARG;
    }
    kedge_frontier_root(&tree, ret);
    return err;
}

struct kedge_view sim_real_origin(const struct sim *w, uint32_t tenant, char out[SIM_ORIGIN_MAX])
{
    struct kedge_id name;
    sim_tenant_id(w, tenant, &name);
    (void)snprintf(out, SIM_ORIGIN_MAX, "sim.invalid/%s", name.s);
    return kedge_view_str(out);
}

uint32_t sim_real_prove_receipt(struct sim *w, uint32_t tenant, uint32_t leaf)
{
    struct sim_real *r = sim_real_of(w);
    struct sim_log *l = &r->tenants[tenant];
    char origin[SIM_ORIGIN_MAX];
    struct kedge_hash root;
    struct kedge_buf note, text;
    kedge_buf_init(&note, KEDGE_CHECKPOINT_MAX);
    kedge_buf_init(&text, TEXT_MAX);
    kedge_frontier_root(&l->tree, &root);
    struct kedge_proof proof = {.index = leaf};
    int err = kedge_checkpoint_sign(sim_real_origin(w, tenant, origin), l->tree.size, &root, &r->logs[tenant],
                                    &note);
    if (!err) {
        err = kedge_inclusion_prove(sim_real_subtree, l, leaf, l->tree.size, &proof.path);
    }
    proof.note = kedge_buf_view(&note);
    kedge_proof_encode(&proof, &text);
    kedge_buf_deinit(&note);
    if (err) {
        sim_violate(w, "leaf %u of ledger %u cannot be proved: %s", leaf, tenant, kedge_err_code(err));
    }
    return sim_real_put_text(r, &text);
}

uint32_t sim_real_prove_closed(struct sim *w, uint32_t site, const struct kedge_site_result *result)
{
    struct sim_real *r = sim_real_of(w);
    struct kedge_statement *st = sim_real_blank(w, KEDGE_ST_CLOSED);
    struct kedge_buf bytes;
    st->subject = as_hash(result->envelope.b);
    st->u.closed.job = result->job;
    st->u.closed.round = result->round;
    sim_tenant_id(w, w->devices[site].tenant, &st->u.closed.tenant);
    sim_site_id(w, site, &st->u.closed.site);
    kedge_buf_init(&bytes, KEDGE_ENTRY_MAX);
    int err = kedge_statement_sign(st, &r->coordinator, &bytes, NULL);
    KEDGE_ASSERT(err == KEDGE_OK);
    return sim_real_put_text(r, &bytes);
}

/* The receipt must be about this leaf and no other: one that also verifies with a bit of the leaf turned
 * would be a verification that looks at nothing. */
static bool check_receipt(struct sim *w, uint32_t tenant, struct kedge_view text, struct kedge_view envelope,
                          uint64_t index)
{
    struct sim_real *r = sim_real_of(w);
    char name[SIM_ORIGIN_MAX];
    struct kedge_view origin = sim_real_origin(w, tenant, name);
    struct kedge_vkey vkey;
    struct kedge_proof proof;
    struct kedge_checkpoint cp;
    struct kedge_hash leaf, other;
    kedge_merkle_leaf(envelope, &leaf);
    other = leaf;
    other.b[31] ^= 1;
    if (kedge_vkey_make(origin, KEDGE_KEY_ED25519, &r->logs[tenant].public, &vkey) != KEDGE_OK
        || kedge_proof_decode(text, &proof) != KEDGE_OK
        || kedge_proof_verify(&proof, &leaf, origin, &vkey, 1, &cp) != KEDGE_OK) {
        return false;
    }
    if (kedge_inclusion_verify(proof.index, cp.size, &other, proof.path.hashes, proof.path.count, &cp.root)
        == KEDGE_OK) {
        sim_violate(w, "the receipt of another statement verifies, too");
    }
    return proof.index == index;
}

bool sim_real_check_proof(struct sim *w, uint32_t site, const struct sim_event *answer,
                          const struct kedge_site_digest *envelope)
{
    struct sim_real *r = sim_real_of(w);
    struct kedge_view bytes;
    if (answer->proof == 0 || !sim_real_envelope(r, envelope->b, &bytes)) {
        return false;
    }
    struct kedge_view text = sim_real_text(r, answer->proof);
    if (answer->reply.kind == KEDGE_SITE_REPLY_RECEIPT) {
        return check_receipt(w, w->devices[site].tenant, text, bytes, answer->weight);
    }
    int err = kedge_statement_open(text, &r->coordinator.public, r->st, NULL);
    return !err && r->st->kind == KEDGE_ST_CLOSED
           && memcmp(r->st->subject.b, envelope->b, sizeof envelope->b) == 0;
}
