/* OpenSSF model signatures: those of others verify, ours have a golden form, what was changed is named. */
#include "chain/export/oms.h"

#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/os/file.h"
#include "common/base/text.h"
#include "crypto/sign.h"

static const char vectors[] = "../shared/vectors/oms";

static bool present(void)
{
    char path[KEDGE_PATH_MAX];
    snprintf(path, sizeof path, "%s/own-p256-pub.pem", vectors);
    if (kedge_file_exists(path)) {
        return true;
    }
    printf("skipped: ../shared/vectors absent\n");
    return false;
}

static struct kedge_buf file_of(const char *name)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf b;
    kedge_buf_init(&b, 1 << 20);
    snprintf(path, sizeof path, "%s/%s", vectors, name);
    ck_assert_int_eq(kedge_file_read(path, &b, NULL), KEDGE_OK);
    return b;
}

/* Opens and compares with the model's folder (NULL: only opens). */
static int verdict(const char *bundle, const char *key, const char *folder, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX], signature[KEDGE_PATH_MAX];
    struct kedge_buf b = file_of(bundle), pem = file_of(key);
    struct kedge_oms oms;
    int err = kedge_oms_open(kedge_buf_view(&b), kedge_buf_view(&pem), &oms, d);
    if (!err && folder) {
        snprintf(path, sizeof path, "%s/%s", vectors, folder);
        snprintf(signature, sizeof signature, "%s/%s", vectors, bundle);
        err = kedge_oms_check(&oms, path, signature, d);
    }
    if (!err || folder) {
        kedge_oms_deinit(&oms);
    }
    kedge_buf_deinit(&b);
    kedge_buf_deinit(&pem);
    return err;
}

START_TEST(signatures_of_others)
{
    static const struct {
        const char *bundle, *key, *folder;
        int err;
    } rows[] = {
        {"upstream-key/model.sig", "signing-key-pub.pem", "upstream-key", KEDGE_OK},
        {"own-p256/model.sig", "own-p256-pub.pem", "own-p256", KEDGE_OK},
        {"old/v0.3.1-key.sig", "signing-key-pub.pem", "upstream-key/signme-1", KEDGE_OK},
        {"old/v1.0.0-key.sig", "signing-key-pub.pem", "upstream-key/signme-1", KEDGE_OK},
        {"old/v1.0.1-key.sig", "signing-key-pub.pem", NULL, KEDGE_OK},
        {"spec/valid/key.bundle.json", "signing-key-pub.pem", NULL, KEDGE_OK},
        {"old/v1.0.0-key.sig", "signing-key-pub.pem", "upstream-key/signme-2", KEDGE_E_VERIFY},
        {"upstream-key/model.sig", "own-p256-pub.pem", NULL, KEDGE_E_VERIFY},
        {"own-p256/model.sig", "own-p256-pub.pem", "upstream-key", KEDGE_E_VERIFY},
        {"spec/valid/certificate.bundle.json", "signing-key-pub.pem", NULL, KEDGE_E_FORMAT},
        {"spec/invalid/missing-envelope.bundle.json", "signing-key-pub.pem", NULL, KEDGE_E_FORMAT},
        {"spec/invalid/missing-verification-material.bundle.json", "signing-key-pub.pem", NULL,
         KEDGE_E_FORMAT},
        {"spec/invalid/empty.bundle.json", "signing-key-pub.pem", NULL, KEDGE_E_FORMAT},
        {"spec/invalid-payload/wrong-predicate.bundle.json", "signing-key-pub.pem", NULL, KEDGE_E_VERIFY},
    };
    for (size_t i = 0; present() && i < sizeof rows / sizeof rows[0]; i++) {
        struct kedge_diag d = {.text = ""};
        int err = verdict(rows[i].bundle, rows[i].key, rows[i].folder, &d);
        ck_assert_msg(err == rows[i].err, "%s: %s (%s)", rows[i].bundle, kedge_err_name(err), d.text);
    }
}
END_TEST

/* ---- a model of our own ---- */

struct model {
    char dir[64], signature[96];
    struct kedge_p256_key key;
    struct kedge_buf public, bundle;
    struct kedge_oms_list list;
};

static void put(const struct model *m, const char *name, const char *text)
{
    char path[KEDGE_PATH_MAX];
    ck_assert_int_eq(kedge_path_join(path, m->dir, name), KEDGE_OK);
    ck_assert_int_eq(kedge_file_write(path, kedge_view_str(text), 0600, NULL), KEDGE_OK);
}

static void make_folder(const struct model *m, const char *name)
{
    char path[KEDGE_PATH_MAX];
    ck_assert_int_eq(kedge_path_join(path, m->dir, name), KEDGE_OK);
    ck_assert_int_eq(mkdir(path, 0700), 0);
}

/* b, a/x, a.b: '/' sorts behind '.'; git's files and the signature are no part of it. */
static void open_model(struct model *m)
{
    snprintf(m->dir, sizeof m->dir, "/tmp/kedge-oms-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(m->dir));
    snprintf(m->signature, sizeof m->signature, "%s/model.sig", m->dir);
    make_folder(m, "a");
    make_folder(m, ".git");
    put(m, "b", "1");
    put(m, "a/x", "2");
    put(m, "a/.gitignore", "counts below the root");
    put(m, "a.b", "3");
    put(m, ".git/config", "not part of the model");
    put(m, ".gitignore", "");
    memset(m->key.secret, 7, sizeof m->key.secret);
    kedge_buf_init(&m->public, KEDGE_EC_PEM_MAX);
    kedge_buf_init(&m->bundle, KEDGE_OMS_BUNDLE_MAX);
    ck_assert_int_eq(kedge_p256_put_public(&m->public, &m->key), KEDGE_OK);
    struct kedge_diag d = {.text = ""};
    ck_assert_msg(kedge_oms_read(m->dir, NULL, &m->list, &d) == KEDGE_OK, "%s", d.text);
    ck_assert_int_eq(kedge_oms_sign("model", &m->list, NULL, &m->key, &m->bundle), KEDGE_OK);
    ck_assert_int_eq(kedge_file_write(m->signature, kedge_buf_view(&m->bundle), 0600, NULL), KEDGE_OK);
}

static void close_model(struct model *m)
{
    ck_assert_int_eq(kedge_dir_remove(m->dir), KEDGE_OK);
    kedge_buf_deinit(&m->public);
    kedge_buf_deinit(&m->bundle);
    kedge_oms_list_deinit(&m->list);
}

/* kedge_oms_open and _check of the bundle as it is now. */
static int check_model(const struct model *m, struct kedge_diag *d)
{
    struct kedge_oms oms;
    int err = kedge_oms_open(kedge_buf_view(&m->bundle), kedge_buf_view(&m->public), &oms, d);
    if (!err) {
        err = kedge_oms_check(&oms, m->dir, m->signature, d);
        kedge_oms_deinit(&oms);
    }
    return err;
}

START_TEST(a_model_of_ours_has_this_form)
{
    static const char *const names[] = {"a.b", "a/.gitignore", "a/x", "b"};
    struct model m;
    struct kedge_diag d = {.text = ""};
    struct kedge_buf payload;
    open_model(&m);
    ck_assert_uint_eq(m.list.count, 4);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_str_eq(m.list.files[i].name, names[i]);
    }
    ck_assert_msg(check_model(&m, &d) == KEDGE_OK, "%s", d.text);
    json_t *o = json_loadb((const char *)m.bundle.ptr, m.bundle.len, 0, NULL);
    const char *keyid = json_string_value(json_object_get(
        json_array_get(json_object_get(json_object_get(o, "dsseEnvelope"), "signatures"), 0), "keyid"));
    ck_assert_str_eq(keyid, "");
    ck_assert_uint_eq(json_object_size(o), 3);
    kedge_buf_init(&payload, 65536);
    const char *text = json_string_value(json_object_get(json_object_get(o, "dsseEnvelope"), "payload"));
    ck_assert_int_eq(kedge_base64_decode(kedge_view_str(text), false, &payload), KEDGE_OK);
    kedge_buf_put_u8(&payload, 0);
    /* SHA-256 of "3", of the text, of "2" and "1", and of the four together: sha256sum */
    ck_assert_str_eq(
        (const char *)payload.ptr,
        "{\"_type\":\"https://in-toto.io/Statement/"
        "v1\",\"subject\":[{\"name\":\"model\",\"digest\":{\"sha256\":"
        "\"5ee8fe10381c688b6c0d3b322ecced1184d81fe88a2bcb04f43a6539e228868a\"}}],"
        "\"predicateType\":\"https://model_signing/signature/v1.0\",\"predicate\":{\"resources\":["
        "{\"name\":\"a.b\",\"digest\":\"4e07408562bedb8b60ce05c1decfe3ad16b72230967de01f640b7e4729b49fce\","
        "\"algorithm\":\"sha256\"},"
        "{\"name\":\"a/"
        ".gitignore\",\"digest\":\"f29fd1960c95500b14de10b5774e8a40dbff8b8708c8645c10fbc01197769030\","
        "\"algorithm\":\"sha256\"},"
        "{\"name\":\"a/x\",\"digest\":\"d4735e3a265e16eee03f59718b9b5d03019c07d8b6c51f90da3a666eec13ab35\","
        "\"algorithm\":\"sha256\"},"
        "{\"name\":\"b\",\"digest\":\"6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b\","
        "\"algorithm\":\"sha256\"}],"
        "\"serialization\":{\"method\":\"files\",\"hash_type\":\"sha256\",\"allow_symlinks\":false}}}");
    kedge_buf_deinit(&payload);
    json_decref(o);
    close_model(&m);
}
END_TEST

START_TEST(the_same_model_and_key_give_the_same_bytes)
{
    struct model m;
    struct kedge_buf again;
    open_model(&m);
    kedge_buf_init(&again, KEDGE_OMS_BUNDLE_MAX);
    ck_assert_int_eq(kedge_oms_sign("model", &m.list, NULL, &m.key, &again), KEDGE_OK);
    ck_assert(kedge_view_eq(kedge_buf_view(&again), kedge_buf_view(&m.bundle)));
    kedge_buf_deinit(&again);
    close_model(&m);
}
END_TEST

START_TEST(what_was_changed_is_named)
{
    static const struct {
        const char *name, *text, *expect;
    } rows[] = {
        {"b", "2", "b is not what was signed"},
        {"a/x", "", "a/x is not what was signed"},
        {"a/y", "more", "a/y is here, but not signed"},
        {"model.sig.bak", "", "model.sig.bak is here, but not signed"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct model m;
        struct kedge_diag d = {.text = ""};
        open_model(&m);
        put(&m, rows[i].name, rows[i].text);
        ck_assert_int_eq(check_model(&m, &d), KEDGE_E_VERIFY);
        ck_assert_msg(strstr(d.text, rows[i].expect) != NULL, "%s", d.text);
        close_model(&m);
    }
    struct model m;
    struct kedge_diag d = {.text = ""};
    char path[KEDGE_PATH_MAX];
    open_model(&m);
    ck_assert_int_eq(kedge_path_join(path, m.dir, "a.b"), KEDGE_OK);
    unlink(path);
    ck_assert_int_eq(check_model(&m, &d), KEDGE_E_VERIFY);
    ck_assert_ptr_nonnull(strstr(d.text, "a.b is signed, but not here"));
    ck_assert_int_eq(symlink("/etc/passwd", path), 0); /* a link in place of a file */
    ck_assert_int_eq(check_model(&m, &d), KEDGE_E_DENIED);
    ck_assert_ptr_nonnull(strstr(d.text, "symbolic link"));
    close_model(&m);
}
END_TEST

START_TEST(no_more_files_are_read_than_may_be)
{
    struct model m;
    struct kedge_oms_list list;
    struct kedge_diag d = {.text = ""};
    open_model(&m);
    ck_assert_int_eq(kedge_oms_read(m.dir, NULL, &list, &d), KEDGE_OK);
    size_t count = list.count;
    kedge_oms_list_deinit(&list);
    ck_assert_int_eq(kedge_oms_read_up_to(m.dir, NULL, count - 1, &list, &d), KEDGE_E_FULL);
    ck_assert(d.text[0] != '\0');
    ck_assert_int_eq(kedge_oms_read_up_to(m.dir, NULL, count, &list, &d), KEDGE_OK);
    ck_assert_uint_eq(list.count, count);
    kedge_oms_list_deinit(&list);
    close_model(&m);
}
END_TEST

/* One changed byte anywhere in the bundle: never accepted with another content. */
START_TEST(no_changed_byte_of_a_signature_is_accepted)
{
    struct model m;
    struct kedge_diag d = {.text = ""};
    open_model(&m);
    for (size_t i = 0; i < m.bundle.len; i++) {
        m.bundle.ptr[i] ^= 1;
        int err = check_model(&m, &d);
        ck_assert_msg(err != KEDGE_OK, "byte %zu of %zu", i, m.bundle.len);
        m.bundle.ptr[i] ^= 1;
    }
    ck_assert_int_eq(check_model(&m, &d), KEDGE_OK);
    close_model(&m);
}
END_TEST

START_TEST(hostile_names_are_refused)
{
    struct model m;
    struct kedge_oms_list list;
    struct kedge_diag d = {.text = ""};
    struct kedge_buf out;
    open_model(&m);
    put(&m, "a\xff", "");
    ck_assert_int_eq(kedge_oms_read(m.dir, NULL, &list, &d), KEDGE_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(d.text, "UTF-8"));
    kedge_buf_init(&out, KEDGE_OMS_BUNDLE_MAX);
    ck_assert_int_eq(kedge_oms_sign("", &m.list, NULL, &m.key, &out), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_oms_sign("\xff", &m.list, NULL, &m.key, &out), KEDGE_E_ARG);
    ck_assert_uint_eq(out.len, 0);
    kedge_buf_deinit(&out);
    close_model(&m);
}
END_TEST

int main(void)
{
    KEDGE_ASSERT(kedge_crypto_init() == KEDGE_OK);
    Suite *s = suite_create("oms");
    TCase *t = tcase_create("oms");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, signatures_of_others);
    tcase_add_test(t, a_model_of_ours_has_this_form);
    tcase_add_test(t, the_same_model_and_key_give_the_same_bytes);
    tcase_add_test(t, what_was_changed_is_named);
    tcase_add_test(t, no_more_files_are_read_than_may_be);
    tcase_add_test(t, no_changed_byte_of_a_signature_is_accepted);
    tcase_add_test(t, hostile_names_are_refused);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? 0 : 1;
}
