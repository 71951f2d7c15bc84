/* Tenants and sites: added, enrolled and revoked by statements of the tenants' admins. The coordinator only
 * checks and appends what they signed. */
#include "coordinator/daemon/admin/admin.h"
#include <inttypes.h>

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "common/base/os/log.h"
#include "common/base/try.h"
#include "common/json/json.h"
#include "coordinator/daemon/admin/admin_append.h"
#include "coordinator/daemon/admin/admin_args.h"
#include "coordinator/daemon/admin/quotas.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/jobs.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/members.h"
#include "coordinator/daemon/rounds/troubles.h"

/* ---- tenants ---- */

/* Appends the admin's self-signed key as the ledger's first entry, before anything else runs on that ledger.
 */
static int start_ledger(struct kedge_host *h, const struct kedge_admin_signed *a, struct kedge_diag *d)
{
    struct kedge_state_log log;
    KEDGE_TRY(kedge_state_log_open(h->state, &a->tenant, KEDGE_STATE_WRITE, &log, d));
    struct kedge_ledger_append item = {.entry = a->envelope, .idem_key = kedge_view_str("key/admin")};
    int err = kedge_ledger_append(log.ledger, &item, 1, NULL, NULL, d);
    kedge_state_log_close(&log);
    return err;
}

/* Folders, first entry, and the tenant served from then on. Every step may have been done before a
 * crash: an existing folder is no error, and the first entry has its key, so the next `tenant add`
 * with the same envelope finishes what was begun. */
static int make_tenant(struct kedge_host *h, const struct kedge_admin_signed *a, struct kedge_diag *d)
{
    int err = kedge_state_tenant_create(h->state, &a->tenant, d);
    if (err != KEDGE_E_EXISTS) { /* a creation that a crash interrupted goes on */
        KEDGE_TRY(err);
    }
    KEDGE_TRY(start_ledger(h, a, d));
    return kedge_host_tenant_load(h, &a->tenant, d);
}

static int add_tenant(struct kedge_host *h, const struct kedge_admin_signed *a, struct kedge_diag *d)
{
    KEDGE_TRY(kedge_admin_check_key(a, &h->main.key.public, d));
    if (kedge_host_tenant_find(h, &a->tenant) != KEDGE_COORD_NONE) {
        return kedge_diag_set(d, KEDGE_E_EXISTS, "tenant %s exists already", a->tenant.s);
    }
    KEDGE_TRY(kedge_host_tenant_room(h, d));
    return make_tenant(h, a, d);
}

static void tenant_add(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_admin_signed a;
    int err = kedge_admin_signed_args(args, &a, &d);
    if (!err) {
        err = add_tenant(h, &a, &d);
    }
    if (err) {
        kedge_admin_error(req, err, &d);
        return;
    }
    json_t *o = json_object();
    json_object_set_new(o, "tenant", json_string(a.tenant.s));
    json_object_set_new(o, "origin", json_string(h->tenants[h->tenant_count - 1].log.origin));
    kedge_admin_ok(req, o);
}

static void tenant_list(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    json_t *list = json_array();
    const char *only = json_string_value(json_object_get(args, "tenant"));
    for (uint32_t i = 0; i < h->tenant_count; i++) {
        if (only && strcmp(only, h->tenants[i].id.s) != 0) {
            continue;
        }
        json_t *o = json_object();
        uint32_t sites = 0;
        for (uint32_t s = 0; s < h->site_count; s++) {
            sites += h->sites[s].tenant == i && h->sites[s].active;
        }
        json_object_set_new(o, "tenant", json_string(h->tenants[i].id.s));
        json_object_set_new(o, "sites", json_integer(sites));
        json_object_set_new(o, "ledger_size",
                            json_integer((json_int_t)kedge_ledger_size(h->tenants[i].log.ledger)));
        json_object_set_new(o, "origin", json_string(h->tenants[i].log.origin));
        json_object_set_new(o, "admin_key", kedgei_json_hex(h->tenants[i].admin_key.b, KEDGE_KEY_LEN));
        json_array_append_new(list, o);
    }
    kedge_admin_ok(req, json_pack("{s:o}", "tenants", list));
}

/* ---- sites ---- */

static void not_enrolled(struct kedge_host *h, struct kedge_admin_append *a)
{
    h->sites_coming--;
    h->tenants[a->tenant].sites_coming--;
}

/* Durable: from here on the site is in the table and may connect. That the name is in it already is
 * no error: the statement was repeated. */
static void enrolled(struct kedge_host *h, struct kedge_admin_append *a)
{
    uint32_t site;
    h->sites_coming--;
    h->tenants[a->tenant].sites_coming--;
    const struct kedge_st_site_enrolled *st = &a->st->u.site_enrolled;
    if (kedge_host_site_find(h, a->tenant, &st->site) == KEDGE_COORD_NONE) {
        int err = kedge_host_site_add(h, a->tenant, st, &site);
        kedge_log(KEDGE_LOG_INFO, "site enrolled", "tenant=%s site=%s%s%s", st->tenant.s, st->site.s,
                  err ? ": " : "", err ? kedge_strerror(err) : "");
    }
}

/* All that could fail is checked before the append: a durable statement that then finds no place
 * would leave a site that the ledger knows and nobody serves. Enrolments on their way count as
 * sites (sites_coming). */
static void site_enroll(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_admin_append *a = kedge_admin_append_new(req);
    int err = kedge_admin_append_open(h, args, KEDGE_ST_SITE_ENROLLED, a, &d);
    const struct kedge_st_site_enrolled *st = err ? NULL : &a->st->u.site_enrolled;
    if (st && !kedge_id_eq(&st->tenant, &h->tenants[a->tenant].id)) {
        err = kedge_diag_set(&d, KEDGE_E_DENIED, "the statement is about another tenant");
    } else if (st && kedge_host_site_find(h, a->tenant, &st->site) == KEDGE_COORD_NONE
               && (kedge_host_site_by_key(h, &st->tls_key) != KEDGE_COORD_NONE
                   || kedge_host_witness_by_key(h, &st->tls_key) != KEDGE_COORD_NONE
                   || !kedge_public_key_is_valid(&st->tls_key)
                   || !kedge_public_key_is_valid(&st->statement_key))) {
        err = kedge_diag_set(&d, KEDGE_E_EXISTS, "a key of this site is invalid or belongs to another site");
    } else if (st && kedge_host_site_find(h, a->tenant, &st->site) == KEDGE_COORD_NONE
               && h->site_count + h->sites_coming >= KEDGE_SITES_MAX) {
        err = kedge_diag_set(&d, KEDGE_E_FULL, "no room for more than %d sites", KEDGE_SITES_MAX);
    } else if (st && kedge_host_site_find(h, a->tenant, &st->site) == KEDGE_COORD_NONE) {
        err = kedge_quota_check_site(h, a->tenant, &d);
    }
    if (err) {
        kedge_admin_append_fail(a, err, &d);
        return;
    }
    char key[KEDGE_IDEM_KEY_MAX + 1];
    snprintf(key, sizeof key, "site-enrolled/%s", st->site.s);
    a->then = enrolled;
    a->undo = not_enrolled;
    h->sites_coming++;
    h->tenants[a->tenant].sites_coming++;
    kedge_admin_append_submit(h, a, args, key);
}

static void revoked(struct kedge_host *h, struct kedge_admin_append *a)
{
    uint32_t site = kedge_host_site_find(h, a->tenant, &a->st->u.site_revoked.site);
    unsigned closed = kedge_net_server_drop_key(h->server, &h->sites[site].tls_key);
    kedge_log(KEDGE_LOG_INFO, "site revoked", "tenant=%s site=%s connections=%u", h->tenants[a->tenant].id.s,
              h->sites[site].id.s, closed);
}

/* The statement must name the key that is in force, so that an old envelope cannot revoke a site
 * that has rotated since. Revoking works at once and not when it is durable: an admin who revokes a
 * stolen device must not wait for the disk. If the append fails the site stays shut out until the
 * next start, and the admin is told. */
static void site_revoke(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_admin_append *a = kedge_admin_append_new(req);
    int err = kedge_admin_append_open(h, args, KEDGE_ST_SITE_REVOKED, a, &d);
    const struct kedge_st_site_revoked *st = err ? NULL : &a->st->u.site_revoked;
    uint32_t site = st ? kedge_host_site_find(h, a->tenant, &st->site) : KEDGE_COORD_NONE;
    if (st
        && (site == KEDGE_COORD_NONE || !kedge_id_eq(&st->tenant, &h->tenants[a->tenant].id)
            || !kedge_public_key_eq(&st->statement_key, &h->sites[site].statement_key))) {
        err =
            kedge_diag_set(&d, KEDGE_E_NOT_FOUND, "no site \"%s\" with that key in this tenant", st->site.s);
    }
    if (err) {
        kedge_admin_append_fail(a, err, &d);
        return;
    }
    char key[KEDGE_IDEM_KEY_MAX + 1];
    snprintf(key, sizeof key, "site-revoked/%s", st->site.s);
    kedge_host_site_revoke(
        h, site); /* at once, before the statement is durable: from here on nothing of it is taken */
    a->then = revoked;
    kedge_admin_append_submit(h, a, args, key);
}

/* ---- what sites are ---- */

static void labelled(struct kedge_host *h, struct kedge_admin_append *a)
{
    const struct kedge_st_site_labels *st = &a->st->u.site_labels;
    uint32_t site = kedge_host_site_find(h, a->tenant, &st->site);
    if (site != KEDGE_COORD_NONE && st->number > h->sites[site].labels_number) { /* else it was repeated */
        kedge_host_site_label(h, site, st);
        kedge_log(KEDGE_LOG_INFO, "site labelled", "tenant=%s site=%s labels=\"%s\"", st->tenant.s,
                  st->site.s, st->labels);
    }
}

/* Numbers have no gaps, so that a statement which was kept back shows. Of two that were signed at once the
 * second is refused: who signed it had not seen the first. */
static void site_label(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_admin_append *a = kedge_admin_append_new(req);
    int err = kedge_admin_append_open(h, args, KEDGE_ST_SITE_LABELS, a, &d);
    if (err) {
        kedge_admin_append_fail(a, err, &d);
        return;
    }
    const struct kedge_st_site_labels *st = &a->st->u.site_labels;
    uint32_t site = kedge_host_site_find(h, a->tenant, &st->site);
    if (site == KEDGE_COORD_NONE || !kedge_id_eq(&st->tenant, &h->tenants[a->tenant].id)) {
        err = kedge_diag_set(&d, KEDGE_E_NOT_FOUND, "no site \"%s\" in this tenant", st->site.s);
    } else if (!a->repeated && st->number != h->sites[site].labels_number + 1) {
        err = kedge_diag_set(&d, KEDGE_E_STATE,
                             "number %" PRIu32 " of the labels of site %s, after number %" PRIu32
                             "; ask for the newest and sign again",
                             st->number, st->site.s, h->sites[site].labels_number);
    }
    if (err) {
        kedge_admin_append_fail(a, err, &d);
        return;
    }
    char key[KEDGE_IDEM_KEY_MAX + 1];
    snprintf(key, sizeof key, "site-labels/%s/%08" PRIu32, st->site.s, st->number);
    a->then = labelled;
    kedge_admin_append_submit(h, a, args, key);
}

static void site_list(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_admin_filter wanted = {.tenant = NULL};
    struct kedge_diag d;
    struct kedge_id id;
    int err = kedge_admin_filter_args(args, &wanted, &d);
    const char *tenant = wanted.tenant;
    if (!err && tenant
        && (kedge_id_from(kedge_view_str(tenant), &id) != KEDGE_OK
            || kedge_host_tenant_find(h, &id) == KEDGE_COORD_NONE)) {
        err = kedge_diag_set(&d, KEDGE_E_NOT_FOUND, "no tenant \"%.63s\" here", tenant);
    }
    if (err) {
        kedge_admin_error(req, err, &d);
        return;
    }
    json_t *list = json_array();
    for (uint32_t i = 0; i < h->site_count; i++) {
        const struct kedge_site_entry *s = &h->sites[i];
        if (tenant && strcmp(tenant, h->tenants[s->tenant].id.s) != 0) {
            continue;
        }
        json_t *o = json_object();
        json_object_set_new(o, "tenant", json_string(h->tenants[s->tenant].id.s));
        json_object_set_new(o, "site", json_string(s->id.s));
        json_object_set_new(o, "state", json_string(s->active ? "active" : "revoked"));
        json_object_set_new(o, "labels", json_string(s->labels.text));
        json_object_set_new(o, "labels_number", json_integer(s->labels_number));
        json_object_set_new(o, "last_seen_ms", json_integer((json_int_t)s->last_seen_ms));
        if (s->refuses_since_ms > 0) {
            json_object_set_new(o, "refuses_main_since_ms", json_integer((json_int_t)s->refuses_since_ms));
        }
        json_object_set_new(o, "online", json_boolean(kedge_coord_is_online(h->coord, i)));
        json_object_set_new(o, "troubles", kedge_host_troubles_of(h, i, kedge_admin_sees_texts(h, req)));
        json_object_set_new(o, "tls_key", kedgei_json_hex(s->tls_key.b, KEDGE_KEY_LEN));
        json_object_set_new(o, "statement_key", kedgei_json_hex(s->statement_key.b, KEDGE_KEY_LEN));
        json_array_append_new(list, o);
    }
    kedge_admin_ok(req, json_pack("{s:o}", "sites", list));
}

/* ---- jobs that a tenant joins ---- */

static void joined(struct kedge_host *h, struct kedge_admin_append *a)
{
    struct kedge_job *job = kedge_host_job_find(h, &a->st->u.job_joined.job, false);
    if (job && kedge_host_job_is_told(job)) { /* else its ledger says so when the core is told of the job */
        job->joined[a->tenant] = true;
        struct kedge_coord_event ev = {.type = KEDGE_EV_JOB_JOINED, .job = job->slot, .tenant = a->tenant};
        kedge_host_step(h, &ev);
    }
}

/* A job that is to be joined or left: one that runs, or waits for its place. */
struct named_job {
    struct kedge_job *job; /* NULL: it waits */
    const struct kedge_hash *spec;
};

/* KEDGE_E_NO_JOB: there is none, or it is none of this tenant's, which is told no difference. */
static int find_named(struct kedge_host *h, uint32_t tenant, const struct kedge_id *said_tenant,
                      const struct kedge_id *name, struct named_job *ret, struct kedge_diag *d)
{
    struct kedge_job *job = kedge_host_job_find(h, name, false);
    const struct kedge_waiting_job *w = job ? NULL : kedge_waiting_find(h, name);
    const bool is_named =
        job ? kedge_host_job_names(job, tenant) : w && !w->coming && kedge_waiting_names(w, tenant);
    if (!is_named || !kedge_id_eq(said_tenant, &h->tenants[tenant].id)) {
        return kedge_diag_set(d, KEDGE_E_NO_JOB, "no running job \"%s\" names this tenant", name->s);
    }
    *ret = (struct named_job){job, job ? &job->spec_digest : &w->spec};
    return KEDGE_OK;
}

/* What the tenant's ledger says of a job that the core was not told of yet. */
static bool says(const struct kedge_host *h, uint32_t tenant, const char *kind, const struct kedge_id *job)
{
    char key[KEDGE_IDEM_KEY_MAX + 1];
    snprintf(key, sizeof key, "%s/%s", kind, job->s);
    return kedge_ledger_find(h->tenants[tenant].log.ledger, kedge_view_str(key), NULL) == KEDGE_OK;
}

static bool has_joined(const struct kedge_host *h, const struct kedge_admin_append *a,
                       const struct named_job *n, const struct kedge_id *job)
{
    return n->job && kedge_host_job_is_told(n->job) ? n->job->joined[a->tenant]
                                                    : says(h, a->tenant, "job-joined", job);
}

static bool has_left(const struct kedge_host *h, const struct kedge_admin_append *a,
                     const struct named_job *n, const struct kedge_id *job)
{
    return n->job && kedge_host_job_is_told(n->job) ? n->job->left[a->tenant]
                                                    : says(h, a->tenant, "job-left", job);
}

/* The statement names the digest of the spec: a tenant joins what it has read, and not a name under
 * which something else could stand. */
static int check_join(struct kedge_host *h, const struct kedge_admin_append *a, struct kedge_diag *d)
{
    const struct kedge_st_job_joined *st = &a->st->u.job_joined;
    struct named_job n;
    KEDGE_TRY(find_named(h, a->tenant, &st->tenant, &st->job, &n, d));
    if (!kedge_hash_eq(&a->st->subject, n.spec)) {
        return kedge_diag_set(d, KEDGE_E_DENIED, "the statement joins another spec of job \"%s\"", st->job.s);
    }
    return has_left(h, a, &n, &st->job)
               ? kedge_diag_set(d, KEDGE_E_STATE, "tenant %s has left job \"%s\": a tenant joins a job once",
                                st->tenant.s, st->job.s)
               : KEDGE_OK;
}

static void tenant_join(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_admin_append *a = kedge_admin_append_new(req);
    int err = kedge_admin_append_open(h, args, KEDGE_ST_JOB_JOINED, a, &d);
    err = err ? err : check_join(h, a, &d);
    if (err) {
        kedge_admin_append_fail(a, err, &d);
        return;
    }
    char key[KEDGE_IDEM_KEY_MAX + 1];
    snprintf(key, sizeof key, "job-joined/%s", a->st->u.job_joined.job.s);
    a->then = joined;
    kedge_admin_append_submit(h, a, args, key);
}

static void take_out(struct kedge_host *h, struct kedge_job *job, uint32_t tenant)
{
    struct kedge_coord_event ev = {.type = KEDGE_EV_JOB_LEFT, .job = job->slot, .tenant = tenant};
    job->left[tenant] = true;
    kedge_host_step(h, &ev);
}

/* The core may have been told of the job while the statement was being written. */
static void left(struct kedge_host *h, struct kedge_admin_append *a)
{
    struct kedge_job *job = kedge_host_job_find(h, &a->st->u.job_left.job, false);
    if (job && kedge_host_job_is_told(job) && !job->left[a->tenant]) {
        take_out(h, job, a->tenant);
    }
    kedge_log(KEDGE_LOG_INFO, "job left", "tenant=%s job=%s entry=%" PRIu64 "%s", h->tenants[a->tenant].id.s,
              a->st->u.job_left.job.s, a->index, a->repeated ? " (repeated)" : "");
}

/* ret: NULL while it waits. */
static int check_leave(struct kedge_host *h, const struct kedge_admin_append *a, struct kedge_job **ret,
                       struct kedge_diag *d)
{
    const struct kedge_st_job_left *st = &a->st->u.job_left;
    struct named_job n;
    KEDGE_TRY(find_named(h, a->tenant, &st->tenant, &st->job, &n, d));
    if (!has_joined(h, a, &n, &st->job) || !kedge_hash_eq(&a->st->subject, n.spec)) {
        return kedge_diag_set(d, KEDGE_E_STATE, "tenant %s has not joined job \"%s\" with this spec",
                              st->tenant.s, st->job.s);
    }
    *ret = n.job && kedge_host_job_is_told(n.job) ? n.job : NULL;
    return KEDGE_OK;
}

/* As with a site that is revoked it works at once and not when it is durable: a site's statement that comes
 * after this moment would stand behind job-left. If the append fails the tenant's sites stay out of the job
 * until the next start, and the admin is told and can say it again. */
static void tenant_leave(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_admin_append *a = kedge_admin_append_new(req);
    struct kedge_job *job = NULL;
    int err = kedge_admin_append_open(h, args, KEDGE_ST_JOB_LEFT, a, &d);
    if (!err && !a->repeated) {
        err = check_leave(h, a, &job, &d);
    }
    if (err) {
        kedge_admin_append_fail(a, err, &d);
        return;
    }
    char key[KEDGE_IDEM_KEY_MAX + 1];
    snprintf(key, sizeof key, "job-left/%s", a->st->u.job_left.job.s);
    if (job) {
        take_out(h, job, a->tenant);
    }
    a->then = left;
    kedge_admin_append_submit(h, a, args, key);
}

/* ---- who answers for whom ---- */

static void contact_noted(struct kedge_host *h, struct kedge_admin_append *a)
{
    const struct kedge_st_contact *st = &a->st->u.contact;
    kedge_log(KEDGE_LOG_INFO, "contact", "tenant=%s about=%s entry=%" PRIu64, h->tenants[a->tenant].id.s,
              st->about.s, a->index);
}

/* Who answers for a site is a commitment only; the text itself never comes here
 * (chain/statement/contact.h). */
static void contact_set(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_admin_append *a = kedge_admin_append_new(req);
    int err = kedge_admin_append_open(h, args, KEDGE_ST_CONTACT, a, &d);
    const struct kedge_st_contact *st = err ? NULL : &a->st->u.contact;
    if (st && !kedge_id_eq(&st->tenant, &h->tenants[a->tenant].id)) {
        err = kedge_diag_set(&d, KEDGE_E_DENIED, "the statement is about another tenant");
    } else if (st && st->about.s[0] && kedge_host_site_find(h, a->tenant, &st->about) == KEDGE_COORD_NONE) {
        err = kedge_diag_set(&d, KEDGE_E_NOT_FOUND, "no site \"%s\" in this tenant", st->about.s);
    }
    if (err) {
        kedge_admin_append_fail(a, err, &d);
        return;
    }
    char key[KEDGE_IDEM_KEY_MAX + 1], hex[KEDGE_HASH_HEX_LEN + 1];
    kedge_hash_hex(&st->commitment, hex);
    snprintf(key, sizeof key, "contact/%s", hex);
    a->then = contact_noted;
    kedge_admin_append_submit(h, a, args, key);
}

void kedge_admin_members(struct kedge_host *h, struct kedge_net_request *req, const char *verb,
                         const json_t *args)
{
    static const struct {
        const char *verb;
        void (*run)(struct kedge_host *h, struct kedge_net_request *req, const json_t *args);
    } verbs[] = {
        {"tenant.add", tenant_add},
        {"tenant.list", tenant_list},
        {"tenant.join", tenant_join},
        {"tenant.leave", tenant_leave},
        {"site.token", kedge_admin_site_token},
        {"site.pending", kedge_admin_site_pending},
        {"site.enroll", site_enroll},
        {"site.revoke", site_revoke},
        {"site.label", site_label},
        {"site.list", site_list},
        {"contact.set", contact_set},
    };
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(verbs[i].verb, verb) == 0) {
            verbs[i].run(h, req, args);
            return;
        }
    }
    if (kedge_admin_quotas(h, req, verb, args) || kedge_admin_keys(h, req, verb, args)
        || kedge_admin_roles(h, req, verb, args)) {
        return;
    }
    struct kedge_diag d;
    (void)kedge_diag_set(&d, KEDGE_E_NOT_FOUND, "unknown verb \"%.40s\"", verb);
    kedge_admin_error(req, KEDGE_E_NOT_FOUND, &d);
}
