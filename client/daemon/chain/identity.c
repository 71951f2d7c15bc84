/* site.json and trust.json, read into structs. Pure.
 *
 * site.json says who the site is and which server key it pins; its secret, the enrolment token, is wiped from
 * the copy that was parsed. trust.json is the owner's own and optional, in the format that auditors use
 * (docs/record.md); of its tenants only this site's log is taken, and a file without that one is an error,
 * since receipts could not be checked by it. */
#include "client/daemon/chain/identity.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "common/json/json.h"

static const char *text_of(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

static bool get_id(const json_t *o, const char *key, struct kedge_id *ret)
{
    const char *text = text_of(o, key);
    return text && kedge_id_from(kedge_view_str(text), ret) == KEDGE_OK;
}

static bool get_hex(const json_t *o, const char *key, uint8_t ret[32])
{
    const char *text = text_of(o, key);
    return text && kedge_hex_decode(kedge_view_str(text), ret, 32) == KEDGE_OK;
}

static bool get_vkey(const json_t *o, const char *key, struct kedge_vkey *ret)
{
    const char *text = text_of(o, key);
    return text && kedge_vkey_decode(kedge_view_str(text), ret) == KEDGE_OK;
}

int kedge_site_config_parse(struct kedge_view text, const char *where, struct kedge_site_config *ret,
                            struct kedge_diag *reterr)
{
    struct kedge_site_config c = {.has_token = false};
    json_t *o = NULL;
    int err = kedgei_json_load(text, KEDGE_IDENTITY_FILE_MAX, where, &o, reterr);
    const char *server = text_of(o, "server");
    if (!err
        && (!get_id(o, "tenant", &c.tenant) || !get_id(o, "site", &c.site) || !server || !server[0]
            || strlen(server) >= sizeof c.server || !get_hex(o, "server_key", c.server_key.b))) {
        err =
            kedge_diag_set(reterr, KEDGE_E_FORMAT, "%s: expected tenant, site, server and server_key", where);
    }
    if (!err) {
        snprintf(c.server, sizeof c.server, "%s", server);
        c.has_token = get_hex(o, "token_secret", c.token_secret);
        *ret = c;
    }
    kedge_wipe(&c, sizeof c);
    json_decref(o);
    return err;
}

static int read_witness_policy(const json_t *o, const char *where, struct kedge_site_trust *t,
                               struct kedge_diag *d)
{
    const json_t *v = json_object_get(o, "witness_policy");
    if (!v) {
        return KEDGE_OK;
    }
    if (!json_is_string(v)) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "%s: \"witness_policy\": expected the text of a witness policy", where);
    }
    int err = kedge_witness_policy_parse(kedge_view_of(json_string_value(v), json_string_length(v)),
                                         &t->witness_policy, d);
    return err ? kedge_diag_wrap(d, err, "%s: \"witness_policy\"", where) : KEDGE_OK;
}

void kedge_site_trust_deinit(struct kedge_site_trust *t)
{
    kedge_witness_policy_free(t->witness_policy);
    *t = (struct kedge_site_trust){.known = false};
}

int kedge_site_trust_parse(struct kedge_view text, const char *where, const struct kedge_id *tenant,
                           struct kedge_site_trust *ret, struct kedge_diag *reterr)
{
    struct kedge_site_trust t = {.known = true};
    json_t *o = NULL;
    int err = kedgei_json_load(text, KEDGE_IDENTITY_TRUST_MAX, where, &o, reterr);
    const char *deployment = text_of(o, "deployment");
    bool found = false;
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(o, "tenants"), i, row)
    {
        const char *name = text_of(row, "tenant");
        if (name && strcmp(name, tenant->s) == 0) {
            found = get_vkey(row, "log", &t.tenant_log);
        }
    }
    if (!err
        && (!found || !deployment || strlen(deployment) >= sizeof t.deployment
            || !get_hex(o, "statement_key", t.statement_key.b) || !get_vkey(o, "main_log", &t.main_log))) {
        err = kedge_diag_set(reterr, KEDGE_E_FORMAT,
                             "%s: expected deployment, statement_key, main_log and this tenant's log", where);
    }
    if (!err) {
        err = read_witness_policy(o, where, &t, reterr);
    }
    if (!err) {
        snprintf(t.deployment, sizeof t.deployment, "%s", deployment);
        *ret = t;
    }
    json_decref(o);
    return err;
}
