/* c2sp.org/tlog-proof: an inclusion proof together with the checkpoint that it leads to, so that an entry
 * can be checked by somebody who has the log's key and nothing else. */
#include "chain/log/proof.h"

#include <inttypes.h>

#include "chain/log/lines.h"
#include "common/base/text.h"
#include "common/base/try.h"

static const char header[] = "c2sp.org/tlog-proof@v1";

void kedge_proof_encode(const struct kedge_proof *proof, struct kedge_buf *out)
{
    kedge_buf_put_str(out, header);
    if (proof->extra.ptr) {
        kedge_buf_put_str(out, "\nextra ");
        kedge_buf_put(out, proof->extra.ptr, proof->extra.len);
    }
    kedge_buf_printf(out, "\nindex %" PRIu64 "\n", proof->index);
    for (uint32_t i = 0; i < proof->path.count; i++) {
        kedge_base64_put(out, kedge_view_of(proof->path.hashes[i].b, KEDGE_HASH_LEN));
        kedge_buf_put_u8(out, '\n');
    }
    kedge_buf_put_u8(out, '\n');
    kedge_buf_put(out, proof->note.ptr, proof->note.len);
}

/* c2sp.org/tlog-proof: extra data, index, path, then the checkpoint as it was signed. The order is fixed and
 * nothing may come twice, so one proof has one text. */
int kedge_proof_decode(struct kedge_view text, struct kedge_proof *ret_proof)
{
    if (text.len > KEDGE_PROOF_TEXT_MAX) {
        return KEDGE_E_TOO_LONG;
    }
    struct kedge_view rest = text;
    struct kedge_view line;
    if (!kedgei_take_line(&rest, &line) || !kedge_view_eq(line, kedge_view_str(header))
        || !kedgei_take_line(&rest, &line)) {
        return KEDGE_E_FORMAT;
    }
    struct kedge_proof p;
    p.extra = kedge_view_of(NULL, 0);
    if (kedgei_take_prefix(&line, "extra ")) {
        struct kedge_buf scratch KEDGE_CLEANUP(kedge_buf_deinit);
        kedge_buf_init(&scratch, KEDGE_PROOF_TEXT_MAX);
        KEDGE_TRY(line.len > 0 ? kedge_base64_decode(line, false, &scratch) : KEDGE_E_FORMAT);
        p.extra = line;
        if (!kedgei_take_line(&rest, &line)) {
            return KEDGE_E_FORMAT;
        }
    }
    if (!kedgei_take_prefix(&line, "index ")
        || kedge_decimal_decode(line, KEDGE_TREE_SIZE_MAX, &p.index) != KEDGE_OK) {
        return KEDGE_E_FORMAT;
    }
    KEDGE_TRY(kedgei_take_path(&rest, &p.path));
    if (rest.len == 0) {
        return KEDGE_E_FORMAT;
    }
    if (rest.len > KEDGE_NOTE_MAX) {
        return KEDGE_E_TOO_LONG;
    }
    p.note = rest;
    *ret_proof = p;
    return KEDGE_OK;
}

/* First the checkpoint's signature, then the path to its root: a proof alone says nothing of a log. */
int kedge_proof_verify(const struct kedge_proof *proof, const struct kedge_hash *leaf,
                       struct kedge_view expected_origin, const struct kedge_vkey *known, size_t known_count,
                       struct kedge_checkpoint *ret_checkpoint)
{
    struct kedge_checkpoint c;
    KEDGE_TRY(kedge_checkpoint_open(proof->note, expected_origin, known, known_count, &c, NULL));
    int err =
        kedge_inclusion_verify(proof->index, c.size, leaf, proof->path.hashes, proof->path.count, &c.root);
    if (!err && ret_checkpoint) {
        *ret_checkpoint = c;
    }
    return err;
}
