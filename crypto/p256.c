/* ECDSA over libcrypto's groups and numbers. The signature is put together here, because libcrypto 3.0
 * signs with random nonces only: r = (kG).x, s = k⁻¹(h + r·d) mod n with k from RFC 6979 §3.2. All steps
 * that touch the secret are blinded by a random b, which cancels out: s = (b·k)⁻¹ · (b·h + r·(b·d)).
 *
 * Deterministic nonces (RFC 6979) because a weak or repeated nonce gives the key away, and so that a
 * signature can be tested against published vectors. P-256 is here for the signatures of exported models
 * (OMS); statements are Ed25519. */
#include "crypto/p256.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/hmac.h>
#include <openssl/obj_mac.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/os/file.h"
#include "crypto/openssl.h"
#include "crypto/sign.h"

enum { NONCES_MAX = 64 }; /* a second one is needed with probability 2⁻³² */

/* ---- RFC 6979 ---- */

struct drbg {
    uint8_t k[32], v[32];
};

/* K = HMAC(K, V ‖ tag ‖ data), V = HMAC(K, V). */
static void drbg_update(struct drbg *d, uint8_t tag, const uint8_t *data, size_t len)
{
    uint8_t in[32 + 1 + 64];
    unsigned n = 0;
    memcpy(in, d->v, 32);
    in[32] = tag;
    if (len > 0) {
        memcpy(in + 33, data, len);
    }
    HMAC(EVP_sha256(), d->k, 32, in, 33 + len, d->k, &n);
    HMAC(EVP_sha256(), d->k, 32, d->v, 32, d->v, &n);
    kedge_wipe(in, sizeof in);
}

static void drbg_next(struct drbg *d, uint8_t out[32])
{
    unsigned n = 0;
    HMAC(EVP_sha256(), d->k, 32, d->v, 32, d->v, &n);
    memcpy(out, d->v, 32);
}

struct signing {
    BN_CTX *ctx;
    EC_GROUP *group;
    const BIGNUM *order;
    BIGNUM *d, *h, *k, *r, *s, *b, *t, *two;
    EC_POINT *point;
};

static void free_signing(struct signing *w)
{
    BIGNUM *secrets[] = {w->d, w->k, w->b, w->t, w->s};
    for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++) {
        BN_clear_free(secrets[i]);
    }
    BN_free(w->h);
    BN_free(w->r);
    BN_free(w->two);
    EC_POINT_clear_free(w->point);
    EC_GROUP_free(w->group);
    BN_CTX_free(w->ctx);
}

/* All numbers are made before any is used, so that one test for memory suffices; h is reduced modulo the
 * order, as bits2octets demands. */
static int init_signing(struct signing *w, const struct kedge_p256_key *key, const uint8_t digest[32])
{
    memset(w, 0, sizeof *w);
    w->ctx = BN_CTX_secure_new();
    w->group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1);
    w->order = w->group ? EC_GROUP_get0_order(w->group) : NULL;
    w->d = BN_bin2bn(key->secret, KEDGE_P256_LEN, NULL);
    w->h = BN_bin2bn(digest, 32, NULL);
    w->k = BN_new();
    w->r = BN_new();
    w->s = BN_new();
    w->b = BN_new();
    w->t = BN_new();
    w->two = BN_new();
    w->point = w->group ? EC_POINT_new(w->group) : NULL;
    if (!w->ctx || !w->order || !w->d || !w->h || !w->k || !w->r || !w->s || !w->b || !w->t || !w->two
        || !w->point || BN_set_word(w->two, 2) != 1 || BN_nnmod(w->h, w->h, w->order, w->ctx) != 1) {
        return KEDGE_E_NOMEM;
    }
    BN_set_flags(w->d, BN_FLG_CONSTTIME);
    BN_set_flags(w->k, BN_FLG_CONSTTIME);
    return BN_is_zero(w->d) || BN_cmp(w->d, w->order) >= 0 ? KEDGE_E_KEY : KEDGE_OK;
}

/* r and s from the nonce; false: try the next nonce. True ends the search, with or without an error in
 * *err. The inverse is taken by Fermat's theorem with a constant-time power, because libcrypto's extended
 * Euclid branches on its argument. */
static bool try_nonce(struct signing *w, const uint8_t nonce[32], int *err)
{
    *err = KEDGE_E_NOMEM;
    BN_CTX *ctx = w->ctx;
    const BIGNUM *n = w->order;
    if (!BN_bin2bn(nonce, 32, w->k)) {
        return true;
    }
    if (BN_is_zero(w->k) || BN_cmp(w->k, n) >= 0) {
        return false;
    }
    BIGNUM *e = w->two; /* n − 2, for the inverse by Fermat: the order is prime */
    bool done = EC_POINT_mul(w->group, w->point, w->k, NULL, NULL, ctx) == 1
                && EC_POINT_get_affine_coordinates(w->group, w->point, w->r, NULL, ctx) == 1
                && BN_nnmod(w->r, w->r, n, ctx) == 1;
    do {
        done = done && BN_priv_rand_range(w->b, n) == 1;
    } while (done && BN_is_zero(w->b));
    done = done && BN_mod_mul(w->t, w->b, w->d, n, ctx) == 1 /* b·d */
           && BN_mod_mul(w->t, w->t, w->r, n, ctx) == 1      /* r·b·d */
           && BN_mod_mul(w->s, w->b, w->h, n, ctx) == 1      /* b·h */
           && BN_mod_add(w->s, w->s, w->t, n, ctx) == 1      /* b·(h + r·d) */
           && BN_mod_mul(w->t, w->b, w->k, n, ctx) == 1      /* b·k */
           && BN_set_word(e, 2) == 1 && BN_sub(e, n, e) == 1
           && BN_mod_exp_mont_consttime(w->t, w->t, e, n, ctx, NULL) == 1
           && BN_mod_mul(w->s, w->s, w->t, n, ctx) == 1;
    if (!done) {
        return true;
    }
    *err = KEDGE_OK;
    return !BN_is_zero(w->r) && !BN_is_zero(w->s);
}

static int put_signature(struct signing *w, struct kedge_buf *out)
{
    ECDSA_SIG *sig = ECDSA_SIG_new();
    BIGNUM *r = BN_dup(w->r), *s = BN_dup(w->s);
    uint8_t der[KEDGE_EC_SIGNATURE_MAX], *at = der;
    if (!sig || !r || !s || ECDSA_SIG_set0(sig, r, s) != 1) {
        BN_free(r);
        BN_free(s);
        ECDSA_SIG_free(sig);
        return KEDGE_E_NOMEM;
    }
    int len = i2d_ECDSA_SIG(sig, NULL);
    if (len > 0 && (size_t)len <= sizeof der) {
        len = i2d_ECDSA_SIG(sig, &at);
        kedge_buf_put(out, der, (size_t)len);
    }
    ECDSA_SIG_free(sig);
    return len > 0 ? out->err : KEDGE_E_NOMEM;
}

/* A nonce out of range, or an r or s of 0, is skipped by the generator's own rule (section 3.2, step
 * h.3), so the result is still a function of key and message alone. */
int kedge_p256_sign(struct kedge_view message, const struct kedge_p256_key *key, struct kedge_buf *ret_der)
{
    struct kedge_hash digest;
    struct signing w;
    struct drbg d;
    uint8_t seed[64], nonce[32];
    kedge_sha256(message, &digest);
    int err = init_signing(&w, key, digest.b);
    memcpy(seed, key->secret, 32);
    if (!err && BN_bn2binpad(w.h, seed + 32, 32) != 32) { /* bits2octets: reduced modulo the order */
        err = KEDGE_E_NOMEM;
    }
    if (!err) {
        memset(d.k, 0, sizeof d.k);
        memset(d.v, 1, sizeof d.v);
        drbg_update(&d, 0, seed, sizeof seed);
        drbg_update(&d, 1, seed, sizeof seed);
        bool found = false;
        for (int i = 0; i < NONCES_MAX && !found; i++) {
            drbg_next(&d, nonce);
            found = try_nonce(&w, nonce, &err);
            if (!found) {
                drbg_update(&d, 0, NULL, 0);
            }
        }
        err = found ? err : KEDGE_E_BUG;
    }
    if (!err) {
        err = put_signature(&w, ret_der);
    }
    kedge_wipe(seed, sizeof seed);
    kedge_wipe(nonce, sizeof nonce);
    kedge_wipe(&d, sizeof d);
    free_signing(&w);
    ERR_clear_error();
    return err;
}

/* ---- keys ---- */

int kedge_p256_generate(struct kedge_p256_key *ret_key)
{
    EVP_PKEY *pkey = EVP_EC_gen("P-256");
    BIGNUM *d = NULL;
    int err = KEDGE_E_NOMEM;
    if (pkey && EVP_PKEY_get_bn_param(pkey, OSSL_PKEY_PARAM_PRIV_KEY, &d) == 1
        && BN_bn2binpad(d, ret_key->secret, KEDGE_P256_LEN) == KEDGE_P256_LEN) {
        err = KEDGE_OK;
    }
    BN_clear_free(d);
    EVP_PKEY_free(pkey);
    ERR_clear_error();
    return err;
}

/* The public point of the secret, uncompressed. */
static int public_point(const struct kedge_p256_key *key, uint8_t out[65])
{
    static const uint8_t zero[32];
    struct signing w;
    int err = init_signing(&w, key, zero);
    if (!err
        && (EC_POINT_mul(w.group, w.point, w.d, NULL, NULL, w.ctx) != 1
            || EC_POINT_point2oct(w.group, w.point, POINT_CONVERSION_UNCOMPRESSED, out, 65, w.ctx) != 65)) {
        err = KEDGE_E_NOMEM;
    }
    free_signing(&w);
    return err;
}

/* NULL: *err says why. EVP wants the public point beside the secret; it is computed, since the file
 * format here stores only the secret. */
static EVP_PKEY *pkey_of(const struct kedge_p256_key *key, int *err)
{
    uint8_t point[65];
    *err = public_point(key, point);
    if (*err) {
        return NULL;
    }
    EVP_PKEY *pkey = NULL;
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
    BIGNUM *d = BN_secure_new();
    OSSL_PARAM *params = NULL;
    if (build && d && BN_bin2bn(key->secret, KEDGE_P256_LEN, d)
        && OSSL_PARAM_BLD_push_utf8_string(build, OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) == 1
        && OSSL_PARAM_BLD_push_octet_string(build, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof point) == 1
        && OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_PRIV_KEY, d) == 1) {
        params = OSSL_PARAM_BLD_to_param(build);
    }
    if (!ctx || !params || EVP_PKEY_fromdata_init(ctx) != 1
        || EVP_PKEY_fromdata(ctx, &pkey, EVP_PKEY_KEYPAIR, params) != 1) {
        *err = KEDGE_E_NOMEM;
    }
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(build);
    BN_clear_free(d);
    EVP_PKEY_CTX_free(ctx);
    return pkey;
}

static int put_pem(struct kedge_buf *out, const struct kedge_p256_key *key, bool private)
{
    int err;
    EVP_PKEY *pkey = pkey_of(key, &err);
    BIO *bio = BIO_new(private ? BIO_s_secmem() : BIO_s_mem());
    if (pkey) {
        err = KEDGE_E_NOMEM;
        if (bio
            && (private ? PEM_write_bio_PKCS8PrivateKey(bio, pkey, NULL, NULL, 0, NULL, NULL)
                        : PEM_write_bio_PUBKEY(bio, pkey))
                   == 1) {
            err = kedgei_bio_take(bio, out);
        }
    }
    BIO_free(bio);
    EVP_PKEY_free(pkey);
    ERR_clear_error();
    return err;
}

int kedge_p256_put_private(struct kedge_buf *out, const struct kedge_p256_key *key)
{
    return put_pem(out, key, true);
}

int kedge_p256_put_public(struct kedge_buf *out, const struct kedge_p256_key *key)
{
    return put_pem(out, key, false);
}

/* The hash that goes with the key's curve, or NULL. The pairs that signers of ECDSA use: a digest that is
 * shorter than the curve would weaken it, one that is longer would be cut. */
static const EVP_MD *curve_hash(EVP_PKEY *pkey)
{
    char name[32];
    size_t len = 0;
    if (!pkey || EVP_PKEY_get_id(pkey) != EVP_PKEY_EC
        || EVP_PKEY_get_group_name(pkey, name, sizeof name, &len) != 1) {
        return NULL;
    }
    switch (OBJ_sn2nid(name)) {
    case NID_X9_62_prime256v1:
        return EVP_sha256();
    case NID_secp384r1:
        return EVP_sha384();
    case NID_secp521r1:
        return EVP_sha512();
    default:
        return NULL;
    }
}

int kedge_p256_get_private(struct kedge_view pem, struct kedge_p256_key *ret_key)
{
    if (pem.len == 0 || pem.len > KEDGE_EC_PEM_MAX) {
        return KEDGE_E_KEY;
    }
    BIO *bio = BIO_new_mem_buf(pem.ptr, (int)pem.len);
    EVP_PKEY *pkey = bio ? PEM_read_bio_PrivateKey(bio, NULL, kedgei_refuse_passphrase, NULL) : NULL;
    BIGNUM *d = NULL;
    struct kedge_p256_key key;
    uint8_t point[65];
    int err = bio ? KEDGE_E_KEY : KEDGE_E_NOMEM;
    if (pkey && curve_hash(pkey) == EVP_sha256()
        && EVP_PKEY_get_bn_param(pkey, OSSL_PKEY_PARAM_PRIV_KEY, &d) == 1
        && BN_bn2binpad(d, key.secret, KEDGE_P256_LEN) == KEDGE_P256_LEN) {
        err = public_point(&key, point); /* only to see that the secret is in range */
    }
    if (!err) {
        *ret_key = key;
    }
    kedge_wipe(&key, sizeof key);
    BN_clear_free(d);
    EVP_PKEY_free(pkey);
    BIO_free(bio);
    ERR_clear_error();
    return err;
}

static EVP_PKEY *read_public(struct kedge_view pem)
{
    if (pem.len == 0 || pem.len > KEDGE_EC_PEM_MAX) {
        return NULL;
    }
    BIO *bio = BIO_new_mem_buf(pem.ptr, (int)pem.len);
    EVP_PKEY *pkey = bio ? PEM_read_bio_PUBKEY(bio, NULL, kedgei_refuse_passphrase, NULL) : NULL;
    BIO_free(bio);
    if (!curve_hash(pkey)) {
        EVP_PKEY_free(pkey);
        return NULL;
    }
    return pkey;
}

int kedge_ec_verify(struct kedge_view message, struct kedge_view der, struct kedge_view public_pem)
{
    EVP_PKEY *pkey = read_public(public_pem);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    int err = !pkey ? KEDGE_E_KEY : !ctx ? KEDGE_E_NOMEM : KEDGE_E_VERIFY;
    if (pkey && ctx && der.len > 0 && der.len <= KEDGE_EC_SIGNATURE_MAX
        && EVP_DigestVerifyInit(ctx, NULL, curve_hash(pkey), NULL, pkey) == 1
        && EVP_DigestVerify(ctx, der.ptr, der.len, message.ptr, message.len) == 1) {
        err = KEDGE_OK;
    }
    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(pkey);
    ERR_clear_error();
    return err;
}

/* The digest of the key as PEM, in the one form in which libcrypto writes it: keys that were spelled
 * otherwise get the same hint. */
int kedge_ec_hint(struct kedge_view public_pem, struct kedge_hash *ret_hint)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, KEDGE_EC_PEM_MAX);
    EVP_PKEY *pkey = read_public(public_pem);
    BIO *bio = BIO_new(BIO_s_mem());
    int err = pkey ? KEDGE_E_NOMEM : KEDGE_E_KEY;
    if (pkey && bio && PEM_write_bio_PUBKEY(bio, pkey) == 1) {
        err = kedgei_bio_take(bio, &text);
    }
    if (!err) {
        kedge_sha256(kedge_buf_view(&text), ret_hint);
    }
    BIO_free(bio);
    EVP_PKEY_free(pkey);
    ERR_clear_error();
    return err;
}

/* ---- file ---- */

static int make_file(const char *path, struct kedge_p256_key *ret_key, struct kedge_diag *reterr)
{
    struct kedge_buf pem;
    kedge_buf_init(&pem, KEDGE_EC_PEM_MAX);
    int err = kedge_buf_reserve(&pem, KEDGE_EC_PEM_MAX); /* never moved, so no copy of the key stays */
    if (!err) {
        err = kedge_p256_generate(ret_key);
    }
    if (!err) {
        err = kedge_p256_put_private(&pem, ret_key);
    }
    if (err) {
        (void)kedge_diag_set(reterr, err, "%s: cannot make a key: %s", path, kedge_strerror(err));
    } else {
        err = kedge_file_write(path, kedge_buf_view(&pem), 0600, reterr);
    }
    kedge_wipe(pem.ptr, pem.cap);
    kedge_buf_deinit(&pem);
    return err;
}

/* The whole file; the check of its mode and the read are of the same open file. */
static int read_file(const char *path, struct kedge_buf *pem, struct kedge_diag *reterr)
{
    struct stat st;
    int fd = kedge_file_open(path, O_RDONLY, reterr);
    if (fd < 0) {
        return fd;
    }
    int err = fstat(fd, &st) == 0 ? KEDGE_OK : kedge_errno(errno);
    if (err) {
        (void)kedge_diag_set(reterr, err, "%s: cannot be looked at", path);
    } else if ((st.st_mode & 077) != 0) {
        err = kedge_diag_set(reterr, KEDGE_E_DENIED,
                             "%s: private key with mode %04o, which others than its owner may use", path,
                             (unsigned)(st.st_mode & 07777));
        (void)kedge_diag_hint(reterr, "chmod 600 %s, and replace the key if others may have read it", path);
    } else if (st.st_size > KEDGE_EC_PEM_MAX) {
        err = kedge_diag_set(reterr, KEDGE_E_TOO_LONG,
                             "%s: longer than %d bytes, expected one private key in PEM", path,
                             KEDGE_EC_PEM_MAX);
    } else {
        err = kedge_fd_read_at(fd, pem->ptr, (size_t)st.st_size, 0);
        pem->len = err ? 0 : (size_t)st.st_size;
        err = err ? kedge_diag_set(reterr, err, "%s: cannot read", path) : KEDGE_OK;
    }
    close(fd);
    return err;
}

int kedge_p256_file(const char *path, bool create, struct kedge_p256_key *ret_key, struct kedge_diag *reterr)
{
    if (create && !kedge_file_exists(path)) {
        return make_file(path, ret_key, reterr);
    }
    struct kedge_buf pem;
    kedge_buf_init(&pem, KEDGE_EC_PEM_MAX);
    int err = kedge_buf_reserve(&pem, KEDGE_EC_PEM_MAX);
    err = err ? kedge_diag_set(reterr, err, "%s: %s", path, kedge_strerror(err))
              : read_file(path, &pem, reterr);
    if (!err) {
        err = kedge_p256_get_private(kedge_buf_view(&pem), ret_key);
        if (err) {
            (void)kedge_diag_set(reterr, err, "%s: expected one unencrypted P-256 private key (PEM)", path);
            (void)kedge_diag_hint(reterr, "`openssl pkey -in %s -noout -text` shows what the file holds",
                                  path);
        }
    }
    kedge_wipe(pem.ptr, pem.cap);
    kedge_buf_deinit(&pem);
    return err;
}
