#include "tests/unit/chain/vectors.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/log/lines.h"
#include "common/base/os/file.h"
#include "common/base/text.h"

static const char folder[] = "../shared/vectors";

bool vectors_present(void)
{
    if (kedge_file_exists("../shared/vectors/README.md")) {
        return true;
    }
    printf("skipped: ../shared/vectors absent\n");
    return false;
}

struct kedge_buf vector_file(const char *name)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf b;
    kedge_buf_init(&b, VECTOR_MAX);
    ck_assert_int_eq(kedge_path_join(path, folder, name), KEDGE_OK);
    struct kedge_diag diag;
    int err = kedge_file_read(path, &b, &diag);
    ck_assert_msg(err == KEDGE_OK, "%s", diag.text);
    return b;
}

struct vector_table vector_table_open(const char *name)
{
    struct vector_table t = {.bytes = vector_file(name)};
    t.rest = kedge_buf_view(&t.bytes);
    return t;
}

bool vector_table_next(struct vector_table *t)
{
    struct kedge_view line;
    do {
        if (!kedgei_take_line(&t->rest, &line)) {
            return false;
        }
    } while (line.len == 0 || line.ptr[0] == '#');
    t->column_count = 0;
    while (t->column_count < VECTOR_COLUMNS_MAX - 1
           && kedgei_cut(&line, '\t', &t->columns[t->column_count])) {
        t->column_count++;
    }
    t->columns[t->column_count++] = line;
    return true;
}

void vector_table_close(struct vector_table *t)
{
    kedge_buf_deinit(&t->bytes);
}

bool vector_is(struct kedge_view v, const char *text)
{
    return kedge_view_eq(v, kedge_view_str(text));
}

uint64_t vector_u64(struct kedge_view v)
{
    char text[32];
    char *end;
    unsigned long long value = strtoull(vector_str(v, text, sizeof text), &end, 10);
    ck_assert(*end == '\0' && end != text);
    return value;
}

struct kedge_hash vector_hash(struct kedge_view hex)
{
    struct kedge_hash h;
    ck_assert_int_eq(kedge_hash_from_hex(hex, &h), KEDGE_OK);
    return h;
}

size_t vector_hashes(struct kedge_view list, struct kedge_hash *out, size_t max)
{
    size_t count = 0;
    struct kedge_view head;
    if (vector_is(list, "-")) {
        return 0;
    }
    while (kedgei_cut(&list, ',', &head)) {
        ck_assert_uint_lt(count, max);
        out[count++] = vector_hash(head);
    }
    ck_assert_uint_lt(count, max);
    out[count++] = vector_hash(list);
    return count;
}

void vector_hex(struct kedge_view hex, struct kedge_buf *out)
{
    if (vector_is(hex, "-") || hex.len == 0) {
        return;
    }
    ck_assert_int_eq(kedge_buf_reserve(out, hex.len / 2), KEDGE_OK);
    ck_assert_int_eq(kedge_hex_decode(hex, out->ptr + out->len, hex.len / 2), KEDGE_OK);
    out->len += hex.len / 2;
}

const char *vector_str(struct kedge_view v, char *out, size_t out_len)
{
    ck_assert_uint_lt(v.len, out_len);
    if (v.len > 0) {
        memcpy(out, v.ptr, v.len);
    }
    out[v.len] = '\0';
    return out;
}
