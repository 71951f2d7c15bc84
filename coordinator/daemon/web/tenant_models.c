/* Everything is told from the main chain: which spec the job has its job-opened says, which models are the
 * job's last ones its releases say. Whether the tenant joined the job is asked first, and of the tenant's own
 * ledger alone: so an answer about a job of others cannot differ, in its bytes or its time, from one about a
 * job that does not exist. */
#include "coordinator/daemon/web/tenant_models.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "chain/statement/statement.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/json/json.h"
#include "coordinator/daemon/admin/admin.h"
#include "coordinator/daemon/admin/admin_args.h"
#include "coordinator/daemon/admin/tenant_verbs.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/restore/ended_job.h"
#include "coordinator/daemon/rounds/release.h"
#include "coordinator/daemon/sites/blobs.h"
#include "coordinator/daemon/sites/requests.h"
#include "coordinator/daemon/tenant_keys.h"

static const char not_joined[] = "no job of this name names a tenant that this key sees";

/* One key may be an admin's of several tenants. */
static int check_joined(const struct kedge_host *h, const struct kedge_public_key *key,
                        const struct kedge_id *job, struct kedge_diag *d)
{
    char name[KEDGE_IDEM_KEY_MAX + 1];
    uint64_t index;
    snprintf(name, sizeof name, "job-joined/%s", job->s);
    for (uint32_t i = 0; i < h->tenant_count; i++) {
        if (kedge_tenant_shows_to(&h->tenants[i], key)
            && kedge_ledger_find(h->tenants[i].log.ledger, kedge_view_str(name), &index) == KEDGE_OK) {
            return KEDGE_OK;
        }
    }
    return kedge_diag_set(d, KEDGE_E_DENIED, "%s", not_joined);
}

/* ---- the main chain ---- */

static int read_entry(const struct kedge_host *h, uint64_t index, struct kedge_statement *ret)
{
    struct kedge_signed_statement parts;
    struct kedge_buf entry;
    kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
    int err = kedge_ledger_get(h->main.ledger, index, &entry);
    if (!err) {
        err = kedge_statement_read(kedge_buf_view(&entry), ret, &parts, NULL);
        kedge_buf_deinit(&parts.payload);
    }
    kedge_buf_deinit(&entry);
    return err == KEDGE_E_NOMEM || !err ? err : KEDGE_E_CORRUPT;
}

/* What the entry of this kind says in its subject. */
static int read_subject(const struct kedge_host *h, uint64_t index, struct kedge_hash *ret)
{
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    int err = st ? read_entry(h, index, st) : KEDGE_E_NOMEM;
    if (!err) {
        *ret = st->subject;
    }
    kedge_mem_free(st);
    return err;
}

/* What the job began with: its spec, and the base that its models are a part of, zero: none. */
struct opened {
    struct kedge_hash spec, base;
};

static int read_opened(const struct kedge_host *h, uint64_t index, struct opened *ret)
{
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    int err = st ? read_entry(h, index, st) : KEDGE_E_NOMEM;
    if (!err) {
        *ret = (struct opened){st->subject, st->u.job_opened.base_model};
    }
    kedge_mem_free(st);
    return err;
}

/* KEDGE_E_STATE: it has not begun. */
static int find_opened(struct kedge_host *h, const struct kedge_id *job, struct opened *ret,
                       struct kedge_diag *d)
{
    char name[KEDGE_IDEM_KEY_MAX + 1];
    uint64_t index;
    snprintf(name, sizeof name, "job-opened/%s", job->s);
    int err = kedge_ledger_find(h->main.ledger, kedge_view_str(name), &index);
    if (!err) {
        err = read_opened(h, index, ret);
    }
    return err == KEDGE_E_NOT_FOUND
               ? kedge_diag_set(d, KEDGE_E_STATE, "job \"%s\" has not begun: it has no models yet", job->s)
               : err;
}

/* A group's released model. KEDGE_E_NOT_FOUND: there is none. KEDGE_E_BUSY: witnesses are still to cosign it;
 * which ones is for the operator. */
static int find_model(struct kedge_host *h, const struct kedge_id *job, uint32_t group, uint64_t *ret_index,
                      struct kedge_hash *ret, struct kedge_diag *d)
{
    int err = kedge_host_release_find(h, job, group, 0, ret_index, d);
    if (err == KEDGE_E_BUSY) {
        return kedge_diag_set(d, err, "job \"%s\" is released, and its witnesses are still to cosign that",
                              job->s);
    }
    KEDGE_TRY(err);
    return read_subject(h, *ret_index, ret);
}

/* ---- job.model ---- */

static int put_model(struct kedge_host *h, uint64_t index, uint32_t group, const struct kedge_hash *digest,
                     json_t *models, struct kedge_diag *d)
{
    json_t *row =
        json_pack("{s:i,s:o}", "group", (int)group, "digest", kedgei_json_hex(digest->b, KEDGE_HASH_LEN));
    int err = kedge_host_main_tell(h, index, row, "release", "proof", d);
    if (err) {
        json_decref(row);
        return err;
    }
    json_array_append_new(models, row);
    return KEDGE_OK;
}

/* Groups are asked for until the first that has no release; then either some were found, or the
 * reason is told. */
static int put_models(struct kedge_host *h, const struct kedge_id *job, json_t *models, struct kedge_diag *d)
{
    for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
        uint64_t index;
        struct kedge_hash digest;
        int err = find_model(h, job, g, &index, &digest, d);
        if (err == KEDGE_E_NOT_FOUND) {
            break; /* the releases of a job are of its groups 0, 1, … without a gap */
        }
        KEDGE_TRY(err);
        KEDGE_TRY(put_model(h, index, g, &digest, models, d));
    }
    if (json_array_size(models) > 0) {
        return KEDGE_OK;
    }
    return kedge_ended_job_is_closed(h, job)
               ? kedge_diag_set(d, KEDGE_E_STATE, "job \"%s\" has ended without releasing a model", job->s)
               : kedge_diag_set(d, KEDGE_E_STATE, "job \"%s\" goes on: its models come when it is completed",
                                job->s);
}

static int answer_job(struct kedge_host *h, const struct kedge_id *job, json_t *o, struct kedge_diag *d)
{
    struct opened opened;
    json_auto_t *models = json_array();
    KEDGE_TRY(find_opened(h, job, &opened, d));
    KEDGE_TRY(put_models(h, job, models, d));
    KEDGE_TRY(kedge_host_opened_tell(h, job, o, d));
    json_object_set_new(o, "job", json_string(job->s));
    json_object_set_new(o, "state", json_string("completed")); /* only such a job releases models */
    json_object_set_new(o, "spec", kedgei_json_hex(opened.spec.b, KEDGE_HASH_LEN));
    json_object_set(o, "models", models);
    return KEDGE_OK;
}

/* ---- requests ---- */

static bool is_shown_any(const struct kedge_host *h, const struct kedge_public_key *key,
                         const uint32_t *tenants, uint32_t count)
{
    bool yes = false;
    for (uint32_t i = 0; i < count && !yes; i++) {
        yes = kedge_tenant_shows_to(&h->tenants[tenants[i]], key);
    }
    return yes;
}

/* A job that runs, or waits for its place, and for the tenant, which has to read what it is asked to join. */
static bool is_invited(struct kedge_host *h, const struct kedge_public_key *key, const struct kedge_id *id)
{
    const struct kedge_job *job = kedge_host_job_find(h, id, false);
    const struct kedge_waiting_job *w = job ? NULL : kedge_waiting_find(h, id);
    if (job) {
        return is_shown_any(h, key, job->params.tenants, job->params.tenant_count);
    }
    return w && !w->coming && is_shown_any(h, key, w->tenants, w->tenant_count);
}

static int check_member(struct kedge_host *h, const struct kedge_public_key *key, const struct kedge_id *job,
                        struct kedge_diag *d)
{
    int err = check_joined(h, key, job, d);
    return err && is_invited(h, key, job) ? KEDGE_OK : err;
}

static int find_job(struct kedge_host *h, const struct kedge_public_key *key, const json_t *args,
                    struct kedge_id *ret, struct kedge_diag *d)
{
    const char *name = json_string_value(json_object_get(args, "job"));
    return name && kedge_id_from(kedge_view_str(name), ret) == KEDGE_OK
               ? check_member(h, key, ret, d)
               : kedge_diag_set(d, KEDGE_E_DENIED, "%s", not_joined);
}

/* What is told of a job to each of its tenants: that it may read what it is to sign, and see how it goes. */
static bool shows_job(const char *verb)
{
    static const char *const verbs[] = {"job.show", "job.spec", "job.events"};
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(verbs[i], verb) == 0) {
            return true;
        }
    }
    return false;
}

static void answer_model(struct kedge_host *h, struct kedge_net_request *req, const struct kedge_id *job)
{
    struct kedge_diag d = {.text = ""};
    json_t *o = json_object();
    int err = answer_job(h, job, o, &d);
    kedge_admin_answer(req, err, &d, o);
}

void kedge_host_tenant_admin(struct kedge_host *h, struct kedge_net_request *req, struct kedge_view json)
{
    struct kedge_diag d = {.text = ""};
    json_auto_t *args = NULL;
    const char *verb = NULL;
    const struct kedge_public_key *key = &kedge_net_request_peer(req)->key;
    struct kedge_id job = {.s = ""};
    int err = kedge_admin_open(json, &args, &verb, &d);
    bool takes = !err && strcmp(verb, "job.model") == 0;
    if (!err && (takes || shows_job(verb))) {
        err = find_job(h, key, args, &job, &d);
    } else if (!err) {
        if (kedge_admin_tenant_verb(h, req, verb, args)) {
            return;
        }
        err = kedge_diag_set(&d, KEDGE_E_DENIED,
                             "not an operator of this coordinator: who is of a tenant may not ask \"%.40s\"",
                             verb);
    }
    if (err) {
        kedge_admin_error(req, err, &d);
    } else if (takes) {
        answer_model(h, req, &job);
    } else if (strcmp(verb, "job.show") == 0) {
        kedge_admin_job_show_to(h, req, args, key);
    } else {
        kedge_admin_dispatch(h, req, verb, args);
    }
}

/* ---- pieces ---- */

/* A blob is handed out if it is the job's spec or one of its released models, and not because its
 * digest is known. */
static int may_get(struct kedge_host *h, const struct kedge_public_key *key, const struct kedge_id *job,
                   const struct kedge_hash *digest, struct kedge_diag *d)
{
    uint64_t index;
    struct opened opened;
    struct kedge_hash named;
    KEDGE_TRY(check_member(h, key, job, d));
    KEDGE_TRY(find_opened(h, job, &opened, d));
    const bool is_base = !kedge_hash_is_zero(&opened.base) && kedge_hash_eq(&opened.base, digest);
    named = is_base ? opened.base : opened.spec;
    for (uint32_t g = 0; !kedge_hash_eq(&named, digest) && g < KEDGE_GROUPS_MAX; g++) {
        KEDGE_TRY(find_model(h, job, g, &index, &named, d));
    }
    return kedge_hash_eq(&named, digest) ? KEDGE_OK : KEDGE_E_NOT_FOUND;
}

void kedge_host_tenant_model_get(struct kedge_host *h, struct kedge_net_request *req,
                                 const struct kedge_msg_blob_get *get)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_hash digest;
    memcpy(digest.b, get->digest, sizeof digest.b);
    int err = may_get(h, &kedge_net_request_peer(req)->key, &get->job, &digest, &d);
    if (!err) {
        kedge_host_blob_send(h, req, &digest, get->offset, get->max);
    } else if (err == KEDGE_E_BUSY || err == KEDGE_E_NOMEM || err == KEDGE_E_CORRUPT) {
        kedge_host_reply_error(req, err, 0, d.text[0] ? d.text : kedge_strerror(err));
    } else { /* nor is it said that it exists */
        kedge_host_reply_error(req, KEDGE_E_NOT_FOUND, 0, "no such blob");
    }
}
