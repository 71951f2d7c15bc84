/* A good record, a copy of it to change, and what the auditor must call the change. */
#ifndef KEDGE_TESTS_UNIT_AUDIT_TAMPERED_H
#define KEDGE_TESTS_UNIT_AUDIT_TAMPERED_H

#include "tests/fixtures/run.h"
#include "tests/unit/audit/support.h"

static bool base_is_made;

/* A fresh copy of the good record at scratch/fx. */
static inline void copy_base(void)
{
    if (!base_is_made) {
        make_scratch();
        fx_federation(at("good"), FX_NONE);
        base_is_made = true;
    }
    fx_copy(at("good"), at("fx"));
}

static inline void expect(const char *seen, bool live, enum kedge_audit_code code,
                          enum kedge_audit_verdict verdict)
{
    struct kedge_audit_options options = {.live = live};
    struct kedge_audit_report r = run(at("fx"), at("fx/trust.json"), seen, false, options);
    if (!has_code(&r, code) || r.verdict != verdict) {
        print_findings(&r);
    }
    ck_assert_msg(has_code(&r, code), "expected a finding %s", kedge_audit_code_name(code));
    ck_assert_int_eq(r.verdict, verdict);
    kedge_audit_report_deinit(&r);
}

/* Replaces the first occurrence of a text in a file by another of the same length. */
static inline void replace(const char *path, const char *from, const char *to)
{
    struct kedge_buf text;
    kedge_buf_init(&text, 1 << 20);
    ck_assert_uint_eq(strlen(from), strlen(to));
    ck_assert_int_eq(kedge_file_read(path, &text, NULL), KEDGE_OK);
    uint8_t *p = memmem(text.ptr, text.len, from, strlen(from));
    ck_assert_ptr_nonnull(p);
    memcpy(p, to, strlen(to));
    ck_assert_int_eq(kedge_file_write(path, kedge_buf_view(&text), 0600, NULL), KEDGE_OK);
    kedge_buf_deinit(&text);
}

/* What main ends with: the good record goes, too. */
static inline int run_tampered(Suite *suite)
{
    int status = run_suite(suite);
    if (base_is_made && kedge_dir_remove(scratch) != KEDGE_OK) {
        fprintf(stderr, "%s cannot be removed\n", scratch);
        return 1;
    }
    return status;
}

#endif
