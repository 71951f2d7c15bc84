/* Signed notes (c2sp.org/signed-note v1.0.0): a text and lines of signatures by named keys, and verifier keys
 * ("vkeys"). Signature types: 01 Ed25519 and 04 timestamped cosignature (c2sp.org/tlog-cosignature); others
 * are unknown keys, whose lines are kept byte for byte because a note is never re-written, only appended to.
 * Pure. */
#ifndef KEDGE_CHAIN_LOG_NOTE_H
#define KEDGE_CHAIN_LOG_NOTE_H

#include <stdint.h>

#include "common/base/bytes.h"
#include "common/base/limits.h"
#include "crypto/sign.h"

enum {
    KEDGE_KEY_NAME_MAX = 255, /* bytes of a key's name */
    KEDGE_KEY_ID_LEN = 4,
    KEDGE_VKEY_MAX = KEDGE_KEY_NAME_MAX + 1 + 8 + 1 + 44, /* characters of a vkey */
};

enum kedge_key_type {
    KEDGE_KEY_ED25519 = 1,
    KEDGE_KEY_COSIGNATURE = 4,
};

/* A named key that somebody trusts. */
struct kedge_vkey {
    char name[KEDGE_KEY_NAME_MAX + 1];
    uint8_t id[KEDGE_KEY_ID_LEN];
    enum kedge_key_type type;
    struct kedge_public_key key;
};

/* Not empty, UTF-8, no '+', no white space, no control bytes, at most KEDGE_KEY_NAME_MAX bytes. */
bool kedge_key_name_is_valid(struct kedge_view name);
/* KEDGE_E_ARG: invalid name; KEDGE_E_KEY: key outside the prime-order group. */
KEDGE_NODISCARD int kedge_vkey_make(struct kedge_view name, enum kedge_key_type type,
                                    const struct kedge_public_key *key, struct kedge_vkey *ret_vkey);
/* "name+hhhhhhhh+base64(type ‖ key)"; KEDGE_E_FORMAT, or KEDGE_E_KEY when type, length, ID or point do not
 * fit. */
KEDGE_NODISCARD int kedge_vkey_decode(struct kedge_view text, struct kedge_vkey *ret_vkey);
void kedge_vkey_encode(const struct kedge_vkey *vkey, struct kedge_buf *out);

struct kedge_note_line {
    struct kedge_view line; /* with its LF */
    struct kedge_view name;
    struct kedge_view base64; /* of ID ‖ signature */
    uint8_t id[KEDGE_KEY_ID_LEN];
};

/* A parsed note: views into the caller's bytes. */
struct kedge_note {
    struct kedge_view text; /* with its last LF: what is signed */
    uint32_t line_count;    /* 1…KEDGE_NOTE_SIGNATURES_MAX */
    struct kedge_note_line lines[KEDGE_NOTE_SIGNATURES_MAX];
};

/* What verification found out about the key of the same index. */
struct kedge_note_verdict {
    bool verified;
    uint64_t time_s; /* POSIX seconds that a cosignature states, else 0 */
};

/* KEDGE_E_FORMAT, KEDGE_E_TOO_LONG (more than KEDGE_NOTE_MAX bytes), KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_note_parse(struct kedge_view bytes, struct kedge_note *ret_note);
/* KEDGE_OK when at least one known key signed and no line of a known key fails; else KEDGE_E_VERIFY. A line
 * is of a known key when name *and* ID match; a key that signed twice counts once. KEDGE_E_ARG when two known
 * keys share name and ID. ret_verdicts has known_count elements (all "not verified" after an error) or is
 * NULL; ret_count, the verified keys, may be NULL. */
KEDGE_NODISCARD int kedge_note_verify(const struct kedge_note *note, const struct kedge_vkey *known,
                                      size_t known_count, struct kedge_note_verdict *ret_verdicts,
                                      size_t *ret_count);
/* Appends the note over text (which ends in LF) with one type-01 signature. KEDGE_E_ARG: text or name
 * invalid. */
KEDGE_NODISCARD int kedge_note_sign(struct kedge_view text, struct kedge_view name,
                                    const struct kedge_key_pair *pair, struct kedge_buf *ret_note);

#endif
