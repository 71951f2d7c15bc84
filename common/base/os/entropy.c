#include "common/base/os/entropy.h"

#include <errno.h>
#include <stdint.h>
#include <sys/random.h>

#include "common/base/err.h"

void kedge_os_random(void *out, size_t len)
{
    uint8_t *p = out;
    while (len > 0) {
        ssize_t n = getrandom(p, len, 0);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        KEDGE_ASSERT(n > 0);
        p += n;
        len -= (size_t)n;
    }
}
