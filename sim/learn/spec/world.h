/* The keys of a simulation's "world" as a table: sim/learn/spec/world.def says what each is; the reader, the
 * printer, the check of numbers and the table of docs/cli.md follow. Inside of sim/learn. */
#ifndef KEDGE_SIM_LEARN_SPEC_WORLD_H
#define KEDGE_SIM_LEARN_SPEC_WORLD_H

#include "sim/learn/learn.h"

struct json_t;

enum kedgei_world_kind {
    KEDGEI_WORLD_WHOLE,  /* whole number, a uint32_t */
    KEDGEI_WORLD_REAL,   /* a double */
    KEDGEI_WORLD_YES,    /* a bool */
    KEDGEI_WORLD_WORD,   /* one of `words`: a uint32_t, counted through them */
    KEDGEI_WORLD_TEXT,   /* at most `most` bytes and a NUL */
    KEDGEI_WORLD_ROUNDS, /* struct kedge_learn_rounds: a list of whole numbers, ascending */
    KEDGEI_WORLD_OWN,    /* read and printed by code of its own */
};

struct kedgei_world_key {
    const char *section, *key; /* section: "world", or an object in it, "data" */
    enum kedgei_world_kind kind;
    size_t offset; /* in struct kedge_learn_spec, of a device's keys in struct kedge_learn_device */
    double least, most, fallback;
    bool (*is_read)(const struct kedge_learn_spec *spec); /* NULL: by all */
    const char *why;                                      /* it is not read */
    const char *const *words;                             /* NULL-terminated, of kind WORD; else NULL */
};

extern const struct kedgei_world_key kedgei_world_keys[], kedgei_device_keys[];
extern const size_t kedgei_world_key_count, kedgei_device_key_count;
bool kedgei_world_is_read(const struct kedge_learn_spec *spec, const struct kedgei_world_key *row);

/* Reads "world" into all of spec but its job, which is read already; NULL: there is none. What `own` has of
 * it must be read, else KEDGE_E_FORMAT names it; other keys that are not read say nothing. */
KEDGE_NODISCARD int kedgei_world_read(const struct json_t *world, const struct json_t *own,
                                      struct kedge_learn_spec *spec, struct kedge_diag *d);
/* Appends it as an object, without what is not read. */
void kedgei_world_put(const struct kedge_learn_spec *spec, struct kedge_buf *out);

#endif
