/* An update checked while it comes, piece by piece: what kedge_compute_check_update says of the whole file,
 * without reading (and decrypting) it once more. One thread at a time. */
#ifndef KEDGE_ROUND_UPDATE_STREAM_H
#define KEDGE_ROUND_UPDATE_STREAM_H

#include "common/tensor/layout.h"
#include "crypto/hash.h"

struct kedge_update_stream;

/* `of` names what it is checked for (a job's spec). KEDGE_E_NOMEM, KEDGE_E_TOO_LONG. */
KEDGE_NODISCARD int kedge_update_stream_open(const struct kedge_layout *layout, int32_t limit,
                                             const struct kedge_hash *of, struct kedge_update_stream **ret);
void kedge_update_stream_close(struct kedge_update_stream *s); /* NULL is fine */
/* The next bytes, which begin at offset; bytes from elsewhere make it say no. */
void kedge_update_stream_feed(struct kedge_update_stream *s, uint64_t offset, struct kedge_view bytes);
/* Every byte came, and they are an update that kedge_compute_check_update accepts, for `of`. False: look at
 * the file. NULL: false. */
bool kedge_update_stream_accepts(const struct kedge_update_stream *s, const struct kedge_hash *of);

#endif
