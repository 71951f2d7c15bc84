/* The durable form: fixed fields, big-endian, behind a title, before a SHA-256 of it all. One encoding. */
#include <string.h>

#include "chain/anchor/evm_anchor_impl.h"
#include "chain/anchor/keccak256.h"

static const char title[] = "kedge evm anchor 1\n";

static void put_hash(struct kedge_buf *out, const struct kedge_hash *h)
{
    kedge_buf_put(out, h->b, sizeof h->b);
}

static void put_point(struct kedge_buf *out, const struct kedge_evm_point *p)
{
    kedge_buf_put_u64(out, p->seq);
    kedge_buf_put_u64(out, p->size);
    put_hash(out, &p->root);
}

static void put_flight(struct kedge_buf *out, const struct kedge_evm_flight *f)
{
    put_point(out, &f->point);
    kedge_buf_put_u8(out, (uint8_t)f->phase);
    kedge_buf_put_u64(out, f->nonce);
    kedge_buf_put_u64(out, f->sent_ms);
    kedge_buf_put_u64(out, f->since_ms);
    kedge_buf_put_u64(out, f->charged_hour);
    kedge_buf_put_u32(out, f->mined_attempt);
    kedge_buf_put_u64(out, f->block);
    kedge_buf_put_u64(out, f->log_index);
    put_hash(out, &f->block_hash);
    kedge_buf_put_u32(out, f->attempt_count);
    for (uint32_t i = 0; i < f->attempt_count; i++) {
        const struct kedge_evm_attempt *t = &f->attempts[i];
        kedge_buf_put_u64(out, t->max_fee);
        kedge_buf_put_u64(out, t->priority_fee);
        kedge_buf_put_u64(out, t->signed_ms);
        kedge_buf_put_u16(out, t->raw_len);
        kedge_buf_put(out, t->raw, t->raw_len);
    }
}

static void put_owner(struct kedge_buf *out, const struct kedge_evm_config *c)
{
    kedge_buf_put_u64(out, c->chain_id);
    kedge_buf_put(out, c->contract.b, sizeof c->contract.b);
    kedge_buf_put(out, c->sender.b, sizeof c->sender.b);
    put_hash(out, &c->ns);
}

/* All of the state with a checksum at its end; whom it belongs to stands first, so that a state is never
 * used with another chain, contract or key. */
void kedge_evm_anchor_save(const struct kedge_evm_anchor *a, struct kedge_buf *out)
{
    const struct kedge_evm_state *s = &a->state;
    struct kedge_hash sum;
    size_t start = out->len, stop_len = strlen(s->stop_text);
    kedge_buf_put_str(out, title);
    put_owner(out, &a->config);
    put_point(out, &s->last);
    kedge_buf_put_u8(out, s->begun);
    kedge_buf_put_u64(out, s->next_nonce);
    kedge_buf_put_u64(out, s->planned_ms);
    kedge_buf_put_u64(out, s->final_number);
    put_hash(out, &s->final_hash);
    for (size_t i = 0; i < KEDGE_EVM_HOURS; i++) {
        kedge_buf_put_u64(out, s->spent[i].hour);
        kedge_buf_put_u64(out, s->spent[i].wei);
    }
    kedge_buf_put_u32(out, (uint32_t)-s->stop_err);
    kedge_buf_put_u16(out, (uint16_t)stop_len);
    kedge_buf_put(out, s->stop_text, stop_len);
    kedge_buf_put_u32(out, s->flight_count);
    for (uint32_t i = 0; i < s->flight_count; i++) {
        put_flight(out, &s->flights[i]);
    }
    if (!out->err) {
        kedge_sha256(kedge_view_of(out->ptr + start, out->len - start), &sum);
        put_hash(out, &sum);
    }
}

/* ---- reading ---- */

static bool get_flag(struct kedge_reader *r)
{
    uint8_t v = kedge_read_u8(r);
    r->failed |= v > 1;
    return v == 1;
}

static void get_bytes(struct kedge_reader *r, uint8_t *out, size_t len)
{
    struct kedge_view v = kedge_read_bytes(r, len);
    if (!r->failed && len > 0) {
        memcpy(out, v.ptr, len);
    }
}

static void get_point(struct kedge_reader *r, const struct kedge_hash *ns, struct kedge_evm_point *ret)
{
    ret->ns = *ns;
    ret->seq = kedge_read_u64(r);
    ret->size = kedge_read_u64(r);
    get_bytes(r, ret->root.b, sizeof ret->root.b);
}

/* The hash of an attempt is not in the file: it follows from the bytes, and what is not written cannot
 * contradict them. */
static void get_flight(struct kedge_reader *r, const struct kedge_hash *ns, struct kedge_evm_flight *f)
{
    get_point(r, ns, &f->point);
    uint8_t phase = kedge_read_u8(r);
    r->failed |= phase < KEDGE_EVM_SIGNED || phase > KEDGE_EVM_FINALIZED;
    f->phase = (enum kedge_evm_phase)phase;
    f->nonce = kedge_read_u64(r);
    f->sent_ms = kedge_read_u64(r);
    f->since_ms = kedge_read_u64(r);
    f->charged_hour = kedge_read_u64(r);
    f->mined_attempt = kedge_read_u32(r);
    f->block = kedge_read_u64(r);
    f->log_index = kedge_read_u64(r);
    get_bytes(r, f->block_hash.b, sizeof f->block_hash.b);
    f->attempt_count = kedge_read_u32(r);
    if (f->attempt_count == 0 || f->attempt_count > KEDGE_EVM_ATTEMPTS_MAX
        || f->mined_attempt >= f->attempt_count) {
        r->failed = true;
        return;
    }
    for (uint32_t i = 0; i < f->attempt_count && !r->failed; i++) {
        struct kedge_evm_attempt *t = &f->attempts[i];
        t->max_fee = kedge_read_u64(r);
        t->priority_fee = kedge_read_u64(r);
        t->signed_ms = kedge_read_u64(r);
        t->raw_len = kedge_read_u16(r);
        r->failed |= t->raw_len == 0 || t->raw_len > KEDGE_EVM_ANCHOR_RAW_MAX;
        if (!r->failed) {
            get_bytes(r, t->raw, t->raw_len);
            kedge_keccak256(kedge_view_of(t->raw, t->raw_len), &t->hash);
        }
    }
}

/* Numbers must go on from `last` without a gap and nonces must ascend: kedgei_evm_tail, kedgei_evm_unmined
 * and the order of recording rely on both. */
static void get_state(struct kedge_reader *r, const struct kedge_hash *ns, struct kedge_evm_state *s)
{
    get_point(r, ns, &s->last);
    s->begun = get_flag(r);
    s->next_nonce = kedge_read_u64(r);
    s->planned_ms = kedge_read_u64(r);
    s->final_number = kedge_read_u64(r);
    get_bytes(r, s->final_hash.b, sizeof s->final_hash.b);
    for (size_t i = 0; i < KEDGE_EVM_HOURS; i++) {
        s->spent[i].hour = kedge_read_u64(r);
        s->spent[i].wei = kedge_read_u64(r);
    }
    uint32_t stop = kedge_read_u32(r);
    uint16_t len = kedge_read_u16(r);
    r->failed |= stop > 9999 || len >= sizeof s->stop_text;
    if (!r->failed) {
        s->stop_err = -(int)stop;
        get_bytes(r, (uint8_t *)s->stop_text, len);
        r->failed |= strlen(s->stop_text) != len;
    }
    s->flight_count = kedge_read_u32(r);
    r->failed |= s->flight_count > KEDGE_EVM_FLIGHT_MAX;
    for (uint32_t i = 0; i < s->flight_count && !r->failed; i++) {
        get_flight(r, ns, &s->flights[i]);
        const struct kedge_evm_flight *before = i > 0 ? &s->flights[i - 1] : NULL;
        r->failed |= s->flights[i].point.seq != (before ? before->point.seq : s->last.seq) + 1
                     || (before && s->flights[i].nonce <= before->nonce);
    }
}

/* The checksum finds damage, and the owner a state that was copied from elsewhere. Nothing is used unless
 * all of it is sound: numbers that ascend without a gap, counts within bounds, no byte left over. A state
 * that were half read could sign a second transaction for an anchor that is under way. */
int kedge_evm_anchor_load(struct kedge_evm_anchor *a, struct kedge_view bytes, struct kedge_diag *reterr)
{
    struct kedge_hash sum, stored;
    struct kedge_buf owner KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_evm_state *s = &a->state;
    kedge_buf_init(&owner, 256);
    put_owner(&owner, &a->config);
    if (owner.err) {
        return owner.err;
    }
    if (bytes.len < sizeof title - 1 + owner.len + sizeof sum.b
        || memcmp(bytes.ptr, title, sizeof title - 1) != 0) {
        return kedge_diag_set(reterr, KEDGE_E_CORRUPT, "no state of anchors");
    }
    size_t len = bytes.len - sizeof sum.b;
    kedge_sha256(kedge_view_of(bytes.ptr, len), &sum);
    memcpy(stored.b, bytes.ptr + len, sizeof stored.b);
    if (!kedge_hash_eq(&sum, &stored)) {
        return kedge_diag_set(reterr, KEDGE_E_CORRUPT,
                              "the state of anchors is damaged: its SHA-256 differs");
    }
    struct kedge_reader r = kedge_reader_of(kedge_view_of(bytes.ptr, len));
    (void)kedge_read_bytes(&r, sizeof title - 1);
    if (!kedge_view_eq(kedge_read_bytes(&r, owner.len), kedge_buf_view(&owner))) {
        return kedge_diag_set(reterr, KEDGE_E_STATE,
                              "the state of anchors is of another chain, contract, key or main chain");
    }
    memset(s, 0, sizeof *s);
    get_state(&r, &a->config.ns, s);
    if (kedge_reader_end(&r) != KEDGE_OK) {
        memset(s, 0, sizeof *s);
        s->last.ns = a->config.ns;
        return kedge_diag_set(reterr, KEDGE_E_CORRUPT, "the state of anchors is malformed");
    }
    return KEDGE_OK;
}
