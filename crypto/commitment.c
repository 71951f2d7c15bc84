/* A short text, such as a person's name and address, that is published as a plain hash could be found by
 * trying all texts. Here a random salt is the key of an HMAC over the text's digest and length: without
 * the salt nothing can be tried, and with it the holder can open the commitment to one text only. The
 * label keeps these values apart from every other use of HMAC-SHA-256. */
#include "crypto/commitment.h"

#include <assert.h>
#include <sodium.h>

#include "common/base/os/entropy.h"

/* With its NUL. */
static const char label[] = "kedge/commit/v1";

void kedge_commitment_salt_new(struct kedge_commitment_salt *ret)
{
    kedge_os_random(ret->b, sizeof ret->b);
}

void kedge_commitment_make(const struct kedge_commitment_salt *salt, struct kedge_view text,
                           struct kedge_hash *ret)
{
    static_assert(crypto_auth_hmacsha256_BYTES == KEDGE_HASH_LEN, "HMAC-SHA-256");
    crypto_auth_hmacsha256_state state;
    struct kedge_hash digest;
    uint8_t len[8];
    kedge_sha256(text, &digest);
    kedge_store_be64(len, text.len);
    (void)crypto_auth_hmacsha256_init(&state, salt->b, sizeof salt->b);
    (void)crypto_auth_hmacsha256_update(&state, (const unsigned char *)label, sizeof label);
    (void)crypto_auth_hmacsha256_update(&state, digest.b, sizeof digest.b);
    (void)crypto_auth_hmacsha256_update(&state, len, sizeof len);
    (void)crypto_auth_hmacsha256_final(&state, ret->b);
    sodium_memzero(&state, sizeof state);
    sodium_memzero(&digest, sizeof digest);
}
