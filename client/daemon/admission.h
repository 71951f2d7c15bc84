/* Which trainings may run beside each other: threads, memory and the GPU are shared between them, as the
 * owner says in policy.json. Pure. */
#ifndef KEDGE_CLIENT_DAEMON_ADMISSION_H
#define KEDGE_CLIENT_DAEMON_ADMISSION_H

#include "client/core/site.h"

enum {
    KEDGE_ADMISSION_TEXT_MAX = 200,
    KEDGE_ADMISSION_PASSED_MAX = 8, /* so often others may begin before a task that waits, then they wait */
};

/* The owner's, for all trainings together. */
struct kedge_admission_limits {
    uint32_t jobs_at_once; /* 1 or more */
    uint32_t threads;      /* 1 or more */
    uint32_t gpu_at_once;  /* how many may use the GPU, 1 or more */
    uint64_t memory_all;   /* bytes of address space of their trainers, 0: no limit */
};

/* What one training takes. */
struct kedge_admission_ask {
    struct kedge_id job; /* "": none runs */
    uint32_t threads;
    uint64_t memory; /* bytes, 0: nobody counts them */
    bool gpu;
};

enum kedge_admission { KEDGE_ADMIT, KEDGE_ADMIT_LATER, KEDGE_ADMIT_NEVER };

/* Threads and address space of one training's trainer. own_max: the limit of that very trainer, 0: none; then
 * it gets an equal part of what there is. */
uint32_t kedge_admission_threads(const struct kedge_admission_limits *l);
uint64_t kedge_admission_memory(const struct kedge_admission_limits *l, uint64_t own_max);
/* May it run beside the others, of which those without a job do not run? why says what it waits for, or why
 * it never can; "" where it may. */
enum kedge_admission kedge_admission_decide(const struct kedge_admission_limits *l,
                                            const struct kedge_admission_ask *ask,
                                            const struct kedge_admission_ask *others, uint32_t count,
                                            char why[KEDGE_ADMISSION_TEXT_MAX]);

#endif
