/* Private keys in files. A key whose file others can read is refused, not warned about: nobody reads
 * warnings, and the key may be known already. The permissions are read from the open file, so that the
 * file which is checked is the one that is read. Buffers for keys are reserved at their full size and
 * wiped at the end, because a buffer that grows leaves a copy in the memory that it gave back. */
#include "crypto/keyfile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/os/file.h"
#include "common/base/try.h"
#include "crypto/passphrase.h"
#include "crypto/sealed.h"

enum { TRIES_MAX = 3 };

int kedge_keyfile_write_private(const char *path, const struct kedge_key_pair *pair,
                                struct kedge_diag *reterr)
{
    struct kedge_buf pem;
    kedge_buf_init(&pem, KEDGE_PEM_MAX);
    int err = kedge_buf_reserve(&pem, KEDGE_PEM_MAX); /* never moved, so no copy of the key stays */
    if (!err) {
        err = kedge_pem_put_private(&pem, pair);
    }
    if (err) {
        kedge_diag_set(reterr, err, "%s: cannot encode the private key: %s", path, kedge_strerror(err));
    } else {
        err = kedge_file_write(path, kedge_buf_view(&pem), 0600, reterr);
    }
    kedge_wipe(pem.ptr, pem.cap);
    kedge_buf_deinit(&pem);
    return err;
}

/* Group and others must have no right at all, not even to execute or write: a file that others may write
 * could be exchanged for one whose key they know. */
static int check_private(int fd, const char *path, struct kedge_diag *reterr)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        int e = errno;
        return kedge_diag_set(reterr, kedge_errno(e), "%s: cannot read the file's permissions: %s", path,
                              strerror(e));
    }
    if (!S_ISREG(st.st_mode)) {
        return kedge_diag_set(reterr, KEDGE_E_KEY, "%s: not a regular file, expected a private key in PEM",
                              path);
    }
    if ((st.st_mode & 077) != 0) {
        kedge_diag_set(reterr, KEDGE_E_DENIED,
                       "%s: private key with mode %04o, which others than its owner may use", path,
                       (unsigned)(st.st_mode & 07777));
        kedge_diag_hint(reterr, "chmod 600 %s, and replace the key if others may have read it", path);
        return KEDGE_E_DENIED;
    }
    return KEDGE_OK;
}

/* The whole file into out (at most KEDGE_PEM_MAX bytes); the check and the read are of the same open file. */
static int read_private(const char *path, struct kedge_buf *out, struct kedge_diag *reterr)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        int e = errno;
        return kedge_diag_set(reterr, kedge_errno(e), "%s: cannot open the private key: %s", path,
                              strerror(e));
    }
    int err = check_private(fd, path, reterr);
    while (!err) {
        if (out->len == out->cap) {
            err = kedge_diag_set(reterr, KEDGE_E_TOO_LONG,
                                 "%s: longer than %d bytes, expected one private key in PEM", path,
                                 KEDGE_PEM_MAX);
            break;
        }
        ssize_t n = read(fd, out->ptr + out->len, out->cap - out->len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            int e = errno;
            err = kedge_diag_set(reterr, kedge_errno(e), "%s: cannot read: %s", path, strerror(e));
        }
        if (n <= 0) {
            break;
        }
        out->len += (size_t)n;
    }
    close(fd);
    return err;
}

/* With the passphrase that its owner gives; a person has three tries. */
static int unseal(const char *path, struct kedge_view text, struct kedge_key_pair *ret_pair,
                  struct kedge_diag *reterr)
{
    struct kedge_sealed sealed;
    int err = kedge_sealed_decode(text, &sealed);
    if (err) {
        return kedge_diag_set(reterr, err,
                              "%s: a sealed private key that is damaged, or demands too much work", path);
    }
    err = KEDGE_E_VERIFY;
    for (int tries = 0; tries < TRIES_MAX && err == KEDGE_E_VERIFY; tries++) {
        struct kedge_buf passphrase;
        kedge_buf_init(&passphrase, KEDGE_PASSPHRASE_MAX);
        err = kedge_passphrase_get(path, tries > 0, &passphrase, reterr);
        if (err) {
            tries = TRIES_MAX; /* nobody has another one */
        } else {
            err = kedge_unseal(&sealed, kedge_buf_view(&passphrase), ret_pair);
            if (err) {
                (void)kedge_diag_set(reterr, err,
                                     err == KEDGE_E_VERIFY
                                         ? "%s: another passphrase than this key was sealed with: %s"
                                         : "%s: cannot be unsealed: %s",
                                     path, kedge_strerror(err));
            }
        }
        kedge_wipe(passphrase.ptr, passphrase.cap);
        kedge_buf_deinit(&passphrase);
    }
    return err;
}

int kedge_keyfile_seal(const char *path, const struct kedge_key_pair *pair, struct kedge_view passphrase,
                       const struct kedge_seal_cost *cost, struct kedge_diag *reterr)
{
    struct kedge_sealed sealed;
    struct kedge_buf text;
    kedge_buf_init(&text, KEDGE_PEM_MAX);
    int err = kedge_seal(pair, passphrase, cost, &sealed);
    if (!err) {
        kedge_sealed_encode(&sealed, &text);
        err = text.err;
    }
    if (err) {
        kedge_diag_set(reterr, err, "%s: cannot seal the private key: %s", path, kedge_strerror(err));
    } else {
        err = kedge_file_write(path, kedge_buf_view(&text), 0600, reterr);
    }
    kedge_buf_deinit(&text);
    return err;
}

/* The public key of a sealed file is readable without its passphrase, so programs can name the key, or
 * find the right one, before they ask for anything. */
int kedge_keyfile_is_sealed(const char *path, bool *ret, struct kedge_public_key *ret_public,
                            struct kedge_diag *reterr)
{
    struct kedge_buf text;
    struct kedge_sealed sealed;
    kedge_buf_init(&text, KEDGE_PEM_MAX);
    int err = kedge_buf_reserve(&text, KEDGE_PEM_MAX);
    err = err ? kedge_diag_set(reterr, err, "%s: %s", path, kedge_strerror(err))
              : read_private(path, &text, reterr);
    bool is = !err && kedge_sealed_is(kedge_buf_view(&text));
    if (is) {
        err = kedge_sealed_decode(kedge_buf_view(&text), &sealed);
        if (err) {
            kedge_diag_set(reterr, err, "%s: a sealed private key that is damaged", path);
        } else {
            *ret_public = sealed.public_key;
        }
    }
    if (!err) {
        *ret = is;
    }
    kedge_wipe(text.ptr, text.cap);
    kedge_buf_deinit(&text);
    return err;
}

/* The buffer holds the secret in PEM; it is overwritten on every way out, also after an error in the
 * middle. */
int kedge_keyfile_read_private(const char *path, struct kedge_key_pair *ret_pair, struct kedge_diag *reterr)
{
    struct kedge_buf pem;
    kedge_buf_init(&pem, KEDGE_PEM_MAX);
    int err = kedge_buf_reserve(&pem, KEDGE_PEM_MAX);
    if (err) {
        return kedge_diag_set(reterr, err, "%s: %s", path, kedge_strerror(err));
    }
    err = read_private(path, &pem, reterr);
    if (!err && kedge_sealed_is(kedge_buf_view(&pem))) {
        err = unseal(path, kedge_buf_view(&pem), ret_pair, reterr);
    } else if (!err) {
        err = kedge_pem_get_private(kedge_buf_view(&pem), ret_pair);
        if (err) {
            kedge_diag_set(reterr, err, "%s: expected one unencrypted Ed25519 private key (PKCS#8 PEM)",
                           path);
            kedge_diag_hint(reterr, "`openssl pkey -in %s -noout -text` shows what the file holds", path);
        }
    }
    kedge_wipe(pem.ptr, pem.cap);
    kedge_buf_deinit(&pem);
    return err;
}

int kedge_keyfile_read_public(const char *path, struct kedge_public_key *ret_key, struct kedge_diag *reterr)
{
    struct kedge_buf pem;
    kedge_buf_init(&pem, KEDGE_PEM_MAX);
    int err = kedge_file_read(path, &pem, reterr);
    if (!err) {
        err = kedge_pem_get_public(kedge_buf_view(&pem), ret_key);
        if (err) {
            kedge_diag_set(reterr, err, "%s: expected one Ed25519 public key (SPKI PEM)", path);
            kedge_diag_hint(reterr, "`openssl pkey -pubin -in %s -noout -text` shows what the file holds",
                            path);
        }
    }
    kedge_buf_deinit(&pem);
    return err;
}

/* ---- the next one ---- */

/* Whether the file holds a sealed key, and what a guess costs. */
static int read_cost(const char *path, bool *ret_sealed, struct kedge_seal_cost *ret, struct kedge_diag *d)
{
    struct kedge_sealed sealed;
    struct kedge_buf text;
    kedge_buf_init(&text, KEDGE_PEM_MAX);
    int err = kedge_buf_reserve(&text, KEDGE_PEM_MAX);
    if (!err) {
        err = kedge_file_read(path, &text, d);
    }
    *ret_sealed = !err && kedge_sealed_is(kedge_buf_view(&text));
    if (*ret_sealed) {
        err = kedge_sealed_decode(kedge_buf_view(&text), &sealed);
        *ret = err ? *ret : sealed.cost;
    }
    kedge_wipe(text.ptr, text.cap);
    kedge_buf_deinit(&text);
    return err;
}

/* A new key that takes the place of another is protected as that one was, with the same passphrase and the
 * same cost of a guess: a rotation must not turn a sealed key into an open one. */
int kedge_keyfile_make_like(const char *path, const char *like, struct kedge_key_pair *ret_pair,
                            struct kedge_diag *reterr)
{
    struct kedge_seal_cost cost = kedge_seal_moderate;
    struct kedge_buf passphrase;
    bool sealed = false;
    KEDGE_TRY(read_cost(like, &sealed, &cost, reterr));
    if (!sealed) {
        kedge_key_generate(ret_pair);
        return kedge_keyfile_write_private(path, ret_pair, reterr);
    }
    kedge_buf_init(&passphrase, KEDGE_PASSPHRASE_MAX);
    int err = kedge_passphrase_get(like, false, &passphrase, reterr);
    if (!err) {
        kedge_key_generate(ret_pair);
        err = kedge_keyfile_seal(path, ret_pair, kedge_buf_view(&passphrase), &cost, reterr);
    }
    kedge_wipe(passphrase.ptr, passphrase.cap);
    kedge_buf_deinit(&passphrase);
    return err;
}
