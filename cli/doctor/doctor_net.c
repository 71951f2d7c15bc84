/* TLS on loopback with throw-away keys. */
#include <string.h>

#include "cli/doctor/doctor.h"
#include "cli/local.h"
#include "common/base/os/clock.h"
#include "common/json/json.h"
#include "common/net/client.h"
#include "common/net/server.h"

enum { CALL_MS = 3000, FILE_MAX = 65536 };

static void answer_same(void *arg, struct kedge_net_request *req)
{
    (void)arg;
    (void)kedge_net_reply(req, kedge_net_request_view(req));
}

/* One call; the answer must be the question. */
static int call_once(const char *url, const struct kedge_key_pair *key,
                     const struct kedge_public_key *server_key, struct kedge_diag *d)
{
    struct kedge_net_client_options options = {
        .url = url, .key = key, .server_key = server_key, .connect_ms = CALL_MS};
    struct kedge_net_client *client = NULL;
    struct kedge_net_reply reply = {.impl = NULL};
    struct kedge_view question = kedge_view_str("is this the same wire");
    int err = kedge_net_client_open(&options, &client, d);
    if (!err) {
        err = kedge_net_call(client, question, CALL_MS, &reply);
    }
    if (!err && !kedge_view_eq(reply.view, question)) {
        err = KEDGE_E_FORMAT;
    }
    kedge_net_reply_release(&reply);
    kedge_net_client_close(client);
    return err;
}

/* Two calls, and the second must fail: a TLS that accepts any key would pass the first one, and what the
 * pinned key is for is to be refused otherwise. No file and no port of the installation is used. */
void kedge_doctor_loopback(struct kedge_doctor *k)
{
    static const char mend[] = "is OpenSSL 3 installed, and is loopback (lo) up?";
    struct kedge_diag d = {.text = ""};
    struct kedge_key_pair ours, theirs, other;
    struct kedge_net_server *server = NULL;
    kedge_key_generate(&ours);
    kedge_key_generate(&theirs);
    kedge_key_generate(&other);
    struct kedge_net_server_options options = {
        .urls = {"tls+tcp://127.0.0.1:0"}, .key = &theirs, .handler = answer_same};
    int wrong = KEDGE_OK, err = kedge_net_server_open(&options, &server, &d);
    uint64_t begin = kedge_os_now_ns(), end = begin;
    if (!err) {
        err = call_once(kedge_net_server_url(server, 0), &ours, &theirs.public, &d);
        end = kedge_os_now_ns();
        wrong = call_once(kedge_net_server_url(server, 0), &ours, &other.public, NULL);
    }
    if (err) {
        kedge_doctor_fail(k, "TLS on loopback", mend, err, &d);
    } else if (wrong != KEDGE_E_PEER_AUTH) {
        kedge_doctor_say(k, KEDGE_DOCTOR_FAIL, "TLS on loopback", mend,
                         "a server with another key should be refused, but: %s", kedge_strerror(wrong));
    } else {
        kedge_doctor_say(k, KEDGE_DOCTOR_OK, "TLS on loopback", "",
                         "first call in %.1f ms; a server with another key is refused",
                         (double)(end - begin) / 1e6);
    }
    kedge_net_server_close(server);
    kedge_key_wipe(&ours);
    kedge_key_wipe(&theirs);
    kedge_key_wipe(&other);
}
