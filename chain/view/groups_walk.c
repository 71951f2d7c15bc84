/* A job's ledgers, walked for what they say of groups.
 *
 * A coordinator's ledger has a table of keys, in which the statements of one kind and job stand side by
 * side, so only these are read. A copy has none: all entries are walked, and the key that each would have
 * had is computed from it, so both ways find the same statements. */
#include <string.h>

#include "chain/statement/entry_index.h"
#include "chain/view/groups_view_impl.h"
#include "common/base/mem.h"
#include "common/base/try.h"

static int parse_entry(struct kedgei_view_walk *w, uint64_t index, struct kedge_view entry)
{
    struct kedge_dsse_entry dsse;
    kedge_buf_clear(&w->payload);
    int err = kedge_dsse_decode(entry, &w->payload, &dsse);
    if (!err) {
        err = kedge_statement_decode(kedge_buf_view(&w->payload), w->st, NULL);
    }
    return err ? kedge_diag_set(w->d, KEDGE_E_CORRUPT, "log %s, entry %llu: %s",
                                kedge_ledger_origin(w->log->ledger), (unsigned long long)index,
                                kedge_strerror(err))
               : KEDGE_OK;
}

static int visit_key(void *arg, struct kedge_view key, uint64_t index)
{
    struct kedgei_view_walk *w = arg;
    (void)key;
    kedge_buf_clear(&w->entry);
    KEDGE_TRY(kedge_ledger_get(w->log->ledger, index, &w->entry));
    int err = parse_entry(w, index, kedge_buf_view(&w->entry));
    return err ? err : w->each(w, index);
}

/* Copies have no table of keys. What cannot be read there is another's, or a checkpoint. */
static int visit_entry(void *arg, uint64_t index, struct kedge_view entry)
{
    struct kedgei_view_walk *w = arg;
    struct kedge_dsse_entry dsse;
    char key_bytes[KEDGE_IDEM_KEY_MAX + 1];
    struct kedge_buf key;
    kedge_buf_clear(&w->payload);
    if (entry.len == 0 || kedge_dsse_decode(entry, &w->payload, &dsse) != KEDGE_OK
        || kedge_statement_decode(kedge_buf_view(&w->payload), w->st, NULL) != KEDGE_OK
        || w->st->kind != w->kind) {
        return KEDGE_OK;
    }
    kedge_buf_init(&key, KEDGE_IDEM_KEY_MAX);
    kedge_statement_key(w->kind, &w->st->u, &key);
    size_t len = key.len < KEDGE_IDEM_KEY_MAX ? key.len : KEDGE_IDEM_KEY_MAX;
    memcpy(key_bytes, key.len ? (const char *)key.ptr : "", len);
    key_bytes[len] = '\0';
    kedge_buf_deinit(&key);
    return strncmp(key_bytes, w->prefix, strlen(w->prefix)) == 0 ? w->each(w, index) : KEDGE_OK;
}

int kedgei_view_move(struct kedgei_view_walk *w, uint32_t site, const struct kedge_groups_move *move,
                     const struct kedge_hash *update)
{
    struct kedge_groups_view *v = w->view;
    KEDGE_TRY_MEM(kedge_mem_grow(&v->moves, &w->move_cap, v->move_count, 64, sizeof *v->moves));
    v->moves[v->move_count++] = *move;
    if (v->sites[site].moves++ == 0
        || move->entry >= v->sites[site].entry) { /* the order of the ledger decides */
        v->sites[site].entry = move->entry;
        v->sites[site].update = *update;
    }
    return KEDGE_OK;
}

/* The site of w's log, sought among those of this log, which stand at the end. */
int kedgei_view_site(struct kedgei_view_walk *w, const struct kedge_id *site, uint32_t *ret)
{
    struct kedge_groups_view *v = w->view;
    for (size_t i = v->site_count; i > 0 && kedge_id_eq(&v->sites[i - 1].tenant, &w->log->tenant); i--) {
        if (kedge_id_eq(&v->sites[i - 1].site, site)) {
            *ret = (uint32_t)(i - 1);
            return KEDGE_OK;
        }
    }
    KEDGE_TRY_MEM(kedge_mem_grow(&v->sites, &w->site_cap, v->site_count, 64, sizeof *v->sites));
    *ret = (uint32_t)v->site_count;
    v->sites[v->site_count++] = (struct kedge_groups_site){.tenant = w->log->tenant,
                                                           .site = *site,
                                                           .group = KEDGE_GROUPS_NO_GROUP,
                                                           .place = KEDGE_GROUPS_NOT_ASKED};
    return KEDGE_OK;
}

int kedgei_view_walk_log(struct kedgei_view_walk *w, const struct kedge_groups_log *log,
                         enum kedge_statement_kind kind, const char *prefix,
                         int (*each)(struct kedgei_view_walk *w, uint64_t index))
{
    w->log = log;
    w->kind = kind;
    w->prefix = prefix;
    w->each = each;
    return kedge_ledger_is_copy(log->ledger)
               ? kedge_ledger_for_each(log->ledger, 0, visit_entry, w)
               : kedge_ledger_scan_keys(log->ledger, kedge_view_str(prefix), visit_key, w);
}
