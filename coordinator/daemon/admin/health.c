/* What `kedge status` warns of before it becomes an outage: little room on the disk, jobs that
 * stand still, a low limit of open files, plain connections. */
#include "coordinator/daemon/admin/health.h"

#include <jansson.h>
#include <stdio.h>
#include <sys/statvfs.h>

#include "common/base/os/clock.h"
#include "coordinator/daemon/host.h"

/* Uploads stop when 64 MiB are left (blobs.h): the word comes while there is time to make room. */
static const uint64_t little_room = (uint64_t)1 << 30;
enum { ROOM_PARTS = 20, WARNING_MAX = 256 };

static void warn(json_t *warnings, const char *text)
{
    json_array_append_new(warnings, json_string(text));
}

static void look_at_disk(const struct kedge_host *h, json_t *o, json_t *warnings)
{
    struct statvfs disk;
    char text[WARNING_MAX];
    if (statvfs(h->state, &disk) != 0) {
        warn(warnings, "disk: how much room there is cannot be found out");
        return;
    }
    uint64_t room = (uint64_t)disk.f_bavail * disk.f_frsize, total = (uint64_t)disk.f_blocks * disk.f_frsize;
    json_object_set_new(
        o, "disk", json_pack("{s:I,s:I}", "free_bytes", (json_int_t)room, "total_bytes", (json_int_t)total));
    if (room < little_room || room < total / ROOM_PARTS) {
        snprintf(text, sizeof text, "disk: %.1f GB of %.1f GB are free; jobs stand still when it is full",
                 (double)room / 1e9, (double)total / 1e9);
        warn(warnings, text);
    }
}

static void look_at_jobs(const struct kedge_host *h, json_t *warnings)
{
    char text[WARNING_MAX];
    for (uint32_t i = 0; i < KEDGE_JOBS_MAX; i++) {
        const struct kedge_job *job = &h->jobs[i];
        if (job->used && job->state == KEDGE_JOB_HALTED && job->reason != KEDGE_OK) {
            snprintf(text, sizeof text, "job %s stands still: %s", job->spec.name.s,
                     kedge_strerror(job->reason));
            warn(warnings, text);
        }
    }
}

void kedge_host_put_health(const struct kedge_host *h, struct json_t *o)
{
    json_t *warnings = json_array();
    char text[WARNING_MAX];
    json_object_set_new(o, "version", json_string(KEDGE_COORDINATOR_VERSION));
    json_object_set_new(o, "uptime_s",
                        json_integer((json_int_t)((kedge_os_now_ns() - h->started_ns) / 1000000000u)));
    look_at_disk(h, o, warnings);
    look_at_jobs(h, warnings);
    if (h->places.is_short) {
        snprintf(text, sizeof text,
                 "open files: the limit of this process leaves room for %u connections (LimitNOFILE= in the "
                 "service)",
                 h->places.known);
        warn(warnings, text);
    }
    if (h->config.insecure) {
        warn(warnings, "insecure: connections are not encrypted and sites are not known by their keys");
    }
    json_object_set_new(o, "warnings", warnings);
}
