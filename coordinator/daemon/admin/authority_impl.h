/* A change of authority on its way. Internal to authority*.c: authority_change.c (what is asked for) calls
 * authority_entry.c (how it becomes durable), and both call authority_approvals.c and authority.c. */
#ifndef KEDGE_COORDINATOR_DAEMON_ADMIN_AUTHORITY_IMPL_H
#define KEDGE_COORDINATOR_DAEMON_ADMIN_AUTHORITY_IMPL_H

#include "coordinator/daemon/admin/authority.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/rounds/main_batch.h"

struct kedge_authority_change {
    struct kedge_item item;
    struct kedge_host *h;
    struct kedge_net_request *req;
    struct kedge_statement *st;
    struct kedge_buf envelope;
    struct kedge_main_batch *batch; /* handed over */
    struct kedge_key_pair next;     /* of a rotation */
    uint32_t approvals;
    uint64_t index;
    int err;
    char why[KEDGE_DIAG_TEXT_MAX];
};

static inline bool kedge_authority_is_rotation(const struct kedge_authority_change *c)
{
    return c->st->kind == KEDGE_ST_STATEMENT_KEY_ROTATED;
}
/* Lists anew which rotations sites follow: the newest that fit, in their order. */
void kedge_authority_list_rotations(struct kedge_host *h);
void kedge_authority_free(struct kedge_authority_change *c);
/* Whether enough organisations signed the entry, which is the change's envelope; counts them. */
KEDGE_NODISCARD int kedge_authority_approved(struct kedge_host *h, struct kedge_authority_change *c,
                                             const struct kedge_signed_statement *entry,
                                             struct kedge_diag *d);
/* Whether the organisations' signatures hold now. */
KEDGE_NODISCARD int kedge_authority_check_approvals(struct kedge_host *h, struct kedge_authority_change *c,
                                                    struct kedge_diag *d);
/* Whether the main chain holds this very envelope; sets its index then. */
bool kedge_authority_is_stored(const struct kedge_host *h, struct kedge_authority_change *c);
/* Appends its envelope, of a rotation when its turn has come; answers and frees. */
void kedge_authority_start(struct kedge_host *h, struct kedge_authority_change *c);

#endif
