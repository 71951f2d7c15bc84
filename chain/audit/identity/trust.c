/* The trust file: strict JSON, one spelling of every key.
 *
 * What an auditor has from elsewhere: keys, checkpoints that were seen, whose anchors count. Everything
 * that the audit claims rests on this file, so it is read strictly (an unknown or repeated key is an
 * error, lists ascend). The coordinator's command writes it (`kedge audit trust`). */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/anchor/kind.h"
#include "chain/audit/audit.h"
#include "chain/audit/identity/trust_anchors.h"
#include "chain/log/checkpoint.h"
#include "chain/log/witness_policy.h"
#include "common/base/mem.h"
#include "common/base/os/file.h"
#include "common/base/try.h"
#include "common/json/json.h"

static int bad(struct kedge_diag *d, const char *field, const char *expected)
{
    return kedge_diag_set(d, KEDGE_E_FORMAT, "%s: expected %s", field, expected);
}

static struct kedge_view string_of(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);
    const char *s = json_string_value(v);
    return s ? kedge_view_of(s, json_string_length(v)) : kedge_view_of(NULL, 0);
}

static int read_key(const json_t *object, const char *field, struct kedge_public_key *ret,
                    struct kedge_diag *d)
{
    if (kedge_hex_decode(string_of(object, field), ret->b, sizeof ret->b) != KEDGE_OK
        || !kedge_public_key_is_valid(ret)) {
        return bad(d, field, "an Ed25519 public key, 64 lower-case hex digits");
    }
    return KEDGE_OK;
}

/* The name inside a verifier key is the log's origin, and enters its key id; a key of another log must
 * not pass for this one because somebody pasted the wrong line. */
static int read_vkey(const json_t *object, const char *field, const char *deployment, const char *name,
                     struct kedge_vkey *ret, struct kedge_diag *d)
{
    char origin[KEDGE_ORIGIN_MAX + 1];
    snprintf(origin, sizeof origin, "%s/%s", deployment, name);
    if (kedge_vkey_decode(string_of(object, field), ret) != KEDGE_OK || ret->type != KEDGE_KEY_ED25519) {
        return bad(d, field, "an Ed25519 verifier key, \"name+hash+base64\"");
    }
    if (strcmp(ret->name, origin) != 0) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "%s: names \"%.80s\", expected \"%s\"", field, ret->name,
                              origin);
    }
    return KEDGE_OK;
}

/* The next tenant of the list, into the place behind those that were read. */
static int read_tenant(const json_t *o, struct kedge_trust *t, struct kedge_diag *d)
{
    static const char *const keys[] = {"tenant", "admin_key", "log", NULL};
    struct kedge_trust_tenant *row = &t->tenants[t->tenant_count];
    if (!json_is_object(o)) {
        return bad(d, "tenants", "objects");
    }
    KEDGE_TRY(kedgei_trust_check_keys(o, keys, "tenants", d));
    if (kedge_id_from(string_of(o, "tenant"), &row->tenant) != KEDGE_OK) {
        return bad(d, "tenant", "a tenant's name");
    }
    if (t->tenant_count > 0 && kedge_id_cmp(&row[-1].tenant, &row->tenant) >= 0) {
        return bad(d, "tenants", "tenants in ascending order, each once");
    }
    KEDGE_TRY(read_key(o, "admin_key", &row->admin_key, d));
    return read_vkey(o, "log", t->deployment, row->tenant.s, &row->log, d);
}

static int read_tenants(const json_t *root, struct kedge_trust *t, struct kedge_diag *d)
{
    const json_t *list = json_object_get(root, "tenants");
    size_t count = json_array_size(list);
    if (!json_is_array(list) || count > KEDGE_TENANTS_MAX) {
        return bad(d, "tenants", "a list of at most 4096 objects");
    }
    t->tenants = kedge_mem_new(count ? count : 1, sizeof *t->tenants);
    if (!t->tenants) {
        return kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        int err = read_tenant(json_array_get(list, i), t, d);
        if (err) {
            return kedge_diag_wrap(d, err, "tenants[%zu]", i);
        }
        t->tenant_count++;
    }
    return KEDGE_OK;
}

static int read_seen(const json_t *root, struct kedge_trust *t, struct kedge_diag *d)
{
    const json_t *list = json_object_get(root, "seen");
    size_t count = json_array_size(list);
    if (!list) {
        return KEDGE_OK;
    }
    if (!json_is_array(list) || count > KEDGE_TRUST_SEEN_MAX) {
        return bad(d, "seen", "a list of at most 64 signed checkpoints");
    }
    t->seen = kedge_mem_new(count ? count : 1, sizeof *t->seen);
    for (size_t i = 0; t->seen && i < count; i++) {
        const json_t *v = json_array_get(list, i);
        if (!json_is_string(v) || json_string_length(v) > KEDGE_CHECKPOINT_MAX) {
            return bad(d, "seen", "signed checkpoints of at most 4096 bytes");
        }
        t->seen[i] = kedge_mem_strdup(json_string_value(v));
        if (!t->seen[i]) {
            return kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory");
        }
        t->seen_count++;
    }
    return t->seen ? KEDGE_OK : kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory");
}

/* It is parsed here, although only the text is kept: a policy that cannot be read must be told when the
 * file is read and not in the middle of an audit. */
static int read_witness_policy(const json_t *root, struct kedge_trust *t, struct kedge_diag *d)
{
    struct kedge_witness_policy *policy = NULL;
    const json_t *v = json_object_get(root, "witness_policy");
    if (!v) {
        return KEDGE_OK;
    }
    if (!json_is_string(v) || json_string_length(v) > KEDGE_WITNESS_POLICY_MAX) {
        return bad(d, "witness_policy", "the text of a witness policy (c2sp.org/tlog-policy)");
    }
    int err = kedge_witness_policy_parse(string_of(root, "witness_policy"), &policy, d);
    kedge_witness_policy_free(policy);
    if (err) {
        return kedge_diag_wrap(d, err, "witness_policy");
    }
    t->witness_policy = kedge_mem_strdup(json_string_value(v));
    return t->witness_policy ? KEDGE_OK : kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory");
}

static int read_all(const json_t *root, struct kedge_trust *t, struct kedge_diag *d)
{
    static const char *const keys[] = {"schema_version", "deployment", "statement_key",
                                       "main_log",       "tenants",    "seen",
                                       "witness_policy", "anchors",    NULL};
    KEDGE_TRY(kedgei_trust_check_keys(root, keys, "trust file", d));
    const json_t *version = json_object_get(root, "schema_version");
    if (!json_is_integer(version) || json_integer_value(version) != 1) {
        return bad(d, "schema_version", "1");
    }
    struct kedge_view deployment = string_of(root, "deployment");
    if (deployment.len == 0 || deployment.len > KEDGE_DEPLOYMENT_MAX) {
        return bad(d, "deployment", "the deployment's name, 1 to 128 characters");
    }
    memcpy(t->deployment, deployment.ptr, deployment.len);
    t->deployment[deployment.len] = '\0';
    KEDGE_TRY(read_key(root, "statement_key", &t->statement_key, d));
    KEDGE_TRY(read_vkey(root, "main_log", t->deployment, "main", &t->main_log, d));
    KEDGE_TRY(read_tenants(root, t, d));
    KEDGE_TRY(read_seen(root, t, d));
    KEDGE_TRY(read_witness_policy(root, t, d));
    return kedgei_trust_anchors_read(json_object_get(root, "anchors"), &t->anchors, d);
}

int kedge_trust_parse(struct kedge_view text, struct kedge_trust *ret, struct kedge_diag *reterr)
{
    struct kedge_trust t;
    json_t *root = NULL;
    memset(&t, 0, sizeof t);
    KEDGE_TRY(kedgei_json_load(text, KEDGE_TRUST_FILE_MAX, "trust file", &root, reterr));
    int err = read_all(root, &t, reterr);
    json_decref(root);
    if (err) {
        kedge_trust_deinit(&t);
        return err;
    }
    *ret = t;
    return KEDGE_OK;
}

int kedge_trust_read(const char *path, struct kedge_trust *ret, struct kedge_diag *reterr)
{
    struct kedge_buf text;
    kedge_buf_init(&text, KEDGE_TRUST_FILE_MAX);
    int err = kedge_file_read(path, &text, reterr);
    if (!err) {
        err = kedge_trust_parse(kedge_buf_view(&text), ret, reterr);
        err = err ? kedge_diag_wrap(reterr, err, "%s", path) : KEDGE_OK;
    }
    kedge_buf_deinit(&text);
    return err;
}

void kedge_trust_deinit(struct kedge_trust *trust)
{
    for (uint32_t i = 0; i < trust->seen_count; i++) {
        kedge_mem_free(trust->seen[i]);
    }
    kedge_mem_free(trust->seen);
    kedge_mem_free(trust->witness_policy);
    kedge_trust_anchors_deinit(&trust->anchors);
    kedge_mem_free(trust->tenants);
    memset(trust, 0, sizeof *trust);
}

const struct kedge_trust_tenant *kedge_trust_find(const struct kedge_trust *trust,
                                                  const struct kedge_id *tenant)
{
    size_t lo = 0, hi = trust->tenant_count;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        int c = kedge_id_cmp(&trust->tenants[mid].tenant, tenant);
        if (c == 0) {
            return &trust->tenants[mid];
        }
        if (c < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return NULL;
}
