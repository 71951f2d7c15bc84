/* Internal to net: what a server turned away, for one line of its log a second, however many come. */
#ifndef KEDGE_COMMON_NET_ADMISSION_PRESSURE_H
#define KEDGE_COMMON_NET_ADMISSION_PRESSURE_H

#include <stdbool.h>
#include <stdint.h>

#include "crypto/sign.h"

enum kedgei_pressure_kind {
    KEDGEI_TURNED_AWAY, /* connections that were not let in, for want of a place or because too many come */
    KEDGEI_EVICTED,     /* idle connections that made room for others */
    KEDGEI_PUT_OFF,     /* requests that were told to come later */
    KEDGEI_PRESSURES,
};

struct kedgei_pressure {
    uint64_t count[KEDGEI_PRESSURES]; /* since it was last said */
    uint64_t said_ns;
    uint8_t address[16]; /* of the last one */
    bool has_key;
    struct kedge_public_key key; /* of the last one */
};

/* key NULL: nobody knows whose it was. */
void kedgei_pressure_note(struct kedgei_pressure *p, enum kedgei_pressure_kind kind,
                          const uint8_t address[16], const struct kedge_public_key *key);
/* Logs what has been noted, at most once a second. True: something is still to be said. */
bool kedgei_pressure_say(struct kedgei_pressure *p, const char *server, uint64_t now_ns);

#endif
