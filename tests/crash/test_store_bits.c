/* Every single bit: of one page of each kind that LMDB's file has, all 32,768 bits are turned one after the
 * other; of the rest of the file every STRIDE-th; and all bits of a blob and of the high-water mark. One run
 * turns every STEP-th of these bits, from another first one each day; KEDGE_TEST_TURN=0 up to STEP - 1 are
 * all of them. fsck must find each, or no read of the store returns anything else: every table
 * forwards, its count, its last record, and each record by its key are compared. A damaged file can crash or
 * loop LMDB, so children make the flips and are replaced when they die: while fsck looks that is a finding
 * (it does so in a child as well), while others read it is a miss. */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../contract/ledger_fixture.h"
#include "chain/store/fsck.h"
#include "chain/store/kv/kv_lmdb_file.h"
#include "common/base/mem.h"
#include "tests/fixtures/effort.h"

enum {
    ENTRIES = 20,
    COMMITS = 4,
    PAGE = 4096,
    PAGES_MAX = 400,
    STEP = EFFORT(5, 31), /* bits, within the pages of each kind; a prime comes by every place in a byte */
    BITS = (PAGE * 8 + STEP - 1) / STEP, /* of each of them that are turned */
    STRIDE = EFFORT(1009, 4001),         /* bits, in all others */
    WORKERS_MAX = 8,
    MISSES_MAX = 64,
    LOOP_LIMIT_S = 3,
};

enum kind { META_0, META_1, MAIN, BRANCH, LEAF, TILES, OVERFLOW, FREED_LIST, KINDS };
static const char *const kind_names[KINDS] = {"meta page 0", "meta page 1", "table of tables",
                                              "branch",      "leaf",        "leaf with tiles",
                                              "overflow",    "freed list"};

static struct fixture f;
static uint64_t pages[KINDS]; /* one of each kind */
static uint64_t first;        /* bit that is turned: below STEP */

/* ---- the store ---- */

static void make_store(void)
{
    static char texts[ENTRIES][9000];
    fixture_init(&f);
    f.kv = fixture_lmdb(f.store, true);
    fixture_must_open(&f, true);
    struct kedge_ledger_append items[ENTRIES / COMMITS];
    for (uint64_t c = 0; c < COMMITS; c++) {
        for (uint64_t k = 0; k < ENTRIES / COMMITS; k++) {
            uint64_t i = c * (ENTRIES / COMMITS) + k;
            unsigned long long number = i * UINT64_C(1234567890123457);
            int n = snprintf(texts[i], sizeof texts[i], "%0*llu", i % 10 == 3 ? 8500 : 1400, number);
            items[k] = (struct kedge_ledger_append){.entry = kedge_view_of(texts[i], (size_t)n)};
            items[k].idem_key = kedge_view_of(texts[i] + n - 12, 12);
        }
        ck_assert_int_eq(kedge_ledger_append(f.l, items, ENTRIES / COMMITS, NULL, NULL, NULL), KEDGE_OK);
    }
    kedge_ledger_close(f.l);
    kedge_kv_close(f.kv);
    f.l = NULL;
    f.kv = NULL;
}

struct finder {
    const struct kedgei_lmdb_file *file;
    uint64_t roots[KEDGEI_LMDB_TABLES_MAX];
    size_t count;
    bool has_tiles;
};

static bool note_roots(void *arg, const struct kedgei_lmdb_page *page)
{
    struct finder *w = arg;
    for (size_t i = 0; i < page->count && page->is_leaf; i++) {
        struct kedgei_lmdb_node n = kedgei_lmdb_node_of(page, i);
        if (n.flags & KEDGEI_LMDB_TABLE) {
            ck_assert(kedgei_lmdb_table_root(page, &n, &w->roots[w->count]));
            w->count++;
        }
    }
    pages[MAIN] = page->number;
    return true;
}

static bool note_page(void *arg, const struct kedgei_lmdb_page *page)
{
    (void)arg;
    if (!page->is_leaf) {
        pages[BRANCH] = page->number;
        return true;
    }
    for (size_t i = 0; i < page->count; i++) {
        struct kedgei_lmdb_node n = kedgei_lmdb_node_of(page, i);
        if (n.flags & KEDGEI_LMDB_BIG) {
            pages[OVERFLOW] = n.number;
        } else if (n.key_len == 9) { /* level and index */
            pages[TILES] = page->number;
        } else if (n.key_len == 8 && n.data_len > 1000) {
            pages[LEAF] = page->number;
        }
    }
    return true;
}

static bool note_list(void *arg, const struct kedgei_lmdb_page *page)
{
    (void)arg;
    pages[FREED_LIST] = page->number;
    return true;
}

static void find_pages(void)
{
    char path[200];
    struct kedgei_lmdb_file file;
    struct finder w = {.file = &file};
    snprintf(path, sizeof path, "%s/data.mdb", f.store);
    int fd = open(path, O_RDONLY);
    ck_assert(kedgei_lmdb_file_read(fd, &file));
    ck_assert_uint_eq(file.page_size, PAGE);
    pages[META_1] = 1;
    ck_assert_int_eq(kedgei_lmdb_walk(&file, file.newest.root, note_roots, &w), KEDGE_OK);
    for (size_t i = 0; i < w.count; i++) {
        ck_assert_int_eq(kedgei_lmdb_walk(&file, w.roots[i], note_page, &w), KEDGE_OK);
    }
    ck_assert_int_eq(kedgei_lmdb_walk(&file, file.newest.free_root, note_list, &w), KEDGE_OK);
    close(fd);
    for (int k = META_1; k < KINDS; k++) {
        ck_assert_msg(pages[k] > 0, "the store has no page of the kind \"%s\"", kind_names[k]);
    }
}

/* ---- one look ---- */

static void count_damage(void *arg, const struct kedge_fsck_finding *finding)
{
    *(uint64_t *)arg += finding->severity == KEDGE_FSCK_DAMAGE;
}

/* What fsck tells as well, without the full check: the last entries, tiles and root do not agree. */
static bool fails_to_open(const char *dir)
{
    static const struct kedge_kv_lmdb_options options = {.read_only = true, .no_lock = true};
    struct kedge_ledger_options ledger = {.origin = ORIGIN, .public_key = &f.key.public};
    struct kedge_kv *kv;
    struct kedge_ledger *l;
    int err = kedge_kv_lmdb_open(dir, &options, &kv, NULL);
    if (err) {
        return true;
    }
    err = kedge_ledger_open(kv, &ledger, &l, NULL);
    if (!err) {
        kedge_ledger_close(l);
    }
    kedge_kv_close(kv);
    return err != KEDGE_OK;
}

static bool fsck_finds(const char *dir, const char *mark)
{
    uint64_t n = 0;
    struct kedge_fsck fsck = {.report = count_damage, .arg = &n};
    struct kedge_fsck_ledger ledger = {.dir = dir, .mark = mark, .origin = ORIGIN, .key = &f.key.public};
    struct kedge_fsck_counts counts = {0};
    struct kedge_buf refs;
    kedge_buf_init(&refs, 1 << 20);
    int err = kedge_fsck_ledger(&fsck, &ledger, &refs, &counts, NULL);
    kedge_buf_deinit(&refs);
    return err || n > 0;
}

struct dumping {
    struct kedge_hasher *hash;
    struct kedge_kv_tx *tx;
    enum kedge_kv_table table;
};

static int dump_record(void *arg, struct kedge_view key, struct kedge_view value)
{
    struct dumping *d = arg;
    struct kedge_view again;
    uint8_t head[17] = {(uint8_t)d->table};
    kedge_store_be64(head + 1, key.len);
    kedge_store_be64(head + 9, value.len);
    kedge_hasher_update(d->hash, kedge_view_of(head, sizeof head));
    kedge_hasher_update(d->hash, key);
    kedge_hasher_update(d->hash, value);
    int err = kedge_kv_peek(d->tx, d->table, key, &again);
    return err ? err : kedge_view_eq(again, value) ? KEDGE_OK : KEDGE_E_CORRUPT;
}

/* Digest of all that reads return. */
static int dump(const char *dir, struct kedge_hash *ret)
{
    static const struct kedge_kv_lmdb_options options = {.read_only = true, .no_lock = true};
    struct kedge_kv *kv;
    struct dumping d = {.table = KEDGE_KV_ENTRY};
    struct kedge_view all = kedge_view_of(NULL, 0);
    int err = kedge_kv_lmdb_open(dir, &options, &kv, NULL);
    if (err) {
        return err;
    }
    ck_assert_int_eq(kedge_hasher_new(&d.hash), KEDGE_OK);
    err = kedge_kv_begin(kv, false, &d.tx, NULL);
    for (unsigned t = 0; t < KEDGE_KV_TABLES && !err; t++) {
        uint64_t count = 0;
        uint8_t bytes[8];
        struct kedge_buf last;
        kedge_buf_init(&last, KEDGE_KV_KEY_MAX);
        d.table = (enum kedge_kv_table)t;
        err = kedge_kv_scan(d.tx, d.table, all, all, dump_record, &d);
        err = err ? err : kedge_kv_count(d.tx, d.table, &count);
        kedge_store_be64(bytes, count);
        kedge_hasher_update(d.hash, kedge_view_of(bytes, sizeof bytes));
        int none = err ? err : kedge_kv_last(d.tx, d.table, &last, NULL);
        err = none == KEDGE_E_NOT_FOUND ? KEDGE_OK : none;
        kedge_hasher_update(d.hash, kedge_buf_view(&last));
        kedge_buf_deinit(&last);
    }
    kedge_kv_abort(d.tx);
    kedge_kv_close(kv);
    kedge_hasher_final(d.hash, ret);
    kedge_hasher_free(d.hash);
    return err;
}

/* ---- all bits ---- */

enum phase { PHASE_STRUCTURE, PHASE_READ, PHASE_FSCK };

struct progress {
    uint64_t at; /* number of the bit under way, of this worker's */
    enum phase phase;
    uint64_t done[KINDS + 1], found[KINDS + 1], missed; /* the last: of the rest of the file */
    uint64_t misses[MISSES_MAX];
};

struct worker {
    unsigned number, count;
    char dir[120], mark[100];
    uint8_t *map;
    uint64_t size, total; /* of the file; bits to turn, of all workers */
    struct kedge_hash good;
    struct progress *p;
};

/* The n-th bit to turn and what it belongs to. */
static uint64_t bit_of(uint64_t n, unsigned *ret_kind)
{
    *ret_kind = (unsigned)(n / BITS);
    if (*ret_kind < KINDS) {
        return pages[*ret_kind] * PAGE * 8 + (first + n % BITS * STEP) % (PAGE * 8);
    }
    *ret_kind = KINDS;
    return (n - (uint64_t)KINDS * BITS) * STRIDE;
}

static void limit_time(bool on)
{
    struct itimerval limit = {.it_value = {.tv_sec = on ? LOOP_LIMIT_S : 0}};
    (void)setitimer(ITIMER_PROF, &limit, NULL);
}

static void turn(struct worker *w, uint64_t bit)
{
    w->map[bit / 8] ^= (uint8_t)(1u << bit % 8);
}

static void note_miss(struct worker *w, uint64_t bit)
{
    if (w->p->missed < MISSES_MAX) {
        w->p->misses[w->p->missed] = bit;
    }
    w->p->missed++;
}

/* The quickest first: what the structure tells is found, as fsck begins with it; what no read shows is
 * harmless; all else must be found. */
static void look_at(struct worker *w)
{
    unsigned kind;
    uint64_t bit = bit_of(w->p->at, &kind);
    struct kedge_hash now;
    limit_time(true);
    turn(w, bit);
    bool is_found =
        w->p->phase == PHASE_STRUCTURE && kedgei_lmdb_check_structure(w->dir, 0, NULL) != KEDGE_OK;
    bool is_shown = w->p->phase == PHASE_FSCK;
    if (w->p->phase == PHASE_STRUCTURE && !is_found) {
        w->p->phase = PHASE_READ;
        is_shown = dump(w->dir, &now) || !kedge_hash_eq(&now, &w->good);
    }
    if (is_shown) {
        w->p->phase = PHASE_FSCK;
        is_found = fails_to_open(w->dir) || fsck_finds(w->dir, NULL);
        if (!is_found) {
            note_miss(w, bit);
        }
    }
    w->p->done[kind]++;
    w->p->found[kind] += is_found;
    turn(w, bit);
    limit_time(false);
}

static void run_child(struct worker *w)
{
    int null = open("/dev/null", O_WRONLY);
    (void)dup2(null, STDERR_FILENO);
    signal(SIGABRT, SIG_DFL);
    signal(SIGSEGV, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
    while (w->p->at < w->total) {
        look_at(w);
        w->p->at += w->count;
        w->p->phase = PHASE_STRUCTURE;
    }
    _exit(0);
}

/* Children, one after the other, until all of this worker's bits are done. */
static void run_worker(struct worker *w)
{
    while (w->p->at < w->total) {
        unsigned kind;
        pid_t pid = fork();
        if (pid == 0) {
            run_child(w);
        }
        int status;
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        if (w->p->at >= w->total) {
            return;
        }
        turn(w, bit_of(w->p->at, &kind)); /* as it was */
        if (w->p->phase == PHASE_READ) {
            w->p->phase = PHASE_FSCK; /* a read died of it: does fsck as well? */
            continue;
        }
        w->p->done[kind]++;
        w->p->found[kind]++;
        w->p->at += w->count;
        w->p->phase = PHASE_STRUCTURE;
    }
}

static void open_worker(struct worker *w, unsigned number, unsigned count)
{
    char command[400], path[200];
    *w = (struct worker){.number = number, .count = count};
    snprintf(w->dir, sizeof w->dir, "%s/bits-%u", f.dir, number);
    snprintf(command, sizeof command, "cp -r %s %s", f.store, w->dir);
    ck_assert_int_eq(system(command), 0);
    snprintf(path, sizeof path, "%s/data.mdb", w->dir);
    int fd = open(path, O_RDWR);
    ck_assert_int_ge(fd, 0);
    w->size = (uint64_t)kedge_file_size(path);
    ck_assert_uint_le(w->size, (uint64_t)PAGES_MAX * PAGE);
    w->total = (uint64_t)KINDS * BITS + w->size * 8 / STRIDE;
    w->map = mmap(NULL, w->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    w->p = mmap(NULL, sizeof *w->p, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(w->map != MAP_FAILED && w->p != MAP_FAILED);
    close(fd);
    w->p->at = number;
    ck_assert(!fsck_finds(w->dir, f.mark)); /* and before any bit is turned, all is well */
    ck_assert_int_eq(dump(w->dir, &w->good), KEDGE_OK);
}

START_TEST(every_bit_that_a_read_returns_is_found)
{
    static struct worker workers[WORKERS_MAX];
    uint64_t missed = 0, found_kinds = 0;
    make_store();
    find_pages();
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned count = processors < 1 ? 1 : processors > WORKERS_MAX ? WORKERS_MAX : (unsigned)processors;
    pid_t pids[WORKERS_MAX];
    for (unsigned i = 0; i < count; i++) {
        open_worker(&workers[i], i, count);
    }
    for (unsigned i = 0; i < count; i++) {
        pids[i] = fork();
        ck_assert_int_ge(pids[i], 0);
        if (pids[i] == 0) {
            run_worker(&workers[i]);
            _exit(0);
        }
    }
    for (unsigned i = 0; i < count; i++) {
        int status;
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_int_eq(status, 0);
        missed += workers[i].p->missed;
        for (uint64_t k = 0; k < workers[i].p->missed && k < MISSES_MAX; k++) {
            printf("  missed: page %llu, bit %llu\n",
                   (unsigned long long)(workers[i].p->misses[k] / 8 / PAGE),
                   (unsigned long long)(workers[i].p->misses[k] % (PAGE * 8)));
        }
    }
    for (unsigned k = 0; k <= KINDS; k++) {
        uint64_t done = 0, found = 0;
        for (unsigned i = 0; i < count; i++) {
            done += workers[i].p->done[k];
            found += workers[i].p->found[k];
        }
        printf("%-20s %6llu bits turned, %6llu found, %6llu that no read returns\n",
               k < KINDS ? kind_names[k] : "all other pages", (unsigned long long)done,
               (unsigned long long)found, (unsigned long long)(done - found));
        ck_assert(k == KINDS || done == BITS);
        found_kinds += found > 0;
    }
    ck_assert_uint_ge(found_kinds, KINDS);
    ck_assert_uint_eq(missed, 0);
    fixture_deinit(&f);
}
END_TEST

/* ---- files beside the store ---- */

static void turn_in_file(const char *path, uint64_t bit)
{
    int fd = open(path, O_RDWR);
    uint8_t byte;
    ck_assert_int_eq(pread(fd, &byte, 1, (off_t)(bit / 8)), 1);
    byte ^= (uint8_t)(1u << bit % 8);
    ck_assert_int_eq(pwrite(fd, &byte, 1, (off_t)(bit / 8)), 1);
    close(fd);
}

START_TEST(every_bit_of_the_mark_is_found)
{
    make_store();
    uint64_t bits = 8 * (uint64_t)kedge_file_size(f.mark);
    ck_assert_uint_gt(bits, 500);
    for (uint64_t bit = first; bit < bits; bit += STEP) {
        turn_in_file(f.mark, bit);
        ck_assert_msg(fsck_finds(f.store, f.mark), "bit %llu of the mark", (unsigned long long)bit);
        turn_in_file(f.mark, bit);
    }
    ck_assert(!fsck_finds(f.store, f.mark));
    fixture_deinit(&f);
}
END_TEST

START_TEST(every_bit_of_a_blob_is_found)
{
    struct kedge_blobs *blobs;
    struct kedge_hash digest;
    char dir[100], path[KEDGE_PATH_MAX];
    uint8_t content[PAGE];
    uint64_t found = 0;
    struct kedge_fsck fsck = {.report = count_damage, .arg = &found};
    struct kedge_fsck_counts counts = {0};
    memset(content, 7, sizeof content);
    fixture_init(&f);
    snprintf(dir, sizeof dir, "%s/log", f.dir);
    struct kedge_view part = kedge_view_of(content, sizeof content);
    ck_assert_int_eq(kedge_blobs_open(dir, NULL, &blobs, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_blobs_put(blobs, &part, 1, &digest, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_blobs_path(blobs, &digest, path), KEDGE_OK);
    struct kedge_fsck_blobs look = {.dir = dir, .refs = kedge_view_of(digest.b, sizeof digest.b)};
    for (uint64_t n = 0; n < BITS; n++) {
        uint64_t bit = (first + n * STEP) % (PAGE * 8);
        turn_in_file(path, bit);
        ck_assert_int_eq(kedge_fsck_blobs(&fsck, &look, &counts, NULL), KEDGE_OK);
        turn_in_file(path, bit);
    }
    ck_assert_uint_eq(found, BITS);
    ck_assert_int_eq(kedge_fsck_blobs(&fsck, &look, &counts, NULL), KEDGE_OK);
    ck_assert_uint_eq(found, BITS);
    kedge_blobs_close(blobs);
    fixture_deinit(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store bits");
    TCase *t = tcase_create("bits");
    tcase_set_timeout(t, 0); /* ctest has one */
    first = test_turn() % STEP;
    tcase_add_test(t, every_bit_that_a_read_returns_is_found);
    tcase_add_test(t, every_bit_of_the_mark_is_found);
    tcase_add_test(t, every_bit_of_a_blob_is_found);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
