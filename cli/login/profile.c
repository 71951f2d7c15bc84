/* The profile is read before every command, also before one that asks no coordinator, so an absent one is
 * nothing and a broken one is told only to those who would use it. */
#include "cli/login/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/keys_used.h"
#include "common/base/try.h"
#include "common/json/json.h"

enum { FILE_MAX = 16 * 1024, SCHEMA = 1 };

/* ---- where ---- */

static int config_folder(char ret[KEDGE_PATH_MAX], struct kedge_diag *d)
{
    static const struct {
        const char *variable, *below;
    } places[] = {{"KEDGE_CONFIG", "."}, {"XDG_CONFIG_HOME", "kedge"}, {"HOME", ".config/kedge"}};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const char *value = getenv(places[i].variable);
        if (value && value[0] == '/') {
            return kedge_path_join(ret, value, places[i].below);
        }
    }
    return kedge_diag_set(d, KEDGE_E_USAGE,
                          "nothing says where profiles are kept: set KEDGE_CONFIG or HOME, an absolute path");
}

int kedge_profile_folder(const struct kedge_id *name, char ret[KEDGE_PATH_MAX], struct kedge_diag *d)
{
    char config[KEDGE_PATH_MAX], profiles[KEDGE_PATH_MAX];
    KEDGE_TRY(config_folder(config, d));
    KEDGE_TRY(kedge_path_join(profiles, config, "profiles"));
    return kedge_path_join(ret, profiles, name->s);
}

/* ---- the file ---- */

static int not_found(const struct kedge_id *name, struct kedge_diag *d)
{
    *d = (struct kedge_diag){.text = ""};
    (void)kedge_diag_set(d, KEDGE_E_NOT_FOUND, "there is no profile \"%s\"", name->s);
    (void)kedge_diag_hint(d, "kedge login URL --server-key HEX --key FILE --profile %s", name->s);
    return KEDGE_E_NOT_FOUND;
}

static int take_text(const json_t *o, const char *path, const char *field, size_t max, char *ret,
                     struct kedge_diag *d)
{
    const char *text = json_string_value(json_object_get(o, field));
    if (!text || !text[0] || strlen(text) >= max) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "%s: \"%s\": expected a text of at most %zu bytes", path,
                              field, max - 1);
    }
    memcpy(ret, text, strlen(text) + 1);
    return KEDGE_OK;
}

static int parse(const json_t *o, const char *path, struct kedge_profile *ret, struct kedge_diag *d)
{
    struct kedge_public_key key;
    if (json_integer_value(json_object_get(o, "schema_version")) != SCHEMA) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "%s: \"schema_version\": expected %d", path, SCHEMA);
    }
    KEDGE_TRY(take_text(o, path, "connect", sizeof ret->connect, ret->connect, d));
    KEDGE_TRY(take_text(o, path, "server_key", sizeof ret->server_key, ret->server_key, d));
    KEDGE_TRY(take_text(o, path, "key", sizeof ret->key, ret->key, d));
    KEDGE_TRY(take_text(o, path, "trust", sizeof ret->trust, ret->trust, d));
    ret->is_tenants = json_is_true(json_object_get(o, "is_tenants"));
    return kedge_hex_decode(kedge_view_str(ret->server_key), key.b, KEDGE_KEY_LEN) == KEDGE_OK
               ? KEDGE_OK
               : kedge_diag_set(d, KEDGE_E_FORMAT, "%s: \"server_key\": expected 64 hex digits", path);
}

static int file_of(const struct kedge_id *name, char ret[KEDGE_PATH_MAX], struct kedge_diag *d)
{
    char folder[KEDGE_PATH_MAX];
    KEDGE_TRY(kedge_profile_folder(name, folder, d));
    return kedge_path_join(ret, folder, "profile.json");
}

int kedge_profile_read(const struct kedge_id *name, struct kedge_profile *ret, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    json_auto_t *o = NULL;
    kedge_buf_init(&text, FILE_MAX);
    *ret = (struct kedge_profile){.name = *name};
    int err = file_of(name, path, d);
    if (err || !kedge_file_exists(path)) {
        return not_found(name, d);
    }
    KEDGE_TRY(kedge_file_read(path, &text, d));
    KEDGE_TRY(kedgei_json_load(kedge_buf_view(&text), FILE_MAX, path, &o, d));
    return parse(o, path, ret, d);
}

int kedge_profile_write(const struct kedge_profile *profile, struct kedge_diag *d)
{
    char folder[KEDGE_PATH_MAX], path[KEDGE_PATH_MAX];
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, FILE_MAX);
    KEDGE_TRY(kedge_profile_folder(&profile->name, folder, d));
    KEDGE_TRY(kedge_dir_make(folder, 0700, d));
    KEDGE_TRY(file_of(&profile->name, path, d));
    json_auto_t *o = json_pack("{s:i,s:s,s:s,s:s,s:s,s:b}", "schema_version", SCHEMA, "connect",
                               profile->connect, "server_key", profile->server_key, "key", profile->key,
                               "trust", profile->trust, "is_tenants", profile->is_tenants);
    KEDGE_TRY(kedge_cli_dump(o, JSON_INDENT(2), &text));
    kedge_buf_put_u8(&text, '\n');
    return text.err ? text.err : kedge_file_write(path, kedge_buf_view(&text), 0600, d);
}

/* ---- in place of options ---- */

/* As long as the program, since the options' texts are used until its end. */
static struct kedge_profile used;

static void fill_in(struct kedge_cli *c)
{
    c->connect = used.connect;
    c->server_key = c->server_key ? c->server_key : used.server_key;
    if (!c->key) {
        c->key = used.key;
        kedge_cli_note_key(c, "key", used.key);
    }
    if (!c->admin_key && used.is_tenants) {
        c->admin_key = used.key;
        kedge_cli_note_key(c, "admin-key", used.key);
    }
    c->trust = c->trust ? c->trust : used.trust;
}

bool kedge_profile_apply(struct kedge_cli *c, bool state_is_named)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_id name = {.s = "default"};
    const char *asked = kedge_cli_option(c, "profile", NULL), *variable = getenv("KEDGE_PROFILE");
    const char *said = asked ? asked : variable && variable[0] ? variable : NULL;
    if (asked && (state_is_named || c->connect)) {
        (void)kedge_cli_usage(c, "--profile names a coordinator, and so does %s: give one of them",
                              c->connect ? "--connect" : "--state or $KEDGE_STATE");
        return false;
    }
    if (said && kedge_id_from(kedge_view_str(said), &name) != KEDGE_OK) {
        (void)kedge_cli_usage(c, "%s: expected a name of a-z, 0-9, '.', '_', '-'",
                              asked ? "--profile" : "KEDGE_PROFILE");
        return false;
    }
    if (c->argc > 0 && (strcmp(c->argv[0], "login") == 0 || strcmp(c->argv[0], "logout") == 0)) {
        used.name = name;
        c->profile = used.name.s; /* which they make and end */
        return true;
    }
    if (state_is_named || c->connect || (!said && kedge_file_exists("kedge-state/config.json"))) {
        return true;
    }
    int err = kedge_profile_read(&name, &used, &d);
    if (!err) {
        fill_in(c);
    }
    c->profile = said || err != KEDGE_E_NOT_FOUND ? used.name.s : NULL;
    return true;
}

int kedge_profile_use_key(const struct kedge_cli *c, const char *path, struct kedge_diag *d)
{
    if (!c->profile || c->connect != used.connect) {
        return KEDGE_OK;
    }
    KEDGE_TRY(kedge_path_real(path, used.key, d));
    return kedge_profile_write(&used, d);
}
