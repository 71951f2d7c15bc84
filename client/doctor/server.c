/* The coordinator that a site is enrolled at: does it answer, and does it hold the key that site.json pins?
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "client/doctor/doctor.h"
#include "common/base/os/file.h"
#include "common/base/text.h"
#include "common/net/client.h"
#include "common/wire/messages.h"
#include "crypto/keyfile.h"

enum { CALL_MS = 3000, FILE_MAX = 65536, HELLO_MAX = 4096 };

static const char *text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

/* Any message that can be decoded is an answer, also a refusal: what is asked is whether a coordinator is
 * there and holds its key. */
int kedge_doctor_hello(const struct kedge_net_client_options *options, uint32_t timeout_ms,
                       struct kedge_diag *d)
{
    struct kedge_net_client *client = NULL;
    struct kedge_net_reply reply = {.impl = NULL};
    struct kedge_msg msg = {.type = KEDGE_MSG_HELLO,
                            .u.hello = {.protocol = KEDGE_WIRE_VERSION, .program = kedge_view_str("kedge")}};
    struct kedge_buf frame;
    kedge_buf_init(&frame, HELLO_MAX);
    int err = kedge_msg_encode(&msg, &frame);
    if (!err) {
        err = kedge_net_client_open(options, &client, d);
    }
    if (!err) {
        err = kedge_net_call(client, kedge_buf_view(&frame), timeout_ms, &reply);
    }
    if (!err) {
        err = kedge_msg_decode(reply.view, &msg);
    }
    kedge_net_reply_release(&reply);
    kedge_net_client_close(client);
    kedge_buf_deinit(&frame);
    return err;
}

/* A file of the site's as JSON, the caller's; NULL when there is none to read, which is said elsewhere. */
static json_t *read_object(const char *dir, const char *name)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf text;
    json_t *o = NULL;
    kedge_buf_init(&text, FILE_MAX);
    int err = kedge_path_join(path, dir, name);
    if (!err) {
        err = kedge_file_read(path, &text, NULL);
    }
    if (!err) {
        err = kedgei_json_load(kedge_buf_view(&text), FILE_MAX, name, &o, NULL);
    }
    kedge_buf_deinit(&text);
    return err ? NULL : o;
}

/* As policy.json has it. False when the login is not to be had, which is said. */
static bool read_login(struct kedge_doctor *k, const char *dir, const json_t *policy,
                       char ret[KEDGE_NET_LOGIN_MAX + 1])
{
    const char *name = text_of(policy, "proxy_login_file");
    struct kedge_diag d = {.text = "", .hint = ""};
    char path[KEDGE_PATH_MAX];
    ret[0] = '\0';
    if (!name[0]) {
        return true;
    }
    int n = name[0] == '/' ? snprintf(path, sizeof path, "%s", name)
                           : snprintf(path, sizeof path, "%s/%s", dir, name);
    int err = n < 0 || n >= (int)sizeof path ? KEDGE_E_TOO_LONG : kedge_net_login_read(path, ret, &d);
    if (err) {
        kedge_doctor_fail(k, "proxy login", "correct \"proxy_login_file\" in policy.json", err, &d);
    }
    return !err;
}

/* The same handshake as kedge-client's, with the site's own key, and HELLO. Nothing else is asked, so that
 * a doctor that runs beside the client changes nothing at the coordinator. */
static void try_server(struct kedge_doctor *k, const char *dir, const char *url, const char *server_hex,
                       const json_t *policy)
{
    char login[KEDGE_NET_LOGIN_MAX + 1];
    struct kedge_diag d = {.text = ""};
    struct kedge_key_pair key;
    struct kedge_public_key server_key;
    char path[KEDGE_PATH_MAX];
    int err = kedge_path_join(path, dir, "keys/tls.pem");
    if (!err) {
        err = kedge_hex_decode(kedge_view_str(server_hex), server_key.b, sizeof server_key.b);
    }
    if (!err) {
        err = kedge_keyfile_read_private(path, &key, &d);
    }
    if (err) {
        return; /* said already, where the folder was looked at */
    }
    if (!read_login(k, dir, policy, login)) {
        kedge_key_wipe(&key);
        return;
    }
    struct kedge_net_client_options options = {.url = url,
                                               .key = &key,
                                               .server_key = &server_key,
                                               .proxy = text_of(policy, "proxy"),
                                               .proxy_login = login,
                                               .connect_ms = CALL_MS};
    err = kedge_doctor_hello(&options, CALL_MS, &d);
    kedge_wipe(login, sizeof login);
    kedge_key_wipe(&key);
    if (err == KEDGE_E_PEER_AUTH) {
        kedge_doctor_say(k, KEDGE_DOCTOR_FAIL, "server",
                         "ask its operator for the fingerprint (kedge status) and a "
                         "new token",
                         "%s is not who site.json pins", url);
    } else if (err) {
        kedge_doctor_fail(k, "server", "is the coordinator running, and does a firewall let TCP through?",
                          err, &d);
    } else {
        kedge_doctor_say(k, KEDGE_DOCTOR_OK, "server", "", "%s answers and holds the pinned key%s", url,
                         options.proxy[0] ? ", through the proxy" : "");
    }
}

void kedge_doctor_site_server(struct kedge_doctor *k, const char *dir)
{
    json_t *o = read_object(dir, "site.json"), *policy = read_object(dir, "policy.json");
    if (text_of(o, "server")[0]) {
        try_server(k, dir, text_of(o, "server"), text_of(o, "server_key"), policy);
    }
    json_decref(o);
    json_decref(policy);
}
