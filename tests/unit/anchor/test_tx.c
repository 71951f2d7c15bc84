/* Transactions bit by bit, addresses, and keys: against published vectors and against damage. */
#include <check.h>
#include <string.h>

#include "chain/anchor/evm_abi.h"
#include "chain/anchor/keccak256.h"
#include "chain/log/lines.h"
#include "common/base/text.h"
#include "tests/unit/chain/vectors.h"

/* Columns of evm/transactions.tsv. */
enum { KIND, CHAIN, NONCE, PRICE, GAS, TO, VALUE, DATA, SECRET, PREIMAGE, HASH, RAW, NAME };

static void read_row(const struct vector_table *t, struct kedge_buf *data, struct kedge_evm_tx *tx,
                     struct kedge_secp_secret *secret)
{
    struct kedge_view price = t->columns[PRICE], priority;
    memset(tx, 0, sizeof *tx);
    tx->kind = vector_is(t->columns[KIND], "eip155") ? KEDGE_EVM_EIP155 : KEDGE_EVM_EIP1559;
    tx->chain_id = vector_u64(t->columns[CHAIN]);
    tx->nonce = vector_u64(t->columns[NONCE]);
    if (kedgei_cut(&price, '/', &priority)) {
        tx->priority_fee = vector_u64(priority);
    }
    tx->max_fee = vector_u64(price);
    tx->gas = vector_u64(t->columns[GAS]);
    tx->value = vector_u64(t->columns[VALUE]);
    ck_assert_int_eq(kedge_hex_decode(t->columns[TO], tx->to.b, sizeof tx->to.b), KEDGE_OK);
    ck_assert_int_eq(kedge_hex_decode(t->columns[SECRET], secret->b, sizeof secret->b), KEDGE_OK);
    kedge_buf_clear(data);
    vector_hex(t->columns[DATA], data);
    tx->data = kedge_buf_view(data);
}

static void check_row(const struct kedge_evm_tx *tx, const struct kedge_secp_secret *secret,
                      const struct vector_table *t)
{
    struct kedge_buf made KEDGE_CLEANUP(kedge_buf_deinit), wanted KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_hash hash, name = vector_hash(t->columns[NAME]), signing = vector_hash(t->columns[HASH]);
    struct kedge_evm_tx again;
    struct kedge_evm_address sender, own;
    struct kedge_secp_public key;
    kedge_buf_init(&made, KEDGE_EVM_RAW_MAX);
    kedge_buf_init(&wanted, KEDGE_EVM_RAW_MAX);
    vector_hex(t->columns[PREIMAGE], &wanted);
    ck_assert_int_eq(kedge_evm_tx_preimage(tx, &made), KEDGE_OK);
    ck_assert(kedge_view_eq(kedge_buf_view(&made), kedge_buf_view(&wanted)));
    kedge_keccak256(kedge_buf_view(&made), &hash);
    ck_assert(kedge_hash_eq(&hash, &signing));
    kedge_buf_clear(&made);
    kedge_buf_clear(&wanted);
    vector_hex(t->columns[RAW], &wanted);
    ck_assert_int_eq(kedge_evm_tx_sign(tx, secret, &made, &hash), KEDGE_OK);
    ck_assert(kedge_view_eq(kedge_buf_view(&made), kedge_buf_view(&wanted)));
    ck_assert(kedge_hash_eq(&hash, &name));
    ck_assert_int_eq(kedge_evm_tx_decode(kedge_buf_view(&wanted), &again, &sender, &hash), KEDGE_OK);
    ck_assert(kedge_hash_eq(&hash, &name));
    ck_assert(again.kind == tx->kind && again.chain_id == tx->chain_id && again.nonce == tx->nonce);
    ck_assert(again.gas == tx->gas && again.max_fee == tx->max_fee && again.value == tx->value);
    ck_assert(again.priority_fee == tx->priority_fee && !again.creates);
    ck_assert(kedge_evm_address_eq(&again.to, &tx->to) && kedge_view_eq(again.data, tx->data));
    ck_assert_int_eq(kedge_secp_public_of(secret, &key), KEDGE_OK);
    kedge_evm_address_of_key(&key, &own);
    ck_assert(kedge_evm_address_eq(&own, &sender));
}

START_TEST(transactions_are_the_published_ones_bit_by_bit)
{
    struct kedge_buf data KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_evm_tx tx;
    struct kedge_secp_secret secret;
    size_t rows = 0;
    kedge_buf_init(&data, KEDGE_EVM_RAW_MAX);
    if (!vectors_present()) {
        return;
    }
    struct vector_table t = vector_table_open("evm/transactions.tsv");
    for (; vector_table_next(&t); rows++) {
        ck_assert_uint_eq(t.column_count, NAME + 1);
        read_row(&t, &data, &tx, &secret);
        check_row(&tx, &secret, &t);
    }
    ck_assert_uint_eq(rows, 5);
    vector_table_close(&t);
}
END_TEST

/* EIP-155's own example needs no file. */
static const char example[] =
    "f86c098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a76400008025a028ef61340bd939"
    "bc2195fe537567866003e1a15d3c71ff63e1590620aa636276a067cbe9d8997f761aecb703304b3800ccf555c9f3dc64214b297f"
    "b1966a3b6d83";

static size_t example_bytes(uint8_t out[sizeof example / 2])
{
    ck_assert_int_eq(kedge_hex_decode(kedge_view_str(example), out, sizeof example / 2), KEDGE_OK);
    return sizeof example / 2;
}

START_TEST(a_changed_transaction_is_of_someone_else_or_of_nobody)
{
    uint8_t bytes[sizeof example / 2];
    struct kedge_evm_tx tx;
    struct kedge_evm_address sender, other;
    size_t len = example_bytes(bytes), decoded = 0;
    ck_assert_int_eq(kedge_evm_tx_decode(kedge_view_of(bytes, len), &tx, &sender, NULL), KEDGE_OK);
    ck_assert_uint_eq(tx.chain_id, 1);
    ck_assert_uint_eq(tx.value, 1000000000000000000U);
    for (size_t bit = 0; bit < 8 * len; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1U << (bit % 8));
        if (kedge_evm_tx_decode(kedge_view_of(bytes, len), &tx, &other, NULL) == KEDGE_OK) {
            decoded++;
            ck_assert_msg(!kedge_evm_address_eq(&other, &sender), "bit %zu", bit);
        }
        bytes[bit / 8] ^= (uint8_t)(1U << (bit % 8));
    }
    ck_assert_uint_gt(decoded, 0);
    for (size_t cut = 0; cut < len; cut++) {
        ck_assert_int_ne(kedge_evm_tx_decode(kedge_view_of(bytes, cut), &tx, &other, NULL), KEDGE_OK);
    }
}
END_TEST

/* Order of the group: s' = n − s signs the same for libraries without EIP-2's rule. */
START_TEST(the_other_s_is_refused)
{
    static const uint8_t order[32] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                      0xff, 0xff, 0xff, 0xff, 0xfe, 0xba, 0xae, 0xdc, 0xe6, 0xaf, 0x48,
                                      0xa0, 0x3b, 0xbf, 0xd2, 0x5e, 0x8c, 0xd0, 0x36, 0x41, 0x41};
    struct kedge_secp_secret secret = {{1}};
    struct kedge_secp_signature s;
    struct kedge_secp_public key, own;
    struct kedge_hash hash = {{5}};
    ck_assert_int_eq(kedge_secp_sign(&hash, &secret, &s), KEDGE_OK);
    ck_assert_int_eq(kedge_secp_recover(&hash, &s, &key), KEDGE_OK);
    ck_assert_int_eq(kedge_secp_public_of(&secret, &own), KEDGE_OK);
    ck_assert_mem_eq(key.b, own.b, sizeof own.b);
    int borrow = 0;
    for (size_t i = 32; i > 0; i--) {
        int d = order[i - 1] - s.s[i - 1] - borrow;
        borrow = d < 0;
        s.s[i - 1] = (uint8_t)(d + (borrow ? 256 : 0));
    }
    s.parity ^= 1;
    ck_assert_int_eq(kedge_secp_recover(&hash, &s, &key), KEDGE_E_VERIFY);
    struct kedge_secp_secret zero = {{0}}, high;
    memcpy(high.b, order, sizeof order);
    ck_assert_int_eq(kedge_secp_public_of(&zero, &key), KEDGE_E_KEY);
    ck_assert_int_eq(kedge_secp_sign(&hash, &high, &s), KEDGE_E_KEY);
}
END_TEST

/* EIP-55's examples. */
static const char *const checksummed[] = {
    "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
    "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB", "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb"};

START_TEST(addresses_have_a_checksum)
{
    struct kedge_evm_address a;
    char text[KEDGE_EVM_ADDRESS_TEXT];
    for (size_t i = 0; i < sizeof checksummed / sizeof checksummed[0]; i++) {
        ck_assert_int_eq(kedge_evm_address_parse(kedge_view_str(checksummed[i]), &a), KEDGE_OK);
        kedge_evm_address_text(&a, text);
        ck_assert_str_eq(text, checksummed[i]);
        size_t at = strcspn(text + 2, "abcdefABCDEF") + 2;
        text[at] = (char)(text[at] ^ 0x20); /* the other case */
        ck_assert_int_eq(kedge_evm_address_parse(kedge_view_str(text), &a), KEDGE_E_FORMAT);
    }
    ck_assert_int_eq(
        kedge_evm_address_parse(kedge_view_str("0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed"), &a), KEDGE_OK);
    ck_assert_int_eq(
        kedge_evm_address_parse(kedge_view_str("0x5AAEB6053F3E94C9B9A09F33669435E7EF1BEAED"), &a), KEDGE_OK);
    static const char *const bad[] = {"", "0x", "5aaeb6053f3e94c9b9a09f33669435e7ef1beaed",
                                      "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beae",
                                      "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaeg"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_int_eq(kedge_evm_address_parse(kedge_view_str(bad[i]), &a), KEDGE_E_FORMAT);
    }
}
END_TEST

START_TEST(contracts_have_the_address_of_sender_and_nonce)
{
    static const struct {
        const char *sender;
        uint64_t nonce;
        const char *contract;
    } rows[] = {
        {"0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266", 0, "0x5FbDB2315678afecb367f032d93F642f64180aa3"},
        {"0x6ac7ea33f8831ea9dcc53393aaa88b25a785dbf0", 0, "0xcd234A471b72ba2F1Ccf0A70FCABA648a5eeCD8d"},
        {"0x6ac7ea33f8831ea9dcc53393aaa88b25a785dbf0", 1, "0x343c43A37D37dfF08AE8C4A11544c718AbB4fCF8"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct kedge_evm_address a, c;
        char text[KEDGE_EVM_ADDRESS_TEXT];
        ck_assert_int_eq(kedge_evm_address_parse(kedge_view_str(rows[i].sender), &a), KEDGE_OK);
        kedge_evm_address_of_contract(&a, rows[i].nonce, &c);
        kedge_evm_address_text(&c, text);
        ck_assert_str_eq(text, rows[i].contract);
    }
}
END_TEST

START_TEST(amounts_beyond_64_bits_are_refused)
{
    struct kedge_evm_tx tx = {.kind = KEDGE_EVM_EIP1559, .gas = 2, .max_fee = UINT64_MAX / 2, .value = 1};
    uint64_t wei = 0;
    ck_assert_int_eq(kedge_evm_tx_cost(&tx, &wei), KEDGE_OK);
    ck_assert_uint_eq(wei, UINT64_MAX);
    tx.value = 2;
    ck_assert_int_eq(kedge_evm_tx_cost(&tx, &wei), KEDGE_E_OVERFLOW);
    struct kedge_buf out KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&out, KEDGE_EVM_RAW_MAX);
    tx.priority_fee = tx.max_fee + 1;
    ck_assert_int_eq(kedge_evm_tx_preimage(&tx, &out), KEDGE_E_ARG);
    tx = (struct kedge_evm_tx){.kind = KEDGE_EVM_EIP155, .chain_id = UINT64_MAX / 2};
    ck_assert_int_eq(kedge_evm_tx_preimage(&tx, &out), KEDGE_E_ARG);
    ck_assert_uint_eq(out.len, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tx");
    TCase *tc = tcase_create("tx");
    tcase_add_test(tc, transactions_are_the_published_ones_bit_by_bit);
    tcase_add_test(tc, a_changed_transaction_is_of_someone_else_or_of_nobody);
    tcase_add_test(tc, the_other_s_is_refused);
    tcase_add_test(tc, addresses_have_a_checksum);
    tcase_add_test(tc, contracts_have_the_address_of_sender_and_nonce);
    tcase_add_test(tc, amounts_beyond_64_bits_are_refused);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
