#include "aggregation/order.h"

#include "tests/unit/aggregation/support.h"

enum { N_MAX = 333, SHIFT = 3 };

/* of places, votes, nearest */
static const uint64_t golden[] = {UINT64_C(17599964488610715823), UINT64_C(522286828165189117),
                                  UINT64_C(5142135637233164251)};

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

static void check_votes(struct kedge_rng *rng, size_t count, uint64_t votes_max)
{
    uint64_t votes[KEDGE_ORDER_VECTORS_MAX];
    uint64_t all = 0;
    for (size_t k = 0; k < count; k++) {
        votes[k] = kedge_rng_below(rng, votes_max + 1);
        all += votes[k];
    }
    votes[0] += all == 0;
    all += all == 0;
    const uint64_t from = kedge_rng_below(rng, all);
    const uint64_t to = from + 1 + kedge_rng_below(rng, all - from);
    const size_t first = (size_t)kedge_rng_below(rng, SHIFT);
    const size_t n = (size_t)kedge_rng_below(rng, 40);
    fill(rng, count, first + n);
    FOR_EACH_SIMD(simd)
    {
        const struct kedge_order_columns c = columns_of(count, first, n, 7);
        ck_assert_int_eq(kedge_order_votes(&c, votes, from, to), KEDGE_OK);
        for (size_t i = first; i < first + n; i++) {
            check_same(&out[i], expect_places(count, i, votes, from, to, 7), "votes", count, i);
        }
    }
}

START_TEST(votes_equal_copies)
{
    struct kedge_rng rng = new_stream(12);
    for (size_t count = 1; count <= 7; count++) {
        for (int run = 0; run < 20; run++) {
            check_votes(&rng, count, 1 + (uint64_t)run);
        }
    }
    static const size_t counts[] = {16, 50, 129, 512};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        check_votes(&rng, counts[c], 9);
    }
}
END_TEST

/* One vote each is the same as none at all; so are two each, and as many as there may be. */
START_TEST(equal_votes_change_nothing)
{
    static const uint64_t each[] = {1, 2, 3, 1 << 20, KEDGE_ORDER_VOTES_MAX};
    struct kedge_rng rng = new_stream(13);
    uint64_t votes[KEDGE_ORDER_VECTORS_MAX];
    static float plain[N_MAX];
    for (size_t count = 1; count <= 512; count = count * 3 + 1) {
        fill(&rng, count, 60);
        struct kedge_order_columns c = columns_of(count, 0, 60, 20);
        const size_t cut = (count - 1) / 2;
        ck_assert_int_eq(kedge_order_mean(&c, cut, count - cut), KEDGE_OK);
        memcpy(plain, out, sizeof plain);
        for (size_t e = 0; e < sizeof each / sizeof *each; e++) {
            for (size_t k = 0; k < count; k++) {
                votes[k] = each[e];
            }
            ck_assert_int_eq(kedge_order_votes(&c, votes, cut * each[e], (count - cut) * each[e]), KEDGE_OK);
            ck_assert_mem_eq(out, plain, 60 * sizeof *out);
        }
    }
}
END_TEST

static void check_nearest(struct kedge_rng *rng, size_t count, size_t keep)
{
    const size_t first = (size_t)kedge_rng_below(rng, SHIFT);
    const size_t n = (size_t)kedge_rng_below(rng, count > 20 ? 70 : N_MAX);
    fill(rng, count, first + n);
    FOR_EACH_SIMD(simd)
    {
        const struct kedge_order_columns c = columns_of(count, first, n, 5);
        ck_assert_int_eq(kedge_order_nearest(&c, keep), KEDGE_OK);
        for (size_t i = first; i < first + n; i++) {
            check_same(&out[i], expect_nearest(count, i, keep, 5), "nearest", count, i);
        }
    }
}

START_TEST(nearest_equal_search)
{
    struct kedge_rng rng = new_stream(14);
    for (size_t count = 1; count <= 7; count++) {
        for (size_t keep = 1; keep <= count; keep++) {
            check_nearest(&rng, count, keep);
        }
    }
    check_nearest(&rng, 50, 30);
    check_nearest(&rng, 131, 3);
}
END_TEST

/* Of 0, 4, 8, 12 the median is 6; 4 and 8 are equally near, and so are 0 and 12: the lower is kept. */
START_TEST(ties_go_down)
{
    static const int32_t column[] = {12, 0, 8, 4};
    static const float expect[] = {4, 6, 4, 6};
    for (size_t k = 0; k < 4; k++) {
        values[k][0] = column[k];
        pointers[k] = values[k];
    }
    base[0] = 0;
    for (size_t keep = 1; keep <= 4; keep++) {
        const struct kedge_order_columns c = columns_of(4, 0, 1, 0);
        ck_assert_int_eq(kedge_order_nearest(&c, keep), KEDGE_OK);
        ck_assert(out[0] == expect[keep - 1]);
    }
}
END_TEST

/* Order of vectors and split into ranges change nothing, and the bytes are known. */
START_TEST(same_bytes_always)
{
    enum { COUNT = 23 };
    struct kedge_rng rng = new_stream(15);
    uint64_t votes[COUNT];
    fill(&rng, COUNT, N_MAX);
    for (size_t k = 0; k < COUNT; k++) {
        fill_ints(&rng, values[k], N_MAX, 1 << 20);
        votes[k] = kedge_rng_below(&rng, KEDGE_ORDER_VOTES_MAX + 1);
    }
    FOR_EACH_SIMD(simd)
    {
        uint64_t digest[3] = {FNV_START, FNV_START, FNV_START};
        const size_t a = (size_t)kedge_rng_below(&rng, COUNT);
        const size_t b = (size_t)kedge_rng_below(&rng, COUNT);
        const int32_t *pointer = pointers[a];
        const uint64_t vote = votes[a];
        pointers[a] = pointers[b];
        votes[a] = votes[b];
        pointers[b] = pointer;
        votes[b] = vote;
        for (size_t at = 0, n; at < N_MAX; at += n) {
            n = 1 + (size_t)kedge_rng_below(&rng, 130);
            n = n < N_MAX - at ? n : N_MAX - at;
            const struct kedge_order_columns c = columns_of(COUNT, at, n, 18);
            ck_assert_int_eq(kedge_order_mean(&c, 4, COUNT - 4), KEDGE_OK);
            digest[0] = fnv(digest[0], out + at, n * sizeof *out);
            ck_assert_int_eq(kedge_order_votes(&c, votes, 1 << 20, 9 << 20), KEDGE_OK);
            digest[1] = fnv(digest[1], out + at, n * sizeof *out);
            ck_assert_int_eq(kedge_order_nearest(&c, 11), KEDGE_OK);
            digest[2] = fnv(digest[2], out + at, n * sizeof *out);
        }
        for (size_t k = 0; k < 3; k++) {
            ck_assert_uint_eq(digest[k], golden[k]);
        }
    }
}
END_TEST

/* The result may take the place of the model. */
START_TEST(in_place)
{
    static float expect[N_MAX];
    const uint64_t votes[5] = {3, 1, 4, 1, 5};
    struct kedge_rng rng = new_stream(17);
    fill(&rng, 5, N_MAX);
    for (int kind = 0; kind < 3; kind++) {
        struct kedge_order_columns c = columns_of(5, 3, N_MAX - 3, 9);
        for (int place = 0; place < 2; place++) {
            c.base = place ? out : base;
            memcpy(out, base, sizeof out);
            int err = kind == 0   ? kedge_order_mean(&c, 1, 4)
                      : kind == 1 ? kedge_order_votes(&c, votes, 2, 9)
                                  : kedge_order_nearest(&c, 2);
            ck_assert_int_eq(err, KEDGE_OK);
            if (place) {
                ck_assert_mem_eq(out + 3, expect + 3, (N_MAX - 3) * sizeof *out);
            }
            memcpy(expect, out, sizeof expect);
        }
    }
}
END_TEST

START_TEST(refusals)
{
    struct kedge_rng rng = new_stream(16);
    fill(&rng, 5, 10);
    uint64_t votes[5] = {1, 1, 0, 1, 1};
    struct kedge_order_columns c = columns_of(5, 0, 10, 4);
    ck_assert_int_eq(kedge_order_mean(&c, 2, 2), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_order_mean(&c, 3, 2), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_order_mean(&c, 0, 6), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_order_nearest(&c, 0), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_order_nearest(&c, 6), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_order_votes(&c, votes, 0, 5), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_order_votes(&c, votes, 1, 1), KEDGE_E_ARG);
    votes[2] = KEDGE_ORDER_VOTES_MAX + 1;
    ck_assert_int_eq(kedge_order_votes(&c, votes, 0, 5), KEDGE_E_ARG);
    c.scale_bits = 31;
    ck_assert_int_eq(kedge_order_mean(&c, 0, 5), KEDGE_E_ARG);
    c = columns_of(0, 0, 10, 4);
    ck_assert_int_eq(kedge_order_mean(&c, 0, 0), KEDGE_E_ARG);
    c = columns_of(KEDGE_ORDER_VECTORS_MAX + 1, 0, 10, 4);
    ck_assert_int_eq(kedge_order_mean(&c, 0, 1), KEDGE_E_ARG);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {places_equal_sorting,
                                  votes_equal_copies,
                                  equal_votes_change_nothing,
                                  nearest_equal_search,
                                  ties_go_down,
                                  same_bytes_always,
                                  in_place,
                                  refusals,
                                  NULL};
    return run_tests("aggregation/order", tests);
}
