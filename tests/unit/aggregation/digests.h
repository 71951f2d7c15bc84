/* Every vector kernel over the same seeded inputs, in whatever way a caller may run it: one digest each, the
 * same for every way, compiler, instruction set and processor. No test library: scripts/check-neon runs it on
 * an emulated processor. */
#ifndef KEDGE_TESTS_UNIT_AGGREGATION_DIGESTS_H
#define KEDGE_TESTS_UNIT_AGGREGATION_DIGESTS_H

#include <stddef.h>
#include <stdint.h>

enum { DIGEST_THREADS_MAX = 3 };

struct digest_way {
    unsigned threads; /* that share the coordinates, 1 … DIGEST_THREADS_MAX */
    size_t tile;      /* coordinates of one call, at least 1 */
    size_t turn;      /* by how much the order in which updates came is turned */
};

struct digest {
    const char *name;
    uint64_t (*make)(const struct digest_way *way, size_t arg); /* 0: a call failed */
    size_t arg;
    uint64_t expect;
};

extern const struct digest digests[];
extern const size_t digests_count;

/* Before any other call. */
void digests_open(void);

#endif
