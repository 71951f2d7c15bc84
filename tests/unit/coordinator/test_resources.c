/* Who may read what of which log, and pieces of resources: long bundles too, which are not kept in memory. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/log/checkpoint.h"
#include "chain/log/dsse.h"
#include "common/base/mem.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/web/main_view.h"
#include "coordinator/daemon/web/resources.h"
#include "tests/fixtures/kv.h"

enum { TENANTS = 3, LONG = 10000, COUNT = 300 };

/* members.c has it, and much that this test has not. */
uint32_t kedge_host_tenant_find(const struct kedge_host *h, const struct kedge_id *id)
{
    for (uint32_t i = 0; i < h->tenant_count; i++) {
        if (kedge_id_eq(&h->tenants[i].id, id)) {
            return i;
        }
    }
    return KEDGE_COORD_NONE;
}

static struct kedge_host *h;
static struct kedge_key_pair key;

static void open_log(struct kedge_state_log *log, const char *name)
{
    struct kedge_diag d = {.text = ""};
    snprintf(log->origin, sizeof log->origin, "test/%s", name);
    const struct kedge_ledger_options options = {.origin = log->origin, .key = &key, .create = true};
    ck_assert_int_eq(kedge_kv_memory_new(&log->kv), KEDGE_OK);
    ck_assert_msg(kedge_ledger_open(log->kv, &options, &log->ledger, &d) == KEDGE_OK, "%s", d.text);
}

static void append(struct kedge_state_log *log, struct kedge_view entry, const char *idem,
                   const struct kedge_hash *ref)
{
    struct kedge_diag d = {.text = ""};
    const struct kedge_ledger_append item = {
        .entry = entry, .idem_key = kedge_view_str(idem), .refs = ref, .ref_count = ref ? 1 : 0};
    ck_assert_msg(kedge_ledger_append(log->ledger, &item, 1, NULL, NULL, &d) == KEDGE_OK, "%s", d.text);
}

/* ---- entries of the main chain ---- */

static struct kedge_statement *st;
static uint8_t who[COUNT]; /* per entry of the main chain: bit t: tenant t may read it */
static size_t entries;

static void append_statement(const char *idem, const struct kedge_hash *ref, uint8_t may)
{
    struct kedge_buf envelope;
    struct kedge_diag d = {.text = ""};
    kedge_buf_init(&envelope, KEDGE_ENTRY_MAX);
    kedge_statement_sort(st);
    ck_assert_msg(kedge_statement_sign(st, &key, &envelope, &d) == KEDGE_OK, "%s", d.text);
    append(&h->main, kedge_buf_view(&envelope), idem, ref);
    kedge_buf_deinit(&envelope);
    who[entries++] = may;
}

static void append_job(const char *name, uint8_t members)
{
    struct kedge_st_job_opened *o = &st->u.job_opened;
    char idem[64];
    memset(st, 0, sizeof *st);
    st->kind = KEDGE_ST_JOB_OPENED;
    memset(st->subject.b, name[0], sizeof st->subject.b);
    memset(o->initial_model.b, 7, sizeof o->initial_model.b); /* all jobs begin with the same model */
    ck_assert_int_eq(kedge_id_from(kedge_view_str(name), &o->job), KEDGE_OK);
    for (uint32_t t = 0; t < TENANTS; t++) {
        if (members & 1u << t) {
            o->tenants[o->tenant_count++] = h->tenants[t].salted;
        }
    }
    const struct kedge_hash model = o->initial_model;
    snprintf(idem, sizeof idem, "job-opened/%s", name);
    append_statement(idem, &model, members);
}

static struct kedge_hash model_of(char job, uint32_t round)
{
    struct kedge_hash h32;
    memset(h32.b, job, sizeof h32.b);
    h32.b[0] = (uint8_t)round;
    return h32;
}

static void append_step(const char *name, uint32_t round, uint8_t members)
{
    char idem[64];
    struct kedge_hash model;
    memset(st, 0, sizeof *st);
    st->kind = KEDGE_ST_STEP;
    ck_assert_int_eq(kedge_id_from(kedge_view_str(name), &st->u.step.job), KEDGE_OK);
    st->u.step.round = round;
    snprintf(st->u.step.rule, sizeof st->u.step.rule, "identity/v1");
    st->u.step.group_count = 1;
    model = model_of(name[0], round);
    st->u.step.groups[0].after = model;
    snprintf(idem, sizeof idem, "step/%s/%08u", name, (unsigned)round);
    append_statement(idem, &model, members);
}

/* spec: the byte of its digest; a job's is the first letter of its name. */
static void append_admission(enum kedge_statement_kind kind, const char *name, char spec, uint8_t members)
{
    char idem[64];
    memset(st, 0, sizeof *st);
    st->kind = kind;
    memset(st->subject.b, spec, sizeof st->subject.b);
    st->u.job_admission = (struct kedge_st_job_admission){
        .round_ms = 1, .deadline_ms = 2, .time_ms = 1, .share = kind == KEDGE_ST_JOB_ADMITTED};
    ck_assert_int_eq(kedge_id_from(kedge_view_str(name), &st->u.job_admission.job), KEDGE_OK);
    snprintf(idem, sizeof idem, "admission/%s/%u", name, (unsigned)entries);
    append_statement(idem, NULL, members);
}

static void append_checkpoint(uint32_t tenant)
{
    struct kedge_buf note, entry;
    uint8_t salt[KEDGE_SALT_LEN] = {1};
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
    salt[1] = (uint8_t)entries;
    ck_assert_int_eq(kedge_ledger_checkpoint(h->tenants[tenant].log.ledger, &note, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_main_entry_encode(salt, kedge_buf_view(&note), &entry), KEDGE_OK);
    append(&h->main, kedge_buf_view(&entry), "", NULL);
    kedge_buf_deinit(&entry);
    kedge_buf_deinit(&note);
    who[entries++] = (uint8_t)(1u << tenant);
}

static void fill_main(void)
{
    static const uint8_t odd[] = "\x80 neither a note nor a statement, but long enough for a salt and more";
    memset(st, 0, sizeof *st);
    st->kind = KEDGE_ST_POLICY;
    snprintf(st->u.policy.deployment, sizeof st->u.policy.deployment, "test");
    st->u.policy.statement_key = key.public;
    st->u.policy.main_log_key = key.public;
    append_statement("policy", NULL, 7);
    append_admission(KEDGE_ST_JOB_REFUSED, "both", 'b', 3);
    append_admission(KEDGE_ST_JOB_REFUSED, "both", 'z', 0); /* whose it was is not known */
    append_admission(KEDGE_ST_JOB_REFUSED, "never", 'n', 0);
    append_admission(KEDGE_ST_JOB_ADMITTED, "never", 'n', 0);
    append_admission(KEDGE_ST_JOB_ADMITTED, "both", 'b', 3);
    append_job("both", 3);
    append_job("alone", 4);
    append_job("first", 1);
    for (uint32_t round = 1; entries + 6 < COUNT; round++) {
        append_step("both", round, 3);
        append_checkpoint(round % TENANTS);
        append_step("alone", round, 4);
        append_step("first", round, 1);
    }
    append(&h->main, kedge_view_of(odd, sizeof odd), "", NULL);
    who[entries++] = 0;
    append_step("unknown", 1, 0);
    ck_assert_int_eq(kedge_ledger_flush(h->main.ledger, NULL), KEDGE_OK);
}

static void setup(void)
{
    static const char *const names[TENANTS] = {"org-a", "org-b", "org-c"};
    static uint8_t bytes[LONG];
    ck_assert_int_eq(kedge_crypto_init(), KEDGE_OK);
    kedge_key_generate(&key);
    h = kedge_mem_new(1, sizeof *h);
    st = kedge_mem_new(1, sizeof *st);
    ck_assert(h && st);
    entries = 0;
    h->tenants = kedge_mem_new(TENANTS, sizeof *h->tenants);
    open_log(&h->main, "main");
    for (uint32_t t = 0; t < TENANTS; t++) {
        struct kedge_tenant *tenant = &h->tenants[t];
        ck_assert_int_eq(kedge_id_from(kedge_view_str(names[t]), &tenant->id), KEDGE_OK);
        memset(tenant->salted.b, (int)(100 + t), sizeof tenant->salted.b);
        open_log(&tenant->log, names[t]);
        append(&tenant->log, kedge_view_str("joined"), t == 2 ? "job-joined/alone" : "job-joined/both", NULL);
    }
    h->tenant_count = TENANTS;
    for (size_t i = 1; i < COUNT; i++) {
        memset(bytes, (int)i, sizeof bytes);
        append(&h->tenants[0].log, kedge_view_of(bytes, sizeof bytes - i), "", NULL);
    }
    for (uint32_t t = 0; t < TENANTS; t++) {
        ck_assert_int_eq(kedge_ledger_flush(h->tenants[t].log.ledger, NULL), KEDGE_OK);
    }
    fill_main();
    ck_assert_int_eq(kedge_main_view_new(h->main.ledger, &h->main_view), KEDGE_OK);
}

static void close_log(struct kedge_state_log *log)
{
    kedge_ledger_close(log->ledger);
    kedge_kv_close(log->kv);
}

static void teardown(void)
{
    kedge_main_view_free(h->main_view);
    close_log(&h->main);
    for (uint32_t t = 0; t < TENANTS; t++) {
        close_log(&h->tenants[t].log);
    }
    kedge_mem_free(h->tenants);
    kedge_mem_free(h);
    kedge_mem_free(st);
}

static int ask(const struct kedge_log_reader *reader, const char *path, struct kedge_resource *ret)
{
    struct kedge_resource_ask a;
    int err = kedge_host_resource_ask(h, reader, kedge_view_str(path), &a);
    return err ? err : kedge_resource_open(&a, ret);
}

START_TEST(test_paths)
{
    static const struct {
        const char *path;
        int a, auditor;
    } rows[] = {
        {"org-a/checkpoint", KEDGE_OK, KEDGE_OK},
        {"main/checkpoint", KEDGE_OK, KEDGE_OK},
        {"org-a/tile/0/000", KEDGE_OK, KEDGE_OK},
        {"org-a/tile/0/001.p/44", KEDGE_OK, KEDGE_OK},
        {"org-a/tile/1/000.p/1", KEDGE_OK, KEDGE_OK},
        {"org-a/tile/entries/001.p/43", KEDGE_OK, KEDGE_OK},
        {"main/tile/entries/000", KEDGE_OK, KEDGE_OK},
        {"org-b/checkpoint", KEDGE_E_NOT_FOUND, KEDGE_OK},
        {"org-b/tile/0/000.p/1", KEDGE_E_NOT_FOUND, KEDGE_OK},
        {"org-a/tile/0/001.p/45", KEDGE_E_NOT_FOUND, KEDGE_E_NOT_FOUND},
        {"org-a/tile/0/001", KEDGE_E_NOT_FOUND, KEDGE_E_NOT_FOUND},
        {"org-a/tile/2/000.p/1", KEDGE_E_NOT_FOUND, KEDGE_E_NOT_FOUND},
        {"org-d/checkpoint", KEDGE_E_NOT_FOUND, KEDGE_E_NOT_FOUND},
        {"/org-a/checkpoint", KEDGE_E_NOT_FOUND, KEDGE_E_NOT_FOUND},
        {"org-a/checkpoint/", KEDGE_E_NOT_FOUND, KEDGE_E_NOT_FOUND},
        {"org-a/", KEDGE_E_NOT_FOUND, KEDGE_E_NOT_FOUND},
        {"org-a", KEDGE_E_NOT_FOUND, KEDGE_E_NOT_FOUND},
        {"", KEDGE_E_NOT_FOUND, KEDGE_E_NOT_FOUND},
        {"/", KEDGE_E_NOT_FOUND, KEDGE_E_NOT_FOUND},
        {"org-a/../org-b/checkpoint", KEDGE_E_NOT_FOUND, KEDGE_E_NOT_FOUND},
        {"org-a/blob/00", KEDGE_E_NOT_FOUND, KEDGE_E_NOT_FOUND},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int auditor = 0; auditor < 2; auditor++) {
            const struct kedge_log_reader reader = {.tenant = auditor ? KEDGE_COORD_NONE : 0,
                                                    .auditor = auditor != 0};
            struct kedge_resource r;
            int err = ask(&reader, rows[i].path, &r);
            ck_assert_msg(err == (auditor ? rows[i].auditor : rows[i].a), "%s: %d", rows[i].path, err);
            if (!err) {
                kedge_resource_close(&r);
            }
        }
    }
}
END_TEST

/* Every window of a bundle that is longer than what is kept is the same part of the whole. */
START_TEST(test_long_bundle)
{
    const struct kedge_log_reader reader = {.tenant = 0};
    static const size_t lens[] = {1, 2, 77, 9999, 300000, 1u << 20};
    struct kedge_buf whole;
    struct kedge_resource r;
    uint8_t *piece = malloc(1u << 20);
    kedge_buf_init(&whole, KEDGE_BUNDLE_BYTES_MAX);
    ck_assert_int_eq(ask(&reader, "org-a/tile/entries/000", &r), KEDGE_OK);
    for (uint64_t i = 0; i < KEDGE_TILE_WIDTH; i++) {
        struct kedge_buf entry;
        kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
        ck_assert_int_eq(kedge_ledger_get(h->tenants[0].log.ledger, i, &entry), KEDGE_OK);
        kedge_bundle_put(&whole, kedge_buf_view(&entry));
        kedge_buf_deinit(&entry);
    }
    ck_assert_uint_eq(r.size, whole.len);
    ck_assert_uint_gt(r.size, 2 * KEDGE_RESOURCE_KEEP_MAX);
    ck_assert_uint_le(r.kept.cap, 2 * KEDGE_RESOURCE_KEEP_MAX);
    for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++) {
        for (size_t at = 0; at + lens[i] <= whole.len; at += 617777) {
            ck_assert_int_eq(kedge_resource_read(&r, at, piece, lens[i]), KEDGE_OK);
            ck_assert_mem_eq(piece, whole.ptr + at, lens[i]);
        }
        ck_assert_int_eq(kedge_resource_read(&r, r.size - lens[i], piece, lens[i]), KEDGE_OK);
        ck_assert_mem_eq(piece, whole.ptr + r.size - lens[i], lens[i]);
        ck_assert_int_eq(kedge_resource_read(&r, r.size - lens[i] + 1, piece, lens[i]), KEDGE_E_ARG);
    }
    ck_assert_int_eq(kedge_resource_read(&r, r.size, piece, 0), KEDGE_OK);
    ck_assert_int_eq(kedge_resource_read(&r, UINT64_MAX, piece, 1), KEDGE_E_ARG);
    kedge_resource_close(&r);
    kedge_buf_deinit(&whole);
    free(piece);
}
END_TEST

/* The bundle of the main chain's first entries as tenant t sees it (TENANTS: an auditor). */
static void check_bundle(uint32_t t, unsigned width)
{
    const struct kedge_log_reader reader = {.tenant = t, .auditor = t == TENANTS};
    struct kedge_resource r;
    struct kedge_view records[KEDGE_TILE_WIDTH];
    char path[64];
    snprintf(path, sizeof path,
             width == KEDGE_TILE_WIDTH ? "main/tile/entries/000" : "main/tile/entries/000.p/%u", width);
    ck_assert_int_eq(ask(&reader, path, &r), KEDGE_OK);
    ck_assert_uint_eq(r.size, r.kept.len);
    ck_assert_int_eq(kedge_bundle_decode(kedge_buf_view(&r.kept), width, records), KEDGE_OK);
    for (size_t i = 0; i < width; i++) {
        bool may = t == TENANTS || (who[i] & 1u << t) != 0;
        ck_assert_msg((records[i].len > 0) == may, "tenant %u, entry %zu of %u", t, i, width);
    }
    kedge_resource_close(&r);
}

START_TEST(test_main_chain)
{
    static const unsigned widths[] = {1, 3, 100, 255, 256, 7, 256, 200};
    for (int again = 0; again < 2; again++) { /* judged, then remembered */
        for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
            for (uint32_t t = 0; t <= TENANTS; t++) {
                check_bundle(t, widths[i]);
            }
        }
    }
}
END_TEST

START_TEST(test_main_blobs)
{
    static const struct {
        char job;
        uint32_t round;
        uint8_t may;
    } rows[] = {
        {7, 7, 7}, /* the first model, which all jobs share; the store knows that of tenants 0 and 1 */
        {'b', 1, 3}, {'a', 30, 4}, {'f', 9, 1}, {'u', 1, 0}, {'x', 1, 0}, /* named by nobody */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (uint32_t t = 0; t < TENANTS; t++) {
            struct kedge_main_viewer viewer = {.origin = h->tenants[t].log.origin,
                                               .salted = &h->tenants[t].salted,
                                               .own = h->tenants[t].log.ledger};
            struct kedge_hash digest = model_of(rows[i].job, rows[i].round);
            bool may = false;
            ck_assert_int_eq(kedge_main_view_blob(h->main_view, &viewer, &digest, &may), KEDGE_OK);
            ck_assert_msg(may == ((rows[i].may & 1u << t) != 0), "blob %zu, tenant %u", i, t);
        }
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("resources");
    TCase *t = tcase_create("resources");
    tcase_add_unchecked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, test_paths);
    tcase_add_test(t, test_long_bundle);
    tcase_add_test(t, test_main_chain);
    tcase_add_test(t, test_main_blobs);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
