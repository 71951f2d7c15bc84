/* Words to numbers, in the order in which they first come. The words stand one after the other in one text
 * that grows, so they are told by place and not by pointer; the table beside it is open-addressed and at most
 * half full, and a slot holds a number plus 1, with 0 for a free one. */
#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "sim/partition/clients_impl.h"

enum { SLOTS_FIRST = 64 };

static uint32_t hash_of(const char *word)
{
    uint32_t h = 2166136261U; /* FNV-1a */
    for (; *word; word++) {
        h = (h ^ (uint8_t)*word) * 16777619U;
    }
    return h;
}

static void place(struct kedgei_words *w, uint32_t number)
{
    uint32_t k = hash_of(w->text + w->at[number]) & (w->slots_count - 1);
    while (w->slots[k] != 0) { /* at most half of them are taken */
        k = (k + 1) & (w->slots_count - 1);
    }
    w->slots[k] = number + 1;
}

static int grow_slots(struct kedgei_words *w)
{
    uint32_t count = w->slots_count ? 2 * w->slots_count : SLOTS_FIRST;
    uint32_t *slots = kedge_mem_new(count, sizeof *slots);
    KEDGE_TRY_MEM(slots);
    kedge_mem_free(w->slots);
    w->slots = slots;
    w->slots_count = count;
    for (uint32_t i = 0; i < w->count; i++) {
        place(w, i);
    }
    return KEDGE_OK;
}

static int append(struct kedgei_words *w, const char *word)
{
    size_t len = strlen(word) + 1;
    if (w->used + len > w->room) {
        size_t room = 2 * w->room + len;
        char *text = kedge_mem_resize(w->text, room, 1);
        KEDGE_TRY_MEM(text);
        w->text = text;
        w->room = room;
    }
    if (w->count == w->at_room) {
        uint32_t room = 2 * w->at_room + 16;
        size_t *at = kedge_mem_resize(w->at, room, sizeof *at);
        KEDGE_TRY_MEM(at);
        w->at = at;
        w->at_room = room;
    }
    memcpy(w->text + w->used, word, len);
    w->at[w->count] = w->used;
    w->used += len;
    place(w, w->count++);
    return KEDGE_OK;
}

int kedgei_words_find(struct kedgei_words *w, const char *word, uint32_t *ret)
{
    if (w->count >= w->slots_count / 2) {
        KEDGE_TRY(grow_slots(w));
    }
    uint32_t k = hash_of(word) & (w->slots_count - 1);
    for (; w->slots[k] != 0; k = (k + 1) & (w->slots_count - 1)) {
        if (strcmp(w->text + w->at[w->slots[k] - 1], word) == 0) {
            *ret = w->slots[k] - 1;
            return KEDGE_OK;
        }
    }
    if (w->count == w->most) {
        return KEDGE_E_FULL;
    }
    KEDGE_TRY(append(w, word));
    *ret = w->count - 1;
    return KEDGE_OK;
}

void kedgei_words_deinit(struct kedgei_words *w)
{
    kedge_mem_free(w->text);
    kedge_mem_free(w->at);
    kedge_mem_free(w->slots);
    *w = (struct kedgei_words){0};
}
