/* Statements for the main chain that become durable together. */
#ifndef KEDGE_COORDINATOR_DAEMON_MAIN_BATCH_H
#define KEDGE_COORDINATOR_DAEMON_MAIN_BATCH_H

#include "chain/statement.h"
#include "chain/store/ledger.h"
#include "common/base/bytes.h"
#include "common/base/limits.h"
#include "crypto/sign.h"

struct kedge_host;
struct kedge_job;

/* Statements on their way into the main chain: the same bytes again when the outcome was unknown. */
struct kedge_main_batch {
    struct kedge_buf bytes;
    struct kedge_ledger_append items[KEDGE_TENANTS_MAX];
    char keys[KEDGE_TENANTS_MAX][KEDGE_IDEM_KEY_MAX + 1];
    size_t offsets[KEDGE_TENANTS_MAX], lens[KEDGE_TENANTS_MAX];
    struct kedge_hash *refs; /* owned, all items' together */
    size_t ref_first[KEDGE_TENANTS_MAX], ref_counts[KEDGE_TENANTS_MAX], ref_count, ref_cap;
    uint64_t tenant_sizes[KEDGE_TENANTS_MAX]; /* new anchored sizes, by tenant handle; 0: unchanged */
    size_t count;
};

KEDGE_NODISCARD int kedge_main_batch_new(struct kedge_main_batch **ret);
void kedge_main_batch_free(struct kedge_main_batch *b);
/* Signs and adds a statement with its idempotency key and references. */
KEDGE_NODISCARD int kedge_main_batch_statement(struct kedge_main_batch *b, const struct kedge_key_pair *key,
                                               const struct kedge_statement *st,
                                               const struct kedge_hash *refs, size_t ref_count,
                                               struct kedge_diag *d, const char *key_format, ...)
    KEDGE_PRINTF(7, 8);
/* Adds the current checkpoint of the tenant's ledger when it grew since its last one. */
KEDGE_NODISCARD int kedge_main_batch_checkpoint(struct kedge_main_batch *b, struct kedge_host *h,
                                                uint32_t tenant);
/* Submits; MAIN_APPENDED follows with the outcome. On success the batch is freed and anchored sizes are
 * raised. */
void kedge_main_batch_submit(struct kedge_host *h, struct kedge_job *job);

#endif
