/* Key files and certificates: what is accepted is a key that survives being written and read. */
#include <string.h>

#include "crypto/cert.h"
#include "crypto/keyfile.h"
#include "crypto/sealed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_public(const struct kedge_public_key *key)
{
    struct kedge_public_key again;
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, KEDGE_PEM_MAX);
    KEDGE_ASSERT(kedge_pem_put_public(&b, key) == KEDGE_OK);
    KEDGE_ASSERT(kedge_pem_get_public(kedge_buf_view(&b), &again) == KEDGE_OK);
    KEDGE_ASSERT(kedge_public_key_eq(&again, key));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct kedge_view bytes = kedge_view_of(data, len);
    struct kedge_key_pair pair, again;
    struct kedge_public_key key;
    struct kedge_sealed sealed;
    if (kedge_sealed_decode(bytes, &sealed) == KEDGE_OK) { /* one spelling, and nothing is derived yet */
        struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
        kedge_buf_init(&b, KEDGE_PEM_MAX);
        kedge_sealed_encode(&sealed, &b);
        KEDGE_ASSERT(kedge_view_eq(kedge_buf_view(&b), bytes));
        KEDGE_ASSERT(sealed.cost.memory_kib <= KEDGE_SEAL_MEMORY_MAX_KIB);
    }
    if (kedge_pem_get_private(bytes, &pair) == KEDGE_OK) {
        struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
        kedge_buf_init(&b, KEDGE_PEM_MAX);
        KEDGE_ASSERT(kedge_pem_put_private(&b, &pair) == KEDGE_OK);
        KEDGE_ASSERT(kedge_pem_get_private(kedge_buf_view(&b), &again) == KEDGE_OK);
        KEDGE_ASSERT(memcmp(&pair, &again, sizeof pair) == 0);
    }
    if (kedge_pem_get_public(bytes, &key) == KEDGE_OK) {
        check_public(&key);
    }
    return 0;
}
