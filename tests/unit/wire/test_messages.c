/* One encoding per message: golden bytes, round trips of random messages, refusal of everything else. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/wire/messages.h"
#include "tests/unit/wire/random_msg.h"

static struct kedge_buf encode(const struct kedge_msg *msg)
{
    struct kedge_buf b;
    kedge_buf_init(&b, KEDGE_FRAME_MAX);
    ck_assert_int_eq(kedge_msg_encode(msg, &b), KEDGE_OK);
    return b;
}

/* ---- golden bytes: written out by hand from the rules in messages.h ---- */

#define H1 "1111111111111111111111111111111111111111111111111111111111111111"
#define H2 "2222222222222222222222222222222222222222222222222222222222222222"
#define FILL(byte)                                                                                         \
    {                                                                                                      \
        byte, byte, byte, byte, byte, byte, byte, byte, byte, byte, byte, byte, byte, byte, byte, byte,    \
            byte, byte, byte, byte, byte, byte, byte, byte, byte, byte, byte, byte, byte, byte, byte, byte \
    }
#define VIEW(text)                                \
    {                                             \
        (const uint8_t *)(text), sizeof(text) - 1 \
    }

static const uint8_t two_hashes[64] = {1, [32] = 2};

static const struct {
    struct kedge_msg msg;
    const char *hex;
} golden[] = {
    {{KEDGE_MSG_HELLO, {.hello = {1, VIEW("kedge")}}},
     "0101"
     "00000001"
     "00000005"
     "6b65646765"},
    {{KEDGE_MSG_ENROLL, {.enroll = {FILL(0x11), {"acme"}, {"s1"}, FILL(0x22)}}},
     "0102" H1 "04"
     "61636d65"
     "02"
     "7331" H2},
    {{KEDGE_MSG_POLL, {.poll = {30000, 5, 258, {{"job-1"}, {"k"}}, 2}}},
     "010300007530000000050000000000000102"
     "02056a6f622d31016b"},
    {{KEDGE_MSG_BLOB_GET, {.blob_get = {{"j"}, FILL(0x11), 0x0102030405060708, 4194304}}},
     "0104"
     "01"
     "6a" H1 "0102030405060708"
     "00400000"},
    {{KEDGE_MSG_BLOB_PUT, {.blob_put = {{"j"}, 7, 2, FILL(0x11), 10, 8, VIEW("ab")}}},
     "0105"
     "01"
     "6a"
     "00000007"
     "00000002" H1 "000000000000000a"
     "0000000000000008"
     "00000002"
     "6162"},
    {{KEDGE_MSG_SUBMIT, {.submit = {VIEW("{}")}}},
     "0106"
     "00000002"
     "7b7d"},
    {{KEDGE_MSG_ADMIN, {.admin = {VIEW("{}")}}},
     "0107"
     "00000002"
     "7b7d"},
    {{KEDGE_MSG_BLOB_PUT_PACKED, {.blob_put_packed = {{"j"}, 7, 2, FILL(0x11), 10, 6, 4, VIEW("a")}}},
     "0108016a0000000700000002" H1 "000000000000000a0000000000000006"
     "000000040000000161"},
    {{KEDGE_MSG_BLOB_GET_SINCE, {.blob_get_since = {{"j"}, FILL(0x11), FILL(0x22), 8, 4194304}}},
     "0109"
     "01"
     "6a" H1 H2 "0000000000000008"
     "00400000"},
    {{KEDGE_MSG_LOG_READ, {.log_read = {VIEW("main/checkpoint"), 8, 4194304}}},
     "010a0000000f6d61696e2f636865636b706f696e74"
     "000000000000000800400000"},
    {{KEDGE_MSG_COSIGN, {.cosign = {VIEW("n")}}}, "010b000000016e"},
    {{KEDGE_MSG_POLL_BESIDE, {.poll_beside = {30000, 0, 258, {{"q"}}, 1, {{"job-1"}, {"k"}}, 2}}},
     "010c0000753000000000000000000000010201017102056a6f622d31016b"},
    {{KEDGE_MSG_TASK_ENDED,
      {.task_ended = {{"j"}, 7, KEDGE_TASK_TRAIN, KEDGE_TROUBLE_DATA_BAD, 5000, VIEW("row 3")}}},
     "010d016a00000007020200001388"
     "00000005726f772033"},
    {{KEDGE_MSG_HELLO_OK, {.hello_ok = {1, VIEW("c"), VIEW("d.example"), VIEW("cp\n")}}},
     "0181"
     "00000001"
     "00000001"
     "63"
     "00000009"
     "642e6578616d706c65"
     "00000003"
     "63700a"},
    {{KEDGE_MSG_ENROLL_OK, {.enroll_ok = {KEDGE_ENROLL_ACTIVE}}},
     "0182"
     "02"},
    {{KEDGE_MSG_TASK,
      {.task = {{"job-1"},
                FILL(0x11),
                300,
                4,
                KEDGE_TASK_TRAIN,
                1,
                FILL(0x22),
                1000,
                2000,
                60000,
                1,
                0xfffffffffffffffe,
                VIEW("m"),
                {NULL, 0},
                {NULL, 0},
                {NULL, 0},
                {two_hashes + 32, 32},
                77,
                {two_hashes + 32, 32},
                {two_hashes, 32},
                VIEW("a\0b\0"),
                40}}},
     "0183"
     "05"
     "6a6f622d31" H1 "0000012c"
     "00000004"
     "02"
     "00000001" H2 "00000000000003e8"
     "00000000000007d0"
     "000000000000ea60"
     "01fffffffffffffffe000000016d000000000000"
     "010200000000000000000000000000000000000000000000000000000000000000000000000000004d"
     "010200000000000000000000000000000000000000000000000000000000000000"
     "010100000000000000000000000000000000000000000000000000000000000000"
     "000000046100620028"},
    {{KEDGE_MSG_WAIT, {.wait = {500, VIEW("m"), {NULL, 0}, VIEW("c"), {NULL, 0}}}},
     "0184000001f4"
     "000000016d00"
     "000000016300"},
    {{KEDGE_MSG_CHUNK, {.chunk = {3, 1, VIEW("xy")}}},
     "0185"
     "0000000000000003"
     "0000000000000001"
     "00000002"
     "7879"},
    {{KEDGE_MSG_PUT_OK, {.put_ok = {10, 1}}},
     "0186"
     "000000000000000a"
     "01"},
    {{KEDGE_MSG_RECEIPT, {.receipt = {{"acme"}, 9, FILL(0x11), VIEW("cp"), {two_hashes, 64}}}},
     "0187"
     "04"
     "61636d65"
     "0000000000000009" H1 "00000002"
     "6370"
     "02"
     "0100000000000000000000000000000000000000000000000000000000000000"
     "0200000000000000000000000000000000000000000000000000000000000000"},
    {{KEDGE_MSG_CLOSED, {.closed = {VIEW("e"), VIEW("ro")}}},
     "0188"
     "0000000165"
     "00000002726f"},
    {{KEDGE_MSG_ADMIN_OK, {.admin_ok = {VIEW("[]")}}},
     "0189"
     "00000002"
     "5b5d"},
    {{KEDGE_MSG_CHUNK_PACKED, {.chunk_packed = {10, 6, 4, VIEW("a")}}},
     "018a"
     "000000000000000a"
     "0000000000000006"
     "00000004"
     "00000001"
     "61"},
    {{KEDGE_MSG_COSIGN_OK, {.cosign_ok = {10}}},
     "018b"
     "000000000000000a"},
    {{KEDGE_MSG_NOTED, {.noted = {1}}}, "018c01"},
    {{KEDGE_MSG_REFUSED, {.refused = {9, VIEW("t"), VIEW("e"), VIEW("ro")}}},
     "018d000000090000000174000000016500000002726f"},
    {{KEDGE_MSG_ERROR, {.error = {410, 0, VIEW("no such job")}}},
     "01ff"
     "0000019a"
     "00000000"
     "0000000b"
     "6e6f2073756368206a6f62"},
};

START_TEST(test_golden)
{
    struct kedge_buf b = encode(&golden[_i].msg);
    char *hex = malloc(2 * b.len + 1);
    kedge_hex_encode(b.ptr, b.len, hex);
    ck_assert_str_eq(hex, golden[_i].hex);
    struct kedge_msg back;
    ck_assert_int_eq(kedge_msg_decode(kedge_buf_view(&b), &back), KEDGE_OK);
    ck_assert_int_eq(back.type, golden[_i].msg.type);
    struct kedge_buf again = encode(&back);
    ck_assert(kedge_view_eq(kedge_buf_view(&b), kedge_buf_view(&again)));
    free(hex);
    kedge_buf_deinit(&b);
    kedge_buf_deinit(&again);
}
END_TEST

START_TEST(test_golden_has_every_type)
{
    unsigned i = 0;
#define KEDGE_MSG(value, NAME, name, fields)                     \
    ck_assert_int_eq(golden[i].msg.type, value);                 \
    ck_assert_str_eq(kedge_msg_name(golden[i].msg.type), #NAME); \
    i++;
#include "common/wire/messages.def"
#undef KEDGE_MSG
    ck_assert_uint_eq(i, sizeof golden / sizeof *golden);
    ck_assert_uint_eq(i, RANDOM_MSG_TYPES);
    ck_assert_str_eq(kedge_msg_name((enum kedge_msg_type)0x55), "UNKNOWN");
}
END_TEST

/* ---- properties ---- */

/* accept => encode(decode(b)) == b, and the decoded message is left alone by a refusal. */
static bool check_accepts_only_itself(struct kedge_view frame)
{
    struct kedge_msg msg;
    memset(&msg, 0x5a, sizeof msg);
    if (kedge_msg_decode(frame, &msg) != KEDGE_OK) {
        const uint8_t *bytes = (const uint8_t *)&msg;
        for (size_t i = 0; i < sizeof msg; i++) {
            ck_assert_uint_eq(bytes[i], 0x5a);
        }
        return false;
    }
    struct kedge_buf b = encode(&msg);
    ck_assert(kedge_view_eq(kedge_buf_view(&b), frame));
    kedge_buf_deinit(&b);
    return true;
}

START_TEST(test_random_round_trips)
{
    for (unsigned seed = 0; seed < 200; seed++) {
        struct kedge_rng rng;
        kedge_rng_init(&rng, seed, KEDGE_RNG_TEST, (uint64_t)_i, 0);
        struct kedge_msg msg = random_msg(&rng, (unsigned)_i);
        struct kedge_buf b = encode(&msg);
        ck_assert_msg(check_accepts_only_itself(kedge_buf_view(&b)), "%s refused, seed %u",
                      kedge_msg_name(msg.type), seed);
        kedge_buf_deinit(&b);
    }
}
END_TEST

START_TEST(test_truncated_and_longer)
{
    for (unsigned seed = 0; seed < 5; seed++) {
        struct kedge_rng rng;
        struct kedge_msg out;
        kedge_rng_init(&rng, seed, KEDGE_RNG_TEST, (uint64_t)_i, 1);
        struct kedge_msg msg = random_msg(&rng, (unsigned)_i);
        struct kedge_buf b = encode(&msg);
        for (size_t len = 0; len < b.len; len++) {
            uint8_t *exact = malloc(len + 1); /* a read beyond len is a read beyond the block */
            memcpy(exact, b.ptr, len);
            ck_assert_int_eq(kedge_msg_decode(kedge_view_of(exact, len), &out), KEDGE_E_FORMAT);
            free(exact);
        }
        kedge_buf_put_u8(&b, 0);
        ck_assert_int_eq(kedge_msg_decode(kedge_buf_view(&b), &out), KEDGE_E_FORMAT);
        kedge_buf_deinit(&b);
    }
}
END_TEST

START_TEST(test_damaged)
{
    unsigned refused = 0;
    for (unsigned seed = 0; seed < 300; seed++) {
        struct kedge_rng rng;
        kedge_rng_init(&rng, seed, KEDGE_RNG_TEST, (uint64_t)_i, 2);
        struct kedge_msg msg = random_msg(&rng, (unsigned)_i);
        struct kedge_buf b = encode(&msg);
        size_t at = (size_t)kedge_rng_below(&rng, b.len < 80 ? b.len : 80);
        b.ptr[at] = (uint8_t)kedge_rng_u64(&rng);
        refused += !check_accepts_only_itself(kedge_buf_view(&b));
        kedge_buf_deinit(&b);
    }
    ck_assert_uint_gt(refused, 0);
}
END_TEST

/* ---- refusals, one by one ---- */

#define PACKED_PUT(total, offset, len, data_len) \
    "0108"                                       \
    "01"                                         \
    "6a"                                         \
    "00000007"                                   \
    "00000002" H1 total offset len data_len

#define PACKED_CHUNK(total, offset, len, data_len) "018a" total offset len data_len

static const struct {
    const char *hex;
    int err;
} refused_frames[] = {
    {"", KEDGE_E_FORMAT},
    {"01", KEDGE_E_FORMAT},
    {"0003"
     "00000001"
     "00000000",
     KEDGE_E_VERSION},
    {"0203"
     "00000001"
     "00000000",
     KEDGE_E_VERSION},
    {"0100", KEDGE_E_FORMAT}, /* no such type */
    {"010a", KEDGE_E_FORMAT},
    {"018b", KEDGE_E_FORMAT},
    {"0101"
     "00000001"
     "00000041",
     KEDGE_E_TOO_LONG}, /* program over 64 */
    {"0101"
     "00000001"
     "ffffffff",
     KEDGE_E_TOO_LONG},
    {"0101"
     "00000001"
     "00000001"
     "ff",
     KEDGE_E_FORMAT}, /* not UTF-8 */
    {"0101"
     "00000001"
     "00000001"
     "00",
     KEDGE_E_FORMAT}, /* NUL in a text */
    {"0104"
     "00" H1 "0000000000000000"
     "00000000",
     KEDGE_E_FORMAT}, /* empty identifier */
    {"0104"
     "01"
     "41" H1 "0000000000000000"
     "00000000",
     KEDGE_E_FORMAT}, /* capital */
    {"0104"
     "02"
     "2e61" H1 "0000000000000000"
     "00000000",
     KEDGE_E_FORMAT}, /* begins with a dot */
    {"0182"
     "00",
     KEDGE_E_FORMAT},
    {"0182"
     "03",
     KEDGE_E_FORMAT},
    {"0186"
     "000000000000000a"
     "02",
     KEDGE_E_FORMAT}, /* neither 0 nor 1 */
    {"0106"
     "00010000",
     KEDGE_E_TOO_LONG}, /* envelope over 65,535 */
    {"0107"
     "00100001",
     KEDGE_E_TOO_LONG},
    {"0184"
     "00000000"
     "00040001",
     KEDGE_E_TOO_LONG},
    {"0185"
     "0000000000000003"
     "0000000000000000"
     "00400001",
     KEDGE_E_TOO_LONG},
    {"0185"
     "0000000000000003"
     "0000000000000002"
     "00000002"
     "7879",
     KEDGE_E_FORMAT}, /* beyond the blob's end */
    {"0185"
     "0000000000000003"
     "0000000000000004"
     "00000000",
     KEDGE_E_FORMAT},
    {"0185"
     "0000000000000003"
     "ffffffffffffffff"
     "00000002"
     "7879",
     KEDGE_E_FORMAT}, /* no wrap around */
    {"0187"
     "01"
     "61"
     "0000000000000009" H1 "00000000"
     "41",
     KEDGE_E_TOO_LONG}, /* 65 hashes */
    {PACKED_PUT("000000000000000a", "0000000000000006", "00000001", "00000001") "61", KEDGE_E_FORMAT},
    {PACKED_PUT("000000000000000a", "0000000000000006", "00000000", "00000000"), KEDGE_E_FORMAT},
    {PACKED_PUT("000000000000000a", "0000000000000006", "00000004", "00000000"),
     KEDGE_E_FORMAT}, /* no data */
    {PACKED_PUT("000000000000000a", "0000000000000006", "00000005", "00000001") "61",
     KEDGE_E_FORMAT}, /* beyond the blob's end */
    {PACKED_PUT("000000000000000a", "000000000000000b", "00000002", "00000001") "61", KEDGE_E_FORMAT},
    {PACKED_PUT("000000000000000a", "ffffffffffffffff", "00000002", "00000001") "61", KEDGE_E_FORMAT},
    {PACKED_PUT("ffffffffffffffff", "0000000000000000", "00400001", "00000001") "61",
     KEDGE_E_FORMAT}, /* content over 4 MiB */
    {PACKED_PUT("ffffffffffffffff", "0000000000000000", "ffffffff", "00000001") "61", KEDGE_E_FORMAT},
    {PACKED_PUT("ffffffffffffffff", "0000000000000000", "00400000", "00400001"), KEDGE_E_TOO_LONG},
    {PACKED_CHUNK("000000000000000a", "0000000000000006", "00000001", "00000001") "61", KEDGE_E_FORMAT},
    {PACKED_CHUNK("000000000000000a", "0000000000000006", "00000000", "00000000"), KEDGE_E_FORMAT},
    {PACKED_CHUNK("000000000000000a", "0000000000000006", "00000004", "00000000"),
     KEDGE_E_FORMAT}, /* no data */
    {PACKED_CHUNK("000000000000000a", "0000000000000006", "00000005", "00000001") "61",
     KEDGE_E_FORMAT}, /* beyond the blob's end */
    {PACKED_CHUNK("000000000000000a", "000000000000000b", "00000002", "00000001") "61", KEDGE_E_FORMAT},
    {PACKED_CHUNK("000000000000000a", "ffffffffffffffff", "00000002", "00000001") "61", KEDGE_E_FORMAT},
    {PACKED_CHUNK("ffffffffffffffff", "0000000000000000", "00400001", "00000001") "61",
     KEDGE_E_FORMAT}, /* content over 4 MiB */
    {PACKED_CHUNK("ffffffffffffffff", "0000000000000000", "ffffffff", "00000001") "61", KEDGE_E_FORMAT},
    {PACKED_CHUNK("ffffffffffffffff", "0000000000000000", "00400000", "00400001"), KEDGE_E_TOO_LONG},
};

START_TEST(test_refused_frames)
{
    for (size_t i = 0; i < sizeof refused_frames / sizeof *refused_frames; i++) {
        uint8_t bytes[128];
        size_t len = strlen(refused_frames[i].hex) / 2;
        struct kedge_msg msg;
        ck_assert_int_eq(kedge_hex_decode(kedge_view_str(refused_frames[i].hex), bytes, len), KEDGE_OK);
        int err = kedge_msg_decode(kedge_view_of(bytes, len), &msg);
        ck_assert_msg(err == refused_frames[i].err, "case %zu: %s", i, kedge_err_name(err));
    }
}
END_TEST

START_TEST(test_refused_messages)
{
    static const uint8_t zeros[KEDGE_CHUNK_MAX + 1];
    static const struct {
        struct kedge_msg msg;
        int err;
    } cases[] = {
        {{(enum kedge_msg_type)0x42, {.poll = {0, 0, 0, {{""}}, 0}}}, KEDGE_E_ARG},
        {{KEDGE_MSG_HELLO, {.hello = {1, {zeros, 1}}}}, KEDGE_E_ARG},
        {{KEDGE_MSG_HELLO, {.hello = {1, {zeros, 65}}}}, KEDGE_E_TOO_LONG},
        {{KEDGE_MSG_ENROLL_OK, {.enroll_ok = {0}}}, KEDGE_E_ARG},
        {{KEDGE_MSG_PUT_OK, {.put_ok = {0, 2}}}, KEDGE_E_ARG},
        {{KEDGE_MSG_BLOB_GET, {.blob_get = {{""}, {0}, 0, 0}}}, KEDGE_E_ARG},
        {{KEDGE_MSG_SUBMIT, {.submit = {{zeros, KEDGE_ENTRY_MAX + 1}}}}, KEDGE_E_TOO_LONG},
        {{KEDGE_MSG_CHUNK, {.chunk = {KEDGE_CHUNK_MAX + 1, 0, {zeros, KEDGE_CHUNK_MAX + 1}}}},
         KEDGE_E_TOO_LONG},
        {{KEDGE_MSG_CHUNK, {.chunk = {1, 1, {zeros, 1}}}}, KEDGE_E_ARG},
        {{KEDGE_MSG_BLOB_PUT_PACKED, {.blob_put_packed = {{"j"}, 1, 1, {0}, 9, 0, 2, {zeros, 2}}}},
         KEDGE_E_ARG},
        {{KEDGE_MSG_BLOB_PUT_PACKED, {.blob_put_packed = {{"j"}, 1, 1, {0}, 9, 0, 2, {zeros, 0}}}},
         KEDGE_E_ARG},
        {{KEDGE_MSG_BLOB_PUT_PACKED, {.blob_put_packed = {{"j"}, 1, 1, {0}, 9, 8, 2, {zeros, 1}}}},
         KEDGE_E_ARG},
        {{KEDGE_MSG_BLOB_PUT_PACKED,
          {.blob_put_packed = {{"j"}, 1, 1, {0}, UINT64_MAX, 0, KEDGE_CHUNK_MAX + 1, {zeros, 1}}}},
         KEDGE_E_ARG},
        {{KEDGE_MSG_CHUNK_PACKED, {.chunk_packed = {9, 0, 2, {zeros, 2}}}}, KEDGE_E_ARG},
        {{KEDGE_MSG_CHUNK_PACKED, {.chunk_packed = {9, 0, 2, {zeros, 0}}}}, KEDGE_E_ARG},
        {{KEDGE_MSG_CHUNK_PACKED, {.chunk_packed = {9, 8, 2, {zeros, 1}}}}, KEDGE_E_ARG},
        {{KEDGE_MSG_CHUNK_PACKED, {.chunk_packed = {UINT64_MAX, 0, KEDGE_CHUNK_MAX + 1, {zeros, 1}}}},
         KEDGE_E_ARG},
        {{KEDGE_MSG_RECEIPT, {.receipt = {{"a"}, 0, {0}, {NULL, 0}, {zeros, 33}}}}, KEDGE_E_ARG},
        {{KEDGE_MSG_RECEIPT, {.receipt = {{"a"}, 0, {0}, {NULL, 0}, {zeros, 65 * 32}}}}, KEDGE_E_TOO_LONG},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kedge_buf b;
        kedge_buf_init(&b, 2 * KEDGE_FRAME_MAX);
        kedge_buf_put_str(&b, "kept");
        int err = kedge_msg_encode(&cases[i].msg, &b);
        ck_assert_msg(err == cases[i].err, "case %zu: %s", i, kedge_err_name(err));
        ck_assert(kedge_view_eq(kedge_buf_view(&b), kedge_view_str("kept")));
        ck_assert_int_eq(b.err, KEDGE_OK);
        kedge_buf_deinit(&b);
    }
}
END_TEST

START_TEST(test_small_buffer)
{
    struct kedge_buf b;
    kedge_buf_init(&b, 9);
    ck_assert_int_eq(kedge_msg_encode(&golden[2].msg, &b), KEDGE_E_TOO_LONG);
    ck_assert_uint_eq(b.len, 0);
    kedge_buf_deinit(&b);
}
END_TEST

/* The longest frames are within KEDGE_FRAME_MAX, the longest prefixes within KEDGE_MSG_PREFIX_MAX. */
static void check_largest(struct kedge_msg *msg, struct kedge_id *job, const struct kedge_view *payload,
                          const struct kedge_view *back_payload, struct kedge_msg *back)
{
    memset(job->s, 'a', KEDGE_ID_MAX);
    struct kedge_buf b = encode(msg);
    uint8_t prefix[KEDGE_MSG_PREFIX_MAX];
    size_t prefix_len;
    ck_assert_int_eq(kedge_msg_prefix(msg, prefix, &prefix_len), KEDGE_OK);
    ck_assert_uint_eq(prefix_len + payload->len, b.len);
    ck_assert_mem_eq(prefix, b.ptr, prefix_len);
    ck_assert_int_eq(kedge_msg_decode(kedge_buf_view(&b), back), KEDGE_OK);
    ck_assert_ptr_eq(back_payload->ptr, b.ptr + prefix_len); /* borrowed, not copied */
    kedge_buf_deinit(&b);
}

START_TEST(test_largest)
{
    static const uint8_t data[KEDGE_CHUNK_MAX] = {[KEDGE_CHUNK_MAX - 1] = 9};
    const uint64_t offset = UINT64_MAX - KEDGE_CHUNK_MAX;
    struct kedge_msg
        put = {KEDGE_MSG_BLOB_PUT, {.blob_put = {{""}, 1, 1, {0}, UINT64_MAX, offset, {data, sizeof data}}}},
        packed = {KEDGE_MSG_BLOB_PUT_PACKED,
                  {.blob_put_packed =
                       {{""}, 1, 1, {0}, UINT64_MAX, offset, KEDGE_CHUNK_MAX, {data, sizeof data - 1}}}},
        back = put;
    check_largest(&put, &put.u.blob_put.job, &put.u.blob_put.data, &back.u.blob_put.data, &back);
    check_largest(&packed, &packed.u.blob_put_packed.job, &packed.u.blob_put_packed.data,
                  &back.u.blob_put_packed.data, &back);
}
END_TEST

START_TEST(test_prefix)
{
    struct kedge_msg msg = {KEDGE_MSG_CHUNK, {.chunk = {3, 1, {NULL, 2}}}}; /* the payload is not looked at */
    uint8_t prefix[KEDGE_MSG_PREFIX_MAX];
    char hex[2 * KEDGE_MSG_PREFIX_MAX + 1];
    size_t len;
    ck_assert_int_eq(kedge_msg_prefix(&msg, prefix, &len), KEDGE_OK);
    kedge_hex_encode(prefix, len, hex);
    ck_assert_str_eq(hex, "0185"
                          "0000000000000003"
                          "0000000000000001"
                          "00000002");
    msg.u.chunk.data.len = 3;
    ck_assert_int_eq(kedge_msg_prefix(&msg, prefix, &len), KEDGE_E_ARG);
    msg.type = KEDGE_MSG_POLL;
    ck_assert_int_eq(kedge_msg_prefix(&msg, prefix, &len), KEDGE_E_ARG);
}
END_TEST

START_TEST(test_errors)
{
    char text[600];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    memcpy(text + 511, "\xe2\x82\xac", 3); /* the limit cuts this character */
    struct kedge_msg msg = kedge_msg_of_error(KEDGE_E_ROUND_CLOSED, 7, text);
    ck_assert_uint_eq(msg.u.error.text.len, 511);
    ck_assert_uint_eq(msg.u.error.code, 400);
    struct kedge_buf b = encode(&msg);
    kedge_buf_deinit(&b);
    ck_assert_int_eq(kedge_msg_error_code(&msg), KEDGE_E_ROUND_CLOSED);
    text[511] = 'x';
    text[512] = text[513] = 'x';
    msg = kedge_msg_of_error(KEDGE_E_NOMEM, 0, text);
    ck_assert_uint_eq(msg.u.error.text.len, 512);
    b = encode(&msg);
    kedge_buf_deinit(&b);
    msg.u.error.code = 99999;
    ck_assert_int_eq(kedge_msg_error_code(&msg), KEDGE_E_UNKNOWN);
    msg.u.error.code = 0;
    ck_assert_int_eq(kedge_msg_error_code(&msg), KEDGE_E_UNKNOWN);
    msg = kedge_msg_of_error(KEDGE_OK, 0, "\xff");
    ck_assert_int_eq(kedge_msg_error_code(&msg), KEDGE_E_BUG);
    ck_assert_uint_eq(msg.u.error.text.len, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("wire");
    TCase *t = tcase_create("messages");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, test_golden, 0, (int)(sizeof golden / sizeof *golden));
    tcase_add_test(t, test_golden_has_every_type);
    tcase_add_loop_test(t, test_random_round_trips, 0, RANDOM_MSG_TYPES);
    tcase_add_loop_test(t, test_truncated_and_longer, 0, RANDOM_MSG_TYPES);
    tcase_add_loop_test(t, test_damaged, 0, RANDOM_MSG_TYPES);
    tcase_add_test(t, test_refused_frames);
    tcase_add_test(t, test_refused_messages);
    tcase_add_test(t, test_small_buffer);
    tcase_add_test(t, test_largest);
    tcase_add_test(t, test_prefix);
    tcase_add_test(t, test_errors);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
