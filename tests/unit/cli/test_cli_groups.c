/* kedge job groups over a record: what the tables, the JSON and the picture say of a job whose groups are
 * known. */
#include <check.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/os/file.h"
#include "common/base/text.h"
#include "tests/fixtures/federation.h"
#include "tests/fixtures/run.h"
#include "tests/unit/cli/support.h"

static double real_at(const json_t *list, size_t i, size_t k)
{
    const json_t *v = json_array_get(json_array_get(list, i), k);
    ck_assert(json_is_number(v));
    return json_number_value(v);
}

static double real_of(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    ck_assert_msg(json_is_number(v), "%s", key);
    return json_number_value(v);
}

/* Sites s1 and s3 pull one way, s2 the other (tests/fixtures/federation.h): two groups that look away from
 * each other, in the table and in the picture. */
START_TEST(test_groups)
{
    json_t *root;
    make_scratch();
    fx_federation(at("fx"), FX_NONE);
    ck_assert_int_eq(kedge("job groups flex --record %s --svg %s --format json", at("fx"), at("flex.svg")),
                     0);
    const json_t *o = data_of(&root), *sites = json_object_get(o, "sites"), *row;
    const json_t *cosines = json_object_get(o, "cosines"), *groups = json_object_get(o, "groups");
    ck_assert_int_eq(json_integer_value(json_object_get(o, "round")), 2);
    ck_assert_uint_eq(json_array_size(sites), 5);
    ck_assert_uint_eq(json_array_size(cosines), 2);
    ck_assert_double_eq(real_at(cosines, 0, 0), 1);
    ck_assert_double_lt(real_at(cosines, 0, 1), -0.9);
    ck_assert_double_eq(real_at(cosines, 0, 1), real_at(cosines, 1, 0));
    json_int_t s1 = json_integer_value(json_object_get(json_array_get(sites, 0), "group")), total = 0;
    size_t i;
    json_array_foreach(groups, i, row)
    {
        total += json_integer_value(json_object_get(row, "sites"));
    }
    ck_assert_int_eq(total, 5);
    json_array_foreach(sites, i, row)
    {
        const char *name = json_string_value(json_object_get(row, "site"));
        bool newcomer = strcmp(name, "s3") == 0, same_side = name[1] % 2 == 1;
        json_int_t group = json_integer_value(json_object_get(row, "group"));
        ck_assert_int_eq(group == s1, same_side);
        ck_assert_str_eq(json_string_value(json_object_get(row, "how")),
                         newcomer ? "newcomer" : "cold-start");
        ck_assert_int_eq(json_integer_value(json_object_get(row, "round")), newcomer ? 1 : 0);
        ck_assert_double_gt(real_of(row, "similarity"), 0.9);
        /* the first axis tells the groups apart: a site is on the side of its group's direction */
        double x = real_of(row, "x"), gx = real_of(json_array_get(groups, (size_t)group), "x");
        ck_assert_double_gt(x * gx, 0.1);
    }
    const json_t *history = json_object_get(o, "history");
    ck_assert_uint_eq(json_array_size(history), 5);
    ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(history, 4), "round")), 1);
    ck_assert_ptr_null(json_object_get(json_array_get(history, 4), "from"));
    json_decref(root);
    ck_assert(has_text(at("flex.svg"), "<svg xmlns=\"http://www.w3.org/2000/svg\""));
    ck_assert(has_text(at("flex.svg"), "<title>org-b/s3: group"));
    ck_assert(has_text(at("flex.svg"), "direction of group 1"));
    remove_scratch();
}
END_TEST

/* A site that moves, and one round later finds that it is where it belongs. */
START_TEST(test_moves)
{
    json_t *root;
    make_scratch();
    fx_moving(at("fx"), FX_NONE);
    ck_assert_int_eq(kedge("job groups moves --record %s --format json", at("fx")), 0);
    const json_t *o = data_of(&root), *history = json_object_get(o, "history");
    const json_t *site = json_array_get(json_object_get(o, "sites"), 0);
    ck_assert_uint_eq(json_array_size(history), 8);
    for (size_t i = 6; i < 8; i++) {
        const json_t *move = json_array_get(history, i);
        json_int_t from = json_integer_value(json_object_get(move, "from"));
        json_int_t to = json_integer_value(json_object_get(move, "group"));
        ck_assert_str_eq(json_string_value(json_object_get(move, "site")), "s1");
        ck_assert_str_eq(json_string_value(json_object_get(move, "how")), "migration");
        ck_assert_int_eq(json_integer_value(json_object_get(move, "round")), (json_int_t)i - 4);
        ck_assert_int_eq(to - from != 0, i == 6);
    }
    ck_assert_int_eq(json_integer_value(json_object_get(site, "moves")), 2);
    ck_assert_int_eq(json_integer_value(json_object_get(site, "round")), 3);
    json_decref(root);
    ck_assert_int_eq(kedge("job groups moves --record %s", at("fx")), 0);
    ck_assert_ptr_nonnull(strstr(out, "6 first assignments, 2 later ones"));
    /* the same site in the explanation of the model that it moved to, and of the one that it left in round 2
     */
    int stays = 0, left = 0;
    for (int g = 0; g < 2; g++) {
        ck_assert_int_eq(kedge("audit explain %s/models/moves-g%d.safetensors %s --trust %s --format json",
                               at("fx"), g, at("fx"), at("fx/trust.json")),
                         0);
        const json_t *grouping = json_object_get(json_object_get(data_of(&root), "provenance"), "grouping"),
                     *row;
        size_t i;
        json_array_foreach(grouping, i, row)
        {
            json_int_t until = json_integer_value(json_object_get(row, "until"));
            left += until == 2;
            stays += strcmp(json_string_value(json_object_get(row, "how")), "migration") == 0;
        }
        json_decref(root);
    }
    ck_assert_int_eq(left, 1);
    ck_assert_int_eq(stays, 2);
    remove_scratch();
}
END_TEST

static void check_width(const char *text)
{
    for (const char *line = text; *line;) {
        size_t len = strcspn(line, "\n"), columns = 0;
        for (size_t i = 0; i < len; i++) {
            columns += ((unsigned char)line[i] & 0xc0) != 0x80;
        }
        ck_assert_msg(columns <= 100, "%zu columns: %.*s", columns, (int)len, line);
        line += len + (line[len] == '\n');
    }
}

START_TEST(test_for_people)
{
    make_scratch();
    fx_federation(at("fx"), FX_NONE);
    ck_assert_int_eq(kedge("job groups flex --record %s", at("fx/state")), 0); /* the state folder itself */
    ck_assert_ptr_nonnull(strstr(out, "groups after round 2"));
    ck_assert_ptr_nonnull(strstr(out, "Distance between the groups' directions"));
    ck_assert_ptr_nonnull(strstr(out, "newcomer"));
    ck_assert_ptr_nonnull(strstr(out, "5 first assignments, 0 later ones"));
    check_width(out);
    /* no groups in the sense of the word: one model, nobody assigned */
    ck_assert_int_eq(kedge("job groups plain --record %s", at("fx")), 0);
    ck_assert_ptr_nonnull(strstr(out, "0 first assignments"));
    ck_assert_ptr_null(strstr(out, "Distance"));
    ck_assert_int_eq(kedge("job groups flex2 --record %s", at("fx")), 3);
    ck_assert_int_eq(kedge("job groups fle --record %s", at("fx")), 3); /* a beginning is no name */
    ck_assert_int_eq(kedge("job groups flex --record %s", at("none")), 3);
    ck_assert_int_eq(kedge("job groups --record %s", at("fx")), 2);
    ck_assert_int_eq(kedge("job groups Flex! --record %s", at("fx")), 2);
    ck_assert_int_eq(kedge("job groups flex --record %s --svg %s", at("fx"), at("none/x.svg")), 3);
    remove_scratch();
}
END_TEST

static void empty_folder(const char *path)
{
    ck_assert_int_eq(kedge_dir_remove(path), KEDGE_OK);
    ck_assert_int_eq(kedge_dir_make(path, 0700, NULL), KEDGE_OK);
}

/* Without the updates there is no picture, and it says so; the tables do not need them. */
START_TEST(test_without_updates)
{
    make_scratch();
    fx_federation(at("fx"), FX_NONE);
    empty_folder(at("fx/state/tenants/org-a/blobs"));
    ck_assert_int_eq(kedge("job groups flex --record %s --svg %s", at("fx"), at("half.svg")), 0);
    ck_assert_ptr_nonnull(strstr(out, "3 of 5 sites"));
    ck_assert_ptr_nonnull(strstr(out, "0 updates were erased, 2 cannot be read here"));
    empty_folder(at("fx/state/tenants/org-b/blobs"));
    ck_assert_int_eq(kedge("job groups flex --record %s --svg %s", at("fx"), at("none.svg")), 3);
    ck_assert(has_text(at("stderr"), "nothing to draw"));
    ck_assert(!kedge_file_exists(at("none.svg")));
    ck_assert_int_eq(kedge("job groups flex --record %s", at("fx")), 0);
    ck_assert_ptr_nonnull(strstr(out, "newcomer"));
    remove_scratch();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cli_groups");
    TCase *tc = tcase_create("groups");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, test_groups);
    tcase_add_test(tc, test_moves);
    tcase_add_test(tc, test_for_people);
    tcase_add_test(tc, test_without_updates);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
