/* Names of classes as statements state them and tasks carry them: a set, each name with its NUL, strictly
 * ascending by bytes, then an empty one. A name is 1 to KEDGE_CLASS_NAME_MAX bytes of plain UTF-8 (text.h).
 * All names together have at most KEDGE_CLASS_NAMES_BYTES_MAX bytes with their NULs. Pure. */
#ifndef KEDGE_COMMON_TENSOR_CLASS_NAMES_H
#define KEDGE_COMMON_TENSOR_CLASS_NAMES_H

#include "common/base/bytes.h"
#include "common/base/err.h"
#include "common/base/limits.h"

enum { KEDGE_CLASS_NAMES_ROOM = KEDGE_CLASS_NAMES_BYTES_MAX + 1 };

/* NULL when `names`, which has that much room, is such a set or empty; else what was expected. */
const char *kedge_class_names_expected(const char names[KEDGE_CLASS_NAMES_ROOM]);
/* Bytes of all names with their NULs. */
size_t kedge_class_names_len(const char *names);
uint32_t kedge_class_names_count(const char *names);
/* Adds to the set `into` what it lacks of `more`. KEDGE_E_TOO_LONG: there is no room; `into` is unchanged. */
KEDGE_NODISCARD int kedge_class_names_unite(char into[KEDGE_CLASS_NAMES_ROOM], const char *more);
/* Are all names of `some` in `all`? */
bool kedge_class_names_include(const char *all, const char *some);
/* From bytes as kedge_class_names_len counts them. KEDGE_E_FORMAT: no such set; ret is written on success. */
KEDGE_NODISCARD int kedge_class_names_read(struct kedge_view packed, char ret[KEDGE_CLASS_NAMES_ROOM]);

#endif
