/* Two ciphers behind one call. AES-256-GCM is OpenSSL's, because libsodium has it only where the processor
 * has AES instructions and a blob must open everywhere. XChaCha20-Poly1305 is libsodium's, because OpenSSL
 * has none.
 *
 * One cipher context per thread: a fresh one for each chunk would cost more than setting up the key. The
 * thread's end frees it and overwrites the key.
 *
 * A tag that does not fit leaves zeros and not the text that was decrypted before the tag was compared, so
 * that a caller which overlooks the error works on nothing that an attacker chose. */
#include "crypto/aead.h"

#include <assert.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <sodium.h>
#include <string.h>

#include "crypto/sign.h"

enum { GCM_NONCE_LEN = 12 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t context_key;
static EVP_CIPHER *gcm;

static void free_context(void *ctx)
{
    EVP_CIPHER_CTX_free(ctx); /* overwrites the key */
}

/* Fetching an algorithm takes locks inside OpenSSL, so it is done once for the process; after that
 * threads share nothing but this pointer. */
static void fetch_once(void)
{
    gcm = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
    KEDGE_ASSERT(gcm != NULL);
    int rc = pthread_key_create(&context_key, free_context);
    KEDGE_ASSERT(rc == 0);
}

static EVP_CIPHER_CTX *thread_context(void)
{
    pthread_once(&once, fetch_once);
    EVP_CIPHER_CTX *ctx = pthread_getspecific(context_key);
    if (!ctx) {
        ctx = EVP_CIPHER_CTX_new();
        KEDGE_ASSERT(ctx != NULL && pthread_setspecific(context_key, ctx) == 0);
    }
    return ctx;
}

/* AES without the processor's instructions is slow and, in table form, tells of its key by its timing.
 * libsodium answers the question for both. */
enum kedge_aead kedge_aead_best(void)
{
    return crypto_aead_aes256gcm_is_available() ? KEDGE_AEAD_AES256_GCM : KEDGE_AEAD_XCHACHA20_POLY1305;
}

size_t kedge_aead_nonce_len(enum kedge_aead cipher)
{
    static_assert(crypto_aead_xchacha20poly1305_ietf_NPUBBYTES == KEDGE_AEAD_NONCE_MAX, "nonce");
    static_assert(crypto_aead_xchacha20poly1305_ietf_ABYTES == KEDGE_AEAD_TAG_LEN, "tag");
    return cipher == KEDGE_AEAD_AES256_GCM ? GCM_NONCE_LEN : KEDGE_AEAD_NONCE_MAX;
}

static void seal_gcm(const uint8_t *key, const uint8_t *nonce, struct kedge_view also,
                     struct kedge_view plain, uint8_t *out)
{
    EVP_CIPHER_CTX *ctx = thread_context();
    int n = 0;
    int ok = EVP_EncryptInit_ex2(ctx, gcm, key, nonce, NULL);
    ok = ok == 1 && (also.len == 0 || EVP_EncryptUpdate(ctx, NULL, &n, also.ptr, (int)also.len) == 1);
    ok = ok && (plain.len == 0 || EVP_EncryptUpdate(ctx, out, &n, plain.ptr, (int)plain.len) == 1);
    ok = ok && EVP_EncryptFinal_ex(ctx, out + plain.len, &n) == 1;
    ok = ok && EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, KEDGE_AEAD_TAG_LEN, out + plain.len) == 1;
    KEDGE_ASSERT(ok);
}

/* The tag is copied out first, since `out` may lie over the sealed bytes, as it does when a chunk is
 * opened in its own buffer. */
static bool open_gcm(const uint8_t *key, const uint8_t *nonce, struct kedge_view also,
                     struct kedge_view sealed, uint8_t *out)
{
    EVP_CIPHER_CTX *ctx = thread_context();
    size_t len = sealed.len - KEDGE_AEAD_TAG_LEN;
    uint8_t tag[KEDGE_AEAD_TAG_LEN], none[KEDGE_AEAD_TAG_LEN];
    int n = 0;
    memcpy(tag, sealed.ptr + len, sizeof tag);
    int ok = EVP_DecryptInit_ex2(ctx, gcm, key, nonce, NULL);
    ok = ok == 1 && (also.len == 0 || EVP_DecryptUpdate(ctx, NULL, &n, also.ptr, (int)also.len) == 1);
    ok = ok && (len == 0 || EVP_DecryptUpdate(ctx, out, &n, sealed.ptr, (int)len) == 1);
    ok = ok && EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, sizeof tag, tag) == 1;
    KEDGE_ASSERT(ok);
    return EVP_DecryptFinal_ex(ctx, none, &n) == 1;
}

void kedge_aead_seal(enum kedge_aead cipher, const uint8_t key[KEDGE_AEAD_KEY_LEN], const uint8_t *nonce,
                     struct kedge_view also, struct kedge_view plain, uint8_t *out)
{
    KEDGE_ASSERT(plain.len <= INT32_MAX && also.len <= INT32_MAX);
    if (cipher == KEDGE_AEAD_AES256_GCM) {
        seal_gcm(key, nonce, also, plain, out);
    } else {
        (void)crypto_aead_xchacha20poly1305_ietf_encrypt(out, NULL, plain.ptr, plain.len, also.ptr, also.len,
                                                         NULL, nonce, key);
    }
}

int kedge_aead_open(enum kedge_aead cipher, const uint8_t key[KEDGE_AEAD_KEY_LEN], const uint8_t *nonce,
                    struct kedge_view also, struct kedge_view sealed, uint8_t *out)
{
    KEDGE_ASSERT(sealed.len <= INT32_MAX && also.len <= INT32_MAX);
    if (sealed.len < KEDGE_AEAD_TAG_LEN) {
        return KEDGE_E_VERIFY;
    }
    bool good = cipher == KEDGE_AEAD_AES256_GCM
                    ? open_gcm(key, nonce, also, sealed, out)
                    : crypto_aead_xchacha20poly1305_ietf_decrypt(out, NULL, NULL, sealed.ptr, sealed.len,
                                                                 also.ptr, also.len, nonce, key)
                          == 0;
    if (!good && sealed.len > KEDGE_AEAD_TAG_LEN) {
        memset(out, 0, sealed.len - KEDGE_AEAD_TAG_LEN); /* what came out before the tag was looked at */
    }
    return good ? KEDGE_OK : KEDGE_E_VERIFY;
}

/* Keyed BLAKE2b over the parts in order. They have no lengths in between, so parts before the last must
 * be of fixed length, or two lists could give one key. */
void kedge_derive_key(const uint8_t key[KEDGE_AEAD_KEY_LEN], const struct kedge_view *parts, size_t count,
                      uint8_t out[KEDGE_AEAD_KEY_LEN])
{
    crypto_generichash_state state;
    (void)crypto_generichash_init(&state, key, KEDGE_AEAD_KEY_LEN, KEDGE_AEAD_KEY_LEN);
    for (size_t i = 0; i < count; i++) {
        (void)crypto_generichash_update(&state, parts[i].ptr, parts[i].len);
    }
    (void)crypto_generichash_final(&state, out, KEDGE_AEAD_KEY_LEN);
    kedge_wipe(&state, sizeof state);
}
