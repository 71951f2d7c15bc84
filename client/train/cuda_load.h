/* Where the table of operations for CUDA comes from: a module of its own, kedge-train-cuda.so, which is
 * opened when a trainer is told to use a device. So neither kedge-train nor a machine without a device needs
 * anything of CUDA. */
#ifndef KEDGE_CLIENT_TRAIN_CUDA_LOAD_H
#define KEDGE_CLIENT_TRAIN_CUDA_LOAD_H

#include <stddef.h>

#include "client/train/ops.h"

/* Changes whenever struct kedge_ops or what it points to does: a module of another version is not used. */
enum { KEDGE_CUDA_VERSION = 3, KEDGE_CUDA_PATH_MAX = 4096 + 64 };

#ifdef __cplusplus
extern "C" {
#endif

/* In the module: its table, or NULL for another version than its own. */
typedef const struct kedge_ops *kedge_cuda_ops_of(uint32_t version);
kedge_cuda_ops_of kedge_cuda_ops;

/* The table of the module beside the program, or in ../lib/kedge from there; it stays loaded. NULL: not there
 * or not usable, and text says why in one line. */
const struct kedge_ops *kedge_cuda_load(char *text, size_t text_len);
/* The same, and where it lies: path of KEDGE_CUDA_PATH_MAX bytes, or NULL. */
const struct kedge_ops *kedge_cuda_find(char *path, char *text, size_t text_len);

#ifdef __cplusplus
}
#endif
#endif
