/* The items of a round on one device, many sites in every step (client/train/sites.h). What comes of it waits
 * here until train.c takes it, item by item, in the place of the steps that it would make itself: batches,
 * shuffles and pulls are the same, only sums are rounded otherwise. Whatever fails is said in one line and
 * left to the processor. */
#include "sim/learn/together.h"

#include <stdio.h>
#include <string.h>

#include "client/train/cuda_load.h"
#include "client/train/sites.h"
#include "common/base/mem.h"
#include "common/base/try.h"

enum { SITES_MAX = 256 /* in one step, where nobody says otherwise */, LINE_MAX_LEN = 600 };
#define DATA_MAX ((uint64_t)64 << 20) /* values of their samples */

struct trained {
    bool done;
    int err;
    uint64_t steps;
    double loss;
};

struct kedgei_learn_together {
    const struct kedge_ops *ops;
    struct kedge_device *dev;
    uint32_t open_for; /* sites; 0: it is not open */
    uint32_t most;     /* sites in one step */
    uint32_t items_max, *list;
    struct trained *trained[2]; /* of each item: its training, and that of the site's own model */
    float *weights[2];          /* d of each item */
};

/* Sites on their way through the device. */
struct party {
    struct kedgei_learn *l;
    const uint32_t *items;
    uint32_t count;
    bool own;
    struct kedge_site_work *work;
    struct kedge_dataset *data;
    float *values, *towards;
    int32_t *labels;
};

static void say(const struct kedgei_learn *l, const char *why)
{
    char line[LINE_MAX_LEN];
    (void)snprintf(line, sizeof line, "CUDA is not used: %.400s; the sites train on the processor.", why);
    if (l->host->say) {
        l->host->say(l->host->arg, line);
    }
}

static int open_for(struct kedgei_learn_together *t, uint32_t sites, char *text, size_t text_len)
{
    const struct kedge_ops_config config = {.sites = sites, .threads = 1};
    if (t->open_for == sites) {
        return KEDGE_OK;
    }
    if (t->open_for) {
        t->ops->close(t->dev);
        t->open_for = 0;
    }
    const int err = t->ops->open(&config, &t->dev, text, text_len);
    t->open_for = err ? 0 : sites;
    return err;
}

void kedgei_learn_together_init(struct kedgei_learn *l)
{
    char text[256] = "";
    if (l->spec->train_on != KEDGE_LEARN_ON_CUDA || l->spec->planted) {
        return;
    }
    if (l->shared < l->d) {
        say(l, "sites that keep a head train on the processor");
        return;
    }
    struct kedgei_learn_together *t = kedge_mem_new(1, sizeof *t);
    if (!t) {
        say(l, "no memory");
        return;
    }
    t->most = l->host->together_max ? l->host->together_max : SITES_MAX;
    t->ops = l->host->device ? l->host->device : kedge_cuda_load(text, sizeof text);
    if (!t->ops || open_for(t, 1, text, sizeof text) != KEDGE_OK) {
        say(l, text);
        kedge_mem_free(t);
        return;
    }
    l->together = t;
}

void kedgei_learn_together_deinit(struct kedgei_learn *l)
{
    struct kedgei_learn_together *t = l->together;
    if (!t) {
        return;
    }
    if (t->open_for) {
        t->ops->close(t->dev);
    }
    for (int own = 0; own < 2; own++) {
        kedge_mem_free(t->trained[own]);
        kedge_mem_free(t->weights[own]);
    }
    kedge_mem_free(t->list);
    kedge_mem_free(t);
    l->together = NULL;
}

static bool reserve(const struct kedgei_learn *l, struct kedgei_learn_together *t, bool two)
{
    bool fine = true;
    if (l->items_count > t->items_max) {
        kedge_mem_free(t->list);
        t->list = kedge_mem_new(l->items_count, sizeof *t->list);
        fine = t->list != NULL;
        for (int own = 0; own < 2; own++) {
            kedge_mem_free(t->trained[own]);
            kedge_mem_free(t->weights[own]);
            t->trained[own] = kedge_mem_new(l->items_count, sizeof *t->trained[own]);
            t->weights[own] =
                own == 0 || two ? kedge_mem_new((size_t)l->items_count * l->d, sizeof(float)) : NULL;
            fine = fine && t->trained[own] && (t->weights[own] || (own == 1 && !two));
        }
        t->items_max = fine ? l->items_count : 0;
    }
    for (int own = 0; own < 2 && fine; own++) {
        memset(t->trained[own], 0, l->items_count * sizeof *t->trained[own]);
    }
    return fine;
}

/* ---- some sites ---- */

static void party_end(struct party *p)
{
    kedge_mem_free(p->work);
    kedge_mem_free(p->data);
    kedge_mem_free(p->values);
    kedge_mem_free(p->towards);
    kedge_mem_free(p->labels);
}

static bool party_begin(struct party *p)
{
    const struct kedgei_learn *l = p->l;
    size_t rows = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        rows += l->sites[l->items[p->items[i]].site].train_count;
    }
    p->work = kedge_mem_new(p->count, sizeof *p->work);
    p->data = kedge_mem_new(p->count, sizeof *p->data);
    p->values = kedge_mem_new(rows * l->pool.features, sizeof *p->values);
    p->labels = kedge_mem_new(rows, sizeof *p->labels);
    p->towards = kedge_mem_new((size_t)p->count * l->d, sizeof *p->towards);
    return p->work && p->data && p->values && p->labels && p->towards;
}

/* What each site brings along; the pull is the same for all. */
static int fill(struct party *p, double *ret_pull)
{
    const struct kedgei_learn *l = p->l;
    struct kedgei_learn_together *t = l->together;
    struct kedge_dataset *data = p->data;
    size_t row = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        const uint32_t index = p->items[i];
        const struct kedgei_learn_item *item = &l->items[index];
        float *w = t->weights[p->own] + index * l->d, *values = p->values + row * l->pool.features;
        const struct kedge_proximal_term bend =
            kedgei_learn_bend(l, item, p->own, p->towards + (size_t)i * l->d);
        KEDGE_TRY(kedgei_learn_data(l, item->site, false, &l->lanes[0].room, &data[i]));
        kedge_dataset_gather(&data[i], NULL, data[i].n, values);
        memcpy(p->labels + row, data[i].labels, data[i].n * sizeof *p->labels);
        data[i].labels = p->labels + row;
        data[i].reals = values;
        data[i].maker = NULL;
        memcpy(w, kedgei_learn_begin(l, item, p->own), l->d * sizeof *w);
        p->work[i] = (struct kedge_site_work){.data = &data[i],
                                              .weights = w,
                                              .towards = bend.towards,
                                              .seed = kedgei_names_seed(&l->names, item->round, item->site)};
        *ret_pull = bend.pull;
        row += data[i].n;
    }
    return KEDGE_OK;
}

static int train_party(struct party *p, char *text, size_t text_len)
{
    struct kedgei_learn *l = p->l;
    struct kedgei_learn_together *t = l->together;
    struct kedge_diag d = {.text = ""};
    int err = party_begin(p) ? KEDGE_OK : KEDGE_E_NOMEM;
    err = err ? err : open_for(t, p->count, text, text_len);
    if (!err) {
        struct kedge_train_params params = kedgei_learn_params(l, &l->items[p->items[0]]);
        err = fill(p, &params.bend.pull);
        err = err ? err
                  : kedge_sites_train(&l->spec->job.model, t->ops, t->dev, p->work, p->count, &params, &d);
        (void)snprintf(text, text_len, "%.200s", d.text);
    }
    for (uint32_t i = 0; i < p->count && !err; i++) {
        struct trained *done = &t->trained[p->own][p->items[i]];
        done->done = true;
        done->err = p->work[i].err;
        done->steps = p->work[i].result.steps;
        done->loss = p->work[i].result.loss;
    }
    if (err && t->open_for) { /* what failed is forgotten with the device */
        t->ops->close(t->dev);
        t->open_for = 0;
    }
    return err;
}

/* ---- all of them ---- */

/* How many from the list's beginning there is room for, at least one. */
static uint32_t fitting(const struct kedgei_learn *l, const uint32_t *list, uint32_t count)
{
    const uint32_t most = l->together->most < count ? l->together->most : count;
    uint64_t values = 0;
    for (uint32_t i = 0; i < most; i++) {
        values += (uint64_t)l->sites[l->items[list[i]].site].train_count * l->pool.features + l->d;
        if (values > DATA_MAX && i > 0) {
            return i;
        }
    }
    return most;
}

/* Items of this process that train so, the largest sites first. */
static uint32_t make_list(const struct kedgei_learn *l, bool pretrain, bool own)
{
    const struct kedge_learn_exchange *x = l->host->exchange;
    const uint32_t ranks = x && x->size > 1 ? x->size : 1, rank = x ? x->rank : 0;
    struct kedgei_learn_together *t = l->together;
    uint32_t count = 0;
    for (uint32_t at = rank; at < l->items_count; at += ranks) {
        const uint32_t index = l->item_order[at];
        const struct kedgei_learn_item *item = &l->items[index];
        const struct kedge_local *local = item->pretrain ? &kedge_local_sgd : l->spec->job.strategy->local;
        const bool wanted = own ? local->sends_nothing
                                      || (local->has_own_model && t->trained[0][index].done
                                          && t->trained[0][index].err == KEDGE_OK)
                                : !local->sends_nothing;
        if (wanted && !item->failed && item->pretrain == pretrain && l->sites[item->site].train_count > 0) {
            t->list[count++] = index;
        }
    }
    return count;
}

static int train_list(struct kedgei_learn *l, uint32_t count, bool own, char *text, size_t text_len)
{
    struct kedgei_learn_together *t = l->together;
    for (uint32_t at = 0; at < count;) {
        struct party p = {.l = l, .items = t->list + at, .own = own};
        p.count = fitting(l, p.items, count - at);
        const int err = train_party(&p, text, text_len);
        party_end(&p);
        if (err && (err != KEDGE_E_NOMEM || p.count == 1)) {
            return err;
        }
        t->most = err ? p.count / 2 : t->most; /* fewer at a time need less of the device's memory */
        at += err ? 0 : p.count;
    }
    return KEDGE_OK;
}

void kedgei_learn_train_together(struct kedgei_learn *l)
{
    const bool two = l->spec->job.strategy->local->has_own_model;
    char text[256] = "no memory";
    if (!l->together || l->items_count == 0) {
        return;
    }
    int err = reserve(l, l->together, two) ? KEDGE_OK : KEDGE_E_NOMEM;
    for (uint32_t pass = 0; pass < 4 && !err; pass++) {
        const bool own = pass >= 2;
        const uint32_t count = own && !two ? 0 : make_list(l, pass % 2 == 1, own);
        err = count ? train_list(l, count, own, text, sizeof text) : KEDGE_OK;
    }
    if (err) {
        say(l, text[0] ? text : kedge_strerror(err));
        kedgei_learn_together_deinit(l);
    }
}

bool kedgei_learn_take(const struct kedgei_learn *l, const struct kedgei_learn_item *item, bool own, float *w,
                       struct kedgei_learn_taken *ret)
{
    const struct kedgei_learn_together *t = l->together;
    const size_t index = t ? (size_t)(item - l->items) : 0;
    if (!t || !t->trained[own][index].done) {
        return false;
    }
    const struct trained *done = &t->trained[own][index];
    memcpy(w, t->weights[own] + index * l->d, l->d * sizeof *w);
    *ret = (struct kedgei_learn_taken){.err = done->err, .steps = done->steps, .loss = done->loss};
    return true;
}
