#include "aggregation/order.h"

#include "tests/unit/aggregation/support.h"

enum { N_MAX = 333, COUNT_MAX = 140, SHIFT = 3 };

static const uint64_t golden_mean = 0;
static const uint64_t golden_votes = 0;
static const uint64_t golden_nearest = 0;

static int32_t values[KEDGE_ORDER_VECTORS_MAX][N_MAX + SHIFT];
static const int32_t *pointers[KEDGE_ORDER_VECTORS_MAX];
static float base[N_MAX + SHIFT];
static float out[N_MAX + SHIFT];

/* Values of three sorts: all of int32, a few that are often equal, both ends. */
static void fill(struct kedge_rng *rng, size_t count, size_t n)
{
    static const int32_t ends[] = {INT32_MIN, INT32_MAX, 0, -1, 1};
    const uint64_t sort = kedge_rng_below(rng, 3);
    for (size_t k = 0; k < count; k++) {
        for (size_t i = 0; i < n; i++) {
            values[k][i] = sort == 0   ? (int32_t)(uint32_t)kedge_rng_u64(rng)
                           : sort == 1 ? draw_int(rng, 3)
                                       : ends[kedge_rng_below(rng, 5)];
        }
        pointers[k] = values[k];
    }
    fill_floats(rng, base, n, 2.0);
}

static struct kedge_order_columns columns_of(size_t count, size_t first, size_t n, unsigned scale_bits)
{
    return (struct kedge_order_columns){base, pointers, count, first, n, scale_bits, out + first};
}

/* ---- the naive way ---- */

struct vote {
    int32_t value;
    uint64_t votes;
};

static int compare_votes(const void *a, const void *b)
{
    const int32_t x = ((const struct vote *)a)->value;
    const int32_t y = ((const struct vote *)b)->value;
    return (x > y) - (x < y);
}

static void sort_column(size_t count, size_t i, const uint64_t *votes, struct vote *column)
{
    for (size_t k = 0; k < count; k++) {
        column[k] = (struct vote){values[k][i], votes ? votes[k] : 1};
    }
    qsort(column, count, sizeof *column, compare_votes);
}

static float close_sum(size_t i, int128 sum, uint64_t divisor, unsigned scale_bits)
{
    return (float)((double)base[i] + (double)sum / ((double)divisor * (double)(UINT64_C(1) << scale_bits)));
}

static float expect_places(size_t count, size_t i, const uint64_t *votes, uint64_t from, uint64_t to,
                           unsigned scale_bits)
{
    struct vote column[KEDGE_ORDER_VECTORS_MAX];
    sort_column(count, i, votes, column);
    int128 sum = 0;
    uint64_t place = 0;
    for (size_t k = 0; k < count; k++) {
        for (uint64_t copy = 0; copy < column[k].votes; copy++, place++) {
            sum += place >= from && place < to ? column[k].value : 0;
        }
    }
    return close_sum(i, sum, to - from, scale_bits);
}

/* Takes the nearest one by one. */
static float expect_nearest(size_t count, size_t i, size_t keep, unsigned scale_bits)
{
    struct vote column[KEDGE_ORDER_VECTORS_MAX];
    bool taken[KEDGE_ORDER_VECTORS_MAX] = {false};
    sort_column(count, i, NULL, column);
    const int64_t twice = (int64_t)column[(count - 1) / 2].value + column[count / 2].value;
    int128 sum = 0;
    for (size_t left = keep; left > 0; left--) {
        size_t best = count;
        for (size_t k = 0; k < count; k++) {
            const int64_t off = llabs(2 * (int64_t)column[k].value - twice);
            if (!taken[k] && (best == count || off < llabs(2 * (int64_t)column[best].value - twice))) {
                best = k;
            }
        }
        taken[best] = true;
        sum += column[best].value;
    }
    return close_sum(i, sum, keep, scale_bits);
}

static void check_same(const float *got, float expected, const char *what, size_t count, size_t i)
{
    if (memcmp(got, &expected, sizeof expected) != 0) {
        ck_abort_msg("%s: %s of %zu vectors, coordinate %zu: %a, expected %a",
                     kedge_simd_name(kedge_simd_get()), what, count, i, (double)*got, (double)expected);
    }
}

/* ---- tests ---- */

static void check_places(struct kedge_rng *rng, size_t count, size_t from, size_t to)
{
    const size_t first = (size_t)kedge_rng_below(rng, SHIFT);
    const size_t n = (size_t)kedge_rng_below(rng, count > 20 ? 70 : N_MAX);
    const unsigned scale_bits = (unsigned)kedge_rng_below(rng, 31);
    fill(rng, count, first + n);
    FOR_EACH_SIMD(simd)
    {
        const struct kedge_order_columns c = columns_of(count, first, n, scale_bits);
        memset(out, 0x11, sizeof out);
        const float untouched = out[0];
        ck_assert_int_eq(kedge_order_mean(&c, from, to), KEDGE_OK);
        for (size_t i = 0; i < n; i++) {
            check_same(&out[first + i], expect_places(count, first + i, NULL, from, to, scale_bits), "places",
                       count, first + i);
        }
        ck_assert(out[first + n] == untouched);
    }
}

/* Every number of vectors up to 7 with every range of places, and many numbers with some. */
START_TEST(places_equal_sorting)
{
    struct kedge_rng rng = new_stream(11);
    for (size_t count = 1; count <= 7; count++) {
        for (size_t from = 0; from < count; from++) {
            for (size_t to = from + 1; to <= count; to++) {
                check_places(&rng, count, from, to);
            }
        }
    }
    static const size_t counts[] = {8, 15, 16, 17, 33, 50, 64, 100, 127, 128, 129, 257, 512};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        const size_t count = counts[c];
        const size_t cut = count / 5;
        check_places(&rng, count, (count - 1) / 2, count / 2 + 1);
        check_places(&rng, count, cut, count - cut);
        check_places(&rng, count, count - 1, count);
    }
}
END_TEST

int main(void)
{
    (void)golden_mean;
    (void)golden_votes;
    (void)golden_nearest;
    (void)expect_nearest;
    const TTest *const tests[] = {places_equal_sorting, NULL};
    return run_tests("aggregation/order", tests);
}
