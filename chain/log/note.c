/* Signed notes (c2sp.org/signed-note). A note is checked whole before any part of it is used; everything
 * returned is a view into the caller's bytes, so that lines of keys nobody here knows survive byte for
 * byte.
 *
 * A line belongs to a key if name and key ID both fit. Lines of unknown keys are passed over, as others
 * may sign, too. A line of a known key that does not verify refuses the whole note: somebody has changed
 * it, or claims a signature that he does not have. Repeated lines of a key count once. */
#include "chain/log/note.h"

#include <inttypes.h>
#include <string.h>

#include "chain/log/lines.h"
#include "chain/log/note_impl.h"
#include "common/base/text.h"
#include "common/base/try.h"

static const char dash[] = "\xe2\x80\x94 "; /* U+2014 EM DASH, space */
enum { DASH_LEN = 4 };

/* Unicode White_Space that UTF-8 spells in two or three bytes; the ASCII ones are below. */
static bool is_wide_space(const uint8_t *p, size_t len)
{
    if (len >= 2 && p[0] == 0xc2) {
        return p[1] == 0x85 || p[1] == 0xa0;
    }
    if (len < 3) {
        return false;
    }
    uint32_t c = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
    return c == 0xe19a80                       /* U+1680 */
           || (c >= 0xe28080 && c <= 0xe2808a) /* U+2000…200A */
           || c == 0xe280a8 || c == 0xe280a9   /* U+2028, 2029 */
           || c == 0xe280af || c == 0xe2819f   /* U+202F, 205F */
           || c == 0xe38080;                   /* U+3000 */
}

/* Spaces of any kind and '+' separate the parts of lines and keys, so they may not be in names; two names
 * that look alike because of a wide space would be two keys with one name to a reader. */
bool kedge_key_name_is_valid(struct kedge_view name)
{
    if (name.len == 0 || name.len > KEDGE_KEY_NAME_MAX || !kedge_utf8_is_valid(name)) {
        return false;
    }
    for (size_t i = 0; i < name.len; i++) {
        uint8_t c = name.ptr[i];
        if (c <= ' ' || c == '+' || is_wide_space(name.ptr + i, name.len - i)) {
            return false;
        }
    }
    return true;
}

static bool is_known_type(int type)
{
    return type == KEDGE_KEY_ED25519 || type == KEDGE_KEY_COSIGNATURE;
}

/* First 4 bytes of SHA-256(name ‖ LF ‖ type ‖ key). */
static void make_id(struct kedge_view name, uint8_t type, const struct kedge_public_key *key,
                    uint8_t ret_id[KEDGE_KEY_ID_LEN])
{
    uint8_t tail[2 + KEDGE_KEY_LEN] = {'\n', type};
    memcpy(tail + 2, key->b, KEDGE_KEY_LEN);
    struct kedge_hash h;
    kedge_sha256_2(name, kedge_view_of(tail, sizeof tail), &h);
    memcpy(ret_id, h.b, KEDGE_KEY_ID_LEN);
}

int kedge_vkey_make(struct kedge_view name, enum kedge_key_type type, const struct kedge_public_key *key,
                    struct kedge_vkey *ret_vkey)
{
    if (!kedge_key_name_is_valid(name) || !is_known_type((int)type)) {
        return KEDGE_E_ARG;
    }
    if (!kedge_public_key_is_valid(key)) {
        return KEDGE_E_KEY;
    }
    memset(ret_vkey, 0, sizeof *ret_vkey);
    memcpy(ret_vkey->name, name.ptr, name.len);
    ret_vkey->type = type;
    ret_vkey->key = *key;
    make_id(name, (uint8_t)type, key, ret_vkey->id);
    return KEDGE_OK;
}

int kedge_vkey_decode(struct kedge_view text, struct kedge_vkey *ret_vkey)
{
    struct kedge_view rest = text; /* names have no '+', base64 may: split at the first two */
    struct kedge_view name, hex;
    uint8_t id[KEDGE_KEY_ID_LEN];
    if (text.len > KEDGE_VKEY_MAX || !kedgei_cut(&rest, '+', &name) || !kedgei_cut(&rest, '+', &hex)
        || rest.len == 0 || !kedge_key_name_is_valid(name)
        || kedge_hex_decode(hex, id, sizeof id) != KEDGE_OK) {
        return KEDGE_E_FORMAT;
    }
    struct kedge_buf blob KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&blob, 64);
    int err = kedge_base64_decode(rest, false, &blob);
    if (err) {
        return err == KEDGE_E_NOMEM ? err : KEDGE_E_FORMAT;
    }
    if (blob.len != 1 + KEDGE_KEY_LEN || !is_known_type(blob.ptr[0])) {
        return KEDGE_E_KEY;
    }
    struct kedge_public_key key;
    memcpy(key.b, blob.ptr + 1, sizeof key.b);
    struct kedge_vkey vkey;
    err = kedge_vkey_make(name, (enum kedge_key_type)blob.ptr[0], &key, &vkey);
    if (err || memcmp(vkey.id, id, sizeof id) != 0) {
        return KEDGE_E_KEY;
    }
    *ret_vkey = vkey;
    return KEDGE_OK;
}

void kedge_vkey_encode(const struct kedge_vkey *vkey, struct kedge_buf *out)
{
    char hex[2 * KEDGE_KEY_ID_LEN + 1];
    kedge_hex_encode(vkey->id, sizeof vkey->id, hex);
    uint8_t blob[1 + KEDGE_KEY_LEN] = {(uint8_t)vkey->type};
    memcpy(blob + 1, vkey->key.b, KEDGE_KEY_LEN);
    kedge_buf_put_str(out, vkey->name);
    kedge_buf_put_u8(out, '+');
    kedge_buf_put_str(out, hex);
    kedge_buf_put_u8(out, '+');
    kedge_base64_put(out, kedge_view_of(blob, sizeof blob));
}

/* UTF-8 without control bytes but LF (CR is one of them). */
static bool is_note_text(struct kedge_view text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < 0x20 && text.ptr[i] != '\n') {
            return false;
        }
    }
    return kedge_utf8_is_valid(text);
}

/* One line without its LF. scratch is reused from line to line. Only the key id is decoded here; the
 * signature's bytes stay as base64, so that lines of unknown types can be put out again as they came. */
static int parse_line(struct kedge_view line, struct kedge_buf *scratch, struct kedge_note_line *ret)
{
    if (line.len < DASH_LEN || memcmp(line.ptr, dash, DASH_LEN) != 0) {
        return KEDGE_E_FORMAT;
    }
    struct kedge_view rest = kedge_view_of(line.ptr + DASH_LEN, line.len - DASH_LEN);
    if (!kedgei_cut(&rest, ' ', &ret->name) || !kedge_key_name_is_valid(ret->name) || rest.len == 0) {
        return KEDGE_E_FORMAT;
    }
    kedge_buf_clear(scratch);
    KEDGE_TRY(kedge_base64_decode(rest, false, scratch));
    if (scratch->len <= KEDGE_KEY_ID_LEN) {
        return KEDGE_E_FORMAT;
    }
    memcpy(ret->id, scratch->ptr, KEDGE_KEY_ID_LEN);
    ret->base64 = rest;
    ret->line = kedge_view_of(line.ptr, line.len + 1);
    return KEDGE_OK;
}

/* Offset after the last empty line's LF LF, 0 when there is none. The last empty line, since a text may
 * have empty lines of its own. */
static size_t find_signatures(struct kedge_view bytes)
{
    for (size_t i = bytes.len; i >= 2; i--) {
        if (bytes.ptr[i - 1] == '\n' && bytes.ptr[i - 2] == '\n') {
            return i;
        }
    }
    return 0;
}

int kedgei_note_parse_lines(struct kedge_view rest, struct kedge_note *ret_note)
{
    if (rest.len > KEDGE_NOTE_MAX) {
        return KEDGE_E_TOO_LONG;
    }
    if (rest.len == 0 || rest.ptr[rest.len - 1] != '\n' || !is_note_text(rest)) {
        return KEDGE_E_FORMAT;
    }
    struct kedge_buf scratch KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&scratch, KEDGE_NOTE_MAX);
    ret_note->line_count = 0;
    struct kedge_view line;
    while (kedgei_take_line(&rest, &line)) {
        if (ret_note->line_count == KEDGE_NOTE_SIGNATURES_MAX) {
            return KEDGE_E_FORMAT;
        }
        KEDGE_TRY(parse_line(line, &scratch, &ret_note->lines[ret_note->line_count]));
        ret_note->line_count++;
    }
    return KEDGE_OK;
}

int kedge_note_parse(struct kedge_view bytes, struct kedge_note *ret_note)
{
    if (bytes.len > KEDGE_NOTE_MAX) {
        return KEDGE_E_TOO_LONG;
    }
    size_t at = find_signatures(bytes);
    if (at == 0 || !is_note_text(kedge_view_of(bytes.ptr, at))) {
        return KEDGE_E_FORMAT;
    }
    struct kedge_note note;
    KEDGE_TRY(kedgei_note_parse_lines(kedge_view_of(bytes.ptr + at, bytes.len - at), &note));
    note.text = kedge_view_of(bytes.ptr, at - 1);
    *ret_note = note;
    return KEDGE_OK;
}

void kedgei_cosignature_message(struct kedge_view text, uint64_t time_s, struct kedge_buf *out)
{
    kedge_buf_printf(out, "cosignature/v1\ntime %" PRIu64 "\n", time_s);
    kedge_buf_put(out, text.ptr, text.len);
}

/* c2sp.org/tlog-cosignature v1: 8 bytes of time, then a signature over the time and the checkpoint. Times
 * beyond INT64_MAX are refused, so that they can be compared and shown everywhere without a wrap. */
static int verify_cosignature(struct kedge_view text, struct kedge_view blob,
                              const struct kedge_public_key *key, uint64_t *ret_time_s)
{
    struct kedge_signature sig;
    if (blob.len != 8 + sizeof sig.b) {
        return KEDGE_E_VERIFY;
    }
    uint64_t time_s = kedge_load_be64(blob.ptr);
    memcpy(sig.b, blob.ptr + 8, sizeof sig.b);
    if (time_s > (uint64_t)INT64_MAX) {
        return KEDGE_E_VERIFY;
    }
    struct kedge_buf message KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&message, KEDGE_NOTE_MAX + 64);
    kedgei_cosignature_message(text, time_s, &message);
    KEDGE_TRY(message.err ? message.err : kedge_verify(kedge_buf_view(&message), &sig, key));
    *ret_time_s = time_s;
    return KEDGE_OK;
}

static int verify_line(struct kedge_view text, const struct kedge_note_line *line,
                       const struct kedge_vkey *key, uint64_t *ret_time_s)
{
    struct kedge_buf blob KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&blob, KEDGE_NOTE_MAX);
    KEDGE_TRY(kedge_base64_decode(line->base64, false, &blob));
    KEDGE_ASSERT(blob.len > KEDGE_KEY_ID_LEN); /* parse_line saw to it */
    struct kedge_view sig = kedge_view_of(blob.ptr + KEDGE_KEY_ID_LEN, blob.len - KEDGE_KEY_ID_LEN);
    switch (key->type) {
    case KEDGE_KEY_ED25519:
        if (sig.len != KEDGE_SIGNATURE_LEN) {
            return KEDGE_E_VERIFY;
        }
        struct kedge_signature raw;
        memcpy(raw.b, sig.ptr, sizeof raw.b);
        *ret_time_s = 0;
        return kedge_verify(text, &raw, &key->key);
    case KEDGE_KEY_COSIGNATURE:
        return verify_cosignature(text, sig, &key->key, ret_time_s);
    }
    return KEDGE_E_VERIFY;
}

bool kedgei_note_line_is_of(const struct kedge_note_line *line, struct kedge_view name,
                            const uint8_t id[KEDGE_KEY_ID_LEN])
{
    return memcmp(line->id, id, KEDGE_KEY_ID_LEN) == 0 && kedge_view_eq(line->name, name);
}

static bool is_same_key(const struct kedge_vkey *key, struct kedge_view name,
                        const uint8_t id[KEDGE_KEY_ID_LEN])
{
    return memcmp(key->id, id, KEDGE_KEY_ID_LEN) == 0 && kedge_view_eq(kedge_view_str(key->name), name);
}

/* The first line of that key; ret is untouched when it has none. */
static int verify_key(const struct kedge_note *note, const struct kedge_vkey *key,
                      struct kedge_note_verdict *ret)
{
    for (uint32_t i = 0; i < note->line_count; i++) {
        const struct kedge_note_line *line = &note->lines[i];
        if (!is_same_key(key, line->name, line->id)) {
            continue;
        }
        uint64_t time_s = 0;
        KEDGE_TRY(verify_line(note->text, line, key, &time_s));
        if (!ret->verified) { /* repeated: counts once, the first time stands */
            *ret = (struct kedge_note_verdict){true, time_s};
        }
    }
    return KEDGE_OK;
}

static void clear_verdicts(struct kedge_note_verdict *verdicts, size_t count)
{
    for (size_t i = 0; verdicts && i < count; i++) {
        verdicts[i] = (struct kedge_note_verdict){false, 0};
    }
}

/* Known keys must be different: with one key given twice a single signature would count as two. */
int kedge_note_verify(const struct kedge_note *note, const struct kedge_vkey *known, size_t known_count,
                      struct kedge_note_verdict *ret_verdicts, size_t *ret_count)
{
    for (size_t i = 0; i < known_count; i++) {
        for (size_t j = 0; j < i; j++) {
            if (is_same_key(&known[i], kedge_view_str(known[j].name), known[j].id)) {
                return KEDGE_E_ARG;
            }
        }
    }
    size_t count = 0;
    for (size_t i = 0; i < known_count; i++) {
        struct kedge_note_verdict verdict = {false, 0};
        int err = verify_key(note, &known[i], &verdict);
        if (err) {
            clear_verdicts(ret_verdicts, known_count);
            return err;
        }
        count += verdict.verified ? 1 : 0;
        if (ret_verdicts) {
            ret_verdicts[i] = verdict;
        }
    }
    if (count == 0) {
        return KEDGE_E_VERIFY;
    }
    if (ret_count) {
        *ret_count = count;
    }
    return KEDGE_OK;
}

size_t kedgei_note_line_len(size_t name_len, size_t blob_len)
{
    return DASH_LEN + name_len + 1 + kedge_base64_len(blob_len) + 1;
}

void kedgei_note_put_line(struct kedge_view name, struct kedge_view blob, struct kedge_buf *out)
{
    kedge_buf_put(out, dash, DASH_LEN);
    kedge_buf_put(out, name.ptr, name.len);
    kedge_buf_put_u8(out, ' ');
    kedge_base64_put(out, blob);
    kedge_buf_put_u8(out, '\n');
}

/* The text must end with a line feed, or the signature would be over other bytes than a reader of the
 * note verifies. */
int kedge_note_sign(struct kedge_view text, struct kedge_view name, const struct kedge_key_pair *pair,
                    struct kedge_buf *ret_note)
{
    struct kedge_vkey vkey;
    if (text.len == 0 || text.ptr[text.len - 1] != '\n' || !is_note_text(text)) {
        return KEDGE_E_ARG;
    }
    KEDGE_TRY(kedge_vkey_make(name, KEDGE_KEY_ED25519, &pair->public, &vkey));
    uint8_t blob[KEDGE_KEY_ID_LEN + KEDGE_SIGNATURE_LEN];
    struct kedge_signature sig;
    kedge_sign(text, pair, &sig);
    memcpy(blob, vkey.id, KEDGE_KEY_ID_LEN);
    memcpy(blob + KEDGE_KEY_ID_LEN, sig.b, sizeof sig.b);
    size_t len = text.len + 1 + kedgei_note_line_len(name.len, sizeof blob);
    KEDGE_TRY(kedge_buf_reserve(ret_note, len)); /* all or nothing */
    kedge_buf_put(ret_note, text.ptr, text.len);
    kedge_buf_put_u8(ret_note, '\n');
    kedgei_note_put_line(name, kedge_view_of(blob, sizeof blob), ret_note);
    return KEDGE_OK;
}
