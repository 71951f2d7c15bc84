#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/daemon/host.h"
#include "common/base/limits.h"
#include "common/base/mem.h"
#include "common/base/settings.h"
#include "common/json/json.h"
#include "common/wire/token.h"
#include "crypto/keyfile.h"

enum { SECTOR = 512 };

int kedge_client_path(const struct kedge_site_host *h, char out[KEDGE_PATH_MAX], const char *format, ...)
{
    char name[KEDGE_PATH_MAX];
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(name, sizeof name, format, ap);
    va_end(ap);
    return n < 0 || n >= KEDGE_PATH_MAX ? KEDGE_E_TOO_LONG : kedge_path_join(out, h->dir, name);
}

int kedge_client_work_file(const struct kedge_client_work *w, const char *name, char out[KEDGE_PATH_MAX])
{
    const char *slash = name[0] ? "/" : "";
    return w->index == 0 ? kedge_client_path(w->h, out, "work%s%s", slash, name)
                         : kedge_client_path(w->h, out, "work-%u%s%s", w->index, slash, name);
}

int kedge_client_work_path(const struct kedge_client_work *w, const char *kind,
                           const struct kedge_site_digest *digest, char out[KEDGE_PATH_MAX])
{
    char hex[2 * sizeof digest->b + 1], name[sizeof hex + 32];
    kedge_hex_encode(digest->b, sizeof digest->b, hex);
    snprintf(name, sizeof name, "%.30s-%s", kind, hex);
    return kedge_client_work_file(w, name, out);
}

void kedge_client_work_trim(const struct kedge_client_work *w, const char *kind,
                            const struct kedge_site_digest *keep, size_t count)
{
    char dir_path[KEDGE_PATH_MAX], path[KEDGE_PATH_MAX], hex[2 * sizeof keep->b + 1];
    const size_t len = strlen(kind);
    DIR *dir = kedge_client_work_file(w, "", dir_path) == KEDGE_OK ? opendir(dir_path) : NULL;
    struct dirent *entry;
    while (dir && (entry = readdir(dir)) != NULL) {
        const char *name = entry->d_name;
        bool wanted = strncmp(name, kind, len) != 0 || name[len] != '-';
        for (size_t i = 0; i < count && !wanted; i++) {
            kedge_hex_encode(keep[i].b, sizeof keep[i].b, hex);
            wanted = strncmp(name + len + 1, hex, sizeof hex - 1) == 0;
        }
        if (!wanted && kedge_path_join(path, dir_path, name) == KEDGE_OK) {
            (void)unlink(path);
        }
    }
    if (dir) {
        closedir(dir);
    }
}

/* ---- enrolment ---- */

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
    err = err ? err : kedge_file_write(path, kedge_view_str(text), 0600, d);
    if (text) {
        kedge_wipe(text, strlen(text));
    }
    free(text);
    json_decref(o);
    return err;
}

int kedge_client_enroll_folder(const char *dir, struct kedge_view text, struct kedge_diag *d)
{
    struct kedge_token token;
    char path[KEDGE_PATH_MAX], key[2 * KEDGE_KEY_LEN + 1], secret[65];
    int err = kedge_token_decode(text, &token, d);
    err = err ? err : kedge_path_join(path, dir, "keys");
    err = err ? err : kedge_dir_make(path, 0700, d);
    err = err ? err : make_key(dir, "keys/tls.pem", d);
    err = err ? err : make_key(dir, "keys/statement.pem", d);
    err = err ? err : kedge_path_join(path, dir, "policy.json");
    if (!err && !kedge_file_exists(path)) {
        err = write_json(dir, "policy.json", json_pack("{s:s,s:{}}", "jobs", "*", "data"), d);
    }
    if (!err) {
        kedge_hex_encode(token.server_key, sizeof token.server_key, key);
        kedge_hex_encode(token.secret, sizeof token.secret, secret);
        err = write_json(dir, "site.json",
                         json_pack("{s:s,s:s,s:s,s:s,s:s}", "tenant", token.tenant.s, "site", token.site.s,
                                   "server", token.address, "server_key", key, "token_secret", secret),
                         d);
    }
    kedge_wipe(&token, sizeof token);
    kedge_wipe(secret, sizeof secret);
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
    int err = kedge_client_path(h, path, "site.json");
    if (err) {
        return err;
    }
    err = read_file(path, KEDGE_IDENTITY_FILE_MAX, &text, d);
    if (err == KEDGE_E_NOT_FOUND) {
        (void)kedge_diag_set(d, err, "%s: no site here (site.json is missing)", h->dir);
        (void)kedge_diag_hint(d, "enrol it: kedge-client --site %s --enroll-file TOKENFILE", h->dir);
    }
    err = err ? err : kedge_site_config_parse(kedge_buf_view(&text), path, &h->config, d);
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

int kedge_client_read_policy(const struct kedge_site_host *h, const struct kedge_site_policy **ret,
                             json_t **ret_shown, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf text;
    struct kedge_site_policy p;
    json_t *shown = NULL;
    int err = kedge_client_path(h, path, "policy.json");
    if (err) {
        return err;
    }
    err = read_file(path, KEDGE_POLICY_FILE_MAX, &text, d);
    err = err ? err : kedge_policy_parse(kedge_buf_view(&text), path, &p, d);
    if (!err) {
        err = kedgei_json_load(kedge_buf_view(&text), KEDGE_POLICY_FILE_MAX, path, &shown, d);
        err = err ? err : default_trainer(&p);
        struct kedge_policy_held *held = err ? NULL : kedge_mem_new(1, sizeof *held);
        err = err ? err : held ? KEDGE_OK : KEDGE_E_NOMEM;
        if (err) {
            json_decref(shown);
            kedge_policy_deinit(&p);
        } else {
            atomic_store(&held->holders, 1);
            held->policy = p;
            *ret = &held->policy;
            hide_environments(shown);
            *ret_shown = shown;
        }
    }
    forget_file(&text);
    return err;
}

static int read_policy(struct kedge_site_host *h, struct kedge_diag *d)
{
    json_t *shown;
    int err = kedge_client_read_policy(h, &h->policy, &shown, d);
    if (!err) {
        atomic_store(&h->witness_age_max_s, h->policy->witness_age_max_s);
        json_decref(h->service.policy);
        h->service.policy = shown;
    }
    return err;
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
    err = err ? err : kedge_site_trust_parse(kedge_buf_view(&text), path, &h->config.tenant, &h->trust, d);
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

int kedge_client_open_folder(struct kedge_site_host *h, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    int err = read_config(h, d);
    err = err ? err : kedge_client_path(h, path, "site.lock");
    if (!err) {
        int fd = kedge_file_lock_within(path, KEDGE_LOCK_WAIT_MS, d); /* held until the process ends */
        err = fd < 0 ? fd : KEDGE_OK;
    }
    err = err ? err : read_policy(h, d);
    err = err ? err : read_trust(h, d);
    if (!err) {
        kedge_client_seen_read(h);
    }
    err = err ? err : read_key(h, "tls", &h->tls_key, d);
    err = err ? err : read_key(h, "statement", &h->statement_key, d);
    err = err ? err : kedge_client_path(h, path, "work");
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

/* In place when it is as long as what is there: one write within a sector. */
static bool overwrite(const char *path, struct kedge_view content)
{
    struct stat st;
    int fd = content.len <= SECTOR ? kedge_file_open(path, O_WRONLY | O_NOFOLLOW, NULL) : -1;
    bool done = fd >= 0 && fstat(fd, &st) == 0 && (uint64_t)st.st_size == content.len
                && pwrite(fd, content.ptr, content.len, 0) == (ssize_t)content.len;
    if (fd >= 0) {
        close(fd);
    }
    return done;
}

int kedge_client_put_file(const char *path, struct kedge_view content)
{
    if (overwrite(path, content)) {
        return KEDGE_OK;
    }
    char temporary[KEDGE_PATH_MAX];
    int n = snprintf(temporary, sizeof temporary, "%s.part", path);
    if (n < 0 || n >= KEDGE_PATH_MAX) {
        return KEDGE_E_TOO_LONG;
    }
    int fd = kedge_file_open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, NULL);
    int err = fd < 0 ? fd : kedge_fd_write(fd, content);
    if (fd >= 0 && close(fd) != 0 && !err) {
        err = kedge_errno(errno);
    }
    if (!err && rename(temporary, path) != 0) {
        err = kedge_errno(errno);
    }
    if (err && fd >= 0) {
        (void)unlink(temporary);
    }
    return err;
}

int kedge_client_reuse_begin(const char *path, int *ret_fd)
{
    int fd = kedge_file_open(path, O_RDWR | O_CREAT | O_NOFOLLOW, NULL);
    if (fd < 0) {
        return fd;
    }
    *ret_fd = fd;
    return KEDGE_OK;
}

int kedge_client_reuse_end(int fd, uint64_t len)
{
    struct stat st;
    int err = fstat(fd, &st) == 0 ? KEDGE_OK : kedge_errno(errno);
    if (!err && (uint64_t)st.st_size != len && ftruncate(fd, (off_t)len) != 0) {
        err = kedge_errno(errno);
    }
    if (close(fd) != 0 && !err) {
        err = kedge_errno(errno);
    }
    return err;
}

void kedge_client_reuse_give(const char *old, const char *path)
{
    struct stat st;
    if (stat(old, &st) == 0 && st.st_nlink > 1) { /* evidence of a refusal: its bytes stay as they are */
        (void)unlink(old);
        return;
    }
    if (rename(old, path) != 0 && errno != ENOENT) {
        (void)unlink(old);
    }
}
