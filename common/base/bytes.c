/* Views, growing buffers with a limit, and a reader that remembers failure. A buffer keeps its
 * first error and takes nothing more after it, and a reader that ran short returns zeros from then
 * on; so a sequence of puts or reads is checked once, at its end. */
#include "common/base/bytes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"

struct kedge_view kedge_view_of(const void *ptr, size_t len)
{
    return (struct kedge_view){ptr, len};
}

struct kedge_view kedge_view_str(const char *s)
{
    return (struct kedge_view){(const uint8_t *)s, strlen(s)};
}

bool kedge_view_eq(struct kedge_view a, struct kedge_view b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

void kedge_buf_init(struct kedge_buf *b, size_t max)
{
    *b = (struct kedge_buf){.max = max};
}

void kedge_buf_deinit(struct kedge_buf *b)
{
    kedge_mem_free(b->ptr);
    *b = (struct kedge_buf){.max = b->max};
}

void kedge_buf_clear(struct kedge_buf *b)
{
    b->len = 0;
    b->err = KEDGE_OK;
}

/* Doubles up to the limit. The limit is the caller's bound on memory, so growing must never go
 * beyond it, not even for a moment. */
int kedge_buf_reserve(struct kedge_buf *b, size_t more)
{
    if (b->err) {
        return b->err;
    }
    if (more > b->max || b->len > b->max - more) {
        return b->err = KEDGE_E_TOO_LONG;
    }
    size_t need = b->len + more;
    if (need <= b->cap) {
        return KEDGE_OK;
    }
    size_t cap = b->cap ? b->cap : 64;
    while (cap < need) {
        cap = cap > b->max / 2 ? b->max : cap * 2;
    }
    /* One byte more than cap, so that kedge_buf_printf has a place for its NUL at len == max. */
    uint8_t *p = cap < SIZE_MAX ? kedge_mem_resize(b->ptr, cap + 1, 1) : NULL;
    if (!p) {
        return b->err = KEDGE_E_NOMEM;
    }
    b->ptr = p;
    b->cap = cap;
    return KEDGE_OK;
}

void kedge_buf_put(struct kedge_buf *b, const void *ptr, size_t len)
{
    if (len != 0 && kedge_buf_reserve(b, len) == KEDGE_OK) {
        memcpy(b->ptr + b->len, ptr, len);
        b->len += len;
    }
}

void kedge_buf_put_str(struct kedge_buf *b, const char *s)
{
    kedge_buf_put(b, s, strlen(s));
}

static void put_be(struct kedge_buf *b, uint64_t v, size_t len)
{
    uint8_t bytes[8];
    kedge_store_be64(bytes, v);
    kedge_buf_put(b, bytes + (8 - len), len);
}

void kedge_buf_put_u8(struct kedge_buf *b, uint8_t v)
{
    put_be(b, v, 1);
}

void kedge_buf_put_u16(struct kedge_buf *b, uint16_t v)
{
    put_be(b, v, 2);
}

void kedge_buf_put_u32(struct kedge_buf *b, uint32_t v)
{
    put_be(b, v, 4);
}

void kedge_buf_put_u64(struct kedge_buf *b, uint64_t v)
{
    put_be(b, v, 8);
}

/* Into the room that there is, which most often does; else once more, with as much as the first attempt
 * needed. */
void kedge_buf_printf(struct kedge_buf *b, const char *format, ...)
{
    va_list ap;
    const size_t room = b->ptr ? b->cap - b->len + 1 : 0; /* with the byte for NUL */
    va_start(ap, format);
    const int n = vsnprintf(room ? (char *)b->ptr + b->len : NULL, room, format, ap);
    va_end(ap);
    if (n <= 0 || kedge_buf_reserve(b, (size_t)n) != KEDGE_OK) {
        return;
    }
    if ((size_t)n >= room) {
        va_start(ap, format);
        vsnprintf((char *)b->ptr + b->len, (size_t)n + 1, format, ap);
        va_end(ap);
    }
    b->len += (size_t)n;
}

struct kedge_view kedge_buf_view(const struct kedge_buf *b)
{
    return (struct kedge_view){b->ptr, b->len};
}

struct kedge_reader kedge_reader_of(struct kedge_view v)
{
    return (struct kedge_reader){v, false};
}

struct kedge_view kedge_read_bytes(struct kedge_reader *r, size_t len)
{
    if (r->failed || r->rest.len < len) {
        r->failed = true;
        return (struct kedge_view){NULL, 0};
    }
    struct kedge_view out = {r->rest.ptr, len};
    if (len != 0) { /* an empty view may have no address */
        r->rest.ptr += len;
        r->rest.len -= len;
    }
    return out;
}

static uint64_t read_be(struct kedge_reader *r, size_t len)
{
    struct kedge_view v = kedge_read_bytes(r, len);
    uint64_t out = 0;
    for (size_t i = 0; i < v.len; i++) {
        out = out << 8 | v.ptr[i];
    }
    return out;
}

uint8_t kedge_read_u8(struct kedge_reader *r)
{
    return (uint8_t)read_be(r, 1);
}

uint16_t kedge_read_u16(struct kedge_reader *r)
{
    return (uint16_t)read_be(r, 2);
}

uint32_t kedge_read_u32(struct kedge_reader *r)
{
    return (uint32_t)read_be(r, 4);
}

uint64_t kedge_read_u64(struct kedge_reader *r)
{
    return read_be(r, 8);
}

int kedge_reader_end(const struct kedge_reader *r)
{
    return r->failed || r->rest.len != 0 ? KEDGE_E_FORMAT : KEDGE_OK;
}

void kedge_store_be64(uint8_t out[8], uint64_t v)
{
    for (int i = 7; i >= 0; i--) {
        out[i] = (uint8_t)v;
        v >>= 8;
    }
}

uint64_t kedge_load_be64(const uint8_t in[8])
{
    uint64_t v = 0;
    for (int i = 0; i < 8; i++) {
        v = v << 8 | in[i];
    }
    return v;
}
