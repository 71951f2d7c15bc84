/* Overwriting one of two slots in turn is what makes a crash harmless: while a slot is being written, the
 * other one holds the newest content that was confirmed. A torn slot does not match its sum, so the reader
 * takes the other. Writing a new file and renaming it would need two syncs and a change of the folder for
 * each write; here it is one fdatasync of blocks that exist already.
 *
 * The sequence number says which slot is newer, and its parity which slot it belongs to, so that a block
 * that was written to the wrong place does not count. The first write makes the file by the slower way
 * (kedge_file_write), so there is never a file with no whole slot. */
#include "common/base/os/slots.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/base/os/file.h"
#include "common/base/text.h"

enum { SUM_LEN = 8 };

struct head {
    uint64_t sequence, len;
    uint8_t sum[SUM_LEN];
    size_t size; /* of the line */
};

/* FNV-1a over the sequence and the content, so that a head over another write's content does not count. */
static void sum_of(uint64_t sequence, struct kedge_view content, uint8_t out[SUM_LEN])
{
    uint64_t h = 14695981039346656037U;
    for (unsigned i = 0; i < 64; i += 8) {
        h = (h ^ ((sequence >> i) & 0xff)) * 1099511628211U;
    }
    for (size_t i = 0; i < content.len; i++) {
        h = (h ^ content.ptr[i]) * 1099511628211U;
    }
    for (unsigned i = 0; i < SUM_LEN; i++) {
        out[i] = (uint8_t)(h >> (56 - 8 * i));
    }
}

static off_t offset_of(uint64_t sequence)
{
    return sequence % 2 == 1 ? 0 : KEDGE_SLOT_SIZE;
}

/* As many bytes as are there, at most len; a negative error. */
static ssize_t read_at(int fd, void *out, size_t len, off_t offset)
{
    size_t got = 0;
    while (got < len) {
        ssize_t n = pread(fd, (uint8_t *)out + got, len - got, offset + (off_t)got);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return kedge_errno(errno);
        }
        if (n == 0) {
            break;
        }
        got += (size_t)n;
    }
    return (ssize_t)got;
}

static bool parse_head(const char *text, size_t len, struct head *ret)
{
    static const char magic[] = "kedge-slot ";
    const char *end = memchr(text, '\n', len);
    size_t line = end ? (size_t)(end - text) : 0;
    struct kedge_view part[3];
    size_t at = sizeof magic - 1;
    if (line <= at || memcmp(text, magic, at) != 0) {
        return false;
    }
    for (int i = 0; i < 3; i++) {
        const char *stop = i < 2 ? memchr(text + at, ' ', line - at) : end;
        if (!stop) {
            return false;
        }
        part[i] = kedge_view_of(text + at, (size_t)(stop - (text + at)));
        at = i < 2 ? (size_t)(stop - text) + 1 : at;
    }
    ret->size = line + 1;
    return kedge_decimal_decode(part[0], UINT64_MAX - 1, &ret->sequence) == KEDGE_OK && ret->sequence > 0
           && kedge_decimal_decode(part[1], KEDGE_SLOT_CONTENT_MAX, &ret->len) == KEDGE_OK
           && kedge_hex_decode(part[2], ret->sum, SUM_LEN) == KEDGE_OK;
}

/* Takes the slot of odd (1) or even (2) sequences when it is whole and newer than what out has. */
static int read_slot(int fd, unsigned slot, struct kedge_buf *out, uint64_t *newest)
{
    char text[KEDGE_SLOT_HEAD_MAX];
    struct head head;
    uint8_t sum[SUM_LEN];
    off_t offset = offset_of(slot);
    ssize_t n = read_at(fd, text, sizeof text, offset);
    if (n < 0) {
        return (int)n;
    }
    if (!parse_head(text, (size_t)n, &head) || head.sequence % 2 != slot % 2 || head.sequence <= *newest) {
        return KEDGE_OK;
    }
    struct kedge_buf content;
    kedge_buf_init(&content, KEDGE_SLOT_CONTENT_MAX);
    int err = kedge_buf_reserve(&content, head.len > 0 ? (size_t)head.len : 1);
    n = err ? 0 : read_at(fd, content.ptr, (size_t)head.len, offset + (off_t)head.size);
    err = n < 0 ? (int)n : err;
    if (!err && (uint64_t)n == head.len) {
        struct kedge_view view = kedge_view_of(content.ptr, (size_t)head.len);
        sum_of(head.sequence, view, sum);
        if (memcmp(sum, head.sum, SUM_LEN) == 0) {
            kedge_buf_clear(out);
            kedge_buf_put(out, view.ptr, view.len);
            err = out->err;
            *newest = head.sequence;
        }
    }
    kedge_buf_deinit(&content);
    return err;
}

int kedge_slots_read(const char *path, struct kedge_buf *out, uint64_t *ret_sequence,
                     struct kedge_diag *reterr)
{
    uint64_t newest = 0;
    int fd = kedge_file_open(path, O_RDONLY | O_NOFOLLOW, reterr);
    if (fd < 0) {
        return fd;
    }
    int err = read_slot(fd, 1, out, &newest);
    if (!err) {
        err = read_slot(fd, 2, out, &newest);
    }
    close(fd);
    if (err) {
        return kedge_diag_set(reterr, err, "%s: cannot read: %s", path, kedge_strerror(err));
    }
    if (newest == 0) {
        return kedge_diag_set(reterr, KEDGE_E_CORRUPT, "%s: neither of its two records is whole", path);
    }
    *ret_sequence = newest;
    return KEDGE_OK;
}

/* Without O_CREAT and O_TRUNC: the other slot must stand untouched until this one is durable. */
static int overwrite(const char *path, off_t offset, struct kedge_view slot, struct kedge_diag *reterr)
{
    int fd = kedge_file_open(path, O_WRONLY | O_NOFOLLOW, reterr);
    if (fd < 0) {
        return fd;
    }
    bool done = true;
    while (done && slot.len > 0) {
        ssize_t n = pwrite(fd, slot.ptr, slot.len, offset);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        done = n >= 0;
        slot.ptr += done ? n : 0;
        slot.len -= done ? (size_t)n : 0;
        offset += done ? n : 0;
    }
    done = done && fdatasync(fd) == 0;
    int e = errno;
    close(fd);
    return done ? KEDGE_OK
                : kedge_diag_set(reterr, kedge_errno(e), "%s: cannot write: %s", path, strerror(e));
}

/* The caller counts the sequence; it knows the last one from reading. */
int kedge_slots_write(const char *path, uint64_t sequence, struct kedge_view content,
                      struct kedge_diag *reterr)
{
    char sum_hex[2 * SUM_LEN + 1];
    uint8_t sum[SUM_LEN];
    struct kedge_buf slot;
    if (content.len > KEDGE_SLOT_CONTENT_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_TOO_LONG, "%s: more than %d bytes", path,
                              KEDGE_SLOT_CONTENT_MAX);
    }
    sum_of(sequence, content, sum);
    kedge_hex_encode(sum, SUM_LEN, sum_hex);
    kedge_buf_init(&slot, KEDGE_SLOT_SIZE);
    kedge_buf_printf(&slot, "kedge-slot %llu %zu %s\n", (unsigned long long)sequence, content.len, sum_hex);
    kedge_buf_put(&slot, content.ptr, content.len);
    int err =
        slot.err ? kedge_diag_set(reterr, slot.err, "%s: %s", path, kedge_strerror(slot.err)) : KEDGE_OK;
    if (!err) {
        err = sequence == 1 ? kedge_file_write(path, kedge_buf_view(&slot), 0600, reterr)
                            : overwrite(path, offset_of(sequence), kedge_buf_view(&slot), reterr);
    }
    kedge_buf_deinit(&slot);
    return err;
}
