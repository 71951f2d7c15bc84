/* The durable state of the anchoring machine and evidence files, from anywhere. A first byte of 0 means a
 * state, whose SHA-256 is put right so that the reader behind it is reached. */
#include <string.h>

#include "chain/anchor/evm_anchor.h"
#include "chain/anchor/evm_evidence.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const struct kedge_evm_config config = {.chain_id = 1,
                                               .interval_ms = 1,
                                               .poll_ms = 1,
                                               .resend_ms = 1,
                                               .replace_ms = 1,
                                               .gas = 1,
                                               .max_fee = 1,
                                               .daily_budget = 1};

static void try_state(struct kedge_view bytes)
{
    static struct kedge_evm_anchor a;
    struct kedge_buf whole KEDGE_CLEANUP(kedge_buf_deinit), again KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_hash sum;
    size_t own;
    kedge_buf_init(&whole, KEDGE_EVM_STATE_MAX);
    kedge_buf_init(&again, KEDGE_EVM_STATE_MAX);
    KEDGE_ASSERT(kedge_evm_anchor_init(&a, &config, NULL) == KEDGE_OK);
    kedge_evm_anchor_save(&a, &whole);
    own = 19 + 8 + 20 + 20 + 32; /* title and owner stay */
    whole.len = own;
    kedge_buf_put(&whole, bytes.ptr, bytes.len);
    kedge_sha256(kedge_buf_view(&whole), &sum);
    kedge_buf_put(&whole, sum.b, sizeof sum.b);
    if (!whole.err && kedge_evm_anchor_load(&a, kedge_buf_view(&whole), NULL) == KEDGE_OK) {
        kedge_evm_anchor_save(&a, &again);
        KEDGE_ASSERT(again.err == KEDGE_OK);
        KEDGE_ASSERT(kedge_view_eq(kedge_buf_view(&again), kedge_buf_view(&whole)));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct kedge_evm_evidence e;
    if (len > 0 && data[0] == 0) {
        try_state(kedge_view_of(data + 1, len - 1));
        return 0;
    }
    (void)!kedge_evm_evidence_read(kedge_view_of(data, len), &e, NULL);
    kedge_evm_evidence_deinit(&e);
    return 0;
}
