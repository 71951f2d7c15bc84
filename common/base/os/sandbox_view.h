/* What a child in a sandbox sees of the file system and of other processes. Internal to sandbox.c; between
 * fork and exec: async-signal-safe calls alone, in a user namespace and a mount namespace of its own. */
#ifndef KEDGE_COMMON_BASE_OS_SANDBOX_VIEW_H
#define KEDGE_COMMON_BASE_OS_SANDBOX_VIEW_H

#include "common/base/os/sandbox.h"

/* guarded, own and hidden of the sandbox, as sandbox.h says. Changes the working folder. False: errno. */
bool kedgei_sandbox_guard(const struct kedge_sandbox *s);
/* In the first process of a PID namespace: a /proc that knows no others. `other` is a path in /proc of one
 * outside. False: the kernel lets none be mounted (parts of the one that is there are covered), and the one
 * outside can be looked at. */
bool kedgei_sandbox_own_proc(const char *other);

#endif
