/* The list of models that an operator gave up to save space, because a replay makes them again. It is
 * what tells a missing model from a lost one: without it fsck, repair and the auditor would report
 * damage. Sorted digests, one a line, so that it is written in one way only and searched by halves. */
#include "chain/store/blob/pruned.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/os/file.h"

enum { TEXT_MAX = 1 << 28, LINE = KEDGE_HASH_HEX_LEN + 1 };

static const char NAME[] = "pruned.txt", FIRST[] = "kedge-pruned/v1\n";

static int compare(const void *a, const void *b)
{
    return memcmp(a, b, KEDGE_HASH_LEN);
}

/* Strictly ascending: a repeated or disordered list was not written by this program, and the search would
 * miss entries. */
static int parse(struct kedge_view text, struct kedge_buf *ret)
{
    const size_t first = sizeof FIRST - 1;
    struct kedge_hash digest, last = {{0}};
    if (text.len < first || memcmp(text.ptr, FIRST, first) != 0 || (text.len - first) % LINE != 0) {
        return KEDGE_E_CORRUPT;
    }
    for (size_t at = first; at < text.len; at += LINE) {
        if (text.ptr[at + LINE - 1] != '\n'
            || kedge_hash_from_hex(kedge_view_of(text.ptr + at, LINE - 1), &digest) != KEDGE_OK
            || (at > first && kedge_hash_cmp(&last, &digest) >= 0)) {
            return KEDGE_E_CORRUPT;
        }
        kedge_buf_put(ret, digest.b, sizeof digest.b);
        last = digest;
    }
    return ret->err;
}

int kedge_pruned_read(const char *dir, struct kedge_buf *ret, struct kedge_diag *reterr)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf text;
    int err = kedge_path_join(path, dir, NAME);
    if (err || !kedge_file_exists(path)) {
        return err ? kedge_diag_set(reterr, err, "%s: path too long", dir) : KEDGE_OK;
    }
    kedge_buf_init(&text, TEXT_MAX);
    err = kedge_file_read(path, &text, reterr);
    if (!err) {
        err = parse(kedge_buf_view(&text), ret);
        err = err ? kedge_diag_set(reterr, err,
                                   "%s: expected \"kedge-pruned/v1\" and ascending digests, one a line", path)
                  : KEDGE_OK;
    }
    kedge_buf_deinit(&text);
    return err;
}

bool kedge_pruned_has(struct kedge_view digests, const struct kedge_hash *digest)
{
    return digests.len > 0
           && bsearch(digest->b, digests.ptr, digests.len / KEDGE_HASH_LEN, KEDGE_HASH_LEN, compare);
}

/* Written whole and renamed, before the files are removed: a crash in between leaves a list that names
 * files which are still there, and that is harmless. The other order would leave models missing without a
 * reason. */
int kedge_pruned_add(const char *dir, struct kedge_view digests, struct kedge_diag *reterr)
{
    char path[KEDGE_PATH_MAX], hex[LINE];
    struct kedge_buf all, text;
    struct kedge_hash digest, last = {{0}};
    kedge_buf_init(&all, TEXT_MAX);
    kedge_buf_init(&text, TEXT_MAX);
    int err = kedge_path_join(path, dir, NAME);
    if (!err) {
        err = kedge_pruned_read(dir, &all, reterr);
    }
    kedge_buf_put(&all, digests.ptr, digests.len);
    kedge_buf_put_str(&text, FIRST);
    if (!err && !all.err && all.len > 0) {
        qsort(all.ptr, all.len / KEDGE_HASH_LEN, KEDGE_HASH_LEN, compare);
    }
    for (size_t at = 0; !err && !all.err && at < all.len; at += KEDGE_HASH_LEN) {
        memcpy(digest.b, all.ptr + at, sizeof digest.b);
        if (at == 0 || !kedge_hash_eq(&digest, &last)) {
            kedge_hash_hex(&digest, hex);
            kedge_buf_put_str(&text, hex);
            kedge_buf_put_u8(&text, '\n');
        }
        last = digest;
    }
    if (!err) {
        err = all.err ? all.err : text.err;
    }
    err = err ? kedge_diag_set(reterr, err, "%s: the list cannot be made: %s", path, kedge_strerror(err))
              : kedge_file_write(path, kedge_buf_view(&text), 0600, reterr);
    kedge_buf_deinit(&text);
    kedge_buf_deinit(&all);
    return err;
}
