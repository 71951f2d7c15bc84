/* Any 32 bytes as a key, any 64 as a signature: what the tables accept, libsodium accepts. Half of the cases
 * are signatures of a key made from the input with some of its bytes changed, so that they come close. */
#include <sodium.h>
#include <string.h>

#include "crypto/edwards.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct kedgei_key_table table;
    struct kedge_key_pair pair;
    struct kedge_seed seed;
    struct kedge_signature sig;
    if (kedge_crypto_init() != KEDGE_OK || size < 1 + sizeof seed + sizeof sig) {
        return 0;
    }
    struct kedge_view message =
        kedge_view_of(data + 1 + sizeof seed + sizeof sig, size - 1 - sizeof seed - sizeof sig);
    memcpy(&seed, data + 1, sizeof seed);
    memcpy(&sig, data + 1 + sizeof seed, sizeof sig);
    memcpy(pair.public.b, seed.b, sizeof seed);
    if (data[0] & 1) {
        struct kedge_signature own;
        kedge_key_from_seed(&seed, &pair);
        kedge_sign(message, &pair, &own);
        for (size_t i = 0; i < sizeof own.b; i++) {
            uint8_t change = (uint8_t)(sig.b[i] & (sig.b[i] >> 1) & (sig.b[i] >> 2)); /* often none */
            sig.b[i] = (uint8_t)(data[0] & 2 ? own.b[i] : own.b[i] ^ change);
        }
    }
    if (!kedgei_key_table_init(&pair.public, &table)) {
        KEDGE_ASSERT(!(data[0] & 1));
        return 0;
    }
    bool is_good = crypto_sign_verify_detached(sig.b, message.ptr, message.len, pair.public.b) == 0;
    KEDGE_ASSERT(kedgei_key_table_accepts(&table, &pair.public, message, &sig) == is_good);
    return 0;
}
