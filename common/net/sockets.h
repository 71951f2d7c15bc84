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

/* The descriptor of this process with these ends, -1 if there is none. */
int kedgei_find_socket(const struct kedgei_ends *ends);
/* False once a TCP connection was shut down on this side or reset; an end that the peer has announced
 * is for the reader to find. */
bool kedgei_socket_is_open(int fd);

#endif
