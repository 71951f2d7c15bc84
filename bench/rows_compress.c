/* Rows of compressed updates: bytes and accuracy, whole updates against the hundredth of their values in a
 * byte each, of one federation with the same seeds, data and selections. */
#include <stdio.h>
#include <unistd.h>

#include "bench/rows_learn.h"
#include "sim/learn/learn.h"
#include "tests/fixtures/learn_spec.h"

enum { SEEDS = 3, LAST = 10 };

struct federation {
    const char *row, *set;
    enum kedge_learn_partition partition;
    uint32_t sites, rounds, epochs;
    double lr, carry;
};
/* Twenty sites that all take part (clustering.md's learning rates), and the published recipes, where a site
 * takes part in every fiftieth or twenty-fifth round. */
static const struct federation federations[] = {
    {"compress-mnist", "mnist", KEDGE_LEARN_DIRICHLET, 20, 100, 1, 0.03, 1},
    {"compress-fashion", "fashion-mnist", KEDGE_LEARN_DIRICHLET, 20, 100, 1, 0.005, 1},
    {"compress-mnist-rare", "mnist", KEDGE_LEARN_MNIST, 1000, 300, 10, 0.03, 0.9},
    {"compress-fashion-rare", "fashion-mnist", KEDGE_LEARN_FASHION, 500, 300, 10, 0.005, 0.9},
};
enum { FEDERATIONS = sizeof federations / sizeof federations[0] };

struct outcome {
    double last; /* mean accuracy of the last ten rounds */
    uint64_t up; /* bytes of updates */
    uint32_t rounds;
};

static bool on_round(void *arg, const struct kedge_learn_round *round)
{
    struct outcome *o = arg;
    if (round->round + LAST >= o->rounds) {
        o->last += round->accuracy / LAST;
    }
    o->up = round->bytes_up;
    return true;
}

static int run(const struct federation *f, uint64_t seed, bool compressed, struct outcome *ret)
{
    struct kedge_learn_host host = {.threads = 1, .on_round = on_round, .arg = ret};
    struct kedge_learn_spec spec;
    learn_spec_default(&spec);
    snprintf(spec.images, sizeof spec.images, "%s/../data/%s", KEDGE_BENCH_SCRIPTS, f->set);
    spec.job.seed = seed;
    spec.partition = f->partition;
    spec.sites = f->sites;
    spec.job.rounds = f->rounds;
    spec.job.local_epochs = f->epochs;
    spec.job.learning_rate = f->lr;
    spec.job.evaluate_every = f->rounds; /* and the last ten */
    spec.job.compression.kind = compressed ? KEDGE_COMPACT_TOPK_INT8 : KEDGE_COMPACT_NONE;
    spec.job.compression.carry = (uint32_t)((f->carry) * KEDGE_COMPACT_SHARE_ONE);
    *ret = (struct outcome){.rounds = f->rounds};
    return kedge_learn_run(&spec, &host, NULL);
}

int kedge_row_compress(struct row rows[ROWS_MAX], int *ret_count)
{
    const double target = 1, bytes_target = 25;
    double ratio = 0;
    *ret_count = 0;
    for (int i = 0; i < FEDERATIONS; i++) {
        const struct federation *f = &federations[i];
        char file[512];
        double whole_sum = 0, lost = 0;
        snprintf(file, sizeof file, "%s/../data/%s/train-images-idx3-ubyte", KEDGE_BENCH_SCRIPTS, f->set);
        if (access(file, R_OK) != 0) {
            fprintf(stderr, "kedge-bench: %s: skipped: no images (scripts/get-data %s)\n", f->row, f->set);
            continue;
        }
        for (uint64_t seed = 1; seed <= SEEDS && (kedge_bench_wants(f->row) || i == 0); seed++) {
            struct outcome whole, compact;
            int err = run(f, seed, false, &whole);
            err = err ? err : run(f, seed, true, &compact);
            if (err) {
                return err;
            }
            whole_sum += 100 * whole.last / SEEDS;
            lost += 100 * (whole.last - compact.last) / SEEDS;
            ratio = i == 0 ? (double)whole.up / (double)compact.up : ratio;
        }
        rows[(*ret_count)++] = (struct row){f->row, "points", lost, whole_sum, target, false, lost <= target};
    }
    if (ratio > 0) {
        rows[(*ret_count)++] =
            (struct row){"compress-bytes", "times", ratio, 1, bytes_target, true, ratio >= bytes_target};
    }
    return KEDGE_OK;
}
