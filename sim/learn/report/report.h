/* What a learning simulation says: a line per round as JSON and CSV, a summary, and all of it as bytes from
 * which a run goes on. The columns and measures are tables; NAN is "not known": null in JSON, nothing in CSV.
 * Reals are the shortest decimals that read back to the same binary64, so equal runs give equal bytes. Pure.
 */
#ifndef KEDGE_SIM_LEARN_REPORT_REPORT_H
#define KEDGE_SIM_LEARN_REPORT_REPORT_H

#include "common/base/bytes.h"
#include "crypto/hash.h"
#include "sim/learn/learn.h"

/* ---- rounds ---- */

/* One more than the highest group with members: some below may have none. */
uint32_t kedge_learn_group_slots(const struct kedge_learn_round *round);
/* One JSON object and a line feed. */
void kedge_learn_put_json_line(const struct kedge_learn_round *round, struct kedge_buf *out);
/* The line of column names, and a round's; with a line feed each. "members" is a list with blanks between. */
void kedge_learn_put_csv_head(struct kedge_buf *out);
void kedge_learn_put_csv_line(const struct kedge_learn_round *round, struct kedge_buf *out);

/* ---- summary ---- */

/* name, what it is. "last": the mean of the last ten evaluated rounds. */
#define KEDGE_LEARN_MEASURES(X)                                                          \
    X(accuracy_max, "largest absolute test accuracy of any round")                       \
    X(accuracy_last, "absolute test accuracy, mean of the last ten rounds")              \
    X(sites_last, "mean accuracy over sites, last ten rounds")                           \
    X(worst_last, "mean accuracy of the worst tenth of the sites, last ten rounds")      \
    X(auxiliary_max, "largest accuracy of the mean of the groups' models")               \
    X(auxiliary_last, "its mean of the last ten rounds")                                 \
    X(personal_max, "largest accuracy of the sites' own models (Ditto, fine-tuning)")    \
    X(personal_last, "its mean of the last ten rounds")                                  \
    X(personal_worst_last, "the worst tenth of the sites by their own models")           \
    X(backdoor_last, "triggered samples that get the attacker's label, last ten rounds") \
    X(rand_max, "largest adjusted Rand index against the planted groups")                \
    X(rand_last, "its mean of the last ten rounds")                                      \
    X(bytes, "bytes sent up and down")                                                   \
    X(updates, "updates that sites sent")                                                \
    X(virtual_s, "virtual seconds")                                                      \
    X(joules, "energy of all sites")                                                     \
    X(detections, "shifts that sites noticed")                                           \
    X(migrations, "sites that changed their group")

enum kedge_learn_measure {
#define KEDGE_LEARN_MEASURE_ENUM(name, what) KEDGE_LEARN_MEASURE_##name,
    KEDGE_LEARN_MEASURES(KEDGE_LEARN_MEASURE_ENUM)
#undef KEDGE_LEARN_MEASURE_ENUM
        KEDGE_LEARN_MEASURE_COUNT
};
struct kedge_learn_summary {
    uint32_t rounds;                         /* that were run */
    uint32_t round_of_max;                   /* of accuracy_max, the first one */
    double value[KEDGE_LEARN_MEASURE_COUNT]; /* NAN: not known */
    uint64_t digest;                         /* the last round's */
};
const char *kedge_learn_measure_name(enum kedge_learn_measure m);

/* Of `count` rounds in their order. */
void kedge_learn_summarise(const struct kedge_learn_round *rounds, size_t count,
                           struct kedge_learn_summary *ret);
/* The members of a JSON object, without braces. */
void kedge_learn_put_summary(const struct kedge_learn_summary *s, struct kedge_buf *out);
/* A real, or null for NAN and infinities. */
void kedge_learn_put_real(struct kedge_buf *out, double v);

/* ---- a run as bytes ---- */

struct kedge_learn_saved {
    struct kedge_hash spec;           /* SHA-256 of kedge_learn_spec_put's bytes */
    bool complete;                    /* nothing is left to run; then there is no state */
    uint64_t spent_ms;                /* wall-clock time so far */
    struct kedge_learn_round *rounds; /* owned after decoding */
    uint32_t count;
    struct kedge_view state; /* the engine's, borrowed */
};
/* Appends magic, version, all of it and a SHA-256 of that. */
void kedge_learn_put_saved(const struct kedge_learn_saved *s, struct kedge_buf *out);
/* KEDGE_E_VERSION: another version's or program's; KEDGE_E_CORRUPT: altered or cut; KEDGE_E_NOMEM. state
 * points into bytes; the rounds are freed by kedge_mem_free. */
KEDGE_NODISCARD int kedge_learn_read_saved(struct kedge_view bytes, struct kedge_learn_saved *ret,
                                           struct kedge_diag *reterr);

#endif
