/* Pictures of learning simulations, drawn by gnuplot: accuracy against rounds, virtual time, bytes and
 * joules, with the legend outside; members of groups over the rounds, stacked; variants beside each other
 * with bands. Colours are Okabe and Ito's, which all eyes tell apart; beyond eight, dashes (lines) and tints
 * (areas) tell the rest apart. The scripts hold their data, so that a folder's pictures can be drawn again
 * and otherwise. Pure, but for kedge_learn_plot_draw. */
#ifndef KEDGE_SIM_LEARN_REPORT_PLOT_H
#define KEDGE_SIM_LEARN_REPORT_PLOT_H

#include "common/base/bytes.h"
#include "sim/learn/learn.h"

/* Names of pictures; each is drawn as NAME.svg and NAME.png from NAME.gp. */
#define KEDGE_LEARN_PLOT_ACCURACY "accuracy"
#define KEDGE_LEARN_PLOT_GROUPS "groups"
#define KEDGE_LEARN_PLOT_COMPARE "compare"

/* Lines of one run: its accuracy in several senses, those that are known. Title and names are identifiers. */
void kedge_learn_plot_accuracy(const char *title, const struct kedge_learn_round *rounds, uint32_t count,
                               struct kedge_buf *out);
/* Whether there are groups to draw. */
bool kedge_learn_plot_has_groups(const struct kedge_learn_round *rounds, uint32_t count);
void kedge_learn_plot_groups(const char *title, const struct kedge_learn_round *rounds, uint32_t count,
                             struct kedge_buf *out);

/* One variant's runs over the seeds. */
struct kedge_learn_curve {
    const char *name;
    uint32_t seeds;
    const struct kedge_learn_round *const *rounds; /* by seed */
    const uint32_t *counts;                        /* of rounds, by seed */
};
/* Mean absolute test accuracy over the seeds, with its 95 % confidence band where there are two or more; what
 * lies on the x axis is the mean, too. Rounds that not all seeds have are left out. */
void kedge_learn_plot_compare(const char *title, const struct kedge_learn_curve *curves, uint32_t count,
                              struct kedge_buf *out);

/* Writes script as dir/NAME.gp and has gnuplot draw it there. KEDGE_E_NOT_FOUND with a hint when there is no
 * gnuplot, KEDGE_E_IO when it failed: gnuplot.log in dir has its words. */
KEDGE_NODISCARD int kedge_learn_plot_draw(const char *dir, const char *name, struct kedge_view script,
                                          struct kedge_diag *reterr);

#endif
