/* Keys as PEM text through libcrypto, which reads every form that `openssl` writes. */
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "crypto/keyfile.h"
#include "crypto/openssl.h"

int kedgei_bio_take(BIO *bio, struct kedge_buf *out)
{
    char *text = NULL;
    long len = BIO_get_mem_data(bio, &text);
    if (len <= 0) {
        return KEDGE_E_NOMEM;
    }
    kedge_buf_put(out, text, (size_t)len);
    return out->err;
}

EVP_PKEY *kedgei_pkey_private(const struct kedge_key_pair *pair)
{
    return EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, pair->secret, KEDGE_KEY_LEN);
}

int kedgei_refuse_passphrase(char *buf, int size, int writing, void *arg)
{
    (void)buf, (void)size, (void)writing, (void)arg;
    return -1;
}

/* PKCS#8 without encryption, which `openssl` reads. The BIO is in secure memory and is cleansed when it
 * is freed. */
int kedge_pem_put_private(struct kedge_buf *out, const struct kedge_key_pair *pair)
{
    EVP_PKEY *key = kedgei_pkey_private(pair);
    BIO *bio = BIO_new(BIO_s_secmem());
    int err = KEDGE_E_NOMEM;
    if (key && bio && PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1) {
        err = kedgei_bio_take(bio, out);
    }
    BIO_free(bio); /* cleanses what it holds */
    EVP_PKEY_free(key);
    ERR_clear_error();
    return err;
}

int kedge_pem_put_public(struct kedge_buf *out, const struct kedge_public_key *public_key)
{
    EVP_PKEY *key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, public_key->b, KEDGE_KEY_LEN);
    BIO *bio = BIO_new(BIO_s_mem());
    int err = KEDGE_E_NOMEM;
    if (key && bio && PEM_write_bio_PUBKEY(bio, key) == 1) {
        err = kedgei_bio_take(bio, out);
    }
    BIO_free(bio);
    EVP_PKEY_free(key);
    ERR_clear_error();
    return err;
}

/* Only Ed25519 and only as raw seed: the public key is derived again and never read from the file, so the
 * two always belong together. */
int kedge_pem_get_private(struct kedge_view pem, struct kedge_key_pair *ret_pair)
{
    if (pem.len == 0 || pem.len > KEDGE_PEM_MAX) {
        return KEDGE_E_KEY;
    }
    BIO *bio = BIO_new_mem_buf(pem.ptr, (int)pem.len);
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, kedgei_refuse_passphrase, NULL) : NULL;
    struct kedge_seed seed;
    size_t len = sizeof seed.b;
    int err = bio ? KEDGE_E_KEY : KEDGE_E_NOMEM;
    if (key && EVP_PKEY_get_id(key) == EVP_PKEY_ED25519
        && EVP_PKEY_get_raw_private_key(key, seed.b, &len) == 1 && len == sizeof seed.b) {
        kedge_key_from_seed(&seed, ret_pair);
        err = KEDGE_OK;
    }
    kedge_wipe(&seed, sizeof seed);
    EVP_PKEY_free(key);
    BIO_free(bio);
    ERR_clear_error();
    return err;
}

/* Points of small order are refused here, once for every way in which a public key comes in from PEM or a
 * certificate. */
int kedgei_pkey_public(EVP_PKEY *key, struct kedge_public_key *ret_key)
{
    struct kedge_public_key raw;
    size_t len = sizeof raw.b;
    if (!key || EVP_PKEY_get_id(key) != EVP_PKEY_ED25519 || EVP_PKEY_get_raw_public_key(key, raw.b, &len) != 1
        || len != sizeof raw.b || !kedge_public_key_is_valid(&raw)) {
        return KEDGE_E_KEY;
    }
    *ret_key = raw;
    return KEDGE_OK;
}

int kedge_pem_get_public(struct kedge_view pem, struct kedge_public_key *ret_key)
{
    if (pem.len == 0 || pem.len > KEDGE_PEM_MAX) {
        return KEDGE_E_KEY;
    }
    BIO *bio = BIO_new_mem_buf(pem.ptr, (int)pem.len);
    EVP_PKEY *key = bio ? PEM_read_bio_PUBKEY(bio, NULL, kedgei_refuse_passphrase, NULL) : NULL;
    int err = bio ? kedgei_pkey_public(key, ret_key) : KEDGE_E_NOMEM;
    EVP_PKEY_free(key);
    BIO_free(bio);
    ERR_clear_error();
    return err;
}
