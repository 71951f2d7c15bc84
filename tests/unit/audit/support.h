/* What the auditor's tests share: a scratch folder, an audit, a look at its findings. */
#ifndef KEDGE_TESTS_UNIT_AUDIT_SUPPORT_H
#define KEDGE_TESTS_UNIT_AUDIT_SUPPORT_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chain/audit/audit.h"
#include "tests/fixtures/federation.h"

static char scratch[256];

static inline void make_scratch(void)
{
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(scratch, sizeof scratch, "%s/kedge-audit-XXXXXX", base);
    ck_assert_ptr_nonnull(mkdtemp(scratch));
    ck_assert_int_eq(kedge_crypto_init(), KEDGE_OK);
}

static inline void remove_scratch(void)
{
    ck_assert_int_eq(kedge_dir_remove(scratch), KEDGE_OK);
}

/* scratch/name; one buffer of eight. */
static inline const char *at(const char *name)
{
    static char paths[8][KEDGE_PATH_MAX];
    static unsigned next;
    char *p = paths[next++ % 8];
    snprintf(p, KEDGE_PATH_MAX, "%s/%s", scratch, name);
    return p;
}

static inline bool has_code(const struct kedge_audit_report *r, enum kedge_audit_code code)
{
    for (uint32_t i = 0; i < r->finding_count; i++) {
        if (r->findings[i].code == code) {
            return true;
        }
    }
    return false;
}

static inline void print_findings(const struct kedge_audit_report *r)
{
    for (uint32_t i = 0; i < r->finding_count && i < 10; i++) {
        fprintf(stderr, "  %s %s: %s\n", kedge_audit_code_name(r->findings[i].code), r->findings[i].where,
                r->findings[i].text);
    }
}

/* With 1 and 4 threads, whose reports must be the same. Returns the report. */
static inline struct kedge_audit_report run(const char *dir, const char *trust_path, const char *seen,
                                            bool replay, struct kedge_audit_options options)
{
    struct kedge_trust trust;
    struct kedge_audit_report r[2];
    struct kedge_diag d = {.text = ""};
    if (trust_path) {
        ck_assert_msg(kedge_trust_read(trust_path, &trust, &d) == KEDGE_OK, "%s", d.text);
    }
    for (int i = 0; i < 2; i++) {
        options.threads = i ? 4 : 1;
        int err = (replay ? kedge_audit_replay : kedge_audit_verify)(dir, trust_path ? &trust : NULL, &seen,
                                                                     seen ? 1 : 0, &options, &r[i], &d);
        ck_assert_msg(err == KEDGE_OK, "%s", d.text);
    }
    ck_assert_uint_eq(r[0].finding_count, r[1].finding_count);
    for (uint32_t i = 0; i < r[0].finding_count; i++) {
        ck_assert_int_eq(r[0].findings[i].code, r[1].findings[i].code);
        ck_assert_str_eq(r[0].findings[i].where, r[1].findings[i].where);
        ck_assert_str_eq(r[0].findings[i].text, r[1].findings[i].text);
    }
    ck_assert_mem_eq(&r[0].counts, &r[1].counts, sizeof r[0].counts);
    kedge_audit_report_deinit(&r[1]);
    if (trust_path) {
        kedge_trust_deinit(&trust);
    }
    return r[0];
}

/* The record in "fx" is refused for this; replay: verify finds nothing, and replay does. */
static inline void assert_found(bool replay, enum kedge_audit_code code, const char *what)
{
    struct kedge_audit_options options = {.threads = 1};
    struct kedge_audit_report r = run(at("fx"), at("fx/trust.json"), NULL, false, options);
    if (replay) {
        print_findings(&r);
        ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
        kedge_audit_report_deinit(&r);
        r = run(at("fx"), at("fx/trust.json"), NULL, true, options);
    }
    if (!has_code(&r, code)) {
        print_findings(&r);
    }
    ck_assert_msg(has_code(&r, code), "not found: %s", what);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_NO);
    kedge_audit_report_deinit(&r);
}

#endif
