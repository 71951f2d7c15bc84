/* Any text as an address: refused with a diagnostic, or taken apart into host and port that have an end.
 * Plain TCP is never taken unless it was asked for. */
#include <string.h>

#include "common/base/mem.h"
#include "common/net/address.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void try_address(const char *url, bool insecure)
{
    struct kedgei_address address;
    struct kedge_diag d = {.text = ""};
    if (kedgei_address_parse(url, insecure, &address, &d) != KEDGE_OK) {
        KEDGE_ASSERT(d.text[0] != '\0');
        return;
    }
    KEDGE_ASSERT(insecure || strncmp(url, "tcp:", 4) != 0);
    KEDGE_ASSERT(memchr(address.host, '\0', sizeof address.host) != NULL);
    KEDGE_ASSERT(memchr(address.port, '\0', sizeof address.port) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char *url = kedge_mem_new(len + 1, 1);
    KEDGE_ASSERT(url != NULL);
    if (len > 0) {
        memcpy(url, data, len);
    }
    try_address(url, true);
    try_address(url, false);
    kedge_mem_free(url);
    return 0;
}
