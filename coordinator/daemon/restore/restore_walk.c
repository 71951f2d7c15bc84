/* Walks over the coordinator's own logs by idempotency keys. Keys begin with kind, job and round in
 * fixed width, so the statements of one job or round are one range of keys, and a restart reads
 * these and not the whole log. */
#include "coordinator/daemon/restore/restore_walk.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "chain/log/dsse.h"
#include "common/base/try.h"
#include "coordinator/daemon/host.h"

int kedge_walk_entry(struct kedge_ledger *l, uint64_t index, struct kedge_statement *ret,
                     struct kedge_diag *d)
{
    struct kedge_buf entry KEDGE_CLEANUP(kedge_buf_deinit), payload KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_dsse_entry dsse;
    kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
    kedge_buf_init(&payload, KEDGE_ENTRY_MAX);
    KEDGE_TRY(kedge_ledger_get(l, index, &entry));
    KEDGE_TRY(kedge_dsse_decode(kedge_buf_view(&entry), &payload, &dsse));
    return kedge_statement_decode(kedge_buf_view(&payload), ret, d);
}

/* Everything that is wrong here is CORRUPT, with log and entry: the coordinator wrote this itself. */
int kedge_walk_read(struct kedge_walk *w, struct kedge_ledger *l, uint64_t index,
                    enum kedge_statement_kind kind)
{
    int err = kedge_walk_entry(l, index, w->st, w->d);
    if (!err && w->st->kind != kind) {
        return kedge_diag_set(w->d, KEDGE_E_CORRUPT, "log %s, entry %" PRIu64 ": %s stands where %s belongs",
                              kedge_ledger_origin(l), index, kedge_statement_kind_name(w->st->kind),
                              kedge_statement_kind_name(kind));
    }
    return err ? kedge_diag_set(w->d, KEDGE_E_CORRUPT, "log %s, entry %" PRIu64 ": %s",
                                kedge_ledger_origin(l), index, kedge_strerror(err))
               : KEDGE_OK;
}

static int visit_statement(void *arg, struct kedge_view key, uint64_t index)
{
    struct kedge_walk *w = arg;
    (void)key;
    KEDGE_TRY(kedge_walk_read(w, w->ledger, index, w->kind));
    return w->each(w, index);
}

int kedge_walk_all(struct kedge_walk *w, struct kedge_ledger *l, enum kedge_statement_kind kind,
                   const char *name, uint32_t round, kedge_walk_each *each)
{
    char prefix[KEDGE_IDEM_KEY_MAX + 1];
    int n =
        snprintf(prefix, sizeof prefix, "%s/%s%s", kedge_statement_kind_name(kind), name, name[0] ? "/" : "");
    KEDGE_ASSERT(n > 0 && (size_t)n < sizeof prefix);
    if (round != KEDGE_WALK_ALL) {
        int more = snprintf(prefix + n, sizeof prefix - (size_t)n, "%08" PRIu32 "/", round);
        KEDGE_ASSERT(more > 0 && (size_t)(n + more) < sizeof prefix);
    }
    w->ledger = l;
    w->kind = kind;
    w->each = each;
    return kedge_ledger_scan_keys(l, kedge_view_str(prefix), visit_statement, w);
}

int kedge_walk_tenants(struct kedge_walk *w, enum kedge_statement_kind kind, uint32_t round,
                       kedge_walk_each *each)
{
    int err = KEDGE_OK;
    for (uint32_t i = 0; i < w->job->params.tenant_count && !err; i++) {
        w->tenant = w->job->params.tenants[i];
        err = kedge_walk_all(w, w->h->tenants[w->tenant].log.ledger, kind, w->job->spec.name.s, round, each);
    }
    return err;
}

/* Keys come in ascending order, so the last one that is seen is the last one there is. */
static int visit_last(void *arg, struct kedge_view key, uint64_t index)
{
    struct kedge_walk *w = arg;
    w->found = true;
    w->last_index = index;
    snprintf(w->last_key, sizeof w->last_key, "%.*s", (int)key.len, (const char *)key.ptr);
    return KEDGE_OK;
}

int kedge_walk_last(struct kedge_walk *w, struct kedge_ledger *l, const char *kind, const char *name)
{
    char prefix[KEDGE_IDEM_KEY_MAX + 1];
    int n = snprintf(prefix, sizeof prefix, "%s/%s/", kind, name);
    KEDGE_ASSERT(n > 0 && (size_t)n < sizeof prefix);
    w->ledger = l;
    w->found = false;
    return kedge_ledger_scan_keys(l, kedge_view_str(prefix), visit_last, w);
}
