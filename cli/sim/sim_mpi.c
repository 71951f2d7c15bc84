/* kedge-sim-mpi: learning simulations of `kedge sim` over the machines of an mpirun, with the same results
 * bit for bit. A program of its own, so that kedge itself needs no MPI. Rank 0 speaks and writes; every rank
 * reads SPEC.json and the data from its own disk. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/local.h"
#include "cli/sim/sim_learn.h"
#include "common/base/os/log.h"
#include "sim/learn/exchange_mpi.h"
#include "sim/learn/exchange_process.h"
#include "sim/learn/spec/spec_json.h"

static int run_sim(struct kedge_cli *c);

/* The command's row, which kedge has in commands.c: usage errors and the help of options read it. */
static const struct kedge_command command = {
    "sim",
    "",
    run_sim,
    "SPEC.json [--out DIR] [--resume] [--compare A,B,…] [--seeds N] [--threads N] [--save-every ROUNDS] "
    "[--format json|text]",
    "a learning simulation over the processes of mpirun",
    KEDGE_FOR_RESEARCH,
    "mpirun -n 4 kedge-sim-mpi spec.json --out runs"};

static struct kedge_learn_exchange exchange;

/* All ranks read the same spec, or none begins. */
static int same_spec(struct kedge_view text, struct kedge_diag *d)
{
    struct kedge_hash mine, all[KEDGE_LEARN_PROCESSES_MAX];
    uint64_t lens[KEDGE_LEARN_PROCESSES_MAX];
    kedge_sha256(text, &mine);
    int err = exchange.allgather(exchange.arg, mine.b, sizeof mine.b, all, sizeof mine.b, lens);
    for (uint32_t r = 1; r < exchange.size && !err; r++) {
        if (!kedge_hash_eq(&all[r], &all[0])) {
            (void)kedge_diag_set(d, KEDGE_E_STATE, "rank %u has another SPEC.json than rank 0", r);
            (void)kedge_diag_hint(d, "give every machine the same file, or one that they share");
            return KEDGE_E_STATE;
        }
    }
    return err ? kedge_diag_set(d, err, "another rank is gone") : KEDGE_OK;
}

static int run_sim(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_cli_learn learn = {.c = c};
    struct kedge_buf text;
    if (!kedge_cli_learn_options(c, &learn) || !kedge_cli_no_more(c, 1)) {
        return 2;
    }
    learn.exchange = &exchange;
    learn.path = kedge_cli_argument(c, 0);
    if (!learn.path || learn.processes) {
        return kedge_cli_usage(c,
                               learn.path ? "--processes: mpirun -n says how many" : "SPEC.json is missing");
    }
    kedge_buf_init(&text, KEDGE_LEARN_SPEC_TEXT_MAX);
    int err = kedge_file_read(learn.path, &text, &d);
    if (!err) {
        err = same_spec(kedge_buf_view(&text), &d);
    }
    learn.text = kedge_buf_view(&text);
    int code = err ? kedge_cli_learn_fail(&learn, err, &d) : kedge_cli_sim_learn(&learn);
    kedge_buf_deinit(&text);
    return code;
}

/* MPI takes its own words out of the command line first. From then on every way out goes through
 * kedge_learn_mpi_end, or the other ranks would wait for this one for ever. */
int main(int argc, char **argv)
{
    struct kedge_diag d = {.text = ""};
    umask(077);
    signal(SIGPIPE, SIG_IGN);
    kedge_log_init("kedge-sim-mpi", KEDGE_LOG_WARN);
    int err = kedge_learn_mpi_begin(&argc, &argv, &exchange, &d);
    struct kedge_cli c = {.argc = argc > 0 ? argc - 1 : 0, .argv = argv + 1, .command = &command};
    if (err || exchange.size > KEDGE_LEARN_PROCESSES_MAX) {
        fprintf(stderr, "kedge-sim-mpi: %s\n", err ? d.text : "more ranks than it takes");
        kedge_learn_mpi_end(2);
        return 2;
    }
    /* Beside rank 0 nobody has anything to say on stdout, and an error that all meet is said once. */
    if (exchange.rank > 0 && (!freopen("/dev/null", "w", stdout) || argc < 2)) {
        kedge_learn_mpi_end(70);
        return 70;
    }
    c.json = strcmp(kedge_cli_option(&c, "format", "text"), "json") == 0;
    int code = kedge_crypto_init() ? 70 : run_sim(&c);
    kedge_learn_mpi_end(code);
    return code;
}
