#include "tests/contract/sealed.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/os/entropy.h"

char dir[64], keys_dir[80];
uint8_t content[MOST], stored[MOST + 1024], out[MOST];
const struct kedge_id site = {"site-1"}, job = {"job-1"}, other_job = {"job-2"};

struct kedge_blobs *open_blobs(void)
{
    struct kedge_blobs_options options = {.keys_dir = keys_dir, .encrypt = true};
    struct kedge_blobs *b;
    struct kedge_diag d = {0};
    ck_assert_msg(kedge_blobs_open(dir, &options, &b, &d) == KEDGE_OK, "%s", d.text);
    return b;
}

struct kedge_blobs *set_up(void)
{
    snprintf(dir, sizeof dir, "/tmp/kedge-sealed-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(keys_dir, sizeof keys_dir, "%s/keys", dir);
    for (size_t i = 0; i < sizeof content; i++) {
        content[i] = (uint8_t)(i * 2654435761u >> 13);
    }
    return open_blobs();
}

void tear_down(struct kedge_blobs *b)
{
    kedge_blobs_close(b);
    ck_assert_int_eq(kedge_dir_remove(dir), KEDGE_OK);
}

struct kedge_hash digest_of(const uint8_t *bytes, size_t len)
{
    struct kedge_hash digest;
    kedge_sha256(kedge_view_of(bytes, len), &digest);
    return digest;
}

void write_pieces(struct kedge_upload *u, const uint8_t *bytes, size_t from, size_t len, size_t piece)
{
    for (size_t at = from; at < len;) {
        size_t n = len - at < piece ? len - at : piece;
        ck_assert_int_eq(kedge_upload_write(u, at, kedge_view_of(bytes + at, n), NULL), KEDGE_OK);
        at += n;
    }
}

struct kedge_hash upload(struct kedge_blobs *b, const struct kedge_id *key, size_t len, size_t piece)
{
    struct kedge_hash digest = digest_of(content, len);
    struct kedge_upload *u;
    struct kedge_diag d = {0};
    uint64_t offset;
    ck_assert_msg(kedge_upload_open(b, &site, key, &digest, len, &u, &offset, &d) == KEDGE_OK, "%s", d.text);
    ck_assert_uint_eq(offset, 0);
    write_pieces(u, content, 0, len, piece);
    ck_assert_int_eq(kedge_upload_finish(u, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_upload_commit(u, NULL), KEDGE_OK);
    return digest;
}

size_t read_stored(const char *path, uint8_t *bytes, size_t max)
{
    int fd = open(path, O_RDONLY);
    ck_assert_int_ge(fd, 0);
    ssize_t n = read(fd, bytes, max);
    ck_assert_int_ge((int)n, 0);
    close(fd);
    return (size_t)n;
}

void write_stored(const char *path, const uint8_t *bytes, size_t len)
{
    int fd = open(path, O_WRONLY | O_TRUNC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq((int)write(fd, bytes, len), (int)len);
    close(fd);
}
