/* Tenants and sites: handles are indices and never move; sites are found by their TLS key, in a hash table
 * with open addressing whose entries are never removed one by one. */
#include "coordinator/daemon/members.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/os/clock.h"
#include "common/base/try.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/sites/known.h"
#include "coordinator/daemon/tenant_keys.h"
#include "round/close/params.h"

#define NS_PER_S UINT64_C(1000000000)

uint32_t kedge_host_tenant_find(const struct kedge_host *h, const struct kedge_id *id)
{
    for (uint32_t i = 0; i < h->tenant_count; i++) {
        if (kedge_id_eq(&h->tenants[i].id, id)) {
            return i;
        }
    }
    return KEDGE_COORD_NONE;
}

uint32_t kedge_host_site_find(const struct kedge_host *h, uint32_t tenant, const struct kedge_id *id)
{
    for (uint32_t i = 0; i < h->site_count; i++) {
        if (h->sites[i].tenant == tenant && kedge_id_eq(&h->sites[i].id, id)) {
            return i;
        }
    }
    return KEDGE_COORD_NONE;
}

/* Keys are uniform, their first bytes are a hash already. */
static uint32_t index_start(const struct kedge_public_key *key)
{
    uint32_t v;
    memcpy(&v, key->b, sizeof v);
    return v % KEDGE_SITE_INDEX_SIZE;
}

uint32_t kedge_host_site_by_key(const struct kedge_host *h, const struct kedge_public_key *tls_key)
{
    uint32_t at = index_start(tls_key);
    for (uint32_t i = 0; i < KEDGE_SITE_INDEX_SIZE; i++) {
        uint32_t site = h->site_index[(at + i) % KEDGE_SITE_INDEX_SIZE];
        if (site == KEDGE_COORD_NONE || kedge_public_key_eq(&h->sites[site].tls_key, tls_key)) {
            return site;
        }
    }
    return KEDGE_COORD_NONE;
}

int kedge_host_tenant_room(const struct kedge_host *h, struct kedge_diag *d)
{
    if (h->tenant_count >= KEDGE_TENANTS_MAX) {
        return kedge_diag_set(d, KEDGE_E_FULL, "no room for more than %d tenants", KEDGE_TENANTS_MAX);
    }
    if (!h->begun || h->tenant_count < h->places.tenants) {
        return KEDGE_OK;
    }
    return kedge_diag_set(d, KEDGE_E_FULL,
                          "with at most %" PRIu64 " open files there is no room for more than %" PRIu32
                          " tenants; raise the coordinator's limit (ulimit -n 32768, or LimitNOFILE= in the "
                          "service) and start it again",
                          h->places.files, h->places.tenants);
}

/* A tenant whose folder exists but whose ledger is empty is the rest of a crash inside `tenant
 * add`; NOT_FOUND tells the caller so, and the same command later goes on with it. A tenant enters
 * the table only when everything of it is open: a half-open tenant would be served.
 *
 * The core hears of it last. From that event on it may ask for the tenant's statements. */
int kedge_host_tenant_load(struct kedge_host *h, const struct kedge_id *id, struct kedge_diag *d)
{
    KEDGE_TRY(kedge_host_tenant_room(h, d));
    struct kedge_tenant *t = &h->tenants[h->tenant_count];
    *t = (struct kedge_tenant){.id = *id};
    int err =
        kedge_state_log_open(h->state, id, h->begun ? KEDGE_STATE_WRITE : KEDGE_STATE_TAKE_OVER, &t->log, d);
    if (err) {
        return err == KEDGE_E_NOT_FOUND ? KEDGE_E_CORRUPT : err;
    }
    kedge_state_salted_id(&t->log, &t->salted);
    err = kedge_ledger_size(t->log.ledger)
              ? kedge_tenant_keys_load(t, d)
              : kedge_diag_set(d, KEDGE_E_NOT_FOUND, "tenant %s: empty ledger", id->s);
    if (!err) {
        const struct kedge_committer_options options = {.pool = h->commit_pool};
        err = kedge_committer_start(t->log.ledger, &options, &t->committer, d);
    }
    if (err) {
        kedge_keybook_deinit(&t->keys);
        kedge_state_log_close(&t->log);
        return err;
    }
    struct kedge_coord_event ev = {.type = KEDGE_EV_TENANT_ADDED, .tenant = h->tenant_count, .id = *id};
    h->tenant_count++;
    kedge_host_known_refresh(h);
    kedge_host_step(h, &ev);
    return KEDGE_OK;
}

/* The table has four times as many places as there can be sites, so a free place is always found
 * and searches stay short, whatever keys a tenant enrols. */
static void index_site(struct kedge_host *h, uint32_t site)
{
    uint32_t at = index_start(&h->sites[site].tls_key);
    while (h->site_index[at] != KEDGE_COORD_NONE) {
        at = (at + 1) % KEDGE_SITE_INDEX_SIZE;
    }
    h->site_index[at] = site;
}

/* A hostile site could otherwise fill the disk with lines about itself. */
bool kedge_host_site_may_say(struct kedge_host *h, uint32_t site)
{
    struct kedge_site_entry *s = &h->sites[site];
    uint64_t now = kedge_os_now_ns();
    bool may = s->said_ns == 0 || now >= s->said_ns + NS_PER_S;
    s->said_ns = may ? now : s->said_ns;
    return may;
}

void kedge_host_site_rekey(struct kedge_host *h, uint32_t site, const struct kedge_public_key *tls_key)
{
    h->sites[site].tls_key = *tls_key;
    /* Its old slot must go without hiding those after it: as seldom as keys rotate, all are put anew. */
    memset(h->site_index, 0xff, KEDGE_SITE_INDEX_SIZE * sizeof *h->site_index);
    for (uint32_t i = 0; i < h->site_count; i++) {
        index_site(h, i);
    }
    kedge_host_known_refresh(h);
}

/* The keys of the enrolment may have been rotated since; at a restart the whole ledger is read
 * before the first site is added, so the keybook knows the newest ones and the table begins with
 * them. */
int kedge_host_site_add(struct kedge_host *h, uint32_t tenant, const struct kedge_st_site_enrolled *st,
                        uint32_t *ret_site)
{
    if (h->site_count == KEDGE_SITES_MAX) {
        return KEDGE_E_FULL;
    }
    if (kedge_host_site_by_key(h, &st->tls_key) != KEDGE_COORD_NONE) {
        return KEDGE_E_EXISTS;
    }
    const struct kedge_keybook *book = &h->tenants[tenant].keys; /* rotated since, perhaps */
    const struct kedge_book_key *now = kedge_keybook_of(book, KEDGE_ROLE_SITE, &st->site);
    const struct kedge_book_key *tls = kedge_keybook_of(book, KEDGE_ROLE_SITE_TLS, &st->site);
    uint32_t site = h->site_count++;
    h->sites[site] = (struct kedge_site_entry){.tenant = tenant,
                                               .id = st->site,
                                               .tls_key = tls ? tls->key : st->tls_key,
                                               .statement_key = now ? now->key : st->statement_key,
                                               .active = true};
    index_site(h, site);
    kedge_host_known_refresh(h);
    struct kedge_coord_event ev = {
        .type = KEDGE_EV_SITE_ADDED, .tenant = tenant, .site = site, .id = st->site};
    kedge_host_step(h, &ev);
    *ret_site = site;
    return KEDGE_OK;
}

/* The row stays: handles never move, and the record goes on to name the site. Its open upload goes
 * at once, since nothing of it may count any more. */
void kedge_host_site_revoke(struct kedge_host *h, uint32_t site)
{
    h->sites[site].active = false;
    kedge_uploads_drop(h, site); /* a busy one goes when its worker gives it back */
    kedge_host_known_refresh(h);
    struct kedge_coord_event ev = {
        .type = KEDGE_EV_SITE_REVOKED, .tenant = h->sites[site].tenant, .site = site};
    kedge_host_step(h, &ev);
}

void kedge_host_site_label(struct kedge_host *h, uint32_t site, const struct kedge_st_site_labels *st)
{
    struct kedge_coord_label labels[KEDGE_LABEL_COUNT_MAX];
    struct kedge_site_entry *s = &h->sites[site];
    s->labels_number = st->number;
    snprintf(s->labels.text, sizeof s->labels.text, "%s", st->labels);
    struct kedge_coord_event ev = {.type = KEDGE_EV_SITE_LABELS, .tenant = s->tenant, .site = site};
    ev.label_count = kedge_close_labels(kedge_view_str(s->labels.text), labels);
    ev.labels = labels;
    kedge_host_step(h, &ev);
}
