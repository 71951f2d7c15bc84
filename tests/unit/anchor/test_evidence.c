/* Evidence files: a whole one made by hand (transaction, header, state proof), what is written is read, and
 * every change of it is noticed. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "chain/anchor/evm_contract.h"
#include "chain/anchor/evm_evidence.h"
#include "chain/anchor/keccak256.h"
#include "chain/anchor/rlp.h"
#include "common/base/mem.h"
#include "common/base/text.h"

enum { TEXT_MAX = 65536, SLOTS = 2 };

struct made {
    struct kedge_evm_evidence e;
    struct kedge_buf raw, header, nodes[1 + SLOTS + 1]; /* account leaf, two storage leaves, their branch */
    struct kedge_buf text;
};

static void put_bytes(struct kedge_buf *out, const void *bytes, size_t len)
{
    kedge_rlp_put_string(out, kedge_view_of(bytes, len));
}

/* Leaf of a key from nibble `from` (0 or 1) on. */
static void make_leaf(const struct kedge_hash *key, unsigned from, struct kedge_view value,
                      struct kedge_buf *out)
{
    struct kedge_buf items KEDGE_CLEANUP(kedge_buf_deinit);
    uint8_t path[KEDGE_HASH_LEN + 1];
    kedge_buf_init(&items, TEXT_MAX);
    memcpy(path + 1 - from, key->b, KEDGE_HASH_LEN);
    path[0] = from ? (uint8_t)(0x30 | (key->b[0] & 15)) : 0x20;
    put_bytes(&items, path, KEDGE_HASH_LEN + 1 - from);
    kedge_rlp_put_string(&items, value);
    kedge_rlp_put_list(out, kedge_buf_view(&items));
}

static void hash_slot(const struct kedge_hash *slot, struct kedge_hash *ret)
{
    kedge_keccak256(kedge_view_of(slot->b, sizeof slot->b), ret);
}

/* Storage with the two words of the head; returns its root. */
static struct kedge_hash make_storage(struct made *m)
{
    struct kedge_hash slot[SLOTS], key[SLOTS], hash[SLOTS], root;
    uint8_t packed[KEDGE_EVM_WORD] = {0};
    struct kedge_buf value KEDGE_CLEANUP(kedge_buf_deinit), items KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&value, 64);
    kedge_buf_init(&items, TEXT_MAX);
    kedge_store_be64(packed + 8, m->e.block);
    kedge_store_be64(packed + 16, m->e.point.size);
    kedge_store_be64(packed + 24, m->e.point.seq);
    kedge_evm_head_slots(&m->e.sender, &m->e.point.ns, &slot[0], &slot[1]);
    for (size_t i = 0; i < SLOTS; i++) {
        hash_slot(&slot[i], &key[i]);
        kedge_buf_clear(&value);
        kedge_rlp_put_integer(&value, kedge_view_of(i ? m->e.point.root.b : packed, KEDGE_EVM_WORD));
        make_leaf(&key[i], 1, kedge_buf_view(&value), &m->nodes[1 + i]);
        kedge_keccak256(kedge_buf_view(&m->nodes[1 + i]), &hash[i]);
    }
    ck_assert_uint_ne(key[0].b[0] >> 4, key[1].b[0] >> 4); /* else the branch would be deeper */
    for (unsigned n = 0; n < 16; n++) {
        size_t which = n == key[0].b[0] >> 4 ? 0 : n == key[1].b[0] >> 4 ? 1 : SLOTS;
        put_bytes(&items, which < SLOTS ? hash[which].b : NULL, which < SLOTS ? KEDGE_HASH_LEN : 0);
    }
    put_bytes(&items, NULL, 0);
    kedge_rlp_put_list(&m->nodes[3], kedge_buf_view(&items));
    kedge_keccak256(kedge_buf_view(&m->nodes[3]), &root);
    return root;
}

static bool with_our_code;

static struct kedge_hash make_account(struct made *m, const struct kedge_hash *storage)
{
    struct kedge_buf items KEDGE_CLEANUP(kedge_buf_deinit), account KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_hash key, root, code = {{9}};
    uint8_t ours[KEDGE_EVM_CONTRACT_LEN];
    kedge_evm_contract_code(ours);
    if (with_our_code) {
        kedge_keccak256(kedge_view_of(ours + KEDGE_EVM_CONTRACT_HEAD, sizeof ours - KEDGE_EVM_CONTRACT_HEAD),
                        &code);
    }
    kedge_buf_init(&items, TEXT_MAX);
    kedge_buf_init(&account, TEXT_MAX);
    kedge_rlp_put_u64(&items, 1);
    kedge_rlp_put_u64(&items, 0);
    put_bytes(&items, storage->b, sizeof storage->b);
    put_bytes(&items, code.b, sizeof code.b);
    kedge_rlp_put_list(&account, kedge_buf_view(&items));
    kedge_keccak256(kedge_view_of(m->e.contract.b, sizeof m->e.contract.b), &key);
    make_leaf(&key, 0, kedge_buf_view(&account), &m->nodes[0]);
    kedge_keccak256(kedge_buf_view(&m->nodes[0]), &root);
    return root;
}

static void make_header(struct made *m, const struct kedge_hash *state)
{
    struct kedge_buf items KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&items, TEXT_MAX);
    for (unsigned i = 0; i < 15; i++) {
        if (i == 3) {
            put_bytes(&items, state->b, sizeof state->b);
        } else if (i == 8) {
            kedge_rlp_put_u64(&items, m->e.block);
        } else {
            kedge_rlp_put_u64(&items, i * 1000);
        }
    }
    kedge_rlp_put_list(&m->header, kedge_buf_view(&items));
    kedge_keccak256(kedge_buf_view(&m->header), &m->e.block_hash);
    m->e.header = kedge_buf_view(&m->header);
}

static struct made *make(void)
{
    struct made *m = kedge_mem_new(1, sizeof *m);
    struct kedge_secp_secret key;
    struct kedge_secp_public public;
    uint8_t call[KEDGE_EVM_ANCHOR_CALL_LEN];
    ck_assert_ptr_nonnull(m);
    memset(key.b, 0x46, sizeof key.b);
    kedge_buf_init(&m->raw, KEDGE_EVM_RAW_MAX);
    kedge_buf_init(&m->header, KEDGE_EVM_HEADER_MAX);
    kedge_buf_init(&m->text, TEXT_MAX);
    for (size_t i = 0; i < sizeof m->nodes / sizeof m->nodes[0]; i++) {
        kedge_buf_init(&m->nodes[i], TEXT_MAX);
    }
    m->e = (struct kedge_evm_evidence){.chain_id = 5,
                                       .block = 77,
                                       .log_index = 3,
                                       .contract = {{8, 9}},
                                       .origin = "example.org/main",
                                       .finality = "final",
                                       .point = {.seq = 7, .size = 9, .root = {{0xaa, 0xbb}}},
                                       .checkpoint = kedge_view_str("example.org/main\n9\nqrs=\n\n— x y\n")};
    kedge_evm_namespace(kedge_view_str(m->e.origin), &m->e.point.ns);
    ck_assert_int_eq(kedge_secp_public_of(&key, &public), KEDGE_OK);
    kedge_evm_address_of_key(&public, &m->e.sender);
    kedge_evm_anchor_call(&m->e.point, call);
    struct kedge_evm_tx tx = {.kind = KEDGE_EVM_EIP1559,
                              .chain_id = 5,
                              .nonce = 2,
                              .gas = 120000,
                              .max_fee = 9,
                              .to = m->e.contract,
                              .data = kedge_view_of(call, sizeof call)};
    ck_assert_int_eq(kedge_evm_tx_sign(&tx, &key, &m->raw, &m->e.tx_hash), KEDGE_OK);
    m->e.raw = kedge_buf_view(&m->raw);
    struct kedge_hash storage = make_storage(m), state = make_account(m, &storage);
    make_header(m, &state);
    m->e.account = (struct kedge_evm_nodes){.count = 1, .node = {kedge_buf_view(&m->nodes[0])}};
    m->e.packed = (struct kedge_evm_nodes){
        .count = 2, .node = {kedge_buf_view(&m->nodes[3]), kedge_buf_view(&m->nodes[1])}};
    m->e.root = (struct kedge_evm_nodes){
        .count = 2, .node = {kedge_buf_view(&m->nodes[3]), kedge_buf_view(&m->nodes[2])}};
    m->e.has_state = true;
    return m;
}

static void unmake(struct made *m)
{
    kedge_buf_deinit(&m->raw);
    kedge_buf_deinit(&m->header);
    kedge_buf_deinit(&m->text);
    for (size_t i = 0; i < sizeof m->nodes / sizeof m->nodes[0]; i++) {
        kedge_buf_deinit(&m->nodes[i]);
    }
    kedge_mem_free(m);
}

static int read_text(struct kedge_view text, struct kedge_diag *d)
{
    struct kedge_evm_evidence *e = kedge_mem_new(1, sizeof *e);
    ck_assert_ptr_nonnull(e);
    int err = kedge_evm_evidence_read(text, e, d);
    kedge_evm_evidence_deinit(e);
    kedge_mem_free(e);
    return err;
}

START_TEST(what_is_written_is_read)
{
    struct made *m = make();
    struct kedge_evm_evidence *e = kedge_mem_new(1, sizeof *e);
    struct kedge_diag d = {.text = ""};
    struct kedge_buf again KEDGE_CLEANUP(kedge_buf_deinit);
    ck_assert_ptr_nonnull(e);
    kedge_buf_init(&again, TEXT_MAX);
    ck_assert_int_eq(kedge_evm_evidence_write(&m->e, &m->text), KEDGE_OK);
    int err = kedge_evm_evidence_read(kedge_buf_view(&m->text), e, &d);
    ck_assert_msg(err == KEDGE_OK, "%s", d.text);
    ck_assert(e->has_state && kedge_evm_point_eq(&e->point, &m->e.point));
    ck_assert_int_eq(kedge_evm_evidence_write(e, &again), KEDGE_OK);
    ck_assert(kedge_view_eq(kedge_buf_view(&again), kedge_buf_view(&m->text)));
    kedge_evm_evidence_deinit(e);
    kedge_mem_free(e);
    unmake(m);
}
END_TEST

/* Fields that nothing else confirms: where the log stood, the carried note. */
static bool is_free(const char *line)
{
    static const char *const keys[] = {"  \"log_index\"", "  \"checkpoint\""};
    for (size_t i = 0; i < 2; i++) {
        if (strncmp(line, keys[i], strlen(keys[i])) == 0) {
            return true;
        }
    }
    return false;
}

START_TEST(every_changed_character_is_noticed)
{
    struct made *m = make();
    struct kedge_diag d;
    size_t changed = 0, line = 0;
    ck_assert_int_eq(kedge_evm_evidence_write(&m->e, &m->text), KEDGE_OK);
    for (size_t i = 0; i < m->text.len; i++) {
        char *text = (char *)m->text.ptr;
        line = i > 0 && text[i - 1] == '\n' ? i : line;
        bool digit = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f');
        if (!digit || is_free(text + line)) {
            continue;
        }
        char old = text[i];
        text[i] = old == '9' ? '8' : old == 'f' ? 'e' : (char)(old + 1);
        ck_assert_msg(read_text(kedge_buf_view(&m->text), &d) != KEDGE_OK, "character %zu: %.40s", i,
                      text + line);
        text[i] = old;
        changed++;
    }
    ck_assert_uint_gt(changed, 1500);
    ck_assert_int_eq(read_text(kedge_buf_view(&m->text), &d), KEDGE_OK);
    for (size_t cut = 0; cut + 1 < m->text.len; cut += 7) {
        ck_assert_int_ne(read_text(kedge_view_of(m->text.ptr, cut), &d), KEDGE_OK);
    }
    unmake(m);
}
END_TEST

START_TEST(finality_is_safe_or_final)
{
    static const char *const rows[] = {"safe", "final", "mined", "sent", "f", "finalized", "s\x1b[2J"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct made *m = make();
        struct kedge_diag d = {.text = ""};
        snprintf(m->e.finality, sizeof m->e.finality, "%s", rows[i]);
        ck_assert_int_eq(kedge_evm_evidence_write(&m->e, &m->text), KEDGE_OK);
        ck_assert_msg((read_text(kedge_buf_view(&m->text), &d) == KEDGE_OK) == (i < 2), "%s", rows[i]);
        unmake(m);
    }
}
END_TEST

START_TEST(the_contracts_code_is_looked_at)
{
    for (int ours = 0; ours < 2; ours++) {
        with_our_code = ours != 0;
        struct made *m = make();
        ck_assert_int_eq(kedge_evm_evidence_check(&m->e, NULL), KEDGE_OK);
        ck_assert_int_eq(kedge_evm_evidence_code_is_ours(&m->e), ours != 0);
        m->e.has_state = false; /* nothing is proven of any code */
        ck_assert(!kedge_evm_evidence_code_is_ours(&m->e));
        unmake(m);
    }
    with_our_code = false;
}
END_TEST

START_TEST(pieces_may_be_missing_but_not_contradict)
{
    struct made *m = make();
    struct kedge_diag d = {.text = ""};
    m->e.header.len = 0;
    ck_assert_int_eq(kedge_evm_evidence_check(&m->e, &d), KEDGE_E_VERIFY);
    ck_assert_ptr_nonnull(strstr(d.text, "without the block's header"));
    m->e.has_state = false;
    ck_assert_int_eq(kedge_evm_evidence_check(&m->e, &d), KEDGE_OK);
    m->e.checkpoint.len = 0;
    ck_assert_int_eq(kedge_evm_evidence_write(&m->e, &m->text), KEDGE_OK);
    ck_assert_int_eq(read_text(kedge_buf_view(&m->text), &d), KEDGE_OK);
    m->e.chain_id = 6;
    ck_assert_int_eq(kedge_evm_evidence_check(&m->e, &d), KEDGE_E_VERIFY);
    ck_assert_ptr_nonnull(strstr(d.text, "another chain"));
    unmake(m);
}
END_TEST

START_TEST(it_is_about_one_checkpoint)
{
    struct made *m = make();
    struct kedge_diag d = {.text = ""};
    struct kedge_view origin = kedge_view_str("example.org/main");
    struct kedge_hash other = {{1}};
    ck_assert_int_eq(kedge_evm_evidence_is_about(&m->e, origin, 9, &m->e.point.root, &d), KEDGE_OK);
    ck_assert_int_eq(kedge_evm_evidence_is_about(&m->e, origin, 8, &m->e.point.root, &d), KEDGE_E_VERIFY);
    ck_assert_ptr_nonnull(strstr(d.text, "consistency proof"));
    ck_assert_int_eq(kedge_evm_evidence_is_about(&m->e, origin, 9, &other, &d), KEDGE_E_VERIFY);
    ck_assert_ptr_nonnull(strstr(d.text, "two histories"));
    origin.len--;
    ck_assert_int_eq(kedge_evm_evidence_is_about(&m->e, origin, 9, &m->e.point.root, &d), KEDGE_E_VERIFY);
    unmake(m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("evidence");
    TCase *tc = tcase_create("evidence");
    tcase_set_timeout(tc, 0);
    tcase_add_test(tc, what_is_written_is_read);
    tcase_add_test(tc, every_changed_character_is_noticed);
    tcase_add_test(tc, finality_is_safe_or_final);
    tcase_add_test(tc, the_contracts_code_is_looked_at);
    tcase_add_test(tc, pieces_may_be_missing_but_not_contradict);
    tcase_add_test(tc, it_is_about_one_checkpoint);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
