/* STATE/anchor.json and the account's key. */
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chain/anchor/host/evm_host.h"
#include "chain/state/state.h"
#include "common/base/text.h"
#include "common/base/try.h"
#include "common/json/json.h"
#include "crypto/sign.h"

enum { SETTINGS_MAX = 16 * 1024, KEY_FILE_MAX = 2 * KEDGE_SECP_SECRET_LEN + 2 };

/* Whole numbers: key, unit in its name, range, default (0: required). */
static const struct {
    const char *key;
    uint64_t least, most, fallback;
} numbers[] = {
    {"chain_id", 1, INT64_MAX, 0},
    {"interval_seconds", 1, 31 * 86400, 3600},
    {"max_fee_per_gas_wei", 1, 100000000000000, 0},
    {"daily_budget_wei", 1, INT64_MAX, 0},
    {"gas_limit", 60000, 1000000, 120000},
    {"poll_seconds", 1, 3600, 12},
    {"resend_seconds", 1, 86400, 60},
    {"replace_seconds", 1, 86400, 180},
};
enum { CHAIN_ID, INTERVAL, MAX_FEE, BUDGET, GAS, POLL, RESEND, REPLACE, NUMBERS };
static const char *const texts[] = {"rpc_url", "contract", "key_file", "confirmations"};

static const char example[] =
    "an example: {\"rpc_url\": \"https://…\", \"chain_id\": 1, \"key_file\": \"keys/anchor.hex\", "
    "\"max_fee_per_gas_wei\": 20000000000, \"daily_budget_wei\": 60000000000000000, \"interval_seconds\": "
    "3600, "
    "\"confirmations\": \"finalized\"}; then `kedge anchor deploy` adds \"contract\"";

static bool is_known(const char *key)
{
    for (size_t i = 0; i < NUMBERS; i++) {
        if (strcmp(key, numbers[i].key) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (strcmp(key, texts[i]) == 0) {
            return true;
        }
    }
    return false;
}

static int bad(struct kedge_diag *reterr, const char *path, const char *key, const char *expected)
{
    (void)kedge_diag_set(reterr, KEDGE_E_FORMAT, "%s: %s: expected %s", path, key, expected);
    (void)kedge_diag_hint(reterr, "%s", example);
    return KEDGE_E_FORMAT;
}

static int take_numbers(json_t *o, const char *path, uint64_t out[NUMBERS], struct kedge_diag *reterr)
{
    for (size_t i = 0; i < NUMBERS; i++) {
        const json_t *value = json_object_get(o, numbers[i].key);
        char expected[96];
        uint64_t v =
            json_is_integer(value) && json_integer_value(value) > 0 ? (uint64_t)json_integer_value(value) : 0;
        v = value ? v : numbers[i].fallback;
        if (v < numbers[i].least || v > numbers[i].most) {
            snprintf(expected, sizeof expected, "a whole number, %llu to %llu",
                     (unsigned long long)numbers[i].least, (unsigned long long)numbers[i].most);
            return bad(reterr, path, numbers[i].key, expected);
        }
        out[i] = v;
    }
    return KEDGE_OK;
}

static int take_key_path(const json_t *o, const char *state, const char *path, char out[KEDGE_PATH_MAX],
                         struct kedge_diag *reterr)
{
    const char *file = json_string_value(json_object_get(o, "key_file"));
    if (!file || !file[0]) {
        return bad(reterr, path, "key_file",
                   "the path of the account's key (from the state folder, or absolute)");
    }
    if (file[0] == '/') {
        return strlen(file) < KEDGE_PATH_MAX ? (memcpy(out, file, strlen(file) + 1), KEDGE_OK)
                                             : KEDGE_E_TOO_LONG;
    }
    return kedge_path_join(out, state, file);
}

static int take_texts(const json_t *o, const char *state, const char *path, struct kedge_anchor_settings *s,
                      struct kedge_diag *reterr)
{
    const char *url = json_string_value(json_object_get(o, "rpc_url"));
    const json_t *contract = json_object_get(o, "contract"), *final = json_object_get(o, "confirmations");
    const char *rule = final ? json_string_value(final) : "finalized";
    if (!url || !url[0] || strlen(url) >= sizeof s->rpc_url) {
        return bad(reterr, path, "rpc_url", "the address of a node's JSON-RPC, https://…");
    }
    memcpy(s->rpc_url, url, strlen(url) + 1);
    if (!rule || (strcmp(rule, "safe") != 0 && strcmp(rule, "finalized") != 0)) {
        return bad(reterr, path, "confirmations", "\"safe\" or \"finalized\"");
    }
    s->config.final = rule[0] == 's' ? KEDGE_EVM_FINAL_SAFE : KEDGE_EVM_FINAL_FINALIZED;
    s->has_contract = contract != NULL;
    if (contract
        && (!json_is_string(contract)
            || kedge_evm_address_parse(kedge_view_str(json_string_value(contract)), &s->config.contract)
                   != KEDGE_OK)) {
        return bad(reterr, path, "contract",
                   "an address: 0x and 40 hex digits, with a right checksum if mixed case");
    }
    return take_key_path(o, state, path, s->key_file, reterr);
}

static int load(const char *state, char path[KEDGE_PATH_MAX], json_t **ret, struct kedge_diag *reterr)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, SETTINGS_MAX);
    int err = kedge_state_path(path, reterr, state, "anchor.json");
    if (!err) {
        err = kedge_file_read(path, &text, reterr);
    }
    if (err == KEDGE_E_NOT_FOUND) {
        (void)kedge_diag_set(reterr, err, "%s: there is none: this main chain is not anchored elsewhere",
                             path);
        (void)kedge_diag_hint(reterr, "%s", example);
    }
    return err ? err : kedgei_json_load(kedge_buf_view(&text), SETTINGS_MAX, path, ret, reterr);
}

static int take_all(json_t *o, const char *state, const char *path, uint64_t n[NUMBERS],
                    struct kedge_anchor_settings *s, struct kedge_diag *reterr)
{
    const char *key;
    json_t *value;
    json_object_foreach(o, key, value)
    {
        if (!is_known(key)) {
            return bad(reterr, path, key, "no such key");
        }
    }
    KEDGE_TRY(take_numbers(o, path, n, reterr));
    return take_texts(o, state, path, s, reterr);
}

int kedge_anchor_settings_read(const char *state, struct kedge_anchor_settings *ret,
                               struct kedge_diag *reterr)
{
    struct kedge_anchor_settings s;
    char path[KEDGE_PATH_MAX], deployment[KEDGE_DEPLOYMENT_MAX + 1];
    uint64_t n[NUMBERS];
    json_t *o = NULL;
    memset(&s, 0, sizeof s);
    KEDGE_TRY(load(state, path, &o, reterr));
    int err = take_all(o, state, path, n, &s, reterr);
    json_decref(o);
    if (err) {
        return err;
    }
    KEDGE_TRY(kedge_state_deployment(state, deployment, reterr));
    snprintf(s.origin, sizeof s.origin, "%s/main", deployment);
    kedge_evm_namespace(kedge_view_str(s.origin), &s.config.ns);
    s.config.chain_id = n[CHAIN_ID];
    s.config.interval_ms = n[INTERVAL] * 1000;
    s.config.max_fee = n[MAX_FEE];
    s.config.daily_budget = n[BUDGET];
    s.config.gas = n[GAS];
    s.config.poll_ms = n[POLL] * 1000;
    s.config.resend_ms = n[RESEND] * 1000;
    s.config.replace_ms = n[REPLACE] * 1000;
    *ret = s;
    return KEDGE_OK;
}

static int put_text(const char *text, size_t len, void *arg)
{
    kedge_buf_put(arg, text, len);
    return ((struct kedge_buf *)arg)->err ? -1 : 0;
}

/* Only `contract` changes: the owner's other keys are written back as they were read. */
int kedge_anchor_settings_set_contract(const char *state, const struct kedge_evm_address *contract,
                                       struct kedge_diag *reterr)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    char path[KEDGE_PATH_MAX], address[KEDGE_EVM_ADDRESS_TEXT];
    json_t *o = NULL;
    kedge_buf_init(&text, SETTINGS_MAX);
    kedge_evm_address_text(contract, address);
    int err = load(state, path, &o, reterr);
    if (!err
        && (json_object_set_new(o, "contract", json_string(address)) != 0
            || json_dump_callback(o, put_text, &text, JSON_INDENT(2)) != 0)) {
        err = KEDGE_E_NOMEM;
    }
    kedge_buf_put_str(&text, "\n");
    json_decref(o);
    if (err) {
        return err;
    }
    err = text.err;
    return err ? err : kedge_file_write(path, kedge_buf_view(&text), 0600, reterr);
}

/* ---- the key ---- */

/* The mode is asked of the open file and not of its path, so it is that of the bytes which were read. A key
 * that others can read is refused rather than warned about: any program of this machine could spend the
 * money. */
int kedge_anchor_key_read(const char *path, struct kedge_secp_secret *ret_secret,
                          struct kedge_evm_address *ret_address, struct kedge_diag *reterr)
{
    char text[KEY_FILE_MAX + 1];
    struct stat info;
    struct kedge_secp_public public;
    int fd = kedge_file_open(path, O_RDONLY, reterr);
    if (fd < 0) {
        (void)kedge_diag_hint(reterr, "a new account: (umask 077; openssl rand -hex 32 >%s)", path);
        return fd;
    }
    ssize_t got = fstat(fd, &info) == 0 ? read(fd, text, sizeof text) : -1;
    close(fd);
    if (got < 0) {
        return kedge_diag_set(reterr, KEDGE_E_IO, "%s: cannot be read", path);
    }
    if ((info.st_mode & 077) != 0) {
        kedge_wipe(text, sizeof text);
        (void)kedge_diag_set(reterr, KEDGE_E_DENIED, "%s: others may read the account's key", path);
        (void)kedge_diag_hint(
            reterr, "chmod 600 %s; if others have read it, move the money and take a new key", path);
        return KEDGE_E_DENIED;
    }
    size_t len = (size_t)got;
    while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r')) {
        len--;
    }
    int err = kedge_hex_decode(kedge_view_of(text, len), ret_secret->b, sizeof ret_secret->b);
    if (!err) {
        err = kedge_secp_public_of(ret_secret, &public);
    }
    kedge_wipe(text, sizeof text);
    if (err == KEDGE_E_FORMAT || err == KEDGE_E_KEY) {
        err = kedge_diag_set(reterr, KEDGE_E_KEY, "%s: expected 64 hex digits, a secp256k1 key", path);
    }
    if (!err) {
        kedge_evm_address_of_key(&public, ret_address);
    }
    return err;
}
