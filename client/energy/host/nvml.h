/* NVIDIA's management library, loaded at run time: nothing of it is needed to build, and a machine without it
 * is no error. Declares the few functions that are called, by the library's documented interface. */
#ifndef KEDGE_CLIENT_ENERGY_HOST_NVML_H
#define KEDGE_CLIENT_ENERGY_HOST_NVML_H

#include <stdint.h>

#include "common/base/err.h"

enum { KEDGE_NVML_TEXT_MAX = 96, KEDGE_NVML_DEVICES_MAX = 16 };

struct kedge_nvml;
/* KEDGE_E_NOT_FOUND: no such library, or no driver; KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_nvml_open(const char *library, struct kedge_nvml **ret);
void kedge_nvml_close(struct kedge_nvml *n);
unsigned kedge_nvml_count(const struct kedge_nvml *n);
struct kedge_nvml_device {
    char uuid[KEDGE_NVML_TEXT_MAX], name[KEDGE_NVML_TEXT_MAX];
    bool mig;       /* in parts: their energy is not told (trap 15) */
    bool is_module; /* its numbers have the processor in them (trap 16) */
    bool has_energy, has_power;
    double limit_w, limit_least_w, limit_most_w; /* 0: not told */
};
KEDGE_NODISCARD int kedge_nvml_device(const struct kedge_nvml *n, unsigned i, struct kedge_nvml_device *ret);
/* mJ since the driver was loaded; mW now. KEDGE_E_NOT_FOUND: it does not tell; KEDGE_E_DENIED; KEDGE_E_IO:
 * the device is lost. */
KEDGE_NODISCARD int kedge_nvml_energy_mj(const struct kedge_nvml *n, unsigned i, uint64_t *ret);
KEDGE_NODISCARD int kedge_nvml_power_mw(const struct kedge_nvml *n, unsigned i, uint64_t *ret);
KEDGE_NODISCARD int kedge_nvml_set_limit_mw(const struct kedge_nvml *n, unsigned i, uint64_t limit);
KEDGE_NODISCARD int kedge_nvml_celsius(const struct kedge_nvml *n, unsigned i, uint64_t *ret);

#endif
