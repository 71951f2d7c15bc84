/* Input lists: one encoding. */
#include "chain/statement/input_list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct kedge_input_list list;
    struct kedge_view blob = kedge_view_of(data, len);
    if (kedge_input_list_decode(blob, &list) != KEDGE_OK) {
        return 0;
    }
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, KEDGE_INPUT_LIST_MAX + KEDGE_INPUT_ROW_TEXT_MAX);
    KEDGE_ASSERT(kedge_input_list_encode(list.rows, list.count, &b) == KEDGE_OK);
    KEDGE_ASSERT(kedge_view_eq(kedge_buf_view(&b), blob));
    kedge_input_list_deinit(&list);
    return 0;
}
