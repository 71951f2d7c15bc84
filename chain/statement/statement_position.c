/* A signed statement could be held back and put into a ledger later, or into another one: an enrolment
 * after its admin was revoked, a revocation after a new enrolment. So a signer names what he saw, the size
 * and root of the ledger, and the entry before which the statement must stand. It is refused where that
 * history is not the ledger's, where the entry is passed, and where since then anything has changed on
 * which it rests. */
#include "chain/statement/statement_position.h"
#include "common/base/try.h"

const struct kedge_id *kedge_statement_tenant(const struct kedge_statement *st)
{
    return st->kind == KEDGE_ST_KEY ? &st->u.key.tenant : &st->u.key_added.tenant; /* first in all others */
}

struct kedge_st_position kedge_position_make(const struct kedge_public_key *main_log_key, uint64_t size,
                                             const struct kedge_hash *root, uint64_t span)
{
    KEDGE_ASSERT(span > 0 && span <= KEDGE_POSITION_SPAN_MAX);
    return (struct kedge_st_position){
        .main_log_key = *main_log_key, .before = size + span, .seen_size = size, .seen_root = *root};
}

static int judge_span(const struct kedge_st_position *at, const struct kedge_position_ledger *ledger,
                      struct kedge_diag *d)
{
    if (at->before <= at->seen_size || at->before - at->seen_size > KEDGE_POSITION_SPAN_MAX) {
        return kedge_diag_set(
            d, KEDGE_E_POSITION,
            "seen %llu entries and good before entry %llu: expected 1 to %d entries between",
            (unsigned long long)at->seen_size, (unsigned long long)at->before, KEDGE_POSITION_SPAN_MAX);
    }
    if (ledger->size + ledger->late >= at->before) {
        return kedge_diag_set(d, KEDGE_E_POSITION,
                              "it was to stand before entry %llu, and the ledger has %llu: sign it anew",
                              (unsigned long long)at->before, (unsigned long long)ledger->size);
    }
    if (at->seen_size > ledger->size) {
        return kedge_diag_set(d, KEDGE_E_POSITION,
                              "its signer has seen %llu entries of this ledger, which has %llu",
                              (unsigned long long)at->seen_size, (unsigned long long)ledger->size);
    }
    return KEDGE_OK;
}

/* What the signer had to know: keys that speak for the tenant, and what was said of the same subject. */
static int judge_seen(const struct kedge_keybook *book, const struct kedge_statement *st,
                      struct kedge_diag *d)
{
    uint64_t changed = kedge_keybook_rests_on(book, st);
    return st->at.seen_size >= changed
               ? KEDGE_OK
               : kedge_diag_set(d, KEDGE_E_POSITION,
                                "signed when its signer had seen %llu entries; entry %llu has since changed "
                                "what it rests on: sign it anew",
                                (unsigned long long)st->at.seen_size, (unsigned long long)(changed - 1));
}

int kedge_position_judge(const struct kedge_keybook *book, const struct kedge_statement *st,
                         const struct kedge_position_ledger *ledger, struct kedge_diag *reterr)
{
    struct kedge_hash root;
    if (!kedge_statement_has_position(st->kind)) {
        return KEDGE_OK;
    }
    if (ledger->main_log_key && !kedge_public_key_eq(&st->at.main_log_key, ledger->main_log_key)) {
        return kedge_diag_set(reterr, KEDGE_E_POSITION,
                              "signed for another deployment: its main_log_key is not this one's");
    }
    KEDGE_TRY(judge_span(&st->at, ledger, reterr));
    int err = ledger->root(ledger->arg, st->at.seen_size, &root);
    if (err) {
        return kedge_diag_set(reterr, err, "the root of %llu entries: %s",
                              (unsigned long long)st->at.seen_size, kedge_strerror(err));
    }
    if (!kedge_hash_eq(&root, &st->at.seen_root)) {
        return kedge_diag_set(reterr, KEDGE_E_POSITION,
                              "its signer has seen another history: the first %llu entries have another root",
                              (unsigned long long)st->at.seen_size);
    }
    return judge_seen(book, st, reterr);
}
