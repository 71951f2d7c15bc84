/* One request, one reply, each within a bound of bytes and of time. A node's refusal (KEDGE_E_DENIED,
 * with its words) is told apart from an answer that cannot be read (KEDGE_E_FORMAT) and from no answer at
 * all, for the state machine goes on differently after each. Numbers and bytes have one form in this
 * protocol, and other forms are refused, so no two programs can read the same reply in two ways. */
#include "chain/anchor/host/evm_rpc.h"

#include <stdio.h>
#include <string.h>

#include "chain/anchor/host/evm_rpc_impl.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "common/base/try.h"
#include "common/http/client.h"
#include "common/json/json.h"

enum { LOGS_MAX = 64, LOG_DATA_MAX = 1024, FEE_BLOCKS = 5 };

/* A tip when nobody gave one lately: what a block builder's software takes as worth its while. */
static const uint64_t least_tip = 1000000;

struct kedge_evm_rpc {
    struct kedge_http *http;
    uint64_t id;
    struct kedge_buf reply;
};

int kedge_evm_rpc_open(const char *url, struct kedge_evm_rpc **ret, struct kedge_diag *reterr)
{
    struct kedge_evm_rpc *rpc = kedge_mem_new(1, sizeof *rpc);
    KEDGE_TRY_MEM(rpc);
    kedge_buf_init(&rpc->reply, KEDGE_EVM_REPLY_MAX);
    int err = kedge_http_open(
        &(struct kedge_http_options){.url = url, .what = "rpc_url", .content_type = "application/json"},
        &rpc->http, reterr);
    if (err) {
        kedge_evm_rpc_close(rpc);
        return err;
    }
    *ret = rpc;
    return KEDGE_OK;
}

void kedge_evm_rpc_close(struct kedge_evm_rpc *rpc)
{
    if (rpc) {
        kedge_http_close(rpc->http);
        kedge_buf_deinit(&rpc->reply);
        kedge_mem_free(rpc);
    }
}

/* ---- one request ---- */

static int put_text(const char *text, size_t len, void *arg)
{
    kedge_buf_put(arg, text, len);
    return ((struct kedge_buf *)arg)->err ? -1 : 0;
}

int kedgei_evm_open_reply(struct kedge_view text, uint64_t id_asked, const char *method, json_t **ret,
                          struct kedge_diag *reterr)
{
    json_t *o = NULL;
    int err = kedgei_json_load(text, KEDGE_EVM_REPLY_MAX, method, &o, reterr);
    if (err) {
        return err;
    }
    json_t *result = json_object_get(o, "result");
    const json_t *error = json_object_get(o, "error"), *id = json_object_get(o, "id");
    const char *message = json_string_value(json_object_get(error, "message"));
    if (message) { /* some nodes lose the id of what they could not read */
        err = kedge_diag_set(reterr, KEDGE_E_DENIED, "%.200s", message);
    } else if (!result || !json_is_integer(id) || (uint64_t)json_integer_value(id) != id_asked) {
        err = kedge_diag_set(reterr, KEDGE_E_FORMAT, "%s: not an answer to what was asked", method);
    } else {
        *ret = json_incref(result);
    }
    json_decref(o);
    return err;
}

int kedgei_evm_ask(struct kedge_evm_rpc *rpc, const char *method, json_t *params, json_t **ret_result,
                   struct kedge_diag *reterr)
{
    struct kedge_buf body KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&body, KEDGE_EVM_EVIDENCE_MAX);
    json_t *request = json_pack("{s:s,s:I,s:s,s:o}", "jsonrpc", "2.0", "id", (json_int_t)++rpc->id, "method",
                                method, "params", params);
    int err = !request || json_dump_callback(request, put_text, &body, JSON_COMPACT) != 0 ? KEDGE_E_NOMEM
                                                                                          : KEDGE_OK;
    json_decref(request);
    kedge_buf_clear(&rpc->reply);
    if (err) {
        return err;
    }
    err = kedge_http_post(rpc->http, kedge_buf_view(&body), KEDGE_EVM_RPC_MS, NULL, &rpc->reply, reterr);
    return err ? err
               : kedgei_evm_open_reply(kedge_buf_view(&rpc->reply), rpc->id, method, ret_result, reterr);
}

/* ---- strict hex ---- */

static struct kedge_view hex_digits(const json_t *value)
{
    struct kedge_view v = kedge_view_of(json_string_value(value), json_string_length(value));
    bool good = json_is_string(value) && v.len >= 2 && memcmp(v.ptr, "0x", 2) == 0;
    return good ? kedge_view_of(v.ptr + 2, v.len - 2) : kedge_view_of(NULL, 0);
}

/* JSON-RPC has two kinds of hex (Ethereum's execution API, "hex value encoding"): a quantity is a number,
 * without leading zeros and "0x0" for zero; data are bytes, two digits each. A value of the wrong kind is
 * refused, and so are numbers beyond 64 bits: none that is asked for here can be that large. */
bool kedgei_evm_quantity(const json_t *value, uint64_t *ret)
{
    struct kedge_view digits = hex_digits(value);
    uint64_t v = 0;
    if (digits.len == 0 || digits.len > 16 || (digits.ptr[0] == '0' && digits.len > 1)) {
        return false;
    }
    for (size_t i = 0; i < digits.len; i++) {
        uint8_t c = digits.ptr[i];
        if ((c < '0' || c > '9') && (c < 'a' || c > 'f')) {
            return false;
        }
        v = v << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    *ret = v;
    return true;
}

bool kedgei_evm_data(const json_t *value, uint8_t *out, size_t len)
{
    struct kedge_view digits = hex_digits(value);
    return digits.ptr && digits.len == 2 * len && kedge_hex_decode(digits, out, len) == KEDGE_OK;
}

/* Data of any length, appended; "0x" is none. */
bool kedgei_evm_bytes(const json_t *value, struct kedge_buf *out)
{
    struct kedge_view digits = hex_digits(value);
    if (digits.ptr && digits.len == 0) {
        return true;
    }
    if (!digits.ptr || digits.len % 2 != 0 || kedge_buf_reserve(out, digits.len / 2) != KEDGE_OK
        || kedge_hex_decode(digits, out->ptr + out->len, digits.len / 2) != KEDGE_OK) {
        return false;
    }
    out->len += digits.len / 2;
    return true;
}

json_t *kedgei_evm_quantity_json(uint64_t v)
{
    return json_sprintf("0x%llx", (unsigned long long)v);
}

json_t *kedgei_evm_data_json(struct kedge_view bytes)
{
    char *text = kedge_mem_new(2 * bytes.len + 3, 1);
    if (!text) {
        return NULL;
    }
    text[0] = '0';
    text[1] = 'x';
    kedge_hex_encode(bytes.ptr, bytes.len, text + 2);
    json_t *o = json_string(text);
    kedge_mem_free(text);
    return o;
}

/* ---- answers ---- */

static const char *tag_name(enum kedge_evm_tag tag)
{
    static const char *const names[] = {"latest", "pending", "safe", "finalized"};
    return names[tag];
}

static bool get_block(const json_t *block, struct kedge_evm_answer *ret)
{
    ret->found = !json_is_null(block);
    return !ret->found
           || (kedgei_evm_quantity(json_object_get(block, "number"), &ret->number)
               && kedgei_evm_data(json_object_get(block, "hash"), ret->hash.b, KEDGE_HASH_LEN));
}

/* Takes a log of ours, if it is one. Those of other contracts in the same receipt are passed over, but must
 * be well-formed as all else is. False: malformed. */
static bool get_log(const json_t *o, const struct kedge_evm_config *config, struct kedge_evm_receipt *ret)
{
    struct kedge_evm_log log = {.topic_count = json_array_size(json_object_get(o, "topics"))};
    struct kedge_evm_anchored event;
    struct kedge_buf data KEDGE_CLEANUP(kedge_buf_deinit);
    uint64_t index;
    kedge_buf_init(&data, LOG_DATA_MAX);
    if (!kedgei_evm_data(json_object_get(o, "address"), log.address.b, sizeof log.address.b)
        || !kedgei_evm_quantity(json_object_get(o, "logIndex"), &index)
        || !kedgei_evm_bytes(json_object_get(o, "data"), &data) || log.topic_count > KEDGE_EVM_TOPICS_MAX) {
        return false;
    }
    for (size_t i = 0; i < log.topic_count; i++) {
        if (!kedgei_evm_data(json_array_get(json_object_get(o, "topics"), i), log.topics[i].b,
                             KEDGE_HASH_LEN)) {
            return false;
        }
    }
    log.data = kedge_buf_view(&data);
    if (!ret->has_event && kedge_evm_address_eq(&log.address, &config->contract)
        && kedge_evm_anchored_decode(&log, &event) == KEDGE_OK) {
        ret->has_event = true;
        ret->event = event;
        ret->log_index = index;
    }
    return true;
}

/* A receipt that has no block yet counts as none. It must be of the transaction that was asked for;
 * whether its event is ours and its block is in the chain, the state machine judges. */
static bool get_receipt(const json_t *o, const struct kedge_evm_config *config, const struct kedge_hash *tx,
                        struct kedge_evm_answer *ret)
{
    const json_t *logs = json_object_get(o, "logs");
    struct kedge_hash hash;
    uint64_t status;
    ret->found = !json_is_null(o) && !json_is_null(json_object_get(o, "blockHash"));
    if (!ret->found) {
        return true;
    }
    if (!kedgei_evm_data(json_object_get(o, "transactionHash"), hash.b, sizeof hash.b)
        || !kedge_hash_eq(&hash, tx) || !kedgei_evm_quantity(json_object_get(o, "status"), &status)
        || status > 1 || !kedgei_evm_quantity(json_object_get(o, "blockNumber"), &ret->receipt.block)
        || !kedgei_evm_data(json_object_get(o, "blockHash"), ret->receipt.block_hash.b, KEDGE_HASH_LEN)
        || !json_is_array(logs) || json_array_size(logs) > LOGS_MAX) {
        return false;
    }
    ret->receipt.succeeded = status == 1;
    for (size_t i = 0; i < json_array_size(logs); i++) {
        if (!get_log(json_array_get(logs, i), config, &ret->receipt)) {
            return false;
        }
    }
    return true;
}

/* Base fee of the next block, and as a tip the highest of the last blocks' 25th percentiles of tips. One
 * block may have been empty and its tips low, so the highest of several is taken: an anchor is rare, and
 * one that waits long costs a replacement. */
static bool get_fees(const json_t *o, struct kedge_evm_answer *ret)
{
    const json_t *base = json_object_get(o, "baseFeePerGas"), *reward = json_object_get(o, "reward");
    size_t count = json_array_size(base);
    if (count == 0 || count > FEE_BLOCKS + 1 || json_array_size(reward) > FEE_BLOCKS
        || !kedgei_evm_quantity(json_array_get(base, count - 1), &ret->base_fee)) {
        return false;
    }
    ret->priority_fee = least_tip;
    for (size_t i = 0; i < json_array_size(reward); i++) {
        uint64_t tip;
        if (!kedgei_evm_quantity(json_array_get(json_array_get(reward, i), 0), &tip)) {
            return false;
        }
        ret->priority_fee = tip > ret->priority_fee ? tip : ret->priority_fee;
    }
    return true;
}

static bool get_head(const json_t *result, struct kedge_evm_answer *ret)
{
    uint8_t words[4 * KEDGE_EVM_WORD];
    return kedgei_evm_data(result, words, sizeof words)
           && kedge_evm_heads_decode(kedge_view_of(words, sizeof words), &ret->head) == KEDGE_OK;
}

/* ---- the machine's questions ---- */

static const char *method_of(enum kedge_evm_method method)
{
    static const char *const names[] = {
        "eth_chainId",          "eth_getTransactionCount",   "eth_getBlockByNumber",
        "eth_getBlockByNumber", "eth_getTransactionReceipt", "eth_call",
        "eth_feeHistory",       "eth_sendRawTransaction"};
    return names[method];
}

static json_t *params_of(const struct kedge_evm_config *config, const struct kedge_evm_effect *fx)
{
    uint8_t call[KEDGE_EVM_HEADS_CALL_LEN];
    switch (fx->method) {
    case KEDGE_EVM_CALL_CHAIN_ID:
        break;
    case KEDGE_EVM_CALL_NONCE:
        return json_pack("[o,s]",
                         kedgei_evm_data_json(kedge_view_of(config->sender.b, sizeof config->sender.b)),
                         tag_name(fx->tag));
    case KEDGE_EVM_CALL_BLOCK:
        return json_pack("[s,b]", tag_name(fx->tag), 0);
    case KEDGE_EVM_CALL_BLOCK_AT:
        return json_pack("[o,b]", kedgei_evm_quantity_json(fx->number), 0);
    case KEDGE_EVM_CALL_RECEIPT:
        return json_pack("[o]", kedgei_evm_data_json(kedge_view_of(fx->hash.b, sizeof fx->hash.b)));
    case KEDGE_EVM_CALL_HEADS:
        kedge_evm_heads_call(&config->sender, &config->ns, call);
        return json_pack("[{s:o,s:o},s]", "to",
                         kedgei_evm_data_json(kedge_view_of(config->contract.b, sizeof config->contract.b)),
                         "data", kedgei_evm_data_json(kedge_view_of(call, sizeof call)), "latest");
    case KEDGE_EVM_CALL_FEES:
        return json_pack("[s,s,[i]]", "0x5", "latest", 25);
    case KEDGE_EVM_CALL_SEND:
        return json_pack("[o]", kedgei_evm_data_json(fx->raw));
    }
    return json_array();
}

bool kedgei_evm_get_result(const json_t *result, const struct kedge_evm_config *config,
                           const struct kedge_evm_effect *fx, struct kedge_evm_answer *ret)
{
    switch (fx->method) {
    case KEDGE_EVM_CALL_CHAIN_ID:
    case KEDGE_EVM_CALL_NONCE:
        return kedgei_evm_quantity(result, &ret->number);
    case KEDGE_EVM_CALL_BLOCK:
    case KEDGE_EVM_CALL_BLOCK_AT:
        return get_block(result, ret);
    case KEDGE_EVM_CALL_RECEIPT:
        return get_receipt(result, config, &fx->hash, ret);
    case KEDGE_EVM_CALL_HEADS:
        return get_head(result, ret);
    case KEDGE_EVM_CALL_FEES:
        return get_fees(result, ret);
    case KEDGE_EVM_CALL_SEND:
        return kedgei_evm_data(result, ret->hash.b, KEDGE_HASH_LEN);
    }
    return false;
}

void kedge_evm_rpc_call(struct kedge_evm_rpc *rpc, const struct kedge_evm_config *config,
                        const struct kedge_evm_effect *fx, struct kedge_evm_answer *ret)
{
    struct kedge_diag d = {.text = ""};
    json_t *result = NULL;
    memset(ret, 0, sizeof *ret);
    int err = kedgei_evm_ask(rpc, method_of(fx->method), params_of(config, fx), &result, &d);
    bool tagged = fx->method == KEDGE_EVM_CALL_BLOCK && err == KEDGE_E_DENIED;
    if (tagged) { /* no such block yet: "finalized block not found" and the like */
        err = KEDGE_OK;
    } else if (!err && !kedgei_evm_get_result(result, config, fx, ret)) {
        memset(ret, 0, sizeof *ret);
        err = kedge_diag_set(&d, KEDGE_E_FORMAT, "%s: a malformed answer", method_of(fx->method));
    }
    ret->err = err;
    snprintf(ret->text, sizeof ret->text, "%.200s", err ? d.text[0] ? d.text : kedge_strerror(err) : "");
    json_decref(result);
}
