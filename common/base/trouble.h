/* Why a site ends its part in a task without a result, in one word for the coordinator. The values stand on
 * the wire. A reason says nothing of the data: what it is about in detail is a text of its own, which leaves
 * the site only where its owner allows it. Pure. */
#ifndef KEDGE_COMMON_BASE_TROUBLE_H
#define KEDGE_COMMON_BASE_TROUBLE_H

enum kedge_trouble {
    KEDGE_TROUBLE_NONE = 0,
    KEDGE_TROUBLE_DATA_MISSING = 1,    /* the owner binds no data of that name, or their file is not there */
    KEDGE_TROUBLE_DATA_BAD = 2,        /* they cannot be read, a bad cell perhaps */
    KEDGE_TROUBLE_DATA_SHAPE = 3,      /* other columns, shapes or classes than the job's model */
    KEDGE_TROUBLE_DIVERGED = 4,        /* NaN, infinity, or a value beyond the job's bound */
    KEDGE_TROUBLE_TRAINER_FAILED = 5,  /* it ended, was silent or broke the rules */
    KEDGE_TROUBLE_TRAINER_REFUSED = 6, /* it answered that it will not */
    KEDGE_TROUBLE_DISK = 7,
    KEDGE_TROUBLE_MEMORY = 8,
    KEDGE_TROUBLE_ENERGY = 9, /* it rests: battery, hours, joules, temperature */
    KEDGE_TROUBLE_POLICY = 10,
    KEDGE_TROUBLE_OTHER = 11,
    KEDGE_TROUBLE_COUNT
};

/* "data-bad"; "unknown" for what is no reason. */
const char *kedge_trouble_name(enum kedge_trouble trouble);
/* What it means, for people. */
const char *kedge_trouble_text(enum kedge_trouble trouble);
/* By the error alone, where nothing else is known; KEDGE_OK: NONE. */
enum kedge_trouble kedge_trouble_of(int err);

#endif
