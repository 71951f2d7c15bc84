/* NVIDIA's library is opened at run time, because a client must start on machines without it. A function
 * that this version does not have is a null pointer and reads as "not there". */
#include "client/energy/host/nvml.h"

#include <dlfcn.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"

/* Return values of the library. */
enum { NVML_OK = 0, NVML_NO_PERMISSION = 4, NVML_NOT_FOUND = 6, NVML_NOT_SUPPORTED = 3 };

typedef struct nvml_device *handle;
typedef int fn_void(void);
typedef int fn_count(unsigned *);
typedef int fn_at(unsigned, handle *);
typedef int fn_text(handle, char *, unsigned);
typedef int fn_u64(handle, unsigned long long *);
typedef int fn_u32(handle, unsigned *);
typedef int fn_two(handle, unsigned *, unsigned *);
typedef int fn_of(handle, unsigned, unsigned *);
typedef int fn_set(handle, unsigned);

struct kedge_nvml {
    void *library;
    unsigned count;
    handle devices[KEDGE_NVML_DEVICES_MAX];
    fn_void *init, *shutdown;
    fn_count *get_count;
    fn_at *at;
    fn_text *uuid, *name;
    fn_u64 *energy;
    fn_u32 *power, *limit;
    fn_two *mig, *limits;
    fn_of *temperature;
    fn_set *set_limit;
};

/* A function pointer out of an object pointer, which POSIX permits and ISO C has no cast for. */
static void find(void *library, const char *name, void *ret, size_t size)
{
    void *found = dlsym(library, name);
    KEDGE_ASSERT(size == sizeof found);
    memcpy(ret, &found, size);
}
#define FIND(n, field, name) find((n)->library, (name), &(n)->field, sizeof(n)->field)

static int error_of(int status)
{
    return status == NVML_OK              ? KEDGE_OK
           : status == NVML_NOT_SUPPORTED ? KEDGE_E_NOT_FOUND
           : status == NVML_NO_PERMISSION ? KEDGE_E_DENIED
           : status == NVML_NOT_FOUND     ? KEDGE_E_NOT_FOUND
                                          : KEDGE_E_IO;
}

static bool load(struct kedge_nvml *n)
{
    FIND(n, init, "nvmlInit_v2");
    FIND(n, shutdown, "nvmlShutdown");
    FIND(n, get_count, "nvmlDeviceGetCount_v2");
    FIND(n, at, "nvmlDeviceGetHandleByIndex_v2");
    FIND(n, uuid, "nvmlDeviceGetUUID");
    FIND(n, name, "nvmlDeviceGetName");
    FIND(n, energy, "nvmlDeviceGetTotalEnergyConsumption");
    FIND(n, power, "nvmlDeviceGetPowerUsage");
    FIND(n, limit, "nvmlDeviceGetPowerManagementLimit");
    FIND(n, limits, "nvmlDeviceGetPowerManagementLimitConstraints");
    FIND(n, set_limit, "nvmlDeviceSetPowerManagementLimit");
    FIND(n, mig, "nvmlDeviceGetMigMode");
    FIND(n, temperature, "nvmlDeviceGetTemperature");
    return n->init && n->shutdown && n->get_count && n->at && n->uuid;
}

int kedge_nvml_open(const char *library, struct kedge_nvml **ret)
{
    struct kedge_nvml *n = kedge_mem_new(1, sizeof *n);
    KEDGE_TRY_MEM(n);
    n->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!n->library || !load(n) || n->init() != NVML_OK) {
        if (n->library) {
            dlclose(n->library);
        }
        kedge_mem_free(n);
        return KEDGE_E_NOT_FOUND;
    }
    unsigned count = 0;
    if (n->get_count(&count) != NVML_OK) {
        count = 0;
    }
    for (unsigned i = 0; i < count && n->count < KEDGE_NVML_DEVICES_MAX; i++) {
        n->count += n->at(i, &n->devices[n->count]) == NVML_OK;
    }
    *ret = n;
    return KEDGE_OK;
}

void kedge_nvml_close(struct kedge_nvml *n)
{
    if (n) {
        n->shutdown();
        dlclose(n->library);
        kedge_mem_free(n);
    }
}

unsigned kedge_nvml_count(const struct kedge_nvml *n)
{
    return n->count;
}

static int get_u32(const struct kedge_nvml *n, fn_u32 *f, unsigned i, uint64_t *ret)
{
    unsigned value = 0;
    const int err = f && i < n->count ? error_of(f(n->devices[i], &value)) : KEDGE_E_NOT_FOUND;
    if (!err) {
        *ret = value;
    }
    return err;
}

int kedge_nvml_energy_mj(const struct kedge_nvml *n, unsigned i, uint64_t *ret)
{
    unsigned long long value = 0;
    const int err =
        n->energy && i < n->count ? error_of(n->energy(n->devices[i], &value)) : KEDGE_E_NOT_FOUND;
    if (!err) {
        *ret = value;
    }
    return err;
}

int kedge_nvml_power_mw(const struct kedge_nvml *n, unsigned i, uint64_t *ret)
{
    return get_u32(n, n->power, i, ret);
}

static int nvml_limit_mw(const struct kedge_nvml *n, unsigned i, uint64_t *ret)
{
    return get_u32(n, n->limit, i, ret);
}

int kedge_nvml_set_limit_mw(const struct kedge_nvml *n, unsigned i, uint64_t limit)
{
    return n->set_limit && i < n->count && limit <= UINT32_MAX
               ? error_of(n->set_limit(n->devices[i], (unsigned)limit))
               : KEDGE_E_NOT_FOUND;
}

int kedge_nvml_celsius(const struct kedge_nvml *n, unsigned i, uint64_t *ret)
{
    unsigned value = 0;
    const int err = n->temperature && i < n->count ? error_of(n->temperature(n->devices[i], 0, &value))
                                                   : KEDGE_E_NOT_FOUND;
    if (!err) {
        *ret = value;
    }
    return err;
}

int kedge_nvml_device(const struct kedge_nvml *n, unsigned i, struct kedge_nvml_device *ret)
{
    if (i >= n->count) {
        return KEDGE_E_NOT_FOUND;
    }
    struct kedge_nvml_device d = {.uuid = ""};
    const int err = error_of(n->uuid(n->devices[i], d.uuid, sizeof d.uuid));
    if (err) {
        return err;
    }
    if (n->name && n->name(n->devices[i], d.name, sizeof d.name) != NVML_OK) {
        d.name[0] = '\0';
    }
    unsigned now = 0, pending = 0, least = 0, most = 0;
    uint64_t value;
    d.mig = n->mig && n->mig(n->devices[i], &now, &pending) == NVML_OK && now == 1;
    d.is_module = strstr(d.name, "GH200") || strstr(d.name, "GB200") || strstr(d.name, "Grace");
    d.has_energy = kedge_nvml_energy_mj(n, i, &value) == KEDGE_OK;
    d.has_power = kedge_nvml_power_mw(n, i, &value) == KEDGE_OK;
    d.limit_w = nvml_limit_mw(n, i, &value) == KEDGE_OK ? (double)value / 1e3 : 0;
    if (n->limits && n->limits(n->devices[i], &least, &most) == NVML_OK) {
        d.limit_least_w = least / 1e3;
        d.limit_most_w = most / 1e3;
    }
    *ret = d;
    return KEDGE_OK;
}
