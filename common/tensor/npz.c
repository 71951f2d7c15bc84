/* Idea: trust the central directory for names, sizes and checks, the local headers only for where data
 * begin (as NumPy writes Zip64 extras into local headers of small members). Sizes are checked against the
 * file and against deflate's best ratio before memory is taken. */
#include "common/tensor/npz.h"

#include <math.h>
#include <string.h>
#include <zlib.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/tensor/idx.h"

enum {
    END_LEN = 22,
    CENTRAL_LEN = 46,
    LOCAL_LEN = 30,
    COMMENT_MAX = 65535,
    DEFLATE_RATIO_MAX = 1032, /* zlib's technical notes */
};

/* Byte by byte: the fields of zip files lie at any address, and the order of bytes is the file's. */
static uint32_t le16(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t le32(const uint8_t *p)
{
    return le16(p) | le16(p + 2) << 16;
}

/* Offset of the end-of-directory record, or -1. Only one whose comment reaches the end of the file counts.
 */
static int64_t find_end(struct kedge_view f)
{
    for (size_t back = END_LEN; back <= f.len && back <= END_LEN + COMMENT_MAX; back++) {
        const uint8_t *p = f.ptr + (f.len - back);
        if (le32(p) == 0x06054b50 && le16(p + 20) == back - END_LEN) {
            return (int64_t)(f.len - back);
        }
    }
    return -1;
}

/* One row of the zip directory (APPNOTE.TXT 4.3.12). Members must be arrays: what else may be in a zip file
 * (links, folders, encryption) is refused by name or method. */
static int read_central(struct kedge_view f, size_t end, size_t *at, struct kedge_npz_entry *e,
                        struct kedge_diag *reterr)
{
    if (*at > end || end - *at < CENTRAL_LEN || le32(f.ptr + *at) != 0x02014b50) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "npz: directory is damaged at byte %zu", *at);
    }
    const uint8_t *p = f.ptr + *at;
    size_t name_len = le16(p + 28), total = CENTRAL_LEN + name_len + le16(p + 30) + le16(p + 32);
    const uint8_t *name = p + CENTRAL_LEN;
    if (total > end - *at) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "npz: directory is cut off at byte %zu", *at);
    }
    if (name_len <= 4 || name_len - 4 > KEDGE_TENSOR_NAME_MAX || memcmp(name + name_len - 4, ".npy", 4) != 0
        || memchr(name, '\0', name_len)) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "npz: member \"%.*s\": expected a name of at most %d bytes "
                              "and .npy",
                              name_len < 64 ? (int)name_len : 64, (const char *)name, KEDGE_TENSOR_NAME_MAX);
    }
    uint32_t flags = le16(p + 8), method = le16(p + 10);
    *e = (struct kedge_npz_entry){.deflated = method == 8,
                                  .crc32 = le32(p + 16),
                                  .packed_len = le32(p + 20),
                                  .len = le32(p + 24),
                                  .local_offset = le32(p + 42)};
    memcpy(e->name, name, name_len - 4);
    if ((method != 0 && method != 8) || flags & 1) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "npz: array \"%s\": %s, expected stored or deflated",
                              e->name, flags & 1 ? "encrypted" : "another compression");
    }
    if (e->packed_len == UINT32_MAX || e->len == UINT32_MAX || e->local_offset == UINT32_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_TOO_LONG, "npz: array \"%s\": 4 GiB or more", e->name);
    }
    *at += total;
    return KEDGE_OK;
}

static bool find_twin(const struct kedge_npz_entry *entries, uint32_t i)
{
    for (uint32_t j = 0; j < i; j++) {
        if (strcmp(entries[j].name, entries[i].name) == 0) {
            return true;
        }
    }
    return false;
}

/* Only the directory is read here. Each name must be unique, or which of two members is meant would
 * depend on the reader. */
int kedge_npz_open(struct kedge_view file, struct kedge_npz *ret, struct kedge_diag *reterr)
{
    int64_t end = find_end(file);
    if (end < 0) {
        char found[KEDGE_SNIFF_TEXT_MAX];
        kedge_sniff_text(file, found);
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "not an npz file: no zip directory; first bytes are %s",
                              found);
    }
    const uint8_t *p = file.ptr + end;
    uint32_t count = le16(p + 10);
    size_t at = le32(p + 16);
    if (le32(p + 4) != 0 || le16(p + 8) != count || count == 0 || count > KEDGE_NPZ_ENTRIES_MAX
        || (int64_t)at > end) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "npz: %u members in a directory at byte %zu: expected 1 to %d", count, at,
                              KEDGE_NPZ_ENTRIES_MAX);
    }
    struct kedge_npz_entry *entries = kedge_mem_new(count, sizeof *entries);
    int err =
        entries ? KEDGE_OK : kedge_diag_set(reterr, KEDGE_E_NOMEM, "npz: no memory for %u members", count);
    for (uint32_t i = 0; i < count && !err; i++) {
        err = read_central(file, (size_t)end, &at, &entries[i], reterr);
        if (!err && find_twin(entries, i)) {
            err = kedge_diag_set(reterr, KEDGE_E_FORMAT, "npz: array \"%s\" appears twice", entries[i].name);
        }
    }
    if (err) {
        kedge_mem_free(entries);
        return err;
    }
    *ret = (struct kedge_npz){.file = file, .entries = entries, .count = count};
    return KEDGE_OK;
}

void kedge_npz_close(struct kedge_npz *npz)
{
    kedge_mem_free(npz->entries);
    *npz = (struct kedge_npz){0};
}

/* The length is known from the directory: more or less than that is damage. So a file cannot unpack to more
 * than was checked against the limit. */
static int inflate_into(struct kedge_view packed, uint8_t *out, size_t out_len)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)packed.ptr, .next_out = out};
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK) {
        return KEDGE_E_NOMEM;
    }
    /* Both lengths are below 4 GiB, so they fit zlib's 32-bit counters. */
    z.avail_in = (uInt)packed.len;
    z.avail_out = (uInt)out_len;
    int rc = inflate(&z, Z_FINISH);
    bool whole = rc == Z_STREAM_END && z.avail_out == 0 && z.avail_in == 0;
    inflateEnd(&z);
    return whole ? KEDGE_OK : KEDGE_E_FORMAT;
}

/* Sizes come from the directory, which was checked. Before memory is taken, the length is held
 * against what deflate can make of the packed bytes at best: a small file cannot claim gigabytes. */
static int find_packed(const struct kedge_npz *npz, const struct kedge_npz_entry *e, struct kedge_view *ret,
                       struct kedge_diag *reterr)
{
    struct kedge_view f = npz->file;
    if (e->local_offset > f.len || f.len - e->local_offset < LOCAL_LEN
        || le32(f.ptr + e->local_offset) != 0x04034b50) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "npz: array \"%s\": no member at byte %llu", e->name,
                              (unsigned long long)e->local_offset);
    }
    const uint8_t *p = f.ptr + e->local_offset;
    uint64_t begin = e->local_offset + LOCAL_LEN + le16(p + 26) + le16(p + 28);
    if (begin > f.len || e->packed_len > f.len - begin) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "npz: array \"%s\" is cut off", e->name);
    }
    bool plausible = e->deflated ? e->len / DEFLATE_RATIO_MAX <= e->packed_len : e->len == e->packed_len;
    if (!plausible) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "npz: array \"%s\": %llu bytes cannot come from %llu",
                              e->name, (unsigned long long)e->len, (unsigned long long)e->packed_len);
    }
    *ret = kedge_view_of(f.ptr + begin, (size_t)e->packed_len);
    return KEDGE_OK;
}

/* Compressed members are unpacked into memory of their own; stored ones are views of the file. */
static int unpack(const struct kedge_npz *npz, const struct kedge_npz_entry *e, uint8_t **ret_storage,
                  struct kedge_view *ret, struct kedge_diag *reterr)
{
    struct kedge_view packed, plain;
    uint8_t *storage = NULL;
    int err = find_packed(npz, e, &packed, reterr);
    if (err) {
        return err;
    }
    plain = packed;
    if (e->deflated) {
        storage = kedge_mem_new((size_t)e->len, 1);
        err = storage ? inflate_into(packed, storage, (size_t)e->len) : KEDGE_E_NOMEM;
        plain = kedge_view_of(storage, (size_t)e->len);
    }
    if (!err && crc32_z(0, plain.ptr, plain.len) != e->crc32) {
        err = KEDGE_E_FORMAT;
    }
    if (err) {
        kedge_mem_free(storage);
        return kedge_diag_set(reterr, err,
                              err == KEDGE_E_NOMEM ? "npz: array \"%s\": no memory"
                                                   : "npz: array \"%s\": compressed data or checksum "
                                                     "are damaged",
                              e->name);
    }
    *ret_storage = storage;
    *ret = plain;
    return KEDGE_OK;
}

static int say_missing(const struct kedge_npz *npz, const char *name, struct kedge_diag *reterr)
{
    char names[200];
    size_t used = 0;
    names[0] = '\0';
    for (uint32_t i = 0; i < npz->count && used + strlen(npz->entries[i].name) + 6 < sizeof names; i++) {
        size_t len = strlen(npz->entries[i].name);
        memcpy(names + used, i ? ", " : "", i ? 2 : 0);
        used += i ? 2 : 0;
        memcpy(names + used, npz->entries[i].name, len + 1);
        used += len;
    }
    return kedge_diag_set(reterr, KEDGE_E_NOT_FOUND, "npz: no array \"%s\" among %u: %s", name, npz->count,
                          names);
}

/* The array borrows the file, or owns what was unpacked (storage); kedge_npy_deinit frees the one
 * and leaves the other. */
int kedge_npz_read(const struct kedge_npz *npz, const char *name, struct kedge_npy *ret,
                   struct kedge_diag *reterr)
{
    for (uint32_t i = 0; i < npz->count; i++) {
        if (strcmp(npz->entries[i].name, name) != 0) {
            continue;
        }
        uint8_t *storage = NULL;
        struct kedge_view plain = {0};
        KEDGE_TRY(unpack(npz, &npz->entries[i], &storage, &plain, reterr));
        int err = kedge_npy_read(plain, ret, reterr);
        if (err) {
            kedge_mem_free(storage);
            return kedge_diag_wrap(reterr, err, "npz: array \"%s\"", name);
        }
        ret->storage = storage;
        return KEDGE_OK;
    }
    return say_missing(npz, name, reterr);
}

static void put_le(struct kedge_buf *out, uint64_t v, int len)
{
    for (int i = 0; i < len; i++) {
        kedge_buf_put_u8(out, (uint8_t)(v >> (8 * i)));
    }
}

/* The header of a .npy, version 1, so that the data begin at a multiple of 64 bytes. */
static void put_npy_header(const struct kedge_npz_array *a, struct kedge_buf *out)
{
    struct kedge_buf text;
    kedge_buf_init(&text, 1024);
    kedge_buf_printf(&text, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                     kedge_npy_type_name(a->type));
    for (uint32_t i = 0; i < a->dims_count; i++) {
        kedge_buf_printf(&text, i ? ", %llu" : "%llu", (unsigned long long)a->dims[i]);
    }
    kedge_buf_put_str(&text, a->dims_count == 1 ? ",), }" : "), }");
    while (!text.err && (10 + text.len + 1) % 64 != 0) {
        kedge_buf_put_u8(&text, ' ');
    }
    kedge_buf_put_u8(&text, '\n');
    if (text.err && !out->err) {
        out->err = text.err;
    }
    kedge_buf_put(out, "\x93NUMPY\x01\x00", 8);
    put_le(out, text.len, 2);
    kedge_buf_put(out, text.ptr, text.len);
    kedge_buf_deinit(&text);
}

/* Fields common to local and central headers: versions, flags, method, time (1980-01-01), check, sizes. */
static void put_member(struct kedge_buf *out, uint32_t crc, uint64_t len, size_t name_len)
{
    put_le(out, 20, 2);
    put_le(out, 0, 2);
    put_le(out, 0, 2);
    put_le(out, 0, 2);
    put_le(out, 0x0021, 2);
    put_le(out, crc, 4);
    put_le(out, len, 4);
    put_le(out, len, 4);
    put_le(out, name_len, 2);
    put_le(out, 0, 2);
}

/* Dimensions are multiplied only while the product stays within the bound, as in npy.c, so no
 * caller's shape can overflow. */
static int put_local(const struct kedge_npz_array *a, size_t base, struct kedge_buf *header,
                     struct kedge_buf *out, struct kedge_npz_entry *e)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < a->dims_count; i++) {
        if (a->dims[i] != 0 && count > KEDGE_NPY_BYTES_MAX / a->dims[i]) {
            return KEDGE_E_TOO_LONG;
        }
        count *= a->dims[i];
    }
    size_t len = (size_t)count * kedge_npy_type_size(a->type);
    kedge_buf_clear(header);
    put_npy_header(a, header);
    if (header->err || len + header->len >= UINT32_MAX || out->len - base >= UINT32_MAX
        || strlen(a->name) > KEDGE_TENSOR_NAME_MAX) {
        return header->err ? header->err : KEDGE_E_TOO_LONG;
    }
    e->crc32 = (uint32_t)crc32_z(crc32_z(0, header->ptr, header->len), a->data, len);
    e->len = header->len + len;
    e->local_offset = out->len - base;
    put_le(out, 0x04034b50, 4);
    put_member(out, e->crc32, e->len, strlen(a->name) + 4);
    kedge_buf_put_str(out, a->name);
    kedge_buf_put_str(out, ".npy");
    kedge_buf_put(out, header->ptr, header->len);
    kedge_buf_put(out, a->data, len);
    return out->err;
}

/* After the members, as every zip has it; offsets count from where this archive begins in the
 * buffer. */
static void put_directory(const struct kedge_npz_array *arrays, const struct kedge_npz_entry *entries,
                          uint32_t count, size_t base, struct kedge_buf *out)
{
    size_t begin = out->len - base;
    for (uint32_t i = 0; i < count; i++) {
        put_le(out, 0x02014b50, 4);
        put_le(out, 20, 2);
        put_member(out, entries[i].crc32, entries[i].len, strlen(arrays[i].name) + 4);
        put_le(out, 0, 2); /* comment */
        put_le(out, 0, 2); /* disk */
        put_le(out, 0, 2); /* internal attributes */
        put_le(out, 0, 4); /* external attributes */
        put_le(out, entries[i].local_offset, 4);
        kedge_buf_put_str(out, arrays[i].name);
        kedge_buf_put_str(out, ".npy");
    }
    size_t len = out->len - base - begin;
    put_le(out, 0x06054b50, 4);
    put_le(out, 0, 4);
    put_le(out, count, 2);
    put_le(out, count, 2);
    put_le(out, len, 4);
    put_le(out, begin, 4);
    put_le(out, 0, 2);
    if (begin + len >= UINT32_MAX && !out->err) {
        out->err = KEDGE_E_TOO_LONG;
    }
}

/* Stored and not compressed, with a fixed date: the same arrays give the same bytes, so archives
 * can be compared by their digests. */
int kedge_npz_write(const struct kedge_npz_array *arrays, uint32_t count, struct kedge_buf *out)
{
    size_t base = out->len;
    struct kedge_buf header;
    if (count == 0 || count > KEDGE_NPZ_ENTRIES_MAX) {
        return KEDGE_E_ARG;
    }
    struct kedge_npz_entry *entries = kedge_mem_new(count, sizeof *entries);
    KEDGE_TRY_MEM(entries);
    kedge_buf_init(&header, 4096);
    int err = KEDGE_OK;
    for (uint32_t i = 0; i < count && !err; i++) {
        err = put_local(&arrays[i], base, &header, out, &entries[i]);
    }
    if (!err) {
        put_directory(arrays, entries, count, base, out);
        err = out->err;
    }
    kedge_buf_deinit(&header);
    kedge_mem_free(entries);
    return err;
}

int kedge_npz_write_model(const struct kedge_layout *layout, const float *values, struct kedge_buf *out)
{
    struct kedge_npz_array *arrays KEDGE_CLEANUP(kedge_mem_release) =
        kedge_mem_new(layout->count, sizeof *arrays);
    KEDGE_TRY_MEM(arrays);
    for (uint32_t i = 0; i < layout->count; i++) {
        const struct kedge_tensor *t = &layout->tensors[i];
        arrays[i] = (struct kedge_npz_array){t->name, KEDGE_NPY_F4, t->dims_count, t->dims, values};
        values += t->count;
    }
    return kedge_npz_write(arrays, layout->count, out);
}
