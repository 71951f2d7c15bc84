/* Talks to the coordinator, and signs what tenants' admins sign. Admin keys are read here and go nowhere
 * else. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/ledger/position.h"
#include "cli/receipt.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "crypto/keyfile.h"

/* With `create` a key that is made is stored before it signs anything; a file that is there is read and never
 * replaced, so the same command said twice signs with the same key. A sealed file asks for its passphrase
 * here (main.c says from where it may come). */
int kedge_cli_key(const char *path, bool create, struct kedge_key_pair *ret, struct kedge_diag *d)
{
    if (!path) {
        (void)kedge_diag_set(d, KEDGE_E_USAGE, "--admin-key FILE is missing: the tenant's admin signs this");
        (void)kedge_diag_hint(d, "name the file that kedge tenant add made or was given for this tenant");
        return KEDGE_E_USAGE;
    }
    if (create && !kedge_file_exists(path)) {
        kedge_key_generate(ret);
        return kedge_keyfile_write_private(path, ret, d);
    }
    return kedge_keyfile_read_private(path, ret, d);
}

/* The position comes first: a statement says which main chain it is meant for and in which span of the
 * ledger's entries it may stand (chain/statement/statement_position.h), so that what an admin signs for one
 * deployment, or today, is worth nothing in another one, or years later. */
int kedge_cli_sign(struct kedge_cli *c, struct kedge_statement *st, const struct kedge_key_pair *key,
                   json_t **ret_text, struct kedge_diag *d)
{
    struct kedge_buf envelope;
    kedge_buf_init(&envelope, KEDGE_ENTRY_MAX);
    int err = kedge_cli_position(c, st, d);
    if (!err) {
        err = kedge_statement_sign(st, key, &envelope, d);
    }
    if (!err) {
        *ret_text = json_stringn((const char *)envelope.ptr, envelope.len);
    }
    kedge_buf_deinit(&envelope);
    return err;
}

/* Every request that can append goes through here, so that no command can forget its receipt. The order
 * matters: append_begin finds the log's key and keeps what was asked before the coordinator speaks, so
 * nothing in the answer can decide by which key the answer is judged. An error of this side is not the
 * coordinator's: told stays false and the exit code says so. */
int kedge_cli_admin(struct kedge_cli *c, json_t *request, json_t **ret_answer, struct kedge_diag *d)
{
    struct kedge_cli_append *append = NULL;
    json_t *answer = NULL;
    int err = kedge_cli_append_begin(c, request, &append, d);
    if (err) {
        c->told = false;
        json_decref(request);
        return err;
    }
    err = kedge_cli_ask(c, request, &answer, d);
    if (!err && c->key_after) {
        c->key = c->key_after; /* the other one is nobody's any more, also for asking for the receipt */
    }
    if (!err && append) {
        err = kedge_cli_append_end(c, append, answer, d);
    }
    kedge_cli_append_free(append);
    if (err) {
        json_decref(answer);
        return err;
    }
    *ret_answer = answer;
    return KEDGE_OK;
}

/* Entry 0 of the tenant's ledger: its admin's key, signed by that key itself, so that a reader of the ledger
 * finds in it by which key all the rest is signed. The verb is answered in
 * coordinator/daemon/admin/admin_members.c. */
int kedge_cli_tenant_add(struct kedge_cli *c, const struct kedge_id *tenant,
                         const struct kedge_key_pair *admin, json_t **ret, struct kedge_diag *d)
{
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    json_t *envelope = NULL;
    if (!st) {
        return KEDGE_E_NOMEM;
    }
    st->kind = KEDGE_ST_KEY;
    st->u.key =
        (struct kedge_st_key){.scope = KEDGE_SCOPE_ADMIN, .tenant = *tenant, .public_key = admin->public};
    int err = kedge_cli_sign(c, st, admin, &envelope, d);
    kedge_mem_free(st);
    return err ? err
               : kedge_cli_admin(c,
                                 json_pack("{s:s,s:s,s:o}", "verb", "tenant.add", "tenant", tenant->s,
                                           "envelope", envelope),
                                 ret, d);
}

static bool get_key(const json_t *o, const char *name, struct kedge_public_key *ret)
{
    return kedge_hex_decode(kedge_view_str(kedge_cli_text(o, name)), ret->b, KEDGE_KEY_LEN) == KEDGE_OK;
}

/* The keys come from the coordinator's list of sites that wait. Whether they are those of the device that the
 * admin means cannot be seen here: the caller compares them (--tls-key, --statement-key of kedge site
 * approve) or shows them. */
int kedge_cli_site_sign_in(struct kedge_cli *c, const json_t *pending, const struct kedge_key_pair *admin,
                           json_t **ret, struct kedge_diag *d)
{
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    json_t *envelope = NULL;
    if (!st) {
        return KEDGE_E_NOMEM;
    }
    struct kedge_st_site_enrolled *e = &st->u.site_enrolled;
    st->kind = KEDGE_ST_SITE_ENROLLED;
    bool told = kedge_id_from(kedge_view_str(kedge_cli_text(pending, "tenant")), &e->tenant) == KEDGE_OK
                && kedge_id_from(kedge_view_str(kedge_cli_text(pending, "site")), &e->site) == KEDGE_OK
                && get_key(pending, "tls_key", &e->tls_key)
                && get_key(pending, "statement_key", &e->statement_key);
    int err = told ? kedge_cli_sign(c, st, admin, &envelope, d)
                   : kedge_diag_set(d, KEDGE_E_FORMAT, "the coordinator tells no keys of this site");
    struct kedge_id tenant = e->tenant;
    kedge_mem_free(st);
    return err ? err
               : kedge_cli_admin(c,
                                 json_pack("{s:s,s:s,s:o}", "verb", "site.enroll", "tenant", tenant.s,
                                           "envelope", envelope),
                                 ret, d);
}

static int read_spec_digest(const json_t *shown, struct kedge_hash *ret)
{
    return kedge_hash_from_hex(kedge_view_str(kedge_cli_text(shown, "spec")), ret);
}

static int state_leave(const char *job, const struct kedge_id *tenant, const char *reason,
                       const json_t *shown, struct kedge_statement *st)
{
    st->kind = KEDGE_ST_JOB_LEFT;
    st->u.job_left.tenant = *tenant;
    snprintf(st->u.job_left.reason, sizeof st->u.job_left.reason, "%s", reason);
    KEDGE_TRY(kedge_id_from(kedge_view_str(job), &st->u.job_left.job));
    return read_spec_digest(shown, &st->subject);
}

static int state_join(const char *job, const struct kedge_id *tenant, const json_t *shown,
                      const struct kedge_hash *agreed, struct kedge_statement *st, struct kedge_diag *d)
{
    st->kind = KEDGE_ST_JOB_JOINED;
    st->u.job_joined.tenant = *tenant;
    KEDGE_TRY(kedge_id_from(kedge_view_str(job), &st->u.job_joined.job));
    KEDGE_TRY(read_spec_digest(shown, &st->subject));
    if (agreed && !kedge_hash_eq(agreed, &st->subject)) {
        (void)kedge_diag_set(d, KEDGE_E_STATE,
                             "job \"%s\" has another spec here than the file says; nothing was signed", job);
        return kedge_diag_hint(d, "compare it with kedge job show, and ask who proposed the job");
    }
    return KEDGE_OK;
}

/* The digest that is signed is the one that the coordinator shows; `agreed` is the admin's own file, by which
 * it is checked before the key signs. Without it the admin signs the coordinator's word about the spec, which
 * the command says. */
int kedge_cli_job_join(struct kedge_cli *c, const char *job, const struct kedge_id *tenant,
                       const struct kedge_key_pair *admin, const struct kedge_hash *agreed, json_t **ret,
                       struct kedge_diag *d)
{
    json_t *shown = NULL, *envelope = NULL;
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    if (!st) {
        return KEDGE_E_NOMEM;
    }
    int err = kedge_cli_admin(c, json_pack("{s:s,s:s}", "verb", "job.show", "job", job), &shown, d);
    if (!err) {
        err = state_join(job, tenant, shown, agreed, st, d);
    }
    if (!err) {
        err = kedge_cli_sign(c, st, admin, &envelope, d);
    }
    json_decref(shown);
    kedge_mem_free(st);
    return err ? err
               : kedge_cli_admin(c,
                                 json_pack("{s:s,s:s,s:o}", "verb", "tenant.join", "tenant", tenant->s,
                                           "envelope", envelope),
                                 ret, d);
}

int kedge_cli_job_leave(struct kedge_cli *c, const char *job, const struct kedge_id *tenant,
                        const struct kedge_key_pair *admin, const char *reason, json_t **ret,
                        struct kedge_diag *d)
{
    json_t *shown = NULL, *envelope = NULL;
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    if (!st) {
        return KEDGE_E_NOMEM;
    }
    int err = kedge_cli_admin(c, json_pack("{s:s,s:s}", "verb", "job.show", "job", job), &shown, d);
    if (!err) {
        err = state_leave(job, tenant, reason, shown, st);
    }
    if (!err) {
        err = kedge_cli_sign(c, st, admin, &envelope, d);
    }
    json_decref(shown);
    kedge_mem_free(st);
    return err ? err
               : kedge_cli_admin(c,
                                 json_pack("{s:s,s:s,s:o}", "verb", "tenant.leave", "tenant", tenant->s,
                                           "envelope", envelope),
                                 ret, d);
}
