/* OpenSSF model signatures: read under the key of the vectors; nothing that a fuzzer finds may verify. */
#include "chain/export/oms.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const char key[] = /* the point of the secret 1: whoever wants may sign with it, no fuzzer does */
    "-----BEGIN PUBLIC KEY-----\n"
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt\n"
    "6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==\n"
    "-----END PUBLIC KEY-----\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct kedge_oms oms;
    struct kedge_diag d = {.text = ""};
    int err = kedge_oms_open(kedge_view_of(data, len), kedge_view_str(key), &oms, &d);
    KEDGE_ASSERT(err != KEDGE_OK && d.text[0] != '\0');
    return 0;
}
