/* A checkpoint of the main chain under an RFC 3161 time stamp: the second kind of anchor. The token is about
 * the bytes of the signed note, so that anybody's tools check it (`openssl ts -verify`): that the authority
 * said that these entries existed at its time. Needs no network and no word of the one who keeps it. Pure. */
#ifndef KEDGE_CHAIN_ANCHOR_STAMP_H
#define KEDGE_CHAIN_ANCHOR_STAMP_H

#include "chain/log/note.h"
#include "common/base/diag.h"
#include "crypto/timestamp.h"

struct kedge_stamp {
    uint64_t size; /* entries of the log that the checkpoint is of */
    struct kedge_hash root;
    struct kedge_timestamp token;
};

/* note: a signed checkpoint; reply: an authority's answer over its bytes. origin (ptr NULL: any) and log
 * (NULL: not checked) say whose checkpoint it must be; ca_pem are the certificates under which the token must
 * verify, len 0: none, then the token only claims what it says. KEDGE_E_FORMAT: one of them is no such thing;
 * KEDGE_E_VERIFY, _KEY (of ca_pem) with the reason. */
KEDGE_NODISCARD int kedge_stamp_check(struct kedge_view note, struct kedge_view reply,
                                      struct kedge_view origin, const struct kedge_vkey *log,
                                      struct kedge_view ca_pem, struct kedge_stamp *ret,
                                      struct kedge_diag *reterr);

#endif
