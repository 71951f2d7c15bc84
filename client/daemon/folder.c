/* A site's folder: made from a token, opened, closed, and the policy in it. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "client/daemon/host.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/json/json.h"
#include "common/wire/token.h"
#include "crypto/keyfile.h"

/* ---- enrolment ---- */

/* Enrolment may be interrupted and repeated: a key that is there is kept. Making another one would lock the
 * site out, if the coordinator has seen the first. */
static int make_key(const char *dir, const char *name, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_key_pair pair;
    int err = kedge_path_join(path, dir, name);
    if (err || kedge_file_exists(path)) {
        return err;
    }
    kedge_key_generate(&pair);
    err = kedge_keyfile_write_private(path, &pair, d);
    kedge_key_wipe(&pair);
    return err;
}

static int write_json(const char *dir, const char *name, json_t *o, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    char *text = o ? json_dumps(o, JSON_INDENT(2)) : NULL;
    int err = text ? kedge_path_join(path, dir, name) : KEDGE_E_NOMEM;
    if (!err) {
        err = kedge_file_write(path, kedge_view_str(text), 0600, d);
    }
    if (text) {
        kedge_wipe(text, strlen(text));
    }
    free(text);
    json_decref(o);
    return err;
}

/* Keys that are there already are kept (make_key), as is a policy: a folder can be enrolled again, and the
 * owner may have written the policy before. */
static int make_folder(const char *dir, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    KEDGE_TRY(kedge_path_join(path, dir, "keys"));
    KEDGE_TRY(kedge_dir_make(path, 0700, d));
    KEDGE_TRY(make_key(dir, "keys/tls.pem", d));
    KEDGE_TRY(make_key(dir, "keys/statement.pem", d));
    KEDGE_TRY(kedge_path_join(path, dir, "policy.json"));
    return kedge_file_exists(path)
               ? KEDGE_OK
               : write_json(dir, "policy.json", json_pack("{s:s,s:{}}", "jobs", "*", "data"), d);
}

static int write_config(const char *dir, const struct kedge_token *token, struct kedge_diag *d)
{
    char key[2 * KEDGE_KEY_LEN + 1], secret[65];
    kedge_hex_encode(token->server_key, sizeof token->server_key, key);
    kedge_hex_encode(token->secret, sizeof token->secret, secret);
    int err = write_json(dir, "site.json",
                         json_pack("{s:s,s:s,s:s,s:s,s:s}", "tenant", token->tenant.s, "site", token->site.s,
                                   "server", token->address, "server_key", key, "token_secret", secret),
                         d);
    kedge_wipe(secret, sizeof secret);
    return err;
}

/* site.json is written last: it is what makes the folder a site (read_config looks for it), so an enrolment
 * that was interrupted is one that has not happened. The token's secret and everything that held it are
 * wiped. */
int kedge_client_enroll_folder(const char *dir, struct kedge_view text, struct kedge_diag *d)
{
    struct kedge_token token;
    int err = kedge_token_decode(text, &token, d);
    if (!err) {
        err = make_folder(dir, d);
    }
    if (!err) {
        err = write_config(dir, &token, d);
    }
    kedge_wipe(&token, sizeof token);
    return err;
}

/* ---- opening ---- */

/* The whole of a file of the site; what was read may hold a secret. */
static int read_file(const char *path, size_t max, struct kedge_buf *ret, struct kedge_diag *d)
{
    kedge_buf_init(ret, max);
    return kedge_file_read(path, ret, d);
}

static void forget_file(struct kedge_buf *text)
{
    if (text->ptr) {
        kedge_wipe(text->ptr, text->len);
    }
    kedge_buf_deinit(text);
}

static int read_config(struct kedge_site_host *h, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf text;
    KEDGE_TRY(kedge_client_path(h, path, "site.json"));
    int err = read_file(path, KEDGE_IDENTITY_FILE_MAX, &text, d);
    if (err == KEDGE_E_NOT_FOUND) {
        (void)kedge_diag_set(d, err, "%s: no site here (site.json is missing)", h->dir);
        (void)kedge_diag_hint(d, "enrol it: kedge-client --site %s --enroll-file TOKENFILE", h->dir);
    }
    if (!err) {
        err = kedge_site_config_parse(kedge_buf_view(&text), path, &h->config, d);
    }
    forget_file(&text);
    return err;
}

/* Without one in policy.json: the built-in trainer beside this program, else in PATH. */
static int default_trainer(struct kedge_site_policy *p)
{
    char own[KEDGE_PATH_MAX], path[KEDGE_PATH_MAX];
    if (!p->trainer[0]) {
        bool beside = kedge_process_own_dir(own, sizeof own) == KEDGE_OK
                      && kedge_path_join(path, own, "kedge-train") == KEDGE_OK && kedge_file_exists(path);
        p->trainer[0] = kedge_mem_strdup(beside ? path : "kedge-train");
    }
    return p->trainer[0] ? KEDGE_OK : KEDGE_E_NOMEM;
}

/* Owners' variables may be secrets; what shows the policy says only how many there are. */
static void hide_environments(json_t *policy)
{
    json_t *trainer;
    const char *name;
    json_object_foreach(json_object_get(policy, "trainers"), name, trainer)
    {
        size_t count = json_object_size(json_object_get(trainer, "environment"));
        if (count > 0) {
            (void)json_object_set_new(trainer, "environment", json_sprintf("%zu not shown", count));
        }
    }
}

/* A policy is shared by the loop and by each place that still works under it, and is freed by the last that
 * lets go. The count is atomic because places let go on their own threads; the policy itself never changes
 * once it is in force, so that readers need no lock. */
static struct kedge_policy_held *held_of(const struct kedge_site_policy *p)
{
    return (struct kedge_policy_held *)((uintptr_t)p - offsetof(struct kedge_policy_held, policy));
}

void kedge_client_policy_hold(const struct kedge_site_policy *p)
{
    atomic_fetch_add(&held_of(p)->holders, 1);
}

void kedge_client_policy_let_go(const struct kedge_site_policy *p)
{
    struct kedge_policy_held *held = p ? held_of(p) : NULL;
    if (held && atomic_fetch_sub(&held->holders, 1) == 1) {
        kedge_policy_deinit(&held->policy);
        kedge_mem_free(held);
    }
}

/* *p moves into what is returned. The text is parsed a second time because what is shown is the owner's file
 * as it was written, and not what Kedge made of it. */
static int hold_policy(struct kedge_site_policy *p, struct kedge_view text, const char *path,
                       const struct kedge_site_policy **ret, json_t **ret_shown, struct kedge_diag *d)
{
    json_t *shown = NULL;
    KEDGE_TRY(default_trainer(p));
    KEDGE_TRY(kedgei_json_load(text, KEDGE_POLICY_FILE_MAX, path, &shown, d));
    struct kedge_policy_held *held = kedge_mem_new(1, sizeof *held);
    if (!held) {
        json_decref(shown);
        return KEDGE_E_NOMEM;
    }
    atomic_store(&held->holders, 1);
    held->policy = *p;
    *ret = &held->policy;
    hide_environments(shown);
    *ret_shown = shown;
    return KEDGE_OK;
}

int kedge_client_read_policy(const struct kedge_site_host *h, const struct kedge_site_policy **ret,
                             json_t **ret_shown, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf text;
    struct kedge_site_policy p;
    KEDGE_TRY(kedge_client_path(h, path, "policy.json"));
    int err = read_file(path, KEDGE_POLICY_FILE_MAX, &text, d);
    if (!err) {
        err = kedge_policy_parse(kedge_buf_view(&text), path, &p, d);
    }
    if (!err) {
        err = hold_policy(&p, kedge_buf_view(&text), path, ret, ret_shown, d);
        if (err) {
            kedge_policy_deinit(&p);
        }
    }
    forget_file(&text);
    return err;
}

static int read_policy(struct kedge_site_host *h, struct kedge_diag *d)
{
    json_t *shown;
    KEDGE_TRY(kedge_client_read_policy(h, &h->policy, &shown, d));
    atomic_store(&h->witness_age_max_s, h->policy->witness_age_max_s);
    json_decref(h->service.policy);
    h->service.policy = shown;
    return KEDGE_OK;
}

/* Without the file receipts are checked for inclusion only. */
static int read_trust(struct kedge_site_host *h, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf text;
    int err = kedge_client_path(h, path, "trust.json");
    if (err || !kedge_file_exists(path)) {
        return err;
    }
    err = read_file(path, KEDGE_IDENTITY_TRUST_MAX, &text, d);
    if (!err) {
        err = kedge_site_trust_parse(kedge_buf_view(&text), path, &h->config.tenant, &h->trust, d);
    }
    forget_file(&text);
    return err;
}

static int read_key(struct kedge_site_host *h, const char *name, struct kedge_key_pair *ret,
                    struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    int err = kedge_client_path(h, path, "keys/%s.pem", name);
    return err ? err : kedge_keyfile_read_private(path, ret, d);
}

/* The lock comes before anything that is written: two daemons on one folder would sign two updates for one
 * round. It is held by an open descriptor until the process ends, which a crash cannot forget to release;
 * waiting for it a little covers a restart in which the former process is still ending. */
int kedge_client_open_folder(struct kedge_site_host *h, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    KEDGE_TRY(read_config(h, d));
    int err = kedge_client_path(h, path, "site.lock");
    if (!err) {
        int fd = kedge_file_lock_within(path, KEDGE_LOCK_WAIT_MS, d); /* held until the process ends */
        err = fd < 0 ? fd : KEDGE_OK;
    }
    if (err) {
        return err;
    }
    KEDGE_TRY(read_policy(h, d));
    err = read_trust(h, d);
    if (!err) {
        kedge_client_seen_read(h);
    }
    if (err) {
        return err;
    }
    KEDGE_TRY(read_key(h, "tls", &h->tls_key, d));
    KEDGE_TRY(read_key(h, "statement", &h->statement_key, d));
    err = kedge_client_path(h, path, "work");
    return err ? err : kedge_dir_make(path, 0700, d);
}

void kedge_client_close_folder(struct kedge_site_host *h)
{
    kedge_client_policy_let_go(h->policy);
    h->policy = NULL;
    kedge_site_trust_deinit(&h->trust);
    kedge_buf_deinit(&h->seen_note);
    kedge_key_wipe(&h->tls_key);
    kedge_key_wipe(&h->statement_key);
    kedge_wipe(&h->config, sizeof h->config);
}

/* ---- files that cost little ---- */
