/* Who a site is and whom it believes: SITE/site.json, which enrolment makes, and what of SITE/trust.json
 * (docs/record.md) a site needs. Strict JSON. Pure. */
#ifndef KEDGE_CLIENT_DAEMON_CHAIN_IDENTITY_H
#define KEDGE_CLIENT_DAEMON_CHAIN_IDENTITY_H

#include "chain/log/note.h"
#include "chain/log/witness_policy.h"
#include "chain/statement/statement.h"
#include "common/base/text.h"
#include "crypto/sign.h"

enum {
    KEDGE_IDENTITY_FILE_MAX = 65536,
    KEDGE_IDENTITY_TRUST_MAX = 1024 * 1024, /* what auditors take, too: 256 tenants and 64 notes */
};

struct kedge_site_config {
    struct kedge_id tenant, site;
    char server[256];
    struct kedge_public_key server_key;
    bool has_token;
    uint8_t token_secret[32]; /* until enrolled */
};

struct kedge_site_trust {
    bool known;
    char deployment[KEDGE_ST_NAME_MAX + 1];
    struct kedge_public_key statement_key;
    struct kedge_vkey main_log, tenant_log;
    struct kedge_witness_policy *witness_policy; /* owned; NULL: none is demanded */
};

/* `where` begins the messages: the file's path. KEDGE_E_FORMAT, KEDGE_E_TOO_LONG, KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_site_config_parse(struct kedge_view text, const char *where,
                                            struct kedge_site_config *ret, struct kedge_diag *reterr);
/* The part of a trust file that the sites of `tenant` need; ret->known is true then. Errors as above. Free
 * with kedge_site_trust_deinit. */
KEDGE_NODISCARD int kedge_site_trust_parse(struct kedge_view text, const char *where,
                                           const struct kedge_id *tenant, struct kedge_site_trust *ret,
                                           struct kedge_diag *reterr);
void kedge_site_trust_deinit(struct kedge_site_trust *t);

#endif
