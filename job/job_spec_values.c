/* Values that several parts of the parser read: shares, and words of a list. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "aggregation/share_cap.h"
#include "job/job_spec.h"
#include "job/job_spec_impl.h"

int kedgei_spec_bad(struct kedge_diag *d, const char *key, const char *expected)
{
    return kedge_diag_set(d, KEDGE_E_FORMAT, "job spec: \"%s\": expected %s", key, expected);
}

/* The text of a share that is written as a number: with 6 decimal places, where it has no more than those.
 * Shares are whole millionths in every computation, so a number that is none is refused instead of rounded:
 * the spec would say another share than the one in force. */
static const char *share_text(const json_t *v, char out[KEDGE_REAL_MAX])
{
    double x = json_number_value(v);
    if (!json_is_number(v) || !(x >= 0 && x <= 1)) {
        return json_string_value(v);
    }
    double back;
    snprintf(out, KEDGE_REAL_MAX, "%.6f", x);
    return kedge_real_decode(kedge_view_str(out), &back) == KEDGE_OK && back == x ? out : NULL;
}

int kedgei_spec_share(const json_t *v, const char *key, uint64_t *ret, struct kedge_diag *d)
{
    char number[KEDGE_REAL_MAX];
    const char *text = share_text(v, number);
    size_t len = text == number ? strlen(number) : text ? json_string_length(v) : 0, digits = 0;
    uint64_t share = 0;
    bool fine = len >= 1 && len <= 8 && text[len - 1] != '.' && (text[0] == '0' || text[0] == '1');
    for (size_t i = 0; fine && i < len; i++) {
        fine = i == 1 ? text[i] == '.' : text[i] >= '0' && text[i] <= '9';
        if (fine && i != 1) {
            share = share * 10 + (uint64_t)(text[i] - '0');
            digits++;
        }
    }
    for (; fine && digits < 7; digits++) {
        share *= 10;
    }
    if (!fine || share < 1 || share > KEDGE_SHARE_ONE) {
        return kedgei_spec_bad(d, key, "a share above 0, at most 1, with at most 6 decimal places, like 0.5");
    }
    *ret = share;
    return KEDGE_OK;
}

int kedgei_spec_word(const json_t *v, const char *key, const char *const *words, uint32_t *ret,
                     struct kedge_diag *d)
{
    const char *text = json_string_value(v);
    char list[200] = "";
    for (uint32_t i = 0; words[i]; i++) {
        if (text && strcmp(text, words[i]) == 0) {
            *ret = i;
            return KEDGE_OK;
        }
        size_t len = strlen(list);
        snprintf(list + len, sizeof list - len, "%s\"%s\"",
                 i == 0         ? ""
                 : words[i + 1] ? ", "
                                : " or ",
                 words[i]);
    }
    return kedgei_spec_bad(d, key, list);
}
