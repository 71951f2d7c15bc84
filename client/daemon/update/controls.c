#include "client/daemon/update/controls.h"

#include <string.h>

static struct kedge_control_row *find(struct kedge_controls *c, const struct kedge_id *job)
{
    for (uint32_t i = 0; i < c->count; i++) {
        if (kedge_id_eq(&c->items[i].job, job)) {
            return &c->items[i];
        }
    }
    return NULL;
}

void kedge_controls_signed(struct kedge_controls *c, const struct kedge_id *job,
                           const struct kedge_site_digest *update)
{
    struct kedge_control_row row = {.job = *job}, *old = find(c, job);
    if (!old && c->count == KEDGE_CONTROLS_MAX) {
        old = c->items; /* the job that was trained for longest ago has ended, if any has */
    } else if (old) {
        row = *old;
    }
    if (old) {
        c->count--;
        memmove(old, old + 1, (size_t)(c->items + c->count - old) * sizeof *old);
    }
    row.pending = *update;
    c->items[c->count++] = row;
}

void kedge_controls_accepted(struct kedge_controls *c, const struct kedge_id *job,
                             const struct kedge_site_digest *update)
{
    struct kedge_control_row *row = find(c, job);
    if (row && memcmp(row->pending.b, update->b, sizeof update->b) == 0) {
        row->accepted = *update;
    }
}

struct kedge_site_digest kedge_controls_in_force(const struct kedge_controls *c, const struct kedge_id *job)
{
    for (uint32_t i = 0; i < c->count; i++) {
        if (kedge_id_eq(&c->items[i].job, job)) {
            return c->items[i].accepted;
        }
    }
    return (struct kedge_site_digest){{0}};
}
