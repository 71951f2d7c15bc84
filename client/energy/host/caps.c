/* Lowers power limits of the processor and GPUs while a job trains, and puts back what was found. What was
 * found is on the disk before the first limit is changed: a client that is killed in between puts it back
 * when it next opens the caps, or a machine would stay slow for a reason that nobody finds. */
#include "client/energy/host/caps.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/energy/host/nvml.h"
#include "common/base/text.h"

enum { KEPT_MAX = KEDGE_CAPS_MAX * (KEDGE_PATH_MAX + 40) };

static int put_number(const char *path, uint64_t value)
{
    char text[32];
    struct kedge_diag d;
    const int fd = kedge_file_open(path, O_WRONLY | O_TRUNC, &d);
    if (fd < 0) {
        return fd;
    }
    snprintf(text, sizeof text, "%" PRIu64 "\n", value);
    const ssize_t n = write(fd, text, strlen(text));
    close(fd);
    return n == (ssize_t)strlen(text) ? KEDGE_OK : KEDGE_E_DENIED;
}

static int find_gpu(const struct kedge_meters *m, const char *uuid, unsigned *ret)
{
    struct kedge_nvml_device d;
    for (unsigned i = 0; m->nvml && i < kedge_nvml_count(m->nvml); i++) {
        if (kedge_nvml_device(m->nvml, i, &d) == KEDGE_OK && strcmp(d.uuid, uuid) == 0) {
            *ret = i;
            return KEDGE_OK;
        }
    }
    return KEDGE_E_NOT_FOUND;
}

static int put(const struct kedge_meters *m, const struct kedge_cap *cap, uint64_t value)
{
    return cap->gpu ? kedge_nvml_set_limit_mw(m->nvml, cap->index, value) : put_number(cap->where, value);
}

/* ---- what was found, on the disk ---- */

static int keep(const struct kedge_caps *c, struct kedge_diag *d)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, KEPT_MAX);
    for (uint32_t i = 0; i < c->count; i++) {
        kedge_buf_printf(&text, "%s %" PRIu64 " %s\n", c->caps[i].gpu ? "nvml" : "rapl", c->caps[i].found,
                         c->caps[i].where);
    }
    return text.err ? text.err : kedge_file_write(c->kept, kedge_buf_view(&text), 0600, d);
}

/* One line: "rapl 125000000 /sys/…/constraint_0_power_limit_uw". */
static int take_line(const struct kedge_meters *m, struct kedge_view line, struct kedge_cap *cap)
{
    const uint8_t *space = line.len > 5 ? memchr(line.ptr + 5, ' ', line.len - 5) : NULL;
    if (!space || (memcmp(line.ptr, "rapl ", 5) != 0 && memcmp(line.ptr, "nvml ", 5) != 0)) {
        return KEDGE_E_FORMAT;
    }
    const struct kedge_view number = kedge_view_of(line.ptr + 5, (size_t)(space - line.ptr) - 5);
    const size_t len = line.len - (size_t)(space + 1 - line.ptr);
    char prefix[KEDGE_PATH_MAX];
    if (kedge_decimal_decode(number, UINT64_MAX, &cap->found) || len == 0 || len >= sizeof cap->where
        || kedge_sys_path(prefix, "%s/sys/class/powercap/", m->root)) {
        return KEDGE_E_FORMAT;
    }
    memcpy(cap->where, space + 1, len);
    cap->where[len] = '\0';
    cap->gpu = line.ptr[0] == 'n';
    const bool fine = cap->gpu
                      || (strncmp(cap->where, prefix, strlen(prefix)) == 0 && !strstr(cap->where, "/../")
                          && strstr(cap->where, "_power_limit_uw"));
    return !fine ? KEDGE_E_FORMAT : cap->gpu ? find_gpu(m, cap->where, &cap->index) : KEDGE_OK;
}

/* The file goes only when all limits are back: if one cannot be set, the next start tries all of them again.
 * What it names is checked to be a power limit below the root's powercap folder, so that a file that somebody
 * has put there cannot make the client write elsewhere. */
int kedge_caps_restore_kept(const struct kedge_meters *m, const char *kept, struct kedge_diag *reterr)
{
    struct kedge_buf text;
    if (!kedge_file_exists(kept)) {
        return KEDGE_OK;
    }
    kedge_buf_init(&text, KEPT_MAX);
    int err = kedge_file_read(kept, &text, reterr);
    struct kedge_view rest = kedge_buf_view(&text);
    for (uint32_t i = 0; !err && rest.len > 0 && i < KEDGE_CAPS_MAX; i++) {
        struct kedge_cap cap = {.gpu = false};
        const uint8_t *end = memchr(rest.ptr, '\n', rest.len);
        if (!end || take_line(m, kedge_view_of(rest.ptr, (size_t)(end - rest.ptr)), &cap) != KEDGE_OK) {
            err = kedge_diag_set(
                reterr, KEDGE_E_FORMAT,
                "%s: expected the power caps that were found; set them by hand, then remove it", kept);
        } else {
            rest = kedge_view_of(end + 1, rest.len - (size_t)(end + 1 - rest.ptr));
            err = put(m, &cap, cap.found);
            if (err) {
                (void)kedge_diag_set(reterr, err, "%s: cannot put back %" PRIu64 " to %s: %s", kept,
                                     cap.found, cap.where, kedge_strerror(err));
            }
        }
    }
    kedge_buf_deinit(&text);
    if (!err && unlink(kept) != 0) {
        err = kedge_diag_set(reterr, KEDGE_E_IO, "%s: cannot remove it", kept);
    }
    return err;
}

/* ---- looking ---- */

/* The long-term limit of the zone whose energy is read. */
static int look_at_zone(struct kedge_caps *c, const char *energy_path)
{
    char dir[KEDGE_PATH_MAX], path[KEDGE_PATH_MAX], name[64];
    snprintf(dir, sizeof dir, "%s", energy_path);
    *strrchr(dir, '/') = '\0';
    for (unsigned n = 0; n < 4; n++) {
        if (kedge_sys_path(path, "%s/constraint_%u_name", dir, n) || kedge_sys_text(path, name, sizeof name)
            || strcmp(name, "long_term") != 0) {
            continue;
        }
        struct kedge_cap *cap = &c->caps[c->count];
        *cap = (struct kedge_cap){.gpu = false};
        int err = kedge_sys_path(cap->where, "%s/constraint_%u_power_limit_uw", dir, n);
        if (!err) {
            err = kedge_sys_number(cap->where, &cap->found);
        }
        if (err) {
            return err;
        }
        cap->now = cap->found;
        cap->least = cap->found / 4; /* the kernel tells none; lower ones cost more energy than they save */
        c->count++;
        return access(cap->where, W_OK) == 0 ? KEDGE_OK : KEDGE_E_DENIED;
    }
    return KEDGE_OK;
}

static int look_at_gpu(struct kedge_caps *c, uint32_t meter)
{
    struct kedge_nvml_device d;
    const unsigned index = c->meters->places[meter].gpu;
    int err = kedge_nvml_device(c->meters->nvml, index, &d);
    if (err || !(d.limit_w > 0)) {
        return err;
    }
    struct kedge_cap *cap = &c->caps[c->count];
    *cap = (struct kedge_cap){.gpu = true, .index = index};
    snprintf(cap->where, sizeof cap->where, "%s", d.uuid);
    cap->found = cap->now = (uint64_t)(d.limit_w * 1e3 + 0.5);
    cap->least = d.limit_least_w > 0 ? (uint64_t)(d.limit_least_w * 1e3 + 0.5) : cap->found / 2;
    err = kedge_nvml_set_limit_mw(c->meters->nvml, index, cap->found); /* as it is: may it be set? */
    c->count += !err;
    return err;
}

int kedge_caps_open(struct kedge_caps *c, const struct kedge_meters *m, const char *kept, bool gpu,
                    struct kedge_diag *reterr)
{
    *c = (struct kedge_caps){.meters = m};
    int err = kedge_sys_path(c->kept, "%s", kept);
    if (!err) {
        err = kedge_caps_restore_kept(m, kept, reterr);
    }
    for (uint32_t i = 0; i < m->count && !err && c->count < KEDGE_CAPS_MAX; i++) {
        const bool is_gpu = m->meters[i].source <= KEDGE_METER_NVML_POWER;
        if (gpu && is_gpu && m->meters[i].counts && m->places[i].gpu < KEDGE_NVML_DEVICES_MAX) {
            err = look_at_gpu(c, i);
        } else if (!gpu && m->meters[i].source == KEDGE_METER_RAPL && m->meters[i].part == KEDGE_PART_CPU
                   && m->meters[i].counts) {
            err = look_at_zone(c, m->places[i].path);
        }
    }
    if (err == KEDGE_E_DENIED) {
        return kedge_diag_set(
            reterr, err,
            "the power cap may not be changed by this user: %s; without it leave \"power\" out "
            "of policy.json, or say \"threads\"",
            gpu ? "setting a GPU's needs root" : "make constraint_0_power_limit_uw writable for it");
    }
    if (!err && c->count == 0) {
        return kedge_diag_set(reterr, KEDGE_E_NOT_FOUND, "there is no power cap to set here");
    }
    return err;
}

static double least_of(const struct kedge_caps *c, bool found)
{
    double least = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        const double w = (double)(found ? c->caps[i].found : c->caps[i].least) / (c->caps[i].gpu ? 1e3 : 1e6);
        const bool better = found ? w < least : w > least;
        least = i == 0 || better ? w : least;
    }
    return least;
}

double kedge_caps_found_w(const struct kedge_caps *c)
{
    return least_of(c, true);
}

double kedge_caps_least_w(const struct kedge_caps *c)
{
    return least_of(c, false);
}

/* Never above what was found and never below the device's own least, whatever is asked. keep() comes before
 * the first change: see the head of this file. */
int kedge_caps_set(struct kedge_caps *c, double watts, struct kedge_diag *reterr)
{
    int err = c->is_changed ? KEDGE_OK : keep(c, reterr);
    c->is_changed = c->is_changed || !err;
    for (uint32_t i = 0; i < c->count && !err; i++) {
        struct kedge_cap *cap = &c->caps[i];
        const double wanted = watts * (cap->gpu ? 1e3 : 1e6);
        uint64_t value = wanted > 0 && wanted < (double)cap->found ? (uint64_t)wanted : cap->found;
        value = value < cap->least ? cap->least : value;
        if (value != cap->now) {
            err = put(c->meters, cap, value);
            cap->now = err ? cap->now : value;
            if (err) {
                (void)kedge_diag_set(reterr, err, "%s: cannot set the power cap: %s", cap->where,
                                     kedge_strerror(err));
            }
        }
    }
    return err;
}

int kedge_caps_restore(struct kedge_caps *c, struct kedge_diag *reterr)
{
    int err = c->is_changed ? kedge_caps_restore_kept(c->meters, c->kept, reterr) : KEDGE_OK;
    for (uint32_t i = 0; i < c->count && !err; i++) {
        c->caps[i].now = c->caps[i].found;
    }
    c->is_changed = c->is_changed && err;
    return err;
}
