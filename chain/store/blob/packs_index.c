/* Where the newest record of each digest is: an open hash table, 24 bytes a slot.
 *
 * Linear probing over a power of two, at most three quarters full. A slot is the first half of the digest
 * and one word for the place; two digests that share 128 bits would be taken for one here, and the head
 * on the disk would tell them apart. */
#include <string.h>

#include "chain/store/blob/packs.h"
#include "common/base/mem.h"
#include "common/base/try.h"

enum { SLOTS_FIRST = 64 };

/* 24 bits for the file, 22 for the offset in units of 64 bytes (a file of 64 MiB has 2^20 of them), 18
 * for the length. Files are numbered from 1, so 0 is never a place and marks a free slot. */
static uint64_t where_of(const struct kedgei_pack_record *r)
{
    return (uint64_t)r->pack << 40 | r->offset / KEDGEI_PACK_HEAD << 18 | r->len;
}

static void place_of(uint64_t where, struct kedgei_pack_record *ret)
{
    ret->pack = (uint32_t)(where >> 40);
    ret->offset = (where >> 18 & 0x3fffff) * KEDGEI_PACK_HEAD;
    ret->len = (uint32_t)(where & 0x3ffff);
}

/* The slot of that key, or the free one where it would be. Digests of updates are chosen by who sends
 * them, by trying. The seed is this process's secret, so a site cannot make rows of collisions that would
 * slow each look. */
static struct kedgei_pack_slot *slot_of(const struct kedgei_packs *p, const uint8_t key[16])
{
    uint64_t h = (kedge_load_be64(key) ^ p->seed[0]) * (p->seed[1] | 1);
    h ^= h >> 32;
    h = (h ^ kedge_load_be64(key + 8)) * (p->seed[0] | 1);
    size_t mask = p->slot_cap - 1, i = (size_t)(h >> 20) & mask;
    while (p->slots[i].where && memcmp(p->slots[i].key, key, 16) != 0) {
        i = (i + 1) & mask;
    }
    return &p->slots[i];
}

static int grow(struct kedgei_packs *p)
{
    if (p->slot_count + 1 <= p->slot_cap / 4 * 3) {
        return KEDGE_OK;
    }
    struct kedgei_pack_slot *old = p->slots;
    size_t old_cap = p->slot_cap, cap = old_cap ? 2 * old_cap : SLOTS_FIRST;
    struct kedgei_pack_slot *slots = kedge_mem_new(cap, sizeof *slots);
    KEDGE_TRY_MEM(slots);
    p->slots = slots;
    p->slot_cap = cap;
    for (size_t i = 0; i < old_cap; i++) {
        if (old[i].where) {
            *slot_of(p, old[i].key) = old[i];
        }
    }
    kedge_mem_free(old);
    return KEDGE_OK;
}

bool kedgei_packs_recall(const struct kedgei_packs *p, const struct kedge_hash *digest,
                         struct kedgei_pack_record *ret)
{
    const struct kedgei_pack_slot *slot = p->slot_cap ? slot_of(p, digest->b) : NULL;
    if (!slot || !slot->where) {
        return false;
    }
    place_of(slot->where, ret);
    return true;
}

int kedgei_packs_note(struct kedgei_packs *p, const struct kedgei_pack_record *record)
{
    KEDGE_TRY(grow(p));
    struct kedgei_pack_slot *slot = slot_of(p, record->digest.b);
    if (slot->where) {
        p->shadowed++;
    } else {
        p->slot_count++;
    }
    memcpy(slot->key, record->digest.b, sizeof slot->key);
    slot->where = where_of(record);
    return KEDGE_OK;
}

/* No tombstones: the slots that follow without a gap are put in again, so a later search still finds
 * them. */
void kedgei_packs_forget(struct kedgei_packs *p, const struct kedge_hash *digest)
{
    struct kedgei_pack_slot *slot = p->slot_cap ? slot_of(p, digest->b) : NULL;
    if (!slot || !slot->where) {
        return;
    }
    *slot = (struct kedgei_pack_slot){.where = 0};
    p->slot_count--;
    size_t mask = p->slot_cap - 1;
    for (size_t i = ((size_t)(slot - p->slots) + 1) & mask; p->slots[i].where; i = (i + 1) & mask) {
        struct kedgei_pack_slot moved = p->slots[i]; /* the rest of the row moves up where it may */
        p->slots[i].where = 0;
        *slot_of(p, moved.key) = moved;
    }
}
