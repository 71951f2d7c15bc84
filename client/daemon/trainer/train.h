/* A training on its way: from the loop to the work thread and back. */
#ifndef KEDGE_CLIENT_DAEMON_TRAINER_TRAIN_H
#define KEDGE_CLIENT_DAEMON_TRAINER_TRAIN_H

#include "client/daemon/energy/energy.h"
#include "client/daemon/update/control.h"
#include "client/daemon/update/head.h"
#include "client/daemon/update/kept.h"

struct kedge_train_item {
    struct kedge_site_item item;
    struct kedge_site_effect fx;
    struct kedge_id trainer; /* of the owner's own that the job needs; "": the built-in one */
    struct kedge_site_result results[KEDGE_SITE_RESULTS_MAX];
    struct kedge_site_envelope envelopes[KEDGE_SITE_RESULTS_MAX];
    uint32_t result_count;
    char classes[KEDGE_CLASS_NAMES_ROOM]; /* that the task brought; none: the job has not learnt any yet */
    double chosen_loss;                   /* of the model that was chosen, where there was a choice */
    uint64_t test_samples; /* that its group's model was evaluated on, 0: it was not; loss and deviation … */
    double test_loss, test_deviation;
    struct kedge_labels labels; /* of the data that it was done with; `shift`, `pause`: the job's */
    enum kedge_shift_test shift;
    uint32_t pause;
    struct kedge_site_digest in_force;   /* the update that what the site has kept belongs to */
    struct kedge_client_control control; /* where the job has one, … */
    bool has_control;
    struct kedge_kept residual, personal; /* … what compression leaves, the site's own model; count 0: none */
    struct kedge_client_head head;
    bool keeps; /* something was kept with the update */
    struct kedge_energy_plan plan;
    char engine[KEDGE_ST_ENGINE_MAX + 1],
        fallback[KEDGE_METRICS_FALLBACK_MAX + 1]; /* of the trainer's answer */
    int err;
    enum kedge_trouble trouble; /* why, where more is known than err says */
    struct kedge_diag diag;
};

#endif
