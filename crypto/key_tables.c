/* Which keys have a table (edwards.c), within a bound of memory.
 *
 * One slot per value of a hash of the key. A key that is met again and again gets its table; one that
 * shares its slot with a busier one has none. The slot's credit rises with each use by its key and falls
 * with each by another, so a key that is no longer used gives way after as many uses of others. The hash
 * is keyed with random bytes: nobody can choose keys that push out another's table.
 *
 * Nobody waits for another: a thread that finds a slot being changed goes the long way. A table only ever
 * says "accepted"; everything else is decided by libsodium. */
#include "crypto/key_tables.h"

#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <string.h>

#include "common/base/mem.h"
#include "crypto/edwards.h"

enum {
    SLOTS = 512,
    USES_FOR_TABLE = 4, /* a table costs as much as it saves in four checks */
    CREDIT_MAX = 64,
};

struct slot {
    pthread_rwlock_t lock;
    struct kedge_public_key key;
    atomic_int credit; /* uses by its key, less those that others would have had of it */
    struct kedgei_key_table *table;
};

static struct slot slots[SLOTS];
static uint8_t hash_key[crypto_shorthash_KEYBYTES]; /* nobody chooses keys that share a slot */
static pthread_once_t slots_once = PTHREAD_ONCE_INIT;

static void init_slots(void)
{
    randombytes_buf(hash_key, sizeof hash_key);
    for (size_t i = 0; i < SLOTS; i++) {
        pthread_rwlock_init(&slots[i].lock, NULL);
    }
}

static struct slot *find_slot(const struct kedge_public_key *key)
{
    uint8_t hash[crypto_shorthash_BYTES];
    pthread_once(&slots_once, init_slots);
    crypto_shorthash(hash, key->b, sizeof key->b, hash_key);
    return &slots[(hash[0] | (unsigned)hash[1] << 8) % SLOTS];
}

/* Under the write lock: this key was met and has no table. The table is made under the write lock, which
 * other threads only try: while one makes it, the others verify the long way. */
static void note_use(struct slot *s, const struct kedge_public_key *key)
{
    bool is_same = memcmp(&s->key, key, sizeof *key) == 0;
    int credit = atomic_load(&s->credit);
    if (!is_same && credit > 0) {
        atomic_store(&s->credit, credit - 1);
        return;
    }
    if (!is_same) {
        kedge_mem_free(s->table);
        s->table = NULL;
        s->key = *key;
    }
    atomic_store(&s->credit, credit + 1);
    if (credit + 1 < USES_FOR_TABLE || s->table) {
        return;
    }
    s->table = kedge_mem_new(1, sizeof *s->table);
    if (s->table && !kedgei_key_table_init(key, s->table)) {
        kedge_mem_free(s->table);
        s->table = NULL;
        atomic_store(&s->credit, 0);
    }
}

/* The read lock is held during the check, so the table cannot be freed under it. The credit is an atomic,
 * since many readers raise it at once. */
bool kedgei_known_key_accepts(const struct kedge_public_key *key, struct kedge_view message,
                              const struct kedge_signature *sig)
{
    struct slot *s = find_slot(key);
    if (pthread_rwlock_tryrdlock(&s->lock) != 0) {
        return false;
    }
    bool has_table = s->table && memcmp(&s->key, key, sizeof *key) == 0;
    bool is_accepted = has_table && kedgei_key_table_accepts(s->table, key, message, sig);
    if (has_table && atomic_load(&s->credit) < CREDIT_MAX) {
        atomic_fetch_add(&s->credit, 1);
    }
    pthread_rwlock_unlock(&s->lock);
    if (!has_table && pthread_rwlock_trywrlock(&s->lock) == 0) {
        note_use(s, key);
        pthread_rwlock_unlock(&s->lock);
    }
    return is_accepted;
}
