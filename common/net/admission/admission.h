/* Internal to net: who may open a connection, and who makes room. Pure; the caller counts.
 *
 * A connection is the operator's door (ipc://), of a known key (the application knows it), or a stranger's:
 * nobody knows yet, or ever, whose it is. Each class has places of its own, so however many strangers come,
 * they are in nobody's way but each other's; and one address, or one key, has only some of them. */
#ifndef KEDGE_COMMON_NET_ADMISSION_ADMISSION_H
#define KEDGE_COMMON_NET_ADMISSION_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

enum kedgei_class {
    KEDGEI_STRANGER,
    KEDGEI_KNOWN,
    KEDGEI_DOOR,
    KEDGEI_CLASSES,
};

struct kedgei_places {
    unsigned of[KEDGEI_CLASSES];  /* connections of a class */
    unsigned one[KEDGEI_CLASSES]; /* … of which one address (strangers) or one key (known) may have so many;
                                     the door is one party's */
};

enum kedgei_verdict {
    KEDGEI_ADMIT,
    KEDGEI_EVICT_OWN,   /* the longest idle one of the same address or key makes room, or it is refused */
    KEDGEI_EVICT_CLASS, /* the longest idle one of the class does, or it is refused */
};

/* `count`: connections of the class now; `own`: those of them of the same address or key. */
enum kedgei_verdict kedgei_admission(const struct kedgei_places *places, enum kedgei_class class,
                                     unsigned count, unsigned own);

/* How a connection looks to one that wants its place. */
struct kedgei_idleness {
    enum kedgei_class class;
    bool at_work;      /* a request of it is not answered yet, or an answer is on its way */
    bool has_spoken;   /* its first byte has come */
    uint64_t since_ns; /* accepted, or since it said who it is, or its last whole request */
};

/* Whether it may be closed for another's sake. A stranger who has just come is given time to say who he is:
 * else in a rush of honest ones each would push out the one before it, and none would get in. One who says
 * nothing at all is given little. Known ones and the door are left alone while they are at work. */
bool kedgei_admission_may_evict(const struct kedgei_idleness *it, uint64_t now_ns);

#endif
