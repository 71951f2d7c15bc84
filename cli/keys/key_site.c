/* kedge site rotate: on the device, with its daemon stopped, other keys in the place of those it has. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/keys_used.h"
#include "cli/ledger/position.h"
#include "cli/local.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "crypto/keyfile.h"

/* One of a site's keys on its way: FOLDER/keys/NAME.pem, and NAME-next.pem until the other is in force. */
struct step {
    enum kedge_key_role role;
    const char *name, *what;
    char now[KEDGE_PATH_MAX], next[KEDGE_PATH_MAX];
    uint64_t index; /* in the tenant's ledger */
};

enum { STEPS = 2 };

/* The statement key, which speaks for the site, signs for the TLS key that comes; so that one goes first. */
static const struct step all_steps[STEPS] = {
    {.role = KEDGE_ROLE_SITE_TLS, .name = "tls", .what = "TLS key"},
    {.role = KEDGE_ROLE_SITE, .name = "statement", .what = "statement key"},
};

static int find_files(const char *dir, const char *name, char now[KEDGE_PATH_MAX], char next[KEDGE_PATH_MAX],
                      struct kedge_diag *d)
{
    char file[64];
    snprintf(file, sizeof file, "keys/%s.pem", name);
    int err = kedge_path_join(now, dir, file);
    snprintf(file, sizeof file, "keys/%s-next.pem", name);
    if (!err) {
        err = kedge_path_join(next, dir, file);
    }
    return err ? kedge_diag_set(d, err, "--site-folder: the name is too long") : KEDGE_OK;
}

/* All secrets of one step in one place, so that one call wipes them. */
struct pairs {
    struct kedge_key_pair now, next, speaks; /* speaks: the statement key */
};

static void wipe(struct pairs *k)
{
    kedge_key_wipe(&k->now);
    kedge_key_wipe(&k->next);
    kedge_key_wipe(&k->speaks);
}

/* The new key is made once and kept until it is in force, so that a lost answer is asked for again. */
static int read_pairs(const char *dir, const struct step *s, struct pairs *k, struct kedge_diag *d)
{
    char now[KEDGE_PATH_MAX], next[KEDGE_PATH_MAX];
    KEDGE_TRY(find_files(dir, "statement", now, next, d));
    KEDGE_TRY(kedge_keyfile_read_private(now, &k->speaks, d));
    KEDGE_TRY(kedge_keyfile_read_private(s->now, &k->now, d));
    return kedge_file_exists(s->next) ? kedge_keyfile_read_private(s->next, &k->next, d)
                                      : kedge_keyfile_make_like(s->next, s->now, &k->next, d);
}

/* Two signatures: the statement key of the site orders the change, and the key that comes shows that its
 * holder has it. */
static int sign(const struct kedge_statement *st, const struct pairs *k, struct kedge_buf *ret,
                struct kedge_diag *d)
{
    struct kedge_buf one KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&one, KEDGE_ENTRY_MAX);
    KEDGE_TRY(kedge_statement_sign(st, &k->speaks, &one, d));
    return kedge_statement_cosign(kedge_buf_view(&one), &k->next, ret, d);
}

/* The verb is that of the tenant's own keys: the role in the statement says whose key it is. */
static int send(struct kedge_cli *c, const struct kedge_id *tenant, const struct kedge_buf *envelope,
                uint64_t *ret_index, struct kedge_diag *d)
{
    json_t *o = NULL;
    int err = kedge_cli_admin(c,
                              json_pack("{s:s,s:s,s:s%}", "verb", "key.rotate", "tenant", tenant->s,
                                        "envelope", (const char *)envelope->ptr, envelope->len),
                              &o, d);
    if (!err) {
        *ret_index = (uint64_t)kedge_cli_int(o, "leaf_index");
    }
    json_decref(o);
    return err;
}

/* Reads the pairs and signs the change with the one in force; the caller wipes them. */
static int make_change(struct kedge_cli *c, const char *dir, struct step *s, struct kedge_statement *st,
                       struct pairs *k, struct kedge_buf *ret_envelope, struct kedge_diag *d)
{
    KEDGE_TRY(find_files(dir, s->name, s->now, s->next, d));
    KEDGE_TRY(read_pairs(dir, s, k, d));
    st->kind = KEDGE_ST_KEY_ROTATED;
    st->u.key_rotated.role = s->role;
    st->u.key_rotated.old_key = k->now.public;
    st->u.key_rotated.new_key = k->next.public;
    KEDGE_TRY(kedge_cli_position(c, st, d));
    return sign(st, k, ret_envelope, d);
}

/* Signs, sends, and puts the new key in the place of the old one. */
static int rotate(struct kedge_cli *c, const char *dir, struct step *s, const struct kedge_id *tenant,
                  const struct kedge_id *site, struct kedge_diag *d)
{
    struct pairs k;
    struct kedge_buf envelope KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_statement *st KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *st);
    memset(&k, 0, sizeof k);
    kedge_buf_init(&envelope, KEDGE_ENTRY_MAX);
    if (!st) {
        return KEDGE_E_NOMEM;
    }
    st->u.key_rotated = (struct kedge_st_key_rotated){.tenant = *tenant, .site = *site};
    int err = make_change(c, dir, s, st, &k, &envelope, d);
    wipe(&k);
    KEDGE_TRY(err);
    KEDGE_TRY(send(c, tenant, &envelope, &s->index, d));
    if (rename(s->next, s->now) != 0) {
        return kedge_diag_set(d, KEDGE_E_IO,
                              "the new %s is in force, but %s cannot be renamed to %s: do it by hand",
                              s->what, s->next, s->now);
    }
    kedge_cli_say(c, "Site %s of tenant %s has a new %s, entry %llu of the tenant's ledger.\n", site->s,
                  tenant->s, s->what, (unsigned long long)s->index);
    return KEDGE_OK;
}

/* A new key is there: what was begun with it goes on. After a TLS key that is done the statement key may be
 * in force already, so that the old one can sign for nothing more. */
static bool is_begun(const char *dir, const char *name)
{
    char now[KEDGE_PATH_MAX], next[KEDGE_PATH_MAX];
    return find_files(dir, name, now, next, NULL) == KEDGE_OK && kedge_file_exists(next);
}

/* The TLS key goes first. If only the statement key's change has begun, an earlier run was cut off after the
 * TLS key: that one is not changed a second time. */
static int rotate_all(struct kedge_cli *c, const char *dir, const char *only, const struct kedge_id *tenant,
                      const struct kedge_id *site)
{
    struct kedge_diag d = {.text = ""};
    json_t *o = json_pack("{s:s,s:s}", "tenant", tenant->s, "site", site->s);
    bool resumed = !only && is_begun(dir, "statement") && !is_begun(dir, "tls");
    for (int i = 0; i < STEPS; i++) {
        struct step s = all_steps[i];
        if ((only && strcmp(only, s.name) != 0) || (resumed && s.role == KEDGE_ROLE_SITE_TLS)) {
            continue;
        }
        int err = rotate(c, dir, &s, tenant, site, &d);
        if (err) {
            if (s.role == KEDGE_ROLE_SITE_TLS) {
                kedge_cli_note_key_file(c, "site-folder", s.now);
            }
            json_decref(o);
            return kedge_cli_fail(c, err, &d);
        }
        json_object_set_new(o, s.name, json_integer((json_int_t)s.index));
    }
    return kedge_cli_ok(c, o);
}

/* The lock is the one that kedge-client holds: rotating under a running client would make it sign with a key
 * that is no longer in force. */
int kedge_cmd_site_rotate(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_id tenant, site;
    char lock_path[KEDGE_PATH_MAX], now[KEDGE_PATH_MAX], next[KEDGE_PATH_MAX];
    const char *dir = kedge_cli_option(c, "site-folder", NULL);
    const char *only = kedge_cli_option(c, "only", NULL);
    const char *names[2] = {kedge_cli_argument(c, 0), kedge_cli_argument(c, 1)};
    if (!names[0] || !names[1] || kedge_id_from(kedge_view_str(names[0]), &tenant) != KEDGE_OK
        || kedge_id_from(kedge_view_str(names[1]), &site) != KEDGE_OK) {
        return kedge_cli_usage(c, "TENANT SITE: expected names of a-z, 0-9, '.', '_', '-'");
    }
    if (!dir || !kedge_file_exists(dir)) {
        return kedge_cli_usage(c, "--site-folder DIR: expected the folder of kedge-client --site");
    }
    if (only && strcmp(only, "tls") != 0 && strcmp(only, "statement") != 0) {
        return kedge_cli_usage(c, "--only %s: expected statement or tls", kedge_cli_word(only).s);
    }
    if (!kedge_cli_no_more(c, 2)) {
        return 2;
    }
    KEDGE_CLI_TRY(c, find_files(dir, "statement", now, next, &d), &d);
    KEDGE_CLI_TRY(c, kedge_path_join(lock_path, dir, "site.lock"), &d);
    if (!kedge_file_exists(now)) {
        return kedge_cli_fail(
            c, kedge_diag_set(&d, KEDGE_E_NOT_FOUND, "%s: not there; the site has not been enrolled", now),
            &d);
    }
    int lock = kedge_file_lock(lock_path, &d);
    if (lock < 0) {
        if (lock == KEDGE_E_LOCKED) {
            (void)kedge_diag_hint(
                &d, "stop its kedge-client first: what it has signed and not sent would be refused");
        }
        return kedge_cli_fail(c, lock, &d);
    }
    kedge_cli_note_key_file(c, "site-folder", now); /* the statement key, which speaks for the site */
    int code = rotate_all(c, dir, only, &tenant, &site);
    close(lock);
    return code;
}
