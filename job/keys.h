/* The keys of a job spec as a table: job/keys.def says what each is, the parser, the printer and the schema
 * follow. Pure. */
#ifndef KEDGE_JOB_KEYS_H
#define KEDGE_JOB_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "job/job_spec.h"

enum kedge_job_key_kind {
    KEDGE_JOB_KEY_WHOLE32, /* whole number, a uint32_t */
    KEDGE_JOB_KEY_WHOLE64, /* whole number, a uint64_t */
    KEDGE_JOB_KEY_SEED,    /* whole number below 2^64, a uint64_t */
    KEDGE_JOB_KEY_REAL,    /* a double */
    KEDGE_JOB_KEY_SHARE,   /* above 0, at most 1, to 6 places: a uint32_t of millionths */
    KEDGE_JOB_KEY_WORD,    /* one of `words` */
    KEDGE_JOB_KEY_OWN,     /* read, printed and described by code of its own */
};

struct kedge_job_key {
    const char *key;
    enum kedge_job_key_kind kind;
    size_t offset; /* in struct kedge_job_spec */
    double least, most, fallback;
    bool is_required;
    const char *shown_default, *text; /* for docs/job-spec.md */
    const char *const *words;         /* NULL-terminated, of kind WORD; else NULL */
};

/* All keys, in the order in which they are documented and printed. */
extern const struct kedge_job_key kedge_job_keys[];
extern const size_t kedge_job_key_count;
/* The row of this key; NULL: there is none. */
const struct kedge_job_key *kedge_job_key_find(const char *key);

/* Whether the job reads the key: with this strategy, model and rule its value decides something, or says what
 * is the case. Of a parsed spec. */
bool kedge_job_key_is_read(const struct kedge_job_spec *spec, const struct kedge_job_key *key);

/* Appends the whole spec as a JSON object of one key a line: every key that the job reads, defaults written
 * out. kedge_job_spec_parse gives the same spec of it. out->err: KEDGE_E_TOO_LONG, KEDGE_E_NOMEM. */
void kedge_job_spec_put(const struct kedge_job_spec *spec, struct kedge_buf *out);
/* The same without the end of the object, for what goes on behind it: the spec of a simulation. */
void kedge_job_spec_put_keys(const struct kedge_job_spec *spec, struct kedge_buf *out);
/* Appends the JSON Schema (draft 2020-12) of a job spec: what a spec of these keys can be, each by itself.
 * Rules between keys are kedge_job_spec_parse's. */
void kedge_job_spec_put_schema(struct kedge_buf *out);

#endif
