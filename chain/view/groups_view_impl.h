/* Internal to this room: how the view of a job's groups is gathered, statement by statement. */
#ifndef KEDGE_CHAIN_VIEW_GROUPS_VIEW_IMPL_H
#define KEDGE_CHAIN_VIEW_GROUPS_VIEW_IMPL_H

#include "chain/view/groups_view.h"

/* Statements of one kind and job, wherever they stand. */
struct kedgei_view_walk {
    const struct kedge_groups_log *log;
    struct kedge_statement *st;
    enum kedge_statement_kind kind;
    const char *prefix;
    struct kedge_buf entry, payload;
    struct kedge_diag *d;
    int (*each)(struct kedgei_view_walk *w, uint64_t index);
    struct kedge_groups_view *view;
    size_t site_cap, move_cap;
    const struct kedge_job_spec *spec;
    uint32_t place; /* of the log's tenant in the spec */
};

/* `each` for every statement of the kind whose key begins with the prefix. */
KEDGE_NODISCARD int kedgei_view_walk_log(struct kedgei_view_walk *w, const struct kedge_groups_log *log,
                                         enum kedge_statement_kind kind, const char *prefix,
                                         int (*each)(struct kedgei_view_walk *w, uint64_t index));
/* The site of w's log, which is added where it is new. */
KEDGE_NODISCARD int kedgei_view_site(struct kedgei_view_walk *w, const struct kedge_id *site, uint32_t *ret);
/* One more move of that site; the order of the ledger decides which is its last. */
KEDGE_NODISCARD int kedgei_view_move(struct kedgei_view_walk *w, uint32_t site,
                                     const struct kedge_groups_move *move, const struct kedge_hash *update);

/* groups_follow.c: groups that no group-assigned gives, of one tenant's sites: by tenants, by what sites
 * chose, or those in which all begin. */
KEDGE_NODISCARD int kedgei_view_follow(struct kedgei_view_walk *w, const struct kedge_groups_log *tenant);

#endif
