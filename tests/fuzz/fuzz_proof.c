/* Receipts and main-chain entries: what is accepted comes out again as the same bytes. */
#include "chain/log/proof.h"
#include "chain/statement/main_entry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void try_main_entry(struct kedge_view bytes)
{
    struct kedge_main_entry e;
    if (kedge_main_entry_decode(bytes, &e) == KEDGE_OK && e.kind == KEDGE_MAIN_CHECKPOINT) {
        struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
        kedge_buf_init(&b, KEDGE_ENTRY_MAX);
        KEDGE_ASSERT(kedge_main_entry_encode(e.salt, e.body, &b) == KEDGE_OK);
        KEDGE_ASSERT(kedge_view_eq(kedge_buf_view(&b), bytes));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct kedge_view text = kedge_view_of(data, len);
    try_main_entry(text);
    static struct kedge_proof proof;
    if (kedge_proof_decode(text, &proof) != KEDGE_OK) {
        return 0;
    }
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, len + 64);
    kedge_proof_encode(&proof, &b);
    KEDGE_ASSERT(kedge_view_eq(kedge_buf_view(&b), text));
    struct kedge_hash leaf = {{0}};
    KEDGE_ASSERT(kedge_proof_verify(&proof, &leaf, kedge_view_of(NULL, 0), NULL, 0, NULL) != KEDGE_OK);
    return 0;
}
