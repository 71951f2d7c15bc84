/* Internal to net: finds sockets of this process by their two ends. */
#ifndef KEDGE_COMMON_NET_SOCKETS_H
#define KEDGE_COMMON_NET_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kedgei_end {
    uint8_t address[16]; /* network order; IPv4 in the first 4 bytes */
    uint16_t port;       /* network order */
    bool is_v6;
};

struct kedgei_ends {
    struct kedgei_end remote, local;
};

/* shutdown(2) in both directions on every socket with one of these pairs of ends. Those who use the
 * sockets see the end of the connection; descriptors stay theirs to close. */
void kedgei_shut_sockets(const struct kedgei_ends *ends, size_t count);

#endif
