#include "sim/learn/report/report_sites.h"

#include <string.h>

#include "common/base/text.h"
#include "common/base/try.h"
#include "common/tensor/safetensors.h"
#include "round/state.h"
#include "sim/learn/report/report.h"

void kedge_learn_put_csv_text(struct kedge_buf *out, const char *text)
{
    if (!strpbrk(text, ",\"")) {
        kedge_buf_put_str(out, text);
        return;
    }
    kedge_buf_put_u8(out, '"');
    for (; *text; text++) {
        kedge_buf_put_str(out, *text == '"' ? "\"" : "");
        kedge_buf_put_u8(out, (uint8_t)*text);
    }
    kedge_buf_put_u8(out, '"');
}

void kedge_learn_put_sites(const struct kedge_learn_view *v, struct kedge_buf *out)
{
    kedge_buf_put_str(out, "site,client,tenant,group,train,test\n");
    for (uint32_t i = 0; i < v->sites; i++) {
        kedge_buf_printf(out, "%u,", i);
        kedge_learn_put_csv_text(out, v->names ? v->names[i] : "");
        kedge_buf_printf(out, ",%u,", v->tenant[i]);
        if (v->truth) {
            kedge_buf_printf(out, "%u", v->truth[i]);
        }
        kedge_buf_printf(out, ",%u,%u\n", v->train[i], v->test[i]);
    }
}

/* Texts of accuracies. Sites have few test samples, so a thousand of them have few shares of right answers
 * between them, and the digits of such a share are the dearest part of its text. */
struct known_real {
    uint64_t bits; /* of the number: zeros of both signs are two texts */
    size_t len;    /* 0: none */
    char text[KEDGE_REAL_MAX];
};
enum { KNOWN_REALS_BITS = 8 };

static void put_known_real(struct known_real *known, double v, struct kedge_buf *out)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    struct known_real *k = &known[bits * 0x9e3779b97f4a7c15 >> (64 - KNOWN_REALS_BITS)];
    if (k->len == 0 || k->bits != bits) {
        const size_t from = out->len;
        kedge_learn_put_real(out, v);
        if (!out->err) {
            k->bits = bits;
            k->len = out->len - from;
            memcpy(k->text, out->ptr + from, k->len);
        }
        return;
    }
    kedge_buf_put(out, k->text, k->len);
}

void kedge_learn_put_sites_line(const struct kedge_learn_view *v, struct kedge_buf *out)
{
    struct known_real known[1 << KNOWN_REALS_BITS] = {{.len = 0}};
    kedge_buf_printf(out, "{\"round\":%u,\"group\":[", v->round);
    for (uint32_t i = 0; i < v->sites; i++) {
        kedge_buf_put_str(out, i ? "," : "");
        if (v->group[i] == KEDGE_ROUND_NONE) {
            kedge_buf_put_str(out, "null");
        } else {
            kedge_buf_printf(out, "%u", v->group[i]);
        }
    }
    for (uint32_t i = 0; v->accuracy && i < v->sites; i++) {
        kedge_buf_put_str(out, i ? "," : "],\"accuracy\":[");
        put_known_real(known, v->accuracy[i], out);
    }
    kedge_buf_put_str(out, "]}\n");
}

int kedge_learn_put_model(const struct kedge_model_spec *model, const float *values, struct kedge_buf *out,
                          struct kedge_diag *reterr)
{
    struct kedge_layout layout;
    KEDGE_TRY(kedge_model_layout(model, &layout, reterr));
    int err = kedge_safetensors_header(&layout, KEDGE_DTYPE_F32, out);
    for (uint64_t i = 0; i < layout.values_count && !err; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        const uint8_t le[] = {(uint8_t)bits, (uint8_t)(bits >> 8), (uint8_t)(bits >> 16),
                              (uint8_t)(bits >> 24)};
        kedge_buf_put(out, le, sizeof le);
    }
    kedge_layout_deinit(&layout);
    err = err ? err : out->err;
    return err ? kedge_diag_set(reterr, err, "a model cannot be written: %s", kedge_strerror(err)) : KEDGE_OK;
}
