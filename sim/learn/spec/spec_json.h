/* The SPEC.json of a learning simulation: the keys of a job spec (job/keys.def) and a "world" (world.def).
 * The presets are in spec_presets.c. Pure.
 *
 * A spec is merged from layers of JSON, each over the one before: the preset, the keys of the file, and those
 * of one of its variants. A layer that names a strategy begins with that strategy's own options. "world" is
 * cut off the whole, the rest is read as a job is (kedge_job_spec_read_in_world). What several runs share,
 * the preset and the file of a comparison, counts for each as far as it reads it; what a run says for itself
 * it must read. */
#ifndef KEDGE_SIM_LEARN_SPEC_SPEC_JSON_H
#define KEDGE_SIM_LEARN_SPEC_SPEC_JSON_H

#include "common/base/bytes.h"
#include "common/base/diag.h"
#include "sim/learn/learn.h"

enum {
    KEDGE_LEARN_SPEC_TEXT_MAX = 65536,
    KEDGE_LEARN_VARIANTS_MAX = 32,
    KEDGE_LEARN_VARIANT_NAME_MAX = 31,
};

/* Whether text is a JSON object that describes a learning simulation: it has "preset" or "world", or
 * "data", which was the word before. False also
 * for what is no JSON: its next reader says so. */
bool kedge_learn_spec_is(struct kedge_view text);

/* Reads text. `variant` is NULL, the name of one of the file's "variants", or the name of a strategy, which
 * then takes the place of the file's. *ret is written only on success. KEDGE_E_FORMAT (unknown key, wrong
 * type, out of range, or one that nothing reads; names key and what was expected), KEDGE_E_TOO_LONG,
 * KEDGE_E_NOT_FOUND (no such variant), KEDGE_E_NOMEM. Whether job and world go together is
 * kedge_learn_spec_check's to say. */
KEDGE_NODISCARD int kedge_learn_spec_parse(struct kedge_view text, const char *variant,
                                           struct kedge_learn_spec *ret, struct kedge_diag *reterr);

/* Appends the whole spec as one JSON object with every key that it reads: what kedge_learn_spec_parse reads
 * back to the same spec. Equal specs give equal bytes. */
void kedge_learn_spec_put(const struct kedge_learn_spec *spec, struct kedge_buf *out);

/* Presets by number, static: a name and the JSON object that it stands for. NULL past the last. */
struct kedge_learn_preset {
    const char *name, *what, *json;
};
const struct kedge_learn_preset *kedge_learn_preset_at(size_t i);

#endif
