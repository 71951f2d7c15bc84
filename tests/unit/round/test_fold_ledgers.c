/* The records of the fixtures, one of each way in which groups come about: what a restart reads folds to the
 * same as the whole record, in every round, and at the end sites are where chain/view finds them. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/view/groups_view.h"
#include "common/base/os/file.h"
#include "tests/fixtures/federation.h"
#include "tests/fixtures/federation_buffer.h"
#include "tests/fixtures/round_states.h"

static char dir[64], state[96];
static uint32_t rounds;

static void plain(const char *to)
{
    fx_federation(to, FX_NONE);
}
static void drawn_again(const char *to)
{
    fx_federation(to, FX_DRAWN_AGAIN);
}
static void unfinished(const char *to)
{
    fx_federation(to, FX_UNFINISHED);
}
static void moving(const char *to)
{
    fx_moving(to, FX_NONE);
}
static void regrouping(const char *to)
{
    fx_regrouping(to, FX_NONE);
}
static void still(const char *to)
{
    fx_regrouping(to, FX_REGROUP_STILL);
}
static void keeping(const char *to)
{
    fx_keeping(to, FX_NONE);
}
static void living(const char *to)
{
    fx_living(to, FX_NONE);
}
static void joining(const char *to)
{
    fx_joining(to, FX_NONE);
}
static void cutting(const char *to)
{
    fx_cutting(to, FX_NONE);
}
static void parts(const char *to)
{
    fx_parts(to, FX_NONE);
}
static void parts_back(const char *to)
{
    fx_parts(to, FX_PARTS_BACK);
}
static void parts_often(const char *to)
{
    fx_parts(to, FX_PARTS_OFTEN);
}
static void parting(const char *to)
{
    fx_parting(to, NULL, FX_NONE);
}
static void edges(const char *to)
{
    fx_edges(to, NULL, FX_NONE);
}
static void nearing(const char *to)
{
    fx_nearing(to, NULL, FX_NONE);
}
static void choosing(const char *to)
{
    fx_choosing(to, NULL, FX_NONE);
}
static void momentum(const char *to)
{
    fx_with(to, "\"server\":\"momentum\"", FX_NONE);
}
static void buffered(const char *to)
{
    fx_buffered(to, NULL, FX_BUFFER_NONE);
}
static void (*const makes[])(const char *) = {plain,    drawn_again, unfinished, moving,     regrouping,
                                              still,    keeping,     living,     joining,    cutting,
                                              parting,  edges,       nearing,    choosing,   momentum,
                                              buffered, parts,       parts_back, parts_often};

/* Sites as chain/view tells them, which reads the ledgers by rules of its own. */
static void check_sites(const struct fx_round_state *s)
{
    const struct kedge_groups_log main_of = {.ledger = s->logs->main.ledger, .blobs = s->logs->main.blobs};
    struct kedge_groups_log of[2];
    struct kedge_groups_view view;
    ck_assert_uint_eq(s->logs->tenant_count, 2);
    for (int i = 0; i < 2; i++) {
        const struct kedge_round_log *log = &s->logs->tenants[i];
        of[i] = (struct kedge_groups_log){log->tenant, log->ledger, log->blobs};
    }
    ck_assert_int_eq(kedge_groups_view_read(&main_of, of, 2, &s->spec->name, false, &view, NULL), KEDGE_OK);
    uint32_t at = 0;
    for (size_t i = 0; i < view.site_count; i++) {
        const struct kedge_groups_site *want = &view.sites[i];
        bool is_stated = !view.is_followed || strcmp(want->how, "split") == 0;
        while (is_stated && at < s->at->site_count && s->at->sites[at].since == KEDGE_ROUND_NONE) {
            at++; /* the view has only those that were given a group */
        }
        if (is_stated) {
            ck_assert_uint_lt(at, s->at->site_count);
            ck_assert_uint_eq(s->at->sites[at].group, want->group);
            ck_assert_uint_eq(s->at->sites[at].since, want->round);
            ck_assert(kedge_hash_eq(&s->at->sites[at].by, &want->update));
            at++;
        }
    }
    for (uint32_t g = 0; g < view.groups; g++) {
        ck_assert(kedge_hash_eq(&s->at->state.group[g].model, &view.models[g]));
        ck_assert_uint_eq(s->at->state.group[g].merged_into, view.merged_into[g]);
    }
    kedge_groups_view_deinit(&view);
}

static void check_round(void *arg, const struct fx_round_state *s)
{
    (void)arg;
    ck_assert_msg(kedge_hash_eq(&s->whole, &s->brief), "job %s, round %u", s->spec->name.s, s->round);
    rounds++;
    if (s->round == KEDGE_ROUND_NONE) {
        check_sites(s);
        return;
    }
    for (uint32_t i = 0; i < s->at->site_count; i++) { /* a round opens when all is said */
        ck_assert(!s->at->sites[i].is_unstated && !s->at->sites[i].is_undecided);
    }
}

START_TEST(a_restart_reads_enough)
{
    snprintf(dir, sizeof dir, "/tmp/kedge-fold-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(kedge_dir_remove(dir), KEDGE_OK);
    makes[_i](dir);
    snprintf(state, sizeof state, "%s/state", dir);
    rounds = 0;
    fx_round_states(state, check_round, NULL);
    ck_assert_uint_gt(rounds, 2);
    ck_assert_int_eq(kedge_dir_remove(dir), KEDGE_OK);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fold_ledgers");
    TCase *tc = tcase_create("records");
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, a_restart_reads_enough, 0, sizeof makes / sizeof makes[0]);
    suite_add_tcase(s, tc);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
