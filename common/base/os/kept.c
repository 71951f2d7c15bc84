/* Evidence is kept within bounds although the parties who cause it may cause as much of it as they like:
 * one owner must not push out another's, and what no person has seen yet does not go because it is old.
 *
 * The folder is the only state: owner, digest and kind stand in a file's name, its age is its time of
 * change, and whether it was shown is told by a mark, an empty file of the same owner and digest. There is
 * no index that could disagree with the files after a crash. The price is that tidying reads the whole
 * folder, which is bounded by ROWS_MAX. */
#include "common/base/os/kept.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/try.h"

enum { HEX = 2 * KEDGE_KEPT_DIGEST, ROWS_MAX = 1 << 16, NS = 1000000000 };

struct row {
    char name[KEDGE_ID_MAX + 1 + HEX + 1 + KEDGE_KEPT_KIND_MAX + 1];
    size_t owner_len;
    int64_t ns; /* of its last change */
    uint64_t size;
    bool is_gone, is_unseen;
};

struct rows {
    struct row *items;
    size_t count, cap;
};

/* OWNER.HEX.KIND; false for another name. */
static bool take_name(const char *name, struct row *row)
{
    const char *kind = strrchr(name, '.');
    uint8_t digest[KEDGE_KEPT_DIGEST];
    size_t len = strlen(name);
    if (!kind || len >= sizeof row->name || kind - name < HEX + 2) {
        return false;
    }
    const char *hex = kind - HEX;
    row->owner_len = (size_t)(hex - name) - 1;
    memcpy(row->name, name, len + 1);
    return hex[-1] == '.' && kedge_id_is_valid(kedge_view_of(name, row->owner_len))
           && kedge_hex_decode(kedge_view_of(hex, HEX), digest, sizeof digest) == KEDGE_OK;
}

static const char *kind_of(const struct row *row)
{
    return row->name + row->owner_len + HEX + 2;
}

/* A larger table is filled before the old one is freed, so that a failure leaves the rows as they were. */
static int grow(struct rows *r)
{
    if (r->count < r->cap) {
        return KEDGE_OK;
    }
    size_t cap = r->cap ? 2 * r->cap : 64;
    struct row *items = cap <= ROWS_MAX ? kedge_mem_new(cap, sizeof *items) : NULL;
    if (!items) {
        return cap <= ROWS_MAX ? KEDGE_E_NOMEM : KEDGE_E_FULL;
    }
    if (r->count > 0) {
        memcpy(items, r->items, r->count * sizeof *items);
    }
    kedge_mem_free(r->items);
    r->items = items;
    r->cap = cap;
    return KEDGE_OK;
}

static int by_age(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    return x->ns != y->ns ? (x->ns < y->ns ? -1 : 1) : strcmp(x->name, y->name);
}

/* The files of that kind (NULL: of all), oldest first. */
static int read_rows(const char *dir, const char *kind, struct rows *r, struct kedge_diag *d)
{
    DIR *list = opendir(dir);
    if (!list) {
        return errno == ENOENT ? KEDGE_OK
                               : kedge_diag_set(d, kedge_errno(errno), "%s: %s", dir, strerror(errno));
    }
    int err = KEDGE_OK;
    const struct dirent *entry;
    while (!err && (entry = readdir(list)) != NULL) {
        struct row row = {.size = 0};
        struct stat st;
        if (!take_name(entry->d_name, &row) || (kind && strcmp(kind_of(&row), kind) != 0)
            || fstatat(dirfd(list), row.name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode)) {
            continue;
        }
        row.ns = (int64_t)st.st_mtim.tv_sec * NS + st.st_mtim.tv_nsec;
        row.size = st.st_size < 0 ? 0 : (uint64_t)st.st_size;
        err = grow(r);
        if (!err) {
            r->items[r->count++] = row;
        }
    }
    closedir(list);
    if (err) {
        return kedge_diag_set(d, err, "%s: more files than can be looked at", dir);
    }
    if (r->count > 1) {
        qsort(r->items, r->count, sizeof *r->items, by_age);
    }
    return KEDGE_OK;
}

/* ---- paths ---- */

int kedge_kept_path(char out[KEDGE_PATH_MAX], const char *dir, const struct kedge_id *owner,
                    const uint8_t digest[KEDGE_KEPT_DIGEST], const char *kind)
{
    struct row row;
    char hex[HEX + 1];
    kedge_hex_encode(digest, KEDGE_KEPT_DIGEST, hex);
    int n = snprintf(row.name, sizeof row.name, "%s.%s.%s", owner->s, hex, kind);
    return n < 0 || (size_t)n >= sizeof row.name ? KEDGE_E_TOO_LONG : kedge_path_join(out, dir, row.name);
}

/* A link and no copy: it costs no bytes and cannot be half written. The time is set because age counts
 * from the moment at which the file came here, not from when its content was written. */
int kedge_kept_link(const char *dir, const struct kedge_id *owner, const uint8_t digest[KEDGE_KEPT_DIGEST],
                    const char *kind, const char *from)
{
    char path[KEDGE_PATH_MAX];
    KEDGE_TRY(kedge_kept_path(path, dir, owner, digest, kind));
    KEDGE_TRY(kedge_dir_make(dir, 0700, NULL));
    if (link(from, path) != 0 && errno != EEXIST) {
        return kedge_errno(errno);
    }
    return utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW) != 0 ? kedge_errno(errno) : KEDGE_OK;
}

/* ---- tidying ---- */

/* A file that is gone already is as good as removed: another thread may tidy the same folder. */
static void drop(const char *dir, struct row *row)
{
    char path[KEDGE_PATH_MAX];
    row->is_gone =
        kedge_path_join(path, dir, row->name) == KEDGE_OK && (unlink(path) == 0 || errno == ENOENT);
}

static bool is_of(const struct row *row, const char *kind)
{
    return !row->is_gone && strcmp(kind_of(row), kind) == 0;
}

static bool is_same_owner(const struct row *a, const struct row *b)
{
    return a->owner_len == b->owner_len && memcmp(a->name, b->name, a->owner_len) == 0;
}

/* Both are about the same digest of the same owner. */
static bool is_same_matter(const struct row *a, const struct row *b)
{
    return a->owner_len == b->owner_len && memcmp(a->name, b->name, a->owner_len + 1 + HEX) == 0;
}

/* Removes the oldest of what is beyond the rule: of what is marked as seen first, and of the rest only then.
 * From the newest unseen one to the oldest seen one, what finds no room any more goes. */
static void apply(const char *dir, const struct kedge_kept_rule *rule, struct rows *r,
                  struct kedge_kept_gone *gone)
{
    uint32_t all = 0;
    uint64_t bytes = 0;
    for (size_t k = 2 * r->count; k-- > 0;) {
        struct row *row = &r->items[k % r->count];
        bool unseen_turn = k >= r->count;
        if (!is_of(row, rule->kind) || row->is_unseen != unseen_turn) {
            continue;
        }
        uint32_t own = 0; /* that have found room before it */
        for (size_t i = 0; i < r->count && rule->per_owner > 0 && own < rule->per_owner; i++) {
            const struct row *other = &r->items[i];
            bool before = other->is_unseen == unseen_turn ? other > row : other->is_unseen;
            own += before && is_of(other, rule->kind) && is_same_owner(other, row);
        }
        bool many = (rule->per_owner > 0 && own >= rule->per_owner) || (rule->most > 0 && all >= rule->most);
        bool large = rule->bytes > 0 && (row->size > rule->bytes || bytes > rule->bytes - row->size);
        if (many || large) {
            drop(dir, row);
            gone->beyond++;
            gone->unseen += unseen_turn;
        } else {
            all++;
            bytes += row->size;
        }
    }
}

static int by_name(const void *a, const void *b)
{
    const struct row *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* Of files about one matter, which stand together by name: unseen without a mark; a mark alone goes. */
static void judge_matter(const char *dir, const char *mark, struct row **rows, size_t count)
{
    size_t marks = 0;
    for (size_t i = 0; i < count; i++) {
        marks += strcmp(kind_of(rows[i]), mark) == 0;
    }
    for (size_t i = 0; i < count; i++) {
        rows[i]->is_unseen = marks == 0;
        if (marks == count) {
            drop(dir, rows[i]);
        }
    }
}

/* Which rows nobody has been shown; a mark that is about nothing any more goes. */
static int find_unseen(const char *dir, const char *mark, struct rows *r)
{
    struct row **rows = kedge_mem_new(r->count + 1, sizeof *rows);
    size_t count = 0, begin = 0;
    KEDGE_TRY_MEM(rows);
    for (size_t i = 0; i < r->count; i++) {
        if (!r->items[i].is_gone) {
            rows[count++] = &r->items[i];
        }
    }
    if (count > 1) {
        qsort(rows, count, sizeof *rows, by_name);
    }
    for (size_t i = 1; i <= count; i++) {
        if (i == count || !is_same_matter(rows[begin], rows[i])) {
            judge_matter(dir, mark, rows + begin, i - begin);
            begin = i;
        }
    }
    kedge_mem_free(rows);
    return KEDGE_OK;
}

/* Age first, then the bounds, then marks once more: the last file about a matter may have gone in between. */
int kedge_kept_tidy(const char *dir, const struct kedge_kept_rule *rules, size_t count, const char *mark,
                    uint64_t seconds, uint64_t now_s, struct kedge_kept_gone *ret, struct kedge_diag *reterr)
{
    struct rows r = {.items = NULL};
    struct kedge_kept_gone gone = {.beyond = 0};
    int err = read_rows(dir, NULL, &r, reterr);
    err = err || !mark ? err : find_unseen(dir, mark, &r);
    for (size_t i = 0; i < r.count && !err && now_s > seconds; i++) {
        bool is_mark = mark && strcmp(kind_of(&r.items[i]), mark) == 0; /* it goes with what it is about */
        if (!is_mark && !r.items[i].is_unseen && r.items[i].ns / NS < (int64_t)(now_s - seconds)) {
            drop(dir, &r.items[i]);
        }
    }
    for (size_t i = 0; i < count && !err; i++) {
        apply(dir, &rules[i], &r, &gone);
    }
    err = err || !mark ? err : find_unseen(dir, mark, &r);
    kedge_mem_free(r.items);
    if (!err) {
        *ret = gone;
    }
    return err;
}

int kedge_kept_remove(const char *dir, const uint8_t digest[KEDGE_KEPT_DIGEST], const char *kind,
                      struct kedge_diag *reterr)
{
    struct rows r = {.items = NULL};
    char hex[HEX + 1];
    int err = read_rows(dir, kind, &r, reterr);
    kedge_hex_encode(digest, KEDGE_KEPT_DIGEST, hex);
    for (size_t i = 0; i < r.count && !err; i++) {
        if (memcmp(r.items[i].name + r.items[i].owner_len + 1, hex, HEX) == 0) {
            drop(dir, &r.items[i]);
            err = r.items[i].is_gone
                      ? KEDGE_OK
                      : kedge_diag_set(reterr, KEDGE_E_IO, "%s/%s cannot be removed", dir, r.items[i].name);
        }
    }
    if (!err && r.count > 0) {
        err = kedge_dir_sync(dir);
    }
    kedge_mem_free(r.items);
    return err;
}

static int visit_row(const char *dir, const struct row *row, kedge_kept_visit *visit, void *arg)
{
    struct kedge_id owner;
    char path[KEDGE_PATH_MAX];
    uint8_t digest[KEDGE_KEPT_DIGEST];
    const char *hex = row->name + row->owner_len + 1;
    KEDGE_TRY(kedge_id_from(kedge_view_of(row->name, row->owner_len), &owner));
    KEDGE_TRY(kedge_hex_decode(kedge_view_of(hex, HEX), digest, sizeof digest));
    KEDGE_TRY(kedge_path_join(path, dir, row->name));
    return visit(arg, &owner, digest, path);
}

int kedge_kept_each(const char *dir, const char *kind, kedge_kept_visit *visit, void *arg,
                    struct kedge_diag *reterr)
{
    struct rows r = {.items = NULL};
    int err = read_rows(dir, kind, &r, reterr);
    for (size_t i = 0; i < r.count && !err; i++) {
        err = visit_row(dir, &r.items[i], visit, arg);
    }
    kedge_mem_free(r.items);
    return err;
}
