/* Statements: what is accepted is in range, so it can be written again, and reads back as the same. A blank
 * in front changes nothing but which of the two readers has the say. */
#include <string.h>

#include "chain/statement/statement.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void encode(const struct kedge_statement *st, struct kedge_buf *b)
{
    kedge_buf_init(b, KEDGE_ENTRY_MAX);
    int err = kedge_statement_encode(st, b, NULL);
    KEDGE_ASSERT(err == KEDGE_OK);
}

static void check_other_reader(const uint8_t *data, size_t len, int err, const struct kedge_statement *st)
{
    static struct kedge_statement other;
    struct kedge_buf spaced KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&spaced, 2 * KEDGE_ENTRY_MAX);
    kedge_buf_put_u8(&spaced, ' ');
    kedge_buf_put(&spaced, data, len);
    if (len >= KEDGE_ENTRY_MAX || spaced.err) {
        return;
    }
    KEDGE_ASSERT((kedge_statement_decode(kedge_buf_view(&spaced), &other, NULL) == KEDGE_OK)
                 == (err == KEDGE_OK));
    KEDGE_ASSERT(err != KEDGE_OK || memcmp(&other, st, sizeof other) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct kedge_statement st, again;
    struct kedge_diag diag = {0};
    int err = kedge_statement_decode(kedge_view_of(data, len), &st, &diag);
    check_other_reader(data, len, err, &st);
    if (err != KEDGE_OK) {
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
