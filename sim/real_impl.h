/* Inside of real.c and real_end.c: keys, envelopes and trees of a run with real signatures. */
#ifndef KEDGE_SIM_REAL_IMPL_H
#define KEDGE_SIM_REAL_IMPL_H

#include "chain/log/proof.h"
#include "chain/statement/statement.h"
#include "sim/real.h"

enum { SIM_ORIGIN_MAX = 80 };

struct sim_log {
    struct kedge_frontier tree;
    uint32_t count, max;
    struct kedge_hash *leaves;
    struct kedge_digest *envelopes; /* of the leaves */
    uint32_t envelope_max;
};

struct sim_text { /* an envelope, a receipt or a signed "closed" */
    struct kedge_buf bytes;
};

struct sim_real {
    uint32_t text_count, text_max;
    struct sim_text *texts;     /* from 1 */
    struct sim_index envelopes; /* digest → text */
    struct sim_log main, *tenants;
    struct kedge_statement *st; /* large: one for all */
    uint32_t site_count, tenant_count;
    struct kedge_key_pair coordinator, main_log, *sites, *admins, *logs;
};

struct sim_real *sim_real_of(struct sim *w); /* its keys are made by the first call */
struct kedge_statement *sim_real_blank(struct sim *w, enum kedge_statement_kind kind); /* st, cleared */
uint32_t sim_real_put_text(struct sim_real *r, struct kedge_buf *bytes);               /* takes it */
struct kedge_view sim_real_text(const struct sim_real *r, uint32_t text);
/* The envelope with this digest, hashed again. */
bool sim_real_envelope(const struct sim_real *r, const uint8_t *digest, struct kedge_view *ret);
struct kedge_view sim_real_origin(const struct sim *w, uint32_t tenant, char out[SIM_ORIGIN_MAX]);
int sim_real_subtree(void *log, unsigned level, uint64_t index,
                     struct kedge_hash *ret); /* kedge_subtree_fn */

#endif
