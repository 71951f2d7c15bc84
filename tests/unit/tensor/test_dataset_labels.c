/* Labels as the files name them, for jobs that learn the names of their classes. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/tensor/dataset.h"
#include "tests/unit/tensor/suite.h"

static char dir[] = "/tmp/kedge-labels-XXXXXX";

static void write_file(const char *name, const void *bytes, size_t len, char path[256])
{
    snprintf(path, 256, "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, len, f), len);
    ck_assert_int_eq(fclose(f), 0);
}

static int read_binding(const char *json, struct kedge_data_binding *b, struct kedge_diag *diag)
{
    struct kedge_json_token tokens[128];
    struct kedge_json doc;
    ck_assert_int_eq(kedge_json_parse(kedge_view_str(json), tokens, 128, &doc, diag), KEDGE_OK);
    return kedge_data_binding_from_json(&doc, 0, b, diag);
}

#define DIGITS                                                          \
    "{\"format\":\"idx\",\"images\":\"data/digits/digits-images.idx\"," \
    "\"labels\":\"data/digits/digits-labels.idx\",\"scale\":\"0.0625\"}"

/* Of both files together, whatever they look like; what a set's labels are is said by their places. */
START_TEST(labels_are_found_in_both_files)
{
    struct kedge_dataset train, test;
    struct kedge_data_labels found;
    struct kedge_data_binding b;
    struct kedge_diag diag = {0};
    char one[256], two[256], json[1024];
    write_file("a.csv", "x,y\n1,rose\n2,10\n3,2\n4,rose\n", 27, one);
    write_file("b.csv", "x,y\n1,\xc3\xa9\n2,rose\n", 16, two);
    snprintf(json, sizeof json,
             "{\"train\":{\"format\":\"csv\",\"path\":\"%s\",\"header\":true},"
             "\"test\":{\"format\":\"csv\",\"path\":\"%s\",\"header\":true},\"classes\":\"federated\"}",
             one, two);
    ck_assert_int_eq(read_binding(json, &b, &diag), KEDGE_OK);
    ck_assert(b.tells_classes && b.classes_count == 0);
    ck_assert_msg(kedge_data_binding_find(&b, &train, &test, &found, &diag) == KEDGE_OK, "%s", diag.text);
    ck_assert_uint_eq(found.count, 4);
    ck_assert_mem_eq(found.text,
                     "10\0"
                     "2\0rose\0\xc3\xa9\0",
                     14); /* by bytes */
    static const int32_t of_train[] = {2, 0, 1, 2}, of_test[] = {3, 2};
    ck_assert_mem_eq(train.labels, of_train, sizeof of_train);
    ck_assert_mem_eq(test.labels, of_test, sizeof of_test);
    ck_assert(train.classes == 4 && test.classes == 4);
    kedge_dataset_deinit(&train);
    kedge_dataset_deinit(&test);
    struct kedge_data_facts facts;
    ck_assert_int_eq(kedge_data_binding_facts(&b, &facts, &diag), KEDGE_OK);
    ck_assert(facts.tells_classes && !facts.wants_classes && facts.classes_count == 4);
    ck_assert_str_eq(facts.classes[3].name, "\xc3\xa9");
    ck_assert(facts.classes[3].train == 0 && facts.classes[3].test == 1 && facts.classes[2].train == 2);
    kedge_data_facts_deinit(&facts);
    ck_assert_int_eq(kedge_data_binding_load(&b, &train, &test, &diag), KEDGE_E_FORMAT);
    ASSERT_SAYS(diag, "the job has not learnt their names yet");
    ck_assert_int_eq(read_binding("{\"train\":" DIGITS ",\"classes\":\"federated\"}", &b, &diag), KEDGE_OK);
    ck_assert_int_eq(kedge_data_binding_find(&b, &train, &test, &found, &diag), KEDGE_E_SHAPE);
    ASSERT_SAYS(diag, "labels that are names stand in files of csv");
}
END_TEST

/* What no statement may name is said with its line; so is a column that is no label. */
START_TEST(labels_that_cannot_be_told_are_refused)
{
    struct kedge_dataset train, test;
    struct kedge_data_labels found;
    struct kedge_data_binding b;
    struct kedge_diag diag = {0};
    static char text[65536];
    char path[256], json[1024];
    write_file("a.csv", "x,y\n1,a\n2,b\x1b[31m\n", 17, path);
    snprintf(json, sizeof json,
             "{\"train\":{\"format\":\"csv\",\"path\":\"%s\",\"header\":true},\"classes\":\"federated\"}",
             path);
    ck_assert_int_eq(read_binding(json, &b, &diag), KEDGE_OK);
    ck_assert_int_eq(kedge_data_binding_find(&b, &train, &test, &found, &diag), KEDGE_E_FORMAT);
    ASSERT_SAYS(diag, "a.csv: line 3, column 2");
    ASSERT_SAYS(diag, "expected a label without control characters");
    snprintf(text, sizeof text, "x,y\n");
    for (int i = 0; i < 500; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "1,patient %d\n", 100000 + i);
    }
    write_file("a.csv", text, strlen(text), path);
    ck_assert_int_eq(kedge_data_binding_find(&b, &train, &test, &found, &diag), KEDGE_E_SHAPE);
    ASSERT_SAYS(diag, "more than 4096 bytes of names");
}
END_TEST

int main(void)
{
    char path[256];
    Suite *s = suite_create("dataset labels");
    TCase *tc = tcase_create("labels");
    if (!mkdtemp(dir)) {
        return 1;
    }
    tcase_add_test(tc, labels_are_found_in_both_files);
    tcase_add_test(tc, labels_that_cannot_be_told_are_refused);
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    for (const char *name = "ab"; *name; name++) {
        snprintf(path, sizeof path, "%s/%c.csv", dir, *name);
        unlink(path);
    }
    rmdir(dir);
    return failed != 0;
}
