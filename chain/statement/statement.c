/* Statements in their envelopes. The bytes that were verified are the bytes that are decoded: a payload is
 * not parsed and written again before its signature is checked, since two parsers could see two things in
 * it. */
#include "chain/statement/statement.h"

#include "chain/statement/statement_fields.h"
#include "common/base/mem.h"
#include "common/base/try.h"

int kedge_statement_sign(const struct kedge_statement *st, const struct kedge_key_pair *pair,
                         struct kedge_buf *ret_envelope, struct kedge_diag *reterr)
{
    struct kedge_buf payload KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&payload, KEDGE_ENTRY_MAX);
    KEDGE_TRY(kedge_statement_encode(st, &payload, reterr));
    int err = kedge_dsse_build(KEDGE_DSSE_IN_TOTO, kedge_buf_view(&payload), pair, ret_envelope);
    if (err) {
        kedge_diag_set(reterr, err, "statement %s: cannot make its envelope: %s",
                       kedge_statement_kind_name(st->kind), kedge_strerror(err));
    }
    return err;
}

bool kedge_statement_says_same(const struct kedge_statement *a, const struct kedge_statement *b)
{
    struct kedge_buf one KEDGE_CLEANUP(kedge_buf_deinit), other KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_statement *moved = a->kind == b->kind ? kedge_mem_new(1, sizeof *moved) : NULL;
    kedge_buf_init(&one, KEDGE_ENTRY_MAX);
    kedge_buf_init(&other, KEDGE_ENTRY_MAX);
    if (!moved) {
        return false;
    }
    *moved = *b;
    moved->at = a->at;
    bool same = kedge_statement_encode(a, &one, NULL) == KEDGE_OK
                && kedge_statement_encode(moved, &other, NULL) == KEDGE_OK
                && kedge_view_eq(kedge_buf_view(&one), kedge_buf_view(&other));
    kedge_mem_free(moved);
    return same;
}

static int refuse_spelling(int err, struct kedge_diag *reterr)
{
    return kedge_diag_set(reterr, err,
                          "envelope: expected a DSSE envelope as Kedge writes it, of at most %d bytes",
                          KEDGE_ENTRY_MAX);
}

int kedge_statement_read(struct kedge_view envelope, struct kedge_statement *ret_st,
                         struct kedge_signed_statement *ret, struct kedge_diag *reterr)
{
    kedge_buf_init(&ret->payload, KEDGE_ENTRY_MAX);
    int err = kedge_dsse_decode_all(envelope, &ret->payload, ret->signatures, &ret->signature_count);
    if (err) {
        return refuse_spelling(err, reterr);
    }
    err = kedge_statement_decode(kedge_buf_view(&ret->payload), ret_st, reterr);
    if (!err && ret->signature_count > 1 && !kedgei_kinds[ret_st->kind].many_signers) {
        err = kedge_diag_set(reterr, KEDGE_E_FORMAT, "envelope: %u signatures; one key signs a %s",
                             ret->signature_count, kedge_statement_kind_name(ret_st->kind));
    }
    return err;
}

int kedge_statement_cosign(struct kedge_view envelope, const struct kedge_key_pair *pair,
                           struct kedge_buf *ret_envelope, struct kedge_diag *reterr)
{
    struct kedge_signed_statement s;
    struct kedge_statement st;
    int err = kedge_statement_read(envelope, &st, &s, reterr);
    kedge_buf_deinit(&s.payload);
    if (!err && !kedgei_kinds[st.kind].many_signers) {
        err = kedge_diag_set(reterr, KEDGE_E_ARG, "one key signs a %s", kedge_statement_kind_name(st.kind));
    } else if (!err) {
        err = kedge_dsse_add(envelope, pair, ret_envelope);
        if (err == KEDGE_E_EXISTS) {
            (void)kedge_diag_set(reterr, err, "this key has signed already");
        } else if (err) {
            (void)kedge_diag_set(reterr, err, "cannot add a signature: %s", kedge_strerror(err));
        }
    }
    return err;
}

static int open_envelope(struct kedge_view envelope, struct kedge_buf *ret_payload,
                         struct kedge_dsse_entry *ret_entry, struct kedge_diag *reterr)
{
    int err = kedge_dsse_decode(envelope, ret_payload, ret_entry);
    if (err) {
        return refuse_spelling(err, reterr);
    }
    return KEDGE_OK;
}

static int refuse_signature(int err, struct kedge_diag *reterr)
{
    return kedge_diag_set(reterr, err, "envelope: %s: not signed by the key expected of its signer",
                          kedge_strerror(err));
}

int kedge_statement_open(struct kedge_view envelope, const struct kedge_public_key *key,
                         struct kedge_statement *ret_st, struct kedge_diag *reterr)
{
    struct kedge_buf payload KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&payload, KEDGE_ENTRY_MAX);
    struct kedge_dsse_entry entry;
    KEDGE_TRY(open_envelope(envelope, &payload, &entry, reterr));
    int err = kedge_dsse_entry_verify(&entry, kedge_buf_view(&payload), key);
    if (err) {
        return refuse_signature(err, reterr);
    }
    return kedge_statement_decode(kedge_buf_view(&payload), ret_st, reterr);
}
