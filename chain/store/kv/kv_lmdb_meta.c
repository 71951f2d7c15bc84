/* LMDB takes the state with the higher transaction number. Nothing in it notices a number or a root that was
 * changed into an earlier one, and so a state that is silently a transaction old. Two facts of LMDB tell the
 * newest: its table of freed pages ends with its own transaction, and what this one freed contains both roots
 * of the state before, for every change of a tree makes its root anew. (A state that is passed off as the
 * newest has another last key; a later state's roots are not among what it freed, because pages freed by a
 * transaction are not used again by the next.) The pages of the state before may be there no more: see
 * kv_lmdb_scrub.c. */
#include <fcntl.h>
#include <unistd.h>

#include "chain/store/kv/kv_lmdb_file.h"
#include "common/base/os/file.h"

struct look {
    const struct kedgei_lmdb_file *f;
    bool freed_root, freed_free_root; /* of the state before */
    bool freed_own;                   /* root: nonsense */
};

static bool take_page(void *arg, uint64_t transaction, uint64_t page)
{
    struct look *l = arg;
    if (transaction == l->f->newest.number) {
        l->freed_root = l->freed_root || page == l->f->older.root;
        l->freed_free_root = l->freed_free_root || page == l->f->older.free_root;
    }
    l->freed_own = l->freed_own || page == l->f->newest.root;
    return true;
}

int kedgei_lmdb_check_states(const struct kedgei_lmdb_file *f)
{
    struct look l = {.f = f,
                     .freed_root = f->older.root == KEDGEI_LMDB_NO_PAGE,
                     .freed_free_root = f->older.free_root == KEDGEI_LMDB_NO_PAGE};
    int err = kedgei_lmdb_walk_freed(f, take_page, &l);
    return err || (l.freed_root && l.freed_free_root && !l.freed_own) ? err : KEDGE_E_CORRUPT;
}

/* LMDB keeps two states in the first two pages and opens the newer one that reads well. Where the newest
 * page is damaged it would silently go back a transaction: a ledger would lose entries that were answered.
 * So both must be whole and follow each other. */
int kedgei_lmdb_check_newest(const char *dir, struct kedge_diag *reterr)
{
    char path[KEDGE_PATH_MAX];
    const char *version;
    if (!kedgei_lmdb_layout_known(&version)) {
        kedge_diag_set(
            reterr, KEDGE_E_VERSION,
            "%s/data.mdb: cannot be told to be whole: how %s lays out its files is not known here, "
            "expected LMDB 0.9",
            dir, version);
        kedge_diag_hint(reterr, "run this program with LMDB 0.9 (liblmdb.so.0)");
        return KEDGE_E_VERSION;
    }
    int err = kedge_path_join(path, dir, "data.mdb");
    if (err) {
        return kedge_diag_set(reterr, err, "%s/data.mdb: path too long", dir);
    }
    int fd = kedge_file_open(path, O_RDONLY, reterr);
    if (fd < 0) {
        return fd;
    }
    struct kedgei_lmdb_file f;
    err = kedgei_lmdb_file_read(fd, &f) ? kedgei_lmdb_check_states(&f) : KEDGE_E_CORRUPT;
    close(fd);
    if (err == KEDGE_E_NOMEM) {
        return kedge_diag_set(reterr, err, "%s: out of memory", path);
    }
    if (err) {
        kedge_diag_set(reterr, KEDGE_E_CORRUPT,
                       "%s: its first two pages do not tell of two states that follow each other", path);
        kedge_diag_hint(reterr, "the file is damaged, or was copied while it was written; copy it again");
        return KEDGE_E_CORRUPT;
    }
    return KEDGE_OK;
}
