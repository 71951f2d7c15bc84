/* What a task may use before anything was measured of it: how long it may take, by the files of its data, its
 * model and how often it goes through them, times what the device draws meanwhile. Both are said too high
 * rather than too low (a slow processor, the shortest rows that a file can have), for what is reserved is
 * given back when the task ends, and grows while it runs where it was too little. */
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "client/daemon/energy/energy_impl.h"
#include "common/base/percent.h"

static const double flops_per_thread = 0.5e9; /* a core of a small board, which most devices exceed */
static const double bytes_per_s = 10e6;       /* text is read, and numbers are made of it */
static const double step_s = 50e-6;           /* beside the arithmetic of a step */
static const double start_s = 1,
                    own_start_s = 15; /* of the built-in trainer; of one that is an interpreter */
static const double reuse =
    16; /* how often an unknown model uses each weight for a sample, as convolutions */
static const double backward = 3; /* forward and backward pass, in forward passes */
static const double device_w = 15, thread_w = 10, gpu_w = 300, headroom = 1.5;
static const double unknown_bytes = 1e6, unknown_width = 64;

/* Multiplications of one sample's forward pass. */
static double products_of(const struct kedge_job_spec *spec, uint64_t values)
{
    struct kedge_model_shape shapes[KEDGE_LAYERS_MAX + 1];
    double sum = 0;
    if (spec->is_external) {
        return reuse * (double)values;
    }
    kedge_model_shapes(&spec->model, shapes);
    for (uint32_t i = 0; i < spec->model.count; i++) {
        const struct kedge_layer *l = &spec->model.layers[i];
        const double out = (double)kedge_model_shape_width(&shapes[i + 1]), in = l->in;
        if (l->type == KEDGE_LAYER_DENSE) {
            sum += in * l->out;
        } else if (l->type == KEDGE_LAYER_CONV2D) {
            sum += out * in * l->kernel * l->kernel;
        } else if (l->type == KEDGE_LAYER_LSTM) {
            sum += 4 * (double)shapes[i].dims[0] * l->out * (in + l->out);
        } else {
            sum += out * (l->kernel > 0 ? l->kernel * l->kernel : 4);
        }
    }
    return sum;
}

/* Bytes of the files that a source of the binding names. */
static double bytes_of(const struct kedge_client_work *w, const json_t *source)
{
    static const char *const keys[] = {"path", "images"};
    double sum = 0;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const char *name = json_string_value(json_object_get(source, keys[i]));
        char path[KEDGE_PATH_MAX];
        struct stat st;
        if (name && kedge_path_join(path, name[0] == '/' ? "" : w->h->dir, name) == KEDGE_OK
            && stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
            sum += (double)st.st_size;
        }
    }
    return sum;
}

/* As many as the file can hold: a cell of a CSV has two characters, a value of the others one byte. */
static double samples_of(const json_t *source, double bytes, double width)
{
    const char *format = json_string_value(json_object_get(source, "format"));
    const json_int_t step = json_integer_value(json_object_get(source, "step"));
    if (format && strcmp(format, "text") == 0) {
        return bytes / (step > 0 ? (double)step : 1);
    }
    return format && strcmp(format, "csv") == 0 ? bytes / (2 * (width + 1)) : bytes / width;
}

double kedgei_energy_reading_s(double bytes)
{
    return start_s + bytes / bytes_per_s;
}

static double seconds_of(const struct kedge_client_work *w, const struct kedge_site_task *t)
{
    const struct kedge_job_spec *spec = w->spec;
    const json_t *source = json_object_get(json_object_get(w->policy->data, spec->data), "train");
    const double width = spec->is_external ? unknown_width : kedge_model_inputs(&spec->model);
    double bytes = bytes_of(w, source);
    bytes = bytes > 0 ? bytes : unknown_bytes;
    const double samples = fmax(1, samples_of(source, bytes, width));
    const double tries = 1 + t->evaluate_base + t->choice_count; /* forward passes beside the training */
    double trained = samples * spec->local_epochs;
    trained *= t->percent > 0 ? (double)t->percent / KEDGE_PERCENT_ALL : 1;
    if (t->kind == KEDGE_SITE_EVALUATE) {
        trained = 0;
    } else if (t->kind == KEDGE_SITE_PRETRAIN && spec->pretrain_steps > 0) {
        trained = (double)spec->pretrain_steps * spec->batch;
    }
    const double least = fmax(1, spec->batch_auto ? spec->batch_least : spec->batch);
    const double products = products_of(spec, w->whole.values_count) * (backward * trained + samples * tries);
    return (spec->is_external ? own_start_s : 0) + kedgei_energy_reading_s(bytes) + trained / least * step_s
           + 2 * products / (flops_per_thread * kedge_policy_threads(w->policy));
}

double kedgei_energy_assumed_w(const struct kedge_client_energy *e, const struct kedge_site_policy *p)
{
    double most = 0;
    if (p->energy.max_w > 0) {
        return p->energy.max_w;
    }
    if (e->seen_w > 0) {
        return headroom * e->seen_w;
    }
    for (uint32_t i = 0; i < e->meters.count; i++) { /* of a battery no more is known than what cannot be */
        most += e->meters.meters[i].counts ? e->meters.meters[i].power_max_w : 0;
    }
    bool gpu = p->device != KEDGE_POLICY_CPU;
    for (uint32_t i = 0; i < p->trainers.count; i++) {
        gpu = gpu || p->trainers.list[i].gpu;
    }
    const double assumed = device_w + thread_w * p->threads + (gpu ? gpu_w : 0);
    return most > 0 ? fmin(most, assumed) : assumed;
}

double kedgei_energy_first(const struct kedge_client_work *w, const struct kedge_site_task *t)
{
    double longest = (double)w->policy->train_seconds_max;
    longest = t->remaining_ns > 0 ? fmin(longest, (double)t->remaining_ns / 1e9) : longest;
    return kedgei_energy_assumed_w(w->h->energy, w->policy) * fmin(longest, seconds_of(w, t));
}
