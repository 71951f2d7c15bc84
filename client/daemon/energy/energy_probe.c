/* How noisy gradients are, by any trainer that speaks the contract: single steps at two batches from the same
 * model, each with other samples. base − out is the learning rate times the gradient.
 *
 * Two batch sizes suffice because the expected square of a mean gradient is |G|² + S / batch (McCandlish et
 * al. 2018, appendix A.1): two equations for the two unknowns, which kedge_noise_saw solves. Strategies'
 * extra terms are taken out of the request, as they would add to the step what is no gradient. */
#include <math.h>

#include "client/daemon/energy/energy.h"
#include "client/daemon/trainer/trainer.h"
#include "common/base/os/log.h"
#include "common/base/try.h"
#include "common/tensor/safetensors.h"

enum { PAIRS = 2 };

static int open_values(struct kedge_client_work *w, const char *path, struct kedge_map *map,
                       const float **ret, struct kedge_diag *d)
{
    struct kedge_layout got;
    uint64_t start;
    KEDGE_TRY(kedge_map_open(path, map, d));
    int err = kedge_safetensors_read(kedge_view_of(map->ptr, map->len), map->len, KEDGE_SAFETENSORS_CANONICAL,
                                     &got, &start, d);
    if (!err) {
        err = kedge_layout_check_same(&w->whole, &got, KEDGE_DTYPE_F32, d);
        kedge_layout_deinit(&got);
    }
    if (err) {
        kedge_map_close(map);
        return err;
    }
    *ret = (const float *)(const void *)(map->ptr + start);
    return KEDGE_OK;
}

static int squared_way(struct kedge_client_work *w, const char *base, const char *out, double *ret,
                       struct kedge_diag *d)
{
    struct kedge_map from, to;
    const float *a, *b;
    double sum = 0;
    KEDGE_TRY(open_values(w, base, &from, &a, d));
    int err = open_values(w, out, &to, &b, d);
    if (!err) {
        for (uint64_t i = 0; i < w->whole.values_count; i++) {
            const double way = (double)a[i] - (double)b[i];
            sum += way * way;
        }
        kedge_map_close(&to);
        *ret = sum;
    }
    kedge_map_close(&from);
    return err;
}

/* One step of so many samples. */
static json_t *step_of(const json_t *request, uint32_t batch, uint64_t seed)
{
    static const char *const without[] = {"epochs",        "proximal",  "drift",  "personal",
                                          "personal_pull", "base_loss", "phases", "percent"};
    char text[24];
    json_t *o = json_deep_copy(request);
    for (size_t i = 0; o && i < sizeof without / sizeof without[0]; i++) {
        (void)json_object_del(o, without[i]);
    }
    snprintf(text, sizeof text, "%llu", (unsigned long long)seed);
    if (o) {
        json_object_set_new(o, "steps", json_integer(1));
        json_object_set_new(o, "batch", json_integer(batch));
        json_object_set_new(o, "l2", json_string("0"));
        json_object_set_new(o, "seed", json_string(text));
        json_object_set_new(o, "evaluate_base", json_false());
    }
    return o;
}

/* One step from the base with `size` samples: how far it went, squared, and how many samples it really had.
 */
static int step_once(struct kedge_client_work *w, uint64_t serial, json_t *request, const char *base,
                     const char *out, const char *left, double *ret_squared, uint64_t *ret_samples,
                     struct kedge_diag *d)
{
    struct kedge_metrics m = {.samples = 0};
    KEDGE_TRY(kedge_client_ask(w, serial, request, true, false, &m, d));
    if (left) {
        KEDGE_TRY(kedge_client_trainer_take(w, left, out, d));
    }
    *ret_samples = m.samples;
    return m.steps == 1 ? squared_way(w, base, out, ret_squared, d) : KEDGE_E_TRAINER;
}

void kedge_client_energy_probe(struct kedge_client_work *w, uint64_t serial, const json_t *request,
                               const char *base, const char *out, const char *left,
                               struct kedge_energy_plan *plan)
{
    uint32_t sizes[2];
    struct kedge_diag d = {.text = ""};
    const double lr = plan->learning_rate;
    int err = KEDGE_OK;
    kedge_client_energy_noise(w, plan, &sizes[0], &sizes[1]);
    for (uint64_t pair = 0; pair < PAIRS && sizes[1] > 0 && !err; pair++) {
        double squared[2] = {0, 0}, used[2] = {0, 0};
        for (uint64_t which = 0; which < 2 && !err; which++) {
            uint64_t samples = 0;
            err = step_once(w, serial, step_of(request, sizes[which], serial * 64 + pair * 2 + which), base,
                            out, left, &squared[which], &samples, &d);
            used[which] = fmin(sizes[which], (double)samples);
        }
        if (!err) {
            kedge_client_energy_saw_noise(w, plan, used[0], squared[0] / (lr * lr), used[1],
                                          squared[1] / (lr * lr));
        }
    }
    if (err) {
        kedge_log(KEDGE_LOG_WARN, "noise of gradients", "%s",
                  d.text[0] ? d.text
                            : "the trainer does not do single steps; the batch stays as the job has it");
    }
}
