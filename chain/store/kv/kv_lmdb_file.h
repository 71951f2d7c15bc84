/* LMDB's file read without LMDB, by the layout of its data format 1 (lmdb 0.9, 64-bit, this machine's byte
 * order). LMDB keeps its last two states, each told by one of the file's first two pages, and takes the one
 * with the higher transaction number. A state is a few trees of pages: the table of freed pages
 * (transaction -> count, numbers) and the main tree, whose records are the roots of the named tables. Nothing
 * here is believed: what does not fit the layout ends the reading. Internal to this room. */
#ifndef KEDGE_CHAIN_STORE_KV_KV_LMDB_FILE_H
#define KEDGE_CHAIN_STORE_KV_KV_LMDB_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chain/store/kv/kv.h"
#include "common/base/diag.h"

enum {
    KEDGEI_LMDB_HEADER = 16, /* of a page: u64 number, u16, u16 flags, u16 and u16: see below, or u32 pages */
    KEDGEI_LMDB_BRANCH = 1,  /* flags of a page; between lower (a table of nodes ends) and upper (the nodes */
    KEDGEI_LMDB_LEAF = 2,    /* begin) its bytes are unused */
    KEDGEI_LMDB_RUN = 4,     /* pages of one large value: header, the value, unused bytes */
    KEDGEI_LMDB_BIG = 1,     /* flags of a node: its data is the number of such a run */
    KEDGEI_LMDB_TABLE = 2,   /* its data tell of a table */
};
#define KEDGEI_LMDB_NO_PAGE UINT64_MAX

struct kedgei_lmdb_state {
    uint64_t free_root, root; /* pages; NO_PAGE: an empty tree */
    uint64_t last;            /* page in use */
    uint64_t number;          /* of the transaction that made it */
};

struct kedgei_lmdb_file {
    int fd;
    uint32_t page_size;
    struct kedgei_lmdb_state newest, older;
    uint64_t *bad_page; /* where a walk tells which page was none; may be NULL */
};

/* False unless the two states follow each other, each in its place. */
bool kedgei_lmdb_file_read(int fd, struct kedgei_lmdb_file *ret);

struct kedgei_lmdb_page {
    const uint8_t *bytes; /* page_size of them */
    uint64_t number;
    bool is_leaf;
    size_t count;        /* of its nodes */
    size_t lower, upper; /* ends of the unused bytes */
};

struct kedgei_lmdb_node {
    size_t data; /* offset of its data in the page */
    size_t key;  /* and of its key */
    uint32_t data_len;
    uint16_t flags, key_len;
    uint64_t number; /* of the page below, or of the run of a BIG one */
};

/* A branch or leaf page at its place in the file, read into `buffer`. True only when its nodes fill exactly
 * what lies behind `upper`. */
bool kedgei_lmdb_page_read(const struct kedgei_lmdb_file *f, uint64_t number, uint8_t *buffer,
                           struct kedgei_lmdb_page *ret);
struct kedgei_lmdb_node kedgei_lmdb_node_of(const struct kedgei_lmdb_page *page, size_t i);
/* Pages of the run of a BIG node, 0 when there is no such run. */
uint32_t kedgei_lmdb_run_pages(const struct kedgei_lmdb_file *f, const struct kedgei_lmdb_node *node);
/* Root of the table that a TABLE node tells of; false when it tells of none. */
bool kedgei_lmdb_table_root(const struct kedgei_lmdb_page *page, const struct kedgei_lmdb_node *node,
                            uint64_t *ret_root);

/* Shows every page of a tree, parents before children, in the order of keys. KEDGE_E_CORRUPT when a page is
 * none or the visitor says false, KEDGE_E_NOMEM. */
typedef bool kedgei_lmdb_visit(void *arg, const struct kedgei_lmdb_page *page);
KEDGE_NODISCARD int kedgei_lmdb_walk(const struct kedgei_lmdb_file *f, uint64_t root,
                                     kedgei_lmdb_visit *visit, void *arg);

/* Shows every page number in the newest state's table of freed pages with the transaction that freed it.
 * Errors as above. KEDGE_E_CORRUPT also when the table is not as the newest transaction leaves it: as every
 * transaction from the second on frees pages, its last key is the state's number. */
typedef bool kedgei_lmdb_visit_freed(void *arg, uint64_t transaction, uint64_t page);
KEDGE_NODISCARD int kedgei_lmdb_walk_freed(const struct kedgei_lmdb_file *f, kedgei_lmdb_visit_freed *visit,
                                           void *arg);

/* kv_lmdb_meta.c: KEDGE_E_CORRUPT unless the newest state is the one that followed the older. */
KEDGE_NODISCARD int kedgei_lmdb_check_states(const struct kedgei_lmdb_file *f);

/* kv_lmdb_meta.c: KEDGE_E_CORRUPT when data.mdb in a folder that nobody writes to gives an older state than
 * its newest. Reads a few pages. KEDGE_E_VERSION: see kedgei_lmdb_layout_known. */
KEDGE_NODISCARD int kedgei_lmdb_check_newest(const char *dir, struct kedge_diag *reterr);

/* kv_lmdb_uses.c: what each page of the newest state is. */
enum kedgei_lmdb_use {
    KEDGEI_LMDB_USE_UNKNOWN,
    KEDGEI_LMDB_USE_TREE,
    KEDGEI_LMDB_USE_RUN,
    KEDGEI_LMDB_USE_FREED
};
enum { KEDGEI_LMDB_TABLES_MAX = 64 };
struct kedgei_lmdb_uses {
    struct kedgei_lmdb_file f;
    uint8_t *uses; /* two bits for each page; freed by the caller with kedge_mem_free, in every case */
    uint64_t known;
    uint64_t tables[KEDGEI_LMDB_TABLES_MAX]; /* their roots */
    size_t table_count;
    bool in_main;
    uint64_t bad_page; /* where it broke, 0: before any page was looked at */
};
/* Fills *u, which is zero before. Nobody writes to the file. KEDGE_E_CORRUPT unless the newest state is the
 * one that followed the older (its transaction `number`, 0: any), each page's nodes fill it to the byte, and
 * each page is either in exactly one tree or freed exactly once. */
KEDGE_NODISCARD int kedgei_lmdb_find_uses(int fd, uint64_t number, struct kedgei_lmdb_uses *u);
enum kedgei_lmdb_use kedgei_lmdb_use_of(const struct kedgei_lmdb_uses *u, uint64_t page);
/* The same of DIR/data.mdb, with words (KEDGE_E_VERSION, too); reader: 0 when nobody writes to it, else the
 * number of the state that an open transaction of this process reads, which keeps that state whole beside a
 * writer. */
KEDGE_NODISCARD int kedgei_lmdb_check_structure(const char *dir, uint64_t reader, struct kedge_diag *reterr);

/* kv_lmdb.c: whether the LMDB that this process runs with lays its files out as this room reads them (0.9),
 * and which it is. What reads the layout says KEDGE_E_VERSION where it is another. */
bool kedgei_lmdb_layout_known(const char **ret_version);

/* kv_lmdb.c: the number of the state that a transaction of an LMDB store reads. */
uint64_t kedgei_lmdb_number_of(struct kedge_kv_tx *tx);

/* kv_lmdb_scrub.c: takes what mdb_reader_list prints, line by line; arg is the struct. Whatever is not
 * plainly a reader of the newest state counts as one of an older. */
struct kedgei_lmdb_readers {
    uint64_t newest;
    bool at_older;
};
int kedgei_lmdb_see_reader(const char *line, void *arg);

/* kv_lmdb_prove.c: KEDGE_OK when each record of the newest state lies where LMDB finds it; KEDGE_E_CORRUPT,
 * or KEDGE_E_NOMEM. The file's pages have been looked at (find_uses); no transaction is open. */
KEDGE_NODISCARD int kedgei_lmdb_prove(struct kedge_kv *kv, const struct kedgei_lmdb_file *file);

/* kv_lmdb_scrub.c: overwrites with zeros whatever the state `number` does not hold, when that is proven.
 * Nobody may write to the file nor look at an older state. Durable on KEDGE_OK; KEDGE_E_CORRUPT: the file is
 * not quite as LMDB would leave it, or LMDB finds a record elsewhere, nothing was touched; after
 * KEDGE_E_NOMEM and _IO the state is as good as before. */
KEDGE_NODISCARD int kedgei_lmdb_scrub(struct kedge_kv *kv, int fd, uint64_t number);

#endif
