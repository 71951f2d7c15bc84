/* What closes said of groups as a whole, told once each. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "chain/view/groups_view.h"
#include "common/base/mem.h"

/* The steps of a job's rounds, and what is told of them. */
static const struct {
    uint32_t groups, joined, own; /* joined: 1 + the group that the last one has become part of */
} steps[] = {{2, 0, 0}, {2, 0, 1}, {2, 0, 1}, {2, 1, 0}, {2, 1, 1}};
static const char told[] = "\"changes\":[{\"round\":2,\"how\":\"own\"},{\"round\":4,\"how\":\"shared\"},"
                           "{\"round\":4,\"how\":\"merge\",\"group\":1,\"into\":0},"
                           "{\"round\":5,\"how\":\"own\"}],\"changes_left_out\":0";

START_TEST(changes_are_told_once)
{
    struct kedge_groups_view view = {.round = 5, .groups = 2};
    struct kedge_st_step step = {.rule = "flexcfl/v1"};
    struct kedge_buf json;
    kedge_buf_init(&json, 1 << 16);
    for (uint32_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        step.round = i + 1;
        step.personal = steps[i].own;
        step.group_count = steps[i].groups;
        step.groups[1].merged_into = steps[i].joined;
        ck_assert_int_eq(kedgei_groups_change(&view, &step), KEDGE_OK);
    }
    kedge_groups_view_json(&view, 0, 0, &json);
    ck_assert_int_eq(json.err, KEDGE_OK);
    ck_assert_msg(memmem(json.ptr, json.len, told, strlen(told)) != NULL, "%.*s", (int)json.len,
                  (const char *)json.ptr);
    kedge_buf_deinit(&json);
    kedge_groups_view_deinit(&view);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("view");
    TCase *t = tcase_create("changes");
    tcase_add_test(t, changes_are_told_once);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int bad = srunner_ntests_failed(r);
    srunner_free(r);
    return bad ? EXIT_FAILURE : EXIT_SUCCESS;
}
