/* kedge sim with a crowd: how much processor time a round takes when a million sites could be asked. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/sim/sim.h"
#include "common/base/os/clock.h"

struct watch {
    struct kedge_cli *c;
    const struct kedge_crowd_spec *spec;
    double first_s, last_s; /* processor time when the first and the last round had been closed */
};

/* The first round is left out of the rate, because what happens only once is in it. */
static void round_done(void *arg, uint32_t rounds)
{
    struct watch *w = arg;
    w->last_s = 1e-9 * (double)kedge_os_processor_ns();
    w->first_s = rounds == 1 ? w->last_s : w->first_s;
    kedge_cli_progress(w->c, "simulating", rounds, w->spec->rounds, "rounds");
}

int kedge_cli_sim_crowd(struct kedge_cli *c, const struct kedge_crowd_spec *spec)
{
    struct kedge_diag d = {.text = ""};
    struct watch w = {.c = c, .spec = spec};
    struct kedge_crowd_outcome o;
    int err = kedge_crowd_run(spec, round_done, &w, &o, &d);
    kedge_cli_progress_end(c);
    if (err) {
        return kedge_cli_fail(c, err, &d);
    }
    double seconds = w.last_s - w.first_s;
    double rate = o.rounds > 1 && seconds > 0 ? (double)(o.rounds - 1) / seconds : 0;
    kedge_cli_say(
        c, "%u sites of %u tenants, %u of them in each of %llu rounds: %llu updates, each counted once\n",
        spec->sites, spec->tenants, spec->sites_per_round, (unsigned long long)o.rounds,
        (unsigned long long)o.updates);
    if (rate > 0) {
        kedge_cli_say(c, "%.1f rounds a second of processor time after the first; %.0f virtual seconds\n",
                      rate, (double)o.virtual_ns * 1e-9);
    }
    kedge_cli_say(c, "digest %016llx\n", (unsigned long long)o.digest);
    if (!o.holds) {
        kedge_cli_say(c, "BROKEN: %s\n", o.why);
    }
    char digest[17];
    snprintf(digest, sizeof digest, "%016llx", (unsigned long long)o.digest);
    json_t *data = json_pack("{s:b,s:s?,s:I,s:I,s:I,s:I,s:f,s:s}", "holds", o.holds, "violation", o.why,
                             "rounds", (json_int_t)o.rounds, "updates", (json_int_t)o.updates, "events",
                             (json_int_t)o.events, "virtual_ms", (json_int_t)(o.virtual_ns / 1000000),
                             "rounds_per_processor_s", rate, "digest", digest);
    return kedge_cli_answer(c, data, o.holds ? 0 : 1);
}
