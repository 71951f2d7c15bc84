/* kedge sim for learning simulations: what its two forms, one run and a comparison, share with each other and
 * with kedge-sim-mpi. The simulation itself is sim/learn. */
#ifndef KEDGE_CLI_SIM_SIM_LEARN_H
#define KEDGE_CLI_SIM_SIM_LEARN_H

#include "cli/cli.h"
#include "sim/learn/report/report_run.h"

enum { KEDGE_CLI_THREADS_MAX = 64 };

struct kedge_cli_learn {
    struct kedge_cli *c;
    const char *path;          /* SPEC.json */
    struct kedge_view text;    /* its content, borrowed */
    const char *out, *compare; /* NULL: absent */
    bool resume;
    uint64_t threads, processes, save_every, seeds;
    const struct kedge_learn_exchange *exchange; /* of kedge-sim-mpi, else NULL */
    kedge_learn_run_fn *run;                     /* NULL: the engine's */
};

/* Takes the options out of c's arguments. False after a usage error. */
bool kedge_cli_learn_options(struct kedge_cli *c, struct kedge_cli_learn *ret);
/* The name of an option that only a learning simulation has and that was given; NULL: none was. */
const char *kedge_cli_learn_option_of(const struct kedge_cli_learn *l);
/* Whether this process is the one that speaks. */
bool kedge_cli_learn_speaks(const struct kedge_cli_learn *l);

/* Runs or compares; the exit code. */
int kedge_cli_sim_learn(struct kedge_cli_learn *l);
int kedge_cli_sim_compare(struct kedge_cli_learn *l);
/* Instead of running anything: the job is printed; the job and its data go into dir. */
int kedge_cli_sim_print_job(const struct kedge_cli_learn *l);
int kedge_cli_sim_export(const struct kedge_cli_learn *l, const char *dir);

/* One run: the spec's variant (NULL: none), its seed that many above the spec's own, into `out`. */
KEDGE_NODISCARD int kedge_cli_learn_spec(const struct kedge_cli_learn *l, const char *variant, uint32_t seed,
                                         struct kedge_learn_spec *ret, struct kedge_diag *d);
KEDGE_NODISCARD int kedge_cli_learn_run(const struct kedge_cli_learn *l, const struct kedge_learn_spec *spec,
                                        const char *out, bool resume,
                                        bool (*on_round)(void *, const struct kedge_learn_round *, bool),
                                        void *arg, struct kedge_learn_result *ret, struct kedge_diag *d);
/* Draws dir/NAME.svg and .png. Where there is no gnuplot that is said, and no error. */
KEDGE_NODISCARD int kedge_cli_learn_draw(const struct kedge_cli_learn *l, const char *dir, const char *name,
                                         const struct kedge_buf *script, struct kedge_diag *d);
struct kedge_cli_percent {
    char s[24];
};
/* "95.42", or "-" for what is not known; in percent. */
struct kedge_cli_percent kedge_cli_learn_percent(double share);
/* "1.2 GB" */
struct kedge_cli_percent kedge_cli_learn_bytes(double bytes);
/* An error of the spec is usage, 2; others as elsewhere. */
int kedge_cli_learn_fail(const struct kedge_cli_learn *l, int err, const struct kedge_diag *d);

#endif
