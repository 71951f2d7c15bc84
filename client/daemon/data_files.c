/* A bad cell is mended by writing the file anew, and nobody thinks of telling the daemon. So while a job is
 * left alone because of its data, the files are looked at every few seconds, and when one has changed all
 * jobs are tried again, as after a new policy. What is compared with is from before the training that failed:
 * what was mended while it ran is seen, too. */
#include "client/daemon/data_files.h"

#include <jansson.h>
#include <sys/stat.h>

#include "common/base/os/clock.h"

#define NS_PER_S UINT64_C(1000000000)

/* A mark of everything that a changed file changes: device, inode, size, time. It is no digest of contents:
 * reading a data set of gigabytes every five seconds would cost more than the training that it may save. Two
 * different states with the same mark only mean that a mended file is noticed later, by SIGHUP or a start. */
static uint64_t mix(uint64_t mark, uint64_t part)
{
    mark = (mark ^ part) * 0x100000001b3u;
    return mark ^ mark >> 29;
}

static uint64_t mix_file(uint64_t mark, const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        return mix(mark, 1);
    }
    mark = mix(mix(mark, (uint64_t)st.st_dev), (uint64_t)st.st_ino);
    mark = mix(mix(mark, (uint64_t)st.st_size), (uint64_t)st.st_mtim.tv_sec);
    return mix(mark, (uint64_t)st.st_mtim.tv_nsec);
}

/* Its strings: what is no path of a file is the same each time. */
static uint64_t mix_part(uint64_t mark, const json_t *part)
{
    const json_t *value;
    const char *key;
    json_object_foreach((json_t *)(uintptr_t)part, key, value)
    {
        mark = json_is_string(value) ? mix_file(mark, json_string_value(value)) : mark;
    }
    return mark;
}

uint64_t kedge_data_files_mark(const struct json_t *data)
{
    uint64_t mark = 0xcbf29ce484222325u;
    const json_t *binding, *part;
    const char *name, *key;
    json_object_foreach((json_t *)(uintptr_t)data, name, binding)
    {
        json_object_foreach((json_t *)(uintptr_t)binding, key, part)
        {
            mark = mix_part(mark, part);
        }
    }
    return mark;
}

void kedge_data_files_begin(struct kedge_data_files *f, const struct json_t *data)
{
    if (!f->looks) {
        f->mark = kedge_data_files_mark(data);
    }
}

bool kedge_data_files_turn(struct kedge_data_files *f, const struct json_t *data, bool lacks, uint64_t now_ns)
{
    if (!lacks || !f->looks) {
        f->looks = lacks;
        f->next_ns = now_ns + KEDGE_DATA_LOOK_S * NS_PER_S;
        return false;
    }
    if (now_ns < f->next_ns) {
        return false;
    }
    f->next_ns = now_ns + KEDGE_DATA_LOOK_S * NS_PER_S;
    uint64_t mark = kedge_data_files_mark(data);
    bool changed = mark != f->mark;
    f->mark = mark;
    f->looks = !changed;
    return changed;
}

uint64_t kedge_data_files_deadline_ns(const struct kedge_data_files *f)
{
    return f->looks ? f->next_ns : KEDGE_TIME_NEVER;
}
