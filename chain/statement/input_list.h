/* Input lists: the blobs that round-opened and aggregate statements point to, one per tenant: which sites
 * were candidates, selected, aggregated, grouped or turned away. JSON lines with exactly one encoding:
 *   {"site":"s1","use":"aggregated","group":0,"leaf":7,"leaf_hash":"…","update":"…","weight":"9","reason":""}
 * and after the reason ,"round":3 where the row is about the task of an earlier round, ,"to":1 where the
 * close cuts the group and the site is in the part that gets this number, ,"percent":40 where the site is to
 * train on so much of its data; sorted by (site, use, group, leaf, update), strictly ascending, LF after each
 * row. (Updates refused before they came into the ledger have no leaf; their digests keep them apart.) Pure.
 */
#ifndef KEDGE_CHAIN_STATEMENT_INPUT_LIST_H
#define KEDGE_CHAIN_STATEMENT_INPUT_LIST_H

#include <stdint.h>

#include "common/base/bytes.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "crypto/hash.h"

enum {
    KEDGE_INPUT_ROWS_OF_SITE = 3, /* its update, its pre-training, and what it found of a trial */
    KEDGE_INPUT_ROWS_MAX = KEDGE_INPUT_ROWS_OF_SITE * KEDGE_SITES_MAX,
    KEDGE_INPUT_REASON_MAX = 64,
    KEDGE_INPUT_ROW_TEXT_MAX = 512, /* bytes of one encoded row */
    KEDGE_INPUT_LIST_MAX = KEDGE_INPUT_ROWS_MAX * KEDGE_INPUT_ROW_TEXT_MAX,
};

/* Sorted in this order. */
enum kedge_input_use {
    KEDGE_USE_CANDIDATE,
    KEDGE_USE_SELECTED,
    KEDGE_USE_AGGREGATED,
    KEDGE_USE_GROUPED,
    KEDGE_USE_REFUSED,
    KEDGE_USE_WORKING,   /* asynchronous jobs: at work on the task of an earlier round … */
    KEDGE_USE_AWAY,      /* … and not heard of as the round opened: it holds no place in it */
    KEDGE_USE_EVALUATED, /* what the site has found of its group's trial, in time for this close */
};
/* "candidate", …; static storage. */
const char *kedge_input_use_name(enum kedge_input_use use);

struct kedge_input_row {
    struct kedge_id site;
    enum kedge_input_use use;
    uint32_t group; /* below KEDGE_GROUPS_MAX */
    uint64_t leaf;  /* index in the tenant's ledger, at most 2^53 */
    struct kedge_hash leaf_hash;
    struct kedge_hash update;                /* digest of the update, all zero where there is none */
    uint64_t weight;                         /* at most 2^62 */
    char reason[KEDGE_INPUT_REASON_MAX + 1]; /* why it was refused; printable ASCII without '"' and '\' */
    uint32_t round;   /* of the task, 1…KEDGE_ROUNDS_MAX, where it is not the list's; else 0 */
    uint32_t to;      /* the group to which the close moves the site, where it cuts its group; else 0 */
    uint32_t percent; /* of its data that a selected site is to train on, 1 to 100, where that is planned;
                         else 0 */
};

struct kedge_input_list {
    struct kedge_input_row *rows; /* owned */
    uint32_t count;
};

int kedge_input_row_cmp(const struct kedge_input_row *a, const struct kedge_input_row *b);
/* Into the order that encode demands. */
void kedge_input_rows_sort(struct kedge_input_row *rows, size_t count);
/* Appends the blob; KEDGE_E_ARG for rows out of order, doubled or out of range, or too many. Zero rows: no
 * bytes. */
KEDGE_NODISCARD int kedge_input_list_encode(const struct kedge_input_row *rows, size_t count,
                                            struct kedge_buf *out);
/* encode(decode(b)) == b, everything else is KEDGE_E_FORMAT or KEDGE_E_TOO_LONG; KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_input_list_decode(struct kedge_view blob, struct kedge_input_list *ret_list);
void kedge_input_list_deinit(struct kedge_input_list *list);

#endif
