/* A ring of slots, one for each shard: tile number t has slot t mod shards, so a slot is free again once the
 * tile that had it was taken. That bounds the memory, whatever the length of the vector and however far one
 * thread is ahead of another.
 *
 * The caller takes what is whole and next. While the next one is still being made it makes a tile itself, so
 * that no thread waits while there is work; with one thread this is the plain loop over all tiles. */
#include "round/shards.h"

#include <pthread.h>
#include <string.h>

#include "common/base/mem.h"
#include "round/tensor_files.h"

enum { WORTH = 2 * KEDGEI_TENSORS_TILE_MAX, LINE = 64, OUT_MAX = 64 << 20 };

enum slot_state { SLOT_FREE, SLOT_CLAIMED, SLOT_DONE };

struct slot {
    enum slot_state state;
    uint64_t first;
    size_t n;
    uint8_t *out;
    int err;
    struct kedge_diag diag;
};

struct shards {
    const struct kedgei_tiles *tiles;
    struct slot *slots;
    uint8_t *memory;
    uint64_t count;      /* of slots */
    uint64_t next_first; /* the first tile that nobody has claimed begins here, … */
    uint64_t next_tile;  /* … and this is its number */
    bool stopped;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
};

struct helper {
    struct shards *s;
    unsigned thread;
    pthread_t id;
};

unsigned kedgei_shards_threads(const struct kedge_cut *cut, uint64_t values)
{
    uint64_t worth = values / WORTH;
    uint64_t threads = cut->threads < KEDGE_CUT_THREADS_MAX ? cut->threads : KEDGE_CUT_THREADS_MAX;
    threads = threads < worth ? threads : worth;
    return threads > 1 ? (unsigned)threads : 1;
}

/* The next tile, if its slot is free; NULL: there is none now. Locked. */
static struct slot *claim(struct shards *s)
{
    struct slot *slot = &s->slots[s->next_tile % s->count];
    if (s->stopped || s->next_first == s->tiles->values || slot->state != SLOT_FREE) {
        return NULL;
    }
    slot->state = SLOT_CLAIMED;
    slot->first = s->next_first;
    slot->n = s->tiles->length(s->tiles->arg, slot->first);
    s->next_first += slot->n;
    s->next_tile++;
    return slot;
}

/* Locked before and behind, not meanwhile. */
static void make(struct shards *s, struct slot *slot, unsigned thread)
{
    pthread_mutex_unlock(&s->mutex);
    slot->diag = (struct kedge_diag){.err = KEDGE_OK};
    slot->err = s->tiles->make(s->tiles->arg, thread, slot->first, slot->n, slot->out, &slot->diag);
    pthread_mutex_lock(&s->mutex);
    slot->state = SLOT_DONE;
    pthread_cond_broadcast(&s->changed);
}

static void *help(void *arg)
{
    const struct helper *me = arg;
    struct shards *s = me->s;
    pthread_mutex_lock(&s->mutex);
    while (!s->stopped && s->next_first < s->tiles->values) {
        struct slot *slot = claim(s);
        if (slot) {
            make(s, slot, me->thread);
        } else {
            pthread_cond_wait(&s->changed, &s->mutex);
        }
    }
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

/* The result of a slot that is done, which is free afterwards. Locked before and behind, not meanwhile. */
static int take(struct shards *s, struct slot *slot, struct kedge_diag *d)
{
    pthread_mutex_unlock(&s->mutex);
    int err = slot->err;
    if (err && d) {
        *d = slot->diag;
    } else if (!err) {
        err = s->tiles->take(s->tiles->arg, slot->first, slot->n, slot->out);
    }
    pthread_mutex_lock(&s->mutex);
    slot->state = SLOT_FREE;
    s->stopped = s->stopped || err;
    pthread_cond_broadcast(&s->changed);
    return err;
}

static int take_all(struct shards *s, struct kedge_diag *d)
{
    int err = KEDGE_OK;
    pthread_mutex_lock(&s->mutex);
    for (uint64_t done = 0, tile = 0; done < s->tiles->values && !err;) {
        struct slot *slot = &s->slots[tile % s->count], *mine = NULL;
        if (slot->state == SLOT_DONE) {
            done += slot->n;
            tile++;
            err = take(s, slot, d);
        } else if ((mine = claim(s)) != NULL) {
            make(s, mine, 0);
        } else {
            pthread_cond_wait(&s->changed, &s->mutex);
        }
    }
    pthread_mutex_unlock(&s->mutex);
    return err;
}

/* As many slots as the cut has shards, but no more than OUT_MAX bytes of them: a mixing makes a tile for each
 * of up to 64 groups. */
static int make_slots(struct shards *s)
{
    const size_t bytes = (s->tiles->tile_bytes + LINE - 1) / LINE * LINE, fit = OUT_MAX / bytes;
    s->count = s->count <= fit ? s->count : fit > 0 ? fit : 1;
    s->slots = kedge_mem_new((size_t)s->count, sizeof *s->slots);
    s->memory =
        kedge_mem_new((size_t)s->count * bytes + LINE, 1); /* pages that nobody writes to cost nothing */
    for (size_t i = 0; s->slots && s->memory && i < s->count; i++) {
        s->slots[i].out = s->memory + (LINE - (uintptr_t)s->memory % LINE) % LINE + i * bytes;
    }
    return s->slots && s->memory ? KEDGE_OK : KEDGE_E_NOMEM;
}

int kedgei_shards_run(const struct kedge_cut *cut, unsigned threads, const struct kedgei_tiles *tiles,
                      struct kedge_diag *d)
{
    struct helper helpers[KEDGE_CUT_THREADS_MAX];
    struct shards s = {.tiles = tiles, .count = cut->shards ? cut->shards : 2 * threads};
    unsigned started = 1;
    s.count = threads == 1 ? 1 : s.count < KEDGE_CUT_SHARDS_MAX ? s.count : KEDGE_CUT_SHARDS_MAX;
    int err = make_slots(&s);
    if (err) {
        kedge_mem_free(s.slots);
        kedge_mem_free(s.memory);
        return kedge_diag_set(d, err, "out of memory for tiles of a vector");
    }
    pthread_mutex_init(&s.mutex, NULL);
    pthread_cond_init(&s.changed, NULL);
    for (; started < threads; started++) {
        helpers[started] = (struct helper){.s = &s, .thread = started};
        if (pthread_create(&helpers[started].id, NULL, help, &helpers[started]) != 0) {
            break;
        }
    }
    err = take_all(&s, d);
    while (started > 1) {
        pthread_join(helpers[--started].id, NULL);
    }
    pthread_cond_destroy(&s.changed);
    pthread_mutex_destroy(&s.mutex);
    kedge_mem_free(s.slots);
    kedge_mem_free(s.memory);
    return err;
}
