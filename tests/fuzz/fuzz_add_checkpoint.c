/* Answers of a witness: none makes a cosignature of a key that nobody has, or states the size that it was
 * asked from. */
#include "chain/log/add_checkpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Of a key that nobody has, nothing is a cosignature, and a size is one that was not asked
 * from. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct kedge_view bytes = kedge_view_of(data, len);
    static const unsigned statuses[] = {200, 409, 404};
    static const char note[] = "x\n1\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\n\u2014 x AAAAAAA=\n";
    struct kedge_seed seed = {{9}};
    struct kedge_key_pair pair;
    struct kedge_vkey vkey;
    struct kedge_witness_asked asked = {.note = kedge_view_str(note), .size = 1, .witness = &vkey};
    kedge_key_from_seed(&seed, &pair);
    KEDGE_ASSERT(kedge_vkey_make(kedge_view_str("w"), KEDGE_KEY_COSIGNATURE, &pair.public, &vkey)
                 == KEDGE_OK);
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        struct kedge_buf cosigned KEDGE_CLEANUP(kedge_buf_deinit);
        struct kedge_witness_answer a;
        kedge_buf_init(&cosigned, KEDGE_NOTE_MAX);
        if (kedge_add_checkpoint_judge(&asked, statuses[i], bytes, &cosigned, &a) == KEDGE_OK) {
            KEDGE_ASSERT(a.outcome != KEDGE_WITNESS_COSIGNED && cosigned.len == 0 && a.reason[0] != '\0');
            KEDGE_ASSERT(a.outcome == KEDGE_WITNESS_REFUSED || a.size != asked.old_size);
        }
    }
    return 0;
}
