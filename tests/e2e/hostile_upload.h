/* Update files of the hostile sites, and the lies that pieces of them can tell. Failures are Check's. */
#ifndef KEDGE_TESTS_E2E_HOSTILE_UPLOAD_H
#define KEDGE_TESTS_E2E_HOSTILE_UPLOAD_H

#include "common/tensor/layout.h"
#include "common/wire/messages.h"
#include "crypto/hash.h"

struct hx_file {
    uint8_t bytes[1024];
    size_t len;
    struct kedge_hash digest;
};

/* A canonical file of one value everywhere; the tensors may be what the job does not want. */
void hx_make_file(const char *name, uint64_t rows, uint64_t columns, enum kedge_dtype dtype, int32_t value,
                  struct hx_file *ret);
/* An update for hx_alice's task that hardly changes the model, which it fetches: one unit, and only in the
 * weight that is the farthest from 0. */
void hx_make_mild_file(struct hx_file *ret);
/* A plain piece, which borrows the file; the whole file at once, which must be taken. From hx_alice, for her
 * task. */
struct kedge_msg hx_put_of(const struct hx_file *f, uint64_t offset, size_t len);
void hx_upload(const struct hx_file *f);

/* More bytes than the message itself announces: a lie that our own encoder does not tell. */
void hx_refuse_longer(const struct hx_file *good);
/* Pieces that are not packed as they should be are refused and leave the upload as it is; behind them the
 * packed piece is taken for the bytes it stands for. */
void hx_try_packed(void);
/* A blob is asked for from after its end, which is her mistake and no line in the coordinator's log. */
void hx_try_offsets(void);
/* hx_st, her update, with texts that are not what they seem to a reader. */
void hx_try_texts(void);
/* hx_alice's model comes as a difference to `before`, the model before it (NULL: there is none), and plain
 * for any other base; what she may not read does not come at all. */
void hx_try_since(const struct hx_file *foreign, const uint8_t *before);

#endif
