/* Signatures of the EVM's transactions, by libsecp256k1 alone. High values of s are refused in recovery,
 * as the chain refuses them (EIP-2): each signature has a second one, with n - s, for the same message. */
#include "crypto/secp256k1.h"

#include <secp256k1.h>
#include <secp256k1_recovery.h>
#include <string.h>

#include "common/base/os/entropy.h"
#include "common/base/try.h"
#include "crypto/sign.h"

enum { SERIALISED = 65 }; /* 04 ‖ X ‖ Y */

/* A context per call: setting it up costs far less than a block's time, and nothing is shared. Randomised,
 * so that timing and power tell less about the key. */
static secp256k1_context *open_context(void)
{
    uint8_t seed[32];
    secp256k1_context *context = secp256k1_context_create(SECP256K1_CONTEXT_NONE);
    kedge_os_random(seed, sizeof seed);
    if (context && !secp256k1_context_randomize(context, seed)) {
        secp256k1_context_destroy(context);
        context = NULL;
    }
    kedge_wipe(seed, sizeof seed);
    return context;
}

static int put_public(const secp256k1_context *context, const secp256k1_pubkey *key,
                      struct kedge_secp_public *ret_public)
{
    uint8_t out[SERIALISED];
    size_t len = sizeof out;
    if (!secp256k1_ec_pubkey_serialize(context, out, &len, key, SECP256K1_EC_UNCOMPRESSED)
        || len != sizeof out) {
        return KEDGE_E_BUG;
    }
    memcpy(ret_public->b, out + 1, sizeof ret_public->b);
    return KEDGE_OK;
}

int kedge_secp_public_of(const struct kedge_secp_secret *secret, struct kedge_secp_public *ret_public)
{
    secp256k1_pubkey key;
    secp256k1_context *context = open_context();
    KEDGE_TRY_MEM(context);
    int err = secp256k1_ec_pubkey_create(context, &key, secret->b) ? put_public(context, &key, ret_public)
                                                                   : KEDGE_E_KEY;
    secp256k1_context_destroy(context);
    return err;
}

/* Nonces follow RFC 6979 (the library's default), and s is low already. A parity above 1 would mean that the
 * x of the nonce's point lies above the order, which happens with a probability of about 2⁻¹²⁷; a transaction
 * has no room for it. */
int kedge_secp_sign(const struct kedge_hash *hash, const struct kedge_secp_secret *secret,
                    struct kedge_secp_signature *ret_signature)
{
    secp256k1_ecdsa_recoverable_signature signature;
    uint8_t compact[64];
    int parity = 0, err = KEDGE_OK;
    secp256k1_context *context = open_context();
    KEDGE_TRY_MEM(context);
    if (!secp256k1_ec_seckey_verify(context, secret->b)
        || !secp256k1_ecdsa_sign_recoverable(context, &signature, hash->b, secret->b, NULL, NULL)) {
        err = KEDGE_E_KEY;
    } else {
        (void)secp256k1_ecdsa_recoverable_signature_serialize_compact(context, compact, &parity, &signature);
        err = parity > 1 ? KEDGE_E_BUG : KEDGE_OK;
    }
    secp256k1_context_destroy(context);
    if (!err) {
        memcpy(ret_signature->r, compact, 32);
        memcpy(ret_signature->s, compact + 32, 32);
        ret_signature->parity = (uint8_t)parity;
    }
    return err;
}

/* Recovery is what the chain itself does: the sender of a transaction is the key that comes out, so there
 * is no key to compare with before. */
int kedge_secp_recover(const struct kedge_hash *hash, const struct kedge_secp_signature *signature,
                       struct kedge_secp_public *ret_public)
{
    secp256k1_ecdsa_recoverable_signature recoverable;
    secp256k1_ecdsa_signature plain;
    secp256k1_pubkey key;
    uint8_t compact[64];
    if (signature->parity > 1) {
        return KEDGE_E_VERIFY;
    }
    secp256k1_context *context = open_context();
    KEDGE_TRY_MEM(context);
    memcpy(compact, signature->r, 32);
    memcpy(compact + 32, signature->s, 32);
    int err = KEDGE_E_VERIFY;
    if (secp256k1_ecdsa_recoverable_signature_parse_compact(context, &recoverable, compact, signature->parity)
        && secp256k1_ecdsa_recoverable_signature_convert(context, &plain, &recoverable)
        && !secp256k1_ecdsa_signature_normalize(context, NULL, &plain) /* 1: s was high */
        && secp256k1_ecdsa_recover(context, &key, &recoverable, hash->b)) {
        err = put_public(context, &key, ret_public);
    }
    secp256k1_context_destroy(context);
    return err;
}
