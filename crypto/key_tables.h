/* Tables of the keys that this process checks often, kept within a bound. Internal to this room. */
#ifndef KEDGE_CRYPTO_KEY_TABLES_H
#define KEDGE_CRYPTO_KEY_TABLES_H

#include "crypto/sign.h"

/* true: libsodium accepts this signature. false: ask libsodium. From any thread; at most 16 MiB for all keys,
 * nothing for a key that is seen three times. */
bool kedgei_known_key_accepts(const struct kedge_public_key *key, struct kedge_view message,
                              const struct kedge_signature *sig);

#endif
