/* kedge site rotate: on the device, with its daemon stopped, another statement key in the place of the one it
 * has. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/key.h"
#include "cli/local.h"
#include "common/base/mem.h"
#include "crypto/keyfile.h"
#include "crypto/passphrase.h"

struct folder {
    char lock[KEDGE_PATH_MAX], now[KEDGE_PATH_MAX], next[KEDGE_PATH_MAX];
};

static int find_folder(const char *dir, struct folder *f, struct kedge_diag *d)
{
    int err = kedge_path_join(f->lock, dir, "site.lock");
    err = err ? err : kedge_path_join(f->now, dir, "keys/statement.pem");
    err = err ? err : kedge_path_join(f->next, dir, "keys/statement-next.pem");
    return err ? kedge_diag_set(d, err, "--site-folder: the name is too long") : KEDGE_OK;
}

/* Whether the file holds a sealed key, and what a guess costs. */
static int read_cost(const char *path, bool *ret_sealed, struct kedge_seal_cost *ret, struct kedge_diag *d)
{
    struct kedge_sealed sealed;
    struct kedge_buf text;
    kedge_buf_init(&text, KEDGE_PEM_MAX);
    int err = kedge_buf_reserve(&text, KEDGE_PEM_MAX);
    err = err ? err : kedge_file_read(path, &text, d);
    *ret_sealed = !err && kedge_sealed_is(kedge_buf_view(&text));
    if (*ret_sealed) {
        err = kedge_sealed_decode(kedge_buf_view(&text), &sealed);
        *ret = err ? *ret : sealed.cost;
    }
    kedge_wipe(text.ptr, text.cap);
    kedge_buf_deinit(&text);
    return err;
}

/* Under the passphrase of the key whose place it takes. */
static int make_sealed(const struct folder *f, const struct kedge_seal_cost *cost, struct kedge_key_pair *ret,
                       struct kedge_diag *d)
{
    struct kedge_buf passphrase;
    kedge_buf_init(&passphrase, KEDGE_PASSPHRASE_MAX);
    int err = kedge_passphrase_get(f->now, false, &passphrase, d);
    if (!err) {
        kedge_key_generate(ret);
        err = kedge_keyfile_seal(f->next, ret, kedge_buf_view(&passphrase), cost, d);
    }
    kedge_wipe(passphrase.ptr, passphrase.cap);
    kedge_buf_deinit(&passphrase);
    return err;
}

/* Both keys; the new one is made once and kept until it is in force, so that a lost answer is asked for
 * again. It is sealed when the old one is. */
static int read_keys(const struct folder *f, struct kedge_key_pair *now, struct kedge_key_pair *next,
                     struct kedge_diag *d)
{
    struct kedge_seal_cost cost = kedge_seal_moderate;
    bool sealed = false;
    int err = kedge_keyfile_read_private(f->now, now, d);
    err = err ? err : read_cost(f->now, &sealed, &cost, d);
    if (!err && sealed && !kedge_file_exists(f->next)) {
        return make_sealed(f, &cost, next, d);
    }
    return err ? err : kedge_cli_key(f->next, true, next, d);
}

static int rotate(struct kedge_cli *c, const struct folder *f, const struct kedge_id *tenant,
                  const struct kedge_id *site)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_key_pair now, next;
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    if (!st) {
        return kedge_cli_fail(c, KEDGE_E_NOMEM, NULL);
    }
    memset(&now, 0, sizeof now);
    memset(&next, 0, sizeof next);
    int err = read_keys(f, &now, &next, &d);
    st->kind = KEDGE_ST_KEY_ROTATED;
    st->u.key_rotated = (struct kedge_st_key_rotated){.tenant = *tenant,
                                                      .role = KEDGE_ROLE_SITE,
                                                      .site = *site,
                                                      .old_key = now.public,
                                                      .new_key = next.public};
    int code = err ? kedge_cli_fail(c, err, &d) : kedge_cli_key_change(c, st, &now, &next);
    kedge_key_wipe(&now);
    kedge_key_wipe(&next);
    kedge_mem_free(st);
    return code;
}

int kedge_cmd_site_rotate(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_id tenant, site;
    struct folder f;
    const char *dir = kedge_cli_option(c, "site-folder", NULL);
    const char *names[2] = {kedge_cli_argument(c, 0), kedge_cli_argument(c, 1)};
    if (!names[0] || !names[1] || kedge_id_from(kedge_view_str(names[0]), &tenant) != KEDGE_OK
        || kedge_id_from(kedge_view_str(names[1]), &site) != KEDGE_OK) {
        return kedge_cli_usage(c, "TENANT SITE: expected names of a-z, 0-9, '.', '_', '-'");
    }
    if (!dir || !kedge_file_exists(dir)) {
        return kedge_cli_usage(c, "--site-folder DIR: expected the folder of kedge-client --site");
    }
    if (kedge_cli_option(c, "out", NULL) || kedge_cli_option(c, "also-key", NULL)) {
        return kedge_cli_usage(c, "only the site signs this, and its folder changes when it is in force");
    }
    int err = find_folder(dir, &f, &d);
    if (!err && !kedge_file_exists(f.now)) {
        err = kedge_diag_set(&d, KEDGE_E_NOT_FOUND, "%s: not there; the site has not been enrolled", f.now);
    }
    int lock = err ? err : kedge_file_lock(f.lock, &d);
    if (lock < 0) {
        if (lock == KEDGE_E_LOCKED) {
            (void)kedge_diag_hint(
                &d, "stop its kedge-client first: what it has signed and not sent would be refused");
        }
        return kedge_cli_fail(c, lock, &d);
    }
    int code = rotate(c, &f, &tenant, &site);
    if (code == 0 && rename(f.next, f.now) != 0) {
        kedge_cli_say(c, "Now move %s to %s by hand.\n", f.next, f.now);
        code = 3;
    }
    *strrchr(f.now, '/') = '\0';
    (void)!kedge_dir_sync(f.now); /* undone by a power cut, it is done again by the same command */
    close(lock);
    return code;
}
