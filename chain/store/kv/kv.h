/* An ordered key-value store with transactions: what ledgers and the coordinator's state are kept in.
 * The only file that knows LMDB is kv_lmdb.c; tests also have a store in memory and a faulty wrapper
 * (tests/fixtures/kv.h). One contract suite runs against all: tests/contract/test_store_kv.c.
 *
 * Many readers beside one writer. A transaction sees one state of the store from begin to end; a write
 * transaction also sees its own changes. Keys 1…KEDGE_KV_KEY_MAX bytes, ordered as unsigned bytes,
 * shorter first. */
#ifndef KEDGE_CHAIN_STORE_KV_KV_H
#define KEDGE_CHAIN_STORE_KV_KV_H

#include "common/base/bytes.h"
#include "common/base/diag.h"

enum {
    KEDGE_KV_KEY_MAX = 511,       /* LMDB's default limit */
    KEDGE_KV_VALUE_MAX = 4 << 20, /* ours: keeps one transaction's dirty pages bounded */
};

/* Tables; the name on disk is the lower-case word. Values are positions in memory only. */
enum kedge_kv_table {
    KEDGE_KV_ENTRY,  /* ledger: be64 index -> entry bytes */
    KEDGE_KV_TILE,   /* ledger: level byte, be64 tile index -> up to 256 hashes */
    KEDGE_KV_HEAD,   /* ledger: be64 size -> signed checkpoint */
    KEDGE_KV_META,   /* any: small named facts (schema, origin, size and root …) */
    KEDGE_KV_IDEM,   /* ledger: idempotency key -> be64 index */
    KEDGE_KV_REF,    /* ledger: blob digest -> be64 index of the first entry that references it */
    KEDGE_KV_TENANT, /* coordinator: tenants and their admin keys */
    KEDGE_KV_SITE,   /* coordinator: sites */
    KEDGE_KV_TOKEN,  /* coordinator: enrolment and submit tokens */
    KEDGE_KV_JOB,    /* coordinator: jobs */
    KEDGE_KV_ROUND,  /* coordinator: rounds, groups, accepted updates */
    KEDGE_KV_STATE,  /* coordinator: everything else */
    KEDGE_KV_TABLES,
};

/* On-disk name of a table; static storage. */
const char *kedge_kv_table_name(enum kedge_kv_table table);

struct kedge_kv;
struct kedge_kv_tx;

/* How kedge_kv_put treats the key. */
enum kedge_kv_put_mode {
    KEDGE_KV_PUT,           /* insert or replace */
    KEDGE_KV_PUT_IF_ABSENT, /* KEDGE_E_EXISTS when there */
    KEDGE_KV_APPEND, /* insert behind the last key of the table; KEDGE_E_EXISTS when the key is not beyond
                        it */
};

/* Called per record in key order; views are valid during the call only. Non-zero stops the scan. */
typedef int kedge_kv_visit(void *arg, struct kedge_view key, struct kedge_view value);

/* Starts a transaction. One write transaction at a time: begin blocks until the other ended (memory:
 * KEDGE_E_BUSY). A write transaction belongs to the thread that began it; a read transaction may move
 * between threads but not be used by two at once. Keep read transactions short: they pin old pages.
 * KEDGE_E_DISK_FULL when the store is read-only and `write` is asked, KEDGE_E_IO after a failed commit
 * until kedge_kv_reopen, KEDGE_E_BUSY when readers are too many. */
KEDGE_NODISCARD int kedge_kv_begin(struct kedge_kv *kv, bool write, struct kedge_kv_tx **ret_tx,
                                   struct kedge_diag *reterr);
/* Makes a write transaction durable and frees it in every case. KEDGE_E_DISK_FULL: nothing changed, try
 * again later. KEDGE_E_IO: the outcome is unknown; the store refuses to write until kedge_kv_reopen. */
KEDGE_NODISCARD int kedge_kv_commit(struct kedge_kv_tx *tx, struct kedge_diag *reterr);
/* Ends a read transaction, or drops a write transaction's changes; frees it. NULL is fine. */
void kedge_kv_abort(struct kedge_kv_tx *tx);
/* kedge_kv_abort for KEDGE_CLEANUP, where a read transaction ends with the function that began it. The
 * pointer is NULL before kedge_kv_begin. */
void kedge_kv_drop(struct kedge_kv_tx **tx);
/* Ends a write transaction after its changes: commits them if `err` is KEDGE_OK, else drops them and returns
 * `err`. Frees it in every case. */
KEDGE_NODISCARD int kedge_kv_end(struct kedge_kv_tx *tx, int err, struct kedge_diag *reterr);

/* A failed put other than KEDGE_E_EXISTS dooms the transaction: abort it. */
KEDGE_NODISCARD int kedge_kv_put(struct kedge_kv_tx *tx, enum kedge_kv_table table, struct kedge_view key,
                                 struct kedge_view value, enum kedge_kv_put_mode mode);
/* KEDGE_E_NOT_FOUND when absent. */
KEDGE_NODISCARD int kedge_kv_del(struct kedge_kv_tx *tx, enum kedge_kv_table table, struct kedge_view key);
/* Appends a copy of the value to ret. KEDGE_E_NOT_FOUND, KEDGE_E_TOO_LONG (ret's max), KEDGE_E_CORRUPT.
 */
KEDGE_NODISCARD int kedge_kv_get(struct kedge_kv_tx *tx, enum kedge_kv_table table, struct kedge_view key,
                                 struct kedge_buf *ret);
/* Without a copy: valid until the transaction ends or its next change. */
KEDGE_NODISCARD int kedge_kv_peek(struct kedge_kv_tx *tx, enum kedge_kv_table table, struct kedge_view key,
                                  struct kedge_view *ret);
/* Appends the last (greatest) key of the table to ret_key and, unless NULL, its value to ret_value. */
KEDGE_NODISCARD int kedge_kv_last(struct kedge_kv_tx *tx, enum kedge_kv_table table,
                                  struct kedge_buf *ret_key, struct kedge_buf *ret_value);
/* Visits the records whose key starts with `prefix` and is not below `from` (both may be empty), in key
 * order. Returns what stopped it: KEDGE_OK at the end, the visitor's value, or an error. Do not change
 * the table within. */
KEDGE_NODISCARD int kedge_kv_scan(struct kedge_kv_tx *tx, enum kedge_kv_table table, struct kedge_view prefix,
                                  struct kedge_view from, kedge_kv_visit *visit, void *arg);
/* kedge_kv_scan of all records with the prefix, in a read transaction of its own. */
KEDGE_NODISCARD int kedge_kv_scan_once(struct kedge_kv *kv, enum kedge_kv_table table,
                                       struct kedge_view prefix, kedge_kv_visit *visit, void *arg,
                                       struct kedge_diag *reterr);
/* Number of records. */
KEDGE_NODISCARD int kedge_kv_count(struct kedge_kv_tx *tx, enum kedge_kv_table table, uint64_t *ret_count);

/* Forgets everything cached and looks at the storage again, after KEDGE_E_IO. KEDGE_E_BUSY while
 * transactions are open; on any other error the store stays unusable but may be reopened again or closed.
 */
KEDGE_NODISCARD int kedge_kv_reopen(struct kedge_kv *kv, struct kedge_diag *reterr);
/* No transaction may be open. NULL is fine. A writer on LMDB overwrites first what the file still holds of
 * earlier states, unless another process is reading one (docs/modules/store.md). */
void kedge_kv_close(struct kedge_kv *kv);
/* From now on close leaves the file as it is: a store found to be damaged is evidence. Any thread. Every call
 * above that answers KEDGE_E_CORRUPT or KEDGE_E_FORK, visitors of a scan included, has done so already. */
void kedge_kv_keep(struct kedge_kv *kv);
/* True for a writer when the last one closed this very store in good order, so that what it made durable need
 * not be made so again: the names that lead to it, and what its user keeps beside it. */
bool kedge_kv_was_closed(const struct kedge_kv *kv);
/* Before something that belongs to the store is changed: from then on its last close says nothing any more,
 * as from the first write transaction on. Any thread. Errors of kedge_errno: nothing may be changed. */
KEDGE_NODISCARD int kedge_kv_changing(struct kedge_kv *kv, struct kedge_diag *reterr);
/* Something that belongs to the store could not be made durable: its close is not in good order. Any thread.
 */
void kedge_kv_doubt(struct kedge_kv *kv);
/* True: the file at `path`, which belongs to the store, is made durable as it is now by
 * kedge_kv_lmdb_sync_together_end. False: its user syncs it. */
bool kedge_kv_sync_together(struct kedge_kv *kv, const char *path);
/* True when opened for reading only. */
bool kedge_kv_is_read_only(const struct kedge_kv *kv);

/* LMDB. `dir` is the environment's folder (data.mdb, lock.mdb and kedge.lock), mode 0700 when made. */
struct kedge_kv_lmdb_options {
    bool create;            /* make the folder and the store when absent; else KEDGE_E_NOT_FOUND */
    bool read_only;         /* for audits: works on read-only media and beside a running writer */
    bool no_lock;           /* with read_only: leave no trace in the folder (a copy nobody writes to) */
    bool on_demand;         /* a writer's: see kedge_kv_lmdb_open_most */
    bool unsafe_no_sync;    /* tests only: the positive control of the crash suite */
    uint64_t map_bytes;     /* address space, sparse; 0: 64 GiB. Grows by doubling when 3/4 full */
    uint64_t map_bytes_max; /* growth ends here; 0: 1 TiB */
    uint32_t readers_max;   /* 0: 510 */
    uint32_t lock_wait_ms;  /* how long a writer waits for another process that has it; 0: not at all */
};
/* Errors: KEDGE_E_LOCKED (open elsewhere, or already in this process), _NOT_FOUND, _CORRUPT, _DISK_FULL,
 * _DENIED. A damaged file can make LMDB crash: run what reads untrusted folders under
 * kedge_store_guarded. */
KEDGE_NODISCARD int kedge_kv_lmdb_open(const char *dir, const struct kedge_kv_lmdb_options *options,
                                       struct kedge_kv **ret_kv, struct kedge_diag *reterr);

/* Of the stores of this process that are open on demand so many at a time have an environment of LMDB, at
 * least 1; more only while more have transactions open. A store without one is opened again by the next
 * transaction, which can therefore also fail with the errors of opening. An environment takes
 * KEDGE_KV_LMDB_FILES descriptors, a store without one a single one. */
enum { KEDGE_KV_LMDB_OPEN_USUAL = 128, KEDGE_KV_LMDB_FILES = 4 };
void kedge_kv_lmdb_open_most(unsigned stores);
/* How many have one now. */
unsigned kedge_kv_lmdb_open_count(void);
/* Between these two calls what a store that is opened must make durable (the names that lead to it, its log's
 * mark) is made durable by the second call, with one sync of each file system. Until that has answered
 * KEDGE_OK nothing that the stores hold may be told to anybody, and no store's close is in good order. For
 * starts with many stores: a file system is synced with all that others wrote to it, too. Errors of the
 * second: those of kedge_errno. */
void kedge_kv_lmdb_sync_together_begin(void);
KEDGE_NODISCARD int kedge_kv_lmdb_sync_together_end(struct kedge_diag *reterr);
/* Called before and after a writer's environment is opened, in which LMDB takes 3 MiB for lists that it
 * hardly uses: for programs that choose where their heap takes such pieces from. One opening at a time. Set
 * once, before any store is opened; NULL: nothing is called. */
void kedge_kv_lmdb_around_opening(void (*around)(bool begins));

#endif
