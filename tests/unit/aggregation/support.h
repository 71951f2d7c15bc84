/* What the tests of aggregation share: a digest, random vectors, the loop over instruction sets. */
#ifndef KEDGE_TESTS_UNIT_AGGREGATION_SUPPORT_H
#define KEDGE_TESTS_UNIT_AGGREGATION_SUPPORT_H

#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "aggregation/simd.h"
#include "common/base/mem.h"
#include "common/base/rng.h"

__extension__ typedef __int128 int128; /* wide enough for every sum */

/* FNV-1a, 64 bits (Fowler, Noll, Vo), chained from one call to the next; start with FNV_START. */
#define FNV_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t fnv(uint64_t hash, const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static inline struct kedge_rng new_stream(uint64_t seed)
{
    struct kedge_rng rng;
    kedge_rng_init(&rng, seed, KEDGE_RNG_TEST, 0, 0);
    return rng;
}

static inline void *new_array(size_t count, size_t size)
{
    void *p = kedge_mem_new(count, size);
    ck_assert_ptr_nonnull(p);
    return p;
}

/* Uniform in [-limit, limit]. */
static inline int32_t draw_int(struct kedge_rng *rng, int32_t limit)
{
    return (int32_t)((int64_t)kedge_rng_below(rng, 2 * (uint64_t)limit + 1) - limit);
}

static inline void fill_ints(struct kedge_rng *rng, int32_t *out, size_t n, int32_t limit)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = draw_int(rng, limit);
    }
}

/* Uniform in [-size, size). */
static inline void fill_floats(struct kedge_rng *rng, float *out, size_t n, double size)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = (float)((2.0 * kedge_rng_unit(rng) - 1.0) * size);
    }
}

/* for each path that this machine has; leaves AUTO behind. */
static inline bool next_simd(enum kedge_simd *simd)
{
    while (*simd < KEDGE_SIMD_LAST) {
        *simd = (enum kedge_simd)(*simd + 1);
        if (kedge_simd_set(*simd) == KEDGE_OK) {
            return true;
        }
    }
    ck_assert_int_eq(kedge_simd_set(KEDGE_SIMD_AUTO), KEDGE_OK);
    return false;
}
#define FOR_EACH_SIMD(simd) for (enum kedge_simd simd = KEDGE_SIMD_AUTO; next_simd(&(simd));)

/* A chained hash for each path. */
static inline void start_hashes(uint64_t hash[KEDGE_SIMD_LAST + 1])
{
    for (int simd = 0; simd <= KEDGE_SIMD_LAST; simd++) {
        hash[simd] = FNV_START;
    }
}

/* Runs the tests of one file; `tests` ends with NULL. */
static inline int run_tests(const char *name, const TTest *const *tests)
{
    Suite *suite = suite_create(name);
    TCase *tcase = tcase_create(name);
    tcase_set_timeout(tcase, 60);
    for (size_t i = 0; tests[i]; i++) {
        tcase_add_test(tcase, tests[i]);
    }
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
