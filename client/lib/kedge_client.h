/* libkedge-client: what a trainer in another language needs to speak the contract of docs/modules/train.md
 * from inside its process: requests and replies, and weights as arrays. A plain C ABI for ctypes and its
 * like: pointers, whole numbers, F32. Functions return 0 or a negative number; then kedge_lib_error says why.
 * Not for several threads at once on one object. Includes nothing of Kedge's, and no names but these are
 * visible in the library. */
#ifndef KEDGE_CLIENT_LIB_KEDGE_CLIENT_H
#define KEDGE_CLIENT_LIB_KEDGE_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#if defined __GNUC__
#define KEDGE_LIB __attribute__((visibility("default")))
#else
#define KEDGE_LIB
#endif

enum { KEDGE_LIB_DIMS_MAX = 8, KEDGE_LIB_LINE_MAX = 65536 };

/* Changes when a function does: a program made for another one must not go on. */
enum { KEDGE_LIB_ABI = 1 };
KEDGE_LIB uint32_t kedge_lib_abi(void);
KEDGE_LIB const char *kedge_lib_version(void);
/* Of this thread's last failure; lives until its next call. */
KEDGE_LIB const char *kedge_lib_error(void);

/* ---- weights: named F32 tensors in an order, as safetensors files hold them ---- */
struct kedge_arrays;
KEDGE_LIB struct kedge_arrays *kedge_arrays_new(void); /* empty; NULL: no memory */
KEDGE_LIB void kedge_arrays_free(struct kedge_arrays *a);
/* A whole safetensors file of F32, in the order of its header, with metadata or without; the caller frees
 * *ret. */
KEDGE_LIB int kedge_arrays_load(const char *path, struct kedge_arrays **ret);
/* Appends a copy of a tensor: C order, dims outermost first, 0 to 8 of them, at most 1,024 tensors. */
KEDGE_LIB int kedge_arrays_add(struct kedge_arrays *a, const char *name, const uint64_t *dims,
                               uint32_t dims_count, const float *values);
/* The canonical file: beside path, then renamed. Refuses NaN and infinity, and names the tensor. */
KEDGE_LIB int kedge_arrays_save(const struct kedge_arrays *a, const char *path);
KEDGE_LIB uint32_t kedge_arrays_count(const struct kedge_arrays *a);
/* i below the count, else NULL or 0. Names and values live as long as a, and until the next tensor is added.
 */
KEDGE_LIB const char *kedge_arrays_name(const struct kedge_arrays *a, uint32_t i);
KEDGE_LIB uint32_t kedge_arrays_shape(const struct kedge_arrays *a, uint32_t i,
                                      uint64_t ret_dims[KEDGE_LIB_DIMS_MAX]); /* their count */
KEDGE_LIB float *kedge_arrays_values(struct kedge_arrays *a, uint32_t i, uint64_t *ret_count);

/* ---- requests and replies ---- */
struct kedge_session;
/* Takes standard input and output for the contract: what the process prints from now on goes to standard
 * error, so that no print spoils a reply, and what reads standard input finds its end. */
KEDGE_LIB int kedge_session_open(struct kedge_session **ret);
/* The same over two descriptors, which stay the caller's. */
KEDGE_LIB int kedge_session_over(int in_fd, int out_fd, struct kedge_session **ret);
KEDGE_LIB void kedge_session_close(struct kedge_session *s);
/* Waits for the next request. 1: *ret_line is one line of JSON, ended by a NUL, until the next call; 0: there
 * are no more; negative: a line beyond KEDGE_LIB_LINE_MAX, or input that fails. */
KEDGE_LIB int kedge_session_next(struct kedge_session *s, const char **ret_line, size_t *ret_len);
/* One line of JSON as the reply: no line feeds in it, less than KEDGE_LIB_LINE_MAX bytes. */
KEDGE_LIB int kedge_session_reply(struct kedge_session *s, const char *line, size_t len);

#endif
