/* What is signed is the hash of the fields without a signature: for EIP-155 with the chain id in the
 * signature's place, for EIP-1559 as the first field. So a transaction that was signed for one chain is
 * of no use on another. Both kinds can be read; Kedge's anchors are of the second. */
#include "chain/anchor/evm_tx.h"

#include <string.h>

#include "chain/anchor/keccak256.h"
#include "chain/anchor/rlp.h"
#include "common/base/text.h"
#include "common/base/try.h"

enum { TYPE_1559 = 0x02, V_BASE = 35 };

/* ---- addresses ---- */

bool kedge_evm_address_eq(const struct kedge_evm_address *a, const struct kedge_evm_address *b)
{
    return memcmp(a->b, b->b, sizeof a->b) == 0;
}

/* EIP-55: the case of the letters is a checksum. A letter is upper case when the digit at its place in
 * the hash of the lower-case address is 8 or more. Addresses in one case have no checksum and are taken
 * as they are. */
void kedge_evm_address_text(const struct kedge_evm_address *a, char out[KEDGE_EVM_ADDRESS_TEXT])
{
    struct kedge_hash h;
    out[0] = '0';
    out[1] = 'x';
    kedge_hex_encode(a->b, sizeof a->b, out + 2);
    kedge_keccak256(kedge_view_of(out + 2, 2 * KEDGE_EVM_ADDRESS_LEN), &h);
    for (size_t i = 0; i < 2 * (size_t)KEDGE_EVM_ADDRESS_LEN; i++) {
        unsigned nibble = (unsigned)h.b[i / 2] >> (i % 2 ? 0 : 4) & 15U;
        if (nibble >= 8 && out[2 + i] >= 'a') {
            out[2 + i] = (char)(out[2 + i] - 'a' + 'A');
        }
    }
}

int kedge_evm_address_parse(struct kedge_view text, struct kedge_evm_address *ret)
{
    struct kedge_evm_address a;
    char lower[2 * KEDGE_EVM_ADDRESS_LEN], checked[KEDGE_EVM_ADDRESS_TEXT];
    bool any_upper = false, any_lower = false;
    if (text.len != 2 + sizeof lower || memcmp(text.ptr, "0x", 2) != 0) {
        return KEDGE_E_FORMAT;
    }
    for (size_t i = 0; i < sizeof lower; i++) {
        char c = (char)text.ptr[2 + i];
        bool upper = c >= 'A' && c <= 'F';
        any_upper |= upper;
        any_lower |= c >= 'a' && c <= 'f';
        lower[i] = upper ? (char)(c - 'A' + 'a') : c;
    }
    if (kedge_hex_decode(kedge_view_of(lower, sizeof lower), a.b, sizeof a.b) != KEDGE_OK) {
        return KEDGE_E_FORMAT;
    }
    kedge_evm_address_text(&a, checked);
    if (any_upper && any_lower && memcmp(text.ptr, checked, text.len) != 0) {
        return KEDGE_E_FORMAT;
    }
    *ret = a;
    return KEDGE_OK;
}

static void address_of(struct kedge_view bytes, struct kedge_evm_address *ret)
{
    struct kedge_hash h;
    kedge_keccak256(bytes, &h);
    memcpy(ret->b, h.b + (sizeof h.b - sizeof ret->b), sizeof ret->b);
}

void kedge_evm_address_of_key(const struct kedge_secp_public *key, struct kedge_evm_address *ret)
{
    address_of(kedge_view_of(key->b, sizeof key->b), ret);
}

/* The address of a contract is the end of keccak(RLP([sender, nonce])). It follows from the transaction
 * alone, so it is known before that is mined. The RLP is written by hand because it is so short. */
void kedge_evm_address_of_contract(const struct kedge_evm_address *sender, uint64_t nonce,
                                   struct kedge_evm_address *ret)
{
    /* Two short items: at most 21 + 9 bytes, so the list's prefix is one byte. */
    uint8_t bytes[1 + 21 + 9], be[8];
    size_t len = 1, skip = 0;
    bytes[len++] = 0x80 + KEDGE_EVM_ADDRESS_LEN;
    memcpy(bytes + len, sender->b, sizeof sender->b);
    len += sizeof sender->b;
    kedge_store_be64(be, nonce);
    while (skip < sizeof be && be[skip] == 0) {
        skip++;
    }
    if (nonce == 0 || nonce >= 0x80) {
        bytes[len++] = (uint8_t)(0x80 + sizeof be - skip);
    }
    memcpy(bytes + len, be + skip, sizeof be - skip);
    len += sizeof be - skip;
    bytes[0] = (uint8_t)(0xc0 + len - 1);
    address_of(kedge_view_of(bytes, len), ret);
}

/* ---- writing ---- */

/* Bounds under which nothing here overflows: 35 + 2·(chain id) + parity must fit 64 bits (EIP-155), and
 * beside its data a transaction takes well below 512 bytes. EIP-155 has one price, so no priority fee. */
static bool is_sound(const struct kedge_evm_tx *tx)
{
    return tx->data.len <= KEDGE_EVM_RAW_MAX - 512 && tx->priority_fee <= tx->max_fee
           && (tx->kind == KEDGE_EVM_EIP1559
               || (tx->chain_id <= (UINT64_MAX - V_BASE - 1) / 2 && tx->priority_fee == 0));
}

static void put_fields(const struct kedge_evm_tx *tx, struct kedge_buf *items)
{
    if (tx->kind == KEDGE_EVM_EIP1559) {
        kedge_rlp_put_u64(items, tx->chain_id);
        kedge_rlp_put_u64(items, tx->nonce);
        kedge_rlp_put_u64(items, tx->priority_fee);
    } else {
        kedge_rlp_put_u64(items, tx->nonce);
    }
    kedge_rlp_put_u64(items, tx->max_fee);
    kedge_rlp_put_u64(items, tx->gas);
    kedge_rlp_put_string(items, kedge_view_of(tx->to.b, tx->creates ? 0 : sizeof tx->to.b));
    kedge_rlp_put_u64(items, tx->value);
    kedge_rlp_put_string(items, tx->data);
    if (tx->kind == KEDGE_EVM_EIP1559) {
        kedge_rlp_put_list(items, kedge_view_of(NULL, 0)); /* access list */
    }
}

/* Appends [02 ‖] list of items; the error of either buffer. */
static int put_whole(const struct kedge_evm_tx *tx, const struct kedge_buf *items, struct kedge_buf *out)
{
    if (tx->kind == KEDGE_EVM_EIP1559) {
        kedge_buf_put_u8(out, TYPE_1559);
    }
    kedge_rlp_put_list(out, kedge_buf_view(items));
    return items->err ? items->err : out->err;
}

int kedge_evm_tx_preimage(const struct kedge_evm_tx *tx, struct kedge_buf *out)
{
    struct kedge_buf items KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&items, KEDGE_EVM_RAW_MAX);
    if (!is_sound(tx)) {
        return KEDGE_E_ARG;
    }
    put_fields(tx, &items);
    if (tx->kind == KEDGE_EVM_EIP155) {
        kedge_rlp_put_u64(&items, tx->chain_id);
        kedge_rlp_put_u64(&items, 0);
        kedge_rlp_put_u64(&items, 0);
    }
    return put_whole(tx, &items, out);
}

static int signing_hash(const struct kedge_evm_tx *tx, struct kedge_hash *ret)
{
    struct kedge_buf preimage KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&preimage, KEDGE_EVM_RAW_MAX);
    KEDGE_TRY(kedge_evm_tx_preimage(tx, &preimage));
    kedge_keccak256(kedge_buf_view(&preimage), ret);
    return KEDGE_OK;
}

int kedge_evm_tx_sign(const struct kedge_evm_tx *tx, const struct kedge_secp_secret *secret,
                      struct kedge_buf *out, struct kedge_hash *ret_hash)
{
    struct kedge_buf items KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_secp_signature signature;
    struct kedge_hash hash;
    size_t start = out->len;
    kedge_buf_init(&items, KEDGE_EVM_RAW_MAX);
    KEDGE_TRY(signing_hash(tx, &hash));
    KEDGE_TRY(kedge_secp_sign(&hash, secret, &signature));
    put_fields(tx, &items);
    kedge_rlp_put_u64(&items, tx->kind == KEDGE_EVM_EIP1559 ? signature.parity
                                                            : V_BASE + 2 * tx->chain_id + signature.parity);
    kedge_rlp_put_integer(&items, kedge_view_of(signature.r, sizeof signature.r));
    kedge_rlp_put_integer(&items, kedge_view_of(signature.s, sizeof signature.s));
    int err = put_whole(tx, &items, out);
    if (!err && ret_hash) {
        kedge_keccak256(kedge_view_of(out->ptr + start, out->len - start), ret_hash);
    }
    return err;
}

/* ---- reading ---- */

static int take_to(struct kedge_view *rest, struct kedge_evm_tx *tx)
{
    struct kedge_view to;
    int err = kedge_rlp_take_string(rest, &to);
    if (err || (to.len != 0 && to.len != sizeof tx->to.b)) {
        return KEDGE_E_FORMAT;
    }
    tx->creates = to.len == 0;
    if (!tx->creates) {
        memcpy(tx->to.b, to.ptr, sizeof tx->to.b);
    }
    return KEDGE_OK;
}

static int take_fields(struct kedge_view *rest, struct kedge_evm_tx *tx)
{
    bool typed = tx->kind == KEDGE_EVM_EIP1559;
    struct kedge_view access;
    KEDGE_TRY(typed ? kedge_rlp_take_u64(rest, &tx->chain_id) : KEDGE_OK);
    int err = kedge_rlp_take_u64(rest, &tx->nonce);
    err = err || !typed ? err : kedge_rlp_take_u64(rest, &tx->priority_fee);
    if (err) {
        return err;
    }
    KEDGE_TRY(kedge_rlp_take_u64(rest, &tx->max_fee));
    KEDGE_TRY(kedge_rlp_take_u64(rest, &tx->gas));
    KEDGE_TRY(take_to(rest, tx));
    KEDGE_TRY(kedge_rlp_take_u64(rest, &tx->value));
    err = kedge_rlp_take_string(rest, &tx->data);
    if (!err && typed) {
        err = kedge_rlp_take_list(rest, &access);
        err = err || access.len > 0 ? KEDGE_E_FORMAT : KEDGE_OK;
    }
    return err;
}

static int take_signature(struct kedge_view *rest, struct kedge_evm_tx *tx,
                          struct kedge_secp_signature *signature)
{
    uint64_t v;
    if (kedge_rlp_take_u64(rest, &v) != KEDGE_OK
        || kedge_rlp_take_integer(rest, signature->r, sizeof signature->r) != KEDGE_OK
        || kedge_rlp_take_integer(rest, signature->s, sizeof signature->s) != KEDGE_OK || rest->len > 0) {
        return KEDGE_E_FORMAT;
    }
    if (tx->kind == KEDGE_EVM_EIP155) {
        if (v < V_BASE) {
            return KEDGE_E_FORMAT; /* before EIP-155: valid on every chain, hence on none of ours */
        }
        tx->chain_id = (v - V_BASE) / 2;
        v = (v - V_BASE) % 2;
    }
    signature->parity = (uint8_t)(v > 1 ? 2 : v);
    return v > 1 ? KEDGE_E_FORMAT : KEDGE_OK;
}

/* The sender is nowhere in the bytes: it is the address of the key that the signature gives back. So a
 * changed byte is no error here but another sender, and callers compare it with the one that they expect. */
int kedge_evm_tx_decode(struct kedge_view raw, struct kedge_evm_tx *ret_tx,
                        struct kedge_evm_address *ret_sender, struct kedge_hash *ret_hash)
{
    struct kedge_evm_tx tx = {.kind = KEDGE_EVM_EIP155};
    struct kedge_secp_signature signature;
    struct kedge_secp_public key;
    struct kedge_rlp_item list;
    struct kedge_hash hash;
    struct kedge_view body = raw;
    if (raw.len == 0 || raw.len > KEDGE_EVM_RAW_MAX) {
        return KEDGE_E_FORMAT;
    }
    if (raw.ptr[0] == TYPE_1559) {
        tx.kind = KEDGE_EVM_EIP1559;
        body = kedge_view_of(raw.ptr + 1, raw.len - 1);
    }
    if (kedge_rlp_decode(body, &list) != KEDGE_OK || !list.is_list || take_fields(&list.body, &tx) != KEDGE_OK
        || take_signature(&list.body, &tx, &signature) != KEDGE_OK || !is_sound(&tx)) {
        return KEDGE_E_FORMAT;
    }
    KEDGE_TRY(signing_hash(&tx, &hash));
    KEDGE_TRY(kedge_secp_recover(&hash, &signature, &key));
    *ret_tx = tx;
    if (ret_sender) {
        kedge_evm_address_of_key(&key, ret_sender);
    }
    if (ret_hash) {
        kedge_keccak256(raw, ret_hash);
    }
    return KEDGE_OK;
}

int kedge_evm_tx_cost(const struct kedge_evm_tx *tx, uint64_t *ret_wei)
{
    if (tx->gas != 0 && tx->max_fee > (UINT64_MAX - tx->value) / tx->gas) {
        return KEDGE_E_OVERFLOW;
    }
    *ret_wei = tx->gas * tx->max_fee + tx->value;
    return KEDGE_OK;
}
