/* Looks at every live bit of a log's folder and names each damage: LMDB's file, the ledger's tables, its
 * checkpoints and high-water mark, its blobs. Reads only. Damaged files can crash LMDB: run it under
 * kedge_store_guarded. */
#ifndef KEDGE_CHAIN_STORE_FSCK_H
#define KEDGE_CHAIN_STORE_FSCK_H

#include "chain/store/blob/blobs.h"
#include "chain/store/ledger.h"

enum kedge_fsck_severity {
    KEDGE_FSCK_NOTE,   /* nothing is wrong */
    KEDGE_FSCK_STRAY,  /* what should not be there, or a mark that is missing: no record is affected */
    KEDGE_FSCK_DAMAGE, /* a read returns, or may return, what it should not */
};

struct kedge_fsck_finding {
    enum kedge_fsck_severity severity;
    const char *part;  /* "file", "high-water", "blob" or the table's name */
    const char *where; /* path of the file */
    bool has_index;
    uint64_t index; /* of the entry, the tile, the checkpoint's size …, as the table counts */
    const char *text;
    const char *mend; /* what to do */
};
/* What is passed is valid during the call only. */
typedef void kedge_fsck_report(void *arg, const struct kedge_fsck_finding *f);
typedef void kedge_fsck_progress(void *arg, const char *what, uint64_t done, uint64_t total);

struct kedge_fsck {
    bool beside; /* a writer may be at work: its locks are respected, and what is on its way is no fault */
    kedge_fsck_report *report;
    kedge_fsck_progress *progress; /* may be NULL */
    void *arg;                     /* of both */
};

/* What was looked at. */
struct kedge_fsck_counts {
    uint64_t entries, heads, records, blobs, blob_bytes;
};

/* Any LMDB store: the file's structure, and every record of every table by each way of reading it. The return
 * value of these three says whether the looking itself worked: KEDGE_E_NOT_FOUND, _DENIED, _NOMEM, _IO …;
 * what was found is told to `report`. */
KEDGE_NODISCARD int kedge_fsck_store(const struct kedge_fsck *f, const char *dir,
                                     struct kedge_fsck_counts *counts, struct kedge_diag *reterr);

struct kedge_fsck_ledger {
    const char *dir;                    /* the store's */
    const char *mark;                   /* high-water mark's file; NULL: there is none to look at */
    const char *origin;                 /* NULL: as stored */
    const struct kedge_public_key *key; /* of the log; NULL: as stored */
    const char *gone; /* an idempotency key of this and a digest in hex says that a blob is no longer kept;
                         NULL: all are */
};
/* A ledger's store: as above, and all that kedge_ledger_check knows, and its mark. Appends the digests of the
 * blobs that its entries reference, and that are still kept, to ret_refs, 32 bytes each, ascending. */
KEDGE_NODISCARD int kedge_fsck_ledger(const struct kedge_fsck *f, const struct kedge_fsck_ledger *ledger,
                                      struct kedge_buf *ret_refs, struct kedge_fsck_counts *counts,
                                      struct kedge_diag *reterr);

struct kedge_fsck_blobs {
    const char *dir;              /* with blobs/ in it */
    struct kedge_view refs;       /* blobs that must be here, or else in one of `elsewhere` */
    struct kedge_view also;       /* blobs that may be here */
    const char *const *elsewhere; /* other such folders */
    size_t elsewhere_count;
    bool strays_are_fine;  /* nothing is known of what else references blobs here */
    const char *keys_dir;  /* of encrypted blobs; NULL: none */
    bool keys_belong_here; /* so an encrypted blob without its key is lost, and not only unread */
};
/* Every blob that is referenced is there; every file is one, has its digest and is referenced. */
KEDGE_NODISCARD int kedge_fsck_blobs(const struct kedge_fsck *f, const struct kedge_fsck_blobs *blobs,
                                     struct kedge_fsck_counts *counts, struct kedge_diag *reterr);

#endif
