/* A part of a model, by names of tensors or of layers. Personal and shared layers are told apart by
 * it. Both sides, the part and the rest, are cut from the whole and put back in the order of the
 * layout, so they can be averaged, signed and checked as models of their own. */
#include "common/tensor/part.h"

#include <string.h>

/* Of a tensor's name: what comes before the first dot, or all of it. */
static size_t stem_len(const char *name)
{
    return strcspn(name, ".");
}

static bool names(const char *word, const char *tensor)
{
    const size_t len = strlen(word);
    return strcmp(word, tensor) == 0 || (len == stem_len(tensor) && memcmp(word, tensor, len) == 0);
}

int kedge_part_add(struct kedge_part *p, const char *word, struct kedge_diag *reterr)
{
    const size_t len = strlen(word);
    if (len == 0 || len > KEDGE_TENSOR_NAME_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "expected names of tensors, of 1 to %d characters",
                              KEDGE_TENSOR_NAME_MAX);
    }
    const char *at = p->words;
    for (uint32_t i = 0; i < p->count; i++, at += strlen(at) + 1) {
        if (strcmp(at, word) == 0) {
            return kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"%s\" is there twice", word);
        }
    }
    if (p->count == KEDGE_PART_WORDS_MAX || p->bytes + len + 1 > sizeof p->words) {
        return kedge_diag_set(reterr, KEDGE_E_TOO_LONG, "more than %d names or %d bytes of them",
                              KEDGE_PART_WORDS_MAX, KEDGE_PART_BYTES_MAX);
    }
    memcpy(p->words + p->bytes, word, len + 1);
    p->bytes += (uint32_t)len + 1;
    p->count++;
    return KEDGE_OK;
}

/* Without words the part is everything but the last layer: what is commonly shared while each site
 * keeps its own head. */
bool kedge_part_has(const struct kedge_part *p, const struct kedge_layout *layout, uint32_t i)
{
    const char *tensor = layout->tensors[i].name, *at = p->words;
    if (p->count == 0) {
        const char *last = layout->tensors[layout->count - 1].name;
        const size_t len = stem_len(last);
        return !(len == stem_len(tensor) && memcmp(last, tensor, len) == 0);
    }
    for (uint32_t k = 0; k < p->count; k++, at += strlen(at) + 1) {
        if (names(at, tensor)) {
            return true;
        }
    }
    return false;
}

/* A word that names nothing is a slip that would share or keep the wrong layers in silence. A part
 * that is empty or the whole model is refused, too: nothing would be left on one side. */
int kedge_part_check(const struct kedge_part *p, const struct kedge_layout *layout, struct kedge_diag *reterr)
{
    const char *at = p->words;
    uint32_t inside = 0;
    for (uint32_t k = 0; k < p->count; k++, at += strlen(at) + 1) {
        bool found = false;
        for (uint32_t i = 0; i < layout->count && !found; i++) {
            found = names(at, layout->tensors[i].name);
        }
        if (!found) {
            return kedge_diag_set(reterr, KEDGE_E_SHAPE,
                                  "the model has no tensor \"%s\"; its tensors are \"%s\" to \"%s\"", at,
                                  layout->tensors[0].name, layout->tensors[layout->count - 1].name);
        }
    }
    for (uint32_t i = 0; i < layout->count; i++) {
        inside += kedge_part_has(p, layout, i);
    }
    if (inside == 0) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE,
                              "the model has one layer, so that nothing would be left to share");
    }
    return inside < layout->count
               ? KEDGE_OK
               : kedge_diag_set(reterr, KEDGE_E_SHAPE, "all tensors are named; leave those out that stay");
}

int kedge_part_layout(const struct kedge_part *p, const struct kedge_layout *layout, bool in,
                      struct kedge_layout *ret, struct kedge_diag *reterr)
{
    struct kedge_layout part;
    int err = KEDGE_OK;
    kedge_layout_init(&part, layout->dtype);
    for (uint32_t i = 0; i < layout->count && !err; i++) {
        const struct kedge_tensor *t = &layout->tensors[i];
        if (kedge_part_has(p, layout, i) == in) {
            err = kedge_layout_add(&part, t->name, t->dims, t->dims_count, reterr);
        }
    }
    if (err) {
        kedge_layout_deinit(&part);
        return err;
    }
    *ret = part;
    return KEDGE_OK;
}

void kedge_part_take(const struct kedge_part *p, const struct kedge_layout *layout, bool in,
                     const float *whole, float *ret)
{
    for (uint32_t i = 0; i < layout->count; i++) {
        const struct kedge_tensor *t = &layout->tensors[i];
        if (kedge_part_has(p, layout, i) == in) {
            memcpy(ret, whole + t->offset / sizeof *whole, (size_t)t->count * sizeof *whole);
            ret += t->count;
        }
    }
}

void kedge_part_put(const struct kedge_part *p, const struct kedge_layout *layout, bool in,
                    const float *values, float *whole)
{
    for (uint32_t i = 0; i < layout->count; i++) {
        const struct kedge_tensor *t = &layout->tensors[i];
        if (kedge_part_has(p, layout, i) == in) {
            memcpy(whole + t->offset / sizeof *whole, values, (size_t)t->count * sizeof *whole);
            values += t->count;
        }
    }
}
