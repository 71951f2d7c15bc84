#include "sim/learn/report/report_data.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/os/process.h"

static int no_data(const struct kedge_learn_spec *spec, struct kedge_diag *d)
{
    const char *name = spec->images;
    (void)kedge_diag_set(d, KEDGE_E_NOT_FOUND, "\"images\" in \"data\": \"%.200s\" is not here", name);
    if (spec->partition == KEDGE_LEARN_CLIENTS) {
        (void)kedge_diag_hint(d, "the clients' file or folder is meant from the current folder");
        return KEDGE_E_NOT_FOUND;
    }
    (void)kedge_diag_hint(d,
                          strchr(name, '/') ? "name a folder with the four IDX files, or a data set as %s"
                                            : "from the source tree: ./scripts/get-data %s",
                          strchr(name, '/') ? "mnist" : name);
    return KEDGE_E_NOT_FOUND;
}

int kedge_learn_find_images(const struct kedge_learn_spec *spec, char out[KEDGE_PATH_MAX],
                            struct kedge_diag *reterr)
{
    char own[KEDGE_PATH_MAX] = "", share[KEDGE_PATH_MAX] = "", path[KEDGE_PATH_MAX];
    if (spec->partition == KEDGE_LEARN_SYNTHETIC) {
        out[0] = '\0';
        return KEDGE_OK;
    }
    if ((strchr(spec->images, '/') || spec->partition == KEDGE_LEARN_CLIENTS)
        && kedge_file_exists(spec->images)) {
        memcpy(out, spec->images, strlen(spec->images) + 1);
        return KEDGE_OK;
    }
    if (kedge_process_own_dir(own, sizeof own) != KEDGE_OK
        || kedge_path_join(share, own, "../share/kedge/data") != KEDGE_OK) {
        share[0] = '\0';
    }
    const char *env = getenv("KEDGE_DATA");
    const char *const roots[] = {env ? env : "", share};
    bool below = spec->images[0] && spec->images[0] != '/';
    for (size_t i = 0; below && i < sizeof roots / sizeof roots[0]; i++) {
        if (roots[i][0] && kedge_path_join(path, roots[i], spec->images) == KEDGE_OK
            && kedge_file_exists(path)) {
            memcpy(out, path, strlen(path) + 1);
            return KEDGE_OK;
        }
    }
    return no_data(spec, reterr);
}
