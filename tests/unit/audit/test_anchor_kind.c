/* A kind of anchor that Kedge does not have: a line "SIZE ROOT SEALER" in STATE/anchors/seal. This file and
 * its place in the build are all of it: audits, what is shown, explanations, and trust files know it by
 * chain/anchor/kind.h alone. */
#include <stdio.h>
#include <stdlib.h>

#include "chain/anchor/kind.h"
#include "chain/audit/base/shown.h"
#include "chain/audit/explain/explain.h"
#include "chain/state/anchors.h"
#include "chain/state/state.h"
#include "common/base/text.h"
#include "tests/unit/audit/tampered.h"

static bool sealer_is_trusted;

static int claim(const struct kedge_anchor_files *files, const struct kedge_anchor_main *main,
                 const struct kedge_trust_anchors *trust, struct kedge_anchor_claim *ret,
                 struct kedge_diag *reterr)
{
    char line[256], root[KEDGE_HASH_HEX_LEN + 1], by[32], *rest;
    (void)main;
    (void)trust;
    if (files->anchor.len >= sizeof line) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "no seal");
    }
    memcpy(line, files->anchor.ptr, files->anchor.len);
    line[files->anchor.len] = '\0';
    memset(ret, 0, sizeof *ret);
    unsigned long long size = strtoull(line, &rest, 10);
    if (rest == line || sscanf(rest, " %64s %31s", root, by) != 2
        || kedge_hex_decode(kedge_view_str(root), ret->root.b, KEDGE_HASH_LEN) != KEDGE_OK) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "no seal");
    }
    ret->size = size;
    ret->time_s = 1767225600;
    ret->trusted = ret->proven = ret->vouched = sealer_is_trusted;
    snprintf(ret->by, sizeof ret->by, "%s", by);
    return KEDGE_OK;
}

static bool is_named(const struct kedge_trust_anchors *trust)
{
    (void)trust;
    return sealer_is_trusted;
}

static int trust_read(const json_t *value, struct kedge_trust_anchors *io, struct kedge_diag *reterr)
{
    (void)io;
    sealer_is_trusted = json_is_true(value);
    return sealer_is_trusted ? KEDGE_OK : kedgei_trust_bad(reterr, "sealer", "true");
}

static void trust_tell(const struct kedge_trust_anchors *trust, struct kedge_buf *out)
{
    (void)trust;
    kedge_buf_put_str(out, "\"sealer\": true");
}

static void from(const struct kedge_anchor_claim *c, const char *when, struct kedge_buf *out)
{
    kedge_buf_printf(out, "%s, sealed by %s", when, c->by);
}

static void describe(const struct kedge_anchor_claim *c, json_t *io)
{
    json_object_set_new(io, "sealer", json_string(c->by));
}

static const struct kedge_anchor_kind seal = {.name = "seal",
                                              .suffix = ".seal",
                                              .most = 200,
                                              .told = "seal",
                                              .plural = "seals",
                                              .title = "seals",
                                              .where = "under seals",
                                              .source = "seal",
                                              .who = "which is sealed",
                                              .claim = claim,
                                              .trust_key = "sealer",
                                              .whose = "the sealer",
                                              .unusable = "sealer",
                                              .is_named = is_named,
                                              .trust_read = trust_read,
                                              .trust_tell = trust_tell,
                                              .from = from,
                                              .describe = describe};

/* The linker puts these in the place of the table (chain/audit/CMakeLists.txt).
 * NOLINTBEGIN(cert-dcl51-cpp,bugprone-reserved-identifier): the linker's names */
const struct kedge_anchor_kind *__real_kedge_anchor_kind_at(size_t i);
size_t __real_kedge_anchor_kind_count(void);
const struct kedge_anchor_kind *__wrap_kedge_anchor_kind_at(size_t i);
size_t __wrap_kedge_anchor_kind_count(void);
/* NOLINTEND(cert-dcl51-cpp,bugprone-reserved-identifier) */

const struct kedge_anchor_kind *__wrap_kedge_anchor_kind_at(size_t i)
{
    return i == __real_kedge_anchor_kind_count() ? &seal : __real_kedge_anchor_kind_at(i);
}

size_t __wrap_kedge_anchor_kind_count(void)
{
    return __real_kedge_anchor_kind_count() + 1;
}

/* ---- a record with one ---- */

static void put_seal(uint64_t number, uint64_t size, bool other_root)
{
    struct kedge_state_log main;
    struct kedge_hash root;
    char path[KEDGE_ANCHOR_NAME_MAX], line[200], hex[KEDGE_HASH_HEX_LEN + 1];
    ck_assert_int_eq(kedge_state_log_open(at("fx/state"), NULL, KEDGE_STATE_COPY, &main, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_ledger_root(main.ledger, size, &root), KEDGE_OK);
    kedge_state_log_close(&main);
    root.b[5] ^= other_root;
    kedge_hash_hex(&root, hex);
    int len = snprintf(line, sizeof line, "%llu %s anna\n", (unsigned long long)size, hex);
    ck_assert_int_eq(kedge_dir_make(at("fx/state/anchors/seal"), 0700, NULL), KEDGE_OK);
    kedge_anchor_name(&seal, number, path);
    char file[128];
    snprintf(file, sizeof file, "fx/state/%s", path);
    ck_assert_int_eq(
        kedge_file_write(at(file), kedge_view_of((const uint8_t *)line, (size_t)len), 0600, NULL), KEDGE_OK);
}

static struct kedge_audit_report audit(void)
{
    return run(at("fx"), at("fx/trust.json"), NULL, false, (struct kedge_audit_options){.threads = 1});
}

static void open_scene(bool is_trusted)
{
    copy_base();
    sealer_is_trusted = is_trusted;
    put_seal(7, 9, false);
}

START_TEST(an_audit_tells_it)
{
    open_scene(false);
    struct kedge_audit_report r = audit();
    ck_assert_uint_eq(r.anchor_count, 1);
    ck_assert_ptr_eq(r.anchors[0].kind, &seal);
    ck_assert(r.anchors[0].number == 7 && r.anchors[0].claim.size == 9);
    ck_assert_uint_eq(r.finding_count, 1);
    ck_assert_str_eq(r.findings[0].where, "anchors/seal");
    ck_assert_str_eq(r.findings[0].text,
                     "not checked: 1 seals fit the main chain; name the sealer to have them count");
    kedge_audit_report_deinit(&r);

    sealer_is_trusted = true;
    r = audit();
    struct kedge_audit_claims c;
    size_t found = 0;
    ck_assert_int_eq(kedge_audit_claims(&r, &c), KEDGE_OK);
    for (size_t i = 0; i < c.count; i++) {
        if (c.items[i].source && strcmp(c.items[i].source, "seal") == 0) {
            found++;
            ck_assert_str_eq(c.items[i].from, "2026-01-01T00:00:00Z, sealed by anna");
            ck_assert_ptr_nonnull(strstr(c.items[i].text, "checkpoint 9 of"));
            ck_assert_ptr_nonnull(strstr(c.items[i].text, "which is sealed"));
        }
    }
    ck_assert_uint_eq(found, 1);
    kedge_audit_claims_deinit(&c);
    kedge_audit_report_deinit(&r);
}
END_TEST

START_TEST(one_of_other_entries_is_found)
{
    open_scene(_i);
    put_seal(8, 9, true);
    struct kedge_audit_report r = audit();
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_NO);
    ck_assert(has_code(&r, _i ? KEDGE_AUDIT_FORK : KEDGE_AUDIT_ANCHOR));
    kedge_audit_report_deinit(&r);
}
END_TEST

START_TEST(an_explanation_has_it)
{
    struct kedge_audit_options o = {.threads = 1};
    struct kedge_audit_report r;
    struct kedge_trust trust;
    struct kedge_map map;
    struct kedge_hash model;
    struct kedge_state_log main;
    json_t *tree = NULL;
    open_scene(false);
    ck_assert_int_eq(kedge_state_log_open(at("fx/state"), NULL, KEDGE_STATE_COPY, &main, NULL), KEDGE_OK);
    uint64_t size = kedge_ledger_size(main.ledger);
    kedge_state_log_close(&main);
    put_seal(9, size, false);
    ck_assert_int_eq(kedge_map_open(at("fx/models/plain-g0.safetensors"), &map, NULL), KEDGE_OK);
    kedge_sha256(kedge_view_of(map.ptr, map.len), &model);
    kedge_map_close(&map);
    ck_assert_int_eq(kedge_trust_read(at("fx/trust.json"), &trust, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_audit_explain(at("fx"), &trust, NULL, 0, &o, &model, &r, &tree, NULL), KEDGE_OK);
    const json_t *row = json_array_get(json_object_get(tree, "anchors"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(row, "kind")), "seal");
    ck_assert_str_eq(json_string_value(json_object_get(row, "file")), "anchors/seal/9.seal");
    ck_assert_str_eq(json_string_value(json_object_get(row, "sealer")), "anna");
    json_decref(tree);
    kedge_audit_report_deinit(&r);
    kedge_trust_deinit(&trust);
}
END_TEST

START_TEST(a_trust_file_names_it)
{
    struct kedge_buf text;
    struct kedge_trust trust;
    open_scene(false);
    kedge_buf_init(&text, KEDGE_TRUST_FILE_MAX);
    ck_assert_int_eq(kedge_file_read(at("fx/trust.json"), &text, NULL), KEDGE_OK);
    while (text.ptr[text.len - 1] != '}') {
        text.len--;
    }
    text.len--;
    kedge_buf_put_str(&text, ", \"anchors\": {\"sealer\": true, \"required\": true}}");
    ck_assert_int_eq(kedge_trust_parse(kedge_buf_view(&text), &trust, NULL), KEDGE_OK);
    ck_assert(trust.anchors.required && sealer_is_trusted);
    kedge_trust_deinit(&trust);
    text.len -= strlen("true, \"required\": true}}");
    kedge_buf_put_str(&text, "7}}");
    ck_assert_int_eq(kedge_trust_parse(kedge_buf_view(&text), &trust, NULL), KEDGE_E_FORMAT);
    kedge_buf_deinit(&text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("anchor-kind");
    TCase *t = tcase_create("kind");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, an_audit_tells_it);
    tcase_add_loop_test(t, one_of_other_entries_is_found, 0, 2);
    tcase_add_test(t, an_explanation_has_it);
    tcase_add_test(t, a_trust_file_names_it);
    suite_add_tcase(suite, t);
    return run_tampered(suite);
}
