/* kedge-sim-check: runs seeds of the simulated federation and says which one broke what.
 *   --seeds A-B   (default 1-50)      --seed N      one seed       --verbose  every event on stderr
 *   --twice       each seed twice, digests must agree
 *   --expect-violation   the core has a planted bug: exit 0 when some seed finds it */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "sim/world.h"

struct options {
    uint64_t first, last;
    bool verbose, twice, expect;
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

static bool parse(int argc, char **argv, struct options *o)
{
    *o = (struct options){.first = 1, .last = 50};
    bool fine = true;
    for (int i = 1; i < argc && fine; i++) {
        if (strcmp(argv[i], "--verbose") == 0) {
            o->verbose = true;
        } else if (strcmp(argv[i], "--twice") == 0) {
            o->twice = true;
        } else if (strcmp(argv[i], "--expect-violation") == 0) {
            o->expect = true;
        } else if (strcmp(argv[i], "--seeds") == 0 && i + 1 < argc) {
            fine = parse_range(argv[++i], o);
        } else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
            fine = parse_number(argv[i + 1], strlen(argv[i + 1]), &o->first);
            o->last = o->first;
            i++;
        } else {
            fine = false;
        }
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

static struct result run(uint64_t seed, bool verbose)
{
    struct sim *w = sim_new(seed, verbose ? trace : NULL);
    struct result r = {.fine = sim_run(w), .digest = w->digest, .steps = w->steps};
    memcpy(r.why, w->why, sizeof r.why);
    sim_free(w);
    return r;
}

int main(int argc, char **argv)
{
    struct options o;
    if (!parse(argc, argv, &o)) {
        fprintf(
            stderr,
            "usage: kedge-sim-check [--seeds A-B | --seed N] [--twice] [--verbose] [--expect-violation]\n");
        return 2;
    }
    uint64_t digest = 0, steps = 0, failed = 0;
    for (uint64_t seed = o.first; seed <= o.last; seed++) {
        struct result r = run(seed, o.verbose);
        if (r.fine && o.twice && run(seed, false).digest != r.digest) {
            r.fine = false;
            (void)snprintf(r.why, sizeof r.why, "the same seed gave another digest");
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
    printf("seeds %llu-%llu: %llu failed, %llu events, digest %016llx\n", (unsigned long long)o.first,
           (unsigned long long)o.last, (unsigned long long)failed, (unsigned long long)steps,
           (unsigned long long)digest);
    return (failed > 0) != o.expect ? EXIT_FAILURE : EXIT_SUCCESS;
}
