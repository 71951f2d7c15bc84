/* The meters of this machine: what is found below a root folder ("/", or a test's) and by NVML, read over one
 * window at a time. Reads only; runs as anybody. One thread. */
#ifndef KEDGE_CLIENT_ENERGY_HOST_METERS_H
#define KEDGE_CLIENT_ENERGY_HOST_METERS_H

#include "client/energy/meter.h"
#include "common/base/os/file.h"

enum { KEDGE_METERS_MAX = 32, KEDGE_METER_HINT_MAX = 256, KEDGE_BATTERIES_MAX = 4 };

struct kedge_nvml;       /* nvml.h */
struct kedge_perf_calls; /* perf.h */

/* Where a meter's counts come from. */
struct kedge_meter_place {
    char path[KEDGE_PATH_MAX];   /* a file, or a battery's folder */
    char second[KEDGE_PATH_MAX]; /* mV beside mA, or "" */
    double factor;               /* counts = file's value (times the second's) · factor */
    unsigned gpu;                /* NVML: its index there */
    int fd;                      /* perf: the open event */
};

struct kedge_meters {
    char root[KEDGE_PATH_MAX];
    uint32_t count;
    struct kedge_meter meters[KEDGE_METERS_MAX];
    struct kedge_meter_place places[KEDGE_METERS_MAX];
    struct kedge_nvml *nvml;             /* NULL: none */
    const struct kedge_perf_calls *perf; /* NULL: none */
    char hint[KEDGE_METER_HINT_MAX];     /* what the owner can do about a meter that cannot be read, or "" */
    uint32_t battery_count;
    char batteries[KEDGE_BATTERIES_MAX][KEDGE_PATH_MAX];
    uint64_t begun_ns, begun_cpu_ns;
};

struct kedge_meters_options {
    const char *root; /* "/" */
    const char *nvml; /* the library, "libnvidia-ml.so.1"; "": none. One that is not there is no error */
    const char *gpu;  /* UUID of the GPU that trains; "": every one counts */
    const struct kedge_perf_calls *perf; /* kedge_perf_linux where root is "/"; NULL: perf is not asked */
};

/* Finds what is there; nothing is an error but memory. Free with kedge_meters_close. */
KEDGE_NODISCARD int kedge_meters_open(struct kedge_meters *m, const struct kedge_meters_options *options);
void kedge_meters_close(struct kedge_meters *m);
void kedge_meters_begin(struct kedge_meters *m, uint64_t now_ns);
void kedge_meters_tick(struct kedge_meters *m, uint64_t now_ns);
/* How often to tick. */
uint64_t kedge_meters_period_ns(const struct kedge_meters *m);
/* Ends the window with a last reading; *ret_load: 0 … 1, of all processors, below 0: not known. */
void kedge_meters_finish(struct kedge_meters *m, uint64_t now_ns, struct kedge_joule_sum *ret_sum,
                         double *ret_load);
/* Sources that count, "rapl 2, nvml energy 1", or "none". */
void kedge_meters_describe(const struct kedge_meters *m, char out[KEDGE_METER_HINT_MAX]);

/* One number from a file below /sys: strict, bounded. KEDGE_E_NOT_FOUND, KEDGE_E_DENIED, KEDGE_E_FORMAT … */
KEDGE_NODISCARD int kedge_sys_number(const char *path, uint64_t *ret);
/* The same with a sign, which is dropped. */
KEDGE_NODISCARD int kedge_sys_size(const char *path, uint64_t *ret);
/* One line without its end. */
KEDGE_NODISCARD int kedge_sys_text(const char *path, char *out, size_t size);
KEDGE_NODISCARD int kedge_sys_path(char out[KEDGE_PATH_MAX], const char *format, ...) KEDGE_PRINTF(2, 3);
/* Processor time of the machine since it began (all of it and what was busy), from ROOT/proc/stat; 0: not
 * known. */
void kedge_sys_cpu(const char *root, uint64_t *ret_all_ns, uint64_t *ret_busy_ns);
/* Of one process and its threads; 0: it is not there. */
uint64_t kedge_sys_process_cpu(long pid);

#endif
