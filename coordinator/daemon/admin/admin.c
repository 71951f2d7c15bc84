/* Operators' requests: one JSON object in, one out. {"verb":"job.show","job":"a"}. The verbs are in the
 * tables of admin_members.c and admin_jobs.c; docs/modules/coordinator-daemon.md lists them. */
#include "coordinator/daemon/admin/admin.h"

#include <jansson.h>
#include <string.h>

#include "chain/log/checkpoint.h"
#include "chain/log/witness_policy.h"
#include "common/base/os/clock.h"
#include "common/json/json.h"
#include "coordinator/daemon/admin/admin_args.h"
#include "coordinator/daemon/admin/health.h"
#include "coordinator/daemon/admin/viewers.h"
#include "coordinator/daemon/erase.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/jobs.h"
#include "coordinator/daemon/sites/refused.h"
#include "coordinator/daemon/web/https.h"
#include "coordinator/daemon/web/read_tokens.h"

/* Keys of logs are told in the form that tools of transparency logs read: name, id and key in one
 * line. */
static void put_vkey(json_t *o, const char *key, const char *origin, const struct kedge_public_key *public)
{
    struct kedge_vkey vkey;
    struct kedge_buf text;
    kedge_buf_init(&text, KEDGE_VKEY_MAX + 1);
    if (kedge_vkey_make(kedge_view_str(origin), KEDGE_KEY_ED25519, public, &vkey) == KEDGE_OK) {
        kedge_vkey_encode(&vkey, &text);
        json_object_set_new(o, key, json_stringn((const char *)text.ptr, text.len));
    }
    kedge_buf_deinit(&text);
}

/* The root is what an owner compares who is to accept this chain in place of another one. */
static void put_main(json_t *o, struct kedge_host *h)
{
    struct kedge_buf text;
    struct kedge_note note;
    struct kedge_checkpoint cp;
    kedge_buf_init(&text, KEDGE_NOTE_MAX);
    kedge_host_main_note(h, &text);
    if (kedge_note_parse(kedge_buf_view(&text), &note) == KEDGE_OK
        && kedge_checkpoint_parse(note.text, &cp) == KEDGE_OK) {
        json_object_set_new(o, "main_size", json_integer((json_int_t)cp.size));
        json_object_set_new(o, "main_root", kedgei_json_hex(cp.root.b, sizeof cp.root.b));
    } else {
        json_object_set_new(o, "main_size", json_integer((json_int_t)kedge_ledger_size(h->main.ledger)));
    }
    kedge_buf_deinit(&text);
}

static uint32_t count_refusing(const struct kedge_host *h)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < h->site_count; i++) {
        count += h->sites[i].active && h->sites[i].refuses_since_ms > 0;
    }
    return count;
}

static void answer_status(struct kedge_host *h, struct kedge_net_request *req)
{
    json_t *o = json_object(), *listen = json_array();
    struct kedge_net_counters counters;
    uint32_t jobs = 0;
    for (unsigned i = 0; i < KEDGE_NET_URLS_MAX; i++) {
        const char *url = kedge_net_server_url(h->server, i);
        if (url) {
            json_array_append_new(listen, json_string(url));
        }
    }
    for (uint32_t i = 0; i < KEDGE_JOBS_MAX; i++) {
        struct kedge_coord_job_view view;
        const struct kedge_job *job = &h->jobs[i];
        jobs += job->used && !kedge_host_job_has_ended(job) && kedge_host_job_view(h, job, &view);
    }
    kedge_net_server_counters(h->server, &counters);
    json_object_set_new(o, "deployment", json_string(h->config.deployment));
    json_object_set_new(o, "fingerprint", kedgei_json_hex(h->tls_key.public.b, KEDGE_KEY_LEN));
    json_object_set_new(o, "statement_key", kedgei_json_hex(h->statement_key.public.b, KEDGE_KEY_LEN));
    put_vkey(o, "main_log", h->main.origin, &h->main.key.public);
    json_object_set_new(o, "listen", listen);
    if (kedge_host_https_url(h)) {
        json_object_set_new(o, "https", json_string(kedge_host_https_url(h)));
    }
    json_object_set_new(o, "tenants", json_integer(h->tenant_count));
    json_object_set_new(o, "sites", json_integer(h->site_count));
    json_object_set_new(o, "jobs_running", json_integer(jobs));
    json_object_set_new(o, "jobs_waiting", json_integer(h->waiting.count));
    json_object_set_new(o, "connections", json_integer((json_int_t)counters.connections));
    put_main(o, h);
    json_object_set_new(o, "sites_refusing", json_integer(count_refusing(h)));
    kedge_host_put_health(h, o);
    json_object_set_new(o, "now_ms", json_integer((json_int_t)kedge_os_unix_ms()));
    kedge_admin_ok(req, o);
}

void kedge_admin_tenant_status(struct kedge_host *h, struct kedge_net_request *req, uint32_t tenant)
{
    json_t *o = json_object();
    uint32_t sites = 0, online = 0, refusing = 0, jobs = 0;
    for (uint32_t i = 0; i < h->site_count; i++) {
        bool own = h->sites[i].tenant == tenant && h->sites[i].active;
        sites += own;
        online += own && kedge_coord_is_online(h->coord, i);
        refusing += own && h->sites[i].refuses_since_ms > 0;
    }
    for (uint32_t i = 0; i < KEDGE_JOBS_MAX; i++) {
        struct kedge_coord_job_view view;
        const struct kedge_job *job = &h->jobs[i];
        jobs += job->used && !kedge_host_job_has_ended(job) && kedge_host_job_names(job, tenant)
                && kedge_host_job_view(h, job, &view);
    }
    json_object_set_new(o, "deployment", json_string(h->config.deployment));
    json_object_set_new(o, "fingerprint", kedgei_json_hex(h->tls_key.public.b, KEDGE_KEY_LEN));
    json_object_set_new(o, "statement_key", kedgei_json_hex(h->statement_key.public.b, KEDGE_KEY_LEN));
    put_vkey(o, "main_log", h->main.origin, &h->main.key.public);
    if (kedge_host_https_url(h)) {
        json_object_set_new(o, "https", json_string(kedge_host_https_url(h)));
    }
    put_main(o, h);
    json_object_set_new(o, "tenant", json_string(h->tenants[tenant].id.s));
    json_object_set_new(o, "ledger_size",
                        json_integer((json_int_t)kedge_ledger_size(h->tenants[tenant].log.ledger)));
    json_object_set_new(o, "sites", json_integer(sites));
    json_object_set_new(o, "sites_online", json_integer(online));
    json_object_set_new(o, "sites_refusing", json_integer(refusing));
    json_object_set_new(o, "jobs_running", json_integer(jobs));
    json_object_set_new(o, "jobs_waiting",
                        json_integer(h->waiting.tenant_counts ? h->waiting.tenant_counts[tenant] : 0));
    json_object_set_new(o, "now_ms", json_integer((json_int_t)kedge_os_unix_ms()));
    kedge_admin_ok(req, o);
}

/* What an auditor should hear from somebody else than the operator; here to be compared and handed on. */
/* only: one tenant; KEDGE_COORD_NONE: all. */
static void answer_trust(struct kedge_host *h, struct kedge_net_request *req, uint32_t only)
{
    json_t *o = json_object(), *tenants = json_array(), *seen = json_array();
    struct kedge_buf note;
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    kedge_host_main_note(h, &note);
    if (note.len > 0) {
        json_array_append_new(seen, json_stringn((const char *)note.ptr, note.len));
    }
    kedge_buf_deinit(&note);
    json_object_set_new(o, "schema_version", json_integer(1));
    json_object_set_new(o, "deployment", json_string(h->config.deployment));
    /* the first one: a reader of the main chain follows the others from it */
    json_object_set_new(o, "statement_key", kedgei_json_hex(h->authority.book.keys[0].key.b, KEDGE_KEY_LEN));
    put_vkey(o, "main_log", h->main.origin, &h->main.key.public);
    for (uint32_t i = 0; i < h->tenant_count; i++) {
        if (only != KEDGE_COORD_NONE && i != only) {
            continue;
        }
        json_t *t = json_object();
        json_object_set_new(t, "tenant", json_string(h->tenants[i].id.s));
        json_object_set_new(t, "admin_key", kedgei_json_hex(h->tenants[i].admin_key.b, KEDGE_KEY_LEN));
        put_vkey(t, "log", h->tenants[i].log.origin, &h->tenants[i].log.key.public);
        json_array_append_new(tenants, t);
    }
    json_object_set_new(o, "tenants", tenants);
    json_object_set_new(o, "seen", seen);
    struct kedge_buf policy;
    kedge_buf_init(&policy, KEDGE_WITNESS_POLICY_MAX);
    kedge_host_witness_policy(h, &policy);
    if (policy.len > 0 && !policy.err) {
        json_object_set_new(o, "witness_policy", json_stringn((const char *)policy.ptr, policy.len));
    }
    kedge_buf_deinit(&policy);
    kedge_admin_ok(req, o);
}

void kedge_admin_tenant_trust(struct kedge_host *h, struct kedge_net_request *req, uint32_t tenant)
{
    answer_trust(h, req, tenant);
}

/* Verbs after which every log is what it was. All others wait until the core runs: a verb that
 * appends would make a log grow before the witnesses were heard. */
static bool only_reads(const char *verb)
{
    static const char *const words[] = {"list",    "show",   "model",  "pending", "groups", "position",
                                        "receipt", "events", "record", "spec",    "costs"};
    const char *dot = strchr(verb, '.');
    bool reads = !dot;
    for (size_t i = 0; dot && i < sizeof words / sizeof words[0]; i++) {
        reads = reads || strcmp(dot + 1, words[i]) == 0;
    }
    return reads;
}

/* Each group of verbs looks whether the verb is its own. */
void kedge_admin_dispatch(struct kedge_host *h, struct kedge_net_request *req, const char *verb,
                          const json_t *args)
{
    if (!only_reads(verb) && !h->begun) {
        kedge_host_reply_error(req, KEDGE_E_BUSY, KEDGE_SETTLE_RETRY_MS, KEDGE_SETTLE_TEXT);
    } else if (strcmp(verb, "status") == 0) {
        answer_status(h, req);
    } else if (strcmp(verb, "trust") == 0) {
        answer_trust(h, req, KEDGE_COORD_NONE);
    } else if (strncmp(verb, "read.", 5) == 0) {
        kedge_admin_read(h, req, verb, args);
    } else if (strncmp(verb, "viewer.", 7) == 0) {
        kedge_admin_viewers(h, req, verb, args);
    } else if (strncmp(verb, "job.", 4) == 0) {
        kedge_admin_jobs(h, req, verb, args);
    } else if (strncmp(verb, "event.", 6) == 0) {
        kedge_admin_events(h, req, verb, args);
    } else if (!kedge_admin_witnesses(h, req, verb, args) && !kedge_admin_erase(h, req, verb, args)
               && !kedge_admin_ledger(h, req, verb, args) && !kedge_admin_refusals(h, req, verb, args)) {
        kedge_admin_members(h, req, verb, args);
    }
}

/* Who may ask is looked at before what is asked exactly: somebody without the role learns nothing
 * of which names exist. */
void kedge_host_admin(struct kedge_host *h, struct kedge_net_request *req, struct kedge_view json)
{
    struct kedge_diag d = {.text = ""};
    json_t *args;
    const char *verb;
    int err = kedge_admin_open(json, &args, &verb, &d);
    if (err) {
        kedge_admin_error(req, err, &d);
        return;
    }
    if (!kedge_host_may_ask(h, kedge_net_request_peer(req), verb)) {
        (void)kedge_diag_set(&d, KEDGE_E_DENIED, "the role of this key does not include \"%.40s\"", verb);
        kedge_admin_error(req, KEDGE_E_DENIED, &d);
    } else if (strcmp(verb, "whoami") == 0) {
        kedge_admin_ok(req, json_pack("{s:s}", "role", kedge_host_role_name(h, kedge_net_request_peer(req))));
    } else {
        kedge_admin_dispatch(h, req, verb, args);
    }
    json_decref(args);
}
