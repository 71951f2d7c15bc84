/* Any bytes as the coordinator's config.json: an error that names something, or settings within their ranges.
 */
#include <string.h>

#include "coordinator/daemon/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct kedge_config config;
    struct kedge_diag d = {.text = ""};
    if (kedge_config_parse(kedge_view_of(data, len), &config, &d) != KEDGE_OK) {
        KEDGE_ASSERT(d.text[0] != '\0');
        return 0;
    }
    KEDGE_ASSERT(config.deployment[0] != '\0' && strlen(config.deployment) < sizeof config.deployment);
    KEDGE_ASSERT(config.listen_count < KEDGE_NET_URLS_MAX
                 && config.operator_count <= KEDGE_CONFIG_OPERATORS_MAX);
    for (unsigned i = 0; i < config.listen_count; i++) {
        KEDGE_ASSERT(memchr(config.listen[i], '\0', sizeof config.listen[i]) != NULL);
    }
    return 0;
}
