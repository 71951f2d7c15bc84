/* The trainer's answer as the site reads it (the contract is in docs/modules/train.md). The trainer is the
 * owner's program, but any program: what it says goes into signed statements. Pure. */
#ifndef KEDGE_CLIENT_DAEMON_TRAINER_METRICS_H
#define KEDGE_CLIENT_DAEMON_TRAINER_METRICS_H

#include "chain/statement/statement.h"
#include "client/daemon/update/shift.h"
#include "common/base/trouble.h"

enum { KEDGE_METRICS_LINE_MAX = 65536 };

enum { KEDGE_METRICS_ID_MAX = 31, KEDGE_METRICS_FALLBACK_MAX = 255 };

struct kedge_metrics {                 /* what the trainer tells of a task */
    char id[KEDGE_METRICS_ID_MAX + 1]; /* what it answers; "": it does not say, or at length */
    uint64_t samples, steps, test_samples, test_correct;
    uint64_t data_samples; /* that there are, where it trained on a part of them; 0: it does not say */
    double seconds, test_loss;
    bool has_personal; /* of the site's own model, or of what it has just trained, on the test set */
    uint64_t personal_correct;
    double personal_loss;
    bool has_trial; /* of the trial of two groups on the test set, which is asked for by itself */
    uint64_t trial_correct;
    double trial_loss;
    double test_deviation; /* of the losses on single test samples; below 0: the trainer does not tell */
    bool has_base_loss;
    double base_loss;                     /* of the base model on the site's training data, not below 0 */
    struct kedge_labels labels;           /* of the training data, where the trainer tells */
    char engine[KEDGE_ST_ENGINE_MAX + 1]; /* never empty; a longer name is cut */
    char classes[KEDGE_CLASS_NAMES_ROOM]; /* labels that it found in the data; none where it does not tell */
    char fallback[KEDGE_METRICS_FALLBACK_MAX + 1]; /* why another device than was asked for; "": none; cut */
};

/* One line without its end. `train`: samples and steps are wanted; `test`: the test's result is taken where
 * there is one, else its fields stay 0. KEDGE_E_TRAINER with the trainer's own message, or what its answer
 * lacks. */
KEDGE_NODISCARD int kedge_metrics_parse(struct kedge_view line, bool train, bool test,
                                        struct kedge_metrics *ret, struct kedge_diag *reterr);
/* Of a line that says an error: by its "code" why the task could not be done. */
enum kedge_trouble kedge_metrics_trouble(struct kedge_view line);

#endif
