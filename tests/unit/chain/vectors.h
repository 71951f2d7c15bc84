/* Reading ../shared/vectors (absent in a plain checkout: tests then say so and pass). */
#ifndef KEDGE_TESTS_UNIT_CHAIN_VECTORS_H
#define KEDGE_TESTS_UNIT_CHAIN_VECTORS_H

#include "common/base/bytes.h"
#include "crypto/hash.h"

enum { VECTOR_COLUMNS_MAX = 16, VECTOR_MAX = 4 * 1024 * 1024 };

/* False, with a line on stdout, when the vectors are not there. */
bool vectors_present(void);
/* The file's bytes; aborts the test when it cannot be read. Free by kedge_buf_deinit. */
struct kedge_buf vector_file(const char *name);

/* Rows of a tab-separated file without its comments. */
struct vector_table {
    struct kedge_buf bytes;
    struct kedge_view rest;
    struct kedge_view columns[VECTOR_COLUMNS_MAX];
    size_t column_count;
};
struct vector_table vector_table_open(const char *name);
bool vector_table_next(struct vector_table *t);
void vector_table_close(struct vector_table *t);

bool vector_is(struct kedge_view v, const char *text);
uint64_t vector_u64(struct kedge_view v);
struct kedge_hash vector_hash(struct kedge_view hex);
/* Comma-separated hashes, "-" for none; returns their number. */
size_t vector_hashes(struct kedge_view list, struct kedge_hash *out, size_t max);
/* Hex of any length, "-" for none, into out. */
void vector_hex(struct kedge_view hex, struct kedge_buf *out);
/* NUL-terminated copy in out. */
const char *vector_str(struct kedge_view v, char *out, size_t out_len);

#endif
