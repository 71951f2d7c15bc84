/* What replayed decisions come to: results, and what is found where they are not the recorded ones. */
#include <string.h>

#include "chain/audit/rounds/judgement.h"

static int write_hash(void *arg, struct kedge_view bytes)
{
    kedge_hasher_update(arg, bytes);
    return KEDGE_OK;
}

int kedgei_replay_sink(struct kedge_hasher **ret_hasher, struct kedge_sink *ret_sink)
{
    int err = kedge_hasher_new(ret_hasher);
    *ret_sink = (struct kedge_sink){.write = write_hash, .arg = err ? NULL : *ret_hasher};
    return err;
}

/* Four reasons why a decision was not repeated, and only the last is an error: it is of another tenant's
 * ledger, its model was pruned and could not be made again, its key is elsewhere, or it cannot have been
 * made like that. */
void kedgei_replay_failed(const struct kedgei_replay *r, struct kedgei_decision *d, uint64_t index,
                          const char *what, int err, const struct kedge_diag *diag, struct kedgei_findings *f)
{
    f->nomem = f->nomem || err == KEDGE_E_NOMEM;
    if (err == KEDGE_E_NOT_FOUND && KEDGEI_SKIP(r->a, decisions)) {
        return;
    }
    if (err == KEDGE_E_NOT_FOUND && d->job->has_unmade) { /* files that should be here verify has missed */
        d->lacks_model = true;
        return;
    }
    if (err == KEDGE_E_SEALED) { /* nothing is wrong with it, as far as can be seen: counted and told at the
                                    end */
        d->sealed = true;
        return;
    }
    kedgei_error(f, KEDGE_AUDIT_REPLAY_FAILED, d->log ? d->log : &r->a->main, index, "job \"%s\": %s: %s",
                 d->job->id.s, what, diag->text[0] ? diag->text : kedge_strerror(err));
}

void kedgei_replay_compare(const struct kedgei_replay *r, const struct kedgei_decision *d,
                           enum kedge_audit_code code, uint64_t index, uint32_t group,
                           const struct kedge_hash *expected, const struct kedge_hash *recorded,
                           struct kedgei_findings *f)
{
    char is[KEDGE_HASH_HEX_LEN + 1], was[KEDGE_HASH_HEX_LEN + 1];
    if (kedge_hash_eq(expected, recorded)) {
        return;
    }
    kedge_hash_hex(expected, is);
    kedge_hash_hex(recorded, was);
    kedgei_error(f, code, &r->a->main, index,
                 "job \"%s\", round %u, group %u: recorded %s, the inputs give %s", d->job->id.s,
                 d->round ? d->round->number : 0, group, was, is);
}

/* A chain of hashes: results have any number of parts, and their order counts. Numbers go in as eight
 * bytes, the least significant first, on every machine. */
void kedgei_replay_add(struct kedgei_decision *d, const void *bytes, size_t len)
{
    struct kedge_hash so_far = d->result;
    kedge_sha256_2(kedge_view_of(so_far.b, sizeof so_far.b), kedge_view_of(bytes, len), &d->result);
}

void kedgei_replay_add_number(struct kedgei_decision *d, uint64_t number)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(number >> (8 * i));
    }
    kedgei_replay_add(d, bytes, sizeof bytes);
}

uint64_t kedgei_judged_at(const struct kedgei_closing *c, const struct kedgei_decision *item)
{
    return item->kind == KEDGEI_AGGREGATE ? item->fact->index : c->round->step->index;
}

void kedgei_judge_compare(struct kedgei_closing *c, struct kedgei_decision *item, enum kedge_audit_code code,
                          uint32_t group, const struct kedge_hash *expected,
                          const struct kedge_hash *recorded)
{
    kedgei_replay_add(item, expected->b, sizeof expected->b);
    kedgei_replay_compare(c->r, item, code, kedgei_judged_at(c, item), group, expected, recorded, c->f);
}

void kedgei_replay_add_real(struct kedgei_decision *d, double real)
{
    uint64_t bits;
    memcpy(&bits, &real, sizeof bits);
    kedgei_replay_add_number(d, bits);
}
