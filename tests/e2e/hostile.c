#include "tests/e2e/hostile.h"

#include <check.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chain/log/merkle.h"
#include "chain/state/state.h"
#include "chain/statement/statement_position.h"
#include "common/base/os/clock.h"
#include "common/base/os/process.h"
#include "common/base/try.h"
#include "common/wire/token.h"

const char HX_SPEC[] = "{\"name\":\"hostile\",\"tenants\":[\"org-a\",\"org-b\"],"
                       "\"model\":{\"preset\":\"mclr\",\"inputs\":8,\"classes\":2},\"data\":\"d\","
                       "\"rounds\":2,\"sites_min\":2,\"quorum\":1,\"round_timeout_s\":3600}";
static const char OTHER[] = "{\"name\":\"other\",\"tenants\":[\"org-b\"],"
                            "\"model\":{\"preset\":\"mclr\",\"inputs\":3,\"classes\":2},\"data\":\"d\","
                            "\"rounds\":1}";

static char scratch[64], state[80];
static struct kedge_process coordinator;
struct kedge_net_client *hx_door;
char hx_address[KEDGE_TOKEN_ADDRESS_MAX + 1];
static struct kedge_public_key server_key;
struct kedge_key_pair hx_admins[HX_MEMBERS];
static const char *const tenants[HX_MEMBERS] = {"org-a", "org-b"};
struct hx_peer hx_alice = {"org-a", "site-1", .net = NULL}, hx_gone = {"org-a", "site-2", .net = NULL},
               hx_waiting = {"org-a", "site-3", .net = NULL}, hx_bob = {"org-b", "site-1", .net = NULL},
               hx_stranger = {"org-a", "site-9", .net = NULL};
static struct kedge_net_reply reply; /* the latest answer's memory */
struct kedge_msg_task hx_task;
struct kedge_hash hx_spec, hx_other_spec;
struct kedge_statement hx_st; /* too large for a stack */
unsigned hx_refusals;

struct kedge_id hx_id_of(const char *s)
{
    struct kedge_id id;
    ck_assert_int_eq(kedge_id_from(kedge_view_str(s), &id), KEDGE_OK);
    return id;
}

/* Sends bytes; what came back, or the code of what went wrong here or there. */
int hx_ask_bytes(struct kedge_net_client *net, struct kedge_view frame, struct kedge_msg *ret)
{
    kedge_net_reply_release(&reply);
    KEDGE_TRY(kedge_net_call(net, frame, HX_PATIENCE_MS, &reply));
    KEDGE_TRY(kedge_msg_decode(reply.view, ret));
    return ret->type == KEDGE_MSG_ERROR || ret->type == KEDGE_MSG_REFUSED ? kedge_msg_error_code(ret)
                                                                          : KEDGE_OK;
}

int hx_ask(struct kedge_net_client *net, const struct kedge_msg *msg, struct kedge_msg *ret)
{
    struct kedge_buf frame;
    kedge_buf_init(&frame, KEDGE_FRAME_MAX);
    ck_assert_int_eq(kedge_msg_encode(msg, &frame), KEDGE_OK);
    int err = hx_ask_bytes(net, kedge_buf_view(&frame), ret);
    kedge_buf_deinit(&frame);
    return err;
}

static int ask_text(struct kedge_net_client *net, const char *json, struct kedge_msg *ret)
{
    struct kedge_msg msg = {.type = KEDGE_MSG_ADMIN};
    msg.u.admin.json = kedge_view_str(json);
    return hx_ask(net, &msg, ret);
}

/* The operator's request (taken over) that must go well; the caller frees the answer. */
json_t *hx_operate(json_t *request)
{
    struct kedge_msg answer;
    char *text = json_dumps(request, JSON_COMPACT);
    ck_assert_ptr_nonnull(text);
    int err = ask_text(hx_door, text, &answer);
    ck_assert_msg(err == KEDGE_OK, "%s: %s", text, kedge_strerror(err));
    json_t *o = json_loadb((const char *)answer.u.admin_ok.json.ptr, answer.u.admin_ok.json.len, 0, NULL);
    ck_assert_ptr_nonnull(o);
    free(text);
    json_decref(request);
    return o;
}

struct hx_sizes hx_measure(void)
{
    struct hx_sizes s = {.main = 0};
    json_t *o = hx_operate(json_pack("{s:s}", "verb", "status"));
    s.main = json_integer_value(json_object_get(o, "main_size"));
    json_decref(o);
    o = hx_operate(json_pack("{s:s}", "verb", "tenant.list"));
    const json_t *list = json_object_get(o, "tenants");
    ck_assert_uint_eq(json_array_size(list), HX_MEMBERS);
    for (size_t i = 0; i < HX_MEMBERS; i++) {
        s.tenants[i] = json_integer_value(json_object_get(json_array_get(list, i), "ledger_size"));
    }
    json_decref(o);
    return s;
}

void hx_check_unchanged(const struct hx_sizes *before, const char *what)
{
    struct hx_sizes now = hx_measure();
    ck_assert_msg(memcmp(before, &now, sizeof now) == 0, "%s: a ledger has grown", what);
    hx_refusals++;
}

void hx_refuse(struct kedge_net_client *net, const struct kedge_msg *msg, int expected, const char *what)
{
    struct kedge_msg answer;
    struct hx_sizes before = hx_measure();
    int err = hx_ask(net, msg, &answer);
    ck_assert_msg(err == expected, "%s: %s instead of %s", what, kedge_strerror(err),
                  kedge_strerror(expected));
    hx_check_unchanged(&before, what);
}

void hx_refuse_bytes(struct kedge_net_client *net, struct kedge_view frame, int expected, const char *what)
{
    struct kedge_msg answer;
    struct hx_sizes before = hx_measure();
    int err = hx_ask_bytes(net, frame, &answer);
    ck_assert_msg(err == expected, "%s: %s instead of %s", what, kedge_strerror(err),
                  kedge_strerror(expected));
    hx_check_unchanged(&before, what);
}

void hx_refuse_text(struct kedge_net_client *net, const char *json, int expected)
{
    struct kedge_msg msg = {.type = KEDGE_MSG_ADMIN};
    msg.u.admin.json = kedge_view_str(json);
    hx_refuse(net, &msg, expected, json);
}

/* ---- a coordinator with two tenants ---- */

static void start_coordinator(void)
{
    char log[KEDGE_PATH_MAX];
    const char *argv[] = {KEDGE_COORDINATOR, "--state", state, NULL};
    ck_assert_int_eq(kedge_path_join(log, state, "log"), KEDGE_OK);
    struct kedge_process_options options = {.argv = argv, .stderr_path = log, .die_with_parent = true};
    ck_assert_int_eq(kedge_process_start(&options, &coordinator, NULL), KEDGE_OK);
}

/* Its exit code once it has ended. */
int hx_await_end(void)
{
    int status = -1;
    bool ended = false;
    for (int i = 0; i < HX_PATIENCE_MS && !ended; i++) {
        ended = kedge_process_poll(&coordinator, &status);
        kedge_os_sleep_ms(1);
    }
    ck_assert(ended);
    return status;
}

/* The door's client learns of the end by a thread of its own, which on a busy machine may be later than the
 * next coordinator's start. Until then a request would go to the one that has ended. */
static void await_door_closed(void)
{
    for (int i = 0; i < HX_PATIENCE_MS && kedge_net_client_connected(hx_door); i++) {
        kedge_os_sleep_ms(1);
    }
    ck_assert(!kedge_net_client_connected(hx_door));
}

static int end_coordinator(int signal)
{
    ck_assert_int_eq(kill(coordinator.pid, signal), 0);
    int code = hx_await_end();
    await_door_closed();
    return code;
}

void hx_end(bool is_polite)
{
    char path[KEDGE_PATH_MAX];
    int code = end_coordinator(is_polite ? SIGTERM : SIGKILL);
    ck_assert(!is_polite || code == 0);
    ck_assert_int_eq(kedge_path_join(path, state, "address"), KEDGE_OK);
    (void)unlink(path); /* hx_await_address waits for the next one */
}

void hx_launch(void)
{
    start_coordinator();
}

const char *hx_state(void)
{
    return state;
}

int hx_pid(void)
{
    return coordinator.pid;
}

void hx_kill(void)
{
    (void)end_coordinator(SIGKILL);
    start_coordinator();
}

unsigned hx_log_count(const char *words)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf log;
    kedge_buf_init(&log, 1 << 24);
    ck_assert_int_eq(kedge_path_join(path, state, "log"), KEDGE_OK);
    ck_assert_int_eq(kedge_file_read(path, &log, NULL), KEDGE_OK);
    unsigned count = 0;
    const uint8_t *end = log.ptr + log.len;
    for (const uint8_t *at = log.ptr; (at = memmem(at, (size_t)(end - at), words, strlen(words))); at++) {
        count++;
    }
    kedge_buf_deinit(&log);
    return count;
}

bool hx_log_says(const char *words)
{
    return hx_log_count(words) > 0;
}

/* Where it listens, once it does. */
void hx_await_address(void)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf text;
    ck_assert_int_eq(kedge_path_join(path, state, "address"), KEDGE_OK);
    kedge_buf_init(&text, sizeof hx_address - 1);
    for (int i = 0; i < HX_PATIENCE_MS / 10 && kedge_file_size(path) <= 0; i++) {
        kedge_os_sleep_ms(10);
    }
    ck_assert_int_eq(kedge_file_read(path, &text, NULL), KEDGE_OK);
    memcpy(hx_address, text.ptr, text.len);
    hx_address[strcspn(hx_address, "\n")] = '\0';
    kedge_buf_deinit(&text);
}

static struct kedge_public_key main_log; /* of the coordinator that runs, or ran last */
static bool knows_main_log;

void hx_start(void)
{
    static const char config[] =
        "{\"deployment\":\"hostile.kedge.test\",\"listen\":[\"tls+tcp://127.0.0.1:0\"],"
        "\"lease_ms\":600000,\"settle_ms\":0}";
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    char path[KEDGE_PATH_MAX];
    knows_main_log = false;
    ck_assert_int_eq(kedge_crypto_init(), KEDGE_OK);
    snprintf(scratch, sizeof scratch, "%s/kedge-hostile-XXXXXX", base);
    ck_assert_ptr_nonnull(mkdtemp(scratch));
    snprintf(state, sizeof state, "%s/state", scratch);
    ck_assert_int_eq(kedge_state_create(state, "hostile.kedge.test", NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_path_join(path, state, "config.json"), KEDGE_OK);
    ck_assert_int_eq(kedge_file_write(path, kedge_view_str(config), 0600, NULL), KEDGE_OK);
    start_coordinator();
    hx_await_address();
    char url[KEDGE_PATH_MAX + 32];
    snprintf(url, sizeof url, "ipc://%s/coordinator.ipc", state);
    struct kedge_net_client_options o = {
        .url = url, .connect_ms = HX_PATIENCE_MS, .reconnect_max_ms = KEDGE_NET_RECONNECT_MIN_MS};
    ck_assert_int_eq(kedge_net_client_open(&o, &hx_door, NULL), KEDGE_OK);
}

/* It has borne all of it: it ends when asked, and well. */
void hx_stop(void)
{
    struct hx_peer *const peers[] = {&hx_alice, &hx_gone, &hx_waiting, &hx_bob, &hx_stranger};
    kedge_net_reply_release(&reply);
    for (size_t i = 0; i < sizeof peers / sizeof peers[0]; i++) {
        kedge_net_client_close(peers[i]->net);
    }
    kedge_net_client_close(hx_door);
    ck_assert_int_eq(kill(coordinator.pid, SIGTERM), 0);
    ck_assert_int_eq(hx_await_end(), 0);
    ck_assert_int_eq(kedge_dir_remove(scratch), KEDGE_OK);
}

/* The statement in `st` as JSON text, signed. */
static json_t *signed_by(const struct kedge_key_pair *key)
{
    struct kedge_buf envelope;
    kedge_buf_init(&envelope, KEDGE_ENTRY_MAX);
    ck_assert_int_eq(kedge_statement_sign(&hx_st, key, &envelope, NULL), KEDGE_OK);
    json_t *text = json_stringn((const char *)envelope.ptr, envelope.len);
    kedge_buf_deinit(&envelope);
    return text;
}

void hx_place(const char *tenant)
{
    struct kedge_hash root;
    if (knows_main_log && hx_st.kind == KEDGE_ST_KEY) { /* entry 0 has seen nothing: nobody need be asked */
        kedge_merkle_empty_root(&root);
        hx_st.at = kedge_position_make(&main_log, 0, &root, 100000);
        return;
    }
    json_t *o = hx_operate(json_pack("{s:s,s:s}", "verb", "ledger.position", "tenant", tenant));
    const char *hex = json_string_value(json_object_get(o, "main_log_key"));
    ck_assert_int_eq(kedge_hex_decode(kedge_view_str(hex), main_log.b, KEDGE_KEY_LEN), KEDGE_OK);
    hex = json_string_value(json_object_get(o, "root"));
    ck_assert_int_eq(kedge_hash_from_hex(kedge_view_str(hex), &root), KEDGE_OK);
    uint64_t size = (uint64_t)json_integer_value(json_object_get(o, "size"));
    hx_st.at = kedge_position_make(&main_log, size, &root, 100000);
    knows_main_log = true;
    json_decref(o);
}

json_t *hx_speak(const char *verb, const char *tenant, const struct kedge_key_pair *key)
{
    hx_place(tenant);
    return json_pack("{s:s,s:s,s:o}", "verb", verb, "tenant", tenant, "envelope", signed_by(key));
}

void hx_refuse_speech(const char *verb, const char *tenant, const struct kedge_key_pair *key, int expected)
{
    json_t *o = hx_speak(verb, tenant, key);
    char *text = json_dumps(o, JSON_COMPACT);
    hx_refuse_text(hx_door, text, expected);
    free(text);
    json_decref(o);
}

static void open_net(struct hx_peer *p)
{
    struct kedge_net_client_options o = {
        .url = hx_address, .key = &p->tls, .server_key = &server_key, .connect_ms = HX_PATIENCE_MS};
    ck_assert_int_eq(kedge_net_client_open(&o, &p->net, NULL), KEDGE_OK);
}

static void dial(struct hx_peer *p)
{
    kedge_key_generate(&p->tls);
    kedge_key_generate(&p->statement);
    open_net(p);
}

void hx_restart(bool is_polite)
{
    struct hx_peer *const peers[] = {&hx_alice, &hx_gone, &hx_waiting, &hx_bob, &hx_stranger};
    hx_end(is_polite);
    hx_launch();
    hx_await_address();
    for (size_t i = 0; i < sizeof peers / sizeof peers[0]; i++) {
        kedge_net_client_close(peers[i]->net);
        open_net(peers[i]);
    }
}

size_t hx_count_staged(const char *tenant)
{
    char path[KEDGE_PATH_MAX];
    size_t count = 0;
    ck_assert_int_lt(snprintf(path, sizeof path, "%s/tenants/%s/staging", state, tenant), KEDGE_PATH_MAX);
    DIR *dir = opendir(path);
    ck_assert_ptr_nonnull(dir);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        count += e->d_name[0] != '.';
    }
    closedir(dir);
    return count;
}

void hx_enrolled_statement(const struct hx_peer *p)
{
    hx_st = (struct kedge_statement){.kind = KEDGE_ST_SITE_ENROLLED};
    hx_st.u.site_enrolled = (struct kedge_st_site_enrolled){hx_id_of(p->tenant), hx_id_of(p->site),
                                                            p->tls.public, p->statement.public};
}

/* Uses a token, after everybody else has failed to. */
static void enrol(struct hx_peer *p, bool sign_in)
{
    struct kedge_token token;
    struct kedge_msg msg = {.type = KEDGE_MSG_ENROLL}, answer;
    json_t *o = hx_operate(json_pack("{s:s,s:s,s:s,s:i}", "verb", "site.token", "tenant", p->tenant, "site",
                                     p->site, "ttl_s", 600));
    const char *text = json_string_value(json_object_get(o, "token"));
    ck_assert_int_eq(kedge_token_decode(kedge_view_str(text), &token, NULL), KEDGE_OK);
    json_decref(o);
    memcpy(server_key.b, token.server_key, sizeof server_key.b);
    dial(p);
    struct kedge_msg_enroll *e = &msg.u.enroll;
    e->site = token.site;
    e->tenant = hx_id_of(strcmp(p->tenant, "org-a") == 0 ? "org-b" : "org-a");
    memcpy(e->token_secret, token.secret, sizeof e->token_secret);
    memcpy(e->statement_key, p->statement.public.b, sizeof e->statement_key);
    hx_refuse(p->net, &msg, KEDGE_E_TOKEN, "token of another tenant");
    e->tenant = token.tenant;
    memcpy(e->statement_key, p->tls.public.b, sizeof e->statement_key);
    hx_refuse(p->net, &msg, KEDGE_E_KEY, "one key for two purposes");
    memcpy(e->statement_key, p->statement.public.b, sizeof e->statement_key);
    ck_assert_int_eq(hx_ask(p->net, &msg, &answer), KEDGE_OK);
    ck_assert_int_eq(answer.u.enroll_ok.state, KEDGE_ENROLL_PENDING);
    memcpy(e->statement_key, hx_admins[0].public.b, sizeof e->statement_key);
    hx_refuse(p->net, &msg, KEDGE_E_TOKEN, "token used twice");
    size_t at = strcmp(p->tenant, "org-a") == 0 ? 0 : 1;
    hx_enrolled_statement(p);
    hx_refuse_speech("site.enroll", p->tenant, &hx_admins[1 - at], KEDGE_E_DENIED);
    if (sign_in) {
        json_decref(hx_operate(hx_speak("site.enroll", p->tenant, &hx_admins[at])));
    }
}

/* Its job-opened follows the answer: waited for, so that it is not taken for an effect of what comes next. */
static void submit_job(const char *text, struct kedge_hash *ret)
{
    json_int_t before = hx_measure().main;
    json_t *o = hx_operate(json_pack("{s:s,s:s}", "verb", "job.submit", "spec", text));
    const char *hex = json_string_value(json_object_get(o, "spec"));
    ck_assert_int_eq(kedge_hash_from_hex(kedge_view_str(hex), ret), KEDGE_OK);
    json_decref(o);
    bool opened = false;
    for (int i = 0; i < HX_PATIENCE_MS && !opened; i++) {
        opened = hx_measure().main > before;
        kedge_os_sleep_ms(1);
    }
    ck_assert(opened);
}

void hx_found(void)
{
    for (size_t i = 0; i < HX_MEMBERS; i++) {
        kedge_key_generate(&hx_admins[i]);
        hx_st = (struct kedge_statement){.kind = KEDGE_ST_KEY};
        hx_st.u.key = (struct kedge_st_key){KEDGE_SCOPE_ADMIN, hx_id_of(tenants[i]), hx_admins[i].public};
        json_decref(hx_operate(hx_speak("tenant.add", tenants[i], &hx_admins[i])));
    }
    enrol(&hx_alice, true);
    enrol(&hx_gone, true);
    enrol(&hx_bob, true);
    enrol(&hx_waiting, false);
    dial(&hx_stranger);
}

static int poll_once(const struct hx_peer *p, struct kedge_msg *ret)
{
    struct kedge_msg msg = {.type = KEDGE_MSG_POLL};
    msg.u.poll = (struct kedge_msg_poll){.wait_ms = 5000, .flags = 0};
    return hx_ask(p->net, &msg, ret);
}

void hx_next_task(void)
{
    struct kedge_msg answer = {.type = KEDGE_MSG_WAIT};
    for (int i = 0; i < 6 && answer.type != KEDGE_MSG_TASK; i++) {
        ck_assert_int_eq(poll_once(&hx_alice, &answer), KEDGE_OK);
    }
    ck_assert_int_eq(answer.type, KEDGE_MSG_TASK);
    hx_task = answer.u.task;
    hx_task.main_checkpoint = (struct kedge_view){NULL, 0};
}

void hx_open_round(void)
{
    struct kedge_msg answer;
    submit_job(OTHER, &hx_other_spec);
    submit_job(HX_SPEC, &hx_spec);
    for (size_t i = 0; i < HX_MEMBERS; i++) {
        hx_st = (struct kedge_statement){.kind = KEDGE_ST_JOB_JOINED, .subject = hx_spec};
        hx_st.u.job_joined = (struct kedge_st_job_joined){hx_id_of(tenants[i]), hx_id_of("hostile")};
        hx_refuse_speech("tenant.join", tenants[i], &hx_admins[1 - i], KEDGE_E_DENIED);
        json_decref(hx_operate(hx_speak("tenant.join", tenants[i], &hx_admins[i])));
    }
    struct kedge_msg msg = {.type = KEDGE_MSG_POLL};
    ck_assert_int_eq(hx_ask(hx_bob.net, &msg, &answer),
                     KEDGE_OK); /* both are there now: the round may open */
    hx_next_task();
    ck_assert_str_eq(hx_task.job.s, "hostile");
    ck_assert_int_eq(hx_task.kind, KEDGE_TASK_TRAIN);
    ck_assert_mem_eq(hx_task.spec, hx_spec.b, sizeof hx_spec.b);
}
