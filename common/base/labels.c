#include "common/base/labels.h"

#include <string.h>

static bool is_part(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        const bool plain = (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= '0' && s[i] <= '9');
        if (!plain && (i == 0 || (s[i] != '.' && s[i] != '_' && s[i] != '-'))) {
            return false;
        }
    }
    return len >= 1 && len <= KEDGE_LABEL_PART_MAX;
}

static size_t key_len(struct kedge_view label)
{
    const char *equals = label.len > 0 ? memchr(label.ptr, '=', label.len) : NULL;
    return equals ? (size_t)(equals - (const char *)label.ptr) : label.len;
}

bool kedge_label_is_valid(struct kedge_view text)
{
    const char *s = (const char *)text.ptr;
    const size_t key = key_len(text);
    return key < text.len && is_part(s, key) && is_part(s + key + 1, text.len - key - 1);
}

static int compare(struct kedge_view a, struct kedge_view b)
{
    const int by = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);
    return by != 0 ? by : (a.len > b.len) - (a.len < b.len);
}

static bool have_one_key(struct kedge_view a, struct kedge_view b)
{
    return key_len(a) == key_len(b) && memcmp(a.ptr, b.ptr, key_len(a)) == 0;
}

bool kedge_labels_next(struct kedge_view *io, struct kedge_view *ret)
{
    if (io->len == 0) {
        return false;
    }
    const char *s = (const char *)io->ptr, *space = memchr(s, ' ', io->len);
    const size_t len = space ? (size_t)(space - s) : io->len, gone = space ? len + 1 : len;
    *ret = (struct kedge_view){io->ptr, len};
    *io = (struct kedge_view){io->ptr + gone, io->len - gone};
    return true;
}

/* Labels of one key stand next to each other in the order by bytes, so neighbours tell whether a key comes
 * twice. */
bool kedge_labels_are_valid(struct kedge_view text)
{
    struct kedge_view rest = text, label, before = {NULL, 0};
    size_t count = 0;
    if (text.len > KEDGE_LABELS_TEXT_MAX || (text.len > 0 && text.ptr[text.len - 1] == ' ')) {
        return false;
    }
    while (kedge_labels_next(&rest, &label)) {
        const bool ascends = !before.ptr || (compare(before, label) < 0 && !have_one_key(before, label));
        if (!kedge_label_is_valid(label) || !ascends || ++count > KEDGE_LABEL_COUNT_MAX) {
            return false;
        }
        before = label;
    }
    return true;
}

static void put(struct kedge_label_set *io, struct kedge_view label)
{
    size_t len = strlen(io->text);
    if (len > 0) {
        io->text[len++] = ' ';
    }
    memcpy(io->text + len, label.ptr, label.len);
    io->text[len + label.len] = '\0';
}

int kedge_labels_add(struct kedge_label_set *io, struct kedge_view label)
{
    struct kedge_label_set made = {.text = ""};
    struct kedge_view rest = kedge_view_str(io->text), other;
    size_t count = 0;
    bool is_in = false;
    if (!kedge_label_is_valid(label)) {
        return KEDGE_E_FORMAT;
    }
    while (kedge_labels_next(&rest, &other)) {
        if (have_one_key(other, label)) {
            return KEDGE_E_EXISTS;
        }
        if (++count == KEDGE_LABEL_COUNT_MAX) {
            return KEDGE_E_FULL;
        }
        if (!is_in && compare(label, other) < 0) {
            put(&made, label);
            is_in = true;
        }
        put(&made, other);
    }
    if (!is_in) {
        put(&made, label);
    }
    *io = made;
    return KEDGE_OK;
}

bool kedge_labels_cover(struct kedge_view have, struct kedge_view needs)
{
    struct kedge_view need, label = {NULL, 0};
    bool more = true;
    while (kedge_labels_next(&needs, &need)) {
        while (more && (!label.ptr || compare(label, need) < 0)) {
            more = kedge_labels_next(&have, &label);
        }
        if (!more || compare(label, need) != 0) {
            return false;
        }
    }
    return true;
}
