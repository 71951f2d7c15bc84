/* Random bytes from the kernel, the only entropy source besides libsodium's. Aborts if there are none. */
#ifndef KEDGE_COMMON_BASE_OS_ENTROPY_H
#define KEDGE_COMMON_BASE_OS_ENTROPY_H

#include <stddef.h>

void kedge_os_random(void *out, size_t len);

#endif
