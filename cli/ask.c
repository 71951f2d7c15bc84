/* Asks a coordinator, by its door or over the network. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/fetch.h"
#include "cli/local.h"
#include "cli/login/profile.h"
#include "common/base/try.h"
#include "common/json/json.h"
#include "crypto/keyfile.h"

/* What a person waits for at most (docs/cli.md). A wrong address should be told soon, so a connection has
 * less time than an answer. A door that is absent is waited for only as long as somebody needs who has just
 * started a coordinator, but START_MS while one holds the folder. */
enum {
    ADMIN_TIMEOUT_MS = 60000,
    CONNECT_MS = 3000,
    DOOR_MS = 2000,
    DOOR_NAP_MS = 20,
    DOOR_AGAIN_MS = 500,
    START_MS = 60000,
    BUSY_MS = 2000,
    BUSY_TOLD_MS = 8000, /* the coordinator says that it is worth waiting, and how long at a time */
    BUSY_NAP_MS = 50
};

int kedge_cli_read_file(const char *path, size_t max, struct kedge_buf *ret, struct kedge_diag *d)
{
    kedge_buf_init(ret, max);
    int err = strcmp(path, "-") == 0 ? kedge_stdin_read(ret, d) : kedge_file_or_pipe_read(path, ret, d);
    return !err && ret->len == 0 ? kedge_diag_set(d, KEDGE_E_USAGE, "%s: the file is empty", path) : err;
}

/* A person who has just started a coordinator may go on at once: its socket opens in a moment. How long a
 * start takes depends on its record and on what else the machine does, so a coordinator that is there is
 * waited for, and only one that is not there is given up soon. */
static bool is_open(const char *state, const char *door)
{
    char config[KEDGE_PATH_MAX];
    bool is_state = kedge_path_join(config, state, "config.json") == KEDGE_OK && kedge_file_exists(config);
    for (unsigned waited = 0;
         is_state && !kedge_file_exists(door)
         && (waited < DOOR_MS || (waited < START_MS && kedge_cli_coordinator_holds(state)));
         waited += DOOR_NAP_MS) {
        if (kedge_cli_pause(DOOR_NAP_MS)) {
            break;
        }
    }
    return kedge_file_exists(door);
}

/* Two ways to the same coordinator. Over the network both sides are known by keys alone: the server by the
 * pinned --server-key, the operator by --key. The door in the state folder opens for the user to whom the
 * coordinator belongs, and needs no key. */
int kedge_cli_dial(struct kedge_cli *c, struct kedge_key_pair *key, struct kedge_public_key *server,
                   struct kedge_net_client **ret, struct kedge_diag *d)
{
    char url[KEDGE_PATH_MAX + 32];
    struct kedge_net_client_options options = {.url = url, .connect_ms = CONNECT_MS};
    if (c->connect) {
        snprintf(url, sizeof url, "%s", c->connect);
        if (!c->server_key
            || kedge_hex_decode(kedge_view_str(c->server_key), server->b, KEDGE_KEY_LEN) != KEDGE_OK) {
            return kedge_diag_set(d, KEDGE_E_USAGE,
                                  "--connect needs --server-key, 64 hex digits (see: kedge status)");
        }
        if (!c->key) {
            return kedge_diag_set(d, KEDGE_E_USAGE,
                                  "--connect needs --key FILE, an operator's key, or a tenant admin's");
        }
        KEDGE_TRY(kedge_keyfile_read_private(c->key, key, d));
        options.key = key;
        options.server_key = server;
    } else if (c->profile) { /* which could not be read, or there would be an address */
        struct kedge_profile profile;
        struct kedge_id name;
        KEDGE_TRY(kedge_id_from(kedge_view_str(c->profile), &name));
        return kedge_profile_read(&name, &profile, d);
    } else {
        snprintf(url, sizeof url, "ipc://%s/coordinator.ipc", c->state);
        int denied = kedge_cli_may_look(c->state, d);
        if (denied) {
            return denied;
        }
        if (!is_open(c->state, url + strlen("ipc://"))) {
            if (kedge_cli_coordinator_holds(c->state)) {
                (void)kedge_diag_set(d, KEDGE_E_UNREACHABLE,
                                     "%s: the coordinator is still starting and does not answer", c->state);
                (void)kedge_diag_hint(d, "try again when its log says \"serving\"");
                return KEDGE_E_UNREACHABLE;
            }
            (void)kedge_diag_set(d, KEDGE_E_UNREACHABLE, "%s: no coordinator is running here", c->state);
            (void)kedge_diag_hint(d, "start it: kedge-coordinator --state %s; or name another --state",
                                  c->state);
            return KEDGE_E_UNREACHABLE;
        }
        options.reconnect_max_ms = DOOR_AGAIN_MS; /* our own machine */
    }
    int err = kedge_net_client_open(&options, ret, d);
    if (c->connect && (err == KEDGE_E_DENIED || err == KEDGE_E_ARG)) { /* an address that no call can use */
        return kedge_diag_wrap(d, KEDGE_E_USAGE, "--connect");
    }
    return err;
}

/* An error that the coordinator sent is marked as told: its exit code differs, for "there is no such job" is
 * an answer and "no coordinator" is none (kedge_cli_fail). */
static int take_answer(struct kedge_cli *c, const struct kedge_msg *msg, json_t **ret, struct kedge_diag *d)
{
    if (msg->type == KEDGE_MSG_ERROR) {
        c->told = true;
        return kedge_diag_set(d, kedge_msg_error_code(msg), "%.*s", (int)msg->u.error.text.len,
                              (const char *)msg->u.error.text.ptr);
    }
    if (msg->type != KEDGE_MSG_ADMIN_OK) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "the coordinator gave an answer that is none");
    }
    return kedgei_json_load(msg->u.admin_ok.json, KEDGE_ADMIN_JSON_MAX, "answer of the coordinator", ret, d);
}

/* One call. Something else is being written about this tenant's keys, or the coordinator has just started: a
 * moment later it is not so. */
int kedge_cli_call(struct kedge_net_client *client, struct kedge_view frame, struct kedge_net_reply *reply,
                   struct kedge_msg *ret)
{
    int err = KEDGE_OK;
    for (uint32_t waited = 0;;) {
        kedge_net_reply_release(reply);
        *reply = (struct kedge_net_reply){.impl = NULL};
        err = kedge_net_call(client, frame, ADMIN_TIMEOUT_MS, reply);
        if (!err) {
            err = kedge_msg_decode(reply->view, ret);
        }
        bool busy = !err && ret->type == KEDGE_MSG_ERROR && kedge_msg_error_code(ret) == KEDGE_E_BUSY;
        uint32_t told = busy ? ret->u.error.retry_ms : 0;
        uint32_t nap = told < BUSY_NAP_MS ? BUSY_NAP_MS : told < BUSY_TOLD_MS ? told : BUSY_TOLD_MS;
        if (!busy || waited >= (told > 0 ? BUSY_TOLD_MS : BUSY_MS) || kedge_cli_pause(nap)) {
            return err;
        }
        waited += nap;
    }
}

/* One call, which waits for a coordinator that starts: what a killed one has left of its door stands there
 * until then. A request that did not reach it was not sent, so it may be sent again. */
static int call_at_start(const struct kedge_cli *c, struct kedge_net_client *client, struct kedge_view frame,
                         struct kedge_net_reply *reply, struct kedge_msg *ret)
{
    int err = kedge_cli_call(client, frame, reply, ret);
    for (uint32_t waited = CONNECT_MS; err == KEDGE_E_UNREACHABLE && !c->connect && waited < START_MS
                                       && !kedge_cli_interrupted() && kedge_cli_coordinator_holds(c->state);
         waited += CONNECT_MS) {
        err = kedge_cli_call(client, frame, reply, ret);
    }
    return err;
}

/* A connection of its own for each question: the server bounds the connections of one key
 * (KEDGE_NET_PER_KEY_MAX), and a command that waits for hours should hold none of them. */
int kedge_cli_ask(struct kedge_cli *c, json_t *request, json_t **ret_answer, struct kedge_diag *d)
{
    struct kedge_net_client *client = NULL;
    struct kedge_net_reply reply = {.impl = NULL};
    struct kedge_key_pair key;
    struct kedge_public_key server;
    struct kedge_msg msg = {.type = KEDGE_MSG_ADMIN};
    struct kedge_buf frame, text;
    kedge_buf_init(&frame, KEDGE_FRAME_MAX);
    kedge_buf_init(&text, KEDGE_ADMIN_REQUEST_MAX);
    int err = kedge_cli_dump(request, JSON_COMPACT, &text);
    json_decref(request);
    c->told = false;
    if (!err) {
        err = kedge_cli_dial(c, &key, &server, &client, d);
    }
    if (!err) {
        msg.u.admin.json = kedge_buf_view(&text);
        err = kedge_msg_encode(&msg, &frame);
        if (!err) {
            err = call_at_start(c, client, kedge_buf_view(&frame), &reply, &msg);
        }
        err = err ? kedge_diag_set(d, err, "coordinator at %s: %s", c->connect ? c->connect : c->state,
                                   kedge_strerror(err))
                  : take_answer(c, &msg, ret_answer, d);
    }
    kedge_net_reply_release(&reply);
    kedge_net_client_close(client);
    kedge_key_wipe(&key);
    kedge_buf_deinit(&frame);
    kedge_buf_deinit(&text);
    return err;
}
