/* Internal to libkedge-client. */
#ifndef KEDGE_CLIENT_LIB_LIB_H
#define KEDGE_CLIENT_LIB_LIB_H

#include <stdbool.h>

#include "client/lib/kedge_client.h"
#include "common/base/err.h"

/* Keeps the text for kedge_lib_error; returns err. */
int kedgei_lib_fail(int err, const char *format, ...) KEDGE_PRINTF(2, 3);
/* All of it; false: errno says why. */
bool kedgei_lib_write(int fd, const void *ptr, size_t len);

#endif
