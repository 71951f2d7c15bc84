/* What somebody may have meant by a misspelt word. Pure. */
#ifndef KEDGE_COMMON_BASE_NEAREST_H
#define KEDGE_COMMON_BASE_NEAREST_H

#include <stddef.h>

#include "common/base/diag.h"

/* The word that is one or two slips of the fingers away from `word`; NULL when there is none. Slips are
 * letters added, lost, changed, or two neighbours swapped (optimal string alignment). */
const char *kedge_nearest(const char *word, const char *const *words, size_t count);
/* The hint of an error about an unknown key: did you mean "…"?, else `otherwise` ("": no hint). */
void kedge_nearest_hint(struct kedge_diag *d, const char *word, const char *const *words, size_t count,
                        const char *otherwise);

#endif
