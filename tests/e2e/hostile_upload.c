#include "tests/e2e/hostile_upload.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "chain/log/dsse.h"
#include "common/tensor/safetensors.h"
#include "common/wire/packed.h"
#include "tests/e2e/hostile.h"

/* TAIL: bytes behind the header; all -2, they take two bits each. */
enum { VALUES = 18, TAIL = 4 * VALUES, TAIL_PACKED = 1 + 2 * 32 };

void hx_make_file(const char *name, uint64_t rows, uint64_t columns, enum kedge_dtype dtype, int32_t value,
                  struct hx_file *ret)
{
    struct kedge_layout layout;
    struct kedge_buf out;
    const uint64_t dims[] = {rows, columns};
    kedge_layout_init(&layout, dtype);
    kedge_buf_init(&out, sizeof ret->bytes);
    ck_assert_int_eq(kedge_layout_add(&layout, name, dims, 2, NULL), KEDGE_OK);
    const uint64_t classes = 2;
    ck_assert_int_eq(kedge_layout_add(&layout, "0.bias", &classes, 1, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_safetensors_header(&layout, dtype, &out), KEDGE_OK);
    for (size_t i = 0; i < VALUES; i++) {
        kedge_buf_put(&out, &value, sizeof value); /* little-endian, as all our machines are */
    }
    ck_assert_int_eq(out.err, KEDGE_OK);
    memcpy(ret->bytes, out.ptr, out.len);
    ret->len = out.len;
    kedge_sha256(kedge_buf_view(&out), &ret->digest);
    kedge_layout_deinit(&layout);
    kedge_buf_deinit(&out);
}

struct kedge_msg hx_put_of(const struct hx_file *f, uint64_t offset, size_t len)
{
    struct kedge_msg msg = {.type = KEDGE_MSG_BLOB_PUT};
    msg.u.blob_put = (struct kedge_msg_blob_put){.job = hx_task.job,
                                                 .round = hx_task.round,
                                                 .group = hx_task.group,
                                                 .total = f->len,
                                                 .offset = offset,
                                                 .data = {f->bytes + offset, len}};
    memcpy(msg.u.blob_put.digest, f->digest.b, sizeof f->digest.b);
    return msg;
}

void hx_upload(const struct hx_file *f)
{
    struct kedge_msg msg = hx_put_of(f, 0, f->len), answer;
    ck_assert_int_eq(hx_ask(hx_alice.net, &msg, &answer), KEDGE_OK);
    ck_assert(answer.type == KEDGE_MSG_PUT_OK && answer.u.put_ok.complete == 1);
}

/* Where a piece tells the update's length; behind it come offset and, in a packed one, its own length. */
static size_t total_at(void)
{
    return 2 + 1 + strlen(hx_task.job.s) + 4 + 4 + KEDGE_WIRE_HASH;
}

void hx_refuse_longer(const struct hx_file *good)
{
    struct hx_file longer = *good;
    struct kedge_buf frame;
    longer.len++;
    struct kedge_msg put = hx_put_of(&longer, 0, longer.len);
    kedge_buf_init(&frame, KEDGE_FRAME_MAX);
    ck_assert_int_eq(kedge_msg_encode(&put, &frame), KEDGE_OK);
    ck_assert_uint_eq(kedge_load_be64(frame.ptr + total_at()), longer.len);
    kedge_store_be64(frame.ptr + total_at(), good->len);
    hx_refuse_bytes(hx_alice.net, kedge_buf_view(&frame), KEDGE_E_FORMAT, "more bytes than announced");
    kedge_buf_deinit(&frame);
}

/* ---- packed pieces ---- */

/* The file's last `len` bytes, in this packed form. */
static struct kedge_msg packed_put_of(const struct hx_file *f, size_t len, struct kedge_view packed)
{
    struct kedge_msg msg = {.type = KEDGE_MSG_BLOB_PUT_PACKED};
    msg.u.blob_put_packed = (struct kedge_msg_blob_put_packed){.job = hx_task.job,
                                                               .round = hx_task.round,
                                                               .group = hx_task.group,
                                                               .total = f->len,
                                                               .offset = f->len - len,
                                                               .len = (uint32_t)len,
                                                               .data = packed};
    memcpy(msg.u.blob_put_packed.digest, f->digest.b, sizeof f->digest.b);
    return msg;
}

static void check_put(const struct kedge_msg *put, uint64_t next, bool complete)
{
    struct kedge_msg answer;
    ck_assert_int_eq(hx_ask(hx_alice.net, put, &answer), KEDGE_OK);
    ck_assert_int_eq(answer.type, KEDGE_MSG_PUT_OK);
    ck_assert_uint_eq(answer.u.put_ok.next_offset, next);
    ck_assert_int_eq(answer.u.put_ok.complete, complete);
}

static void refuse_packed(const struct hx_file *f, struct kedge_view packed, const char *what)
{
    struct kedge_msg put = packed_put_of(f, TAIL, packed), question = hx_put_of(f, 0, 0);
    hx_refuse(hx_alice.net, &put, KEDGE_E_FORMAT, what);
    check_put(&question, f->len - TAIL, false);
}

/* The same frame with another word at this place. */
static void refuse_patched(const struct kedge_msg *put, size_t at, uint32_t word, const char *what)
{
    struct kedge_buf frame;
    kedge_buf_init(&frame, KEDGE_FRAME_MAX);
    ck_assert_int_eq(kedge_msg_encode(put, &frame), KEDGE_OK);
    uint64_t rest = kedge_load_be64(frame.ptr + at) & UINT32_MAX;
    kedge_store_be64(frame.ptr + at, (uint64_t)word << 32 | rest);
    hx_refuse_bytes(hx_alice.net, kedge_buf_view(&frame), KEDGE_E_FORMAT, what);
    kedge_buf_deinit(&frame);
}

void hx_try_packed(void)
{
    struct hx_file f;
    uint8_t packed[TAIL] = {0};
    hx_make_file("0.weight", 2, 8, KEDGE_DTYPE_I32, -2, &f);
    const struct kedge_view tail = kedge_view_of(f.bytes + f.len - TAIL, TAIL);
    ck_assert_uint_eq(kedge_pack(tail, packed, sizeof packed), TAIL_PACKED);

    struct kedge_msg question = hx_put_of(&f, 0, 0), put = hx_put_of(&f, 0, f.len - TAIL);
    check_put(&put, f.len - TAIL, false);
    refuse_packed(&f, kedge_view_of(packed, TAIL_PACKED - 1), "packed piece that is too short");
    refuse_packed(&f, kedge_view_of(packed, TAIL_PACKED + 1), "byte behind a packed piece");
    refuse_packed(&f, kedge_view_of(packed, 1), "packed piece of a width alone");
    packed[0] = 33;
    refuse_packed(&f, kedge_view_of(packed, TAIL_PACKED), "numbers of 33 bits");
    packed[0] = 255;
    refuse_packed(&f, kedge_view_of(packed, TAIL_PACKED), "numbers of 255 bits");
    packed[0] = 2;
    put = packed_put_of(&f, TAIL, kedge_view_of(packed, TAIL_PACKED));
    const size_t len_at = total_at() + 8 + 8;
    refuse_patched(&put, len_at, TAIL + 1, "packed piece that ends behind the update");
    refuse_patched(&put, len_at, UINT32_MAX, "packed piece without end");
    refuse_patched(&put, len_at, TAIL_PACKED, "packed piece that is no shorter");
    check_put(&question, f.len - TAIL, false);

    packed[1] ^= 1; /* well-formed, but other bytes: the upload begins again */
    hx_refuse(hx_alice.net, &put, KEDGE_E_BLOB_DIGEST, "packed piece of other bytes");
    packed[1] ^= 1;
    check_put(&question, 0, false);
    check_put(&put, 0, false); /* not its turn */
    struct kedge_msg head = hx_put_of(&f, 0, f.len - TAIL);
    check_put(&head, f.len - TAIL, false);
    check_put(&put, f.len, true); /* the blob has the digest of the plain bytes */
    head = hx_put_of(&f, 0, f.len);
    check_put(&head, f.len, true);
}

/* ---- offsets and texts ---- */

void hx_try_offsets(void)
{
    static const uint64_t past[] = {1, UINT64_MAX / 2, UINT64_MAX - KEDGE_CHUNK_MAX, UINT64_MAX};
    struct kedge_msg get = {.type = KEDGE_MSG_BLOB_GET}, answer;
    get.u.blob_get = (struct kedge_msg_blob_get){.job = hx_task.job, .max = KEDGE_CHUNK_MAX};
    memcpy(get.u.blob_get.digest, hx_spec.b, KEDGE_WIRE_HASH);
    get.u.blob_get.offset = hx_task.spec_len;
    ck_assert_int_eq(hx_ask(hx_alice.net, &get, &answer), KEDGE_OK);
    ck_assert(answer.type == KEDGE_MSG_CHUNK && answer.u.chunk.data.len == 0); /* all of it was read */
    for (size_t i = 0; i < sizeof past / sizeof past[0]; i++) {
        get.u.blob_get.offset = past[i] > UINT64_MAX / 4 ? past[i] : hx_task.spec_len + past[i];
        hx_refuse(hx_alice.net, &get, KEDGE_E_ARG, "a blob from after its end");
        get.u.blob_get.max = i % 2 ? KEDGE_CHUNK_MAX : UINT32_MAX;
    }
    ck_assert(!hx_log_says("cannot be read"));
}

/* hx_st as it is, but with other bytes in place of what its payload says, signed by alice all the same. */
static void refuse_forged(const char *from, const char *to, int expected)
{
    struct kedge_buf payload, envelope;
    struct kedge_msg msg = {.type = KEDGE_MSG_SUBMIT};
    kedge_buf_init(&payload, KEDGE_ENTRY_MAX);
    kedge_buf_init(&envelope, KEDGE_ENTRY_MAX);
    ck_assert_int_eq(kedge_statement_encode(&hx_st, &payload, NULL), KEDGE_OK);
    const struct kedge_view bytes = kedge_view_str(to);
    uint8_t *at = memmem(payload.ptr, payload.len, from, strlen(from));
    ck_assert(at && strlen(from) == bytes.len);
    memcpy(at, bytes.ptr, bytes.len);
    ck_assert_int_eq(
        kedge_dsse_build(KEDGE_DSSE_IN_TOTO, kedge_buf_view(&payload), &hx_alice.statement, &envelope),
        KEDGE_OK);
    msg.u.submit.envelope = kedge_buf_view(&envelope);
    hx_refuse(hx_alice.net, &msg, expected, "a statement whose text is not what it seems");
    kedge_buf_deinit(&payload);
    kedge_buf_deinit(&envelope);
}

void hx_try_texts(void)
{
    /* NOLINTBEGIN(misc-misleading-bidirectional): they are what is refused, and escaped here */
    static const char *const texts[] = {"\xc2\x9b"
                                        "31mx",
                                        "\xe2\x80\xaegpj",
                                        "\xe2\x81\xa6iso",
                                        "\xe2\x80\xa8two",
                                        "\xef\xbb\xbf"
                                        "bom",
                                        "\xd8\x9cmark"};
    /* NOLINTEND(misc-misleading-bidirectional) */
    static const uint8_t hello[] = {1, KEDGE_MSG_HELLO, 0, 0, 0, 1, 0, 0, 0, 4, 'a', 0xc2, 0x9b, 'b'};
    snprintf(hx_st.u.update.engine, sizeof hx_st.u.update.engine, "zyxwvu");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        refuse_forged("zyxwvu", texts[i], KEDGE_E_FORMAT);
    }
    refuse_forged("zyxwvu", "visual", KEDGE_E_BLOB_MISSING); /* it is the text that was refused */
    hx_refuse_bytes(hx_alice.net, kedge_view_of(hello, sizeof hello), KEDGE_E_FORMAT,
                    "a program's hidden name");
}

/* ---- differences ---- */

static struct kedge_msg since_of(const uint8_t *digest, const uint8_t *base, uint64_t offset)
{
    struct kedge_msg msg = {.type = KEDGE_MSG_BLOB_GET_SINCE};
    msg.u.blob_get_since =
        (struct kedge_msg_blob_get_since){.job = hx_task.job, .offset = offset, .max = KEDGE_CHUNK_MAX};
    memcpy(msg.u.blob_get_since.digest, digest, KEDGE_WIRE_HASH);
    memcpy(msg.u.blob_get_since.base, base, KEDGE_WIRE_HASH);
    return msg;
}

/* A blob that hx_alice may read, as it is. */
static void get_plain(const uint8_t *digest, struct hx_file *ret)
{
    struct kedge_msg get = {.type = KEDGE_MSG_BLOB_GET}, answer;
    get.u.blob_get = (struct kedge_msg_blob_get){.job = hx_task.job, .max = KEDGE_CHUNK_MAX};
    memcpy(get.u.blob_get.digest, digest, KEDGE_WIRE_HASH);
    ck_assert_int_eq(hx_ask(hx_alice.net, &get, &answer), KEDGE_OK);
    ck_assert_int_eq(answer.type, KEDGE_MSG_CHUNK);
    ret->len = answer.u.chunk.data.len;
    ck_assert_uint_le(ret->len, sizeof ret->bytes);
    ck_assert_uint_eq(ret->len, answer.u.chunk.total);
    memcpy(ret->bytes, answer.u.chunk.data.ptr, ret->len);
    kedge_sha256(kedge_view_of(ret->bytes, ret->len), &ret->digest);
    ck_assert_mem_eq(ret->digest.b, digest, KEDGE_WIRE_HASH);
}

void hx_make_mild_file(struct hx_file *ret)
{
    static struct hx_file model;
    const int32_t one = 1;
    float largest = 0;
    size_t at = 0;
    get_plain(hx_task.base, &model);
    for (size_t i = 0; i < VALUES; i++) {
        float v;
        memcpy(&v, model.bytes + model.len - TAIL + 4 * i, sizeof v);
        at = fabsf(v) > largest ? i : at;
        largest = fabsf(v) > largest ? fabsf(v) : largest;
    }
    ck_assert(largest > 0);
    hx_make_file("0.weight", 2, 8, KEDGE_DTYPE_I32, 0, ret);
    memcpy(ret->bytes + ret->len - TAIL + 4 * at, &one, sizeof one);
    kedge_sha256(kedge_view_of(ret->bytes, ret->len), &ret->digest);
}

static void check_plain(const struct hx_file *f, const uint8_t *base, uint64_t offset)
{
    struct kedge_msg get = since_of(f->digest.b, base, offset), answer;
    ck_assert_int_eq(hx_ask(hx_alice.net, &get, &answer), KEDGE_OK);
    ck_assert_int_eq(answer.type, KEDGE_MSG_CHUNK);
    ck_assert(answer.u.chunk.total == f->len && answer.u.chunk.offset == offset);
    const size_t at = offset < f->len ? (size_t)offset : f->len;
    ck_assert(kedge_view_eq(answer.u.chunk.data, kedge_view_of(f->bytes + at, f->len - at)));
}

static void check_difference(const struct hx_file *f, const struct hx_file *before)
{
    struct kedge_msg get = since_of(f->digest.b, before->digest.b, 0), answer;
    const struct kedge_msg_chunk_packed *p = &answer.u.chunk_packed;
    uint8_t sum[KEDGE_PACKED_BLOCK];
    struct kedge_unpacker u;
    ck_assert_int_eq(hx_ask(hx_alice.net, &get, &answer), KEDGE_OK);
    ck_assert_int_eq(answer.type, KEDGE_MSG_CHUNK_PACKED);
    ck_assert(p->total == f->len && p->offset == 0 && p->len == f->len && before->len == f->len);
    ck_assert_int_eq(kedge_unpack_begin(&u, p->data, p->len), KEDGE_OK);
    ck_assert_uint_eq(kedge_unpack(&u, sum, sizeof sum), f->len);
    kedge_words_add(sum, before->bytes, f->len);
    ck_assert(kedge_view_eq(kedge_view_of(sum, f->len), kedge_view_of(f->bytes, f->len)));
}

void hx_try_since(const struct hx_file *foreign, const uint8_t *before)
{
    static struct hx_file model, base;
    struct kedge_hash any;
    get_plain(hx_task.base, &model);
    kedge_sha256(kedge_view_str("no model"), &any);
    if (before) {
        get_plain(before, &base);
        check_difference(&model, &base);
        check_plain(&base, model.digest.b, 0); /* not the other way round */
        check_plain(&base, before, 0);
        check_plain(&model, before, model.len); /* nothing is left */
        any = base.digest;
        any.b[KEDGE_WIRE_HASH - 1] ^= 1;
    }
    check_plain(&model, any.b, 0);
    check_plain(&model, any.b, 8);
    check_plain(&model, hx_spec.b, 0);
    check_plain(&model, hx_other_spec.b, 0);
    check_plain(&model, foreign->digest.b, 0); /* an update */
    check_plain(&model, model.digest.b, 0);

    struct kedge_msg get = since_of(foreign->digest.b, model.digest.b, 0);
    hx_refuse(hx_alice.net, &get, KEDGE_E_NOT_FOUND, "an update, as a difference");
    get = since_of(hx_other_spec.b, model.digest.b, 0);
    hx_refuse(hx_alice.net, &get, KEDGE_E_NOT_FOUND, "blob of another job, as a difference");
    get = since_of(model.digest.b, before ? before : any.b, 0);
    hx_refuse(hx_waiting.net, &get, KEDGE_E_NOT_ENROLLED, "a difference for nobody's site");
    get.u.blob_get_since.job = hx_id_of("other");
    hx_refuse(hx_alice.net, &get, KEDGE_E_NOT_FOUND, "a difference in another tenant's job");
}
