/* Internal to this room: a vector made by coordinates, tile by tile, over several threads. The tiles are cut
 * into shards, each of which has every so-manieth tile; so many of them are in hand at a time. Threads take
 * them in the order of the coordinates and end them in any; what comes of them is taken by the caller's
 * thread in the order of the coordinates again. A tile depends on no other one, so the bytes, and their one
 * digest, are those of one thread that makes tile after tile: for every cut (round/compute.h). */
#ifndef KEDGE_ROUND_SHARDS_H
#define KEDGE_ROUND_SHARDS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/diag.h"
#include "round/compute.h"

struct kedgei_tiles {
    void *arg;
    uint64_t values;   /* of the vector; 0: nothing is made */
    size_t tile_bytes; /* room for what comes of a tile */
    /* Values of the tile that begins at `first`, 1 or more. One thread at a time, forwards. */
    size_t (*length)(void *arg, uint64_t first);
    /* Makes values first … first + n − 1 into `out`. `thread` is below the number of threads: memory that
     * belongs to one thread goes by it; 0 is the caller's. */
    int (*make)(void *arg, unsigned thread, uint64_t first, size_t n, void *out, struct kedge_diag *d);
    /* In the order of the coordinates, on the caller's thread. */
    int (*take)(void *arg, uint64_t first, size_t n, const void *out);
};

/* Threads that a vector of so many values is worth, the caller's included: 1 … KEDGE_CUT_THREADS_MAX. */
unsigned kedgei_shards_threads(const struct kedge_cut *cut, uint64_t values);
/* All tiles, by `threads` threads (kedgei_shards_threads or fewer, 1 or more); where one cannot be started
 * the others do its work. The first error by coordinates ends it, as it would end one thread: what stands
 * before it was taken, nothing after it. KEDGE_E_NOMEM; errors of make and take. */
KEDGE_NODISCARD int kedgei_shards_run(const struct kedge_cut *cut, unsigned threads,
                                      const struct kedgei_tiles *tiles, struct kedge_diag *d);

#endif
