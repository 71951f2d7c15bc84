/* The seat that was used longest ago is looked for among all: there are a hundred of them, and it happens
 * when a store is opened, which costs a thousand times as much. So a transaction only notes a number, and no
 * list has to be kept in order under a mutex that all ledgers share.
 *
 * A store that is asked to leave may be about to take a seat itself, its own mutex held. It is asked with a
 * try of that mutex (kv_lmdb.c), so two that ask each other both go on. */
#include "chain/store/kv/kv_seats.h"

#include <pthread.h>
#include <stddef.h>

#include "chain/store/kv/kv.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct kedgei_kv_seat *taken;
static unsigned count, most = KEDGE_KV_LMDB_OPEN_USUAL;
static atomic_uint_least64_t clock_of_uses;

void kedge_kv_lmdb_open_most(unsigned stores)
{
    pthread_mutex_lock(&mutex);
    most = stores > 0 ? stores : 1;
    pthread_mutex_unlock(&mutex);
}

unsigned kedge_kv_lmdb_open_count(void)
{
    pthread_mutex_lock(&mutex);
    unsigned n = count;
    pthread_mutex_unlock(&mutex);
    return n;
}

/* ---- what the process does meanwhile ---- */

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static void (*around_opening)(bool begins);

void kedge_kv_lmdb_around_opening(void (*around)(bool begins))
{
    around_opening = around;
}

void kedgei_kv_opening(bool is_writer, bool begins)
{
    if (is_writer && around_opening) {
        if (begins) {
            pthread_mutex_lock(&opening);
        }
        around_opening(begins);
        if (!begins) {
            pthread_mutex_unlock(&opening);
        }
    }
}

/* ---- seats ---- */

static void take_out(struct kedgei_kv_seat *s)
{
    struct kedgei_kv_seat **at = &taken;
    while (*at != s) {
        at = &(*at)->next;
    }
    *at = s->next;
    s->is_taken = false;
    count--;
}

/* One that cannot leave now counts as used now: the next search begins with others. */
static bool make_room(void)
{
    struct kedgei_kv_seat *oldest = taken;
    for (struct kedgei_kv_seat *s = taken; s; s = s->next) {
        oldest = atomic_load(&s->used) < atomic_load(&oldest->used) ? s : oldest;
    }
    if (!oldest || !oldest->leave(oldest)) {
        if (oldest) {
            kedgei_kv_seat_use(oldest);
        }
        return false;
    }
    take_out(oldest);
    return true;
}

void kedgei_kv_seat_take(struct kedgei_kv_seat *s)
{
    kedgei_kv_seat_use(s);
    pthread_mutex_lock(&mutex);
    for (unsigned tries = count; !s->is_taken && count >= most && tries > 0; tries--) {
        (void)make_room();
    }
    if (!s->is_taken) {
        s->next = taken;
        taken = s;
        s->is_taken = true;
        count++;
    }
    pthread_mutex_unlock(&mutex);
}

void kedgei_kv_seat_use(struct kedgei_kv_seat *s)
{
    atomic_store(&s->used, atomic_fetch_add(&clock_of_uses, 1) + 1);
}

void kedgei_kv_seat_give(struct kedgei_kv_seat *s)
{
    pthread_mutex_lock(&mutex);
    if (s->is_taken) {
        take_out(s);
    }
    pthread_mutex_unlock(&mutex);
}
