/* Exports judged by themselves: by a stranger who changes files, and by an exporter who signs what is not so.
 */
#include <dirent.h>
#include <jansson.h>

#include "chain/export/check.h"
#include "chain/export/export.h"
#include "chain/export/internal.h"
#include "chain/export/oms.h"
#include "common/base/mem.h"
#include "tests/unit/audit/support.h"

struct made {
    struct kedge_trust trust;
    struct kedge_export_options o;
    struct kedge_export_check_options look;
    struct kedge_export_check sum;
    struct kedge_diag d;
};

static void prepare(struct made *m)
{
    static const struct kedge_seed seed = {{9}};
    struct kedge_export_summary sum;
    memset(m, 0, sizeof *m);
    make_scratch();
    fx_federation(at("fed"), FX_NONE);
    ck_assert_int_eq(kedge_trust_read(at("fed/trust.json"), &m->trust, &m->d), KEDGE_OK);
    m->o = (struct kedge_export_options){
        .trust = &m->trust, .all_tenants = true, .time_s = 1, .tool = "kedge test", .audit = {.threads = 1}};
    kedge_key_from_seed(&seed, &m->o.key);
    memset(m->o.model_key.secret, 5, sizeof m->o.model_key.secret);
    m->look.trust = &m->trust;
    ck_assert_msg(kedge_export(at("fed"), at("out"), &m->o, &sum, &m->d) == KEDGE_OK, "%s", m->d.text);
}

static void finish(struct made *m)
{
    kedge_trust_deinit(&m->trust);
    remove_scratch();
}

static int look(struct made *m)
{
    m->d.text[0] = '\0';
    int err = kedge_export_check(at("out"), &m->look, &m->sum, &m->d);
    ck_assert_msg(err == KEDGE_OK || m->d.text[0] != '\0', "no word about %s", kedge_err_name(err));
    return err;
}

/* A new manifest over what is there now, signed by the exporter's key: the exporter is the one who lies. */
static void sign_again(struct made *m)
{
    struct kedge_oms_list list;
    struct kedge_buf text, envelope;
    struct kedge_hash digest;
    json_t *files = json_array();
    kedge_buf_init(&text, 1 << 22);
    kedge_buf_init(&envelope, 1 << 20);
    ck_assert_int_eq(kedge_oms_read(at("out"), NULL, &list, NULL), KEDGE_OK);
    for (size_t i = 0; i < list.count; i++) {
        if (strncmp(list.files[i].name, "manifest.", 9) != 0) {
            json_array_append_new(files, json_pack("{s:s,s:i,s:o}", "path", list.files[i].name, "size", 1,
                                                   "sha256", kedgei_ex_hex(&list.files[i].digest)));
        }
    }
    json_t *manifest = json_pack("{s:o}", "files", files);
    ck_assert_int_eq(kedgei_ex_dump(manifest, &text), KEDGE_OK);
    kedge_sha256(kedge_buf_view(&text), &digest);
    json_t *subject = json_pack("[{s:s,s:o}]", "name", "manifest.json", "digest", kedgei_ex_digest(&digest));
    ck_assert_int_eq(
        kedgei_ex_envelope(kedgei_ex_statement(subject, "https://kedge.dev/export/v1", json_object()),
                           &m->o.key, &envelope),
        KEDGE_OK);
    ck_assert_int_eq(kedge_file_write(at("out/manifest.json"), kedge_buf_view(&text), 0600, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_file_write(at("out/manifest.intoto.json"), kedge_buf_view(&envelope), 0600, NULL),
                     KEDGE_OK);
    json_decref(manifest);
    kedge_oms_list_deinit(&list);
    kedge_buf_deinit(&text);
    kedge_buf_deinit(&envelope);
}

/* Path of the n-th file of the folder with that beginning, in ascending order; below "out". */
static const char *nth(const char *prefix, size_t n)
{
    static char path[KEDGE_PATH_MAX];
    struct kedge_oms_list list;
    size_t seen = 0;
    path[0] = '\0';
    ck_assert_int_eq(kedge_oms_read(at("out"), NULL, &list, NULL), KEDGE_OK);
    for (size_t i = 0; i < list.count; i++) {
        if (strncmp(list.files[i].name, prefix, strlen(prefix)) == 0 && seen++ == n) {
            snprintf(path, sizeof path, "%s/%s", at("out"), list.files[i].name);
        }
    }
    kedge_oms_list_deinit(&list);
    ck_assert_str_ne(path, "");
    return path;
}

START_TEST(an_export_verifies)
{
    struct made m;
    prepare(&m);
    ck_assert_msg(look(&m) == KEDGE_OK, "%s", m.d.text);
    ck_assert_uint_ge(m.sum.models, 2);
    ck_assert_uint_eq(m.sum.statements, m.sum.proofs);
    ck_assert_uint_gt(m.sum.attestations, m.sum.models);
    m.look.keys = at("out/keys");
    ck_assert_msg(look(&m) == KEDGE_OK, "%s", m.d.text);
    sign_again(&m); /* the helper of the tests below makes nothing wrong by itself */
    ck_assert_msg(look(&m) == KEDGE_OK, "%s", m.d.text);
    ck_assert_int_eq(kedge_export_check(at("fed"), &m.look, &m.sum, &m.d), KEDGE_E_NOT_FOUND);
    finish(&m);
}
END_TEST

START_TEST(every_changed_missing_or_added_file_is_noticed)
{
    struct made m;
    struct kedge_oms_list list;
    prepare(&m);
    ck_assert_int_eq(kedge_oms_read(at("out"), NULL, &list, NULL), KEDGE_OK);
    for (size_t i = 0; i < list.count; i++) {
        char path[KEDGE_PATH_MAX], aside[KEDGE_PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", at("out"), list.files[i].name);
        snprintf(aside, sizeof aside, "%s", at("aside"));
        fx_flip(path, kedge_file_size(path) / 2);
        ck_assert_msg(look(&m) != KEDGE_OK, "changed: %s", path);
        fx_flip(path, kedge_file_size(path) / 2);
        ck_assert_int_eq(rename(path, aside), 0);
        ck_assert_msg(look(&m) != KEDGE_OK, "missing: %s", path);
        ck_assert_int_eq(rename(aside, path), 0);
    }
    kedge_oms_list_deinit(&list);
    ck_assert_msg(look(&m) == KEDGE_OK, "%s", m.d.text);
    ck_assert_int_eq(kedge_file_write(at("out/more"), kedge_view_str("x"), 0600, NULL), KEDGE_OK);
    ck_assert_int_eq(look(&m), KEDGE_E_VERIFY);
    ck_assert_ptr_nonnull(strstr(m.d.text, "does not name"));
    finish(&m);
}
END_TEST

/* What an exporter signs is believed in nothing that the logs say themselves. */
START_TEST(a_lying_exporter_is_noticed)
{
    static const struct {
        const char *prefix, *expect;
        size_t n;
    } rows[] = {
        {"entries/main-", "does not prove its entry", 1}, {"entries/org-a-", "does not prove its entry", 2},
        {"proofs/main-", "does not prove its entry", 0},  {"proofs/org-b-", "does not prove its entry", 3},
        {"models/", "is not what was signed", 0},         {"lineage.", "a line is neither", 0},
        {"verification.", "a line is neither", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct made m;
        prepare(&m);
        char path[KEDGE_PATH_MAX];
        snprintf(path, sizeof path, "%s", nth(rows[i].prefix, rows[i].n));
        fx_flip(path, strncmp(rows[i].prefix, "proofs/", 7) == 0 ? -40 : 60);
        sign_again(&m);
        ck_assert_msg(look(&m) != KEDGE_OK, "%s", path);
        ck_assert_msg(strstr(m.d.text, rows[i].expect) != NULL, "%s: %s", path, m.d.text);
        finish(&m);
    }
}
END_TEST

START_TEST(a_model_that_was_not_released_is_noticed)
{
    struct made m;
    struct kedge_oms_list list;
    struct kedge_buf bundle;
    char path[KEDGE_PATH_MAX], folder[KEDGE_PATH_MAX];
    prepare(&m);
    snprintf(path, sizeof path, "%s", nth("models/", 0)); /* the model; its model.sig sorts behind */
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    ck_assert_ptr_null(strstr(path, "model.sig"));
    fx_flip(path, 20);
    const char *const own[] = {"model.sig"};
    const struct kedge_oms_ignore ignore = {own, 1, false};
    kedge_buf_init(&bundle, 1 << 20);
    ck_assert_int_eq(kedge_oms_read(folder, &ignore, &list, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_oms_sign("m", &list, NULL, &m.o.model_key, &bundle), KEDGE_OK);
    snprintf(path, sizeof path, "%.1000s/model.sig", folder);
    ck_assert_int_eq(kedge_file_write(path, kedge_buf_view(&bundle), 0600, NULL), KEDGE_OK);
    sign_again(&m);
    ck_assert_int_eq(look(&m), KEDGE_E_VERIFY);
    ck_assert_msg(strstr(m.d.text, "no release") != NULL, "%s", m.d.text);
    kedge_oms_list_deinit(&list);
    kedge_buf_deinit(&bundle);
    finish(&m);
}
END_TEST

START_TEST(other_keys_than_those_of_the_trust_file_are_noticed)
{
    struct made m;
    struct kedge_key_pair other;
    prepare(&m);
    kedge_key_generate(&other);
    struct kedge_public_key *const keys[] = {&m.trust.statement_key, &m.trust.main_log.key,
                                             &m.trust.tenants[0].admin_key, &m.trust.tenants[1].log.key};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        struct kedge_public_key before = *keys[i];
        *keys[i] = other.public;
        ck_assert_msg(look(&m) == KEDGE_E_VERIFY, "key %zu: %s", i, m.d.text);
        *keys[i] = before;
    }
    ck_assert_int_eq(look(&m), KEDGE_OK);
    struct kedge_key_pair mine = m.o.key;
    kedge_key_generate(&m.o.key); /* somebody else signs the manifest */
    sign_again(&m);
    ck_assert_int_eq(look(&m), KEDGE_E_VERIFY);
    ck_assert_ptr_nonnull(strstr(m.d.text, "exporter's key"));
    m.o.key = mine;
    finish(&m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("export-check");
    TCase *t = tcase_create("check");
    tcase_set_timeout(t, 240);
    tcase_add_test(t, an_export_verifies);
    tcase_add_test(t, every_changed_missing_or_added_file_is_noticed);
    tcase_add_test(t, a_lying_exporter_is_noticed);
    tcase_add_test(t, a_model_that_was_not_released_is_noticed);
    tcase_add_test(t, other_keys_than_those_of_the_trust_file_are_noticed);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? 0 : 1;
}
