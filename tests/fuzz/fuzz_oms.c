/* OpenSSF model signatures. An input that begins with 'b' is a bundle, read as it is: nothing a fuzzer finds
 * may verify. Any other is a statement: it is signed here, so that the reader meets it behind a signature
 * that holds, and what it accepts must be a list in order with the root digest that it states. */
#include <string.h>

#include "chain/export/oms.h"
#include "chain/log/dsse.h"
#include "common/base/text.h"
#include "crypto/sign.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const struct kedge_p256_key key = {{[31] = 1}};

static void sign_statement(struct kedge_view payload, struct kedge_view pem, struct kedge_buf *out)
{
    struct kedge_buf pae KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_buf sig KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_hash hint;
    char hex[KEDGE_HASH_HEX_LEN + 1];
    kedge_buf_init(&pae, 1 << 20);
    kedge_buf_init(&sig, KEDGE_EC_SIGNATURE_MAX);
    kedge_dsse_pae(kedge_view_str(KEDGE_DSSE_IN_TOTO), payload, &pae);
    KEDGE_ASSERT(kedge_p256_sign(kedge_buf_view(&pae), &key, &sig) == KEDGE_OK);
    KEDGE_ASSERT(kedge_ec_hint(pem, &hint) == KEDGE_OK);
    kedge_hash_hex(&hint, hex);
    kedge_buf_printf(
        out,
        "{\"mediaType\":\"application/vnd.dev.sigstore.bundle.v0.3+json\",\"verificationMaterial\":"
        "{\"publicKey\":{\"hint\":\"%s\"}},\"dsseEnvelope\":{\"payload\":\"",
        hex);
    kedge_base64_put(out, payload);
    kedge_buf_printf(out, "\",\"payloadType\":\"%s\",\"signatures\":[{\"sig\":\"", KEDGE_DSSE_IN_TOTO);
    kedge_base64_put(out, kedge_buf_view(&sig));
    kedge_buf_put_str(out, "\"}]}}");
    KEDGE_ASSERT(!out->err);
}

static void check_accepted(const struct kedge_oms *oms)
{
    struct kedge_hash root;
    KEDGE_ASSERT(oms->list.count > 0 && oms->name[0] != '\0');
    for (size_t i = 0; i < oms->list.count; i++) {
        const char *name = oms->list.files[i].name;
        KEDGE_ASSERT(name[0] != '\0' && name[0] != '/' && !strstr(name, "//") && !strstr(name, "/../"));
        KEDGE_ASSERT(i == 0 || strcmp(oms->list.files[i - 1].name, name) < 0);
    }
    kedge_oms_root(&oms->list, &root);
    KEDGE_ASSERT(kedge_hash_eq(&root, &oms->root));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct kedge_buf pem; /* made once */
    struct kedge_buf bundle KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_oms oms;
    struct kedge_diag d = {.text = ""};
    bool raw = len > 0 && data[0] == 'b';
    kedge_buf_init(&bundle, 1 << 20);
    if (len == 0 || len > 1 << 18) {
        return 0;
    }
    if (pem.len == 0) {
        KEDGE_ASSERT(kedge_crypto_init() == KEDGE_OK);
        kedge_buf_init(&pem, KEDGE_EC_PEM_MAX);
        KEDGE_ASSERT(kedge_p256_put_public(&pem, &key) == KEDGE_OK);
    }
    if (raw) {
        kedge_buf_put(&bundle, data + 1, len - 1);
    } else {
        sign_statement(kedge_view_of(data, len), kedge_buf_view(&pem), &bundle);
    }
    int err = kedge_oms_open(kedge_buf_view(&bundle), kedge_buf_view(&pem), &oms, &d);
    KEDGE_ASSERT(err == KEDGE_OK || d.text[0] != '\0');
    KEDGE_ASSERT(err != KEDGE_OK || !raw);
    if (!err) {
        check_accepted(&oms);
        kedge_oms_deinit(&oms);
    }
    return 0;
}
