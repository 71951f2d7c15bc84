/* The folder of a witness: whom it watches, its two keys (one to speak, one to cosign), what it has cosigned
 * and what it found. witness.json is written last and says that the folder is whole. */
#include "cli/witness/witness_folder.h"

#include <stdio.h>
#include <string.h>

#include "chain/state/copy.h"
#include "cli/cli.h"
#include "common/base/try.h"
#include "common/json/json.h"
#include "crypto/keyfile.h"

enum { FILE_MAX = 16384 };

static int key_path(const char *dir, const char *name, char out[KEDGE_PATH_MAX], struct kedge_diag *d)
{
    return kedge_state_path(out, d, dir, "keys/%s.pem", name);
}

static int make_folders(const char *dir, struct kedge_diag *d)
{
    static const char *const names[] = {"keys", "cosigned", "evidence"};
    char path[KEDGE_PATH_MAX];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        int err = kedge_state_path(path, d, dir, "%s", names[i]);
        if (err) {
            return err;
        }
        err = kedge_dir_make(path, 0700, d);
        if (err) {
            return err;
        }
    }
    return KEDGE_OK;
}

/* A creation that was interrupted goes on with the key that it made. */
static int make_key(const char *dir, const char *name, struct kedge_key_pair *ret, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    int err = key_path(dir, name, path, d);
    if (!err && kedge_file_exists(path)) {
        return kedge_keyfile_read_private(path, ret, d);
    }
    if (!err) {
        kedge_key_generate(ret);
        err = kedge_keyfile_write_private(path, ret, d);
    }
    return err;
}

json_t *kedge_witness_vkey(const struct kedge_vkey *vkey)
{
    struct kedge_buf text;
    kedge_buf_init(&text, KEDGE_VKEY_MAX);
    kedge_vkey_encode(vkey, &text);
    json_t *o = json_stringn((const char *)text.ptr, text.len);
    kedge_buf_deinit(&text);
    return o;
}

/* witness.json comes last: a folder without it is the rest of an interrupted command, and the command can be
 * given again. */
int kedge_witness_folder_create(const char *dir, struct kedge_witness_folder *w, struct kedge_diag *reterr)
{
    char path[KEDGE_PATH_MAX], hex[2 * KEDGE_KEY_LEN + 1], admin[2 * KEDGE_KEY_LEN + 1];
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, FILE_MAX);
    KEDGE_TRY(kedge_state_path(path, reterr, dir, "witness.json"));
    if (kedge_file_exists(path)) {
        return kedge_diag_set(reterr, KEDGE_E_EXISTS, "%s: there is a witness already", path);
    }
    KEDGE_TRY(kedge_state_copy_create(dir, w->deployment, reterr));
    KEDGE_TRY(make_folders(dir, reterr));
    KEDGE_TRY(make_key(dir, "tls", &w->tls, reterr));
    KEDGE_TRY(make_key(dir, "cosign", &w->cosign, reterr));
    kedge_hex_encode(w->server_key.b, KEDGE_KEY_LEN, hex);
    kedge_hex_encode(w->admin_key.b, KEDGE_KEY_LEN, admin);
    json_auto_t *o = json_pack("{s:i,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:o,s:o}", "schema_version", 1, "deployment",
                               w->deployment, "tenant", w->tenant.s, "witness", w->witness.s, "name", w->name,
                               "coordinator", w->address, "server_key", hex, "admin_key", admin, "main_log",
                               kedge_witness_vkey(&w->main_log), "log", kedge_witness_vkey(&w->log));
    KEDGE_TRY(kedge_cli_dump(o, JSON_INDENT(2), &text));
    kedge_buf_put_str(&text, "\n");
    /* last: its presence says that the folder is whole */
    return kedge_file_write(path, kedge_buf_view(&text), 0600, reterr);
}

/* A text of the file; "" and an error when it is missing or longer than out. */
static int get_text(const json_t *o, const char *key, char *out, size_t out_len, const char *path,
                    struct kedge_diag *d)
{
    const char *s = json_string_value(json_object_get(o, key));
    if (!s || strlen(s) >= out_len) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "%s: \"%s\" is missing or too long", path, key);
    }
    snprintf(out, out_len, "%s", s);
    return KEDGE_OK;
}

static int get_vkey(const json_t *o, const char *key, struct kedge_vkey *ret, const char *path,
                    struct kedge_diag *d)
{
    char text[KEDGE_VKEY_MAX + 1];
    int err = get_text(o, key, text, sizeof text, path, d);
    if (!err && kedge_vkey_decode(kedge_view_str(text), ret) != KEDGE_OK) {
        err = kedge_diag_set(d, KEDGE_E_FORMAT, "%s: \"%s\": expected a verifier key", path, key);
    }
    return err;
}

/* Every member is demanded: a witness that went on without one (the admin's key, a log's key) would watch
 * less than its tenant believes. */
static int parse(const json_t *o, const char *path, struct kedge_witness_folder *w, struct kedge_diag *d)
{
    char tenant[KEDGE_ID_MAX + 1], witness[KEDGE_ID_MAX + 1];
    char hex[2 * KEDGE_KEY_LEN + 1], admin[2 * KEDGE_KEY_LEN + 1];
    KEDGE_TRY(get_text(o, "deployment", w->deployment, sizeof w->deployment, path, d));
    KEDGE_TRY(get_text(o, "tenant", tenant, sizeof tenant, path, d));
    KEDGE_TRY(get_text(o, "witness", witness, sizeof witness, path, d));
    KEDGE_TRY(get_text(o, "name", w->name, sizeof w->name, path, d));
    KEDGE_TRY(get_text(o, "coordinator", w->address, sizeof w->address, path, d));
    KEDGE_TRY(get_text(o, "server_key", hex, sizeof hex, path, d));
    KEDGE_TRY(get_text(o, "admin_key", admin, sizeof admin, path, d));
    KEDGE_TRY(get_vkey(o, "main_log", &w->main_log, path, d));
    KEDGE_TRY(get_vkey(o, "log", &w->log, path, d));
    const bool fits = kedge_id_from(kedge_view_str(tenant), &w->tenant) == KEDGE_OK
                      && kedge_id_from(kedge_view_str(witness), &w->witness) == KEDGE_OK
                      && kedge_hex_decode(kedge_view_str(hex), w->server_key.b, KEDGE_KEY_LEN) == KEDGE_OK
                      && kedge_hex_decode(kedge_view_str(admin), w->admin_key.b, KEDGE_KEY_LEN) == KEDGE_OK;
    return fits ? KEDGE_OK
                : kedge_diag_set(d, KEDGE_E_FORMAT,
                                 "%s: \"tenant\", \"witness\", \"server_key\" or \"admin_key\" is malformed",
                                 path);
}

/* On an error *ret may hold a private key already. */
int kedge_witness_folder_read(const char *dir, struct kedge_witness_folder *ret, struct kedge_diag *reterr)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    json_auto_t *o = NULL;
    *ret = (struct kedge_witness_folder){.name = ""};
    kedge_buf_init(&text, FILE_MAX);
    KEDGE_TRY(kedge_state_path(path, reterr, dir, "witness.json"));
    int err = kedge_file_read(path, &text, reterr);
    if (err == KEDGE_E_NOT_FOUND) {
        (void)kedge_diag_hint(reterr, "make a witness's folder with: kedge witness init");
    }
    KEDGE_TRY(err);
    KEDGE_TRY(kedgei_json_load(kedge_buf_view(&text), FILE_MAX, path, &o, reterr));
    KEDGE_TRY(parse(o, path, ret, reterr));
    KEDGE_TRY(key_path(dir, "tls", path, reterr));
    KEDGE_TRY(kedge_keyfile_read_private(path, &ret->tls, reterr));
    KEDGE_TRY(key_path(dir, "cosign", path, reterr));
    return kedge_keyfile_read_private(path, &ret->cosign, reterr);
}

void kedge_witness_folder_wipe(struct kedge_witness_folder *w)
{
    kedge_key_wipe(&w->tls);
    kedge_key_wipe(&w->cosign);
}
