/* Heads of CONNECT, as a relay and as its client read them. What is taken as a target is asked for again as
 * such. */
#include <string.h>

#include "common/base/err.h"
#include "common/net/proxy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct kedgei_address to, again;
    char request[KEDGE_PROXY_REQUEST_MAX];
    unsigned status = kedgei_proxy_status(kedge_view_of(data, len));
    KEDGE_ASSERT(status <= 999);
    if (kedgei_proxy_target(kedge_view_of(data, len), &to) == 200) {
        size_t n = kedgei_proxy_request(&to, "", request);
        KEDGE_ASSERT(n > 0 && kedgei_proxy_target(kedge_view_of(request, n), &again) == 200);
        KEDGE_ASSERT(strcmp(to.host, again.host) == 0 && strcmp(to.port, again.port) == 0);
    }
    return 0;
}
