/* Any bytes: no crash; what parses has consistent tokens, and its strings decode or are refused. */
#include "common/tensor/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct kedge_json_token tokens[4096];
    struct kedge_json doc;
    struct kedge_diag diag;
    char text[256];
    if (kedge_json_parse(kedge_view_of(data, size), tokens, 4096, &doc, &diag) != KEDGE_OK) {
        return 0;
    }
    KEDGE_ASSERT(doc.count > 0 && tokens[0].next == doc.count);
    for (uint32_t i = 0; i < doc.count; i++) {
        KEDGE_ASSERT(tokens[i].start + (uint64_t)tokens[i].len <= size);
        KEDGE_ASSERT(tokens[i].next > i && tokens[i].next <= doc.count);
        if (kedge_json_decode_string(&doc, i, text, sizeof text) == KEDGE_OK) {
            struct kedge_buf again; /* what was decoded can be written and read back */
            struct kedge_json_token one;
            struct kedge_json back;
            char same[256];
            kedge_buf_init(&again, 4096);
            kedge_json_put_string(&again, kedge_view_str(text));
            KEDGE_ASSERT(kedge_json_parse(kedge_buf_view(&again), &one, 1, &back, NULL) == KEDGE_OK);
            KEDGE_ASSERT(kedge_json_decode_string(&back, 0, same, sizeof same) == KEDGE_OK);
            KEDGE_ASSERT(kedge_view_eq(kedge_view_str(same), kedge_view_str(text)));
            kedge_buf_deinit(&again);
        }
    }
    return 0;
}
