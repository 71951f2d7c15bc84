/* One job's spec and rounds, asked of the coordinator. What it says is checked as far as it can be: the spec
 * by its digest, pages by going on. */
#include "cli/job/job_ask.h"

#include <string.h>

#include "common/base/try.h"
#include "crypto/hash.h"

int kedge_cli_job_spec_text(struct kedge_cli *c, const char *job, struct kedge_buf *ret, struct kedge_diag *d)
{
    json_auto_t *o = NULL;
    struct kedge_hash is, said;
    KEDGE_TRY(kedge_cli_admin(c, json_pack("{s:s,s:s}", "verb", "job.spec", "job", job), &o, d));
    const json_t *text = json_object_get(o, "spec");
    const struct kedge_view bytes = kedge_view_of(json_string_value(text), json_string_length(text));
    if (bytes.len == 0
        || kedge_hash_from_hex(kedge_view_str(kedge_cli_text(o, "digest")), &said) != KEDGE_OK) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "the coordinator's answer has no spec of job %s", job);
    }
    kedge_sha256(bytes, &is);
    if (!kedge_hash_eq(&is, &said)) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "the coordinator's spec of job %s has not the digest that it names", job);
    }
    kedge_buf_put(ret, bytes.ptr, bytes.len);
    return ret->err;
}

int kedge_cli_job_rounds(struct kedge_cli *c, const char *verb, const char *list, const char *job,
                         json_t **ret, struct kedge_diag *d)
{
    json_auto_t *whole = NULL;
    int64_t from = 0;
    for (;;) {
        json_auto_t *o = NULL;
        KEDGE_TRY(kedge_cli_admin(
            c, json_pack("{s:s,s:s,s:I}", "verb", verb, "job", job, "from_round", (json_int_t)from), &o, d));
        const json_t *next = json_object_get(o, "next_round");
        if (!whole) {
            whole = json_incref(o);
        } else {
            json_array_extend(json_object_get(whole, list), json_object_get(o, list));
        }
        if (!next) {
            break;
        }
        if (json_integer_value(next) <= from) {
            return kedge_diag_set(d, KEDGE_E_FORMAT, "the coordinator tells the same rounds again and again");
        }
        from = json_integer_value(next);
    }
    *ret = json_incref(whole);
    return KEDGE_OK;
}
