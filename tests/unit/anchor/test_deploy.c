/* Making the contract against a node that lies about where it stands. */
#include <check.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "chain/anchor/host/evm_host.h"
#include "common/base/text.h"

#define STRANGER "0xbabababababababababababababababababababa"

static char folder[] = "/tmp/kedge-deploy-XXXXXX";

/* ---- a node ---- */

struct node {
    int fd;
    pthread_t thread;
    char contract[KEDGE_EVM_ADDRESS_TEXT]; /* what it says that was made */
};

static void put_result(const struct node *n, const char *request, char *out, size_t len)
{
    static const struct {
        const char *method, *result;
    } rows[] = {
        {"eth_chainId", "\"0x5\""},
        {"eth_getTransactionCount", "\"0x0\""},
        {"eth_feeHistory", "{\"baseFeePerGas\":[\"0x1\"],\"reward\":[[\"0x1\"]]}"},
        {"eth_sendRawTransaction", "\"0x00000000000000000000000000000000000000000000000000000000000000ab\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strstr(request, rows[i].method)) {
            snprintf(out, len, "%s", rows[i].result);
            return;
        }
    }
    snprintf(out, len, "{\"status\":\"0x1\",\"contractAddress\":\"%s\"}", n->contract);
}

/* One request a connection, until the listening socket is shut. */
static void *serve(void *arg)
{
    struct node *n = arg;
    for (int fd; (fd = accept(n->fd, NULL, NULL)) >= 0; close(fd)) {
        char request[8192] = "", result[256], body[512], reply[1024];
        size_t got = 0;
        const char *id;
        for (ssize_t r;
             !strstr(request, "}") && (r = recv(fd, request + got, sizeof request - 1 - got, 0)) > 0;) {
            got += (size_t)r;
            request[got] = '\0';
        }
        id = strstr(request, "\"id\":");
        put_result(n, request, result, sizeof result);
        snprintf(body, sizeof body, "{\"id\":%ld,\"result\":%s}", id ? strtol(id + 5, NULL, 10) : 0, result);
        int len = snprintf(reply, sizeof reply,
                           "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
                           strlen(body), body);
        (void)!send(fd, reply, (size_t)len, MSG_NOSIGNAL);
    }
    return NULL;
}

static unsigned start(struct node *n)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof a;
    n->fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_ge(n->fd, 0);
    ck_assert_int_eq(bind(n->fd, (struct sockaddr *)&a, sizeof a), 0);
    ck_assert_int_eq(listen(n->fd, 4), 0);
    ck_assert_int_eq(getsockname(n->fd, (struct sockaddr *)&a, &len), 0);
    ck_assert_int_eq(pthread_create(&n->thread, NULL, serve, n), 0);
    return ntohs(a.sin_port);
}

/* ---- the command ---- */

static uint64_t now_ms(void *arg)
{
    (void)arg;
    return 1700000000000;
}

static void wait_until(void *arg, uint64_t ms)
{
    (void)arg, (void)ms;
}

static void put(const char *name, const char *text)
{
    char path[KEDGE_PATH_MAX];
    ck_assert_int_eq(kedge_path_join(path, folder, name), KEDGE_OK);
    ck_assert_int_eq(kedge_file_write(path, kedge_view_str(text), 0600, NULL), KEDGE_OK);
}

START_TEST(a_contract_stands_where_its_transaction_puts_it)
{
    struct node n = {.contract = STRANGER};
    struct kedge_anchor_settings s;
    struct kedge_evm_address made, ours;
    struct kedge_secp_secret key;
    struct kedge_diag d = {.text = ""};
    const struct kedge_anchor_hooks hooks = {.now_ms = now_ms, .wait_until = wait_until};
    char text[512];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    put("config.json", "{\"deployment\":\"example.org\"}");
    put("k", "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80\n");
    snprintf(text, sizeof text,
             "{\"rpc_url\":\"http://127.0.0.1:%u\",\"chain_id\":5,\"key_file\":\"k\","
             "\"max_fee_per_gas_wei\":1000000000,\"daily_budget_wei\":1000000000000000}",
             start(&n));
    put("anchor.json", text);
    ck_assert_msg(kedge_anchor_settings_read(folder, &s, &d) == KEDGE_OK, "%s", d.text);
    ck_assert_int_eq(kedge_anchor_deploy(folder, &s, &hooks, &made, &d), KEDGE_E_VERIFY);
    ck_assert_msg(strstr(d.text, "can only make") != NULL, "%s", d.text);
    ck_assert_int_eq(kedge_anchor_settings_read(folder, &s, &d), KEDGE_OK);
    ck_assert(!s.has_contract); /* nothing was believed */
    ck_assert_int_eq(kedge_anchor_key_read(s.key_file, &key, &ours, &d), KEDGE_OK);
    kedge_evm_address_of_contract(&ours, 0, &ours);
    memcpy(n.contract, "0x", 3); /* another node, which tells the truth */
    kedge_hex_encode(ours.b, sizeof ours.b, n.contract + 2);
    ck_assert_msg(kedge_anchor_deploy(folder, &s, &hooks, &made, &d) == KEDGE_OK, "%s", d.text);
    ck_assert(kedge_evm_address_eq(&made, &ours));
    ck_assert_int_eq(kedge_anchor_settings_read(folder, &s, &d), KEDGE_OK);
    ck_assert(s.has_contract && kedge_evm_address_eq(&s.config.contract, &ours));
    shutdown(n.fd, SHUT_RDWR);
    pthread_join(n.thread, NULL);
    close(n.fd);
    ck_assert_int_eq(kedge_dir_remove(folder), KEDGE_OK);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("deploy");
    TCase *tc = tcase_create("deploy");
    tcase_add_test(tc, a_contract_stands_where_its_transaction_puts_it);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
