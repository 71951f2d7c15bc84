/* What each page of LMDB's file is: a page of exactly one tree, of one large value, or freed exactly once.
 * One wrong number anywhere breaks that. The scrubber relies on it before it touches a byte, fsck tells of
 * it. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chain/store/kv/kv_lmdb_file.h"
#include "common/base/mem.h"
#include "common/base/os/file.h"
#include "common/base/try.h"

enum {
    UNWRITTEN_MAX = 1 << 20, /* pages at the end that were freed by the transaction that took them: more than
                                LMDB lets one have */
    TRIES = 100,             /* a writer may be done with a transaction between two looks */
};

enum kedgei_lmdb_use kedgei_lmdb_use_of(const struct kedgei_lmdb_uses *u, uint64_t page)
{
    return (enum kedgei_lmdb_use)(u->uses[page / 4] >> (page % 4 * 2) & 3);
}

/* Two bits for each page, all zero at first: a page that is marked a second time, or out of range, is the
 * contradiction that is looked for. */
static bool mark(struct kedgei_lmdb_uses *u, uint64_t page, uint64_t count, enum kedgei_lmdb_use use)
{
    for (uint64_t end = page + count; page < end; page++) {
        if (page < 2 || page > u->f.newest.last || kedgei_lmdb_use_of(u, page) != KEDGEI_LMDB_USE_UNKNOWN) {
            u->bad_page = page;
            return false;
        }
        u->uses[page / 4] |= (uint8_t)((unsigned)use << (page % 4 * 2));
        u->known++;
    }
    return true;
}

/* Only the main tree holds the roots of tables, and holds nothing else; the flag in_main keeps a forged
 * table record in another tree from being followed. */
static bool mark_tree_page(void *arg, const struct kedgei_lmdb_page *page)
{
    struct kedgei_lmdb_uses *u = arg;
    u->bad_page = page->number;
    if (!mark(u, page->number, 1, KEDGEI_LMDB_USE_TREE)) {
        return false;
    }
    for (size_t i = 0; i < page->count && page->is_leaf; i++) {
        struct kedgei_lmdb_node n = kedgei_lmdb_node_of(page, i);
        if (u->in_main != (n.flags == KEDGEI_LMDB_TABLE)) {
            return false;
        }
        if (u->in_main
            && (u->table_count == KEDGEI_LMDB_TABLES_MAX
                || !kedgei_lmdb_table_root(page, &n, &u->tables[u->table_count++]))) {
            return false;
        }
        if (n.flags & KEDGEI_LMDB_BIG) {
            uint32_t count = kedgei_lmdb_run_pages(&u->f, &n);
            if (count == 0 || !mark(u, n.number, count, KEDGEI_LMDB_USE_RUN)) {
                return false;
            }
        }
    }
    return true;
}

/* A list of a transaction that is newer than the state cannot be: it would free pages that this state
 * still uses. */
static bool mark_freed(void *arg, uint64_t transaction, uint64_t page)
{
    struct kedgei_lmdb_uses *u = arg;
    return transaction <= u->f.newest.number && mark(u, page, 1, KEDGEI_LMDB_USE_FREED);
}

/* The first page that has no use. */
static int find_lost(struct kedgei_lmdb_uses *u)
{
    if (u->known == u->f.newest.last - 1) {
        return KEDGE_OK;
    }
    u->bad_page = 2;
    while (u->bad_page < u->f.newest.last && kedgei_lmdb_use_of(u, u->bad_page) != KEDGEI_LMDB_USE_UNKNOWN) {
        u->bad_page++;
    }
    return KEDGE_E_CORRUPT;
}

/* u->f is set. First all trees, then the freed pages, last the count: each page has one use when as many
 * are known as the file has. */
static int find_all(struct kedgei_lmdb_uses *u)
{
    u->f.bad_page = &u->bad_page;
    u->uses = kedge_mem_new(u->f.newest.last / 4 + 1, 1);
    KEDGE_TRY_MEM(u->uses);
    KEDGE_TRY(kedgei_lmdb_walk(&u->f, u->f.newest.free_root, mark_tree_page, u));
    u->in_main = true;
    KEDGE_TRY(kedgei_lmdb_walk(&u->f, u->f.newest.root, mark_tree_page, u));
    u->in_main = false;
    for (size_t i = 0; i < u->table_count; i++) {
        KEDGE_TRY(kedgei_lmdb_walk(&u->f, u->tables[i], mark_tree_page, u));
    }
    KEDGE_TRY(kedgei_lmdb_walk_freed(&u->f, mark_freed, u));
    return find_lost(u);
}

/* The table of uses is as large as the file says it has pages, so that number is held against the file's
 * length before memory is taken. Pages that the last transaction took and freed again were never written,
 * which is why it may exceed the length a little. */
static bool is_possible(const struct kedgei_lmdb_uses *u, int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && u->f.newest.last > 1
           && u->f.newest.last <= (uint64_t)st.st_size / u->f.page_size + UNWRITTEN_MAX;
}

int kedgei_lmdb_find_uses(int fd, uint64_t number, struct kedgei_lmdb_uses *u)
{
    bool ok = kedgei_lmdb_file_read(fd, &u->f) && (number == 0 || u->f.newest.number == number)
              && is_possible(u, fd);
    int err = ok ? kedgei_lmdb_check_states(&u->f) : KEDGE_E_CORRUPT;
    return err ? err : find_all(u);
}

/* The state of a reader's transaction: its pages stay as they are, and so do those of its list of freed ones,
 * though a writer may take pages that are on it. */
static int find_uses_of_reader(int fd, uint64_t number, struct kedgei_lmdb_uses *u)
{
    bool found = false;
    for (unsigned i = 0; i < TRIES && !found; i++) {
        found =
            kedgei_lmdb_file_read(fd, &u->f) && (u->f.newest.number == number || u->f.older.number == number);
    }
    if (!found) {
        return KEDGE_E_BUSY; /* two transactions further on: neither of the first pages tells of it */
    }
    u->f.newest = u->f.newest.number == number ? u->f.newest : u->f.older;
    return is_possible(u, fd) ? find_all(u) : KEDGE_E_CORRUPT;
}

/* Every page is in exactly one tree or in the list of free ones. LMDB finds out about a page in two trees
 * only when it writes over the wrong one. */
int kedgei_lmdb_check_structure(const char *dir, uint64_t reader, struct kedge_diag *reterr)
{
    char path[KEDGE_PATH_MAX];
    const char *version;
    if (!kedgei_lmdb_layout_known(&version)) {
        return kedge_diag_set(reterr, KEDGE_E_VERSION,
                              "%s: how %s lays out its files is not known here, expected LMDB 0.9", dir,
                              version);
    }
    int err = kedge_path_join(path, dir, "data.mdb");
    if (err) {
        return kedge_diag_set(reterr, err, "%s/data.mdb: path too long", dir);
    }
    int fd = kedge_file_open(path, O_RDONLY, reterr);
    if (fd < 0) {
        return fd;
    }
    struct kedgei_lmdb_uses *u = kedge_mem_new(1, sizeof *u);
    err = !u ? KEDGE_E_NOMEM : reader ? find_uses_of_reader(fd, reader, u) : kedgei_lmdb_find_uses(fd, 0, u);
    uint64_t bad_page = u ? u->bad_page : 0;
    if (u) {
        kedge_mem_free(u->uses);
        kedge_mem_free(u);
    }
    close(fd);
    if (err == KEDGE_E_CORRUPT && bad_page == 0) {
        return kedge_diag_set(
            reterr, err, "%s: its first two pages do not tell of two states that follow each other", path);
    }
    if (err == KEDGE_E_CORRUPT) {
        return kedge_diag_set(reterr, err,
                              "%s: page %llu is damaged, or in no tree or two of them, or freed and in use",
                              path, (unsigned long long)bad_page);
    }
    return err ? kedge_diag_set(reterr, err, "%s: %s", path, kedge_strerror(err)) : KEDGE_OK;
}
