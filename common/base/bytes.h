/* Views (borrowed), buffers (owned, with a maximum) and strict big-endian readers and writers. Pure. */
#ifndef KEDGE_COMMON_BASE_BYTES_H
#define KEDGE_COMMON_BASE_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

/* Borrowed bytes; never owns. */
struct kedge_view {
    const uint8_t *ptr;
    size_t len;
};

struct kedge_view kedge_view_of(const void *ptr, size_t len);
struct kedge_view kedge_view_str(const char *s);
bool kedge_view_eq(struct kedge_view a, struct kedge_view b);

/* Owned bytes that grow up to max and no further; zero-initialise by kedge_buf_init. A failed append leaves
 * the content as it was and makes the buffer sticky-failed, so that a chain of appends is checked once at its
 * end. */
struct kedge_buf {
    uint8_t *ptr;
    size_t len, cap, max;
    int err; /* first failure, KEDGE_OK so far */
};

void kedge_buf_init(struct kedge_buf *b, size_t max);
void kedge_buf_deinit(struct kedge_buf *b);
void kedge_buf_clear(struct kedge_buf *b);               /* keeps the memory, clears the error */
int kedge_buf_reserve(struct kedge_buf *b, size_t more); /* room for `more` bytes after len */
void kedge_buf_put(struct kedge_buf *b, const void *ptr, size_t len);
void kedge_buf_put_str(struct kedge_buf *b, const char *s);
void kedge_buf_put_u8(struct kedge_buf *b, uint8_t v);
void kedge_buf_put_u16(struct kedge_buf *b, uint16_t v);
void kedge_buf_put_u32(struct kedge_buf *b, uint32_t v);
void kedge_buf_put_u64(struct kedge_buf *b, uint64_t v);
void kedge_buf_printf(struct kedge_buf *b, const char *format, ...) KEDGE_PRINTF(2, 3);
struct kedge_view kedge_buf_view(const struct kedge_buf *b);

/* Reads from a view; after the first short read it is failed, returns zeros, and kedge_reader_end says so. */
struct kedge_reader {
    struct kedge_view rest;
    bool failed;
};

struct kedge_reader kedge_reader_of(struct kedge_view v);
uint8_t kedge_read_u8(struct kedge_reader *r);
uint16_t kedge_read_u16(struct kedge_reader *r);
uint32_t kedge_read_u32(struct kedge_reader *r);
uint64_t kedge_read_u64(struct kedge_reader *r);
struct kedge_view kedge_read_bytes(struct kedge_reader *r, size_t len);
/* KEDGE_OK when nothing failed and nothing is left over, else KEDGE_E_FORMAT. */
KEDGE_NODISCARD int kedge_reader_end(const struct kedge_reader *r);

void kedge_store_be64(uint8_t out[8], uint64_t v);
uint64_t kedge_load_be64(const uint8_t in[8]);

#endif
