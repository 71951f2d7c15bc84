/* On a machine with a CUDA device: the contract of client/train/ops.h, operation by operation, and every
 * preset trained on the device and on the processor to the same weights within a tolerance.  gpu_contract
 * [short] 0: all holds; 1: something does not; 77: there is no device. */
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "bench/gpu/models.h"
#include "client/train/cuda_load.h"
#include "client/train/sites.h"
#include "common/base/err.h"
#include "common/base/mem.h"
#include "tests/contract/ops_table.h"

enum { NO_DEVICE = 77, STEPS = 3, BATCH = 4, SAMPLES = 10, TOGETHER = 3 };

static int check_table(const struct kedge_ops *ops)
{
    static const struct kedge_ops_config configs[] = {
        {1, 1, KEDGE_OPS_F32}, {3, 1, KEDGE_OPS_F32}, {8, 1, KEDGE_OPS_F32}};
    char text[OPS_TABLE_TEXT];
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        unsigned long checks = 0;
        const char *bad = ops_table_check(ops, &configs[i], 1 + i, text, &checks);
        printf("%s: %u sites: %s, %lu comparisons\n", bad ? "WRONG" : "ok", configs[i].sites,
               bad ? bad : "every operation as in double precision", checks);
        if (bad) {
            return 1;
        }
    }
    return 0;
}

/* The greatest distance of two models, beside how far training has moved the second. */
static bool is_near(const float *got, const float *want, const float *first, uint64_t count, double *ret_off,
                    double *ret_moved)
{
    *ret_off = *ret_moved = 0;
    for (uint64_t i = 0; i < count; i++) {
        *ret_off = fmax(*ret_off, fabs((double)got[i] - (double)want[i]));
        *ret_moved = fmax(*ret_moved, fabs((double)want[i] - (double)first[i]));
        if (!isfinite(got[i])) {
            return false;
        }
    }
    return *ret_off <= 0.002 * *ret_moved; /* a learning rate that is off by 1 % is five times that */
}

static int train_on(const struct kedge_model_spec *spec, const struct kedge_ops *ops,
                    struct kedge_device *dev, const struct kedge_dataset *data, const float *first,
                    float *out)
{
    const struct kedge_train_params params = {.steps = STEPS, .batch = BATCH, .lr = 0.05, .seed = 9};
    struct kedge_train_result result;
    struct kedge_net *net = NULL;
    struct kedge_diag diag = {.text = ""};
    int err = kedge_net_new_on(spec, BATCH, ops, dev, &net, &diag);
    if (!err) {
        const size_t bytes = kedge_net_values_count(net) * sizeof(float);
        memcpy(kedge_net_weights(net), first, bytes);
        err = kedge_net_train(net, data, &params, &result, &diag);
        memcpy(out, kedge_net_weights(net), bytes);
        kedge_net_free(net);
    }
    if (err) {
        printf("WRONG: %s: %s\n", ops->name, diag.text);
    }
    return err;
}

/* One preset by both; and by the device again, which must give the same bytes. */
static int check_preset(const struct kedge_ops *ops, const char *name)
{
    static const struct kedge_ops_config one = {1, 1, KEDGE_OPS_F32};
    const struct kedge_ops *const by[] = {&kedge_ops_cpu, ops, ops};
    struct kedge_model_spec spec;
    struct kedge_dataset data;
    char text[256] = "";
    double off = 0, moved = 0;
    if (gpu_model(name, &spec) || gpu_data(&spec, SAMPLES, 3, &data)) {
        printf("WRONG: %s: no memory\n", name);
        return 1;
    }
    const uint64_t count = kedge_model_values_count(&spec);
    float *all = kedge_mem_new(4 * count, sizeof *all);
    int err = all ? 0 : 1;
    if (all) {
        kedge_model_init(&spec, 1, all);
    }
    for (uint64_t i = 0; i < 3 && !err; i++) {
        struct kedge_device *dev = NULL;
        err = by[i]->open(&one, &dev, text, sizeof text);
        err = err ? err : train_on(&spec, by[i], dev, &data, all, all + (i + 1) * count);
        by[i]->close(dev);
    }
    if (!err) {
        const bool near = is_near(all + 2 * count, all + count, all, count, &off, &moved);
        const bool same = memcmp(all + 2 * count, all + 3 * count, count * sizeof *all) == 0;
        printf("%s: %s: %d steps differ by %.3g from the processor's, which moved weights by %.3g; %s\n",
               near && same ? "ok" : "WRONG", name, (int)STEPS, off, moved,
               same ? "again the same bytes" : "again OTHER bytes");
        err = near && same ? 0 : 1;
    }
    kedge_mem_free(all);
    gpu_data_free(&data);
    return err ? 1 : 0;
}

int main(int argc, char **argv)
{
    const bool is_short = argc == 2 && strcmp(argv[1], "short") == 0;
    const struct kedge_ops *ops = kedge_cuda_ops(KEDGE_CUDA_VERSION);
    const struct kedge_ops_config one = {1, 1, KEDGE_OPS_F32};
    struct kedge_device *dev = NULL;
    char text[256] = "";
    if (ops->open(&one, &dev, text, sizeof text)) {
        printf("gpu-check: no GPU here: %s\n", text);
        return NO_DEVICE;
    }
    printf("device: %s\n", ops->engine(dev));
    ops->close(dev);
    int failed = check_table(ops);
    for (size_t i = 0; i < (is_short ? GPU_SHORT : GPU_MODELS); i++) {
        failed |= check_preset(ops, gpu_models[i]);
    }
    return failed;
}
