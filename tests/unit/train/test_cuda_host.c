/* The device in plain C (tests/fixtures/gpu_host/device.h) finds what it is there to find: kernels that lack
 * a barrier, pass one not all together, or read shared memory that nobody wrote are wrong in some order of
 * threads, and the same kernels as they should be in none. */
#include "tests/fixtures/gpu_host/device.h"

#include <check.h>

enum { COUNT = 2 * KEDGE_GPU_THREADS };

struct turn_args {
    const float *in;
    float *out;
};

/* Each block's values, each from its neighbour by way of shared memory. */
KEDGE_KERNEL(turn_kernel, struct turn_args)
{
    KEDGE_SHARED(float, tile, KEDGE_GPU_THREADS);
    const size_t t = kedge_gpu_thread(), at = kedge_gpu_block() * KEDGE_GPU_THREADS + t;
    tile[t] = a.in[at];
    KEDGE_BARRIER();
    a.out[at] = tile[(t + 1) % KEDGE_GPU_THREADS];
}

KEDGE_KERNEL(turn_without_barrier, struct turn_args)
{
    KEDGE_SHARED(float, tile, KEDGE_GPU_THREADS);
    const size_t t = kedge_gpu_thread(), at = kedge_gpu_block() * KEDGE_GPU_THREADS + t;
    tile[t] = a.in[at];
    a.out[at] = tile[(t + 1) % KEDGE_GPU_THREADS];
}

/* A tree whose last barrier of a step is missing: who adds first reads what was not added yet. */
KEDGE_KERNEL(sum_without_barrier, struct turn_args)
{
    KEDGE_SHARED(float, part, KEDGE_GPU_THREADS);
    const size_t t = kedge_gpu_thread();
    part[t] = a.in[kedge_gpu_block() * KEDGE_GPU_THREADS + t];
    KEDGE_BARRIER();
    for (size_t half = KEDGE_GPU_THREADS / 2; half > 0; half /= 2) {
        if (t < half) {
            part[t] += part[t + half];
        }
    }
    if (t == 0) {
        a.out[kedge_gpu_block()] = part[0];
    }
}

KEDGE_KERNEL(sum_kernel, struct turn_args)
{
    KEDGE_SHARED(float, part, KEDGE_GPU_THREADS);
    const size_t t = kedge_gpu_thread();
    part[t] = a.in[kedge_gpu_block() * KEDGE_GPU_THREADS + t];
    KEDGE_BARRIER();
    for (size_t half = KEDGE_GPU_THREADS / 2; half > 0; half /= 2) {
        if (t < half) {
            part[t] += part[t + half];
        }
        KEDGE_BARRIER();
    }
    if (t == 0) {
        a.out[kedge_gpu_block()] = part[0];
    }
}

/* Half of the threads leave before the barrier. */
KEDGE_KERNEL(leave_kernel, struct turn_args)
{
    if (kedge_gpu_thread() < KEDGE_GPU_THREADS / 2) {
        a.out[kedge_gpu_thread()] = 0.0f;
        return;
    }
    KEDGE_BARRIER();
}

/* Two blocks write one place: who is last wins. */
KEDGE_KERNEL(blocks_race, struct turn_args)
{
    if (kedge_gpu_thread() == 0) {
        a.out[0] = (float)kedge_gpu_block();
    }
}

static float in[COUNT], out[COUNT];
static struct kedge_gpu_stream stream;

/* How many of the five orders give what turning and adding should. */
static int right_in(void (*kernel)(const void *), const char *name, bool sums)
{
    int right = 0;
    for (int order = 0; order < 5; order++) {
        struct turn_args args = {in, out};
        bool is_right = true;
        kedge_gpu_host.order = order == 0   ? KEDGE_GPU_ASCENDING
                               : order == 1 ? KEDGE_GPU_DESCENDING
                                            : KEDGE_GPU_SHUFFLED;
        kedge_gpu_host.seed = (uint64_t)order;
        memset(out, 0, sizeof out);
        kedge_gpu_host_launch(&stream, kernel, name, 2, KEDGE_GPU_THREADS, false, &args, sizeof args);
        for (size_t i = 0; i < COUNT; i++) {
            const size_t block = i / KEDGE_GPU_THREADS, t = i % KEDGE_GPU_THREADS;
            if (!sums) {
                is_right = is_right && out[i] == in[block * KEDGE_GPU_THREADS + (t + 1) % KEDGE_GPU_THREADS];
            } else if (t == 0) {
                float sum = 0;
                for (size_t j = 0; j < KEDGE_GPU_THREADS; j++) {
                    sum += in[i + j];
                }
                is_right = is_right && out[block] == sum; /* whole numbers: any order is exact */
            }
        }
        right += is_right ? 1 : 0;
    }
    return right;
}

static void set_up(void)
{
    kedge_gpu_host.failed = NULL;
    ck_assert_int_eq(kedge_gpu_open(&stream), 0);
    for (size_t i = 0; i < COUNT; i++) {
        in[i] = (float)(i * 7 % 31 + 1);
    }
}

static void tear_down(void)
{
    kedge_gpu_close(&stream);
}

START_TEST(right_kernels_are_right_in_every_order)
{
    ck_assert_int_eq(right_in(turn_kernel, "turn", false), 5);
    ck_assert_int_eq(right_in(sum_kernel, "sum", true), 5);
    ck_assert_ptr_null(kedge_gpu_host.failed);
}
END_TEST

START_TEST(a_missing_barrier_is_seen)
{
    ck_assert_int_eq(right_in(turn_without_barrier, "turn", false), 0); /* NaN of memory not yet written */
    ck_assert_int_le(right_in(sum_without_barrier, "sum", true), 1);    /* descending hides it */
}
END_TEST

START_TEST(a_barrier_that_some_miss_is_seen)
{
    (void)right_in(leave_kernel, "leave", false);
    ck_assert_ptr_nonnull(kedge_gpu_host.failed);
    ck_assert_ptr_nonnull(strstr(kedge_gpu_host.failed, "leave: a barrier that not all"));
}
END_TEST

START_TEST(a_barrier_in_a_flat_launch_is_seen)
{
    struct turn_args args = {in, out};
    KEDGE_LAUNCH_FLAT(&stream, turn_kernel, COUNT, args);
    ck_assert_ptr_nonnull(kedge_gpu_host.failed);
    ck_assert_ptr_nonnull(strstr(kedge_gpu_host.failed, "flat launch"));
}
END_TEST

START_TEST(blocks_that_race_differ_between_orders)
{
    struct turn_args args = {in, out};
    float last[2];
    for (int order = 0; order < 2; order++) {
        kedge_gpu_host.order = order == 0 ? KEDGE_GPU_ASCENDING : KEDGE_GPU_DESCENDING;
        KEDGE_LAUNCH(&stream, blocks_race, 2, KEDGE_GPU_THREADS, args);
        last[order] = out[0];
    }
    ck_assert(last[0] != last[1]);
}
END_TEST

START_TEST(a_recording_runs_when_it_is_replayed)
{
    struct turn_args args = {in, out};
    kedge_gpu_graph graph = KEDGE_GPU_NO_GRAPH;
    memset(out, 0, sizeof out);
    ck_assert_int_eq(kedge_gpu_record(&stream), 0);
    KEDGE_LAUNCH(&stream, sum_kernel, 2, KEDGE_GPU_THREADS, args);
    args.out = NULL; /* arguments were taken by value */
    ck_assert_int_eq(kedge_gpu_recorded(&stream, &graph), 0);
    ck_assert(out[0] == 0.0f);
    ck_assert_int_eq(kedge_gpu_replay(&stream, graph), 0);
    ck_assert(out[0] > 0.0f);
    kedge_gpu_forget(graph);
    ck_assert_int_eq(kedge_gpu_record(&stream), 0);
    ck_assert_int_eq(kedge_gpu_put(&stream, out, in, sizeof in), 0); /* would read the host's memory later */
    ck_assert_ptr_nonnull(kedge_gpu_host.failed);
    ck_assert_int_eq(kedge_gpu_recorded(&stream, &graph), 0);
    kedge_gpu_forget(graph);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("client/train/cuda/host");
    TCase *tc = tcase_create("host");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, right_kernels_are_right_in_every_order);
    tcase_add_test(tc, a_missing_barrier_is_seen);
    tcase_add_test(tc, a_barrier_that_some_miss_is_seen);
    tcase_add_test(tc, a_barrier_in_a_flat_launch_is_seen);
    tcase_add_test(tc, blocks_that_race_differ_between_orders);
    tcase_add_test(tc, a_recording_runs_when_it_is_replayed);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
