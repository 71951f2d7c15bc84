/* OpenSSL's SHA-256 (it has the SHA extensions of the processor), fetched once; one digest context per
 * thread, because allocating one per 65-byte Merkle node would cost more than hashing it. */
#include "crypto/hash.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/text.h"
#include "common/base/try.h"

struct kedge_hasher {
    EVP_MD_CTX *ctx;
    bool started;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t context_key;
static EVP_MD *sha256;

static void free_context(void *ctx)
{
    EVP_MD_CTX_free(ctx);
}

static void fetch_once(void)
{
    sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    KEDGE_ASSERT(sha256 != NULL);
    KEDGE_ASSERT(EVP_MD_get_size(sha256) == KEDGE_HASH_LEN);
    int rc = pthread_key_create(&context_key, free_context);
    KEDGE_ASSERT(rc == 0);
}

/* An error inside OpenSSL's SHA-256 cannot be a matter of the input, so it ends the program: a wrong
 * digest must never be returned as if it were one. */
static EVP_MD_CTX *thread_context(void)
{
    pthread_once(&once, fetch_once);
    EVP_MD_CTX *ctx = pthread_getspecific(context_key);
    if (!ctx) {
        ctx = EVP_MD_CTX_new();
        KEDGE_ASSERT(ctx != NULL && pthread_setspecific(context_key, ctx) == 0);
    }
    int ok = EVP_DigestInit_ex2(ctx, sha256, NULL);
    KEDGE_ASSERT(ok == 1);
    return ctx;
}

static void update(EVP_MD_CTX *ctx, struct kedge_view v)
{
    int ok = v.len == 0 || EVP_DigestUpdate(ctx, v.ptr, v.len);
    KEDGE_ASSERT(ok == 1);
}

static void finish(EVP_MD_CTX *ctx, struct kedge_hash *ret_hash)
{
    unsigned len = 0;
    int ok = EVP_DigestFinal_ex(ctx, ret_hash->b, &len);
    KEDGE_ASSERT(ok == 1 && len == KEDGE_HASH_LEN);
}

/* In constant time, because some digests are compared with secrets; the cost does not show beside
 * hashing. */
bool kedge_hash_eq(const struct kedge_hash *a, const struct kedge_hash *b)
{
    return CRYPTO_memcmp(a->b, b->b, KEDGE_HASH_LEN) == 0;
}

int kedge_hash_cmp(const struct kedge_hash *a, const struct kedge_hash *b)
{
    return memcmp(a->b, b->b, KEDGE_HASH_LEN);
}

bool kedge_hash_is_zero(const struct kedge_hash *h)
{
    static const struct kedge_hash zero;
    return kedge_hash_eq(h, &zero);
}

void kedge_hash_hex(const struct kedge_hash *h, char out[KEDGE_HASH_HEX_LEN + 1])
{
    kedge_hex_encode(h->b, KEDGE_HASH_LEN, out);
}

int kedge_hash_from_hex(struct kedge_view text, struct kedge_hash *ret_hash)
{
    return kedge_hex_decode(text, ret_hash->b, KEDGE_HASH_LEN); /* writes only on success */
}

void kedge_sha256(struct kedge_view bytes, struct kedge_hash *ret_hash)
{
    EVP_MD_CTX *ctx = thread_context();
    update(ctx, bytes);
    finish(ctx, ret_hash);
}

void kedge_sha256_2(struct kedge_view a, struct kedge_view b, struct kedge_hash *ret_hash)
{
    EVP_MD_CTX *ctx = thread_context();
    update(ctx, a);
    update(ctx, b);
    finish(ctx, ret_hash);
}

int kedge_hasher_new(struct kedge_hasher **ret_hasher)
{
    pthread_once(&once, fetch_once);
    struct kedge_hasher *h = kedge_mem_new(1, sizeof *h);
    KEDGE_TRY_MEM(h);
    h->ctx = EVP_MD_CTX_new();
    if (!h->ctx) {
        kedge_mem_free(h);
        return KEDGE_E_NOMEM;
    }
    *ret_hasher = h;
    return KEDGE_OK;
}

void kedge_hasher_free(struct kedge_hasher *h)
{
    if (h) {
        EVP_MD_CTX_free(h->ctx);
        kedge_mem_free(h);
    }
}

/* A hasher can be used again after its final: the next update begins a new digest. */
static void start(struct kedge_hasher *h)
{
    if (!h->started) {
        int ok = EVP_DigestInit_ex2(h->ctx, sha256, NULL);
        KEDGE_ASSERT(ok == 1);
        h->started = true;
    }
}

void kedge_hasher_update(struct kedge_hasher *h, struct kedge_view bytes)
{
    start(h);
    update(h->ctx, bytes);
}

void kedge_hasher_final(struct kedge_hasher *h, struct kedge_hash *ret_hash)
{
    start(h);
    finish(h->ctx, ret_hash);
    h->started = false;
}
