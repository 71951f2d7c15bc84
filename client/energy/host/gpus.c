/* NVIDIA's GPUs, by their library: a counter of energy, a sensor of power, or both. */
#include <stdio.h>
#include <string.h>

#include "client/energy/host/impl.h"
#include "client/energy/host/nvml.h"

static struct kedge_meter *add_gpu(struct kedge_meters *m, unsigned i, const struct kedge_nvml_device *d,
                                   enum kedge_meter_source source)
{
    const bool counter = source == KEDGE_METER_NVML_ENERGY;
    struct kedge_meter *meter = kedgei_meter_add(m, source, d->is_module ? KEDGE_PART_MODULE : KEDGE_PART_GPU,
                                                 counter ? KEDGE_WAY_COUNTER : KEDGE_WAY_POWER, 1e-3);
    if (meter) {
        snprintf(meter->name, sizeof meter->name, "%.63s", d->uuid);
        meter->power_max_w = d->limit_most_w > 0 ? d->limit_most_w : meter->power_max_w;
        kedgei_place_of(m, meter)->gpu = i;
    }
    return meter;
}

static void find(struct kedge_meters *m, const struct kedge_meters_options *options)
{
    const char *gpu = options->gpu;
    for (unsigned i = 0; m->nvml && i < kedge_nvml_count(m->nvml); i++) {
        struct kedge_nvml_device d;
        if (kedge_nvml_device(m->nvml, i, &d) != KEDGE_OK || (gpu[0] && strcmp(gpu, d.uuid) != 0)) {
            continue; /* by UUID: indices are others' to number (trap 17) */
        }
        if (d.mig || (!d.has_energy && !d.has_power)) {
            struct kedge_meter *meter = add_gpu(m, i, &d, KEDGE_METER_NVML_ENERGY);
            if (meter) {
                kedgei_place_of(m, meter)->gpu = KEDGE_NVML_DEVICES_MAX; /* counts, and is unknown */
            }
            continue;
        }
        if (d.has_energy) {
            (void)add_gpu(m, i, &d, KEDGE_METER_NVML_ENERGY);
        }
        if (d.has_power) {
            (void)add_gpu(m, i, &d, KEDGE_METER_NVML_POWER);
        }
    }
}

static int read_energy(const struct kedge_meters *m, uint32_t i, uint64_t *ret)
{
    const unsigned gpu = m->places[i].gpu;
    return gpu == KEDGE_NVML_DEVICES_MAX ? KEDGE_E_NOT_FOUND : kedge_nvml_energy_mj(m->nvml, gpu, ret);
}

static int read_power(const struct kedge_meters *m, uint32_t i, uint64_t *ret)
{
    return kedge_nvml_power_mw(m->nvml, m->places[i].gpu, ret);
}

/* Both kinds of meters of a device are found at once. */
const struct kedgei_source kedgei_source_nvml_energy = {.find = find, .read = read_energy},
                           kedgei_source_nvml_power = {.read = read_power};
