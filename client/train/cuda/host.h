/* A device in plain C (vendor.h says what for): blocks run one after the other, a block's threads as fibers
 * that change places at barriers, in an order that kedge_gpu_host.order and .seed choose anew between any two
 * barriers. What a correct kernel computes does not depend on it; a missing barrier shows as a wrong result
 * in some of the orders. Shared memory is NaN when a block begins. Reported as a failure, with the kernel's
 * name: a barrier that some threads pass and others do not, a barrier in a flat kernel.
 *
 * Not seen here: races between threads that a warp runs in step, between blocks, and what the memory model
 * allows besides. For one source file of one test at a time: everything is static. */
#ifndef KEDGE_CLIENT_TRAIN_CUDA_HOST_H
#define KEDGE_CLIENT_TRAIN_CUDA_HOST_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include "common/base/mem.h"

/* Where no sanitizer watches stacks, fibers change places by _setjmp and _longjmp, which ask nothing of the
 * system: twenty times as fast. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KEDGE_GPU_HOST_SLOW 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define KEDGE_GPU_HOST_SLOW 1
#endif
#endif

enum kedge_gpu_order { KEDGE_GPU_ASCENDING = 0, KEDGE_GPU_DESCENDING, KEDGE_GPU_SHUFFLED };
enum {
    KEDGE_GPU_OK = 0,
    KEDGE_GPU_NO_MEMORY = 2,
    KEDGE_GPU_STACK = 64 * 1024,
    KEDGE_GPU_SHARED_MAX = 16,
    KEDGE_GPU_RECORD_MAX = 512,
    KEDGE_GPU_ARGS_MAX = 512,
};

struct kedge_gpu_recorded_step {
    int kind; /* 0: launch, 1: copy, 2: zero */
    void (*kernel)(const void *args);
    const char *name;
    size_t blocks, threads, bytes;
    bool is_flat;
    void *to;
    const void *from;
    _Alignas(16) unsigned char args[KEDGE_GPU_ARGS_MAX];
};
struct kedge_gpu_recording {
    size_t count;
    struct kedge_gpu_recorded_step steps[KEDGE_GPU_RECORD_MAX];
};
typedef struct kedge_gpu_recording *kedge_gpu_graph;
#define KEDGE_GPU_NO_GRAPH NULL

struct kedge_gpu_stream {
    kedge_gpu_graph recording; /* NULL: launches are done at once */
};

static struct {
    enum kedge_gpu_order order;
    bool has_blas; /* blas.h */
    uint64_t seed;
    const char *failed; /* the kernel that broke a rule, and which */
    char failure[160];
    size_t block, thread, threads;
    bool is_flat;
    size_t launches;
    void *shared[KEDGE_GPU_SHARED_MAX]; /* poisoned in this block */
    size_t shared_count;
    const char *kernel_name;
    void (*kernel)(const void *args);
    const void *args;
    ucontext_t scheduler, fibers[KEDGE_GPU_THREADS_MAX];
#if !defined(KEDGE_GPU_HOST_SLOW)
    jmp_buf scheduler_at, fibers_at[KEDGE_GPU_THREADS_MAX];
#endif
    bool begun[KEDGE_GPU_THREADS_MAX];          /* fibers live on from block to block */
    unsigned char state[KEDGE_GPU_THREADS_MAX]; /* 0 to run, 1 at a barrier, 2 done */
    unsigned char *stacks;
} kedge_gpu_host;

#define KEDGE_EXPORT
#define KEDGE_KERNEL(name, type)           \
    static void name##_body(const type a); \
    static void name(const void *args)     \
    {                                      \
        name##_body(*(const type *)args);  \
    }                                      \
    static void name##_body(const type a)
#define KEDGE_DEVICE static inline
#define KEDGE_BOTH static inline
#define KEDGE_SHARED(type, name, count) \
    static type name[count];            \
    kedge_gpu_host_poison(name, sizeof name)
#define KEDGE_BARRIER() kedge_gpu_host_barrier()
#define KEDGE_LAUNCH(stream, kernel, blocks, threads, args) \
    kedge_gpu_host_launch(stream, kernel, #kernel, blocks, threads, false, &(args), sizeof(args))
#define KEDGE_LAUNCH_FLAT(stream, kernel, count, args)                                               \
    kedge_gpu_host_launch(stream, kernel, #kernel, KEDGE_GPU_BLOCKS(count), KEDGE_GPU_THREADS, true, \
                          &(args), sizeof(args))

KEDGE_DEVICE size_t kedge_gpu_thread(void)
{
    return kedge_gpu_host.thread;
}

KEDGE_DEVICE size_t kedge_gpu_threads(void)
{
    return kedge_gpu_host.threads;
}

KEDGE_DEVICE size_t kedge_gpu_block(void)
{
    return kedge_gpu_host.block;
}

static inline void kedge_gpu_host_fail(const char *what)
{
    if (!kedge_gpu_host.failed) {
        (void)snprintf(kedge_gpu_host.failure, sizeof kedge_gpu_host.failure, "%s: %s",
                       kedge_gpu_host.kernel_name, what);
        kedge_gpu_host.failed = kedge_gpu_host.failure;
    }
}

/* The first thread of a block that comes to the declaration makes it NaN. */
static inline void kedge_gpu_host_poison(void *memory, size_t bytes)
{
    for (size_t i = 0; i < kedge_gpu_host.shared_count; i++) {
        if (kedge_gpu_host.shared[i] == memory) {
            return;
        }
    }
    if (kedge_gpu_host.shared_count == KEDGE_GPU_SHARED_MAX) {
        kedge_gpu_host_fail("too many shared arrays");
        return;
    }
    kedge_gpu_host.shared[kedge_gpu_host.shared_count++] = memory;
    memset(memory, 0xff, bytes);
}

static inline void kedge_gpu_host_leave(size_t me)
{
#if defined(KEDGE_GPU_HOST_SLOW)
    (void)swapcontext(&kedge_gpu_host.fibers[me], &kedge_gpu_host.scheduler);
#else
    if (_setjmp(kedge_gpu_host.fibers_at[me]) == 0) {
        _longjmp(kedge_gpu_host.scheduler_at, 1);
    }
#endif
}

static inline void kedge_gpu_host_barrier(void)
{
    const size_t me = kedge_gpu_host.thread;
    if (kedge_gpu_host.is_flat) {
        kedge_gpu_host_fail("a barrier in a flat launch");
        return;
    }
    kedge_gpu_host.state[me] = 1;
    kedge_gpu_host_leave(me);
}

/* A fiber is the thread of that number of one block after the other. */
static inline void kedge_gpu_host_fiber(void)
{
    for (;;) {
        kedge_gpu_host.kernel(kedge_gpu_host.args);
        kedge_gpu_host.state[kedge_gpu_host.thread] = 2;
        kedge_gpu_host_leave(kedge_gpu_host.thread);
    }
}

static inline void kedge_gpu_host_enter(size_t t)
{
    kedge_gpu_host.thread = t;
    if (!kedge_gpu_host.begun[t]) {
        ucontext_t *fiber = &kedge_gpu_host.fibers[t];
        (void)getcontext(fiber);
        fiber->uc_stack.ss_sp = kedge_gpu_host.stacks + t * KEDGE_GPU_STACK;
        fiber->uc_stack.ss_size = KEDGE_GPU_STACK;
        fiber->uc_link = NULL; /* it never ends */
        makecontext(fiber, kedge_gpu_host_fiber, 0);
    }
#if defined(KEDGE_GPU_HOST_SLOW)
    kedge_gpu_host.begun[t] = true;
    (void)swapcontext(&kedge_gpu_host.scheduler, &kedge_gpu_host.fibers[t]);
#else
    if (_setjmp(kedge_gpu_host.scheduler_at) == 0) {
        if (kedge_gpu_host.begun[t]) {
            _longjmp(kedge_gpu_host.fibers_at[t], 1);
        }
        kedge_gpu_host.begun[t] = true;
        (void)setcontext(&kedge_gpu_host.fibers[t]);
    }
#endif
}

/* SplitMix64 of the seed: an order a phase. */
static inline uint64_t kedge_gpu_host_random(void)
{
    kedge_gpu_host.seed += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = kedge_gpu_host.seed;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* i-th of count in the chosen order: for a shuffled one an affine walk with an odd step over the power of two
 * above, whose values beyond count are left out by the caller. */
struct kedge_gpu_walk {
    size_t first, step, mask, count;
};

static inline struct kedge_gpu_walk kedge_gpu_host_walk(size_t count)
{
    struct kedge_gpu_walk w = {0, 1, 1, count};
    while (w.mask < count) {
        w.mask *= 2;
    }
    w.mask--;
    if (kedge_gpu_host.order == KEDGE_GPU_DESCENDING) {
        w.first = count - 1;
        w.step = w.mask; /* minus one, modulo the power of two */
    } else if (kedge_gpu_host.order == KEDGE_GPU_SHUFFLED) {
        w.first = (size_t)kedge_gpu_host_random() & w.mask;
        w.step = ((size_t)kedge_gpu_host_random() & w.mask) | 1;
    }
    return w;
}

static inline size_t kedge_gpu_host_place(const struct kedge_gpu_walk *w, size_t i)
{
    return (w->first + i * w->step) & w->mask; /* may be ≥ count */
}

/* Threads to their next barrier or end; how many wait at one. */
static inline size_t kedge_gpu_host_phase(size_t threads)
{
    const struct kedge_gpu_walk walk = kedge_gpu_host_walk(threads);
    size_t waiting = 0;
    for (size_t i = 0; i <= walk.mask; i++) {
        const size_t t = kedge_gpu_host_place(&walk, i);
        if (t < threads && kedge_gpu_host.state[t] == 0) {
            kedge_gpu_host_enter(t);
            waiting += kedge_gpu_host.state[t] == 1 ? 1 : 0;
        }
    }
    return waiting;
}

static inline void kedge_gpu_host_block(size_t threads)
{
    memset(kedge_gpu_host.state, 0, threads);
    for (size_t waiting = threads; waiting > 0;) {
        waiting = kedge_gpu_host_phase(threads);
        if (waiting > 0 && waiting < threads) {
            kedge_gpu_host_fail("a barrier that not all threads of the block come to");
        }
        for (size_t t = 0; t < threads; t++) {
            kedge_gpu_host.state[t] = kedge_gpu_host.state[t] == 1 ? 0 : kedge_gpu_host.state[t];
        }
    }
}

static inline void kedge_gpu_host_flat(size_t threads)
{
    const struct kedge_gpu_walk walk = kedge_gpu_host_walk(threads);
    for (size_t i = 0; i <= walk.mask; i++) {
        const size_t t = kedge_gpu_host_place(&walk, i);
        if (t < threads) {
            kedge_gpu_host.thread = t;
            kedge_gpu_host.kernel(kedge_gpu_host.args);
        }
    }
}

static inline void kedge_gpu_host_run(void (*kernel)(const void *), const char *name, size_t blocks,
                                      size_t threads, bool is_flat, const void *args)
{
    kedge_gpu_host.kernel = kernel;
    kedge_gpu_host.kernel_name = name;
    kedge_gpu_host.args = args;
    kedge_gpu_host.threads = threads;
    kedge_gpu_host.is_flat = is_flat;
    kedge_gpu_host.launches++;
    if (!is_flat && !kedge_gpu_host.stacks) {
        kedge_gpu_host.stacks = (unsigned char *)kedge_mem_new(KEDGE_GPU_THREADS_MAX, KEDGE_GPU_STACK);
    }
    if (threads == 0 || threads > KEDGE_GPU_THREADS_MAX || blocks > 0x7fffffff
        || (!is_flat && !kedge_gpu_host.stacks)) {
        kedge_gpu_host_fail("a launch that no device takes");
        return;
    }
    const struct kedge_gpu_walk walk = kedge_gpu_host_walk(blocks);
    for (size_t i = 0; i <= walk.mask && blocks > 0; i++) {
        const size_t block = kedge_gpu_host_place(&walk, i);
        if (block < blocks) {
            kedge_gpu_host.block = block;
            kedge_gpu_host.shared_count = 0;
            if (is_flat) {
                kedge_gpu_host_flat(threads);
            } else {
                kedge_gpu_host_block(threads);
            }
        }
    }
}

static inline struct kedge_gpu_recorded_step *kedge_gpu_host_record(struct kedge_gpu_stream *s)
{
    if (s->recording->count == KEDGE_GPU_RECORD_MAX) {
        kedge_gpu_host.kernel_name = "graph";
        kedge_gpu_host_fail("too many steps");
        return NULL;
    }
    return &s->recording->steps[s->recording->count++];
}

static inline void kedge_gpu_host_launch(struct kedge_gpu_stream *s, void (*kernel)(const void *),
                                         const char *name, size_t blocks, size_t threads, bool is_flat,
                                         const void *args, size_t args_bytes)
{
    if (!s->recording) {
        kedge_gpu_host_run(kernel, name, blocks, threads, is_flat, args);
        return;
    }
    struct kedge_gpu_recorded_step *step = kedge_gpu_host_record(s);
    if (step && args_bytes <= sizeof step->args) {
        step->kind = 0;
        step->kernel = kernel;
        step->name = name;
        step->blocks = blocks;
        step->threads = threads;
        step->is_flat = is_flat;
        memcpy(step->args, args, args_bytes);
    }
}

static inline int kedge_gpu_new(void **ret, size_t bytes)
{
    *ret = kedge_mem_new_lines(1, bytes > 0 ? bytes : 1);
    if (*ret) {
        memset(*ret, 0xff, bytes); /* nothing that may be relied on */
    }
    return *ret ? KEDGE_GPU_OK : KEDGE_GPU_NO_MEMORY;
}

static inline void kedge_gpu_free(void *p)
{
    kedge_mem_free(p);
}

static inline int kedge_gpu_put(struct kedge_gpu_stream *s, void *to, const void *from, size_t bytes)
{
    if (s->recording) {
        kedge_gpu_host.kernel_name = "graph";
        kedge_gpu_host_fail("a copy from the host within");
    }
    memcpy(to, from, bytes);
    return KEDGE_GPU_OK;
}

static inline int kedge_gpu_get(struct kedge_gpu_stream *s, void *to, const void *from, size_t bytes)
{
    return kedge_gpu_put(s, to, from, bytes);
}

static inline int kedge_gpu_copy(struct kedge_gpu_stream *s, void *to, const void *from, size_t bytes)
{
    struct kedge_gpu_recorded_step *step = s->recording ? kedge_gpu_host_record(s) : NULL;
    if (step) {
        *step = (struct kedge_gpu_recorded_step){.kind = 1, .to = to, .from = from, .bytes = bytes};
    } else {
        memmove(to, from, bytes);
    }
    return KEDGE_GPU_OK;
}

static inline int kedge_gpu_zero(struct kedge_gpu_stream *s, void *to, size_t bytes)
{
    struct kedge_gpu_recorded_step *step = s->recording ? kedge_gpu_host_record(s) : NULL;
    if (step) {
        *step = (struct kedge_gpu_recorded_step){.kind = 2, .to = to, .bytes = bytes};
    } else {
        memset(to, 0, bytes);
    }
    return KEDGE_GPU_OK;
}

static inline int kedge_gpu_wait(struct kedge_gpu_stream *s)
{
    return s->recording || kedge_gpu_host.failed ? 1 : KEDGE_GPU_OK;
}

static inline int kedge_gpu_open(struct kedge_gpu_stream *ret)
{
    ret->recording = NULL;
    return KEDGE_GPU_OK;
}

static inline void kedge_gpu_close(struct kedge_gpu_stream *s)
{
    s->recording = NULL;
    kedge_mem_free(kedge_gpu_host.stacks);
    kedge_gpu_host.stacks = NULL;
    memset(kedge_gpu_host.begun, 0, sizeof kedge_gpu_host.begun);
}

static inline int kedge_gpu_record(struct kedge_gpu_stream *s)
{
    s->recording = (kedge_gpu_graph)kedge_mem_new(1, sizeof *s->recording);
    return s->recording ? KEDGE_GPU_OK : KEDGE_GPU_NO_MEMORY;
}

static inline int kedge_gpu_recorded(struct kedge_gpu_stream *s, kedge_gpu_graph *ret)
{
    *ret = s->recording;
    s->recording = NULL;
    return KEDGE_GPU_OK;
}

static inline int kedge_gpu_replay(struct kedge_gpu_stream *s, kedge_gpu_graph graph)
{
    for (size_t i = 0; i < graph->count; i++) {
        const struct kedge_gpu_recorded_step *step = &graph->steps[i];
        if (step->kind == 0) {
            kedge_gpu_host_run(step->kernel, step->name, step->blocks, step->threads, step->is_flat,
                               step->args);
        } else if (step->kind == 1) {
            (void)kedge_gpu_copy(s, step->to, step->from, step->bytes);
        } else {
            (void)kedge_gpu_zero(s, step->to, step->bytes);
        }
    }
    return KEDGE_GPU_OK;
}

static inline void kedge_gpu_forget(kedge_gpu_graph graph)
{
    kedge_mem_free(graph);
}

/* NULL, or why there is no device. */
static inline const char *kedge_gpu_absent(void)
{
    return NULL;
}

static inline bool kedge_gpu_rounds(void)
{
    return true;
}

static inline void kedge_gpu_name(char *text, size_t size)
{
    (void)snprintf(text, size, "emulated");
}

static inline const char *kedge_gpu_text(int status)
{
    return kedge_gpu_host.failed           ? kedge_gpu_host.failed
           : status == KEDGE_GPU_OK        ? "no error"
           : status == KEDGE_GPU_NO_MEMORY ? "out of memory"
                                           : "failed";
}
#endif
