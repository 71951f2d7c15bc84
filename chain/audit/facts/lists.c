/* Input lists from the blobs of ledgers. */
#include "chain/audit/record.h"

/* A list is a blob that the aggregate names by digest: read within the bound, hashed, then decoded in its
 * one spelling. Nothing that does not have its digest is ever judged as a list. */
bool kedgei_list_read(const struct kedgei_audit *a, const struct kedgei_log *log,
                      const struct kedge_hash *digest, uint64_t index, struct kedge_input_list *ret,
                      struct kedgei_findings *f)
{
    struct kedge_buf text;
    struct kedge_diag d = {.err = KEDGE_OK};
    kedge_buf_init(&text, KEDGE_INPUT_LIST_MAX);
    int err = kedge_blobs_read(log->blobs, digest, &text, &d);
    if (!err) {
        err = kedge_input_list_decode(kedge_buf_view(&text), ret);
    }
    kedge_buf_deinit(&text);
    if (err == KEDGE_E_NOMEM) {
        f->nomem = true;
    } else if (err && !(err == KEDGE_E_NOT_FOUND && KEDGEI_SKIP(a, lists))) {
        kedgei_error(f, KEDGE_AUDIT_LIST, &a->main, index, "input list of \"%s\": %s", log->name,
                     err == KEDGE_E_NOT_FOUND ? "its blob is missing" : kedge_strerror(err));
    }
    return !err;
}
