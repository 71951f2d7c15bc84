/* Many sites trained at once on one device, each step for all of them; for simulations. Sites differ in size,
 * so that their passes begin at different steps; the order of each is therefore written out step by step,
 * `batch` places a step, and a site without samples for the rest of a step says so by its count. */
#include "client/train/sites.h"

#include <math.h>
#include <string.h>

#include "client/train/net_impl.h"
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/base/try.h"

enum { STEPS_MAX = 64 /* whose order is on the device at a time */ };

/* One site's way through its data. */
struct walk {
    uint32_t *shuffled; /* of the pass that is going on; data->n of them */
    uint64_t pass;
    uint32_t at;           /* within it */
    uint64_t left;         /* steps still to be made */
    uint64_t last_begins;  /* step with which its last pass begins */
    uint64_t last_samples; /* seen in it */
    double before_last;    /* loss of the passes before it */
};

struct together {
    struct kedge_net *net;
    struct kedge_site_work *work;
    uint32_t sites;
    const struct kedge_train_params *params;
    struct kedge_net_rule rule;
    struct kedge_proximal_term bend;
    struct walk *walks;
    struct kedge_ops_data_handle **handles;
    uint32_t *order, *device_order; /* STEPS_MAX · batch of one site, of all */
    uint32_t *counts;               /* of STEPS_MAX steps, each of all sites */
    uint64_t *seeds;
    double *losses, *taken; /* so far, and at one time */
    void *recording;
    uint64_t step;
};

static uint64_t steps_of_pass(const struct together *t, uint32_t site)
{
    return (t->work[site].data->n + (uint64_t)t->params->batch - 1) / t->params->batch;
}

/* Each site has the order that it would have alone: its own seed, pass and purpose. So a site trained
 * together with others sees its samples in the same order as on its own machine. */
static void shuffle(struct together *t, uint32_t site)
{
    struct walk *w = &t->walks[site];
    const uint32_t n = t->work[site].data->n;
    struct kedge_rng rng;
    kedge_rng_init(&rng, t->work[site].seed, t->params->steps ? KEDGE_RNG_PRETRAIN : KEDGE_RNG_TRAIN, w->pass,
                   0);
    for (uint32_t i = 0; i < n; i++) {
        w->shuffled[i] = i;
    }
    kedge_rng_sample(&rng, w->shuffled, n, n);
    w->pass++;
    w->at = 0;
}

/* The next `steps` steps of every site: their order goes to the device, their counts stay here. */
static void plan_steps(struct together *t, uint32_t steps)
{
    const uint32_t batch = t->params->batch;
    for (uint32_t s = 0; s < t->sites; s++) {
        struct walk *w = &t->walks[s];
        memset(t->order, 0, (size_t)steps * batch * sizeof *t->order);
        for (uint32_t i = 0; i < steps; i++) {
            if (w->left > 0 && w->at == t->work[s].data->n) {
                shuffle(t, s);
            }
            const uint32_t rest = t->work[s].data->n - w->at, n = w->left == 0   ? 0
                                                                  : rest < batch ? rest
                                                                                 : batch;
            memcpy(t->order + (size_t)i * batch, w->shuffled + w->at, n * sizeof *t->order);
            t->counts[(size_t)i * t->sites + s] = n;
            w->at += n;
            w->last_samples += t->step + i >= w->last_begins ? n : 0;
            w->left -= n > 0 ? 1 : 0;
        }
        t->net->ops->upload(t->net->dev, s, t->device_order, t->order,
                            (size_t)steps * batch * sizeof *t->order);
    }
}

static int take_losses(struct together *t, struct kedge_diag *reterr)
{
    const int err = t->net->ops->take_loss(t->net->dev, t->taken);
    for (uint32_t s = 0; s < t->sites && !err; s++) {
        t->losses[s] += t->taken[s];
        if (t->walks[s].last_begins == t->step) {
            t->walks[s].before_last = t->losses[s];
        }
    }
    if (err) {
        char text[KEDGE_DIAG_TEXT_MAX] = "";
        (void)t->net->ops->sync(t->net->dev, text, sizeof text);
        return kedge_diag_set(reterr, err, "%s: %s", t->net->ops->name, text);
    }
    return KEDGE_OK;
}

/* Losses are taken when some site begins its last pass, since only that one is told. */
static bool begins_a_last_pass(const struct together *t)
{
    bool begins = false;
    for (uint32_t s = 0; s < t->sites; s++) {
        begins = begins || (t->walks[s].last_begins == t->step && t->step > 0);
    }
    return begins;
}

/* One step of all sites at once. The second step is recorded where the back end can, and all later ones
 * replay the recording: what it reads anew each time (seeds, counts, the place in the order) is given by
 * moment. */
static void run_step(struct together *t, uint32_t place)
{
    struct kedge_net *net = t->net;
    const struct kedge_ops *ops = net->ops;
    const struct kedge_ops_moment moment = {.seeds = t->seeds,
                                            .step = t->step,
                                            .at = place * t->params->batch,
                                            .counts = t->counts + (size_t)place * t->sites};
    ops->moment(net->dev, &moment);
    if (t->recording) {
        ops->replay(net->dev, t->recording);
        return;
    }
    const bool records = ops->record_begin && t->step == 1; /* the first step loads what it needs */
    if (records) {
        ops->record_begin(net->dev);
    }
    ops->gather(net->dev, t->handles, t->device_order, t->params->batch, net->x, net->labels);
    kedge_net_run_step(net, net->x, net->labels, t->params->batch, &t->rule);
    t->recording = records ? ops->record_end(net->dev) : NULL;
}

/* Orders go to the device for STEPS_MAX steps at a time: often enough to need little memory, seldom enough
 * not to wait. */
static int run_all(struct together *t, uint64_t steps, struct kedge_diag *reterr)
{
    int err = KEDGE_OK;
    while (t->step < steps && !err) {
        const uint64_t left = steps - t->step;
        const uint32_t some = left < STEPS_MAX ? (uint32_t)left : STEPS_MAX;
        plan_steps(t, some);
        for (uint32_t i = 0; i < some && !err; i++) {
            err = begins_a_last_pass(t) ? take_losses(t, reterr) : KEDGE_OK;
            run_step(t, i);
            t->step++;
        }
    }
    return err ? err : take_losses(t, reterr);
}

/* ---- beginning and end ---- */

static int check_work(const struct together *t, struct kedge_diag *reterr)
{
    const struct kedge_train_params *p = t->params;
    if (p->steps == 0 && p->epochs == 0) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "neither epochs nor steps to train");
    }
    for (uint32_t s = 0; s < t->sites; s++) {
        if (t->work[s].data->n == 0 || t->work[s].data->features != t->work[0].data->features
            || t->work[s].data->is_real != t->work[0].data->is_real
            || (t->work[s].towards == NULL) != (t->work[0].towards == NULL)) {
            return kedge_diag_set(reterr, KEDGE_E_ARG,
                                  "site %u: no samples, or features, labels or a pull unlike those of site 0",
                                  s);
        }
        KEDGE_TRY(kedge_net_check_data(t->net, t->work[s].data, reterr));
    }
    return KEDGE_OK;
}

static int take_memory(struct together *t)
{
    const size_t places = (size_t)STEPS_MAX * t->params->batch;
    struct kedge_net *net = t->net;
    bool fine = true;
    t->walks = kedge_mem_new(t->sites, sizeof *t->walks);
    t->handles = kedge_mem_new(t->sites, sizeof(*t->handles));
    t->order = kedge_mem_new(places, sizeof *t->order);
    t->device_order = net->ops->alloc(net->dev, places * sizeof *t->order);
    t->counts = kedge_mem_new((size_t)STEPS_MAX * t->sites, sizeof *t->counts);
    t->seeds = kedge_mem_new(t->sites, sizeof *t->seeds);
    t->losses = kedge_mem_new(t->sites, sizeof *t->losses);
    t->taken = kedge_mem_new(t->sites, sizeof *t->taken);
    fine = t->walks && t->handles && t->order && t->device_order && t->counts && t->seeds && t->losses
           && t->taken;
    if (fine && t->work[0].towards && !net->towards) {
        net->towards = net->ops->alloc(net->dev, net->values_count * sizeof(float));
        fine = net->towards != NULL;
    }
    return fine ? KEDGE_OK : KEDGE_E_NOMEM;
}

/* Puts one site's data and weights on the device; *steps becomes what the longest site needs. */
static int open_site(struct together *t, uint32_t s, uint64_t *steps)
{
    struct kedge_net *net = t->net;
    struct kedge_site_work *work = &t->work[s];
    const struct kedge_ops_data data = kedge_net_data_of(work->data);
    const size_t bytes = (size_t)net->values_count * sizeof(float);
    struct walk *w = &t->walks[s];
    w->left = t->params->steps ? t->params->steps : t->params->epochs * steps_of_pass(t, s);
    w->last_begins = (w->left - 1) / steps_of_pass(t, s) * steps_of_pass(t, s);
    *steps = w->left > *steps ? w->left : *steps;
    work->result = (struct kedge_train_result){.steps = w->left};
    work->err = KEDGE_OK;
    t->seeds[s] = work->seed;
    w->shuffled = kedge_mem_new(work->data->n, sizeof *w->shuffled);
    t->handles[s] = net->ops->data_load(net->dev, s, &data);
    KEDGE_TRY_MEM(w->shuffled && t->handles[s]);
    shuffle(t, s);
    net->ops->upload(net->dev, s, net->weights, work->weights, bytes);
    if (work->towards) {
        net->ops->upload(net->dev, s, net->towards, work->towards, bytes);
    }
    return KEDGE_OK;
}

static void close_together(struct together *t)
{
    const struct kedge_ops *ops = t->net->ops;
    if (t->recording) {
        ops->record_free(t->net->dev, t->recording);
    }
    for (uint32_t s = 0; s < t->sites; s++) {
        if (t->handles && t->handles[s]) {
            ops->data_free(t->net->dev, t->handles[s]);
        }
        kedge_mem_free(t->walks ? t->walks[s].shuffled : NULL);
    }
    (ops->free)(t->net->dev, t->device_order);
    kedge_mem_free(t->walks);
    kedge_mem_free(t->handles);
    kedge_mem_free(t->order);
    kedge_mem_free(t->counts);
    kedge_mem_free(t->seeds);
    kedge_mem_free(t->losses);
    kedge_mem_free(t->taken);
    kedge_net_free(t->net);
}

/* Weights, losses, and who diverged. */
static int give_back(struct together *t, struct kedge_diag *reterr)
{
    const size_t count = (size_t)t->net->values_count;
    for (uint32_t s = 0; s < t->sites; s++) {
        struct kedge_site_work *work = &t->work[s];
        const int err =
            t->net->ops->download(t->net->dev, s, work->weights, t->net->weights, count * sizeof(float));
        if (err) {
            return kedge_diag_set(reterr, err, "%s: weights of site %u cannot be read", t->net->ops->name, s);
        }
        float sum = 0.0f; /* 0·v is NaN for NaN and infinity, and NaN stays */
        for (size_t i = 0; i < count; i++) {
            sum += 0.0f * work->weights[i];
        }
        work->result.loss = (t->losses[s] - t->walks[s].before_last) / (double)t->walks[s].last_samples;
        work->err = sum == 0.0f && isfinite(work->result.loss) ? KEDGE_OK : KEDGE_E_NOT_FINITE;
    }
    return KEDGE_OK;
}

static int train_together(struct together *t, struct kedge_diag *reterr)
{
    const struct kedge_train_params *params = t->params;
    uint64_t steps = 0;
    KEDGE_TRY(check_work(t, reterr));
    int err = take_memory(t);
    for (uint32_t s = 0; s < t->sites && !err; s++) {
        err = open_site(t, s, &steps);
    }
    if (err) {
        return kedge_diag_set(reterr, err, "no memory for %u sites", t->sites);
    }
    t->net->reals = t->work[0].data->is_real;
    t->bend.towards = t->work[0].towards ? t->net->towards : NULL;
    t->rule = (struct kedge_net_rule){params->lr, params->l2, params->momentum, params->clip, &t->bend};
    KEDGE_TRY(kedge_net_prepare_rule(t->net, &t->rule, reterr));
    KEDGE_TRY(run_all(t, steps, reterr));
    return give_back(t, reterr);
}

int kedge_sites_train(const struct kedge_model_spec *spec, const struct kedge_ops *ops,
                      struct kedge_device *dev, struct kedge_site_work *work, uint32_t sites,
                      const struct kedge_train_params *params, struct kedge_diag *reterr)
{
    struct together t = {.work = work, .sites = sites, .params = params, .bend = params->bend};
    KEDGE_TRY(kedge_net_new_on(spec, params->batch, ops, dev, &t.net, reterr));
    int err = train_together(&t, reterr);
    close_together(&t);
    return err;
}
