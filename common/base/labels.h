/* Labels of sites, and what jobs need of them: words such as "gpu=h100". Pure.
 *
 * A label is KEY=VALUE, both [a-z0-9][a-z0-9._-]{0,30}. A set of them has one spelling: ascending by bytes,
 * one space between two, each key once, at most KEDGE_LABEL_COUNT_MAX; the empty text is the empty set. So
 * two sets are the same exactly where their texts are. */
#ifndef KEDGE_COMMON_BASE_LABELS_H
#define KEDGE_COMMON_BASE_LABELS_H

#include <stdbool.h>

#include "common/base/bytes.h"
#include "common/base/err.h"

enum {
    KEDGE_LABEL_COUNT_MAX = 16,
    KEDGE_LABEL_PART_MAX = 31,                      /* characters of a key, of a value */
    KEDGE_LABEL_MAX = 2 * KEDGE_LABEL_PART_MAX + 1, /* … of a label */
    KEDGE_LABELS_TEXT_MAX = KEDGE_LABEL_COUNT_MAX * (KEDGE_LABEL_MAX + 1) - 1, /* … of a set */
};

struct kedge_label_set {
    char text[KEDGE_LABELS_TEXT_MAX + 1];
};

bool kedge_label_is_valid(struct kedge_view text);
/* The one spelling of a set, also of the empty one. */
bool kedge_labels_are_valid(struct kedge_view text);
/* One more. KEDGE_E_FORMAT: it is no label; KEDGE_E_EXISTS: the set has that key; KEDGE_E_FULL. After an
 * error the set is as it was. */
KEDGE_NODISCARD int kedge_labels_add(struct kedge_label_set *io, struct kedge_view label);
/* The first label of *io, which becomes what follows it; false at the end. *io is a valid set, or the rest of
 * one. */
bool kedge_labels_next(struct kedge_view *io, struct kedge_view *ret);
/* Has the first set all labels of the second? Both are valid. */
bool kedge_labels_cover(struct kedge_view have, struct kedge_view needs);

#endif
