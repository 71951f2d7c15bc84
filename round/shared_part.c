/* What travels of a model, and the whole made of it again (jobs over a frozen base, heads that sites keep).
 * Bytes are copied and never computed with, so the frozen part of the result is that of the base bit for
 * bit. */
#include "round/shared_part.h"

#include <math.h>

#include "common/base/try.h"
#include "round/compute_impl.h"

/* One model's file, and where its values are. */
struct model_file {
    struct kedgei_tensors file;
    const float *values;
};

/* A base may come from outside of Kedge, so its values are looked at, too, and not only its form. */
static int open_model(const struct kedge_layout *layout, const struct kedge_blob_at *at,
                      struct model_file *ret, struct kedge_diag *d)
{
    KEDGE_TRY(kedgei_tensors_open(layout, KEDGE_DTYPE_F32, at, sizeof *at, 1, &ret->file, d));
    ret->values = ret->file.values[0];
    int err =
        ret->values ? KEDGE_OK : kedge_diag_set(d, KEDGE_E_FORMAT, "%s: expected a plain model", at->path);
    for (uint64_t i = 0; i < layout->values_count && !err; i++) {
        if (!isfinite(ret->values[i])) {
            err = kedge_diag_set(d, KEDGE_E_NOT_FINITE, "%s: value %llu is not finite", at->path,
                                 (unsigned long long)i);
        }
    }
    if (err) {
        kedgei_tensors_close(&ret->file);
    }
    return err;
}

/* The tensors of `layout`: all of the whole model or those that are shared. What is shared comes from
 * `shared`, one tensor after the other, or where that is NULL from its place in the whole. */
static int write_tensors(const struct kedge_job_spec *spec, const struct kedge_layout *whole,
                         const struct kedge_layout *layout, const float *values, const float *shared,
                         struct kedge_sink sink)
{
    KEDGE_TRY(kedgei_write_header(layout, KEDGE_DTYPE_F32, sink));
    for (uint32_t i = 0; i < whole->count; i++) {
        const struct kedge_tensor *t = &whole->tensors[i];
        const bool travels = kedge_part_has(&spec->share, whole, i);
        const bool is_apart = travels && shared;
        const float *at = is_apart ? shared : values + t->offset / sizeof *values;
        if (travels || layout == whole) {
            KEDGE_TRY(sink.write(sink.arg, kedge_view_of(at, (size_t)t->count * sizeof *at)));
        }
        if (is_apart) {
            shared += t->count;
        }
    }
    return KEDGE_OK;
}

struct layouts {
    struct kedge_layout whole, shared;
};

static int layouts_open(const struct kedge_job_spec *spec, struct layouts *ret, struct kedge_diag *d)
{
    KEDGE_TRY(kedge_job_spec_whole_layout(spec, &ret->whole, d));
    int err = kedge_job_spec_layout(spec, &ret->shared, d);
    if (err) {
        kedge_layout_deinit(&ret->whole);
    }
    return err;
}

static void layouts_close(struct layouts *l)
{
    kedge_layout_deinit(&l->whole);
    kedge_layout_deinit(&l->shared);
}

int kedge_compute_shared_part(const struct kedge_job_spec *spec, const struct kedge_blob_at *whole,
                              struct kedge_sink sink, struct kedge_diag *reterr)
{
    struct layouts l;
    struct model_file from;
    KEDGE_TRY(layouts_open(spec, &l, reterr));
    int err = open_model(&l.whole, whole, &from, reterr);
    if (!err) {
        err = write_tensors(spec, &l.whole, &l.shared, from.values, NULL, sink);
        kedgei_tensors_close(&from.file);
    }
    layouts_close(&l);
    return err;
}

static int join(const struct kedge_job_spec *spec, const struct layouts *l, const struct kedge_blob_at *base,
                const struct kedge_blob_at *model, struct kedge_sink sink, struct kedge_diag *d)
{
    struct model_file from, part;
    KEDGE_TRY(open_model(&l->whole, base, &from, d));
    int err = open_model(&l->shared, model, &part, d);
    if (!err) {
        err = write_tensors(spec, &l->whole, &l->whole, from.values, part.values, sink);
        kedgei_tensors_close(&part.file);
    }
    kedgei_tensors_close(&from.file);
    return err;
}

int kedge_compute_whole(const struct kedge_job_spec *spec, const struct kedge_blob_at *base,
                        const struct kedge_blob_at *model, struct kedge_sink sink, struct kedge_diag *reterr)
{
    struct layouts l;
    KEDGE_TRY(layouts_open(spec, &l, reterr));
    int err = join(spec, &l, base, model, sink, reterr);
    layouts_close(&l);
    return err;
}
