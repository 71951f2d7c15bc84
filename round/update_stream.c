/* An update is checked while it arrives, so that it need not be decrypted and read again. The header of a
 * canonical file is known in advance, so it is compared byte by byte; values come in pieces that may end
 * anywhere, so the bytes of a value that is cut are kept until the rest is here. The answer "no" means only
 * that the file must be looked at: an update that came out of order, or compact, is judged by the file
 * alone. */
#include "round/update_stream.h"

#include <string.h>

#include "aggregation/quantise.h"
#include "common/base/mem.h"
#include "common/tensor/safetensors.h"

enum { WORD = 4, BLOCK = 1024 };

struct kedge_update_stream {
    struct kedge_hash of;
    struct kedge_buf head; /* that the one canonical file of the layout has */
    uint64_t at, total;
    int32_t limit;
    uint8_t begun[WORD]; /* a value of which at % WORD bytes are here */
    bool is_good;
};

int kedge_update_stream_open(const struct kedge_layout *layout, int32_t limit, const struct kedge_hash *of,
                             struct kedge_update_stream **ret)
{
    struct kedge_update_stream *s = kedge_mem_new(1, sizeof *s);
    if (!s) {
        return KEDGE_E_NOMEM;
    }
    kedge_buf_init(&s->head, KEDGE_TENSOR_HEADER_MAX + 8);
    int err = kedge_safetensors_header(layout, KEDGE_DTYPE_I32, &s->head);
    if (err) {
        kedge_update_stream_close(s);
        return err;
    }
    s->of = *of;
    s->total = s->head.len + layout->values_count * WORD;
    s->limit = limit;
    s->is_good = s->head.len % WORD == 0;
    *ret = s;
    return KEDGE_OK;
}

void kedge_update_stream_close(struct kedge_update_stream *s)
{
    if (s) {
        kedge_buf_deinit(&s->head);
        kedge_mem_free(s);
    }
}

/* Whole values, at any address. */
static bool check_values(const struct kedge_update_stream *s, const uint8_t *bytes, size_t count)
{
    int32_t block[BLOCK];
    for (size_t done = 0; done < count; done += BLOCK) {
        size_t n = count - done < BLOCK ? count - done : BLOCK;
        memcpy(block, bytes + done * WORD, n * WORD);
        if (kedge_update_check(block, n, s->limit, NULL) != KEDGE_OK) {
            return false;
        }
    }
    return true;
}

/* Fills the value that is begun; how many bytes that took. */
static size_t end_value(struct kedge_update_stream *s, struct kedge_view bytes)
{
    size_t have = (size_t)(s->at % WORD), n = 0;
    while (have > 0 && have + n < WORD && n < bytes.len) {
        s->begun[have + n] = bytes.ptr[n];
        n++;
    }
    if (have > 0 && have + n == WORD) {
        s->is_good = s->is_good && check_values(s, s->begun, 1);
    }
    return n;
}

/* Bytes from elsewhere than where the last ones ended make it say no for good: the file is looked at then. */
void kedge_update_stream_feed(struct kedge_update_stream *s, uint64_t offset, struct kedge_view bytes)
{
    s->is_good = s->is_good && offset == s->at && bytes.len <= s->total - s->at;
    if (!s->is_good || bytes.len == 0) {
        return;
    }
    size_t n = 0;
    if (s->at < s->head.len) {
        uint64_t left = s->head.len - s->at;
        n = bytes.len < left ? bytes.len : (size_t)left;
        s->is_good = memcmp(bytes.ptr, s->head.ptr + s->at, n) == 0;
        s->at += n;
    }
    struct kedge_view rest = kedge_view_of(bytes.ptr + n, bytes.len - n);
    n = end_value(s, rest);
    s->at += n;
    rest = kedge_view_of(rest.ptr + n, rest.len - n);
    if (rest.len > 0) { /* at the beginning of a value */
        s->is_good = s->is_good && check_values(s, rest.ptr, rest.len / WORD);
        memcpy(s->begun, rest.ptr + rest.len / WORD * WORD, rest.len % WORD);
        s->at += rest.len;
    }
}

bool kedge_update_stream_accepts(const struct kedge_update_stream *s, const struct kedge_hash *of)
{
    return s && s->is_good && s->at == s->total && kedge_hash_eq(&s->of, of);
}
