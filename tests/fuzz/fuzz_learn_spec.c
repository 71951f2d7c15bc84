/* Any bytes as the SPEC.json of a learning simulation: an error that names something, or a spec that is
 * written and read back to the same bytes. */
#include <string.h>

#include "sim/learn/spec/spec_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void put(const struct kedge_learn_spec *spec, struct kedge_buf *out)
{
    kedge_buf_init(out, 1 << 20);
    kedge_learn_spec_put(spec, out);
    KEDGE_ASSERT(out->err == KEDGE_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const char *const variants[] = {NULL, "fedavg", "a"};
    struct kedge_view text = kedge_view_of(data, len);
    (void)kedge_learn_spec_is(text);
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        struct kedge_learn_spec spec, again;
        struct kedge_diag d = {.text = ""};
        struct kedge_buf one, two;
        if (kedge_learn_spec_parse(text, variants[i], &spec, &d) != KEDGE_OK) {
            KEDGE_ASSERT(d.text[0] != '\0');
            continue;
        }
        put(&spec, &one);
        if (one.len <= KEDGE_LEARN_SPEC_TEXT_MAX) {
            KEDGE_ASSERT(kedge_learn_spec_parse(kedge_buf_view(&one), NULL, &again, &d) == KEDGE_OK);
            put(&again, &two);
            KEDGE_ASSERT(kedge_view_eq(kedge_buf_view(&one), kedge_buf_view(&two)));
            kedge_buf_deinit(&two);
        }
        (void)kedge_learn_spec_check(&spec, &d);
        kedge_buf_deinit(&one);
    }
    return 0;
}
