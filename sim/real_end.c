/* The whole record of a run, opened and proved again as an auditor would. */
#include <string.h>

#include "sim/real_impl.h"

/* Every entry opens with the key that must have signed it, and the tree is that of the entries. */
static void check_log(struct sim *w, const char *name, struct sim_log *l, const struct sim_ledger *ledger,
                      uint32_t tenant)
{
    struct sim_real *r = sim_real_of(w);
    struct kedge_hash root, again;
    for (uint32_t i = 0; i < l->count && !w->failed; i++) {
        struct kedge_view bytes;
        const struct kedge_public_key *key = &r->coordinator.public;
        const struct sim_entry *e = ledger ? &ledger->entries[i] : NULL;
        if (e && e->type != SIM_ASSIGNED) {
            bool admin = e->type == SIM_JOINED || e->type == SIM_REVOKED;
            key = admin ? &r->admins[tenant].public : &r->sites[e->site].public;
        }
        bool fine = sim_real_envelope(r, l->envelopes[i].b, &bytes)
                    && kedge_statement_open(bytes, key, r->st, NULL) == KEDGE_OK
                    && (!e || sim_same(&e->envelope, &l->envelopes[i]));
        if (fine && e && e->type == SIM_UPDATE) {
            fine = memcmp(r->st->subject.b, e->update.b, sizeof e->update.b) == 0
                   && r->st->u.update.samples == e->weight && r->st->u.update.round == e->round;
        }
        if (!fine) {
            sim_violate(w, "%s: entry %u does not verify", name, i);
        }
    }
    kedge_frontier_root(&l->tree, &root);
    if (kedge_merkle_root(sim_real_subtree, l, l->count, &again) != KEDGE_OK || !kedge_hash_eq(&root, &again)
        || (ledger && ledger->count != l->count)) {
        sim_violate(w, "%s: the tree is not that of its entries", name);
    }
}

/* Each checkpoint that a receipt carried is a beginning of the log as it is now. */
static void check_consistent(struct sim *w, struct kedge_view text, struct sim_log *l)
{
    struct kedge_proof proof;
    struct kedge_note note;
    struct kedge_checkpoint cp;
    struct kedge_path path;
    struct kedge_hash root;
    if (kedge_proof_decode(text, &proof) != KEDGE_OK) {
        return; /* no receipt */
    }
    kedge_frontier_root(&l->tree, &root);
    if (kedge_note_parse(proof.note, &note) != KEDGE_OK || kedge_checkpoint_parse(note.text, &cp) != KEDGE_OK
        || kedge_consistency_prove(sim_real_subtree, l, cp.size, l->count, &path) != KEDGE_OK
        || kedge_consistency_verify(cp.size, l->count, &cp.root, &root, path.hashes, path.count)
               != KEDGE_OK) {
        sim_violate(w, "a receipt's checkpoint is not a beginning of its log");
    }
}

static struct sim_log *log_of_receipt(struct sim *w, struct kedge_view text)
{
    struct kedge_proof proof;
    struct kedge_note note;
    struct kedge_checkpoint cp;
    char name[SIM_ORIGIN_MAX];
    if (kedge_proof_decode(text, &proof) != KEDGE_OK || kedge_note_parse(proof.note, &note) != KEDGE_OK
        || kedge_checkpoint_parse(note.text, &cp) != KEDGE_OK) {
        return NULL;
    }
    for (uint32_t t = 0; t < w->config.tenants; t++) {
        if (kedge_view_eq(cp.origin, sim_real_origin(w, t, name))) {
            return &w->real->tenants[t];
        }
    }
    return NULL;
}

void sim_real_check_end(struct sim *w)
{
    struct sim_real *r = sim_real_of(w);
    check_log(w, "main chain", &r->main, NULL, 0);
    for (uint32_t t = 0; t < w->config.tenants; t++) {
        char name[SIM_ORIGIN_MAX];
        (void)sim_real_origin(w, t, name);
        check_log(w, name, &r->tenants[t], &w->ledgers[t], t);
    }
    for (uint32_t i = 1; i <= r->text_count && !w->failed; i++) {
        struct sim_log *l = log_of_receipt(w, sim_real_text(r, i));
        if (l) {
            check_consistent(w, sim_real_text(r, i), l);
        }
    }
}
