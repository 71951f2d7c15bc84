/* Calls, the event, storage slots and tries: against a block with three anchors that a real node made. */
#include <check.h>
#include <jansson.h>
#include <string.h>

#include "chain/anchor/evm_abi.h"
#include "chain/anchor/evm_contract.h"
#include "chain/anchor/evm_trie.h"
#include "chain/anchor/keccak256.h"
#include "chain/anchor/rlp.h"
#include "common/base/text.h"
#include "tests/unit/chain/vectors.h"

enum { NODES = 8, NODE_MAX = 1024 };

struct proof {
    uint8_t bytes[NODES][NODE_MAX];
    struct kedge_view nodes[NODES];
    size_t count;
};

static json_t *block(void)
{
    struct kedge_buf text = vector_file("evm/anchor_block.json");
    json_t *o = json_loadb((const char *)text.ptr, text.len, 0, NULL);
    kedge_buf_deinit(&text);
    ck_assert_ptr_nonnull(o);
    return o;
}

static struct kedge_view hex_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    ck_assert_msg(s != NULL, "%s", key);
    return kedge_view_str(s);
}

static void proof_of(const json_t *array, struct proof *ret)
{
    ret->count = json_array_size(array);
    ck_assert(ret->count > 0 && ret->count <= NODES);
    for (size_t i = 0; i < ret->count; i++) {
        struct kedge_view hex = kedge_view_str(json_string_value(json_array_get(array, i)));
        ck_assert(hex.len / 2 <= NODE_MAX);
        ck_assert_int_eq(kedge_hex_decode(hex, ret->bytes[i], hex.len / 2), KEDGE_OK);
        ret->nodes[i] = kedge_view_of(ret->bytes[i], hex.len / 2);
    }
}

static int verify(const struct kedge_hash *root, struct kedge_view key, const struct proof *p,
                  struct kedge_view *ret)
{
    return kedge_evm_trie_verify(root, key, p->nodes, p->count, ret);
}

/* Every bit of every node matters, and so does every node. */
static void refuse_damage(const struct kedge_hash *root, struct kedge_view key, struct proof *p)
{
    struct kedge_view v;
    for (size_t i = 0; i < p->count; i++) {
        for (size_t bit = 0; bit < 8 * p->nodes[i].len; bit++) {
            p->bytes[i][bit / 8] ^= (uint8_t)(1U << (bit % 8));
            ck_assert_int_eq(verify(root, key, p, &v), KEDGE_E_VERIFY);
            p->bytes[i][bit / 8] ^= (uint8_t)(1U << (bit % 8));
        }
    }
    p->count--;
    ck_assert_int_eq(verify(root, key, p, &v), KEDGE_E_VERIFY);
    p->count++;
    p->nodes[p->count] = p->nodes[0]; /* one that nobody needs */
    p->count++;
    ck_assert_int_eq(verify(root, key, p, &v), KEDGE_E_VERIFY);
    p->count--;
    struct kedge_hash other = *root;
    other.b[0] ^= 1;
    ck_assert_int_eq(verify(&other, key, p, &v), KEDGE_E_VERIFY);
}

START_TEST(transactions_and_receipts_are_in_their_tries)
{
    static const struct {
        const char *root, *proof, *values;
    } rows[] = {{"transactions_root", "transaction_proof", "raw_transactions"},
                {"receipts_root", "receipt_proof", "receipts_rlp"}};
    static const uint8_t index_two[] = {2}, index_one[] = {1};
    if (!vectors_present()) {
        return;
    }
    json_t *o = block(), *last = json_object_get(o, "last_anchor");
    for (size_t i = 0; i < 2; i++) {
        struct proof p;
        struct kedge_view value;
        char hex[2 * NODE_MAX + 1];
        struct kedge_hash root = vector_hash(hex_of(o, rows[i].root));
        proof_of(json_object_get(last, rows[i].proof), &p);
        ck_assert_int_eq(verify(&root, kedge_view_of(index_two, 1), &p, &value), KEDGE_OK);
        kedge_hex_encode(value.ptr, value.len, hex);
        ck_assert_str_eq(hex, json_string_value(json_array_get(json_object_get(o, rows[i].values), 2)));
        ck_assert_int_eq(verify(&root, kedge_view_of(index_one, 1), &p, &value), KEDGE_E_VERIFY);
        refuse_damage(&root, kedge_view_of(index_two, 1), &p);
    }
    json_decref(o);
}
END_TEST

/* Value of a storage slot under the account's storage root, as 32 bytes. */
static struct kedge_hash slot_value(const struct kedge_hash *storage_root, const struct kedge_hash *slot,
                                    struct proof *p)
{
    struct kedge_hash key, value;
    struct kedge_view rlp;
    kedge_keccak256(kedge_view_of(slot->b, sizeof slot->b), &key);
    ck_assert_int_eq(verify(storage_root, kedge_view_of(key.b, sizeof key.b), p, &rlp), KEDGE_OK);
    ck_assert_int_eq(kedge_rlp_take_integer(&rlp, value.b, sizeof value.b), KEDGE_OK);
    refuse_damage(storage_root, kedge_view_of(key.b, sizeof key.b), p);
    return value;
}

START_TEST(the_head_is_in_the_contracts_storage)
{
    if (!vectors_present()) {
        return;
    }
    json_t *o = block(), *storage = json_object_get(o, "storage"), *last = json_object_get(o, "last_anchor");
    struct kedge_hash state = vector_hash(hex_of(o, "state_root")), ns = vector_hash(hex_of(o, "namespace"));
    struct kedge_hash packed, root, key, storage_root;
    struct kedge_evm_address sender, contract;
    struct kedge_evm_head head;
    struct kedge_view account, fields, skip;
    struct proof p;
    ck_assert_int_eq(kedge_hex_decode(hex_of(o, "sender"), sender.b, sizeof sender.b), KEDGE_OK);
    ck_assert_int_eq(kedge_hex_decode(hex_of(o, "contract"), contract.b, sizeof contract.b), KEDGE_OK);
    kedge_evm_head_slots(&sender, &ns, &packed, &root);
    struct kedge_hash want_packed = vector_hash(hex_of(storage, "slot_packed"));
    struct kedge_hash want_root = vector_hash(hex_of(storage, "slot_root"));
    ck_assert(kedge_hash_eq(&packed, &want_packed) && kedge_hash_eq(&root, &want_root));
    proof_of(json_object_get(storage, "account_proof"), &p);
    kedge_keccak256(kedge_view_of(contract.b, sizeof contract.b), &key);
    ck_assert_int_eq(verify(&state, kedge_view_of(key.b, sizeof key.b), &p, &account), KEDGE_OK);
    ck_assert_int_eq(kedge_rlp_take_list(&account, &fields), KEDGE_OK);
    ck_assert_int_eq(kedge_rlp_take_string(&fields, &skip), KEDGE_OK);
    ck_assert_int_eq(kedge_rlp_take_string(&fields, &skip), KEDGE_OK);
    ck_assert_int_eq(kedge_rlp_take_fixed(&fields, storage_root.b, sizeof storage_root.b), KEDGE_OK);
    proof_of(json_object_get(storage, "proof_packed"), &p);
    struct kedge_hash packed_value = slot_value(&storage_root, &packed, &p);
    proof_of(json_object_get(storage, "proof_root"), &p);
    struct kedge_hash root_value = slot_value(&storage_root, &root, &p);
    ck_assert_int_eq(kedge_evm_head_from_words(&packed_value, &root_value, &head), KEDGE_OK);
    ck_assert_int_eq((int)head.seq, json_integer_value(json_object_get(last, "seq")));
    ck_assert_int_eq((int)head.size, json_integer_value(json_object_get(last, "size")));
    ck_assert_int_eq((int)head.block, json_integer_value(json_object_get(o, "block_number")));
    struct kedge_hash wanted = vector_hash(hex_of(last, "root"));
    ck_assert(kedge_hash_eq(&head.root, &wanted));
    packed_value.b[7] = 1;
    ck_assert_int_eq(kedge_evm_head_from_words(&packed_value, &root_value, &head), KEDGE_E_FORMAT);
    json_decref(o);
}
END_TEST

START_TEST(the_event_says_what_was_called)
{
    if (!vectors_present()) {
        return;
    }
    json_t *o = block(), *last = json_object_get(o, "last_anchor"), *log = json_object_get(last, "log");
    struct kedge_evm_log l = {.topic_count = 4};
    struct kedge_evm_anchored a;
    struct kedge_evm_point called;
    struct kedge_evm_tx tx;
    struct kedge_evm_address sender;
    uint8_t data[96], raw[512];
    for (size_t i = 0; i < 4; i++) {
        l.topics[i] =
            vector_hash(kedge_view_str(json_string_value(json_array_get(json_object_get(log, "topics"), i))));
    }
    ck_assert_int_eq(kedge_hex_decode(hex_of(log, "data"), data, sizeof data), KEDGE_OK);
    l.data = kedge_view_of(data, sizeof data);
    ck_assert_int_eq(kedge_evm_anchored_decode(&l, &a), KEDGE_OK);
    struct kedge_view hex =
        kedge_view_str(json_string_value(json_array_get(json_object_get(o, "raw_transactions"), 2)));
    ck_assert_int_eq(kedge_hex_decode(hex, raw, hex.len / 2), KEDGE_OK);
    ck_assert_int_eq(kedge_evm_tx_decode(kedge_view_of(raw, hex.len / 2), &tx, &sender, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_evm_anchor_call_decode(tx.data, &called), KEDGE_OK);
    ck_assert(kedge_evm_point_eq(&called, &a.point) && kedge_evm_address_eq(&sender, &a.who));
    struct kedge_hash previous = vector_hash(hex_of(last, "previous_root"));
    ck_assert(kedge_hash_eq(&a.previous, &previous));
    uint8_t call[KEDGE_EVM_ANCHOR_CALL_LEN];
    kedge_evm_anchor_call(&called, call);
    ck_assert(kedge_view_eq(tx.data, kedge_view_of(call, sizeof call)));
    l.topics[0].b[31] ^= 1; /* another event */
    ck_assert_int_eq(kedge_evm_anchored_decode(&l, &a), KEDGE_E_FORMAT);
    l.topics[0].b[31] ^= 1;
    l.topics[1].b[0] = 1; /* no address */
    ck_assert_int_eq(kedge_evm_anchored_decode(&l, &a), KEDGE_E_FORMAT);
    l.topics[1].b[0] = 0;
    l.topic_count = 3;
    ck_assert_int_eq(kedge_evm_anchored_decode(&l, &a), KEDGE_E_FORMAT);
    json_decref(o);
}
END_TEST

START_TEST(numbers_beyond_64_bits_are_refused)
{
    struct kedge_evm_point p = {.seq = UINT64_MAX, .size = 7}, out;
    struct kedge_evm_head head;
    uint8_t call[KEDGE_EVM_ANCHOR_CALL_LEN + 1] = {0}, answer[4 * KEDGE_EVM_WORD] = {0};
    kedge_evm_anchor_call(&p, call);
    struct kedge_view v = kedge_view_of(call, KEDGE_EVM_ANCHOR_CALL_LEN);
    ck_assert_int_eq(kedge_evm_anchor_call_decode(v, &out), KEDGE_OK);
    ck_assert(kedge_evm_point_eq(&p, &out));
    call[4 + KEDGE_EVM_WORD + 23] = 1;
    ck_assert_int_eq(kedge_evm_anchor_call_decode(v, &out), KEDGE_E_FORMAT);
    v.len++;
    ck_assert_int_eq(kedge_evm_anchor_call_decode(v, &out), KEDGE_E_FORMAT);
    v = kedge_view_of(answer, sizeof answer);
    ck_assert_int_eq(kedge_evm_heads_decode(v, &head), KEDGE_OK);
    ck_assert_uint_eq(head.seq, 0);
    answer[0] = 1;
    ck_assert_int_eq(kedge_evm_heads_decode(v, &head), KEDGE_E_FORMAT);
}
END_TEST

/* PUSH2 of the length of what is kept is in the first bytes; the rest begins as every Solidity contract. */
START_TEST(the_contract_is_whole)
{
    uint8_t code[KEDGE_EVM_CONTRACT_LEN];
    static const uint8_t start[] = {0x60, 0x80, 0x60, 0x40, 0x52};
    kedge_evm_contract_code(code);
    ck_assert_mem_eq(code, start, sizeof start);
    ck_assert_mem_eq(code + KEDGE_EVM_CONTRACT_HEAD, start, sizeof start);
    ck_assert_int_eq(code[18] << 8 | code[19], KEDGE_EVM_CONTRACT_LEN - KEDGE_EVM_CONTRACT_HEAD);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("abi");
    TCase *tc = tcase_create("abi");
    tcase_add_test(tc, transactions_and_receipts_are_in_their_tries);
    tcase_add_test(tc, the_head_is_in_the_contracts_storage);
    tcase_add_test(tc, the_event_says_what_was_called);
    tcase_add_test(tc, numbers_beyond_64_bits_are_refused);
    tcase_add_test(tc, the_contract_is_whole);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
