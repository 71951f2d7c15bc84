/* JSON and HTML that several files of an export are made of. Objects are written in the order in which
 * their members were added, and Ed25519 signatures are deterministic, so the same statement gives the
 * same bytes. */
#include "chain/export/internal.h"

#include <jansson.h>
#include <string.h>

#include "chain/log/dsse.h"
#include "common/base/text.h"
#include "common/json/json.h"

enum { PAYLOAD_MAX = 64 * 1024 * 1024 };

json_t *kedgei_ex_hex(const struct kedge_hash *hash)
{
    return kedgei_json_hex(hash->b, sizeof hash->b);
}

json_t *kedgei_ex_digest(const struct kedge_hash *hash)
{
    return json_pack("{s:o}", "sha256", kedgei_ex_hex(hash));
}

json_t *kedgei_ex_statement(json_t *subject, const char *predicate_type, json_t *predicate)
{
    return json_pack("{s:s,s:o,s:s,s:o}", "_type", "https://in-toto.io/Statement/v1", "subject", subject,
                     "predicateType", predicate_type, "predicate", predicate);
}

static int put_text(const char *text, size_t len, void *arg)
{
    struct kedge_buf *out = arg;
    kedge_buf_put(out, text, len);
    return out->err ? -1 : 0;
}

int kedgei_ex_dump(const json_t *o, struct kedge_buf *out)
{
    if (!o || json_dump_callback(o, put_text, out, JSON_COMPACT) != 0) {
        return out->err ? out->err : KEDGE_E_NOMEM;
    }
    return KEDGE_OK;
}

int kedgei_ex_envelope(json_t *statement, const struct kedge_key_pair *pair, struct kedge_buf *out)
{
    struct kedge_buf payload KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_buf pae KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&payload, PAYLOAD_MAX);
    kedge_buf_init(&pae, PAYLOAD_MAX + 128);
    int err = kedgei_ex_dump(statement, &payload);
    json_decref(statement);
    if (err) {
        return err;
    }
    kedge_dsse_pae(kedge_view_str(KEDGE_DSSE_IN_TOTO), kedge_buf_view(&payload), &pae);
    if (pae.err) {
        return pae.err;
    }
    struct kedge_signature sig;
    struct kedge_hash keyid;
    char hex[KEDGE_HASH_HEX_LEN + 1];
    kedge_sign(kedge_buf_view(&pae), pair, &sig);
    kedge_public_key_hash(&pair->public, &keyid);
    kedge_hash_hex(&keyid, hex);
    kedge_buf_put_str(out, "{\"payload\":\"");
    kedge_base64_put(out, kedge_buf_view(&payload));
    kedge_buf_printf(out, "\",\"payloadType\":\"%s\",\"signatures\":[{\"keyid\":\"%s\",\"sig\":\"",
                     KEDGE_DSSE_IN_TOTO, hex);
    kedge_base64_put(out, kedge_view_of(sig.b, sizeof sig.b));
    kedge_buf_put_str(out, "\"}]}");
    return out->err;
}

/* Names and texts come from other organisations. Besides the five characters that have a meaning in HTML,
 * everything that would not be seen or would turn the direction of the text is replaced by U+FFFD: a name
 * must not be able to make the page say something else. */
void kedgei_ex_html(struct kedge_buf *out, const char *text)
{
    const uint8_t *p = (const uint8_t *)text;
    size_t len = strlen(text);
    for (size_t i = 0; i < len;) {
        uint32_t point = 0;
        size_t n = kedge_utf8_next(kedge_view_of(p + i, len - i), &point);
        uint8_t c = p[i];
        if (n == 0 || !kedge_char_is_plain(point)) {
            kedge_buf_put_str(out, "\xef\xbf\xbd");
        } else if (c == '&') {
            kedge_buf_put_str(out, "&amp;");
        } else if (c == '<') {
            kedge_buf_put_str(out, "&lt;");
        } else if (c == '>') {
            kedge_buf_put_str(out, "&gt;");
        } else if (c == '"') {
            kedge_buf_put_str(out, "&quot;");
        } else if (c == '\'') {
            kedge_buf_put_str(out, "&#39;");
        } else {
            kedge_buf_put(out, p + i, n);
        }
        i += n ? n : 1;
    }
}
