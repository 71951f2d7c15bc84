/* Two tables, of which the network reads one while the loop writes the other anew and then swaps them
 * under the mutex. So the mutex is held for a look or a swap and never while thousands of keys are
 * written, and the network thread never sees a half-written table. Writing all anew is simpler than
 * changing entries of an open-addressed table, and keys change seldom. */
#include "coordinator/daemon/sites/known.h"

#include <string.h>

#include "common/base/mem.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/inbox.h"

enum { PLACES_LEAST = 1024 };

struct table {
    uint32_t places; /* at least twice as many as keys, so that a look ends soon; a power of two */
    bool *used;
    struct kedge_public_key *keys;
    uint32_t *lines; /* of the inbox */
};

struct kedge_known {
    pthread_mutex_t mutex;
    struct table shown; /* under the mutex */
    struct table next;  /* the loop's own: the former one, to be written anew */
};

/* Open addressing: keys are uniform, their first bytes are a hash already. An attacker's would have to be
 * enrolled first. */
static uint32_t place_of(const struct table *t, const struct kedge_public_key *key)
{
    uint32_t at;
    memcpy(&at, key->b, sizeof at);
    for (at %= t->places; t->used[at] && !kedge_public_key_eq(&t->keys[at], key); at = (at + 1) % t->places) {
    }
    return at;
}

static void put(struct table *t, const struct kedge_public_key *key, uint32_t line)
{
    uint32_t at = place_of(t, key);
    t->used[at] = true;
    t->keys[at] = *key;
    t->lines[at] = line;
}

/* The book lists admins from the newest back. Only keys in force are known: one that was revoked
 * has to be a stranger at once. */
static void put_admins(struct table *t, const struct kedge_tenant *tenant, uint32_t line)
{
    for (uint32_t at = tenant->keys.last_admin; at > 0; at = tenant->keys.keys[at - 1].earlier) {
        const struct kedge_book_key *key = &tenant->keys.keys[at - 1];
        if (key->role == KEDGE_ROLE_ADMIN && kedge_book_key_in_force(key)) {
            put(t, &key->key, line);
        }
    }
}

/* Before all others: where a key has another role, too, that one's line counts, or a tenant could draw
 * others' sites into its own line. */
static void put_viewers(struct table *t, const struct kedge_tenant *tenant, uint32_t line)
{
    for (uint32_t i = 0; i < tenant->viewer_count; i++) {
        put(t, &tenant->viewers[i].key, line);
    }
}

static void release(struct table *t)
{
    kedge_mem_free(t->used);
    kedge_mem_free(t->keys);
    kedge_mem_free(t->lines);
    *t = (struct table){.places = 0};
}

/* Room for all that there may be now; false: no memory, and the table is as it was. */
static bool make_places(struct table *t, size_t keys)
{
    uint32_t places = PLACES_LEAST;
    while (places < 2 * keys) {
        places *= 2;
    }
    if (places <= t->places) {
        memset(t->used, 0, t->places * sizeof *t->used);
        return true;
    }
    struct table larger = {.places = places,
                           .used = kedge_mem_new(places, sizeof *larger.used),
                           .keys = kedge_mem_new(places, sizeof *larger.keys),
                           .lines = kedge_mem_new(places, sizeof *larger.lines)};
    if (!larger.used || !larger.keys || !larger.lines) {
        release(&larger);
        return false;
    }
    release(t);
    *t = larger;
    return true;
}

/* At most; a tenant's book has more keys than its admins' in force. */
static size_t count_keys(const struct kedge_host *h)
{
    size_t keys =
        h->site_count + kedge_host_witness_count(h) + h->config.operator_count + h->authority.book.role_count;
    for (uint32_t i = 0; i < h->tenant_count; i++) {
        const size_t admins = h->tenants[i].keys.count;
        keys += admins < KEDGE_ADMIN_KEYS_MAX ? admins : KEDGE_ADMIN_KEYS_MAX;
        keys += h->tenants[i].viewer_count;
    }
    return keys;
}

static bool write_down(const struct kedge_host *h, struct table *t)
{
    const struct kedge_mainbook *book = &h->authority.book;
    if (!make_places(t, count_keys(h))) {
        return false;
    }
    for (uint32_t i = 0; i < h->tenant_count; i++) {
        put_viewers(t, &h->tenants[i], kedge_inbox_line(i));
    }
    for (uint32_t i = 0; i < h->site_count; i++) {
        if (h->sites[i].active) {
            put(t, &h->sites[i].tls_key, kedge_inbox_line(h->sites[i].tenant));
        }
    }
    for (uint32_t i = 0; i < kedge_host_witness_count(h); i++) {
        if (kedge_host_witness_is_active(h, i)) {
            put(t, kedge_host_witness_tls_key(h, i), kedge_inbox_line(kedge_host_witness_tenant(h, i)));
        }
    }
    for (uint32_t i = 0; i < h->tenant_count; i++) {
        put_admins(t, &h->tenants[i], kedge_inbox_line(i));
    }
    for (unsigned i = 0; i < h->config.operator_count; i++) {
        put(t, &h->config.operators[i], KEDGE_LINE_OPERATORS);
    }
    for (uint32_t i = 0; i < book->role_count; i++) {
        const struct kedge_public_key *key = &book->roles[i].key;
        if (kedge_host_has_role(h, key, KEDGE_CHAIN_OPERATOR)
            || kedge_host_has_role(h, key, KEDGE_CHAIN_AUDITOR)) {
            put(t, key, KEDGE_LINE_OPERATORS);
        }
    }
    return true;
}

/* Written before the network listens, or the first peers after a start would all be strangers. */
int kedge_host_known_open(struct kedge_host *h, struct kedge_diag *d)
{
    struct kedge_known *k = kedge_mem_new(1, sizeof *k);
    if (!k || !write_down(h, &k->shown)) {
        kedge_mem_free(k);
        return kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory at start");
    }
    pthread_mutex_init(&k->mutex, NULL);
    h->known = k;
    return KEDGE_OK;
}

void kedge_host_known_close(struct kedge_host *h)
{
    if (h->known) {
        pthread_mutex_destroy(&h->known->mutex);
        release(&h->known->shown);
        release(&h->known->next);
        kedge_mem_free(h->known);
        h->known = NULL;
    }
}

void kedge_host_known_refresh(struct kedge_host *h)
{
    struct kedge_known *k = h->known;
    if (!k) {
        return;
    }
    bool is_written = write_down(h, &k->next);
    KEDGE_ASSERT(is_written); /* else a key that was revoked would go on being known */
    pthread_mutex_lock(&k->mutex);
    struct table former = k->shown;
    k->shown = k->next;
    k->next = former;
    pthread_mutex_unlock(&k->mutex);
}

/* On the network thread, for each connection. */
bool kedge_host_knows(void *h, const struct kedge_public_key *key)
{
    struct kedge_known *k = ((struct kedge_host *)h)->known;
    pthread_mutex_lock(&k->mutex);
    bool known = k->shown.used[place_of(&k->shown, key)];
    pthread_mutex_unlock(&k->mutex);
    return known;
}

/* The door is the owner's; a key over a plain connection is only a claim, but so is all that it asks. */
uint32_t kedge_host_line_of(struct kedge_host *h, const struct kedge_net_peer *peer)
{
    struct kedge_known *k = h->known;
    if (peer->kind == KEDGE_NET_IPC) {
        return KEDGE_LINE_OPERATORS;
    }
    if (!peer->has_key) {
        return KEDGE_LINE_STRANGERS;
    }
    pthread_mutex_lock(&k->mutex);
    uint32_t at = place_of(&k->shown, &peer->key);
    uint32_t line = k->shown.used[at] ? k->shown.lines[at] : KEDGE_LINE_STRANGERS;
    pthread_mutex_unlock(&k->mutex);
    return line;
}
