/* The groups of a job as its record tells them, for people: who is where and since when, how near, how far
 * the groups are from each other, every assignment and move, and a picture of the updates that groups were
 * made from. Reads ledgers and blobs, decides nothing and proves nothing (chain/audit does that). Works
 * beside the writer of the ledgers and on copies. */
#ifndef KEDGE_CHAIN_VIEW_GROUPS_VIEW_H
#define KEDGE_CHAIN_VIEW_GROUPS_VIEW_H

#include "chain/statement/statement.h"
#include "chain/store/blob/blobs.h"
#include "chain/store/ledger.h"
#include "job/job_spec.h"

enum { KEDGE_GROUPS_PICTURE_MAX = 240 }; /* updates in a picture: their inner products are a matrix */
#define KEDGE_GROUPS_NO_GROUP UINT32_MAX

struct kedge_groups_log {
    struct kedge_id tenant; /* empty: main chain */
    struct kedge_ledger *ledger;
    struct kedge_blobs *blobs;
};

/* Why a site is not in the picture, or that it is. */
enum kedge_groups_place {
    KEDGE_GROUPS_PLACED,
    KEDGE_GROUPS_NOT_ASKED, /* no picture was wanted, or it has too many sites: every n-th is shown */
    KEDGE_GROUPS_ERASED,    /* its tenant had the update erased */
    KEDGE_GROUPS_ABSENT,    /* the file is not here */
    KEDGE_GROUPS_SEALED,    /* encrypted, and the key is not here */
    KEDGE_GROUPS_ZERO,      /* an update of zeros has no direction */
};
const char *kedge_groups_place_name(enum kedge_groups_place place); /* "erased" */

/* One group-assigned statement, or what stands in its place. */
struct kedge_groups_move {
    uint32_t site;        /* of kedge_groups_view.sites */
    uint32_t round, from; /* from: KEDGE_GROUPS_NO_GROUP, the first */
    uint32_t group;
    const char *how; /* kedge_group_how_name; "tenant" and "choice" where no group-assigned says it */
    double similarity;
    uint64_t entry; /* of the tenant's ledger */
};

struct kedge_groups_site {
    struct kedge_id tenant, site;
    uint64_t entry;               /* of the last one, in the tenant's ledger */
    uint32_t group, round, moves; /* moves: group-assigned statements */
    const char *how;
    double similarity;
    struct kedge_hash update; /* that the last one rests on */
    enum kedge_groups_place place;
    double x, y;
};

/* What the close of a round said of groups as a whole. */
enum kedge_groups_event {
    KEDGE_GROUPS_DRIFTED, /* they have moved so far that the next round makes new ones */
    KEDGE_GROUPS_CUT,     /* `other` was cut off `group` */
    KEDGE_GROUPS_JOINED,  /* `group` has become part of `other` */
    KEDGE_GROUPS_KEPT,    /* too few came to make new ones */
    KEDGE_GROUPS_OWN,     /* from now on what sites make of their group's model serves them better … */
    KEDGE_GROUPS_SHARED,  /* … and from now on no longer */
};
struct kedge_groups_change {
    uint32_t round, group, other;
    enum kedge_groups_event event;
    double drift; /* of DRIFTED */
};

struct kedge_groups_view {
    struct kedge_id job;
    uint32_t round;  /* of the last step; groups are 0 when there was none */
    uint32_t groups; /* 0 … KEDGE_GROUPS_MAX */
    struct kedge_hash models[KEDGE_GROUPS_MAX], directions[KEDGE_GROUPS_MAX];
    bool is_followed;    /* tenants or sites decide, and there are no similarities */
    bool has_directions; /* an ungrouped job has none; a copy may lack the files: then no cosines */
    double cosine[KEDGE_GROUPS_MAX][KEDGE_GROUPS_MAX];
    struct kedge_groups_site *sites; /* by (tenant, site) */
    size_t site_count;
    struct kedge_groups_move *moves; /* by (round, tenant, entry) */
    size_t move_count;
    uint32_t merged_into[KEDGE_GROUPS_MAX]; /* as the last step says: 1 + a group of which this one is part */
    bool is_personal;                       /* as the last step says: sites' own models serve them best */
    struct kedge_groups_change *changes;    /* by round */
    size_t change_count, change_cap;
    bool has_picture;
    double shown; /* share of the spread of the directions that the picture's two axes have */
    double group_x[KEDGE_GROUPS_MAX], group_y[KEDGE_GROUPS_MAX];
};

/* tenants: the logs that are here, ascending. picture: also principal coordinates of the updates that are
 * still here, which reads all of them. KEDGE_E_NOT_FOUND: the main chain opened no such job. Deinit
 * afterwards. */
KEDGE_NODISCARD int kedge_groups_view_read(const struct kedge_groups_log *main,
                                           const struct kedge_groups_log *tenants, size_t tenant_count,
                                           const struct kedge_id *job, bool picture,
                                           struct kedge_groups_view *ret, struct kedge_diag *reterr);
void kedge_groups_view_deinit(struct kedge_groups_view *v);

/* One JSON object; at most so many sites and moves (0: all), the newest moves; what is left out is counted in
 * "sites_left_out" and "moves_left_out". */
void kedge_groups_view_json(const struct kedge_groups_view *v, size_t sites_max, size_t moves_max,
                            struct kedge_buf *out);

/* groups_changes.c: what this step says of that, after those before it. KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedgei_groups_change(struct kedge_groups_view *v, const struct kedge_st_step *step);

/* groups_picture.c: cosines between count I32 files of the layout, count × count (rows of zero vectors are
 * 0); with ret_xy also their principal coordinates (grouping/picture.h), x and y of each, and the share of
 * the spread that these show. count ≤ KEDGE_GRAM_VECTORS_MAX. */
KEDGE_NODISCARD int kedge_compute_picture(const struct kedge_layout *layout,
                                          const struct kedge_blob_at *files, size_t count, double *ret_cosine,
                                          double *ret_xy, double *ret_shown, struct kedge_diag *reterr);

#endif
