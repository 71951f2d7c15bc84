/* Are a site's data still those that it was grouped by? What is compared (how many samples of each label) is
 * kept in SITE/memory and never leaves the device. Pure. */
#ifndef KEDGE_CLIENT_DAEMON_UPDATE_SHIFT_H
#define KEDGE_CLIENT_DAEMON_UPDATE_SHIFT_H

#include "job/job_spec.h"

enum { KEDGE_LABELS_MAX = 256, KEDGE_GROUPED_MAX = 4 };

/* Training samples of each class; classes 0: not known. */
struct kedge_labels {
    uint32_t classes;
    uint64_t counts[KEDGE_LABELS_MAX];
};

/* The data of a job when the site pre-trained last. */
struct kedge_grouped {
    struct kedge_id job;
    uint32_t round;
    uint64_t samples; /* of the first pre-training */
    struct kedge_labels labels;
    bool has_loss; /* of its group's model on the site's test samples, when that was evaluated last … */
    double loss, loss_square; /* … and the square of its standard error */
    bool told_blind;          /* kedge_grouped_is_blind has answered yes */
};
/* Of the jobs that the site pre-trained for last; oldest first. */
struct kedge_groupeds {
    uint32_t count;
    struct kedge_grouped items[KEDGE_GROUPED_MAX];
};

/* The site has pre-trained with these data. */
void kedge_grouped_note(struct kedge_groupeds *g, const struct kedge_id *job, uint32_t round,
                        const struct kedge_labels *labels);
/* By the job's test, `pause` being its migration_pause: should the site look for its group again? Never for a
 * job that is not remembered. KEDGE_SHIFT_TEST_UPDATE looks at no labels: it is time for a fresh
 * pre-training, whose update decides. */
bool kedge_grouped_shifted(const struct kedge_groupeds *g, const struct kedge_id *job,
                           enum kedge_shift_test test, uint32_t pause, uint32_t round,
                           const struct kedge_labels *now);
/* KEDGE_SHIFT_TEST_LOSS: the same by what the model's loss on `samples` test samples is now, and by what it
 * was when this was asked last; deviation: of the losses on single samples, below 0: not known. */
bool kedge_grouped_lost(struct kedge_groupeds *g, const struct kedge_id *job, uint32_t pause, uint32_t round,
                        uint64_t samples, double loss, double deviation);
/* Whether kedge_grouped_lost cannot answer with such numbers, so that a shift of this job's data would stay
 * unseen; yes once for a job, since its operator is told once. */
bool kedge_grouped_is_blind(struct kedge_groupeds *g, const struct kedge_id *job, uint64_t samples,
                            double deviation);

#endif
