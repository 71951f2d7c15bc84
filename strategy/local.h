/* What a site does with the model that it is given: one object for each method, in a file of its name. Job
 * specs, client, simulators and command line ask the object and its plan; none of them asks which it is.
 * Pure, any thread. */
#ifndef KEDGE_STRATEGY_LOCAL_H
#define KEDGE_STRATEGY_LOCAL_H

#include <stdbool.h>
#include <stdint.h>

#include "strategy/options.h"

/* The numbers of one training, from the job's options. */
struct kedge_local_plan {
    double pull;          /* of each step towards the model given, 0: none */
    double personal_pull; /* of the steps of the site's own model towards the model given, 0: none */
    uint32_t head_epochs; /* passes over the head alone, before those over what is shared; 0: none */
};

struct kedge_local {
    const char *name;    /* "scaffold" */
    const char *variate; /* what travels beside model and update: down the server's, up the change of the
                            site's,  by which each step's gradient is corrected; NULL: none */
    const char *kept;    /* what the site keeps from one training to the next; NULL: nothing */
    bool has_own_model;  /* the kept vector is a model of the site's own, trained and judged, too */
    bool has_head;       /* the kept vector is the part of the model that is not shared (key "share") */
    bool is_head_first;  /* it is trained by itself, before what is shared, which is then trained by itself */
    bool has_base; /* what is not shared is nobody's to train: a base that the spec names by its digest */
    bool sends_nothing;   /* it trains that model alone */
    bool is_judged_tuned; /* by the model given after it trained it once more on its own data */
    void (*plan)(const struct kedge_strategy_options *options,
                 struct kedge_local_plan *ret); /* NULL: zeros */
};

extern const struct kedge_local kedge_local_sgd; /* plain SGD for E epochs */
extern const struct kedge_local kedge_local_proximal;
extern const struct kedge_local kedge_local_scaffold;
extern const struct kedge_local kedge_local_ditto;
extern const struct kedge_local kedge_local_finetune;
extern const struct kedge_local kedge_local_alone;
extern const struct kedge_local kedge_local_head, kedge_local_head_first;
extern const struct kedge_local kedge_local_adapters;

/* A pre-training has no plan: it is plain SGD, whatever the method. */
struct kedge_local_plan kedge_local_plan(const struct kedge_local *local,
                                         const struct kedge_strategy_options *options);

#endif
