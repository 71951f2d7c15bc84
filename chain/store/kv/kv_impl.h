/* What an implementation of kv.h provides. Internal to this room; arguments are already checked by kv.c.
 */
#ifndef KEDGE_CHAIN_STORE_KV_KV_IMPL_H
#define KEDGE_CHAIN_STORE_KV_KV_IMPL_H

#include <stdatomic.h>

#include "chain/store/kv/kv.h"

struct kedge_kv_ops {
    int (*begin)(struct kedge_kv *kv, bool write, struct kedge_kv_tx **ret_tx, struct kedge_diag *reterr);
    int (*commit)(struct kedge_kv_tx *tx, struct kedge_diag *reterr);
    void (*abort)(struct kedge_kv_tx *tx);
    int (*put)(struct kedge_kv_tx *tx, enum kedge_kv_table table, struct kedge_view key,
               struct kedge_view value, enum kedge_kv_put_mode mode);
    int (*del)(struct kedge_kv_tx *tx, enum kedge_kv_table table, struct kedge_view key);
    int (*peek)(struct kedge_kv_tx *tx, enum kedge_kv_table table, struct kedge_view key,
                struct kedge_view *ret);
    int (*last)(struct kedge_kv_tx *tx, enum kedge_kv_table table, struct kedge_view *ret_key,
                struct kedge_view *ret_value);
    int (*scan)(struct kedge_kv_tx *tx, enum kedge_kv_table table, struct kedge_view prefix,
                struct kedge_view from, kedge_kv_visit *visit, void *arg);
    int (*count)(struct kedge_kv_tx *tx, enum kedge_kv_table table, uint64_t *ret_count);
    int (*reopen)(struct kedge_kv *kv, struct kedge_diag *reterr);
    void (*close)(struct kedge_kv *kv);
};

/* First member of every implementation's store and transaction. */
struct kedge_kv {
    const struct kedge_kv_ops *ops;
    bool read_only;
    atomic_bool keep;          /* close leaves what the file holds besides its records */
    atomic_bool doubted;       /* kedge_kv_doubt */
    struct kedgei_kv_dir *dir; /* where it lies, NULL: in no folder */
};
struct kedge_kv_tx {
    struct kedge_kv *kv;
    bool write;
};

/* The store's order: memcmp over the common length, then the shorter first. */
int kedgei_kv_compare(struct kedge_view a, struct kedge_view b);
bool kedgei_kv_has_prefix(struct kedge_view key, struct kedge_view prefix);

#endif
