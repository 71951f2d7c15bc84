/* A record may be longer than memory: what the auditor holds of it does not grow with it, and tables in files
 * give the report that tables on the heap give. */
#include <malloc.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "chain/audit/base/spool.h"
#include "common/base/rng.h"
#include "common/base/text.h"
#include "tests/fixtures/run.h"
#include "tests/unit/audit/support.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WATCHED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define WATCHED 1
#endif
#endif
#ifndef WATCHED
#define WATCHED 0 /* by a sanitizer, whose own memory would be measured */
#endif

enum {
    SITES = 16, /* of each of two tenants */
    FEW_ROUNDS = WATCHED ? 5 : 60,
    MANY_ROUNDS = WATCHED ? 20 : 300, /* 21,000 entries */
    HELD_MORE = 1 << 20,              /* bytes by which 17,000 entries fill buffers of a fixed size */
    LEFT_PER_ENTRY = 4,               /* bytes */
    HELD_WITHOUT_RECORD = 8 << 20,
    SORTED = 500000, /* 8 MB: several runs */
};

/* ---- what is held ---- */

/* Bytes that belong to this process alone and to no file. */
static uint64_t anonymous(void)
{
    char line[256];
    unsigned long long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && kib == 0 && fgets(line, sizeof line, f)) {
        kib = strncmp(line, "RssAnon:", 8) == 0 ? strtoull(line + 8, NULL, 10) : 0;
    }
    if (f) {
        fclose(f);
    }
    return kib * 1024;
}

/* Bytes of the heap that are in use. */
static uint64_t in_use(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

struct watch {
    uint64_t most;      /* anonymous */
    uint64_t last_heap; /* in use at the last entry */
};

static void look(void *arg, const char *what, uint64_t done, uint64_t total)
{
    struct watch *w = arg;
    (void)what;
    (void)done;
    (void)total;
    uint64_t now = anonymous();
    w->most = now > w->most ? now : w->most;
}

static int look_each(void *arg, const struct kedge_audit_entry *e)
{
    struct watch *w = arg;
    if (e->index % 512 == 0) {
        look(arg, "", 0, 0);
    }
    w->last_heap = in_use();
    return KEDGE_OK;
}

struct measured {
    uint64_t
        most; /* anonymous bytes that the audit came to hold at some time, for its tables and its rounds */
    uint64_t left; /* of the heap, that it came to hold by the last entry, when all rounds are over */
    uint64_t entries;
};

/* Audits what lies in the scratch folder. Tables lie in files from the start, so the heap has what a round
 * needs and what somebody forgot. */
static void audit_watched(struct measured *ret)
{
    struct watch w = {.most = 0};
    uint64_t before = anonymous(), heap = in_use();
    struct kedge_audit_options options = {.threads = 1,
                                          .table_bytes = 1,
                                          .progress = look,
                                          .progress_arg = &w,
                                          .each = look_each,
                                          .each_arg = &w};
    struct kedge_audit_report r;
    struct kedge_trust trust;
    struct kedge_diag d = {.text = ""};
    ck_assert_int_eq(kedge_trust_read(at("fx/trust.json"), &trust, &d), KEDGE_OK);
    int err = kedge_audit_replay(at("fx"), &trust, NULL, 0, &options, &r, &d);
    ck_assert_msg(err == KEDGE_OK, "%s", d.text);
    print_findings(&r);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    *ret = (struct measured){.most = w.most > before ? w.most - before : 0,
                             .left = w.last_heap > heap ? w.last_heap - heap : 0,
                             .entries = r.counts.entries};
    kedge_audit_report_deinit(&r);
    kedge_trust_deinit(&trust);
}

/* The record is made in one process and audited in another, each new: neither finds a heap that an earlier
 * one left in pieces, whose free pages would be counted when they are used again. */
static struct measured measure(uint32_t rounds)
{
    struct measured *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(shared != MAP_FAILED);
    make_scratch();
    for (int audits = 0; audits < 2; audits++) {
        int status = -1;
        pid_t pid = fork();
        ck_assert_int_ge(pid, 0);
        if (pid == 0) {
            if (audits) {
                audit_watched(shared);
            } else {
                fx_long(at("fx"), SITES, rounds);
            }
            _exit(0);
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
    }
    remove_scratch();
    struct measured m = *shared;
    munmap(shared, sizeof *shared);
    return m;
}

START_TEST(test_held)
{
    struct measured few = measure(FEW_ROUNDS), many = measure(MANY_ROUNDS);
    uint64_t more = many.most > few.most ? many.most - few.most : 0;
    uint64_t left = many.left > few.left ? many.left - few.left : 0, entries = many.entries - few.entries;
    printf("  %llu entries: %llu KiB, then %llu; %llu entries: %llu KiB, then %llu; %.1f bytes per entry\n",
           (unsigned long long)few.entries, (unsigned long long)few.most / 1024,
           (unsigned long long)few.left / 1024, (unsigned long long)many.entries,
           (unsigned long long)many.most / 1024, (unsigned long long)many.left / 1024,
           (double)left / (double)entries);
    ck_assert_uint_gt(many.entries, few.entries);
    if (!WATCHED) {
        ck_assert_uint_gt(many.entries, 20000);
        ck_assert_uint_le(few.most, HELD_WITHOUT_RECORD);
        ck_assert_uint_le(more, HELD_MORE);
        ck_assert_uint_le(left, LEFT_PER_ENTRY * entries);
    }
}
END_TEST

/* ---- tables in files ---- */

START_TEST(test_same_report)
{
    static const enum fx_twist twists[] = {FX_NONE,        FX_STATED_TWICE, FX_IDEM_KEY,
                                           FX_GARBAGE,     FX_UNLISTED,     FX_MAIN_ROOT,
                                           FX_ANCHOR_FORK, FX_GROUPING,     FX_MIXING};
    struct kedge_audit_report r[2];
    make_scratch();
    fx_federation(at("fx"), twists[_i]);
    for (int i = 0; i < 2; i++) {
        r[i] = run(at("fx"), at("fx/trust.json"), NULL, true,
                   (struct kedge_audit_options){.table_bytes = (uint64_t)i});
    }
    ck_assert_int_eq(r[0].verdict, twists[_i] == FX_NONE ? KEDGE_AUDIT_YES : KEDGE_AUDIT_NO);
    ck_assert_uint_eq(r[0].finding_count, r[1].finding_count);
    for (uint32_t i = 0; i < r[0].finding_count; i++) {
        ck_assert_str_eq(r[0].findings[i].where, r[1].findings[i].where);
        ck_assert_str_eq(r[0].findings[i].text, r[1].findings[i].text);
    }
    ck_assert_mem_eq(&r[0].counts, &r[1].counts, sizeof r[0].counts);
    ck_assert_mem_eq(&r[0].results, &r[1].results, sizeof r[0].results);
    kedge_audit_report_deinit(&r[0]);
    kedge_audit_report_deinit(&r[1]);
    remove_scratch();
}
END_TEST

/* No place for them: said, and no verdict. */
START_TEST(test_no_place)
{
    struct kedge_audit_options options = {.table_bytes = 1};
    struct kedge_audit_report r;
    struct kedge_diag d = {.text = ""};
    const char *was = getenv("TMPDIR");
    char *keep = was ? strdup(was) : NULL;
    make_scratch();
    fx_federation(at("fx"), FX_NONE);
    ck_assert_int_eq(setenv("TMPDIR", "/nowhere", 1), 0);
    int err = kedge_audit_verify(at("fx"), NULL, NULL, 0, &options, &r, &d);
    ck_assert_int_eq(err, KEDGE_E_DISK_FULL);
    ck_assert_ptr_nonnull(strstr(d.text, "TMPDIR"));
    ck_assert_int_eq(keep ? setenv("TMPDIR", keep, 1) : unsetenv("TMPDIR"), 0);
    free(keep);
    remove_scratch();
}
END_TEST

/* A store that is read in circles gives no more than is in its file. */
START_TEST(test_no_end)
{
    struct kedgei_scratch s;
    struct kedgei_spool spool;
    struct kedge_diag d = {.text = ""};
    make_scratch();
    struct kedgei_spooling what = {.state = at("fx/state"), .timeout_ms = 60000, .most = 1 << 20};
    fx_federation(at("fx"), FX_NONE);
    kedgei_scratch_init(&s, 0);
    ck_assert_int_eq(kedgei_spool(&what, &s, &spool, &d), KEDGE_OK);
    ck_assert_uint_gt(spool.entries, 10);
    kedgei_scratch_unmap(&s, spool.records);
    what.most = spool.records.len - 1;
    ck_assert_int_eq(kedgei_spool(&what, &s, &spool, &d), KEDGE_E_CORRUPT);
    kedgei_scratch_deinit(&s);
    remove_scratch();
}
END_TEST

/* ---- scratch by itself ---- */

struct row {
    uint64_t key, number;
};

static int compare(const void *pa, const void *pb)
{
    const struct row *a = pa, *b = pb;
    int c = (a->key > b->key) - (a->key < b->key);
    return c ? c : (a->number > b->number) - (a->number < b->number);
}

START_TEST(test_sort)
{
    struct kedgei_scratch s;
    struct kedge_rng rng;
    kedgei_scratch_init(&s, 1);
    kedge_rng_init(&rng, 3, KEDGE_RNG_TEST, 0, 0);
    for (uint64_t keys = 2; keys <= UINT64_C(1) << 40; keys <<= 19) { /* many equal ones, few, none */
        struct row *rows = NULL;
        uint64_t sum = 0;
        for (size_t n = 0; n < SORTED; n++) {
            if (n % (SORTED / 4) == 0) {
                rows = kedgei_scratch_grow(&s, rows, n, n + SORTED / 4, sizeof *rows);
                ck_assert_ptr_nonnull(rows);
            }
            rows[n] = (struct row){kedge_rng_below(&rng, keys), n};
            sum += rows[n].key;
        }
        ck_assert_uint_ge(s.mapped, SORTED * sizeof *rows);
        for (int again = 0; again < 2; again++) { /* also what is sorted already */
            ck_assert_int_eq(kedgei_scratch_sort(&s, rows, SORTED, sizeof *rows, compare), KEDGE_OK);
            uint64_t left = sum;
            for (size_t n = 0; n < SORTED; n++) {
                left -= rows[n].key;
                ck_assert(n == 0 || compare(&rows[n - 1], &rows[n]) < 0);
            }
            ck_assert_uint_eq(left, 0);
        }
        kedgei_scratch_free(&s, rows);
    }
    ck_assert_uint_eq(s.mapped, 0);
    kedgei_scratch_deinit(&s);
}
END_TEST

/* What is sorted already is copied run by run: the process must not hold more and more of it meanwhile. */
enum { WIDE_ROWS = 3 << 19, RESIDENT_RUN = 512 << 10, RESIDENT_LIMIT_MB = 72 };
struct wide_row {
    uint64_t key, rest[7];
};
static const struct wide_row *wide_rows;
static uint64_t most_pages;

/* Where two runs meet it looks at the pages of files that are mapped in. */
static int compare_and_look(const void *pa, const void *pb)
{
    const struct wide_row *a = pa, *b = pb;
    if (b == a + 1 && b > wide_rows && b < wide_rows + WIDE_ROWS
        && (size_t)((const uint8_t *)b - (const uint8_t *)wide_rows) % RESIDENT_RUN == 0) {
        char text[128] = "";
        uint64_t pages = 0;
        FILE *f = fopen("/proc/self/statm", "r");
        ck_assert(f && fgets(text, sizeof text, f));
        fclose(f);
        const char *third = strchr(strchr(text, ' ') + 1, ' ') + 1; /* size, resident, of files */
        ck_assert_int_eq(kedge_decimal_decode(kedge_view_of(third, strcspn(third, " ")), UINT64_MAX, &pages),
                         KEDGE_OK);
        most_pages = pages > most_pages ? pages : most_pages;
    }
    return (a->key > b->key) - (a->key < b->key);
}

START_TEST(test_sort_of_what_is_sorted)
{
    struct kedgei_scratch s;
    kedgei_scratch_init(&s, 1);
    struct wide_row *rows = kedgei_scratch_new(&s, WIDE_ROWS, sizeof *rows);
    ck_assert_ptr_nonnull(rows);
    wide_rows = rows;
    for (size_t n = 0; n < WIDE_ROWS; n++) {
        rows[n].key = n;
        if (n % 1024 == 0) {
            kedgei_scratch_evict_if_large(&s);
        }
    }
    most_pages = 0;
    ck_assert_int_eq(kedgei_scratch_sort(&s, rows, WIDE_ROWS, sizeof *rows, compare_and_look), KEDGE_OK);
    ck_assert_uint_gt(most_pages, 0);
    ck_assert_uint_le(most_pages * (uint64_t)sysconf(_SC_PAGESIZE) >> 20, RESIDENT_LIMIT_MB);
    kedgei_scratch_free(&s, rows);
    kedgei_scratch_deinit(&s);
}
END_TEST

START_TEST(test_blocks)
{
    struct kedgei_scratch s;
    struct kedgei_arena a;
    struct kedge_diag d = {.text = ""};
    kedgei_scratch_init(&s, 1 << 20);
    uint8_t *heap = kedgei_scratch_new(&s, 1 << 10, 512), *file = kedgei_scratch_new(&s, 1 << 10, 1024);
    ck_assert(heap && file);
    ck_assert_uint_gt(s.heap, 0);
    ck_assert_uint_ge(s.mapped, 1 << 20);
    for (size_t i = 0; i < 1 << 20; i++) {
        ck_assert_uint_eq(file[i], 0);
    }
    ck_assert_ptr_null(kedgei_scratch_new(&s, SIZE_MAX / 2, 4));
    ck_assert_int_eq(kedgei_scratch_error(&s, &d), KEDGE_E_NOMEM);
    kedgei_arena_init(&a, &s);
    uint64_t *first = NULL;
    for (uint64_t i = 0; i < 300000; i++) { /* beyond the largest chunk */
        uint64_t *p = kedgei_arena_put(&a, &i, sizeof i);
        ck_assert(p && *p == i);
        first = first ? first : p;
    }
    ck_assert_uint_eq(*first, 0);
    kedgei_arena_deinit(&a);
    kedgei_scratch_free(&s, heap);
    kedgei_scratch_free(&s, file);
    ck_assert_uint_eq(s.heap + s.mapped, 0);
    kedgei_scratch_deinit(&s);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("audit-memory");
    TCase *t = tcase_create("memory");
    tcase_set_timeout(t, 240);
    tcase_add_test(t, test_blocks);
    tcase_add_test(t, test_sort);
    tcase_add_test(t, test_sort_of_what_is_sorted);
    tcase_add_loop_test(t, test_same_report, 0, 9);
    tcase_add_test(t, test_no_place);
    tcase_add_test(t, test_no_end);
    tcase_add_test(t, test_held);
    suite_add_tcase(s, t);
    return run_suite(s);
}
