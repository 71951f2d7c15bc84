/* The folder of an LMDB store: made or found, opened once per process, written by one process, its free
 * space. Internal to this room. */
#ifndef KEDGE_CHAIN_STORE_KV_KV_DIR_H
#define KEDGE_CHAIN_STORE_KV_KV_DIR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/diag.h"
#include "common/base/os/file.h"

struct kedgei_kv_dir {
    struct kedgei_kv_dir *next; /* registry of this process */
    uint64_t device, inode;
    int lock_fd;             /* -1: none */
    bool was_closed;         /* its last writer closed it in good order, and it is that very folder */
    atomic_bool says_closed; /* kedge.lock still says so */
    unsigned together;       /* of kedgei_sync_together: the names that lead to it; 0: they are durable */
    char path[KEDGE_PATH_MAX];
};

/* KEDGE_E_NOT_FOUND without `create`, KEDGE_E_LOCKED when this process has it open or another one writes
 * to it and has not ended lock_wait_ms later. The object must stay where it is until closed. */
KEDGE_NODISCARD int kedgei_kv_dir_open(struct kedgei_kv_dir *d, const char *path, bool create, bool read_only,
                                       uint32_t lock_wait_ms, struct kedge_diag *reterr);
/* Behind the opening of the store in it: what a commit makes durable is worth nothing while the names that
 * lead to it are not. `err` is returned when it is one already; a reader syncs nothing. */
KEDGE_NODISCARD int kedgei_kv_dir_settle(struct kedgei_kv_dir *d, int err, struct kedge_diag *reterr);
/* Before the first change of the store or of what belongs to it: what kedge.lock says of its last close is
 * taken out. Any thread; errors of kedge_errno, and then nothing may be changed. */
KEDGE_NODISCARD int kedgei_kv_dir_changing(struct kedgei_kv_dir *d, struct kedge_diag *reterr);
/* in_order: a writer's store is whole, and whatever it relies on was made durable: the next one need not do
 * so again. */
void kedgei_kv_dir_close(struct kedgei_kv_dir *d, bool in_order);
/* Bytes of data.mdb or a negative error. */
int64_t kedgei_kv_dir_file_size(const struct kedgei_kv_dir *d);
/* KEDGE_E_CORRUPT when data.mdb is gone or empty: LMDB would make it anew, as a store without records. */
KEDGE_NODISCARD int kedgei_kv_dir_is_there(const struct kedgei_kv_dir *d, struct kedge_diag *reterr);
/* Whether this process may register with LMDB as a reader. */
bool kedgei_kv_dir_can_lock(const struct kedgei_kv_dir *d);
/* Whether a write that came up short did so for want of room. */
bool kedgei_kv_dir_is_full(const struct kedgei_kv_dir *d);

#endif
