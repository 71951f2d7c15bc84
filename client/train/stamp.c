/* Whether the files behind a data binding are still the ones that were loaded. */
#include <sys/stat.h>

#include "client/train/task.h"

static bool add_stamp(const char *path, uint64_t *stamp)
{
    struct stat st;
    if (path[0] == '\0') {
        return true;
    }
    if (stat(path, &st) != 0) {
        return false;
    }
    uint64_t parts[] = {(uint64_t)st.st_dev, (uint64_t)st.st_ino, (uint64_t)st.st_size,
                        (uint64_t)st.st_mtim.tv_sec, (uint64_t)st.st_mtim.tv_nsec};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        *stamp = (*stamp ^ parts[i]) * 0x100000001b3u;
        *stamp ^= *stamp >> 29;
    }
    return true;
}

uint64_t kedge_data_binding_stamp(const struct kedge_data_binding *binding)
{
    uint64_t stamp = 0xcbf29ce484222325u;
    bool found = add_stamp(binding->train.path, &stamp) && add_stamp(binding->train.labels_path, &stamp);
    if (found && binding->has_test) {
        found = add_stamp(binding->test.path, &stamp) && add_stamp(binding->test.labels_path, &stamp);
    }
    return !found ? 0 : stamp ? stamp : 1;
}
