/* kedge-sim-check: runs seeds of the simulated federation and says which one broke what.
 *   --seeds A-B   (default 1-50)      --seed N      one seed       --verbose  every event on stderr
 *   --twice       each seed twice, digests must agree
 *   --real N      every N-th seed once more with the signatures and trees of chain/: the same digest
 *   --coverage    how often each fault and each rare branch came; one that never did is a failure
 *   --expect-violation   the core has a planted bug: exit 0 when some seed finds it
 *   --mutant N    which bug is planted; of kedge-sim-mutants alone */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/planted.h"
#include "common/base/text.h"
#include "sim/world.h"

#ifdef KEDGE_MUTANTS
unsigned kedge_mutant;
#endif

struct options {
    uint64_t first, last, real;
    bool verbose, twice, expect, coverage;
};

struct coverage {
    uint64_t faults[SIM_FAULT_COUNT], coord[KEDGE_COORD_RARE_COUNT], site[KEDGE_SITE_RARE_COUNT];
};

static bool parse_number(const char *text, size_t len, uint64_t *ret)
{
    return kedge_decimal_decode(kedge_view_of(text, len), UINT64_MAX, ret) == KEDGE_OK;
}

static bool parse_range(const char *text, struct options *o)
{
    const char *dash = strchr(text, '-');
    return dash && parse_number(text, (size_t)(dash - text), &o->first)
           && parse_number(dash + 1, strlen(dash + 1), &o->last) && o->first <= o->last;
}

static bool parse_flag(const char *arg, struct options *o)
{
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {{"--verbose", &o->verbose},
                 {"--twice", &o->twice},
                 {"--coverage", &o->coverage},
                 {"--expect-violation", &o->expect}};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        if (strcmp(arg, flags[i].name) == 0) {
            *flags[i].flag = true;
            return true;
        }
    }
    return false;
}

static bool plant(const char *number)
{
#ifdef KEDGE_MUTANTS
    uint64_t n = 0;
    bool fine = parse_number(number, strlen(number), &n) && n > 0 && n <= 1000;
    kedge_mutant = (unsigned)n;
    return fine;
#else
    (void)number;
    return false;
#endif
}

static bool parse(int argc, char **argv, struct options *o)
{
    *o = (struct options){.first = 1, .last = 50};
    bool fine = true;
    for (int i = 1; i < argc && fine; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (parse_flag(argv[i], o)) {
            continue;
        }
        if (strcmp(argv[i], "--seeds") == 0 && value) {
            fine = parse_range(value, o);
        } else if (strcmp(argv[i], "--seed") == 0 && value) {
            fine = parse_number(value, strlen(value), &o->first);
            o->last = o->first;
        } else if (strcmp(argv[i], "--real") == 0 && value) {
            fine = parse_number(value, strlen(value), &o->real) && o->real > 0;
        } else if (strcmp(argv[i], "--mutant") == 0 && value) {
            fine = plant(value);
        } else {
            fine = false;
        }
        i++;
    }
    return fine;
}

static void trace(uint64_t now_ns, const char *what, uint64_t a, uint64_t b, uint64_t c)
{
    fprintf(stderr, "%10.3f %-16s %lld %lld %lld\n", (double)now_ns / 1e9, what, (long long)a, (long long)b,
            (long long)c);
}

struct result {
    bool fine;
    uint64_t digest, steps;
    char why[256];
};

static struct result run(uint64_t seed, bool real, bool verbose, struct coverage *coverage)
{
    struct sim *w = sim_new(seed, real, verbose ? trace : NULL);
    struct result r = {.fine = sim_run(w), .digest = w->digest, .steps = w->steps};
    memcpy(r.why, w->why, sizeof r.why);
    for (int i = 0; i < SIM_FAULT_COUNT; i++) {
        coverage->faults[i] += w->fired[i];
    }
    for (int i = 0; i < KEDGE_COORD_RARE_COUNT; i++) {
        coverage->coord[i] += w->coord_rare.fired[i];
    }
    for (int i = 0; i < KEDGE_SITE_RARE_COUNT; i++) {
        coverage->site[i] += w->site_rare.fired[i];
    }
    sim_free(w);
    return r;
}

/* The same seed once more, in another way: nothing may happen differently. */
static void run_again(uint64_t seed, bool real, struct result *r, struct coverage *coverage)
{
    struct result other = run(seed, real, false, coverage);
    if (r->fine && !other.fine) {
        *r = other;
    } else if (r->fine && other.digest != r->digest) {
        r->fine = false;
        (void)snprintf(r->why, sizeof r->why, "%s gave another digest, %016llx",
                       real ? "real signatures" : "the same seed", (unsigned long long)other.digest);
    }
}

static void say_count(const char *kind, const char *name, uint64_t count, bool *all)
{
    printf("%-12s %-60s %10llu%s\n", kind, name, (unsigned long long)count, count ? "" : "  NEVER");
    *all = *all && count > 0;
}

/* True when everything came at least once. */
static bool say_coverage(const struct coverage *c)
{
    bool all = true;
    for (int i = 0; i < SIM_FAULT_COUNT; i++) {
        say_count("fault", sim_fault_text((enum sim_fault)i), c->faults[i], &all);
    }
    for (int i = 0; i < KEDGE_COORD_RARE_COUNT; i++) {
        say_count("rare, server", kedge_coord_rare_name((enum kedge_coord_rare_site)i), c->coord[i], &all);
    }
    for (int i = 0; i < KEDGE_SITE_RARE_COUNT; i++) {
        say_count("rare, site", kedge_site_rare_name((enum kedge_site_rare_site)i), c->site[i], &all);
    }
    return all;
}

int main(int argc, char **argv)
{
    struct options o;
    static struct coverage coverage;
    if (!parse(argc, argv, &o)) {
        fprintf(stderr, "usage: kedge-sim-check [--seeds A-B | --seed N] [--twice] [--real N] [--coverage] "
                        "[--verbose] [--expect-violation] [--mutant N]\n");
        return 2;
    }
    uint64_t digest = 0, steps = 0, failed = 0;
    for (uint64_t i = 0; i <= o.last - o.first; i++) {
        uint64_t seed = o.first + i;
        struct result r = run(seed, false, o.verbose, &coverage);
        if (o.twice) {
            run_again(seed, false, &r, &coverage);
        }
        if (o.real && seed % o.real == 0) {
            run_again(seed, true, &r, &coverage);
        }
        if (!r.fine) {
            printf("seed %llu: %s (digest %016llx)\n", (unsigned long long)seed, r.why,
                   (unsigned long long)r.digest);
            failed++;
            if (o.expect) {
                return EXIT_SUCCESS;
            }
        }
        digest = sim_hash(digest ^ r.digest, &seed, sizeof seed);
        steps += r.steps;
    }
    bool covered = !o.coverage || say_coverage(&coverage);
    printf("seeds %llu-%llu: %llu failed, %llu events, digest %016llx\n", (unsigned long long)o.first,
           (unsigned long long)o.last, (unsigned long long)failed, (unsigned long long)steps,
           (unsigned long long)digest);
    return (failed > 0) != o.expect || !covered ? EXIT_FAILURE : EXIT_SUCCESS;
}
