/* A node's answers: what is read, what is refused, and a server that misbehaves. */
#include <check.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "chain/anchor/host/evm_host.h"
#include "chain/anchor/host/evm_rpc_impl.h"

#define H32 "0x00000000000000000000000000000000000000000000000000000000000000ab"
#define Z32 "0000000000000000000000000000000000000000000000000000000000000000"
#define ADDRESS "0x0102030000000000000000000000000000000000"

static const struct kedge_evm_config config = {.chain_id = 1, .contract = {{1, 2, 3}}};

static const struct {
    enum kedge_evm_method method;
    int err; /* KEDGE_E_FORMAT: refused */
    const char *reply;
} rows[] = {
    {KEDGE_EVM_CALL_CHAIN_ID, KEDGE_OK, "{\"id\":1,\"result\":\"0x7a69\"}"},
    {KEDGE_EVM_CALL_CHAIN_ID, KEDGE_OK, "{\"id\":1,\"result\":\"0xffffffffffffffff\"}"},
    {KEDGE_EVM_CALL_CHAIN_ID, KEDGE_E_FORMAT, "{\"id\":1,\"result\":\"0x10000000000000000\"}"},
    {KEDGE_EVM_CALL_CHAIN_ID, KEDGE_E_FORMAT, "{\"id\":1,\"result\":\"0x07\"}"},
    {KEDGE_EVM_CALL_CHAIN_ID, KEDGE_E_FORMAT, "{\"id\":1,\"result\":\"0x\"}"},
    {KEDGE_EVM_CALL_CHAIN_ID, KEDGE_E_FORMAT, "{\"id\":1,\"result\":\"7\"}"},
    {KEDGE_EVM_CALL_CHAIN_ID, KEDGE_E_FORMAT, "{\"id\":1,\"result\":\"0xAB\"}"},
    {KEDGE_EVM_CALL_CHAIN_ID, KEDGE_E_FORMAT, "{\"id\":1,\"result\":7}"},
    {KEDGE_EVM_CALL_CHAIN_ID, KEDGE_E_FORMAT, "{\"id\":1,\"result\":null}"},
    {KEDGE_EVM_CALL_CHAIN_ID, KEDGE_E_FORMAT, "{\"id\":2,\"result\":\"0x1\"}"},
    {KEDGE_EVM_CALL_CHAIN_ID, KEDGE_E_FORMAT, "{\"id\":1}"},
    {KEDGE_EVM_CALL_CHAIN_ID, KEDGE_E_FORMAT, "[]"},
    {KEDGE_EVM_CALL_CHAIN_ID, KEDGE_E_FORMAT, ""},
    {KEDGE_EVM_CALL_CHAIN_ID, KEDGE_E_DENIED, "{\"id\":null,\"error\":{\"code\":-32000,\"message\":\"no\"}}"},
    {KEDGE_EVM_CALL_BLOCK, KEDGE_OK, "{\"id\":1,\"result\":null}"},
    {KEDGE_EVM_CALL_BLOCK, KEDGE_OK, "{\"id\":1,\"result\":{\"number\":\"0x5\",\"hash\":\"" H32 "\"}}"},
    {KEDGE_EVM_CALL_BLOCK, KEDGE_E_FORMAT, "{\"id\":1,\"result\":{\"number\":\"0x5\",\"hash\":\"0xab\"}}"},
    {KEDGE_EVM_CALL_BLOCK, KEDGE_E_FORMAT, "{\"id\":1,\"result\":{\"hash\":\"" H32 "\"}}"},
    {KEDGE_EVM_CALL_BLOCK, KEDGE_E_FORMAT, "{\"id\":1,\"result\":\"0x1\"}"},
    {KEDGE_EVM_CALL_HEADS, KEDGE_OK, "{\"id\":1,\"result\":\"0x" Z32 Z32 Z32 Z32 "\"}"},
    {KEDGE_EVM_CALL_HEADS, KEDGE_E_FORMAT, "{\"id\":1,\"result\":\"0x" Z32 Z32 Z32 "\"}"},
    {KEDGE_EVM_CALL_HEADS, KEDGE_E_FORMAT, "{\"id\":1,\"result\":\"0x\"}"},
    {KEDGE_EVM_CALL_FEES, KEDGE_OK,
     "{\"id\":1,\"result\":{\"baseFeePerGas\":[\"0x5\",\"0x9\"],\"reward\":[[\"0x3b9aca00\"]]}}"},
    {KEDGE_EVM_CALL_FEES, KEDGE_OK, "{\"id\":1,\"result\":{\"baseFeePerGas\":[\"0x5\"]}}"},
    {KEDGE_EVM_CALL_FEES, KEDGE_E_FORMAT, "{\"id\":1,\"result\":{\"baseFeePerGas\":[]}}"},
    {KEDGE_EVM_CALL_FEES, KEDGE_E_FORMAT,
     "{\"id\":1,\"result\":{\"baseFeePerGas\":[\"0x5\"],\"reward\":[[]]}}"},
    {KEDGE_EVM_CALL_SEND, KEDGE_OK, "{\"id\":1,\"result\":\"" H32 "\"}"},
    {KEDGE_EVM_CALL_SEND, KEDGE_E_FORMAT, "{\"id\":1,\"result\":true}"},
    {KEDGE_EVM_CALL_RECEIPT, KEDGE_OK, "{\"id\":1,\"result\":null}"},
    {KEDGE_EVM_CALL_RECEIPT, KEDGE_OK, "{\"id\":1,\"result\":{\"blockHash\":null}}"},
    {KEDGE_EVM_CALL_RECEIPT, KEDGE_OK,
     "{\"id\":1,\"result\":{\"transactionHash\":\"" H32 "\",\"status\":\"0x1\",\"blockNumber\":\"0x2\","
     "\"blockHash\":\"" H32 "\",\"logs\":[{\"address\":\"" ADDRESS "\",\"topics\":[],\"data\":\"0x\","
     "\"logIndex\":\"0x0\"}]}}"},
    {KEDGE_EVM_CALL_RECEIPT, KEDGE_E_FORMAT, /* of another transaction */
     "{\"id\":1,\"result\":{\"transactionHash\":\"0x" Z32 "\",\"status\":\"0x1\",\"blockNumber\":\"0x2\","
     "\"blockHash\":\"" H32 "\",\"logs\":[]}}"},
    {KEDGE_EVM_CALL_RECEIPT, KEDGE_E_FORMAT,
     "{\"id\":1,\"result\":{\"transactionHash\":\"" H32 "\",\"status\":\"0x2\",\"blockNumber\":\"0x2\","
     "\"blockHash\":\"" H32 "\",\"logs\":[]}}"},
    {KEDGE_EVM_CALL_RECEIPT, KEDGE_E_FORMAT,
     "{\"id\":1,\"result\":{\"transactionHash\":\"" H32 "\",\"status\":\"0x1\",\"blockNumber\":\"0x2\","
     "\"blockHash\":\"" H32 "\"}}"},
    {KEDGE_EVM_CALL_RECEIPT, KEDGE_E_FORMAT,
     "{\"id\":1,\"result\":{\"transactionHash\":\"" H32 "\",\"status\":\"0x1\",\"blockNumber\":\"0x2\","
     "\"blockHash\":\"" H32 "\",\"logs\":[{\"address\":\"" ADDRESS "\",\"topics\":[1],\"data\":\"0x\","
     "\"logIndex\":\"0x0\"}]}}"},
};

START_TEST(answers_are_read_strictly)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct kedge_evm_effect fx = {.method = rows[i].method, .hash = {{[31] = 0xab}}};
        struct kedge_evm_answer answer;
        struct kedge_diag d = {.text = ""};
        json_t *result = NULL;
        memset(&answer, 0, sizeof answer);
        int err = kedgei_evm_open_reply(kedge_view_str(rows[i].reply), 1, "method", &result, &d);
        err = err || kedgei_evm_get_result(result, &config, &fx, &answer) ? err : KEDGE_E_FORMAT;
        ck_assert_msg(err == rows[i].err, "row %zu: %s", i, kedge_strerror(err));
        json_decref(result);
    }
}
END_TEST

/* ---- a server with one thought ---- */

struct server {
    int fd;
    const char *reply; /* all that it says before it closes */
    size_t fill;       /* bytes of '1' behind it */
    pthread_t thread;
};

static void *serve(void *arg)
{
    struct server *s = arg;
    char request[4096], chunk[4096];
    int fd = accept(s->fd, NULL, NULL);
    memset(chunk, '1', sizeof chunk);
    if (fd >= 0 && recv(fd, request, sizeof request, 0) >= 0
        && send(fd, s->reply, strlen(s->reply), MSG_NOSIGNAL) >= 0) {
        for (size_t sent = 0; sent < s->fill; sent += sizeof chunk) {
            if (send(fd, chunk, sizeof chunk, MSG_NOSIGNAL) < 0) {
                break;
            }
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    return NULL;
}

static void start(struct server *s, char url[64])
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof a;
    s->fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_ge(s->fd, 0);
    ck_assert_int_eq(bind(s->fd, (struct sockaddr *)&a, sizeof a), 0);
    ck_assert_int_eq(listen(s->fd, 4), 0);
    ck_assert_int_eq(getsockname(s->fd, (struct sockaddr *)&a, &len), 0);
    snprintf(url, 64, "http://127.0.0.1:%d/secret", ntohs(a.sin_port));
    ck_assert_int_eq(pthread_create(&s->thread, NULL, serve, s), 0);
}

static const struct {
    const char *reply;
    size_t fill;
    int err;
} thoughts[] = {
    {"HTTP/1.1 200 OK\r\nContent-Length: 29\r\n\r\n{\"id\":1,\"result\":\"0x7a69\"}   ", 0, KEDGE_OK},
    {"HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\n{}", 0, KEDGE_E_FORMAT},
    {"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", 0, KEDGE_E_FORMAT},
    {"HTTP/1.1 200 OK\r\n\r\n", KEDGE_EVM_REPLY_MAX + 8192, KEDGE_E_TOO_LONG},
    {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", 0, KEDGE_E_CLOSED},
    {"", 0, KEDGE_E_CLOSED},
    {"SSH-2.0\r\n", 0, KEDGE_E_CLOSED},
};

START_TEST(servers_that_misbehave_are_borne)
{
    for (size_t i = 0; i < sizeof thoughts / sizeof thoughts[0]; i++) {
        struct server s = {.reply = thoughts[i].reply, .fill = thoughts[i].fill};
        struct kedge_evm_effect fx = {.method = KEDGE_EVM_CALL_CHAIN_ID};
        struct kedge_evm_answer answer;
        struct kedge_evm_rpc *rpc = NULL;
        char url[64];
        start(&s, url);
        ck_assert_int_eq(kedge_evm_rpc_open(url, &rpc, NULL), KEDGE_OK);
        kedge_evm_rpc_call(rpc, &config, &fx, &answer);
        ck_assert_msg(answer.err == thoughts[i].err, "row %zu: %s: %s", i, kedge_err_name(answer.err),
                      answer.text);
        ck_assert(answer.err || answer.number == 0x7a69);
        ck_assert_ptr_null(strstr(answer.text, "secret"));
        kedge_evm_rpc_close(rpc);
        shutdown(s.fd, SHUT_RDWR);
        pthread_join(s.thread, NULL);
        close(s.fd);
        if (i == 0) { /* nobody there */
            ck_assert_int_eq(kedge_evm_rpc_open(url, &rpc, NULL), KEDGE_OK);
            kedge_evm_rpc_call(rpc, &config, &fx, &answer);
            ck_assert_int_eq(answer.err, KEDGE_E_UNREACHABLE);
            kedge_evm_rpc_close(rpc);
        }
    }
}
END_TEST

START_TEST(only_https_or_this_machine)
{
    static const char *const bad[] = {
        "http://example.org/",       "ftp://127.0.0.1/",   "127.0.0.1:8545", "",
        "http://127.0.0.1.evil.org", "file:///etc/passwd", "https://",       "http://127.0.0.1@evil.org/"};
    static const char *const good[] = {"https://example.org/v3/key", "http://127.0.0.1:8545",
                                       "http://localhost:1/x", "http://[::1]:8545"};
    struct kedge_http *h = NULL;
    struct kedge_diag d;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct kedge_http_options o = {.url = bad[i], .what = "rpc_url", .content_type = "text/plain"};
        ck_assert_msg(kedge_http_open(&o, &h, &d) == KEDGE_E_ARG, "%s", bad[i]);
    }
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct kedge_http_options o = {.url = good[i], .what = "rpc_url", .content_type = "text/plain"};
        ck_assert_msg(kedge_http_open(&o, &h, &d) == KEDGE_OK, "%s: %s", good[i], d.text);
        kedge_http_close(h);
    }
    struct kedge_http_options plain = {
        .url = bad[0], .what = "--tsa", .content_type = "text/plain", .plain = true};
    ck_assert_msg(kedge_http_open(&plain, &h, &d) == KEDGE_OK, "%s", d.text);
    kedge_http_close(h);
}
END_TEST

/* ---- settings and key ---- */

static char folder[] = "/tmp/kedge-anchor-XXXXXX";

static void put(const char *name, const char *text, unsigned mode)
{
    char path[KEDGE_PATH_MAX];
    ck_assert_int_eq(kedge_path_join(path, folder, name), KEDGE_OK);
    ck_assert_int_eq(kedge_file_write(path, kedge_view_str(text), mode, NULL), KEDGE_OK);
}

#define NEEDED                                                                            \
    "\"rpc_url\":\"http://"                                                               \
    "127.0.0.1:1\",\"chain_id\":1,\"key_file\":\"k\",\"max_fee_per_gas_wei\":1000000000," \
    "\"daily_budget_wei\":1000000000000000"

static const struct {
    const char *text, *says; /* says NULL: good */
} settings_rows[] = {
    {"{" NEEDED "}", NULL},
    {"{" NEEDED ",\"confirmations\":\"safe\",\"contract\":\"" ADDRESS "\"}", NULL},
    {"{" NEEDED ",\"confirmations\":\"soon\"}", "confirmations"},
    {"{" NEEDED ",\"contract\":\"0x12\"}", "contract"},
    {"{" NEEDED ",\"contracts\":\"" ADDRESS "\"}", "contracts: expected no such key"},
    {"{" NEEDED ",\"interval_seconds\":0}", "interval_seconds"},
    {"{" NEEDED ",\"gas_limit\":\"120000\"}", "gas_limit"},
    {"{" NEEDED ",\"gas_limit\":12}", "gas_limit"},
    {"{\"rpc_url\":\"http://127.0.0.1:1\"}", "chain_id"},
    {"{}", "chain_id"},
    {"nonsense", "anchor.json"},
};

START_TEST(settings_are_read_strictly)
{
    struct kedge_anchor_settings s;
    struct kedge_diag d;
    struct kedge_evm_address address;
    struct kedge_secp_secret key;
    char path[KEDGE_PATH_MAX], text[KEDGE_EVM_ADDRESS_TEXT];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    d.hint[0] = '\0';
    ck_assert_int_eq(kedge_anchor_settings_read(folder, &s, &d), KEDGE_E_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(d.hint, "kedge anchor deploy"));
    put("config.json", "{\"deployment\":\"example.org\"}", 0600);
    for (size_t i = 0; i < sizeof settings_rows / sizeof settings_rows[0]; i++) {
        d.text[0] = '\0';
        put("anchor.json", settings_rows[i].text, 0600);
        int err = kedge_anchor_settings_read(folder, &s, &d);
        ck_assert_msg((err == KEDGE_OK) == (settings_rows[i].says == NULL), "row %zu: %s", i, d.text);
        ck_assert_msg(!err || strstr(d.text, settings_rows[i].says), "row %zu: %s", i, d.text);
        ck_assert(err || strcmp(s.origin, "example.org/main") == 0);
    }
    ck_assert_int_eq(kedge_path_join(path, folder, "k"), KEDGE_OK);
    ck_assert_int_eq(kedge_anchor_key_read(path, &key, &address, &d), KEDGE_E_NOT_FOUND);
    put("k", "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80\n", 0644);
    ck_assert_int_eq(kedge_anchor_key_read(path, &key, &address, &d), KEDGE_E_DENIED);
    put("k", "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80\n", 0600);
    ck_assert_int_eq(kedge_anchor_key_read(path, &key, &address, &d), KEDGE_OK);
    kedge_evm_address_text(&address, text);
    ck_assert_str_eq(text, "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
    static const char *const bad[] = {"", "ac09", Z32, (Z32 "00"), ("0x" Z32)};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        put("k", bad[i], 0600);
        ck_assert_int_eq(kedge_anchor_key_read(path, &key, &address, &d), KEDGE_E_KEY);
    }
    ck_assert_int_eq(kedge_dir_remove(folder), KEDGE_OK);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rpc");
    TCase *tc = tcase_create("rpc");
    tcase_add_test(tc, answers_are_read_strictly);
    tcase_add_test(tc, servers_that_misbehave_are_borne);
    tcase_add_test(tc, only_https_or_this_machine);
    tcase_add_test(tc, settings_are_read_strictly);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
