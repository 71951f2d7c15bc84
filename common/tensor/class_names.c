/* Sets of class names as one sorted block of texts. Sorted by bytes and without duplicates, the
 * union of several sites' names is the same whatever order they come in, and a set has one
 * spelling, which can be signed. */
#include "common/tensor/class_names.h"

#include <string.h>

#include "common/base/text.h"

/* Names come from sites and are shown to all of them, in logs and lists: they must be valid UTF-8
 * without characters that hide or reorder text. */
const char *kedge_class_names_expected(const char names[KEDGE_CLASS_NAMES_ROOM])
{
    const char *former = NULL;
    size_t at = 0;
    while (names[at] != '\0') {
        size_t len = strnlen(names + at, KEDGE_CLASS_NAMES_ROOM - at);
        if (len > KEDGE_CLASS_NAME_MAX) {
            return "names of at most 127 bytes";
        }
        if (at + len + 1 >= KEDGE_CLASS_NAMES_ROOM) { /* no place for the empty one */
            return "at most 4096 bytes of names";
        }
        struct kedge_view name = kedge_view_of(names + at, len);
        if (!kedge_utf8_is_valid(name) || !kedge_text_is_plain(name)) {
            return "names in UTF-8 without control characters and characters that nobody sees";
        }
        if (former && strcmp(former, names + at) >= 0) {
            return "names in strictly ascending order of their bytes";
        }
        former = names + at;
        at += len + 1;
    }
    return NULL;
}

size_t kedge_class_names_len(const char *names)
{
    size_t at = 0;
    while (names[at] != '\0') {
        at += strlen(names + at) + 1;
    }
    return at;
}

uint32_t kedge_class_names_count(const char *names)
{
    uint32_t count = 0;
    for (size_t at = 0; names[at] != '\0'; at += strlen(names + at) + 1) {
        count++;
    }
    return count;
}

/* Both ascend, so that the smaller of two heads comes next. */
int kedge_class_names_unite(char into[KEDGE_CLASS_NAMES_ROOM], const char *more)
{
    char united[KEDGE_CLASS_NAMES_ROOM] = "";
    const char *a = into, *b = more;
    size_t used = 0;
    while (*a != '\0' || *b != '\0') {
        int order = *a == '\0' ? 1 : *b == '\0' ? -1 : strcmp(a, b);
        const char *next = order <= 0 ? a : b;
        size_t len = strlen(next) + 1;
        if (used + len > KEDGE_CLASS_NAMES_BYTES_MAX) {
            return KEDGE_E_TOO_LONG;
        }
        memcpy(united + used, next, len);
        used += len;
        a += order <= 0 ? len : 0;
        b += order >= 0 ? len : 0;
    }
    memset(into, 0, KEDGE_CLASS_NAMES_ROOM);
    memcpy(into, united, used);
    return KEDGE_OK;
}

bool kedge_class_names_include(const char *all, const char *some)
{
    while (*some != '\0') {
        while (*all != '\0' && strcmp(all, some) < 0) {
            all += strlen(all) + 1;
        }
        if (*all == '\0' || strcmp(all, some) != 0) {
            return false;
        }
        some += strlen(some) + 1;
    }
    return true;
}

/* Checked as strictly as when it is made, and cut off at the end by the empty name. */
int kedge_class_names_read(struct kedge_view packed, char ret[KEDGE_CLASS_NAMES_ROOM])
{
    char names[KEDGE_CLASS_NAMES_ROOM] = "";
    if (packed.len > KEDGE_CLASS_NAMES_BYTES_MAX || (packed.len > 0 && packed.ptr[packed.len - 1] != '\0')) {
        return KEDGE_E_FORMAT;
    }
    if (packed.len > 0) {
        memcpy(names, packed.ptr, packed.len);
    }
    if (kedge_class_names_expected(names) || kedge_class_names_len(names) != packed.len) {
        return KEDGE_E_FORMAT;
    }
    memcpy(ret, names, sizeof names);
    return KEDGE_OK;
}
