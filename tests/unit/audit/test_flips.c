/* The promise held byte by byte: whatever bit of a ledger's file is changed, if any read of the store then
 * returns something else, the auditor says no. Bytes that no read returns (empty pages, padding)
 * may be missed; which those are is found out by reading, not assumed. LMDB may crash or loop on a
 * damaged file, so a child makes the flips one after the other and is replaced when it dies. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "chain/store/blob/guard.h"
#include "chain/store/entry_form.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "tests/fixtures/effort.h"
#include "tests/fixtures/run.h"
#include "tests/unit/audit/support.h"

enum {
    SUSPECTS_MAX = 4096,
    LOOP_LIMIT_S = 3,
    STRIDE = 37,
    PAGE = 4096,
    STRUCTURE_STRIDE = EFFORT(1, 13),
    STATEMENT_STRIDE = EFFORT(1, 5),
};

enum phase { PHASE_READ, PHASE_CHECK, PHASE_NEXT };

/* Shared with the child. */
struct progress {
    uint64_t at;      /* flip under way, counted */
    enum phase phase; /* what it is doing there */
    uint64_t flips, visible, found, deaths, suspects;
    struct {
        uint64_t offset;
        uint8_t pattern;
    } suspect[SUSPECTS_MAX];
};

struct target {
    const char *folder, *tenant;
    uint8_t *map;
    size_t size;
    struct kedge_buf keys; /* table, u16 length, key: of the good file */
    struct kedge_hash good;
    struct progress *p;
    uint32_t *offsets; /* bytes to flip */
    size_t offset_count;
};

/* ---- what reads return ---- */

struct digesting {
    struct kedge_hasher *hash;
    struct kedge_buf *keys; /* NULL, or where to note them */
    uint8_t table;
};

static void hash_record(struct kedge_hasher *h, uint8_t tag, struct kedge_view key, struct kedge_view value)
{
    uint8_t head[17] = {tag};
    kedge_store_be64(head + 1, key.len);
    kedge_store_be64(head + 9, value.len);
    kedge_hasher_update(h, kedge_view_of(head, sizeof head));
    kedge_hasher_update(h, key);
    kedge_hasher_update(h, value);
}

static int visit_record(void *arg, struct kedge_view key, struct kedge_view value)
{
    struct digesting *d = arg;
    hash_record(d->hash, d->table, key, value);
    if (d->keys) {
        kedge_buf_put_u8(d->keys, d->table);
        kedge_buf_put_u16(d->keys, (uint16_t)key.len);
        kedge_buf_put(d->keys, key.ptr, key.len);
    }
    return KEDGE_OK;
}

/* Every table forwards, its count, its last record, and each known key by itself. */
static int digest_reads(const char *dir, struct kedge_buf *note_keys, struct kedge_view keys,
                        struct kedge_hash *ret)
{
    static const struct kedge_kv_lmdb_options options = {.read_only = true, .no_lock = true};
    struct kedge_kv *kv;
    struct kedge_kv_tx *tx;
    struct kedge_hasher *hash;
    struct kedge_view all = kedge_view_of(NULL, 0);
    int err = kedge_kv_lmdb_open(dir, &options, &kv, NULL);
    if (err) {
        return err;
    }
    err = kedge_kv_begin(kv, false, &tx, NULL);
    if (err) {
        kedge_kv_close(kv);
        return err;
    }
    ck_assert_int_eq(kedge_hasher_new(&hash), KEDGE_OK);
    for (uint8_t t = 0; t < KEDGE_KV_TABLES && !err; t++) {
        struct digesting d = {hash, note_keys, t};
        uint64_t count = 0;
        struct kedge_buf key, value;
        kedge_buf_init(&key, KEDGE_KV_KEY_MAX);
        kedge_buf_init(&value, KEDGE_KV_VALUE_MAX);
        err = kedge_kv_scan(tx, (enum kedge_kv_table)t, all, all, visit_record, &d);
        err = err ? err : kedge_kv_count(tx, (enum kedge_kv_table)t, &count);
        uint8_t bytes[8];
        kedge_store_be64(bytes, count);
        kedge_hasher_update(hash, kedge_view_of(bytes, sizeof bytes));
        if (!err) {
            err = kedge_kv_last(tx, (enum kedge_kv_table)t, &key, &value);
            hash_record(hash, t, kedge_buf_view(&key), kedge_buf_view(&value));
            err = err == KEDGE_E_NOT_FOUND ? KEDGE_OK : err;
        }
        kedge_buf_deinit(&key);
        kedge_buf_deinit(&value);
    }
    struct kedge_reader r = kedge_reader_of(note_keys ? kedge_buf_view(note_keys) : keys);
    while (!err && r.rest.len > 0) {
        uint8_t table = kedge_read_u8(&r);
        struct kedge_view key = kedge_read_bytes(&r, kedge_read_u16(&r)), value;
        err = kedge_kv_peek(tx, (enum kedge_kv_table)table, key, &value);
        if (!err) {
            hash_record(hash, table, key, value);
        }
    }
    kedge_kv_abort(tx);
    kedge_kv_close(kv);
    kedge_hasher_final(hash, ret);
    kedge_hasher_free(hash);
    return err;
}

/* What the auditor's reader does. */
static int check_store(const struct target *t)
{
    struct kedge_state_log log = {.kv = NULL};
    struct kedge_id id;
    if (t->tenant) {
        ck_assert_int_eq(kedge_id_from(kedge_view_str(t->tenant), &id), KEDGE_OK);
    }
    int err = kedge_state_log_open(at("fx/state"), t->tenant ? &id : NULL, KEDGE_STATE_COPY, &log, NULL);
    if (!err) {
        err = kedge_ledger_check(log.ledger, NULL, NULL, NULL);
        kedge_state_log_close(&log);
    }
    return err;
}

/* ---- flips ---- */

static const uint8_t patterns[] = {0x01, 0x02, 0x80, 0xff};
enum { PATTERNS = sizeof patterns };

static void limit_time(bool on)
{
    struct itimerval limit = {.it_value = {.tv_sec = on ? LOOP_LIMIT_S : 0}};
    (void)setitimer(ITIMER_PROF, &limit, NULL);
}

static void flip_one(struct target *t, uint64_t n)
{
    struct progress *p = t->p;
    uint64_t offset = t->offsets[n / PATTERNS];
    uint8_t pattern = patterns[n % PATTERNS];
    struct kedge_hash now;
    limit_time(true);
    t->map[offset] ^= pattern;
    bool visible = true;
    if (p->phase == PHASE_READ) {
        visible =
            digest_reads(t->folder, NULL, kedge_buf_view(&t->keys), &now) || !kedge_hash_eq(&now, &t->good);
        p->phase = PHASE_CHECK;
    }
    if (visible && p->phase == PHASE_CHECK) {
        p->visible++;
        if (check_store(t) != KEDGE_OK) {
            p->found++;
        } else if (p->suspects < SUSPECTS_MAX) {
            p->suspect[p->suspects].offset = offset;
            p->suspect[p->suspects++].pattern = pattern;
        }
    }
    t->map[offset] ^= pattern;
    p->phase = PHASE_NEXT;
    limit_time(false);
}

static _Noreturn void run_child(struct target *t)
{
    int null = open("/dev/null", O_WRONLY);
    (void)dup2(null, STDERR_FILENO);
    signal(SIGABRT, SIG_DFL);
    signal(SIGSEGV, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
    while (t->p->at < t->p->flips) {
        flip_one(t, t->p->at);
        t->p->at++;
        t->p->phase = PHASE_READ;
    }
    _exit(0);
}

static void run_all(struct target *t)
{
    struct progress *p = t->p;
    while (p->at < p->flips) {
        pid_t pid = fork();
        ck_assert_int_ge(pid, 0);
        if (pid == 0) {
            run_child(t);
        }
        int status;
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        if (p->at >= p->flips) {
            break;
        }
        p->deaths++;
        t->map[t->offsets[p->at / PATTERNS]] ^= patterns[p->at % PATTERNS]; /* as it was */
        if (p->phase == PHASE_READ) {
            p->phase = PHASE_CHECK; /* a read died of it: does the auditor's as well? */
        } else {
            p->found += p->phase == PHASE_CHECK;
            p->at++;
            p->phase = PHASE_READ;
        }
    }
}

/* Bytes by which a store finds its way: headers, tables of nodes, whole branch pages (LMDB 0.9's layout; a
 * wrong guess would only choose worse). */
static bool is_structure(const uint8_t *page, size_t at_byte)
{
    uint16_t flags, lower, upper;
    memcpy(&flags, page + 10, 2);
    memcpy(&lower, page + 12, 2);
    memcpy(&upper, page + 14, 2);
    return at_byte < 16 || (flags & 8 ? at_byte < 160 : (flags & 3) && at_byte < lower)
           || ((flags & 1) && at_byte >= upper);
}

/* Every byte of structure (with sanitizers some) and every n-th of all. */
static void choose_offsets(struct target *t, uint64_t stride)
{
    t->offsets = kedge_mem_new(t->size, sizeof *t->offsets);
    ck_assert_ptr_nonnull(t->offsets);
    for (size_t i = 0; i < t->size; i++) {
        if (i % (stride * STRUCTURE_STRIDE) == 0
            || (i % STRUCTURE_STRIDE == 0 && is_structure(t->map + i / PAGE * PAGE, i % PAGE))) {
            t->offsets[t->offset_count++] = (uint32_t)i;
        }
    }
}

static bool is_found(void)
{
    struct kedge_trust trust;
    struct kedge_audit_options options = {.threads = 1, .read_timeout_s = 10};
    struct kedge_audit_report r;
    ck_assert_int_eq(kedge_trust_read(at("fx/trust.json"), &trust, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_audit_verify(at("fx"), &trust, NULL, 0, &options, &r, NULL), KEDGE_OK);
    bool found = r.verdict != KEDGE_AUDIT_YES;
    kedge_audit_report_deinit(&r);
    kedge_trust_deinit(&trust);
    return found;
}

/* A log that was closed in good order holds each statement once, so a flip in any copy of one that a search
 * of the file brings up is a flip in the one that counts. */
static void flip_statements(struct target *t)
{
    size_t statements = 0, missed = 0;
    struct kedge_buf room;
    kedge_buf_init(&room, KEDGE_ENTRY_MAX);
    for (size_t i = 16; i + 8 < t->size; i++) { /* lengths of value and key, key, value, as LMDB has them */
        size_t len = t->map[i - 16] | (size_t)t->map[i - 15] << 8;
        struct kedge_view entry, stored = kedge_view_of(t->map + i, len);
        if (t->map[i] >= 1 && t->map[i] <= 3 && t->map[i - 10] == 8 && t->map[i - 9] == 0 && len > 0
            && len <= t->size - i && kedge_entry_load(stored, &room, &entry) == KEDGE_OK
            && statements++ % STATEMENT_STRIDE == 0) {
            t->map[i + len / 2] ^= 4;
            missed += !is_found();
            t->map[i + len / 2] ^= 4;
        }
    }
    kedge_buf_deinit(&room);
    printf("%s: %zu statements in the file, a bit flipped in one of %d, %zu missed\n",
           t->tenant ? t->tenant : "main", statements, (int)STATEMENT_STRIDE, missed);
    ck_assert_uint_gt(statements, 10);
    ck_assert_uint_eq(missed, 0);
}

/* One of the record's logs, whole. */
static void flip_log(const char *tenant, uint64_t stride)
{
    struct target t = {.tenant = tenant};
    char folder[KEDGE_PATH_MAX], file[KEDGE_PATH_MAX + 16];
    snprintf(folder, sizeof folder, tenant ? "%s/tenants/%s/ledger.lmdb" : "%s/main/ledger.lmdb",
             at("fx/state"), tenant);
    snprintf(file, sizeof file, "%s/data.mdb", folder);
    t.folder = folder;
    int fd = open(file, O_RDWR);
    ck_assert_int_ge(fd, 0);
    t.size = (size_t)kedge_file_size(file);
    t.map = mmap(NULL, t.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    t.p = mmap(NULL, sizeof *t.p, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(t.map != MAP_FAILED && t.p != MAP_FAILED);
    kedge_buf_init(&t.keys, 1 << 20);
    struct kedge_hash again;
    ck_assert_int_eq(digest_reads(folder, &t.keys, kedge_view_of(NULL, 0), &t.good), KEDGE_OK);
    ck_assert_int_eq(digest_reads(folder, NULL, kedge_buf_view(&t.keys), &again), KEDGE_OK);
    ck_assert(kedge_hash_eq(&again, &t.good));
    ck_assert_int_eq(check_store(&t), KEDGE_OK);
    choose_offsets(&t, stride);
    t.p->flips = t.offset_count * PATTERNS;
    run_all(&t);
    printf("%s: %zu bytes, %llu flips, %llu visible, %llu found, %llu deaths, %llu left to the audit\n",
           tenant ? tenant : "main", t.size, (unsigned long long)t.p->flips, (unsigned long long)t.p->visible,
           (unsigned long long)t.p->found, (unsigned long long)t.p->deaths,
           (unsigned long long)t.p->suspects);
    uint64_t missed = 0;
    for (uint64_t i = 0; i < t.p->suspects; i++) {
        uint64_t offset = t.p->suspect[i].offset, page = offset / PAGE;
        t.map[offset] ^= t.p->suspect[i].pattern;
        bool found = is_found();
        t.map[offset] ^= t.p->suspect[i].pattern;
        if (!found) {
            missed++;
            printf("  page %llu (flags %02x), byte %llu, bits %02x: a read returns something else, verify "
                   "says yes\n",
                   (unsigned long long)page, (unsigned)t.map[page * PAGE + 10],
                   (unsigned long long)(offset % PAGE), (unsigned)t.p->suspect[i].pattern);
        }
    }
    flip_statements(&t);
    kedge_buf_deinit(&t.keys);
    kedge_mem_free(t.offsets);
    ck_assert_uint_gt(t.p->visible, t.p->flips / 20);
    ck_assert_uint_eq(missed, 0);
    munmap(t.map, t.size);
    munmap(t.p, sizeof *t.p);
    close(fd);
}

START_TEST(test_flips)
{
    static const char *const tenants[] = {NULL, "org-a"};
    const char *text = getenv("KEDGE_TEST_STRIDE"); /* 1: every byte; takes minutes */
    uint64_t stride = STRIDE;
    if (text) {
        ck_assert_int_eq(kedge_decimal_decode(kedge_view_str(text), PAGE, &stride), KEDGE_OK);
        ck_assert_uint_gt(stride, 0);
    }
    make_scratch();
    fx_federation(at("fx"), FX_NONE);
    flip_log(tenants[_i], stride);
    remove_scratch();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("audit-flips");
    TCase *t = tcase_create("flips");
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, test_flips, 0, 2);
    suite_add_tcase(s, t);
    return run_suite(s);
}
