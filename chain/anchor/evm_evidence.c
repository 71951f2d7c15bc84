/* Evidence is checked from what is signed towards what is only told: the transaction by itself, then that
 * the header has the block's hash, then that the state root in that header has the contract's head. What
 * is left is one question for a node: is the block with this hash in the chain? Header and state may be
 * missing, but what is there must hold. */
#include "chain/anchor/evm_evidence.h"

#include <jansson.h>
#include <string.h>

#include "chain/anchor/evm_contract.h"
#include "chain/anchor/keccak256.h"
#include "chain/anchor/rlp.h"
#include "common/base/text.h"
#include "common/base/try.h"
#include "common/json/json.h"

enum {
    HEADER_FIELDS_MIN = 15,
    HEADER_FIELDS_MAX = 32,
    HEADER_STATE_ROOT = 3,
    HEADER_NUMBER = 8,
    HEADER_TIME = 11
};

static const char format[] = "kedge-evm-anchor/1";
static const char *const known_keys[] = {
    "format", "chain_id",         "contract",    "sender",    "origin",     "seq",          "size",
    "root",   "transaction_hash", "transaction", "log_index", "checkpoint", "block_header", "state",
    "block",  "block_hash",       "finality"};
static const char *const state_keys[] = {"account", "packed", "root"};

static int contradicts(struct kedge_diag *reterr, const char *what)
{
    return kedge_diag_set(reterr, KEDGE_E_VERIFY, "%s", what);
}

/* ---- checks ---- */

/* The signed transaction says everything that matters: who anchored what, where. So the rest of the
 * evidence only has to show that it is in a block. */
static int check_transaction(const struct kedge_evm_evidence *e, struct kedge_diag *reterr)
{
    struct kedge_evm_tx tx;
    struct kedge_evm_address sender;
    struct kedge_evm_point point;
    struct kedge_hash hash, ns;
    int err = kedge_evm_tx_decode(e->raw, &tx, &sender, &hash);
    if (err == KEDGE_E_NOMEM) {
        return err;
    }
    kedge_evm_namespace(kedge_view_str(e->origin), &ns);
    if (err) {
        return contradicts(reterr, "transaction: not a signed transaction");
    }
    if (!kedge_hash_eq(&hash, &e->tx_hash)) {
        return contradicts(reterr, "transaction: its hash is not the one that is said");
    }
    if (!kedge_evm_address_eq(&sender, &e->sender)) {
        return contradicts(reterr, "transaction: signed by another key than the sender's");
    }
    if (tx.chain_id != e->chain_id || tx.creates || !kedge_evm_address_eq(&tx.to, &e->contract)) {
        return contradicts(reterr, "transaction: for another chain or contract");
    }
    if (kedge_evm_anchor_call_decode(tx.data, &point) != KEDGE_OK || !kedge_evm_point_eq(&point, &e->point)
        || !kedge_hash_eq(&ns, &e->point.ns)) {
        return contradicts(reterr, "transaction: it anchors something else");
    }
    return KEDGE_OK;
}

/* The header's state root. A header is a list of fields whose number has grown with each fork of the
 * protocol, so fields are taken by place, and more than are known today are allowed. The hash covers all
 * of them, so none can be added. */
static int check_header(const struct kedge_evm_evidence *e, struct kedge_hash *ret_state,
                        struct kedge_diag *reterr)
{
    struct kedge_rlp_item list;
    struct kedge_hash hash;
    uint64_t number = 0;
    size_t count = 0;
    kedge_keccak256(e->header, &hash);
    if (!kedge_hash_eq(&hash, &e->block_hash)) {
        return contradicts(reterr, "block: the header does not have the block's hash");
    }
    bool good = kedge_rlp_decode(e->header, &list) == KEDGE_OK && list.is_list;
    struct kedge_view rest = good ? list.body : kedge_view_of(NULL, 0);
    for (; good && rest.len > 0; count++) {
        struct kedge_rlp_item item;
        good = count < HEADER_FIELDS_MAX
               && (count == HEADER_STATE_ROOT ? kedge_rlp_take_fixed(&rest, ret_state->b, KEDGE_HASH_LEN)
                   : count == HEADER_NUMBER   ? kedge_rlp_take_u64(&rest, &number)
                                              : kedge_rlp_take(&rest, &item))
                      == KEDGE_OK;
    }
    if (!good || count < HEADER_FIELDS_MIN || number != e->block) {
        return contradicts(reterr, "block: no header, or of another number");
    }
    return KEDGE_OK;
}

/* Value of a 32-byte word under the hash of its slot. Storage is a trie as well, by the hash of the
 * slot's number. A word is kept as an integer without leading zeros. */
static bool word_of(const struct kedge_hash *storage, const struct kedge_hash *slot,
                    const struct kedge_evm_nodes *nodes, struct kedge_hash *ret)
{
    struct kedge_hash key;
    struct kedge_view value;
    kedge_keccak256(kedge_view_of(slot->b, sizeof slot->b), &key);
    return kedge_evm_trie_verify(storage, kedge_view_of(key.b, sizeof key.b), nodes->node, nodes->count,
                                 &value)
               == KEDGE_OK
           && kedge_rlp_take_integer(&value, ret->b, sizeof ret->b) == KEDGE_OK && value.len == 0;
}

/* The contract's account: nonce, balance, root of its storage, hash of its code. */
static bool take_account(const struct kedge_evm_evidence *e, const struct kedge_hash *state,
                         struct kedge_hash *ret_storage, struct kedge_hash *ret_code)
{
    struct kedge_hash key;
    struct kedge_view account, fields, skip;
    kedge_keccak256(kedge_view_of(e->contract.b, sizeof e->contract.b), &key);
    return kedge_evm_trie_verify(state, kedge_view_of(key.b, sizeof key.b), e->account.node, e->account.count,
                                 &account)
               == KEDGE_OK
           && kedge_rlp_take_list(&account, &fields) == KEDGE_OK
           && kedge_rlp_take_string(&fields, &skip) == KEDGE_OK
           && kedge_rlp_take_string(&fields, &skip) == KEDGE_OK
           && kedge_rlp_take_fixed(&fields, ret_storage->b, sizeof ret_storage->b) == KEDGE_OK
           && kedge_rlp_take_fixed(&fields, ret_code->b, sizeof ret_code->b) == KEDGE_OK;
}

static int check_state(const struct kedge_evm_evidence *e, const struct kedge_hash *state,
                       struct kedge_diag *reterr)
{
    struct kedge_hash storage, code, packed_slot, root_slot, packed, root;
    struct kedge_evm_head head;
    if (!take_account(e, state, &storage, &code)) {
        return contradicts(reterr, "state: the proof does not lead from the block to the contract");
    }
    kedge_evm_head_slots(&e->sender, &e->point.ns, &packed_slot, &root_slot);
    if (!word_of(&storage, &packed_slot, &e->packed, &packed)
        || !word_of(&storage, &root_slot, &e->root, &root)) {
        return contradicts(reterr, "state: the proof does not lead from the contract to its head");
    }
    if (kedge_evm_head_from_words(&packed, &root, &head) != KEDGE_OK || head.seq != e->point.seq
        || head.size != e->point.size || head.block != e->block
        || !kedge_hash_eq(&head.root, &e->point.root)) {
        return contradicts(reterr, "state: the contract's head at that block is another anchor");
    }
    return KEDGE_OK;
}

int kedge_evm_evidence_check(const struct kedge_evm_evidence *e, struct kedge_diag *reterr)
{
    struct kedge_hash state = {{0}};
    int err = check_transaction(e, reterr);
    if (!err && e->header.len > 0) {
        err = check_header(e, &state, reterr);
    }
    if (!err && e->has_state) {
        err = e->header.len > 0 ? check_state(e, &state, reterr)
                                : contradicts(reterr, "state: a proof without the block's header");
    }
    return err;
}

int kedge_evm_evidence_time(const struct kedge_evm_evidence *e, uint64_t *ret_s)
{
    struct kedge_rlp_item list, item;
    if (kedge_rlp_decode(e->header, &list) != KEDGE_OK || !list.is_list) {
        return KEDGE_E_NOT_FOUND;
    }
    struct kedge_view rest = list.body;
    for (size_t i = 0; i < HEADER_TIME; i++) {
        if (kedge_rlp_take(&rest, &item) != KEDGE_OK) {
            return KEDGE_E_NOT_FOUND;
        }
    }
    return kedge_rlp_take_u64(&rest, ret_s) == KEDGE_OK ? KEDGE_OK : KEDGE_E_NOT_FOUND;
}

/* A state proof says what the account at that address has stored, and not that our contract stored it.
 * The account also has the hash of its code, which must be that of the code in evm_contract.c: only then
 * did our rules (a number once, a size that never shrinks) decide what was stored. */
bool kedge_evm_evidence_code_is_ours(const struct kedge_evm_evidence *e)
{
    uint8_t ours[KEDGE_EVM_CONTRACT_LEN];
    struct kedge_hash state = {{0}}, storage, code, expected;
    if (!e->has_state || check_header(e, &state, NULL) != KEDGE_OK
        || !take_account(e, &state, &storage, &code)) {
        return false;
    }
    kedge_evm_contract_code(ours);
    kedge_keccak256(
        kedge_view_of(ours + KEDGE_EVM_CONTRACT_HEAD, KEDGE_EVM_CONTRACT_LEN - KEDGE_EVM_CONTRACT_HEAD),
        &expected);
    return kedge_hash_eq(&code, &expected);
}

int kedge_evm_evidence_is_about(const struct kedge_evm_evidence *e, struct kedge_view origin, uint64_t size,
                                const struct kedge_hash *root, struct kedge_diag *reterr)
{
    if (!kedge_view_eq(origin, kedge_view_str(e->origin))) {
        return kedge_diag_set(reterr, KEDGE_E_VERIFY, "the anchor is of the log %s, the checkpoint of %.*s",
                              e->origin, (int)(origin.len < 255 ? origin.len : 255),
                              (const char *)origin.ptr);
    }
    if (size != e->point.size) {
        return kedge_diag_set(
            reterr, KEDGE_E_VERIFY,
            "the anchor is of %llu entries, the checkpoint of %llu: a consistency proof joins them",
            (unsigned long long)e->point.size, (unsigned long long)size);
    }
    if (!kedge_hash_eq(root, &e->point.root)) {
        return kedge_diag_set(
            reterr, KEDGE_E_VERIFY,
            "the anchor has another root of %llu entries than the checkpoint: two histories",
            (unsigned long long)size);
    }
    return KEDGE_OK;
}

/* ---- writing ---- */

static void put_hex(struct kedge_buf *out, const char *key, struct kedge_view bytes, const char *end)
{
    char digits[2 * 64 + 1];
    kedge_buf_printf(out, "%s\"0x", key);
    while (bytes.len > 0) {
        size_t len = bytes.len < 64 ? bytes.len : 64;
        kedge_hex_encode(bytes.ptr, len, digits);
        kedge_buf_put_str(out, digits);
        bytes = kedge_view_of(bytes.ptr + len, bytes.len - len);
    }
    kedge_buf_printf(out, "\"%s", end);
}

static void put_nodes(struct kedge_buf *out, const char *key, const struct kedge_evm_nodes *nodes,
                      const char *end)
{
    kedge_buf_printf(out, "    \"%s\": [\n", key);
    for (size_t i = 0; i < nodes->count; i++) {
        put_hex(out, "      ", nodes->node[i], i + 1 < nodes->count ? ",\n" : "\n");
    }
    kedge_buf_printf(out, "    ]%s\n", end);
}

static void put_checkpoint(struct kedge_buf *out, struct kedge_view note)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, note.len + 1);
    kedge_buf_put(&text, note.ptr, note.len);
    kedge_buf_put_u8(&text, 0);
    if (!text.err) {
        kedge_buf_put_str(out, "  \"checkpoint\": ");
        kedgei_json_put_string(out, (const char *)text.ptr);
        kedge_buf_put_str(out, ",\n");
    }
}

int kedge_evm_evidence_write(const struct kedge_evm_evidence *e, struct kedge_buf *out)
{
    char contract[KEDGE_EVM_ADDRESS_TEXT], sender[KEDGE_EVM_ADDRESS_TEXT];
    kedge_evm_address_text(&e->contract, contract);
    kedge_evm_address_text(&e->sender, sender);
    kedge_buf_printf(out, "{\n  \"format\": \"%s\",\n  \"chain_id\": %llu,\n  \"contract\": \"%s\",\n",
                     format, (unsigned long long)e->chain_id, contract);
    kedge_buf_printf(out, "  \"sender\": \"%s\",\n  \"origin\": ", sender);
    kedgei_json_put_string(out, e->origin);
    kedge_buf_printf(out, ",\n  \"seq\": %llu,\n  \"size\": %llu,\n", (unsigned long long)e->point.seq,
                     (unsigned long long)e->point.size);
    put_hex(out, "  \"root\": ", kedge_view_of(e->point.root.b, KEDGE_HASH_LEN), ",\n");
    put_hex(out, "  \"transaction_hash\": ", kedge_view_of(e->tx_hash.b, KEDGE_HASH_LEN), ",\n");
    put_hex(out, "  \"transaction\": ", e->raw, ",\n");
    kedge_buf_printf(out, "  \"log_index\": %llu,\n", (unsigned long long)e->log_index);
    if (e->checkpoint.len > 0) {
        put_checkpoint(out, e->checkpoint);
    }
    if (e->header.len > 0) {
        put_hex(out, "  \"block_header\": ", e->header, ",\n");
    }
    if (e->has_state) {
        kedge_buf_put_str(out, "  \"state\": {\n");
        put_nodes(out, "account", &e->account, ",");
        put_nodes(out, "packed", &e->packed, ",");
        put_nodes(out, "root", &e->root, "");
        kedge_buf_put_str(out, "  },\n");
    }
    kedge_buf_printf(out, "  \"block\": %llu,\n", (unsigned long long)e->block);
    put_hex(out, "  \"block_hash\": ", kedge_view_of(e->block_hash.b, KEDGE_HASH_LEN), ",\n");
    kedge_buf_printf(out, "  \"finality\": \"%s\"\n}\n", e->finality);
    return out->err;
}

/* ---- reading ---- */

/* "0x…" of any even length, appended to the evidence's own bytes, which were reserved before. */
static int take_hex(const json_t *value, struct kedge_evm_evidence *e, struct kedge_view *ret)
{
    struct kedge_view text =
        kedge_view_of(json_string_value(value), json_is_string(value) ? json_string_length(value) : 0);
    size_t len = text.len / 2 - 1, at = e->bytes.len;
    if (text.len < 2 || text.len % 2 != 0 || memcmp(text.ptr, "0x", 2) != 0
        || len > e->bytes.cap - e->bytes.len
        || kedge_hex_decode(kedge_view_of(text.ptr + 2, text.len - 2), e->bytes.ptr + at, len) != KEDGE_OK) {
        return KEDGE_E_FORMAT;
    }
    e->bytes.len += len;
    *ret = kedge_view_of(e->bytes.ptr + at, len);
    return KEDGE_OK;
}

static int take_hash(const json_t *value, struct kedge_evm_evidence *e, struct kedge_hash *ret)
{
    struct kedge_view v;
    if (take_hex(value, e, &v) != KEDGE_OK || v.len != KEDGE_HASH_LEN) {
        return KEDGE_E_FORMAT;
    }
    memcpy(ret->b, v.ptr, v.len);
    return KEDGE_OK;
}

static int take_number(const json_t *value, uint64_t *ret)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        return KEDGE_E_FORMAT;
    }
    *ret = (uint64_t)json_integer_value(value);
    return KEDGE_OK;
}

static int take_nodes(const json_t *array, struct kedge_evm_evidence *e, struct kedge_evm_nodes *ret)
{
    size_t count = json_array_size(array);
    if (count == 0 || count > KEDGE_EVM_TRIE_NODES_MAX) {
        return KEDGE_E_FORMAT;
    }
    for (size_t i = 0; i < count; i++) {
        if (take_hex(json_array_get(array, i), e, &ret->node[i]) != KEDGE_OK) {
            return KEDGE_E_FORMAT;
        }
    }
    ret->count = count;
    return KEDGE_OK;
}

static int take_text(const json_t *value, char *out, size_t out_len)
{
    size_t len = json_string_length(value);
    if (!json_is_string(value) || len == 0 || len >= out_len) {
        return KEDGE_E_FORMAT;
    }
    memcpy(out, json_string_value(value), len + 1);
    return KEDGE_OK;
}

static int take_finality(const json_t *value, struct kedge_evm_evidence *e)
{
    int err = take_text(value, e->finality, sizeof e->finality);
    bool known = !err && (strcmp(e->finality, "safe") == 0 || strcmp(e->finality, "final") == 0);
    return known ? KEDGE_OK : KEDGE_E_FORMAT;
}

static int take_address(const json_t *value, struct kedge_evm_address *ret)
{
    return json_is_string(value) ? kedge_evm_address_parse(kedge_view_str(json_string_value(value)), ret)
                                 : KEDGE_E_FORMAT;
}

/* Every key of the object is one of `keys`: a misspelt piece of evidence is not passed over. */
static bool has_only(json_t *o, const char *const *keys, size_t count)
{
    const char *key;
    json_t *value;
    json_object_foreach(o, key, value)
    {
        size_t i = 0;
        while (i < count && strcmp(keys[i], key) != 0) {
            i++;
        }
        if (i == count) {
            return false;
        }
    }
    return true;
}

static int take_state(json_t *state, struct kedge_evm_evidence *e)
{
    e->has_state = take_nodes(json_object_get(state, "account"), e, &e->account) == KEDGE_OK
                   && take_nodes(json_object_get(state, "packed"), e, &e->packed) == KEDGE_OK
                   && take_nodes(json_object_get(state, "root"), e, &e->root) == KEDGE_OK
                   && has_only(state, state_keys, sizeof state_keys / sizeof state_keys[0]);
    return e->has_state ? KEDGE_OK : KEDGE_E_FORMAT;
}

/* A required field: its name when it is missing or malformed, else NULL. */
static const char *take_fields(const json_t *o, struct kedge_evm_evidence *e)
{
    const json_t *checkpoint = json_object_get(o, "checkpoint"), *header = json_object_get(o, "block_header");
    json_t *state = json_object_get(o, "state");
#define TAKE(key, call)           \
    do {                          \
        if ((call) != KEDGE_OK) { \
            return key;           \
        }                         \
    } while (0)
    TAKE("chain_id", take_number(json_object_get(o, "chain_id"), &e->chain_id));
    TAKE("contract", take_address(json_object_get(o, "contract"), &e->contract));
    TAKE("sender", take_address(json_object_get(o, "sender"), &e->sender));
    TAKE("origin", take_text(json_object_get(o, "origin"), e->origin, sizeof e->origin));
    TAKE("seq", take_number(json_object_get(o, "seq"), &e->point.seq));
    TAKE("size", take_number(json_object_get(o, "size"), &e->point.size));
    TAKE("root", take_hash(json_object_get(o, "root"), e, &e->point.root));
    TAKE("transaction_hash", take_hash(json_object_get(o, "transaction_hash"), e, &e->tx_hash));
    TAKE("transaction", take_hex(json_object_get(o, "transaction"), e, &e->raw));
    TAKE("log_index", take_number(json_object_get(o, "log_index"), &e->log_index));
    TAKE("block", take_number(json_object_get(o, "block"), &e->block));
    TAKE("block_hash", take_hash(json_object_get(o, "block_hash"), e, &e->block_hash));
    TAKE("finality", take_finality(json_object_get(o, "finality"), e));
    if (header) {
        TAKE("block_header", take_hex(header, e, &e->header));
    }
    if (state) {
        TAKE("state", take_state(state, e));
    }
#undef TAKE
    if (checkpoint) {
        size_t at = e->bytes.len;
        if (!json_is_string(checkpoint) || json_string_length(checkpoint) > e->bytes.cap - at) {
            return "checkpoint";
        }
        kedge_buf_put(&e->bytes, json_string_value(checkpoint), json_string_length(checkpoint));
        e->checkpoint = kedge_view_of(e->bytes.ptr + at, json_string_length(checkpoint));
    }
    kedge_evm_namespace(kedge_view_str(e->origin), &e->point.ns);
    return NULL;
}

/* All bytes of the evidence are decoded into one buffer, which views point into. Hex digits take twice
 * the room of what they mean, so the length of the text is enough room, and the buffer is reserved once
 * and never moves. */
int kedge_evm_evidence_read(struct kedge_view text, struct kedge_evm_evidence *ret, struct kedge_diag *reterr)
{
    json_t *o = NULL;
    memset(ret, 0, sizeof *ret);
    kedge_buf_init(&ret->bytes, KEDGE_EVM_EVIDENCE_MAX);
    KEDGE_TRY(kedgei_json_load(text, KEDGE_EVM_EVIDENCE_MAX, "anchor", &o, reterr));
    const char *kind = json_string_value(json_object_get(o, "format"));
    int err = kedge_buf_reserve(&ret->bytes, text.len); /* views into it must not move */
    if (!err && (!kind || strcmp(kind, format) != 0)) {
        err = kedge_diag_set(reterr, KEDGE_E_FORMAT, "anchor: format: expected \"%s\"", format);
    }
    if (!err && !has_only(o, known_keys, sizeof known_keys / sizeof known_keys[0])) {
        err = kedge_diag_set(reterr, KEDGE_E_FORMAT, "anchor: a key that does not belong there");
    }
    const char *bad = err ? NULL : take_fields(o, ret);
    if (bad) {
        err = kedge_diag_set(reterr, KEDGE_E_FORMAT, "anchor: %s: missing or malformed", bad);
    }
    json_decref(o);
    return err ? err : kedge_evm_evidence_check(ret, reterr);
}

void kedge_evm_evidence_deinit(struct kedge_evm_evidence *e)
{
    kedge_buf_deinit(&e->bytes);
}
