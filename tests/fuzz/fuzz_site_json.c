/* Any bytes as a site's site.json and as its trust.json: an error that names the file, or names, addresses
 * and keys that are in order. */
#include <string.h>

#include "client/daemon/chain/identity.h"
#include "common/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void try_config(struct kedge_view text)
{
    struct kedge_site_config c;
    struct kedge_diag d = {.text = ""};
    if (kedge_site_config_parse(text, "site.json", &c, &d) != KEDGE_OK) {
        KEDGE_ASSERT(strncmp(d.text, "site.json: ", 11) == 0);
        return;
    }
    KEDGE_ASSERT(kedge_id_is_valid(kedge_view_str(c.tenant.s)));
    KEDGE_ASSERT(kedge_id_is_valid(kedge_view_str(c.site.s)));
    KEDGE_ASSERT(c.server[0] && memchr(c.server, '\0', sizeof c.server) != NULL);
}

static void try_trust(struct kedge_view text, const char *name)
{
    struct kedge_site_trust t;
    struct kedge_id tenant;
    struct kedge_diag d = {.text = ""};
    struct kedge_buf key;
    struct kedge_vkey again;
    KEDGE_ASSERT(kedge_id_from(kedge_view_str(name), &tenant) == KEDGE_OK);
    if (kedge_site_trust_parse(text, "trust.json", &tenant, &t, &d) != KEDGE_OK) {
        KEDGE_ASSERT(strncmp(d.text, "trust.json: ", 12) == 0);
        return;
    }
    KEDGE_ASSERT(t.known && memchr(t.deployment, '\0', sizeof t.deployment) != NULL);
    kedge_buf_init(&key, KEDGE_VKEY_MAX + 1); /* the keys can be written and read again */
    kedge_vkey_encode(&t.tenant_log, &key);
    KEDGE_ASSERT(kedge_vkey_decode(kedge_buf_view(&key), &again) == KEDGE_OK);
    KEDGE_ASSERT(strcmp(again.name, t.tenant_log.name) == 0);
    kedge_buf_deinit(&key);
    kedge_site_trust_deinit(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    try_config(kedge_view_of(data, len));
    try_trust(kedge_view_of(data, len), "org-a");
    try_trust(kedge_view_of(data, len), "a");
    return 0;
}
