/* Statements: what is accepted is in range, so it can be written again, and reads back as the same. */
#include "chain/statement.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void encode(const struct kedge_statement *st, struct kedge_buf *b)
{
    kedge_buf_init(b, KEDGE_ENTRY_MAX);
    int err = kedge_statement_encode(st, b, NULL);
    KEDGE_ASSERT(err == KEDGE_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct kedge_statement st, again;
    struct kedge_diag diag = {0};
    if (kedge_statement_decode(kedge_view_of(data, len), &st, &diag) != KEDGE_OK) {
        KEDGE_ASSERT(diag.text[0] != '\0');
        return 0;
    }
    struct kedge_buf a KEDGE_CLEANUP(kedge_buf_deinit), b KEDGE_CLEANUP(kedge_buf_deinit);
    encode(&st, &a);
    KEDGE_ASSERT(kedge_statement_decode(kedge_buf_view(&a), &again, NULL) == KEDGE_OK);
    KEDGE_ASSERT(again.kind == st.kind && kedge_hash_eq(&again.subject, &st.subject));
    encode(&again, &b);
    KEDGE_ASSERT(kedge_view_eq(kedge_buf_view(&a), kedge_buf_view(&b)));
    return 0;
}
