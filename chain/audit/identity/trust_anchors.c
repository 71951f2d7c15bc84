#include "chain/audit/identity/trust_anchors.h"

#include <string.h>

#include "common/base/mem.h"
#include "common/base/nearest.h"
#include "common/json/json.h"
#include "crypto/timestamp.h"

static int bad(struct kedge_diag *d, const char *field, const char *expected)
{
    return kedge_diag_set(d, KEDGE_E_FORMAT, "anchors: %s: expected %s", field, expected);
}

static int check_keys(const json_t *object, const char *const *allowed, struct kedge_diag *d)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        size_t i = 0;
        while (allowed[i] && strcmp(allowed[i], key) != 0) {
            i++;
        }
        if (!allowed[i]) {
            (void)kedge_diag_set(d, KEDGE_E_FORMAT, "anchors: unknown key \"%.60s\"", key);
            kedge_nearest_hint(d, key, allowed, i, "");
            return KEDGE_E_FORMAT;
        }
    }
    return KEDGE_OK;
}

static int read_address(const json_t *o, const char *field, struct kedge_evm_address *ret,
                        struct kedge_diag *d)
{
    const char *text = json_string_value(json_object_get(o, field));
    return text && kedge_evm_address_parse(kedge_view_str(text), ret) == KEDGE_OK
               ? KEDGE_OK
               : bad(d, field, "an address: 0x and 40 hex digits, with a right checksum if mixed case");
}

static int read_evm(const json_t *o, struct kedge_trust_anchors *ret, struct kedge_diag *d)
{
    static const char *const keys[] = {"chain_id", "contract", "account", NULL};
    const json_t *id = json_object_get(o, "chain_id");
    if (!json_is_object(o)) {
        return bad(d, "evm", "an object: chain_id, contract, account");
    }
    int err = check_keys(o, keys, d);
    if (!err && (!json_is_integer(id) || json_integer_value(id) < 1)) {
        err = bad(d, "chain_id", "a whole number from 1 on");
    }
    err = err ? err : read_address(o, "contract", &ret->contract, d);
    err = err ? err : read_address(o, "account", &ret->account, d);
    if (!err) {
        ret->chain_id = (uint64_t)json_integer_value(id);
        ret->has_evm = true;
    }
    return err;
}

/* Text of certificates. Whether there is a usable one is for those who verify with them to say. */
static int read_ca(const json_t *v, struct kedge_trust_anchors *ret, struct kedge_diag *d)
{
    size_t len = json_string_length(v);
    if (!json_is_string(v) || len == 0 || len > KEDGE_TSA_PEM_MAX
        || !strstr(json_string_value(v), "-----BEGIN CERTIFICATE-----")) {
        return bad(d, "tsa_ca", "certificates in PEM");
    }
    for (size_t i = 0; i < len; i++) {
        uint8_t c = (uint8_t)json_string_value(v)[i];
        if ((c < 0x20 && c != '\n' && c != '\t') || c >= 0x7f) {
            return bad(d, "tsa_ca", "certificates in PEM, ASCII with LF");
        }
    }
    ret->tsa_ca = kedge_mem_strdup(json_string_value(v));
    return ret->tsa_ca ? KEDGE_OK : kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory");
}

int kedgei_trust_anchors_read(const json_t *value, struct kedge_trust_anchors *ret, struct kedge_diag *reterr)
{
    static const char *const keys[] = {"evm", "tsa_ca", "required", NULL};
    if (!value) {
        return KEDGE_OK;
    }
    if (!json_is_object(value)) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "anchors: expected an object: evm, tsa_ca, required");
    }
    const json_t *evm = json_object_get(value, "evm"), *ca = json_object_get(value, "tsa_ca");
    const json_t *required = json_object_get(value, "required");
    int err = check_keys(value, keys, reterr);
    err = err || !evm ? err : read_evm(evm, ret, reterr);
    err = err || !ca ? err : read_ca(ca, ret, reterr);
    if (!err && required && !json_is_boolean(required)) {
        err = bad(reterr, "required", "true or false");
    }
    ret->required = json_is_true(required);
    if (!err && ret->required && !ret->has_evm && !ret->tsa_ca) {
        err = bad(reterr, "required", "evm or tsa_ca beside it: whose anchors count");
    }
    return err;
}

void kedgei_trust_anchors_put(struct kedge_buf *out, const struct kedge_trust_anchors *a)
{
    const char *between = "";
    if (!a->has_evm && !a->tsa_ca && !a->required) {
        return;
    }
    kedge_buf_put_str(out, ",\n  \"anchors\": {");
    if (a->has_evm) {
        char contract[KEDGE_EVM_ADDRESS_TEXT], account[KEDGE_EVM_ADDRESS_TEXT];
        kedge_evm_address_text(&a->contract, contract);
        kedge_evm_address_text(&a->account, account);
        kedge_buf_printf(out,
                         "\n    \"evm\": {\"chain_id\": %llu, \"contract\": \"%s\", \"account\": \"%s\"}",
                         (unsigned long long)a->chain_id, contract, account);
        between = ",";
    }
    if (a->tsa_ca) {
        kedge_buf_printf(out, "%s\n    \"tsa_ca\": ", between);
        kedgei_json_put_string(out, a->tsa_ca);
        between = ",";
    }
    if (a->required) {
        kedge_buf_printf(out, "%s\n    \"required\": true", between);
    }
    kedge_buf_put_str(out, "}");
}

int kedge_trust_anchor_parse(const char *text, struct kedge_trust_anchors *into)
{
    struct kedge_trust_anchors a = *into;
    const char *contract = strchr(text, ':'), *account = contract ? strchr(contract + 1, ':') : NULL;
    if (!account
        || kedge_decimal_decode(kedge_view_of(text, (size_t)(contract - text)), INT64_MAX, &a.chain_id)
               != KEDGE_OK
        || a.chain_id == 0
        || kedge_evm_address_parse(kedge_view_of(contract + 1, (size_t)(account - contract - 1)), &a.contract)
               != KEDGE_OK
        || kedge_evm_address_parse(kedge_view_str(account + 1), &a.account) != KEDGE_OK) {
        return KEDGE_E_FORMAT;
    }
    a.has_evm = true;
    *into = a;
    return KEDGE_OK;
}
