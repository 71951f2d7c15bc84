/* tenant.quota and tenant.show: the operator sets what a tenant may have, and suspends it; the tenant reads
 * that and what it has used of it. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "coordinator/daemon/admin/admin.h"
#include "coordinator/daemon/admin/admin_args.h"
#include "coordinator/daemon/admin/authority.h"
#include "coordinator/daemon/admin/quotas.h"
#include "coordinator/daemon/host.h"

enum { BYTES_LEAST = 1024 }; /* a second; less would be a stop that nobody calls so */

static int get_limit(const json_t *args, const char *name, uint64_t most, uint64_t now, uint64_t *ret,
                     struct kedge_diag *d)
{
    const json_t *v = json_object_get(args, name);
    const json_int_t value = json_integer_value(v);
    if (v && (!json_is_integer(v) || value < 0 || (uint64_t)value > most)) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "\"%s\": expected 0 (what every tenant may) to %" PRIu64,
                              name, most);
    }
    *ret = v ? (uint64_t)value : now;
    return KEDGE_OK;
}

/* What is not named stays as it is. */
static int read_limits(const json_t *args, const struct kedge_quota *now, struct kedge_st_quota_set *ret,
                       struct kedge_diag *d)
{
    const uint64_t most = KEDGE_ST_QUOTA_MAX;
    uint64_t sites = 0, jobs = 0, tokens = 0, statements = 0;
    KEDGE_TRY(get_limit(args, "sites", most, now->sites, &sites, d));
    KEDGE_TRY(get_limit(args, "jobs", most, now->jobs, &jobs, d));
    KEDGE_TRY(get_limit(args, "tokens", most, now->tokens, &tokens, d));
    KEDGE_TRY(get_limit(args, "statements_per_s", most, now->statements_per_s, &statements, d));
    KEDGE_TRY(
        get_limit(args, "bytes_per_s", KEDGE_ST_QUOTA_BYTES_MAX, now->bytes_per_s, &ret->bytes_per_s, d));
    if (ret->bytes_per_s > 0 && ret->bytes_per_s < BYTES_LEAST) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "\"bytes_per_s\": expected 0, or %d and more", BYTES_LEAST);
    }
    ret->sites = (uint32_t)sites;
    ret->jobs = (uint32_t)jobs;
    ret->tokens = (uint32_t)tokens;
    ret->statements_per_s = (uint32_t)statements;
    return KEDGE_OK;
}

static int read_standing(const json_t *args, const struct kedge_quota *now, struct kedge_st_quota_set *ret,
                         struct kedge_diag *d)
{
    const json_t *suspended = json_object_get(args, "suspended"), *reason = json_object_get(args, "reason");
    const bool is_suspended = suspended ? json_is_true(suspended) : now->suspended;
    /* A suspended tenant is told why until somebody says otherwise. */
    const char *text = reason ? json_string_value(reason) : is_suspended && !suspended ? now->reason : "";
    if (suspended && !json_is_boolean(suspended)) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "\"suspended\": expected true or false");
    }
    if (!text || strlen(text) > KEDGE_ST_REASON_MAX) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "\"reason\": expected a text of at most %d bytes",
                              KEDGE_ST_REASON_MAX);
    }
    ret->standing = is_suspended ? KEDGE_TENANT_SUSPENDED : KEDGE_TENANT_ACTIVE;
    snprintf(ret->reason, sizeof ret->reason, "%s", text);
    return KEDGE_OK;
}

static int find_named(struct kedge_host *h, const json_t *args, struct kedge_tenant **ret,
                      struct kedge_diag *d)
{
    struct kedge_id id = {.s = ""};
    KEDGE_TRY(kedge_admin_viewer_tenant(args, &id, d));
    const uint32_t at = kedge_host_tenant_find(h, &id);
    *ret = at == KEDGE_COORD_NONE ? NULL : &h->tenants[at];
    return *ret ? KEDGE_OK : kedge_diag_set(d, KEDGE_E_NOT_FOUND, "no tenant \"%s\" here", id.s);
}

static int read_quota(struct kedge_host *h, const json_t *args, struct kedge_statement *st,
                      struct kedge_diag *d)
{
    struct kedge_tenant *t = NULL;
    KEDGE_TRY(find_named(h, args, &t, d));
    if (t->sites_coming > 0) { /* it was allowed by the quota of now, and would stand behind the next one */
        return kedge_diag_set(d, KEDGE_E_BUSY, "a site of tenant %s is being enrolled", t->id.s);
    }
    st->kind = KEDGE_ST_QUOTA_SET;
    st->u.quota_set.id = st->subject = t->salted;
    st->u.quota_set.number = t->quota.number + 1;
    KEDGE_TRY(read_limits(args, &t->quota, &st->u.quota_set, d));
    return read_standing(args, &t->quota, &st->u.quota_set, d);
}

static void set_quota(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    int err = st ? read_quota(h, args, st, &d) : KEDGE_E_NOMEM;
    if (err) {
        kedge_mem_free(st);
        kedge_admin_error(req, err, &d);
        return;
    }
    kedge_authority_state(h, req, st);
}

static json_t *limit_row(uint64_t used, uint64_t most)
{
    return json_pack("{s:I,s:I}", "used", (json_int_t)used, "most", (json_int_t)most);
}

static void show(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_tenant *t = NULL;
    int err = find_named(h, args, &t, &d);
    if (err) {
        kedge_admin_error(req, err, &d);
        return;
    }
    const uint32_t at = (uint32_t)(t - h->tenants);
    const struct kedge_quota *q = &t->quota;
    json_t *o = json_pack("{s:s,s:b,s:s,s:I,s:I}", "tenant", t->id.s, "suspended", q->suspended, "reason",
                          q->reason, "quota", (json_int_t)q->number, "ledger_size",
                          (json_int_t)kedge_ledger_size(t->log.ledger));
    json_object_set_new(o, "sites", limit_row(kedge_quota_sites(h, at), kedge_quota_sites_most(t)));
    json_object_set_new(o, "tokens", limit_row(t->tokens, kedge_quota_tokens_most(t)));
    json_object_set_new(o, "jobs", limit_row(kedge_quota_jobs(h, at), q->jobs));
    json_object_set_new(o, "statements_per_s", json_integer(q->statements_per_s));
    json_object_set_new(o, "bytes_per_s", json_integer((json_int_t)q->bytes_per_s));
    kedge_admin_ok(req, o);
}

bool kedge_admin_quotas(struct kedge_host *h, struct kedge_net_request *req, const char *verb,
                        const json_t *args)
{
    if (strcmp(verb, "tenant.quota") == 0) {
        set_quota(h, req, args);
        return true;
    }
    if (strcmp(verb, "tenant.show") == 0) {
        show(h, req, args);
        return true;
    }
    return false;
}
