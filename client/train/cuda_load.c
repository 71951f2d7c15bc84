#include "client/train/cuda_load.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = KEDGE_CUDA_PATH_MAX - 64 };

/* The folder that the program lies in, without a slash at its end; false where the system does not say. */
static bool program_folder(char *folder, size_t size)
{
    const ssize_t n = readlink("/proc/self/exe", folder, size - 1);
    if (n <= 0 || (size_t)n >= size - 1) {
        return false;
    }
    folder[n] = '\0';
    char *slash = strrchr(folder, '/');
    if (slash) {
        *slash = '\0';
    }
    return slash != NULL;
}

/* The back end for CUDA is a module of its own beside the program: one kedge-train runs on machines with
 * and without the CUDA libraries. It is looked for only where an installation puts it, never in the folders
 * that the environment names, because it runs with the rights of the site. */
const struct kedge_ops *kedge_cuda_find(char *ret_path, char *text, size_t text_len)
{
    static const char *const places[] = {"", "/../lib/kedge"};
    char folder[PATH_BYTES], path[KEDGE_CUDA_PATH_MAX];
    if (!program_folder(folder, sizeof folder)) {
        (void)snprintf(text, text_len, "the program's own folder cannot be found");
        return NULL;
    }
    (void)snprintf(text, text_len, "this installation has no kedge-train-cuda.so");
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        (void)snprintf(path, sizeof path, "%s%s/kedge-train-cuda.so", folder, places[i]);
        if (access(path, F_OK) != 0) {
            continue;
        }
        void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!module) {
            const char *why = dlerror();
            (void)snprintf(text, text_len, "kedge-train-cuda.so cannot be loaded: %s",
                           why ? why : "unknown reason");
            continue;
        }
        kedge_cuda_ops_of *ops_of = NULL;
        void *symbol = dlsym(module, "kedge_cuda_ops");
        memcpy(&ops_of, &symbol, sizeof ops_of); /* ISO C has no cast between the two kinds of pointers */
        const struct kedge_ops *ops = ops_of ? ops_of(KEDGE_CUDA_VERSION) : NULL;
        if (ops) {
            if (ret_path) {
                memcpy(ret_path, path, strlen(path) + 1);
            }
            return ops;
        }
        (void)snprintf(text, text_len, "kedge-train-cuda.so is of another version of kedge-train");
        (void)dlclose(module);
    }
    return NULL;
}

const struct kedge_ops *kedge_cuda_load(char *text, size_t text_len)
{
    return kedge_cuda_find(NULL, text, text_len);
}
