/* Fork evidence: what is accepted comes out again as the same bytes, and unsigned notes prove nothing. */
#include "chain/log/fork_evidence.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct kedge_fork_evidence e;
    struct kedge_view text = kedge_view_of(data, len);
    if (kedge_fork_evidence_decode(text, &e) != KEDGE_OK) {
        return 0;
    }
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, KEDGE_FORK_EVIDENCE_MAX);
    KEDGE_ASSERT(kedge_fork_evidence_encode(e.old_note, e.new_note, &e.path, &b) == KEDGE_OK);
    KEDGE_ASSERT(kedge_view_eq(kedge_buf_view(&b), text));
    struct kedge_vkey key;
    struct kedge_seed seed = {{7}};
    struct kedge_key_pair pair;
    struct kedge_diag diag = {0};
    kedge_key_from_seed(&seed, &pair);
    KEDGE_ASSERT(kedge_vkey_make(kedge_view_str("nobody"), KEDGE_KEY_ED25519, &pair.public, &key)
                 == KEDGE_OK);
    KEDGE_ASSERT(kedge_fork_evidence_verify(&e, &key, 1, NULL, &diag) == KEDGE_E_VERIFY);
    KEDGE_ASSERT(diag.text[0] != '\0');
    kedge_buf_clear(&b);
    kedge_fork_evidence_describe(&e, &e.new_checkpoint.root, &b);
    KEDGE_ASSERT(b.err == KEDGE_OK);
    return 0;
}
