/* Tenants and sites, and who of them is there. Presence falls from online over offline to gone as a lease
 * and a grace run out; each list is ordered by time because clocks never go back, so its head is all that
 * a timer looks at.
 *
 * The grace gives a site that has lost its connection time to come back before it counts as gone. After a
 * restart all sites count as offline, not gone, and have the time to come back. */
#include <string.h>

#include "coordinator/core/core.h"

static struct site_list *list_of(struct kedge_coord *c, enum presence presence)
{
    return presence == PRESENCE_ONLINE ? &c->online : presence == PRESENCE_OFFLINE ? &c->offline : NULL;
}

static void list_remove(struct kedge_coord *c, uint32_t site)
{
    struct site *s = &c->sites[site];
    struct site_list *l = list_of(c, s->presence);
    if (!l) {
        return;
    }
    if (s->prev != KEDGE_COORD_NONE) {
        c->sites[s->prev].next = s->next;
    } else {
        KEDGE_ASSERT(l->head == site);
        l->head = s->next;
    }
    if (s->next != KEDGE_COORD_NONE) {
        c->sites[s->next].prev = s->prev;
    } else {
        KEDGE_ASSERT(l->tail == site);
        l->tail = s->prev;
    }
    s->prev = s->next = KEDGE_COORD_NONE;
}

/* At the end: times of one list only grow, since all its members get the same grace from a clock
 * that never goes back. */
static void list_append(struct kedge_coord *c, uint32_t site)
{
    struct site *s = &c->sites[site];
    struct site_list *l = list_of(c, s->presence);
    if (!l) {
        return;
    }
    KEDGE_ASSERT(l->tail == KEDGE_COORD_NONE || c->sites[l->tail].until_ns <= s->until_ns);
    s->prev = l->tail;
    s->next = KEDGE_COORD_NONE;
    if (l->tail != KEDGE_COORD_NONE) {
        c->sites[l->tail].next = site;
    } else {
        l->head = site;
    }
    l->tail = site;
}

static void count_presence(struct kedge_coord *c, uint32_t site, uint32_t by)
{
    const struct site *s = &c->sites[site];
    struct tenant *t = &c->tenants[s->tenant];
    if (s->active) {
        t->active += by; /* by is 1 or, modulo 2^32, -1 */
        t->online += s->presence == PRESENCE_ONLINE ? by : 0;
        t->gone += s->presence == PRESENCE_GONE ? by : 0;
    }
    KEDGE_ASSERT(t->online + t->gone <= t->active && t->active <= c->site_count);
}

/* Moves a site between presence lists and tells the jobs of its tenant. */
static void set_presence(struct kedge_coord *c, uint32_t site, bool active, enum presence presence,
                         uint64_t until_ns)
{
    struct site *s = &c->sites[site];
    bool changed = s->active != active || s->presence != presence;
    count_presence(c, site, UINT32_MAX);
    list_remove(c, site);
    s->active = active;
    s->presence = presence;
    s->until_ns = until_ns;
    list_append(c, site);
    count_presence(c, site, 1);
    s->given = presence == PRESENCE_GONE ? 0 : s->given; /* nobody knows how long it was at its task */
    for (uint32_t i = 0; changed && i < c->limits.jobs_max; i++) {
        if (c->jobs[i].used && c->jobs[i].members[s->tenant] != MEMBER_NO) {
            if (presence != PRESENCE_ONLINE) {
                kedgei_job_unstored(c, i, site, KEDGE_OK); /* it does not try any more */
            }
            kedgei_row_refresh(c, i, site);
        }
    }
}

/* Tenants that come while a job runs are none of its: its spec names all that it has. */
void kedgei_tenant_added(struct kedge_coord *c, const struct kedge_coord_event *ev)
{
    KEDGE_ASSERT(ev->tenant == c->tenant_count && ev->tenant < c->limits.tenants_max);
    KEDGE_ASSERT(ev->id.s[0] != '\0');
    struct tenant *t = &c->tenants[c->tenant_count++];
    memset(t, 0, sizeof *t);
    t->id = ev->id;
    for (uint32_t i = 0; i < c->limits.jobs_max; i++) {
        if (c->jobs[i].used) {
            c->jobs[i].members[ev->tenant] = MEMBER_NO;
        }
    }
}

static int compare_sites(const struct kedge_coord *c, uint32_t a, uint32_t b)
{
    const struct site *x = &c->sites[a], *y = &c->sites[b];
    int by_tenant = kedge_id_cmp(&c->tenants[x->tenant].id, &c->tenants[y->tenant].id);
    return by_tenant != 0 ? by_tenant : kedge_id_cmp(&x->id, &y->id);
}

/* The order by names is the order in which candidates are numbered, so it must not depend on who
 * came first. Insertion costs a walk, and sites are added one at a time; the sets by place in the
 * order are made anew at the next look. */
void kedgei_site_added(struct kedge_coord *c, const struct kedge_coord_event *ev)
{
    KEDGE_ASSERT(ev->site == c->site_count && ev->site < c->limits.sites_max);
    KEDGE_ASSERT(ev->tenant < c->tenant_count && ev->id.s[0] != '\0');
    struct site *s = &c->sites[ev->site];
    memset(s, 0, sizeof *s);
    s->id = ev->id;
    s->tenant = ev->tenant;
    s->presence = PRESENCE_GONE;
    s->prev = s->next = s->request = KEDGE_COORD_NONE;
    c->site_count++;
    uint32_t at = c->site_count - 1;
    for (; at > 0 && compare_sites(c, ev->site, c->order[at - 1]) < 0; at--) {
        c->order[at] = c->order[at - 1];
    }
    c->order[at] = ev->site;
    for (uint32_t i = 0; i < c->limits.jobs_max; i++) {
        if (c->jobs[i].used) {
            c->jobs[i].eligible_stale = true; /* those after it have moved on */
            kedgei_row_init(c, &c->jobs[i], ev->site);
        }
    }
    s->active = false;
    set_presence(c, ev->site, true, PRESENCE_GONE, UINT64_MAX);
}

/* What the site is asked for may have changed for every job that needs something. */
void kedgei_site_labels(struct kedge_coord *c, const struct kedge_coord_event *ev)
{
    KEDGE_ASSERT(ev->site < c->site_count && ev->label_count <= KEDGE_LABEL_COUNT_MAX);
    struct site *s = &c->sites[ev->site];
    s->label_count = ev->label_count;
    for (uint32_t i = 0; i < ev->label_count; i++) {
        KEDGE_ASSERT(i == 0 || kedge_coord_label_cmp(&ev->labels[i], &ev->labels[i - 1]) > 0);
        s->labels[i] = ev->labels[i];
    }
    for (uint32_t i = 0; i < c->limits.jobs_max; i++) {
        struct job *j = &c->jobs[i];
        if (j->used && j->params.need_count > 0 && j->members[s->tenant] != MEMBER_NO) {
            kedgei_row_refresh(c, i, ev->site);
            kedgei_offer_touched(j);
        }
    }
}

/* Sums over tenants and not over sites: the tenants' counts are kept as sites come and go, so the question
 * costs the same for ten sites and for ten thousand. Only a job that needs something looks at each site. */
struct kedgei_crowd kedgei_crowd_of(const struct kedge_coord *c, const struct job *j)
{
    struct kedgei_crowd sum = {0, 0, 0};
    for (uint32_t i = 0; i < j->params.tenant_count && j->params.need_count == 0; i++) {
        uint32_t tenant = j->params.tenants[i];
        if (j->members[tenant] == MEMBER_JOINED) {
            sum.active += c->tenants[tenant].active;
            sum.online += c->tenants[tenant].online;
            sum.gone += c->tenants[tenant].gone;
        }
    }
    for (uint32_t i = 0; i < c->site_count && j->params.need_count > 0; i++) {
        if (kedgei_is_member(c, j, i) && kedgei_fits(c, j, i)) {
            sum.active++;
            sum.online += c->sites[i].presence == PRESENCE_ONLINE;
            sum.gone += c->sites[i].presence == PRESENCE_GONE;
        }
    }
    return sum;
}

/* Its parked poll is answered at once: a revoked site learns it now and not at its next request. */
void kedgei_site_revoked(struct kedge_coord *c, const struct kedge_coord_event *ev)
{
    KEDGE_ASSERT(ev->site < c->site_count);
    if (!c->sites[ev->site].active) {
        return;
    }
    uint32_t request = kedgei_unpark(c, ev->site);
    if (request != KEDGE_COORD_NONE) {
        struct kedge_coord_effect *fx = kedgei_emit(c, KEDGE_FX_TURN_AWAY);
        fx->site = ev->site;
        fx->tenant = c->sites[ev->site].tenant;
        fx->request = request;
        fx->err = KEDGE_E_REVOKED;
    }
    set_presence(c, ev->site, false, PRESENCE_GONE, UINT64_MAX);
    KEDGE_ASSERT(!c->sites[ev->site].active && c->sites[ev->site].request == KEDGE_COORD_NONE);
}

/* Nobody was heard of yet, but the sites do not know that the coordinator was away: they have a
 * lease and a grace to come back before rounds go on without them. */
void kedgei_presence_start(struct kedge_coord *c)
{
    for (uint32_t i = 0; i < c->site_count; i++) {
        if (c->sites[i].active) {
            set_presence(c, i, true, PRESENCE_OFFLINE,
                         kedgei_after(c, c->times.lease + c->times.offline_grace));
        }
    }
}

void kedgei_presence_touch(struct kedge_coord *c, uint32_t site)
{
    KEDGE_ASSERT(site < c->site_count && c->sites[site].active);
    if (KEDGE_RARE(c, UNHEARD)) {
        return;
    }
    set_presence(c, site, true, PRESENCE_ONLINE, kedgei_after(c, c->times.lease));
}

/* Each list from its head, where the time is over first. Bounded by the number of sites, so a jump
 * of the clock cannot hold the loop. */
void kedgei_presence_expire(struct kedge_coord *c)
{
    for (uint32_t n = 0; n < c->site_count; n++) {
        uint32_t head = c->online.head;
        if (head == KEDGE_COORD_NONE || c->sites[head].until_ns > c->now_ns) {
            break;
        }
        uint64_t until = c->sites[head].until_ns;
        bool past = until > UINT64_MAX - c->times.offline_grace;
        set_presence(c, head, true, PRESENCE_OFFLINE, past ? UINT64_MAX : until + c->times.offline_grace);
    }
    for (uint32_t n = 0; n < c->site_count; n++) {
        uint32_t head = c->offline.head;
        if (head == KEDGE_COORD_NONE || c->sites[head].until_ns > c->now_ns) {
            break;
        }
        set_presence(c, head, true, PRESENCE_GONE, UINT64_MAX);
    }
}

/* KEDGE_OK when the site may speak about this job at all. */
int kedgei_check_speaker(const struct kedge_coord *c, const struct kedge_coord_event *ev)
{
    if (ev->site >= c->site_count) {
        return KEDGE_E_NOT_ENROLLED;
    }
    if (!c->sites[ev->site].active && !MUTANT(MUTANT_ACCEPT_REVOKED)) {
        return KEDGE_E_REVOKED;
    }
    if (ev->job >= c->limits.jobs_max || !c->jobs[ev->job].used) {
        return KEDGE_E_NO_JOB;
    }
    const struct job *j = &c->jobs[ev->job];
    if (j->members[c->sites[ev->site].tenant] != MEMBER_JOINED) {
        return KEDGE_E_NOT_JOINED;
    }
    return j->cancelling || j->failing != KEDGE_OK ? KEDGE_E_NO_JOB : KEDGE_OK;
}
