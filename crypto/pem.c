/* Keys as PEM text through libcrypto, which reads every form that `openssl` writes. The one form that this
 * program writes is read here. */
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <sodium.h>
#include <string.h>

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

/* The usual form of a private key, to the byte: PKCS#8 version 0 with the algorithm Ed25519 and a seed of 32
 * bytes (RFC 8410, section 7), in one line of base64. libcrypto asks all its decoders for each key that it
 * reads, which takes 0.3 ms; a coordinator that starts reads the key of every tenant's ledger. Text that
 * differs anywhere else than in the seed is left to libcrypto. */
#define USUAL_BEGIN "-----BEGIN PRIVATE KEY-----\n"
#define USUAL_END "\n-----END PRIVATE KEY-----\n"
enum { USUAL_BASE64 = 64 };
static const uint8_t usual_head[] = {0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06,
                                     0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20};

/* libsodium takes bytes above 127 for digits, so what it read is spelled again and compared. */
static bool get_usual(struct kedge_view pem, struct kedge_seed *ret)
{
    const size_t begin = sizeof USUAL_BEGIN - 1, end = sizeof USUAL_END - 1;
    uint8_t der[sizeof usual_head + sizeof ret->b];
    char again[USUAL_BASE64 + 1];
    size_t len = 0;
    const char *text = (const char *)pem.ptr;
    bool is = pem.len == begin + USUAL_BASE64 + end && memcmp(text, USUAL_BEGIN, begin) == 0
              && memcmp(text + begin + USUAL_BASE64, USUAL_END, end) == 0
              && sodium_base642bin(der, sizeof der, text + begin, USUAL_BASE64, NULL, &len, NULL,
                                   sodium_base64_VARIANT_ORIGINAL)
                     == 0
              && len == sizeof der && memcmp(der, usual_head, sizeof usual_head) == 0
              && sodium_memcmp(
                     sodium_bin2base64(again, sizeof again, der, sizeof der, sodium_base64_VARIANT_ORIGINAL),
                     text + begin, USUAL_BASE64)
                     == 0;
    if (is) {
        memcpy(ret->b, der + sizeof usual_head, sizeof ret->b);
    }
    kedge_wipe(der, sizeof der);
    kedge_wipe(again, sizeof again);
    return is;
}

static int get_any(struct kedge_view pem, struct kedge_seed *ret)
{
    BIO *bio = BIO_new_mem_buf(pem.ptr, (int)pem.len);
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, kedgei_refuse_passphrase, NULL) : NULL;
    size_t len = sizeof ret->b;
    int err = bio ? KEDGE_E_KEY : KEDGE_E_NOMEM;
    if (key && EVP_PKEY_get_id(key) == EVP_PKEY_ED25519
        && EVP_PKEY_get_raw_private_key(key, ret->b, &len) == 1 && len == sizeof ret->b) {
        err = KEDGE_OK;
    }
    EVP_PKEY_free(key);
    BIO_free(bio);
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
    struct kedge_seed seed;
    int err = get_usual(pem, &seed) ? KEDGE_OK : get_any(pem, &seed);
    if (!err) {
        kedge_key_from_seed(&seed, ret_pair);
    }
    kedge_wipe(&seed, sizeof seed);
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
