#include "crypto/sign.h"

#include <assert.h>
#include <sodium.h>
#include <stdatomic.h>
#include <string.h>

#include "crypto/key_tables.h"

static_assert(crypto_sign_PUBLICKEYBYTES == KEDGE_KEY_LEN, "size of a public key");
static_assert(crypto_sign_SEEDBYTES == KEDGE_KEY_LEN, "size of a seed");
static_assert(crypto_sign_SECRETKEYBYTES == KEDGE_SECRET_LEN, "size of a secret key");
static_assert(crypto_sign_BYTES == KEDGE_SIGNATURE_LEN, "size of a signature");

/* Who accepts a signature on the word of key_tables.c relies on arithmetic of this project alone. That is for
 * a host to choose, so it is off until one does. */
static atomic_bool tables_allowed;

int kedge_crypto_init(void)
{
    return sodium_init() < 0 ? KEDGE_E_BUG : KEDGE_OK;
}

void kedge_key_generate(struct kedge_key_pair *ret_pair)
{
    int rc = kedge_crypto_init();
    KEDGE_ASSERT(rc == KEDGE_OK);
    rc = crypto_sign_keypair(ret_pair->public.b, ret_pair->secret);
    KEDGE_ASSERT(rc == 0);
}

void kedge_key_from_seed(const struct kedge_seed *seed, struct kedge_key_pair *ret_pair)
{
    int rc = crypto_sign_seed_keypair(ret_pair->public.b, ret_pair->secret, seed->b);
    KEDGE_ASSERT(rc == 0);
}

void kedge_key_seed(const struct kedge_key_pair *pair, struct kedge_seed *ret_seed)
{
    memcpy(ret_seed->b, pair->secret, sizeof ret_seed->b);
}

void kedge_key_wipe(struct kedge_key_pair *pair)
{
    sodium_memzero(pair, sizeof *pair);
}

void kedge_wipe(void *p, size_t len)
{
    if (len > 0) {
        sodium_memzero(p, len);
    }
}

/* Constant time: keys are public, but one comparison function for all of them needs no thought about
 * which is not. */
bool kedge_public_key_eq(const struct kedge_public_key *a, const struct kedge_public_key *b)
{
    return sodium_memcmp(a->b, b->b, sizeof a->b) == 0;
}

void kedge_public_key_hash(const struct kedge_public_key *key, struct kedge_hash *ret_hash)
{
    kedge_sha256(kedge_view_of(key->b, sizeof key->b), ret_hash);
}

void kedge_sign(struct kedge_view message, const struct kedge_key_pair *pair, struct kedge_signature *ret_sig)
{
    int rc = crypto_sign_detached(ret_sig->b, NULL, message.ptr, message.len, pair->secret);
    KEDGE_ASSERT(rc == 0);
}

/* The tables can only add an early "yes"; "no" is always libsodium's. */
int kedge_verify(struct kedge_view message, const struct kedge_signature *sig,
                 const struct kedge_public_key *key)
{
    bool is_good = (atomic_load_explicit(&tables_allowed, memory_order_relaxed)
                    && kedgei_known_key_accepts(key, message, sig))
                   || crypto_sign_verify_detached(sig->b, message.ptr, message.len, key->b) == 0;
    return is_good ? KEDGE_OK : KEDGE_E_VERIFY;
}

bool kedge_verify_allow_tables(bool allowed)
{
    return atomic_exchange(&tables_allowed, allowed);
}
