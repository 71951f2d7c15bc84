/* kedge job submit, join: a spec on its way in, and an organisation's word on it. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "chain/store/ledger.h"
#include "cli/cli.h"
#include "cli/job/job_send.h"
#include "cli/local.h"
#include "cli/receipt.h"
#include "common/base/mem.h"
#include "job/job_spec.h"

enum { SPEC_MAX = 65536, OPENED_WAIT_MS = 2000 };

/* Reads a spec and checks it here, where the answer can name the file. *ret: its text, to deinit. */
static int read_spec(const char *path, struct kedge_job_spec *ret_spec, struct kedge_buf *ret,
                     struct kedge_diag *d)
{
    int err = kedge_cli_read_file(path, SPEC_MAX, ret, d);
    if (!err) {
        err = kedge_job_spec_parse(kedge_buf_view(ret), ret_spec, d);
        err = err == KEDGE_E_NOT_FOUND ? KEDGE_E_FORMAT : err; /* a key: no file is missing */
        err = err ? kedge_diag_wrap(d, err, "%s", path) : KEDGE_OK;
    }
    return err;
}

/* As text, not as JSON: the coordinator, the tenants and the auditor sign and hash the very bytes of the
 * file. */
static int read_spec_text(const char *path, json_t **ret_text, struct kedge_job_spec *spec,
                          struct kedge_diag *d)
{
    struct kedge_buf text;
    kedge_buf_init(&text, SPEC_MAX);
    int err = read_spec(path, spec, &text, d);
    if (!err) {
        *ret_text = json_stringn((const char *)text.ptr, text.len);
        err = *ret_text ? KEDGE_OK : kedge_diag_set(d, KEDGE_E_FORMAT, "%s: expected UTF-8 text", path);
    }
    kedge_buf_deinit(&text);
    return err;
}

/* Sites of the job's tenants that are enrolled, and what of the spec wants more: the job waits, or takes
 * fewer, which nobody would see. What cannot be asked is not said. */
static void say_few_sites(struct kedge_cli *c, const struct kedge_job_spec *spec)
{
    struct kedge_diag d = {.text = ""};
    json_t *answer = NULL;
    const json_t *one;
    size_t i;
    unsigned sites = 0;
    if (kedge_cli_admin(c, json_pack("{s:s}", "verb", "site.list"), &answer, &d) != KEDGE_OK) {
        return;
    }
    json_array_foreach(json_object_get(answer, "sites"), i, one)
    {
        for (uint32_t t = 0; t < spec->tenant_count; t++) {
            sites += strcmp(kedge_cli_text(one, "tenant"), spec->tenants[t].s) == 0
                     && strcmp(kedge_cli_text(one, "state"), "active") == 0;
        }
    }
    bool is_told = json_is_array(json_object_get(answer, "sites"));
    json_decref(answer);
    if (!is_told) {
        return;
    }
    if (spec->sites_min > sites) {
        kedge_cli_say(c,
                      "\"sites_min\" is %u, but the job's tenants have %u sites so far: no round opens "
                      "before more enrol.\n",
                      spec->sites_min, sites);
    } else if (spec->sites_per_round > sites) {
        kedge_cli_say(c,
                      "\"sites_per_round\" is %u, but the job's tenants have %u sites so far: a round takes "
                      "all of them.\n",
                      spec->sites_per_round, sites);
    }
}

/* The path goes to the coordinator, which reads the file itself: it is made absolute, because the coordinator
 * runs in another folder. */
static int add_initial(json_t *request, const char *initial, struct kedge_diag *d)
{
    char absolute[PATH_MAX];
    struct stat st;
    if (!realpath(initial, absolute) || stat(absolute, &st) != 0) {
        return kedge_diag_set(d, KEDGE_E_NOT_FOUND, "--initial-model %s: no such file", initial);
    }
    if (!S_ISREG(st.st_mode)) { /* the coordinator takes nothing else */
        return kedge_diag_set(d, KEDGE_E_IO, "--initial-model %s: expected a regular file", initial);
    }
    return json_object_set_new(request, "initial", json_string(absolute))
               ? kedge_diag_set(d, KEDGE_E_FORMAT, "--initial-model %s: expected a path in UTF-8", initial)
               : KEDGE_OK;
}

/* A spec that is wrong is wrong usage, found here or by the coordinator: 1 would be an answer about a job. */
int kedge_cli_fail_submit(struct kedge_cli *c, int err, const struct kedge_diag *d)
{
    bool wrong = err == KEDGE_E_FORMAT || err == KEDGE_E_TOO_LONG || err == KEDGE_E_OVERFLOW
                 || err == KEDGE_E_BOUND || err == KEDGE_E_SHAPE;
    return wrong ? kedge_cli_fail_as(c, err, d, 2) : kedge_cli_fail(c, err, d);
}

/* The job's first entry in the main chain, with the very spec that was sent. Where it is not there yet, say
 * so: a disk may be full, and it comes when there is room. A job that waits for a place has none before. */
static int take_opened(struct kedge_cli *c, json_t *answer, const struct kedge_hash *spec,
                       struct kedge_diag *d)
{
    char key[KEDGE_IDEM_KEY_MAX + 1];
    const char *job = kedge_cli_text(answer, "job");
    if (json_is_true(json_object_get(answer, "waits"))) {
        kedge_cli_say(c,
                      "It waits for a place among the jobs that run, and the main chain does not name it "
                      "before it has one: kedge job show %s tells which is next.\n",
                      job);
        return KEDGE_OK;
    }
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    if (!st) {
        return KEDGE_E_NOMEM;
    }
    snprintf(key, sizeof key, "job-opened/%.*s", KEDGE_ID_MAX, job);
    int err = kedge_cli_main_receipt(c, key, OPENED_WAIT_MS, st, answer, d);
    if (!err
        && (st->kind != KEDGE_ST_JOB_OPENED || strcmp(st->u.job_opened.job.s, job) != 0
            || !kedge_hash_eq(&st->subject, spec))) {
        err =
            kedge_diag_set(d, KEDGE_E_UNKNOWN,
                           "what the coordinator shows does not prove that job \"%.63s\" is opened with the "
                           "spec that was sent",
                           job);
        c->told = false;
        (void)kedge_diag_hint(d, "the receipt is kept: %s", kedge_cli_text(answer, "receipt"));
    }
    kedge_mem_free(st);
    if (err == KEDGE_E_NOT_FOUND) {
        kedge_cli_say(c, "No entry of the main chain proves it yet: with the same --submit-token, the same "
                         "command looks again.\n");
        return KEDGE_OK;
    }
    return err;
}

/* The answer names the job and its spec; what is missing in it is said where it can be. */
static int tell_sent(struct kedge_cli *c, const struct kedge_job_spec *spec, json_t *o)
{
    const char *job = kedge_cli_text(o, "job");
    kedge_cli_say(
        c,
        "Job %s is %s; its spec is %s.\n"
        "Next, for each tenant: kedge job join %s TENANT --admin-key FILE; then: kedge job watch %s\n",
        job, kedge_cli_text(o, "state"), kedge_cli_text(o, "spec"), job, job);
    say_few_sites(c, spec);
    return kedge_cli_ok(c, o);
}

int kedge_cli_job_send(struct kedge_cli *c, json_t *text, const struct kedge_job_spec *spec,
                       const char *token, const char *initial)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_hash digest;
    json_t *o = NULL;
    kedge_sha256(kedge_view_of(json_string_value(text), json_string_length(text)), &digest);
    json_t *request = json_pack("{s:s,s:o}", "verb", "job.submit", "spec", text);
    int err = kedge_cli_main_pin(c, &d);
    if (!err && token && json_object_set_new(request, "token", json_string(token))) {
        err = kedge_diag_set(&d, KEDGE_E_USAGE, "--submit-token: expected UTF-8 text");
    }
    if (!err && initial) {
        err = add_initial(request, initial, &d);
    }
    if (err) {
        json_decref(request);
        return kedge_cli_fail_submit(c, err, &d);
    }
    err = kedge_cli_admin(c, request, &o, &d);
    if (!err) {
        err = take_opened(c, o, &digest, &d);
    }
    if (err) {
        json_decref(o);
        return kedge_cli_fail_submit(c, err, &d);
    }
    return tell_sent(c, spec, o);
}

/* The spec is parsed here first, where an error can name the file and the key, and then sent as the same
 * bytes: its digest is what everybody signs later. A submit token makes the command repeatable: the same
 * token is the same job. */
static int submit(struct kedge_cli *c, struct kedge_job_spec *spec_read)
{
    struct kedge_diag d = {.text = ""};
    const char *token = kedge_cli_option(c, "submit-token", NULL);
    const char *initial = kedge_cli_option(c, "initial-model", NULL), *path = kedge_cli_argument(c, 0);
    json_t *text = NULL;
    if (!path) {
        return kedge_cli_usage(c, "SPEC.json is missing: the job to submit");
    }
    if (!kedge_cli_no_more(c, 1)) {
        return 2;
    }
    int err = read_spec_text(path, &text, spec_read, &d);
    return err ? kedge_cli_fail_submit(c, err, &d) : kedge_cli_job_send(c, text, spec_read, token, initial);
}

int kedge_cmd_job_submit(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_job_spec *spec = kedge_mem_new(1, sizeof *spec);
    if (!spec) {
        return kedge_cli_fail(c, kedge_diag_set(&d, KEDGE_E_NOMEM, "out of memory"), &d);
    }
    int code = submit(c, spec);
    kedge_mem_free(spec);
    return code;
}

/* The digest of the spec that the organisation has agreed to, and that it is of this job. */
static int agreed_spec(const char *path, const struct kedge_id *job, struct kedge_hash *ret,
                       struct kedge_diag *d)
{
    struct kedge_buf text;
    struct kedge_job_spec *spec = kedge_mem_new(1, sizeof *spec);
    kedge_buf_init(&text, SPEC_MAX);
    int err = spec ? read_spec(path, spec, &text, d) : kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory");
    if (!err && strcmp(spec->name.s, job->s) != 0) {
        err = kedge_diag_set(d, KEDGE_E_USAGE, "--spec %s: a spec of job \"%s\", not of \"%s\"", path,
                             spec->name.s, job->s);
    }
    if (!err) {
        kedge_sha256(kedge_buf_view(&text), ret);
    }
    kedge_buf_deinit(&text);
    kedge_mem_free(spec);
    return err;
}

/* JOB and TENANT; false after a usage error. */
static bool take_job_and_tenant(struct kedge_cli *c, struct kedge_id *ret_job, struct kedge_id *ret_tenant)
{
    const char *name = kedge_cli_argument(c, 0), *who = kedge_cli_argument(c, 1);
    if (!name || !who || kedge_id_from(kedge_view_str(name), ret_job) != KEDGE_OK
        || kedge_id_from(kedge_view_str(who), ret_tenant) != KEDGE_OK) {
        (void)kedge_cli_usage(c, "expected JOB and TENANT, names of a-z, 0-9, '.', '_', '-'");
        return false;
    }
    return kedge_cli_no_more(c, 2);
}

/* The spec is read and its digest known before the admin's key is opened. Without --spec the command says
 * afterwards what it signed: the coordinator's word about the spec. */
int kedge_cmd_job_join(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_hash agreed;
    const char *spec = kedge_cli_option(c, "spec", NULL);
    struct kedge_key_pair admin;
    struct kedge_id job, tenant;
    json_t *o = NULL;
    if (!take_job_and_tenant(c, &job, &tenant)) {
        return 2;
    }
    int err = spec ? agreed_spec(spec, &job, &agreed, &d) : KEDGE_OK;
    if (err) {
        return kedge_cli_fail_submit(c, err, &d);
    }
    err = kedge_cli_key(c->admin_key, false, &admin, &d);
    if (!err) {
        err = kedge_cli_job_join(c, job.s, &tenant, &admin, spec ? &agreed : NULL, &o, &d);
        kedge_key_wipe(&admin);
    }
    if (err) {
        return kedge_cli_fail(c, err, &d);
    }
    if (!spec) {
        kedge_cli_say(
            c, "Signed: the spec that the coordinator has; --spec FILE holds it to the one agreed on.\n");
    }
    kedge_cli_say(c, "Tenant %s has joined job %s, entry %lld of its ledger.\n", tenant.s, job.s,
                  (long long)kedge_cli_int(o, "leaf_index"));
    json_object_set_new(o, "job", json_string(job.s));
    return kedge_cli_ok(c, o);
}

/* The spec that was joined is what is left, so it is asked for and not given. */
int kedge_cmd_job_leave(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    const char *reason = kedge_cli_option(c, "reason", "");
    struct kedge_key_pair admin;
    struct kedge_id job, tenant;
    json_t *o = NULL;
    if (!take_job_and_tenant(c, &job, &tenant)) {
        return 2;
    }
    if (strlen(reason) > KEDGE_ST_REASON_MAX) {
        return kedge_cli_usage(c, "--reason: expected at most %d bytes", KEDGE_ST_REASON_MAX);
    }
    int err = kedge_cli_key(c->admin_key, false, &admin, &d);
    if (!err) {
        err = kedge_cli_job_leave(c, job.s, &tenant, &admin, reason, &o, &d);
        kedge_key_wipe(&admin);
    }
    if (err) {
        return kedge_cli_fail(c, err, &d);
    }
    kedge_cli_say(
        c,
        "Tenant %s has left job %s, entry %lld of its ledger. Its sites get no more work of the job; "
        "what they gave stays.\n",
        tenant.s, job.s, (long long)kedge_cli_int(o, "leaf_index"));
    json_object_set_new(o, "job", json_string(job.s));
    return kedge_cli_ok(c, o);
}
