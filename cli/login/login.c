/* kedge login, logout, whoami.
 *
 * What makes later commands safe is written down once, here: whose key the coordinator must have (pinned,
 * from the inviter, never from the coordinator itself), and the keys of the logs against which its
 * receipts are checked. The latter come with --trust FILE from elsewhere, or else from the coordinator at
 * this first meeting: then a later change of them is noticed, but not that they were wrong from the
 * beginning, and the command says so. */
#include <stdio.h>
#include <string.h>

#include "cli/local.h"
#include "cli/login/profile.h"
#include "common/base/try.h"
#include "common/json/json.h"

enum { TRUST_MAX = 4 * 1024 * 1024 };

/* "tls+tcp://HOST:PORT#HEX": an address and the key that one must find there, in one word to hand on. */
static bool take_address(struct kedge_cli *c, const char *word, struct kedge_profile *p)
{
    const char *hash = strchr(word, '#');
    size_t len = hash ? (size_t)(hash - word) : strlen(word);
    const char *key = c->server_key ? c->server_key : hash ? hash + 1 : NULL;
    struct kedge_public_key parsed;
    if (strncmp(word, "tls+tcp://", strlen("tls+tcp://")) != 0 || len >= sizeof p->connect) {
        (void)kedge_cli_usage(c, "%s: expected tls+tcp://HOST:PORT", kedge_cli_word(word).s);
        return false;
    }
    if (!key || kedge_hex_decode(kedge_view_str(key), parsed.b, KEDGE_KEY_LEN) != KEDGE_OK) {
        (void)kedge_cli_usage(c,
                              "expected --server-key, 64 hex digits: the coordinator's key, from who invited "
                              "you (kedge status shows it there)");
        return false;
    }
    memcpy(p->connect, word, len);
    p->connect[len] = '\0';
    snprintf(p->server_key, sizeof p->server_key, "%s", key);
    return true;
}

static bool take_name(struct kedge_cli *c, const char *asked, struct kedge_id *ret)
{
    if (kedge_id_from(kedge_view_str(asked ? asked : "default"), ret) != KEDGE_OK) {
        (void)kedge_cli_usage(c, "--profile: expected a name of a-z, 0-9, '.', '_', '-'");
        return false;
    }
    return true;
}

/* The coordinator's own word about its logs, or the file that the user has from elsewhere. */
static int take_trust(struct kedge_cli *c, const char *given, const char *folder, struct kedge_profile *p,
                      struct kedge_diag *d)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    json_t *answer = NULL;
    kedge_buf_init(&text, TRUST_MAX);
    if (given) {
        return kedge_path_real(given, p->trust, d);
    }
    KEDGE_TRY(kedge_path_join(p->trust, folder, "trust.json"));
    KEDGE_TRY(kedge_cli_ask(c, json_pack("{s:s}", "verb", "trust"), &answer, d));
    int err = kedge_cli_dump(answer, JSON_INDENT(2), &text);
    json_decref(answer);
    kedge_buf_put_u8(&text, '\n');
    KEDGE_TRY(err ? err : text.err);
    KEDGE_TRY(kedge_dir_make(folder, 0700, d));
    return kedge_file_write(p->trust, kedge_buf_view(&text), 0600, d);
}

static void say_who(const struct kedge_cli *c, const json_t *who)
{
    const json_t *name;
    size_t i;
    kedge_cli_say(c, "role         %s\n", kedge_cli_text(who, "role"));
    json_array_foreach(json_object_get(who, "tenants"), i, name)
    {
        const char *text = json_string_value(name);
        kedge_cli_say(c, "tenant       %s\n", text ? text : "");
    }
}

/* Asks with what is to be written down, so that nothing is kept that does not work. */
static int meet(struct kedge_cli *c, const char *given_trust, const char *folder, struct kedge_profile *p,
                json_t **ret_who, struct kedge_diag *d)
{
    c->connect = p->connect;
    c->server_key = p->server_key;
    c->key = p->key;
    KEDGE_TRY(kedge_cli_ask(c, json_pack("{s:s}", "verb", "whoami"), ret_who, d));
    p->is_tenants = strcmp(kedge_cli_text(*ret_who, "role"), "tenant-admin") == 0;
    KEDGE_TRY(take_trust(c, given_trust, folder, p, d));
    return kedge_profile_write(p, d);
}

int kedge_cmd_login(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_profile p = {.connect = ""};
    char folder[KEDGE_PATH_MAX];
    json_t *who = NULL;
    const char *word = kedge_cli_argument(c, 0);
    if (!word) {
        return kedge_cli_usage(c, "URL is missing: tls+tcp://HOST:PORT, where the coordinator listens");
    }
    if (!kedge_cli_no_more(c, 1) || !take_name(c, c->profile, &p.name) || !take_address(c, word, &p)) {
        return 2;
    }
    if (!c->key) {
        return kedge_cli_usage(c, "expected --key FILE: your tenant's admin key, or an operator's");
    }
    KEDGE_CLI_TRY(c, kedge_path_real(c->key, p.key, &d), &d);
    KEDGE_CLI_TRY(c, kedge_profile_folder(&p.name, folder, &d), &d);
    const char *trust = c->trust;
    int err = meet(c, trust, folder, &p, &who, &d);
    if (err) {
        json_decref(who);
        return kedge_cli_fail(c, err, &d);
    }
    say_who(c, who);
    kedge_cli_say(c, "coordinator  %s\nprofile      %s, in %s\n", p.connect, p.name.s, folder);
    if (!trust) {
        kedge_cli_say(c,
                      "The keys of the logs are the coordinator's own word, kept in %s:\ncompare them with "
                      "what others have, or log in with --trust FILE.\n",
                      p.trust);
    }
    json_object_set_new(who, "profile", json_string(p.name.s));
    json_object_set_new(who, "folder", json_string(folder));
    return kedge_cli_ok(c, who);
}

int kedge_cmd_logout(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_profile p;
    char folder[KEDGE_PATH_MAX];
    if (!kedge_cli_no_more(c, 0) || !take_name(c, c->profile, &p.name)) {
        return 2;
    }
    struct kedge_id name = p.name;
    int err = kedge_profile_read(&name, &p, &d);
    KEDGE_CLI_TRY(c, err == KEDGE_E_FORMAT ? KEDGE_OK : err, &d);
    KEDGE_CLI_TRY(c, kedge_profile_folder(&name, folder, &d), &d);
    KEDGE_CLI_TRY(c, kedge_dir_remove(folder), &d);
    kedge_cli_say(c, "Profile %s is gone; the key stays where it is.\n", name.s);
    return kedge_cli_ok(c, json_pack("{s:s}", "profile", name.s));
}

int kedge_cmd_whoami(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    json_t *who = NULL;
    if (!kedge_cli_no_more(c, 0)) {
        return 2;
    }
    KEDGE_CLI_TRY(c, kedge_cli_ask(c, json_pack("{s:s}", "verb", "whoami"), &who, &d), &d);
    say_who(c, who);
    kedge_cli_say(c, "coordinator  %s\n", c->connect ? c->connect : c->state);
    if (c->profile) {
        kedge_cli_say(c, "profile      %s\n", c->profile);
    }
    return kedge_cli_ok(c, who);
}
