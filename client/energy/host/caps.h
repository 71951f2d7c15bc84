/* Power caps of the processor's packages (RAPL) or of one GPU (NVML). What was found is kept durably before
 * it is changed, and put back at the end, on a signal, or at the next start after a crash. Never above what
 * was found. One thread. */
#ifndef KEDGE_CLIENT_ENERGY_HOST_CAPS_H
#define KEDGE_CLIENT_ENERGY_HOST_CAPS_H

#include "client/energy/host/meters.h"

enum { KEDGE_CAPS_MAX = 16 };

struct kedge_caps {
    const struct kedge_meters *meters; /* lent */
    char kept[KEDGE_PATH_MAX]; /* the file that says what was found; there while anything is changed */
    uint32_t count;
    struct kedge_cap {
        bool gpu;
        unsigned index;             /* GPU */
        char where[KEDGE_PATH_MAX]; /* RAPL: the file below /sys; GPU: its UUID */
        uint64_t found, least;      /* µW or mW */
        uint64_t now;
    } caps[KEDGE_CAPS_MAX];
    bool is_changed;
};

/* Puts back what a former process left changed, then looks for what could be capped: gpu or the packages.
 * KEDGE_E_NOT_FOUND: there is nothing; KEDGE_E_DENIED: it may not be written to (the diag says what to do);
 * KEDGE_E_FORMAT: `kept` is damaged. */
KEDGE_NODISCARD int kedge_caps_open(struct kedge_caps *c, const struct kedge_meters *m, const char *kept,
                                    bool gpu, struct kedge_diag *reterr);
/* The caps found, watts (the least of them), and the lowest that may be set. */
double kedge_caps_found_w(const struct kedge_caps *c);
double kedge_caps_least_w(const struct kedge_caps *c);
/* Each to `watts`, or what was found where that is less. */
KEDGE_NODISCARD int kedge_caps_set(struct kedge_caps *c, double watts, struct kedge_diag *reterr);
/* Puts back what was found; the file goes when all is as it was. */
KEDGE_NODISCARD int kedge_caps_restore(struct kedge_caps *c, struct kedge_diag *reterr);
/* The same of what a process that is no more left in `kept`; no such file is fine. */
KEDGE_NODISCARD int kedge_caps_restore_kept(const struct kedge_meters *m, const char *kept,
                                            struct kedge_diag *reterr);

#endif
