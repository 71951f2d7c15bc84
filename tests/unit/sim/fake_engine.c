#include "fake_engine.h"

#include <math.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "common/base/rng.h"
#include "sim/learn/learn.h"

enum { SITES_MOST = 64 };

uint32_t fake_runs, fake_began, fake_die_at;

struct fake {
    uint64_t site[SITES_MOST], digest;
    uint32_t round;
};

/* A site's part of a round, on the rank that it falls to; then everybody's, by its number. */
static int work(const struct kedge_learn_spec *s, const struct kedge_learn_host *h, struct fake *f)
{
    uint32_t rank = h->exchange ? h->exchange->rank : 0, size = h->exchange ? h->exchange->size : 1;
    uint64_t mine[SITES_MOST], all[64 * SITES_MOST], lens[64], n = 0;
    for (uint32_t i = rank; i < s->sites; i += size) {
        struct kedge_rng rng;
        kedge_rng_init(&rng, s->job.seed, KEDGE_RNG_TEST, f->round, i);
        mine[n++] = f->site[i] * 3 + kedge_rng_u64(&rng) % 1000;
    }
    if (!h->exchange) {
        memcpy(f->site, mine, n * sizeof mine[0]);
        return KEDGE_OK;
    }
    int err = h->exchange->allgather(h->exchange->arg, mine, n * sizeof mine[0], all,
                                     SITES_MOST * sizeof mine[0], lens);
    for (uint32_t i = 0; i < s->sites && !err; i++) {
        f->site[i] = all[(i % size) * SITES_MOST + i / size];
    }
    return err;
}

static struct kedge_learn_round line_of(const struct kedge_learn_spec *s, struct fake *f)
{
    double t = 1.0 / (1.0 + f->round);
    for (uint32_t i = 0; i < s->sites; i++) {
        f->digest = f->digest * 1099511628211u ^ f->site[i];
    }
    double noise = (double)(f->digest >> 40) / (1 << 24) * 0.02;
    double best = strcmp(s->job.strategy->name, "fedavg") == 0 ? 0.85 : 0.95;
    bool known = f->round % s->job.evaluate_every == 0 || f->round + 10 >= s->job.rounds;
    struct kedge_learn_round r = {
        .round = f->round,
        .virtual_s = 61.5 * (f->round + 1),
        .bytes_up = 31400u * (f->round + 1),
        .bytes_down = 31400u * (f->round + 1),
        .updates = 5u * (f->round + 1),
        .joules = 12.25 * (f->round + 1),
        .accuracy = known ? best - 0.6 * t + noise : (double)NAN,
        .accuracy_sites = known ? best - 0.62 * t : (double)NAN,
        .accuracy_worst = known ? best - 0.2 - 0.5 * t : (double)NAN,
        .accuracy_auxiliary = known ? best - 0.1 - 0.5 * t : (double)NAN,
        .accuracy_personal = (double)NAN,
        .backdoor = (double)NAN,
        .loss = 2.3 * t,
        .discrepancy = t,
        .rand_index = (double)NAN,
        .groups = s->job.groups,
        .detections = f->round,
        .migrations = f->round / 2,
        .digest = f->digest,
    };
    for (uint32_t i = 0; i < s->sites; i++) {
        r.members[(f->site[i] >> 3) % s->job.groups]++;
    }
    return r;
}

int kedge_learn_run(const struct kedge_learn_spec *spec, const struct kedge_learn_host *host,
                    struct kedge_diag *reterr)
{
    struct fake f = {.digest = spec->job.seed};
    fake_runs++;
    if (host->resume) {
        KEDGE_ASSERT(host->resume_len == sizeof f);
        memcpy(&f, host->resume, sizeof f);
    }
    fake_began = f.round;
    while (f.round < spec->job.rounds) {
        if (fake_die_at && f.round == fake_die_at) {
            (void)kill(getpid(), SIGKILL);
        }
        int err = work(spec, host, &f);
        if (err) {
            return kedge_diag_set(reterr, err, "another process is gone");
        }
        struct kedge_learn_round line = line_of(spec, &f);
        f.round++;
        if (!host->on_round(host->arg, &line)) {
            return KEDGE_OK;
        }
        if (host->save && host->save_every && f.round % host->save_every == 0) {
            err = host->save(host->arg, f.round, &f, sizeof f);
        }
        if (err) {
            return err;
        }
    }
    return KEDGE_OK;
}
