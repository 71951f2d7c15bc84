/* Trust files: any text is refused or understood; what is understood is in order and finds itself. */
#include "chain/audit/audit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct kedge_trust trust;
    struct kedge_diag d;
    if (kedge_trust_parse(kedge_view_of(data, len), &trust, &d) != KEDGE_OK) {
        KEDGE_ASSERT(d.text[0] != '\0');
        return 0;
    }
    KEDGE_ASSERT(trust.tenant_count <= KEDGE_TENANTS_MAX && trust.seen_count <= KEDGE_TRUST_SEEN_MAX);
    for (uint32_t i = 0; i < trust.tenant_count; i++) {
        KEDGE_ASSERT(kedge_trust_find(&trust, &trust.tenants[i].tenant) == &trust.tenants[i]);
        KEDGE_ASSERT(kedge_public_key_is_valid(&trust.tenants[i].admin_key));
    }
    kedge_trust_deinit(&trust);
    return 0;
}
