/* The high-water mark: the largest (size, root) that a log has signed, kept outside its data folder. A
 * restored backup is shorter than the mark, and so cannot sign a second history. Four lines of text:
 *   kedge high-water 1 / origin / size / hex root
 * Durable before the checkpoint is handed to anybody. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chain/store/ledger_impl.h"
#include "common/base/os/file.h"
#include "common/base/text.h"
#include "common/base/try.h"

static const char *const first_line = "kedge high-water 1";
enum { FILE_MAX = 1024, SECTOR = 512 };

/* Cuts the next line off; its LF must be there. */
static int take_line(struct kedge_view *rest, struct kedge_view *ret_line)
{
    const uint8_t *end = rest->len ? memchr(rest->ptr, '\n', rest->len) : NULL;
    if (!end) {
        return KEDGE_E_CORRUPT;
    }
    size_t len = (size_t)(end - rest->ptr);
    *ret_line = kedge_view_of(rest->ptr, len);
    *rest = kedge_view_of(end + 1, rest->len - len - 1);
    return KEDGE_OK;
}

/* Of another origin is an error of its own (KEDGE_E_STATE): somebody gave the wrong path, and "damaged"
 * would send them looking for the wrong thing. */
static int parse(struct kedge_view text, const char *origin, struct kedgei_high_water *ret)
{
    struct kedge_view lines[4];
    for (size_t i = 0; i < 4; i++) {
        if (take_line(&text, &lines[i])) {
            return KEDGE_E_CORRUPT;
        }
    }
    struct kedgei_high_water mark;
    if (text.len > 0 || !kedge_view_eq(lines[0], kedge_view_str(first_line))
        || kedge_decimal_decode(lines[2], KEDGE_TREE_SIZE_MAX, &mark.size)
        || kedge_hash_from_hex(lines[3], &mark.root)) {
        return KEDGE_E_CORRUPT;
    }
    if (!kedge_view_eq(lines[1], kedge_view_str(origin))) {
        return KEDGE_E_STATE;
    }
    *ret = mark;
    return KEDGE_OK;
}

int kedgei_high_water_read(const char *path, const char *origin, struct kedgei_high_water *ret,
                           struct kedge_diag *reterr)
{
    struct kedge_buf content;
    kedge_buf_init(&content, FILE_MAX);
    int err = kedge_file_read(path, &content, reterr);
    if (!err) {
        err = parse(kedge_buf_view(&content), origin, ret);
        if (err == KEDGE_E_STATE) {
            kedge_diag_set(reterr, err, "%s: high-water mark of another log, expected origin %s", path,
                           origin);
        } else if (err) {
            kedge_diag_set(reterr, err, "%s: not a high-water mark", path);
            kedge_diag_hint(reterr, "restore the file from the machine's own copy, not from an old backup");
        }
    }
    kedge_buf_deinit(&content);
    return err;
}

/* Asked before each signature and not only at open: another process may have signed meanwhile for a copy
 * of this folder, and the mark, which lies outside it, is where the two meet. No mark is allowed here;
 * whether it may be missing is decided at open, by check_high_water in ledger.c. */
int kedgei_high_water_allows(const char *path, const char *origin, uint64_t size,
                             const struct kedge_hash *root, struct kedge_diag *reterr)
{
    struct kedgei_high_water mark;
    int err = kedgei_high_water_read(path, origin, &mark, reterr);
    if (err) {
        return err == KEDGE_E_NOT_FOUND ? KEDGE_OK : err;
    }
    if (mark.size > size) {
        kedge_diag_set(reterr, KEDGE_E_CORRUPT,
                       "ledger %s has %llu entries, but %llu were signed before (%s): an old backup was "
                       "probably restored",
                       origin, (unsigned long long)size, (unsigned long long)mark.size, path);
        kedge_diag_hint(reterr,
                        "put back the newest data folder; signing now would fork the log. A folder that was "
                        "copied while its coordinator ran looks like this, too: copy it with kedge backup");
        return KEDGE_E_CORRUPT;
    }
    if (mark.size == size && !kedge_hash_eq(&mark.root, root)) {
        kedge_diag_set(reterr, KEDGE_E_FORK,
                       "ledger %s has another root at size %llu than was signed before (%s)", origin,
                       (unsigned long long)size, path);
        kedge_diag_hint(reterr, "stop here: two histories of one log exist; keep both folders as evidence");
        return KEDGE_E_FORK;
    }
    return KEDGE_OK;
}

/* Over the former mark: one write within a sector, which a disk writes whole or not at all (LMDB's meta pages
 * rely on the same), and one sync instead of two and a rename. Marks only grow, so nothing of a former one is
 * left behind the new one. False when that cannot be, then the mark is untouched. */
static bool overwrite(const char *path, struct kedge_view text, int *ret_err, struct kedge_diag *reterr)
{
    struct stat st;
    int fd = text.len <= SECTOR ? kedge_file_open(path, O_WRONLY | O_NOFOLLOW, NULL) : -1;
    if (fd < 0) {
        return false;
    }
    bool fits =
        fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 && (size_t)st.st_size <= text.len;
    if (fits) {
        ssize_t n = pwrite(fd, text.ptr, text.len, 0);
        bool done = n == (ssize_t)text.len && fdatasync(fd) == 0;
        int e = errno;
        fits = n <= 0 || n == (ssize_t)text.len; /* half a mark would be neither: it is replaced whole */
        *ret_err = done ? KEDGE_OK
                        : kedge_diag_set(reterr, kedge_errno(e), "%s: cannot write: %s", path, strerror(e));
    }
    close(fd);
    return fits;
}

/* The first mark, one that does not fit into a sector and one whose write came up short go by temporary
 * file and rename (kedge_file_write); all others are overwritten. */
int kedgei_high_water_write(const char *path, const char *origin, uint64_t size,
                            const struct kedge_hash *root, struct kedge_diag *reterr)
{
    char hex[KEDGE_HASH_HEX_LEN + 1];
    kedge_hash_hex(root, hex);
    struct kedge_buf content;
    kedge_buf_init(&content, FILE_MAX);
    kedge_buf_printf(&content, "%s\n%s\n%llu\n%s\n", first_line, origin, (unsigned long long)size, hex);
    int err = content.err;
    if (err) {
        kedge_diag_set(reterr, err, "%s: %s", path, kedge_strerror(err));
    } else if (!overwrite(path, kedge_buf_view(&content), &err, reterr)) {
        err = kedge_file_write(path, kedge_buf_view(&content), 0600, reterr);
    }
    kedge_buf_deinit(&content);
    return err;
}

int kedge_high_water_size(const char *path, const char *origin, uint64_t *ret_size, struct kedge_diag *reterr)
{
    struct kedgei_high_water mark;
    KEDGE_TRY(kedgei_high_water_read(path, origin, &mark, reterr));
    *ret_size = mark.size;
    return KEDGE_OK;
}

int kedge_high_water_set(struct kedge_ledger *l, const char *path, struct kedge_diag *reterr)
{
    struct kedge_hash root;
    uint64_t size = kedge_ledger_size(l);
    int err = kedge_ledger_root(l, size, &root);
    return err ? kedge_diag_set(reterr, err, "ledger %s: tile table: %s", l->origin, kedge_strerror(err))
               : kedgei_high_water_write(path, l->origin, size, &root, reterr);
}

/* For readers, such as fsck: the same question as at open, but the log may be longer than its mark, as it
 * is between commit and mark. */
int kedge_ledger_check_high_water(struct kedge_ledger *l, const char *path, struct kedge_diag *reterr)
{
    struct kedgei_high_water mark;
    struct kedge_hash root;
    int err = kedgei_high_water_read(path, l->origin, &mark, reterr);
    if (err) {
        return err == KEDGE_E_NOT_FOUND ? KEDGE_OK : err;
    }
    uint64_t size = kedge_ledger_size(l);
    if (mark.size > size) {
        return kedge_diag_set(reterr, KEDGE_E_CORRUPT,
                              "ledger %s has %llu entries, but %llu were signed before (%s): it was cut off",
                              l->origin, (unsigned long long)size, (unsigned long long)mark.size, path);
    }
    err = kedge_ledger_root(l, mark.size, &root);
    if (err) {
        return kedge_diag_set(reterr, err, "ledger %s: tile table: %s", l->origin, kedge_strerror(err));
    }
    return kedge_hash_eq(&root, &mark.root)
               ? KEDGE_OK
               : kedge_diag_set(reterr, KEDGE_E_FORK,
                                "ledger %s has another root at size %llu than was signed before (%s)",
                                l->origin, (unsigned long long)mark.size, path);
}
