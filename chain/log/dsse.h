/* DSSE envelopes (secure-systems-lab/dsse v1.0.2): a payload, its type, signatures over the PAE bytes. What
 * Kedge writes and reads has one spelling (kedge_dsse_build, kedge_dsse_decode). The payload that verified is
 * the payload to parse: never re-serialise. Pure. */
#ifndef KEDGE_CHAIN_LOG_DSSE_H
#define KEDGE_CHAIN_LOG_DSSE_H

#include <stdint.h>

#include "common/base/bytes.h"
#include "common/base/diag.h"
#include "common/base/limits.h"
#include "crypto/sign.h"

enum {
    KEDGE_DSSE_TYPE_MAX = 255,      /* bytes of a payload type */
    KEDGE_DSSE_SIGNATURES_MAX = 16, /* of one envelope */
};

extern const char KEDGE_DSSE_IN_TOTO[]; /* "application/vnd.in-toto+json" */

/* Appends "DSSEv1 SP len SP type SP len SP body". */
void kedge_dsse_pae(struct kedge_view type, struct kedge_view body, struct kedge_buf *out);

/* Appends the envelope on one line, one signature, keyid = hex SHA-256 of the raw public key. The payload
 * type needs no JSON escape (KEDGE_E_ARG); KEDGE_E_TOO_LONG beyond KEDGE_ENTRY_MAX bytes. */
KEDGE_NODISCARD int kedge_dsse_build(const char *type, struct kedge_view payload,
                                     const struct kedge_key_pair *pair, struct kedge_buf *ret_envelope);

/* The one spelling of kedge_dsse_build with an in-toto payload, one signature: decode(build(p)) == p,
 * everything else is KEDGE_E_FORMAT or KEDGE_E_TOO_LONG. ret_payload is appended to. Verifies nothing. */
struct kedge_dsse_entry {
    struct kedge_hash keyid;
    struct kedge_signature sig;
};
KEDGE_NODISCARD int kedge_dsse_decode(struct kedge_view envelope, struct kedge_buf *ret_payload,
                                      struct kedge_dsse_entry *ret_entry);
/* The same for 1 to KEDGE_DSSE_SIGNATURES_MAX signatures, strictly ascending by keyid. */
KEDGE_NODISCARD int kedge_dsse_decode_all(struct kedge_view envelope, struct kedge_buf *ret_payload,
                                          struct kedge_dsse_entry ret_entries[KEDGE_DSSE_SIGNATURES_MAX],
                                          uint32_t *ret_count);
/* Appends the envelope that kedge_dsse_decode_all takes apart so; KEDGE_E_TOO_LONG. */
KEDGE_NODISCARD int kedge_dsse_spell(struct kedge_view payload, const struct kedge_dsse_entry *entries,
                                     uint32_t count, struct kedge_buf *ret_envelope);
/* Appends that envelope with the pair's signature among the others, where its keyid belongs. KEDGE_E_EXISTS:
 * that key has signed; KEDGE_E_FULL; the errors of decoding. */
KEDGE_NODISCARD int kedge_dsse_add(struct kedge_view envelope, const struct kedge_key_pair *pair,
                                   struct kedge_buf *ret_envelope);
/* The signature of such an entry over its payload; KEDGE_E_VERIFY, also when keyid is not that of key. */
KEDGE_NODISCARD int kedge_dsse_entry_verify(const struct kedge_dsse_entry *entry, struct kedge_view payload,
                                            const struct kedge_public_key *key);

#endif
