/* Enrolment tokens as text. A person copies them by hand or mail, so the text has a fixed
 * beginning, an alphabet that survives shells and addresses, and a checksum that finds what copying
 * has damaged before the device tries in vain. It protects from slips and not from forgery: the
 * secret in it does that. */
#include "common/wire/token.h"

#include <string.h>

static const char TOKEN_START[] = "kedge-enroll-1.";
enum { START_LEN = sizeof TOKEN_START - 1, CRC_LEN = 4 };
enum { BODY_MAX = 4 + KEDGE_TOKEN_ADDRESS_MAX + 2 * KEDGE_WIRE_HASH + 2 * (1 + KEDGE_ID_MAX) + 8 + CRC_LEN };
_Static_assert(START_LEN + (BODY_MAX + 2) / 3 * 4 < KEDGE_TOKEN_TEXT_MAX, "the longest token fits");

/* CRC-32 of IEEE 802.3 (reflected, polynomial 0xedb88320). Finds slips of the pen, not malice. */
static uint32_t crc32_of(struct kedge_view v)
{
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < v.len; i++) {
        crc ^= v.ptr[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
        }
    }
    return ~crc;
}

static bool is_address(struct kedge_view v)
{
    for (size_t i = 0; i < v.len; i++) {
        if (v.ptr[i] <= ' ' || v.ptr[i] > '~') {
            return false;
        }
    }
    return v.len > 0 && v.len <= KEDGE_TOKEN_ADDRESS_MAX;
}

static bool put_id(struct kedge_buf *b, const struct kedge_id *id)
{
    size_t len = strnlen(id->s, sizeof id->s);
    kedge_buf_put_u8(b, (uint8_t)len);
    kedge_buf_put(b, id->s, len);
    return kedge_id_is_valid(kedge_view_of(id->s, len));
}

/* base64 to and from its URL-safe spelling without padding. */
static size_t to_url_safe(uint8_t *text, size_t len)
{
    while (len > 0 && text[len - 1] == '=') {
        len--;
    }
    for (size_t i = 0; i < len; i++) {
        text[i] = text[i] == '+' ? '-' : text[i] == '/' ? '_' : text[i];
    }
    return len;
}

/* The other alphabet's characters are refused: one token, one spelling. */
static bool from_url_safe(struct kedge_view text, struct kedge_buf *out)
{
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        if (c == '+' || c == '/' || c == '=') {
            return false;
        }
        kedge_buf_put_u8(out, c == '-' ? '+' : c == '_' ? '/' : c);
    }
    for (size_t i = text.len; i % 4 != 0; i++) {
        kedge_buf_put_u8(out, '=');
    }
    return out->err == KEDGE_OK;
}

int kedge_token_encode(const struct kedge_token *token, char out[KEDGE_TOKEN_TEXT_MAX])
{
    struct kedge_view address = kedge_view_of(token->address, strnlen(token->address, sizeof token->address));
    struct kedge_buf body KEDGE_CLEANUP(kedge_buf_deinit), text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&body, BODY_MAX);
    kedge_buf_init(&text, KEDGE_TOKEN_TEXT_MAX);
    if (!is_address(address)) {
        return KEDGE_E_ARG;
    }
    kedge_buf_put_u32(&body, (uint32_t)address.len);
    kedge_buf_put(&body, address.ptr, address.len);
    kedge_buf_put(&body, token->server_key, sizeof token->server_key);
    if (!put_id(&body, &token->tenant) || !put_id(&body, &token->site)) {
        return KEDGE_E_ARG;
    }
    kedge_buf_put(&body, token->secret, sizeof token->secret);
    kedge_buf_put_u64(&body, token->expires);
    kedge_buf_put_u32(&body, crc32_of(kedge_buf_view(&body)));
    kedge_base64_put(&text, kedge_buf_view(&body));
    if (body.err || text.err) {
        return body.err ? body.err : text.err;
    }
    size_t len = to_url_safe(text.ptr, text.len);
    memcpy(out, TOKEN_START, START_LEN);
    memcpy(out + START_LEN, text.ptr, len);
    out[START_LEN + len] = 0;
    return KEDGE_OK;
}

static bool read_fields(struct kedge_view body, struct kedge_token *token)
{
    struct kedge_reader r = kedge_reader_of(body);
    struct kedge_view address = kedge_read_bytes(&r, kedge_read_u32(&r));
    struct kedge_view key = kedge_read_bytes(&r, KEDGE_WIRE_HASH);
    struct kedge_view tenant = kedge_read_bytes(&r, kedge_read_u8(&r));
    struct kedge_view site = kedge_read_bytes(&r, kedge_read_u8(&r));
    struct kedge_view secret = kedge_read_bytes(&r, KEDGE_WIRE_HASH);
    token->expires = kedge_read_u64(&r);
    if (kedge_reader_end(&r) != KEDGE_OK || !is_address(address)
        || kedge_id_from(tenant, &token->tenant) != KEDGE_OK
        || kedge_id_from(site, &token->site) != KEDGE_OK) {
        return false;
    }
    memcpy(token->address, address.ptr, address.len);
    memcpy(token->server_key, key.ptr, KEDGE_WIRE_HASH);
    memcpy(token->secret, secret.ptr, KEDGE_WIRE_HASH);
    return true;
}

/* The sum is compared before the fields are read, so a damaged token has one message. */
int kedge_token_decode(struct kedge_view text, struct kedge_token *ret, struct kedge_diag *reterr)
{
    if (text.len < START_LEN || memcmp(text.ptr, TOKEN_START, START_LEN) != 0) {
        kedge_diag_set(reterr, KEDGE_E_FORMAT, "token: does not start with \"%s\"", TOKEN_START);
        kedge_diag_hint(reterr, "paste the whole line that `kedge site enroll` printed");
        return KEDGE_E_FORMAT;
    }
    struct kedge_buf base64 KEDGE_CLEANUP(kedge_buf_deinit), body KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&base64, KEDGE_TOKEN_TEXT_MAX);
    kedge_buf_init(&body, BODY_MAX + 2); /* the decoder takes room for the padding as well */
    struct kedge_token token;
    memset(&token, 0, sizeof token);
    bool whole = from_url_safe(kedge_view_of(text.ptr + START_LEN, text.len - START_LEN), &base64)
                 && kedge_base64_decode(kedge_buf_view(&base64), false, &body) == KEDGE_OK
                 && body.len > CRC_LEN;
    if (whole) {
        struct kedge_view fields = {body.ptr, body.len - CRC_LEN};
        struct kedge_reader tail = kedge_reader_of(kedge_view_of(body.ptr + fields.len, CRC_LEN));
        whole = kedge_read_u32(&tail) == crc32_of(fields) && read_fields(fields, &token);
    }
    if (!whole) {
        kedge_diag_set(reterr, KEDGE_E_FORMAT, "token: damaged or incomplete");
        kedge_diag_hint(reterr, "copy it again, without line breaks or spaces, or ask for a new one");
        return KEDGE_E_FORMAT;
    }
    *ret = token;
    return KEDGE_OK;
}
