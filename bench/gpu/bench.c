/* Samples per second of training on a CUDA device, a line each: MODEL BATCH SITES RATE.  gpu_bench [once]:
 * one step each, to try it A rate is the difference of two runs, so that opening, first steps and copies at
 * the end count for nothing; the median of five. 77: there is no device. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench/gpu/models.h"
#include "client/train/cuda_load.h"
#include "client/train/sites.h"
#include "common/base/err.h"
#include "common/base/mem.h"

enum { NO_DEVICE = 77, TIMES = 5, SAMPLES = 2048, SITES = 64, SITE_SAMPLES = 256, FEW = 20 };

struct job {
    struct kedge_model_spec spec;
    const struct kedge_ops *ops;
    struct kedge_device *dev;
    struct kedge_net *net; /* one site */
    uint32_t sites, batch;
    struct kedge_dataset data[SITES];
    float *weights; /* of all sites */
};

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

/* Seconds that so many steps take, negative where they failed. */
static double run(struct job *j, uint64_t steps)
{
    const struct kedge_train_params params = {.steps = steps, .batch = j->batch, .lr = 1e-4, .seed = 1};
    struct kedge_site_work work[SITES];
    struct kedge_train_result result;
    struct kedge_diag diag = {.text = ""};
    const uint64_t count = kedge_model_values_count(&j->spec);
    for (uint32_t s = 0; s < j->sites; s++) {
        work[s] = (struct kedge_site_work){.data = &j->data[s], .weights = j->weights + s * count, .seed = s};
    }
    const double begin = now();
    const int err = j->sites == 1
                        ? kedge_net_train(j->net, &j->data[0], &params, &result, &diag)
                        : kedge_sites_train(&j->spec, j->ops, j->dev, work, j->sites, &params, &diag);
    if (err) {
        fprintf(stderr, "gpu-check: %s\n", diag.text);
    }
    return err ? -1 : now() - begin;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double measure(struct job *j, double seconds)
{
    double rates[TIMES];
    uint64_t steps = FEW;
    double took = run(j, FEW);
    while (took >= 0 && took < seconds && steps < 1000000) { /* as many as take a while */
        steps *= 4;
        took = run(j, steps);
    }
    for (int i = 0; i < TIMES; i++) {
        const double few = run(j, FEW), many = run(j, FEW + steps);
        if (took < 0 || few < 0 || many < 0) {
            return 0;
        }
        rates[i] = (double)steps * j->batch * j->sites / (many > few ? many - few : many);
    }
    qsort(rates, TIMES, sizeof rates[0], compare_doubles);
    return rates[TIMES / 2];
}

static int open_job(struct job *j, const struct kedge_ops *ops, const char *name, uint32_t sites,
                    uint32_t batch)
{
    const struct kedge_ops_config config = {sites, 1, KEDGE_OPS_F32};
    char text[256] = "";
    memset(j, 0, sizeof *j);
    j->ops = ops;
    j->sites = sites;
    j->batch = batch;
    int err = gpu_model(name, &j->spec);
    err = err ? err : ops->open(&config, &j->dev, text, sizeof text);
    for (uint32_t s = 0; s < sites && !err; s++) {
        err = gpu_data(&j->spec, sites == 1 ? SAMPLES : SITE_SAMPLES, s, &j->data[s]);
    }
    const uint64_t count = err ? 0 : kedge_model_values_count(&j->spec);
    j->weights = err ? NULL : kedge_mem_new(sites * count, sizeof *j->weights);
    err = err || !j->weights ? -1 : 0;
    for (uint32_t s = 0; s < sites && !err; s++) {
        kedge_model_init(&j->spec, s, j->weights + s * count);
    }
    if (!err && sites == 1) {
        err = kedge_net_new_on(&j->spec, batch, ops, j->dev, &j->net, NULL);
        if (!err) {
            memcpy(kedge_net_weights(j->net), j->weights, count * sizeof *j->weights);
        }
    }
    return err;
}

static void close_job(struct job *j)
{
    kedge_net_free(j->net);
    kedge_mem_free(j->weights);
    for (uint32_t s = 0; s < j->sites; s++) {
        gpu_data_free(&j->data[s]);
    }
    j->ops->close(j->dev);
}

int main(int argc, char **argv)
{
    const double seconds = argc == 2 && strcmp(argv[1], "once") == 0 ? 0 : 0.3;
    static const uint32_t batches[] = {10, 32, 128}, sites[] = {1, SITES};
    const struct kedge_ops *ops = kedge_cuda_ops(KEDGE_CUDA_VERSION);
    const struct kedge_ops_config one = {1, 1, KEDGE_OPS_F32};
    struct kedge_device *dev = NULL;
    char text[256] = "";
    if (ops->open(&one, &dev, text, sizeof text)) {
        printf("gpu-check: no GPU here: %s\n", text);
        return NO_DEVICE;
    }
    printf("# %s\n", ops->engine(dev));
    ops->close(dev);
    for (size_t i = 0; i < GPU_MODELS * 6; i++) {
        struct job job;
        const char *name = gpu_models[i / 6];
        const uint32_t batch = batches[i % 3], many = sites[i / 3 % 2];
        if (open_job(&job, ops, name, many, batch) == 0) {
            printf("%s %u %u %.0f\n", name, batch, many, measure(&job, seconds));
            fflush(stdout);
        } else {
            printf("%s %u %u 0\n", name, batch, many);
        }
        close_job(&job);
    }
    return 0;
}
