/* The keys of a learning simulation's spec: a row each. Inside of sim/learn. */
#ifndef KEDGE_SIM_LEARN_SPEC_SPEC_ROWS_H
#define KEDGE_SIM_LEARN_SPEC_SPEC_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/tensor/json.h"
#include "sim/learn/learn.h"

enum kedgei_spec_kind {
    KEDGEI_SPEC_U32,  /* whole number */
    KEDGEI_SPEC_U64,  /* whole number below 2^64, written in quotes */
    KEDGEI_SPEC_REAL, /* double */
    KEDGEI_SPEC_BOOL,
    KEDGEI_SPEC_WORD, /* an enum, counted through `words` */
    KEDGEI_SPEC_TEXT, /* characters with a NUL, at most `most` of them; `words` may name all that it can be */
    KEDGEI_SPEC_ROUNDS, /* struct kedge_learn_rounds: a list of whole numbers, ascending */
};

struct kedgei_spec_row {
    const char *section; /* the object that it stands in: "", "compression", "world", "world.data", … */
    const char *key;
    enum kedgei_spec_kind kind;
    size_t offset;
    double least, most;
    bool above_least, below_most; /* the end itself is outside of the range */
    const char *const *words;     /* NULL-terminated */
    bool is_new; /* not written while it is 0: results from before the key was keep their name */
};

/* Of struct kedge_learn_spec, in the order in which they are written. */
extern const struct kedgei_spec_row kedgei_spec_rows[];
extern const size_t kedgei_spec_row_count;
/* Of struct kedge_learn_device; section "". */
extern const struct kedgei_spec_row kedgei_device_rows[];
extern const size_t kedgei_device_row_count;

/* One object on its way into a spec. */
struct kedgei_spec_layer {
    const struct kedge_json *doc;
    struct kedge_learn_spec *spec;
    struct kedge_diag *d;
};

/* What stands at a token, for a message: its first bytes, in quotes when it is text. */
enum { KEDGEI_SAID_MAX = 40 };
struct kedgei_spec_said {
    char s[KEDGEI_SAID_MAX + 8];
};
struct kedgei_spec_said kedgei_spec_said(const struct kedge_json *doc, uint32_t at);

/* Reads the value at `at` into row's place in base. KEDGE_E_FORMAT names the key, what was expected and
 * found; base is unchanged then. */
KEDGE_NODISCARD int kedgei_spec_read(const struct kedgei_spec_layer *l, const struct kedgei_spec_row *row,
                                     uint32_t at, void *base);

#endif
