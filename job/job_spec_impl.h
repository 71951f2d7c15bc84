/* Internal to chain: the parts of the job spec's parser. */
#ifndef KEDGE_JOB_JOB_SPEC_IMPL_H
#define KEDGE_JOB_JOB_SPEC_IMPL_H

#include "job/job_spec.h"

struct json_t;

/* Words of keys, in the order of their enums, NULL-terminated (keys.c). */
extern const char *const kedgei_words_selection[], *const kedgei_words_learning_rate_rule[];
extern const char *const kedgei_words_precision[], *const kedgei_words_grouping[];
extern const char *const kedgei_words_choose[], *const kedgei_words_shift[];
extern const char *const kedgei_words_standardize[], *const kedgei_words_metric[];

/* ---- job_spec_values.c ---- */
/* Notes what the key should be; returns KEDGE_E_FORMAT. */
int kedgei_spec_bad(struct kedge_diag *d, const char *key, const char *expected);
/* The place of a word among a key's. KEDGE_E_FORMAT names the key and lists the words. */
KEDGE_NODISCARD int kedgei_spec_word(const struct json_t *v, const char *key, const char *const *words,
                                     uint32_t *ret, struct kedge_diag *d);
/* A share in millionths, 1 … 1,000,000, exactly as written: "0.5", "1", "0.333333". KEDGE_E_FORMAT names the
 * key. */
KEDGE_NODISCARD int kedgei_spec_share(const struct json_t *v, const char *key, uint64_t *ret,
                                      struct kedge_diag *d);

/* Whether this job does anything with the option (job_spec_strategy.c). */
bool kedgei_spec_uses_option(const struct kedge_job_spec *s, const struct kedge_strategy_option *option);
/* What a coordinator does not run of a strategy; NULL: it runs all of it. */
const char *kedgei_spec_not_run(const struct kedge_strategy *row);
/* The i-th word of the key "server"; NULL past the last. */
const char *kedgei_spec_server_word(uint32_t i);
/* Key "external" (job_spec_external.c); and, once all keys are read, what such a job needs and cannot be. */
KEDGE_NODISCARD int kedgei_spec_read_external(const struct json_t *v, struct kedge_job_spec *s,
                                              struct kedge_diag *d);
KEDGE_NODISCARD int kedgei_spec_check_external(const struct kedge_job_spec *s, const struct json_t *root,
                                               struct kedge_diag *d);
/* Keys "classes", "standardize", "metric" (job_spec_data.c), once the model is read. */
KEDGE_NODISCARD int kedgei_spec_read_data(const struct json_t *root, struct kedge_job_spec *s,
                                          struct kedge_diag *d);
/* What "standardize": "federated" means together with all other keys. */
KEDGE_NODISCARD int kedgei_spec_check_data(const struct kedge_job_spec *s, struct kedge_diag *d);
/* What decides which other keys are read: "strategy" and what goes with it, "server", "rule", and whether
 * sites choose their batches; once "grouping" is read. */
KEDGE_NODISCARD int kedgei_spec_read_kind(const struct json_t *root, struct kedge_job_spec *s,
                                          struct kedge_diag *d);
/* Keys "strategy", "options", "server", "rule", "rule_fraction", "rule_bound", once "grouping" is read. */
KEDGE_NODISCARD int kedgei_spec_read_strategy(const struct json_t *root, struct kedge_job_spec *s,
                                              struct kedge_diag *d);
/* Key "control_sites" (job_spec_control.c), and what a job of strategy "scaffold" cannot be besides; once
 * all else of the strategy is read. */
KEDGE_NODISCARD int kedgei_spec_read_control(const struct json_t *root, struct kedge_job_spec *s,
                                             struct kedge_diag *d);
/* There is room for each file that a job of the spec makes (job_spec_layouts.c): KEDGE_E_TOO_LONG, _SHAPE. */
KEDGE_NODISCARD int kedgei_spec_check_room(const struct kedge_job_spec *s, struct kedge_diag *d);
/* Key "compression" (job_spec_compression.c), once strategy and rule are read. */
KEDGE_NODISCARD int kedgei_spec_read_compression(const struct json_t *root, struct kedge_job_spec *s,
                                                 struct kedge_diag *d);
/* Key "share" (job_spec_share.c), once strategy and model are read; and what does not go with a head, once
 * all keys are. */
KEDGE_NODISCARD int kedgei_spec_read_share(const struct json_t *root, struct kedge_job_spec *s,
                                           struct kedge_diag *d);
KEDGE_NODISCARD int kedgei_spec_check_share(const struct kedge_job_spec *s, struct kedge_diag *d);
/* Key "root_site" (job_spec_root.c), once the rule is read: there if and only if the rule needs one. Also the
 * least "sites_min", "quorum" and "sites_per_round" of such a job: the root's update and another. */
KEDGE_NODISCARD int kedgei_spec_read_root(const struct json_t *root, struct kedge_job_spec *s,
                                          struct kedge_diag *d);
/* Key "selection" (job_spec_selection.c), once the strategy is read. */
KEDGE_NODISCARD int kedgei_spec_read_selection(const struct json_t *root, struct kedge_job_spec *s,
                                               struct kedge_diag *d);
/* Key "budget" (job_spec_budget.c). */
KEDGE_NODISCARD int kedgei_spec_read_budget(const struct json_t *root, struct kedge_job_spec *s,
                                            struct kedge_diag *d);
/* Key "plan" (job_spec_plan.c), once the model and the strategy are read. */
KEDGE_NODISCARD int kedgei_spec_read_plan(const struct json_t *root, struct kedge_job_spec *s,
                                          struct kedge_diag *d);
/* Keys "targets", "hold" (job_spec_targets.c), once the metric, "evaluate_every" and the strategy are read.
 */
/* Key "sites_per_round", a number or a range; and what does not go with a range, once all keys are read. */
KEDGE_NODISCARD int kedgei_spec_read_cohort(const struct json_t *v, struct kedge_job_spec *s,
                                            struct kedge_diag *d);
KEDGE_NODISCARD int kedgei_spec_check_cohort(const struct json_t *root, struct kedge_job_spec *s,
                                             struct kedge_diag *d);
KEDGE_NODISCARD int kedgei_spec_read_needs(const struct json_t *root, struct kedge_job_spec *s,
                                           struct kedge_diag *d);
KEDGE_NODISCARD int kedgei_spec_read_targets(const struct json_t *root, struct kedge_job_spec *s,
                                             struct kedge_diag *d);
/* Of a strategy that has groups without a pre-training (job_spec_groups.c): "groups" and what goes with them,
 * once all keys are read. */
KEDGE_NODISCARD int kedgei_spec_check_groups(struct kedge_job_spec *s, const struct json_t *root,
                                             struct kedge_diag *d);
/* Key "choose" (job_spec_choose.c), once the strategy is known. */
KEDGE_NODISCARD int kedgei_spec_read_choose(const struct json_t *root, struct kedge_job_spec *s,
                                            struct kedge_diag *d);
/* Of an asynchronous strategy (job_spec_buffer.c): "buffer", "staleness_max" and what goes with them, once
 * all keys are read. */
KEDGE_NODISCARD int kedgei_spec_check_buffer(const struct kedge_job_spec *s, struct kedge_diag *d);
enum { KEDGEI_STALENESS_DEFAULT = 16 };
/* How many updates a round takes at most. */
uint64_t kedgei_spec_updates_most(const struct kedge_job_spec *s);
/* Directions of the job's groups may be estimated again, groups be cut and joined. */
bool kedgei_spec_lives(const struct kedge_job_spec *s);
/* Numbers of the groups' life, once the options are read. */
KEDGE_NODISCARD int kedgei_spec_check_trials(const struct kedge_job_spec *s, struct kedge_diag *d);
KEDGE_NODISCARD int kedgei_spec_check_refresh(const struct kedge_job_spec *s, struct kedge_diag *d);
/* Keys "batch", "batch_start", "batch_least", "batch_most", "learning_rate_rule" (job_spec_batch.c); and what
 * "auto" means together with all other keys. */
KEDGE_NODISCARD int kedgei_spec_read_batch(const struct json_t *root, struct kedge_job_spec *s,
                                           struct kedge_diag *d);
KEDGE_NODISCARD int kedgei_spec_check_batch(const struct kedge_job_spec *s, struct kedge_diag *d);
/* Most steps of the job's passes over so many samples: with the least batch. */
uint64_t kedgei_spec_steps_most(const struct kedge_job_spec *s, uint64_t samples);
/* What they mean together with all other keys, once these are read and their defaults taken. */
KEDGE_NODISCARD int kedgei_spec_check_strategy(const struct kedge_job_spec *s, struct kedge_diag *d);

#endif
