/* Quotas of tenants. A quota is a statement of the main chain and is in force when it is durable; counts of
 * what is used are those of the tables. Rates are token buckets: a tenant may use a second's worth at once.
 */
#include "coordinator/daemon/admin/quotas.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/log.h"
#include "common/base/try.h"
#include "coordinator/daemon/admin/authority.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/jobs.h"
#include "coordinator/daemon/records.h"
#include "coordinator/daemon/tenant_keys.h"

#define NS_PER_S UINT64_C(1000000000)
enum { PIECE = 1024, NS_PER_MS = 1000000 }; /* a token of the bucket of bytes is that many */

/* ---- counts ---- */

uint32_t kedge_quota_sites(const struct kedge_host *h, uint32_t tenant)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < h->site_count; i++) {
        count += h->sites[i].tenant == tenant;
    }
    return count;
}

uint32_t kedge_quota_jobs(const struct kedge_host *h, uint32_t tenant)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < KEDGE_JOBS_MAX; i++) {
        const struct kedge_job *job = &h->jobs[i];
        count += job->used && !kedge_host_job_has_ended(job) && kedge_host_job_names(job, tenant)
                 && !job->left[tenant];
    }
    for (uint32_t i = 0; i < h->waiting.count; i++) {
        const struct kedge_waiting_job *w = h->waiting.jobs[i];
        const bool is_counted = w->coming && w->coming->slot != KEDGE_COORD_NONE; /* above, by its place */
        count += !is_counted && kedge_waiting_names(w, tenant);
    }
    return count;
}

uint32_t kedge_quota_sites_most(const struct kedge_tenant *t)
{
    return t->quota.sites ? t->quota.sites : KEDGE_QUOTA_SITES;
}

uint32_t kedge_quota_tokens_most(const struct kedge_tenant *t)
{
    return t->quota.tokens ? t->quota.tokens : KEDGE_QUOTA_TOKENS;
}

int kedge_quota_check_site(const struct kedge_host *h, uint32_t tenant, struct kedge_diag *d)
{
    const struct kedge_tenant *t = &h->tenants[tenant];
    const uint32_t most = kedge_quota_sites_most(t);
    if (kedge_authority_sets_quota(h, &t->salted)) {
        return kedge_diag_set(d, KEDGE_E_BUSY, "a quota of tenant %s is being written", t->id.s);
    }
    return kedge_quota_sites(h, tenant) + t->sites_coming < most
               ? KEDGE_OK
               : kedge_diag_set(d, KEDGE_E_FULL,
                                "tenant %s has as many sites as its quota lets it, %" PRIu32
                                ", revoked ones included; the operator sets it (kedge tenant quota)",
                                t->id.s, most);
}

int kedge_quota_check_token(const struct kedge_host *h, uint32_t tenant, struct kedge_diag *d)
{
    const struct kedge_tenant *t = &h->tenants[tenant];
    const uint32_t most = kedge_quota_tokens_most(t);
    return t->tokens < most
               ? KEDGE_OK
               : kedge_diag_set(d, KEDGE_E_FULL,
                                "tenant %s has made as many tokens for sites as its quota lets it, %" PRIu32
                                "; the operator sets it (kedge tenant quota)",
                                t->id.s, most);
}

int kedge_quota_check_job(const struct kedge_host *h, const struct kedge_job_spec *spec, struct kedge_diag *d)
{
    for (uint32_t i = 0; i < spec->tenant_count; i++) {
        const uint32_t at = kedge_host_tenant_find(h, &spec->tenants[i]);
        if (at == KEDGE_COORD_NONE) {
            continue; /* said elsewhere */
        }
        const struct kedge_tenant *t = &h->tenants[at];
        if (t->quota.suspended) {
            return kedge_diag_set(d, KEDGE_E_STATE, "tenant %s is suspended: it takes part in no new job",
                                  t->id.s);
        }
        if (t->quota.jobs && kedge_quota_jobs(h, at) >= t->quota.jobs) {
            return kedge_diag_set(d, KEDGE_E_FULL,
                                  "tenant %s is in as many jobs that go on as its quota lets it, %" PRIu32,
                                  t->id.s, t->quota.jobs);
        }
    }
    return KEDGE_OK;
}

/* ---- rates ---- */

/* At least a millisecond, or the answer would mean "at once". */
static uint32_t ms_of(uint64_t ns)
{
    const uint64_t ms = ns / NS_PER_MS + 1;
    return ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

static bool takes(struct kedge_net_request *req, struct kedge_bucket *b, const struct kedge_rate *rate,
                  uint32_t tokens, const char *text)
{
    const uint64_t now = kedge_os_now_ns();
    if (kedge_bucket_take(b, rate, tokens, now)) {
        return true;
    }
    kedge_host_reply_error(req, KEDGE_E_BUSY, ms_of(kedge_bucket_wait_ns(b, rate, tokens, now)), text);
    return false;
}

bool kedge_quota_takes_statement(struct kedge_host *h, struct kedge_net_request *req, uint32_t tenant)
{
    struct kedge_tenant *t = &h->tenants[tenant];
    const uint32_t most = t->quota.statements_per_s;
    const struct kedge_rate rate = {.interval_ns = most ? NS_PER_S / most : 0, .burst = most};
    char text[KEDGE_DIAG_TEXT_MAX];
    snprintf(text, sizeof text,
             "this tenant's sites may send %" PRIu32 " statements a second: come back then", most);
    return most == 0 || takes(req, &t->statements, &rate, 1, text);
}

/* A piece is taken while less than a second's worth is owed, however large it is, and is owed then: if it had
 * to fit, small ones of the tenant's other sites could keep a large one out for ever. */
bool kedge_quota_takes_bytes(struct kedge_host *h, struct kedge_net_request *req, uint32_t tenant,
                             size_t bytes)
{
    struct kedge_tenant *t = &h->tenants[tenant];
    const uint64_t most = t->quota.bytes_per_s;
    if (most == 0) {
        return true;
    }
    const uint32_t tokens = (uint32_t)(bytes / PIECE + 1);
    const uint64_t second = most / PIECE;
    const struct kedge_rate rate = {.interval_ns = NS_PER_S * PIECE / most,
                                    .burst = (uint32_t)second + tokens};
    char text[KEDGE_DIAG_TEXT_MAX];
    snprintf(text, sizeof text, "this tenant's sites may upload %" PRIu64 " bytes a second: come back then",
             most);
    return takes(req, &t->bytes, &rate, tokens, text);
}

/* ---- in force ---- */

/* A bucket knows when it is full again by the rate that was: a piece of an upload at a low one may be hours
 * away, and would keep a higher one from being of use. */
static void begin_anew(struct kedge_tenant *t, const struct kedge_st_quota_set *st)
{
    if (t->quota.statements_per_s != st->statements_per_s) {
        t->statements = (struct kedge_bucket){0};
    }
    if (t->quota.bytes_per_s != st->bytes_per_s) {
        t->bytes = (struct kedge_bucket){0};
    }
}

/* Sites of a tenant that is suspended now are hung up, so that no poll that waits here becomes a task. */
void kedge_host_quota_take(struct kedge_host *h, const struct kedge_st_quota_set *st)
{
    for (uint32_t i = 0; i < h->tenant_count; i++) {
        struct kedge_tenant *t = &h->tenants[i];
        if (!kedge_hash_eq(&t->salted, &st->id)) {
            continue;
        }
        begin_anew(t, st);
        t->quota = (struct kedge_quota){.number = st->number,
                                        .suspended = st->standing == KEDGE_TENANT_SUSPENDED,
                                        .sites = st->sites,
                                        .jobs = st->jobs,
                                        .tokens = st->tokens,
                                        .statements_per_s = st->statements_per_s,
                                        .bytes_per_s = st->bytes_per_s};
        memcpy(t->quota.reason, st->reason, sizeof t->quota.reason);
        for (uint32_t s = 0; s < h->site_count && t->quota.suspended && h->server; s++) {
            if (h->sites[s].tenant == i && h->sites[s].active) {
                (void)kedge_net_server_drop_key(h->server, &h->sites[s].tls_key);
            }
        }
        return;
    }
}

static bool is_quota(enum kedge_statement_kind kind)
{
    return kind == KEDGE_ST_QUOTA_SET;
}

static int take_entry(struct kedge_host *h, uint64_t index, struct kedge_statement *st, struct kedge_diag *d)
{
    struct kedge_signed_statement entry;
    struct kedge_buf bytes KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&bytes, KEDGE_ENTRY_MAX);
    int err = kedge_ledger_get(h->main.ledger, index, &bytes);
    if (!err) {
        err = kedge_statement_read(kedge_buf_view(&bytes), st, &entry, NULL);
        kedge_buf_deinit(&entry.payload);
    }
    if (err || st->kind != KEDGE_ST_QUOTA_SET) {
        return kedge_diag_set(d, err == KEDGE_E_NOMEM ? err : KEDGE_E_CORRUPT,
                              "log %s, entry %" PRIu64 ": cannot read the quota", h->main.origin, index);
    }
    kedge_host_quota_take(h, &st->u.quota_set);
    return KEDGE_OK;
}

/* In the order of the entries, so the newest of a tenant counts. */
static int load_quotas(struct kedge_host *h, struct kedge_diag *d)
{
    uint64_t *indexes KEDGE_CLEANUP(kedge_mem_release) = NULL;
    size_t count = 0;
    struct kedge_statement *st KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *st);
    int err = st ? kedge_entries_of(h->main.ledger, is_quota, &indexes, &count) : KEDGE_E_NOMEM;
    if (err) {
        return kedge_diag_set(d, err, "log %s: cannot read quotas: %s", h->main.origin, kedge_strerror(err));
    }
    for (size_t i = 0; i < count; i++) {
        KEDGE_TRY(take_entry(h, indexes[i], st, d));
    }
    return KEDGE_OK;
}

struct count_tokens {
    struct kedge_host *h;
    struct kedge_diag *d;
};

/* A damaged one is nobody's: it is logged, as where it is used, and keeps no coordinator from starting. */
static int count_token(void *arg, struct kedge_view key, struct kedge_view value)
{
    struct count_tokens *c = arg;
    struct kedge_token_record r;
    int err = kedge_token_record_decode(key, value, &r, c->d);
    if (err == KEDGE_E_CORRUPT) {
        kedge_log(KEDGE_LOG_ERROR, "token", "%s", c->d->text);
        *c->d = (struct kedge_diag){.text = ""};
        return KEDGE_OK;
    }
    KEDGE_TRY(err);
    const uint32_t at = kedge_host_tenant_find(c->h, &r.tenant);
    if (at != KEDGE_COORD_NONE) {
        c->h->tenants[at].tokens++;
    }
    return KEDGE_OK;
}

int kedge_host_quotas_load(struct kedge_host *h, struct kedge_diag *d)
{
    struct count_tokens c = {h, d};
    KEDGE_TRY(load_quotas(h, d));
    return kedge_kv_scan_once(h->kv, KEDGE_KV_TOKEN, kedge_view_of(NULL, 0), count_token, &c, d);
}
