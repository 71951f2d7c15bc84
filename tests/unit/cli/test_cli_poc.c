/* kedge poc with own clients as sites: a federation of real processes. */
#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/os/file.h"
#include "common/tensor/npz.h"
#include "tests/fixtures/run.h"
#include "tests/unit/cli/support.h"

/* Own clients: LEAF's parts with four users of two tenants' sites; a job of eight rounds in the usual record.
 */
START_TEST(test_poc_clients)
{
    static const char *const parts[] = {"leaf/train", "leaf/test"};
    struct kedge_buf text;
    json_t *root;
    make_scratch();
    kedge_buf_init(&text, 1 << 20);
    ck_assert_int_eq(kedge_dir_make(at("leaf"), 0700, NULL), 0);
    for (int part = 0; part < 2; part++) {
        char path[64];
        kedge_buf_clear(&text);
        kedge_buf_put_str(&text, "{\"users\": [\"a\", \"b\", \"c\", \"d\", \"e\"], \"user_data\": {");
        for (int u = 0; u < 5; u++) { /* class 1 lies above the first feature's 50 */
            kedge_buf_printf(&text, "%s\"%c\": {\"x\": [", u ? ", " : "", 'a' + u);
            for (int i = 0; i < 30; i++) {
                kedge_buf_printf(&text, "%s[%d, %d]", i ? ", " : "", (i * 37 + u) % 100, (i * 11) % 7);
            }
            kedge_buf_put_str(&text, "], \"y\": [");
            for (int i = 0; i < 30; i++) {
                kedge_buf_printf(&text, "%s%d", i ? ", " : "", (i * 37 + u) % 100 > 50);
            }
            kedge_buf_put_str(&text, "]}");
        }
        kedge_buf_put_str(&text, "}}");
        ck_assert_int_eq(kedge_dir_make(at(parts[part]), 0700, NULL), 0);
        snprintf(path, sizeof path, "%s/all.json", parts[part]);
        ck_assert_int_eq(kedge_file_write(at(path), kedge_buf_view(&text), 0600, NULL), 0);
    }
    kedge_buf_deinit(&text);
    ck_assert_msg(
        kedge("poc %s --data %s --tenants 2 --groups 1 --rounds 8 --format json", at("poc"), at("leaf")) == 0,
        "%s", err_out);
    ck_assert_ptr_nonnull(strstr(err_out, "Of 5 clients the first 4 take part"));
    ck_assert_ptr_nonnull(strstr(err_out, "Values up to 99: each site standardizes its own"));
    const json_t *job = json_object_get(data_of(&root), "grouped"),
                 *history = json_object_get(job, "history");
    ck_assert_str_eq(json_string_value(json_object_get(job, "state")), "completed");
    ck_assert_int_eq(json_integer_value(json_object_get(job, "rounds")), 8);
    size_t rounds = json_array_size(history);
    ck_assert(rounds > 0);
    double accuracy = json_number_value(json_object_get(json_array_get(history, rounds - 1), "accuracy"));
    ck_assert_msg(accuracy > 0.8, "%g", accuracy);
    json_decref(root);
    ck_assert(has_text(at("poc/sites.csv"), "tenant,site,client,group,train,test\norg-a,site-1,a,,30,30\n"));
    ck_assert(has_text(at("poc/sites.csv"), "org-b,site-2,d,,30,30\n"));
    ck_assert(
        has_text(at("poc/sites/org-b/site-2/policy.json"), "\"clients\": {\"train\":{\"format\":\"npz\""));
    ck_assert_int_eq(kedge("audit replay %s --trust %s", at("poc"), at("poc/trust.json")), 0);
    ck_assert_int_eq(kedge("poc %s --format json", at("poc")), 0); /* goes on, and needs no data to */
    remove_scratch();
}
END_TEST

/* Sample i of client u; class 1 lies above the first feature's 50. */
enum { CLIENTS = 2, SAMPLES = 30 };

static float feature_of(int i, int u)
{
    return (float)((i * 37 + u) % 100);
}

static void put_csv(void)
{
    struct kedge_buf text;
    kedge_buf_init(&text, 1 << 16);
    kedge_buf_put_str(&text, "a,client,b,y\n");
    for (int i = 0; i < CLIENTS * SAMPLES; i++) { /* rows of one client need not stand together */
        int u = i % CLIENTS;
        kedge_buf_printf(&text, "%d,c-%d,%d,%d\n", (int)feature_of(i, u), u, i % 7, feature_of(i, u) > 50);
    }
    ck_assert_int_eq(kedge_file_write(at("t.csv"), kedge_buf_view(&text), 0600, NULL), 0);
    kedge_buf_deinit(&text);
}

static void put_npz(void)
{
    float x[CLIENTS * SAMPLES][2];
    int64_t y[CLIENTS * SAMPLES], client[CLIENTS * SAMPLES];
    const uint64_t dims[] = {CLIENTS * SAMPLES, 2}, one[] = {CLIENTS * SAMPLES};
    const struct kedge_npz_array arrays[] = {{"x", KEDGE_NPY_F4, 2, dims, x},
                                             {"y", KEDGE_NPY_I8, 1, one, y},
                                             {"client", KEDGE_NPY_I8, 1, one, client}};
    struct kedge_buf out_bytes;
    for (int i = 0; i < CLIENTS * SAMPLES; i++) {
        client[i] = i % CLIENTS;
        x[i][0] = feature_of(i, i % CLIENTS);
        x[i][1] = (float)(i % 7);
        y[i] = x[i][0] > 50;
    }
    kedge_buf_init(&out_bytes, 1 << 16);
    ck_assert_int_eq(kedge_npz_write(arrays, 3, &out_bytes), 0);
    ck_assert_int_eq(kedge_file_write(at("t.npz"), kedge_buf_view(&out_bytes), 0600, NULL), 0);
    kedge_buf_deinit(&out_bytes);
}

static void put_folders(void)
{
    struct kedge_buf text;
    char path[64];
    kedge_buf_init(&text, 1 << 16);
    ck_assert_int_eq(kedge_dir_make(at("homes"), 0700, NULL), 0);
    for (int u = 0; u < CLIENTS; u++) {
        snprintf(path, sizeof path, "homes/c-%d", u);
        ck_assert_int_eq(kedge_dir_make(at(path), 0700, NULL), 0);
        kedge_buf_clear(&text);
        kedge_buf_put_str(&text, "a,b,y\n");
        for (int i = 0; i < SAMPLES; i++) {
            kedge_buf_printf(&text, "%d,%d,%d\n", (int)feature_of(i, u), i % 7, feature_of(i, u) > 50);
        }
        snprintf(path, sizeof path, "homes/c-%d/data.csv", u);
        ck_assert_int_eq(kedge_file_write(at(path), kedge_buf_view(&text), 0600, NULL), 0);
    }
    kedge_buf_deinit(&text);
}

/* The other forms that researchers' data have, two clients each: the sites are the clients, the job
 * completes, the record holds. */
START_TEST(test_poc_forms)
{
    static const char *const forms[] = {"t.csv", "t.npz", "homes"};
    static const char *const sites[] = {"org-a,site-1,c-0,,27,3\norg-a,site-2,c-1,,27,3\n",
                                        "org-a,site-1,0,,27,3\norg-a,site-2,1,,27,3\n",
                                        "org-a,site-1,c-0,,27,3\norg-a,site-2,c-1,,27,3\n"};
    json_t *root;
    make_scratch();
    put_csv();
    put_npz();
    put_folders();
    ck_assert_msg(kedge("poc %s --data %s --groups 1 --rounds 2 --format json", at("poc"), at(forms[_i]))
                      == 0,
                  "%s", err_out);
    const json_t *job = json_object_get(data_of(&root), "grouped");
    ck_assert_str_eq(json_string_value(json_object_get(job, "state")), "completed");
    ck_assert_int_eq(json_integer_value(json_object_get(job, "round")), 2);
    json_decref(root);
    ck_assert_msg(has_text(at("poc/sites.csv"), sites[_i]), "%s", forms[_i]);
    ck_assert(
        has_text(at("poc/sites/org-a/site-2/policy.json"), "\"clients\": {\"train\":{\"format\":\"npz\""));
    ck_assert_int_eq(kedge("audit verify %s --trust %s", at("poc"), at("poc/trust.json")), 0);
    remove_scratch();
}
END_TEST

/* A folder with something of somebody's in it stays as it is; an empty one is fine, and so is one of its own.
 */
START_TEST(test_poc_foreign_folder)
{
    char said[2 * KEDGE_PATH_MAX];
    make_scratch();
    ck_assert_int_eq(kedge_dir_make(at("mine"), 0700, NULL), 0);
    put_file(at("mine/thesis.tex"), "x");
    snprintf(said, sizeof said,
             "kedge: %s: the folder is not empty, and no kedge poc made it\n  name a new folder\n",
             at("mine"));
    ck_assert_int_eq(kedge("poc %s --rounds 1", at("mine")), 1);
    ck_assert_msg(strstr(err_out, said) != NULL, "%s", err_out);
    ck_assert(has_text(at("mine/thesis.tex"), "x") && !kedge_file_exists(at("mine/poc.json")));
    ck_assert(!kedge_file_exists(at("mine/logs")) && !kedge_file_exists(at("mine/sites")));
    remove_scratch();
}
END_TEST

/* A model of the user's own is what a demonstration lacks; the answer says where it goes instead. */
START_TEST(test_poc_base)
{
    make_scratch();
    ck_assert_int_eq(kedge("poc %s --strategy adapters", at("poc")), 2);
    ck_assert_msg(strstr(err_out, "--strategy adapters: it trains over a model of yours") != NULL, "%s",
                  err_out);
    ck_assert_msg(strstr(err_out, "kedge job submit SPEC.json --initial-model FILE") != NULL, "%s", err_out);
    ck_assert(!kedge_file_exists(at("poc/poc.json")));
    remove_scratch();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cli poc");
    TCase *t = tcase_create("poc");
    tcase_set_timeout(t, 300);
    tcase_add_test(t, test_poc_clients);
    tcase_add_loop_test(t, test_poc_forms, 0, 3);
    tcase_add_test(t, test_poc_foreign_folder);
    tcase_add_test(t, test_poc_base);
    suite_add_tcase(s, t);
    return run_suite(s);
}
