/* sd_notify(3) without libsystemd: one datagram to a socket that the environment names. It never blocks
 * and its failure is no error, for a service must run without a service manager, too. Texts become plain,
 * because status lines may quote what peers wrote. */
#include "common/base/os/notify.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/os/clock.h"
#include "common/base/text.h"

enum { NS_PER_US = 1000, NUMBER_MAX = 20 };

/* The address in NOTIFY_SOCKET: a path, or "@name" in Linux's abstract name space. */
static bool find_address(struct sockaddr_un *ret, socklen_t *ret_len)
{
    const char *path = getenv("NOTIFY_SOCKET");
    size_t len = path ? strlen(path) : 0;
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (len < 2 || len >= sizeof ret->sun_path || (path[0] != '/' && path[0] != '@')) {
        return false;
    }
    memcpy(ret->sun_path, path, len);
    bool abstract = path[0] == '@';
    ret->sun_path[0] = abstract ? '\0' : '/';
    *ret_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (abstract ? 0 : 1));
    return true;
}

static bool send_words(const char *text, size_t len)
{
    struct sockaddr_un a;
    socklen_t a_len;
    if (!find_address(&a, &a_len)) {
        return false;
    }
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool sent = fd >= 0
                && sendto(fd, text, len, MSG_NOSIGNAL | MSG_DONTWAIT, (const struct sockaddr *)&a, a_len)
                       == (ssize_t)len;
    if (fd >= 0) {
        close(fd);
    }
    return sent;
}

bool kedge_notify(const char *words, const char *status)
{
    char text[KEDGE_NOTIFY_MAX];
    int n = snprintf(text, sizeof text, "%s%s%s", words, status ? "\nSTATUS=" : "", status ? status : "");
    if (n <= 0) {
        return false;
    }
    size_t len = (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    if (status && len > strlen(words) + 1) {
        kedge_text_make_plain(text + strlen(words) + 1);
        len = strlen(text);
    }
    return send_words(text, len);
}

bool kedge_notify_reloading(void)
{
    char text[64];
    snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, kedge_os_now_ns() / NS_PER_US);
    return kedge_notify(text, NULL);
}

static bool number_of(const char *name, uint64_t *ret)
{
    const char *text = getenv(name);
    return text && strlen(text) <= NUMBER_MAX
           && kedge_decimal_decode(kedge_view_str(text), UINT64_MAX / NS_PER_US, ret) == KEDGE_OK;
}

uint64_t kedge_notify_watchdog_ns(void)
{
    uint64_t us = 0, pid = 0;
    bool mine = !getenv("WATCHDOG_PID") || (number_of("WATCHDOG_PID", &pid) && pid == (uint64_t)getpid());
    return mine && number_of("WATCHDOG_USEC", &us) ? us * NS_PER_US / 2 : 0;
}
