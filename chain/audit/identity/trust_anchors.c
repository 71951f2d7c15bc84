/* Kinds of anchors bring their own part of the trust file (chain/anchor/kind.h): which key of the object
 * is theirs, how it is read and written. This file only joins them, so a new kind needs no change here. */
#include "chain/audit/identity/trust_anchors.h"

static const char *const required_key = "required";

/* "evm, tsa_ca, required", or with another word before the last. */
static void put_keys(struct kedge_buf *out, const char *before_last, const char *last)
{
    size_t count = 0, seen = 0;
    const struct kedge_anchor_kind *kind;
    for (size_t i = 0; (kind = kedge_anchor_kind_at(i)) != NULL; i++) {
        count += kind->trust_key != NULL;
    }
    for (size_t i = 0; (kind = kedge_anchor_kind_at(i)) != NULL; i++) {
        if (kind->trust_key) {
            kedge_buf_printf(out, "%s%s",
                             seen == 0           ? ""
                             : seen + 1 == count ? before_last
                                                 : ", ",
                             kind->trust_key);
            seen++;
        }
    }
    kedge_buf_put_str(out, last);
    kedge_buf_put_u8(out, 0);
}

static bool is_any_named(const struct kedge_trust_anchors *a)
{
    const struct kedge_anchor_kind *kind;
    for (size_t i = 0; (kind = kedge_anchor_kind_at(i)) != NULL; i++) {
        if (kind->is_named && kind->is_named(a)) {
            return true;
        }
    }
    return false;
}

/* "required" without anybody named could never be met, so it is refused when the file is read. */
int kedgei_trust_anchors_read(const json_t *value, struct kedge_trust_anchors *ret, struct kedge_diag *reterr)
{
    const char *keys[KEDGE_ANCHOR_KINDS_MAX + 2] = {NULL};
    const struct kedge_anchor_kind *kind;
    struct kedge_buf words KEDGE_CLEANUP(kedge_buf_deinit);
    size_t count = 0;
    kedge_buf_init(&words, 1024);
    if (!value) {
        return KEDGE_OK;
    }
    for (size_t i = 0; i < kedge_anchor_kind_count(); i++) {
        kind = kedge_anchor_kind_at(i);
        if (kind->trust_key) {
            keys[count++] = kind->trust_key;
        }
    }
    keys[count] = required_key;
    if (!json_is_object(value)) {
        put_keys(&words, ", ", ", required");
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "anchors: expected an object: %s",
                              words.err ? "" : (const char *)words.ptr);
    }
    const json_t *required = json_object_get(value, required_key);
    int err = kedgei_trust_check_keys(value, keys, "anchors", reterr);
    for (size_t i = 0; !err && (kind = kedge_anchor_kind_at(i)) != NULL; i++) {
        const json_t *of_kind = kind->trust_key ? json_object_get(value, kind->trust_key) : NULL;
        err = of_kind ? kind->trust_read(of_kind, ret, reterr) : KEDGE_OK;
    }
    if (!err && required && !json_is_boolean(required)) {
        err = kedgei_trust_bad(reterr, required_key, "true or false");
    }
    ret->required = json_is_true(required);
    if (!err && ret->required && !is_any_named(ret)) {
        put_keys(&words, " or ", " beside it: whose anchors count");
        err = kedgei_trust_bad(reterr, required_key, words.err ? "" : (const char *)words.ptr);
    }
    return err;
}
