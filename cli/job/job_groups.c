/* kedge job groups: who is in which group and since when, how far the groups are from each other, every move.
 * Asked of the coordinator, or read from a folder with a record. */
#include <stdio.h>
#include <string.h>

#include "chain/view/groups_view.h"
#include "cli/job/groups_svg.h"
#include "cli/local.h"
#include "common/base/mem.h"
#include "common/base/try.h"

enum { TABLE_GROUPS_MAX = 16, CELL = 32, JSON_MAX = 256 * 1024 * 1024, SVG_MAX = 4 * 1024 * 1024 };

struct question {
    const char *state;
    struct kedge_id job;
    bool picture;
};

/* ---- from a folder ---- */

/* Everything that has to be closed, whatever failed on the way. */
struct logs {
    struct kedge_state_log main, *tenants;
    struct kedge_groups_log *views;
    size_t count; /* of tenants that are open */
    bool has_main;
};

/* The main chain and the ledgers of all tenants that are in the folder: a copy has those that its keeper may
 * see. What was opened before an error is closed by the caller (close_logs). */
static int open_logs(const char *state, struct logs *l, struct kedge_diag *d)
{
    struct kedge_id *ids KEDGE_CLEANUP(kedge_mem_release) = NULL;
    size_t count = 0;
    KEDGE_TRY(kedge_cli_log_open(state, "main", &l->main, d));
    l->has_main = true;
    KEDGE_TRY(kedge_state_tenants(state, &ids, &count, d));
    l->tenants = kedge_mem_new(count + 1, sizeof *l->tenants);
    l->views = kedge_mem_new(count + 1, sizeof *l->views);
    if (!l->tenants || !l->views) {
        return kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        KEDGE_TRY(kedge_cli_log_open(state, ids[i].s, &l->tenants[i], d));
        l->views[i] = (struct kedge_groups_log){ids[i], l->tenants[i].ledger, l->tenants[i].blobs};
        l->count++;
    }
    return KEDGE_OK;
}

static void close_logs(struct logs *l)
{
    for (size_t i = 0; i < l->count; i++) {
        kedge_state_log_close(&l->tenants[i]);
    }
    if (l->has_main) {
        kedge_state_log_close(&l->main);
    }
    kedge_mem_free(l->tenants);
    kedge_mem_free(l->views);
}

/* In a child, as everything that opens stores of a folder that may be damaged; the answer comes back as JSON.
 */
static int gather(void *arg, json_t **ret, struct kedge_diag *d)
{
    const struct question *q = arg;
    struct logs l = {.count = 0};
    struct kedge_groups_view view;
    struct kedge_buf text;
    json_error_t at;
    kedge_buf_init(&text, JSON_MAX);
    int err = open_logs(q->state, &l, d);
    if (!err) {
        struct kedge_groups_log main = {.ledger = l.main.ledger, .blobs = l.main.blobs};
        err = kedge_groups_view_read(&main, l.views, l.count, &q->job, q->picture, &view, d);
    }
    if (!err) {
        kedge_groups_view_json(&view, 0, 0, &text);
        kedge_groups_view_deinit(&view);
        *ret = text.err ? NULL : json_loadb((const char *)text.ptr, text.len, 0, &at);
        err = *ret ? KEDGE_OK : kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory");
    }
    kedge_buf_deinit(&text);
    close_logs(&l);
    return err;
}

/* ---- for people ---- */

/* "-" where nothing is known: 0 would be a similarity. */
static void put_short(const json_t *row, const char *key, char out[CELL])
{
    if (json_object_get(row, key)) {
        snprintf(out, CELL, "%.3f", kedge_cli_real(row, key));
    } else {
        snprintf(out, CELL, "-");
    }
}

/* The similarities are of sites to their group's direction: the mean says how close the group is, the least
 * whether somebody hardly belongs to it. */
static void say_groups(const struct kedge_cli *c, const json_t *o)
{
    static const struct kedge_column columns[] = {
        {"group", 5}, {"sites", 6}, {"similarity", 10}, {"least", 7}, {"model", -16}};
    const json_t *groups = json_object_get(o, "groups"), *row;
    size_t i;
    kedge_cli_head(c, columns, 5);
    json_array_foreach(groups, i, row)
    {
        char group[CELL], sites[CELL], mean[CELL], least[CELL], model[CELL];
        snprintf(group, sizeof group, "%lld", (long long)kedge_cli_int(row, "group"));
        snprintf(sites, sizeof sites, "%lld", (long long)kedge_cli_int(row, "sites"));
        put_short(row, "similarity_mean", mean);
        put_short(row, "similarity_least", least);
        snprintf(model, sizeof model, "%.16s", kedge_cli_text(row, "model"));
        const char *cells[] = {group, sites, mean, least, model};
        kedge_cli_row(c, columns, 5, cells);
    }
}

/* 1 − cosine: 0 is one direction, 1 at right angles, 2 the opposite. */
static double distance_of(const json_t *cosines, size_t g, size_t k)
{
    double v = 0;
    const char *text = json_string_value(json_array_get(json_array_get(cosines, g), k));
    (void)(text && kedge_real_decode(kedge_view_str(text), &v));
    return k == g ? 0.0 : 1 - v;
}

/* Of more groups than a table has room for: which one is nearest to each. */
static void say_nearest(const struct kedge_cli *c, const json_t *cosines, size_t n)
{
    static const struct kedge_column columns[] = {{"group", 5}, {"nearest", 7}, {"distance", 8}};
    kedge_cli_say(c, "\nNearest direction of each group's (1 - cosine)\n");
    kedge_cli_head(c, columns, 3);
    for (size_t g = 0; g < n; g++) {
        char group[CELL], nearest[CELL], distance[CELL];
        size_t best = g == 0 ? 1 : 0;
        for (size_t k = 0; k < n; k++) {
            best = k != g && distance_of(cosines, g, k) < distance_of(cosines, g, best) ? k : best;
        }
        snprintf(group, sizeof group, "%zu", g);
        snprintf(nearest, sizeof nearest, "%zu", best);
        snprintf(distance, sizeof distance, "%.2f", distance_of(cosines, g, best));
        const char *cells[] = {group, nearest, distance};
        kedge_cli_row(c, columns, 3, cells);
    }
}

/* Sixteen groups are 96 columns. */
static void say_distances(const struct kedge_cli *c, const json_t *o)
{
    const json_t *cosines = json_object_get(o, "cosines");
    size_t n = json_array_size(cosines);
    if (n < 2) {
        return;
    }
    if (n > TABLE_GROUPS_MAX) {
        say_nearest(c, cosines, n);
        return;
    }
    kedge_cli_say(c, "\nDistance between the groups' directions (1 - cosine)\n%5s", "");
    for (size_t k = 0; k < n; k++) {
        kedge_cli_say(c, " %4zu", k);
    }
    for (size_t g = 0; g < n; g++) {
        kedge_cli_say(c, "\n%5zu", g);
        for (size_t k = 0; k < n; k++) {
            kedge_cli_say(c, " %4.2f", distance_of(cosines, g, k));
        }
    }
    kedge_cli_say(c, "\n");
}

/* A coordinator bounds its answer and says how many sites it left out; a record read here is told as a whole.
 */
static void say_sites(const struct kedge_cli *c, const json_t *o)
{
    static const struct kedge_column columns[] = {{"tenant", -20}, {"site", -20}, {"group", 5},
                                                  {"since", 6},    {"how", -10},  {"similarity", 10},
                                                  {"moves", 5}};
    const json_t *sites = json_object_get(o, "sites"), *row;
    size_t i;
    if (json_array_size(sites) == 0) {
        return;
    }
    kedge_cli_say(c, "\n");
    kedge_cli_head(c, columns, 7);
    json_array_foreach(sites, i, row)
    {
        char group[CELL], round[CELL], similarity[CELL], moves[CELL];
        snprintf(group, sizeof group, "%lld", (long long)kedge_cli_int(row, "group"));
        snprintf(round, sizeof round, "%lld", (long long)kedge_cli_int(row, "round"));
        snprintf(moves, sizeof moves, "%lld", (long long)kedge_cli_int(row, "moves"));
        put_short(row, "similarity", similarity);
        const char *cells[] = {kedge_cli_text(row, "tenant"),
                               kedge_cli_text(row, "site"),
                               group,
                               round,
                               kedge_cli_text(row, "how"),
                               similarity,
                               moves};
        kedge_cli_row(c, columns, 7, cells);
    }
    if (kedge_cli_int(o, "sites_left_out") > 0) {
        kedge_cli_say(c, "… and %lld more sites: --record DIR shows all of them\n",
                      (long long)kedge_cli_int(o, "sites_left_out"));
    }
}

/* What happened to groups as a whole. */
static void say_changes(const struct kedge_cli *c, const json_t *o)
{
    const json_t *row;
    size_t i;
    json_array_foreach(json_object_get(o, "changes"), i, row)
    {
        const char *how = kedge_cli_text(row, "how");
        long long round = (long long)kedge_cli_int(row, "round"),
                  group = (long long)kedge_cli_int(row, "group");
        kedge_cli_say(c, "%s", i == 0 ? "\n" : "");
        if (strcmp(how, "split") == 0) {
            kedge_cli_say(c, "round %lld: group %lld was cut in two, group %lld is a part of it\n", round,
                          group, (long long)kedge_cli_int(row, "part"));
        } else if (strcmp(how, "merge") == 0) {
            kedge_cli_say(c, "round %lld: group %lld became part of group %lld\n", round, group,
                          (long long)kedge_cli_int(row, "into"));
        } else if (strcmp(how, "kept") == 0) {
            kedge_cli_say(
                c, "round %lld: too few sites pre-trained to make new groups: they stayed as they were\n",
                round);
        } else if (strcmp(how, "own") == 0) {
            kedge_cli_say(
                c,
                "round %lld: sites found that what their own training makes of the model serves them "
                "better than the model\n",
                round);
        } else if (strcmp(how, "shared") == 0) {
            kedge_cli_say(c, "round %lld: sites found that their group's model serves them better again\n",
                          round);
        } else {
            kedge_cli_say(c,
                          "round %lld: the groups had drifted (%.2f of their distance): the next round makes "
                          "new ones\n",
                          round, kedge_cli_real(row, "drift"));
        }
    }
}

/* First assignments are one line a round; who moved is told. */
static void say_history(const struct kedge_cli *c, const json_t *o)
{
    static const struct kedge_column columns[] = {{"round", 6},      {"tenant", -20}, {"site", -20},
                                                  {"from", 4},       {"to", 4},       {"why", -10},
                                                  {"similarity", 10}};
    const json_t *history = json_object_get(o, "history"), *row;
    size_t i, moves = 0, firsts = 0;
    json_array_foreach(history, i, row)
    {
        char round[CELL], from[CELL], to[CELL], similarity[CELL];
        if (!json_object_get(row, "from")) {
            firsts++;
            continue;
        }
        if (moves++ == 0) {
            kedge_cli_say(c, "\n");
            kedge_cli_head(c, columns, 7);
        }
        snprintf(round, sizeof round, "%lld", (long long)kedge_cli_int(row, "round"));
        snprintf(from, sizeof from, "%lld", (long long)kedge_cli_int(row, "from"));
        snprintf(to, sizeof to, "%lld", (long long)kedge_cli_int(row, "group"));
        put_short(row, "similarity", similarity);
        const char *cells[] = {round,
                               kedge_cli_text(row, "tenant"),
                               kedge_cli_text(row, "site"),
                               from,
                               to,
                               kedge_cli_text(row, "how"),
                               similarity};
        kedge_cli_row(c, columns, 7, cells);
    }
    kedge_cli_say(c, "\n%zu first assignments, %zu later ones%s\n", firsts, moves,
                  kedge_cli_int(o, "moves_left_out") > 0 ? ", older ones left out: --record DIR shows all"
                                                         : "");
}

/* ---- the picture ---- */

/* Why a site is missing in the picture: its update was erased by order, or it is not here or cannot be
 * opened. They are told apart because only the second can be helped by another copy. */
static void count_places(const json_t *o, size_t ret[3])
{
    const json_t *sites = json_object_get(o, "sites"), *row;
    size_t i;
    json_array_foreach(sites, i, row)
    {
        const char *place = kedge_cli_text(row, "update");
        ret[0] += strcmp(place, "placed") == 0;
        ret[1] += strcmp(place, "erased") == 0;
        ret[2] += strcmp(place, "absent") == 0 || strcmp(place, "sealed") == 0;
    }
}

/* Sites are placed by their pre-training updates, which not every record still has. A picture of a part is
 * drawn and says how large the part is; one of nothing is an error. */
static int write_picture(const struct kedge_cli *c, const json_t *o, const char *path, struct kedge_diag *d)
{
    size_t places[3] = {0, 0, 0}, sites = json_array_size(json_object_get(o, "sites"));
    struct kedge_buf svg;
    count_places(o, places);
    if (places[0] == 0) {
        (void)kedge_diag_set(d, KEDGE_E_NOT_FOUND,
                             "--svg %s: of %zu sites' updates %zu were erased and %zu cannot be read here: "
                             "there is nothing to draw",
                             kedge_cli_word(path).s, sites, places[1], places[2]);
        return KEDGE_E_NOT_FOUND;
    }
    kedge_buf_init(&svg, SVG_MAX);
    kedge_cli_groups_svg(o, &svg);
    int err = svg.err ? kedge_diag_set(d, svg.err, "--svg %s: does not fit", kedge_cli_word(path).s)
                      : kedge_file_write(path, kedge_buf_view(&svg), 0644, d);
    kedge_buf_deinit(&svg);
    if (!err) {
        kedge_cli_say(c, "\n%s: %zu of %zu sites, %.0f %% of their spread", path, places[0], sites,
                      100 * kedge_cli_real(o, "picture_shown"));
        if (places[1] + places[2] > 0) {
            kedge_cli_say(c, "; %zu updates were erased, %zu cannot be read here", places[1], places[2]);
        }
        kedge_cli_say(c, "\n");
    }
    return err;
}

/* Two sources for one answer: the coordinator (job.groups, coordinator/daemon/admin/admin_groups.c) makes it
 * by the same code as gather() does from a folder, chain/view. So all that is below does not ask where it
 * came from. */
int kedge_cmd_job_groups(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    char state[KEDGE_PATH_MAX];
    struct question q = {.state = state};
    json_t *o = NULL;
    const char *record = kedge_cli_option(c, "record", NULL), *svg = kedge_cli_option(c, "svg", NULL);
    const char *name = kedge_cli_argument(c, 0);
    if (!name || kedge_id_from(kedge_view_str(name), &q.job) != KEDGE_OK) {
        return kedge_cli_usage(c, "JOB: expected a job's name of a-z, 0-9, '.', '_', '-'");
    }
    if (!kedge_cli_no_more(c, 1)) {
        return 2;
    }
    q.picture = svg != NULL;
    int err = record ? kedge_cli_find_state(record, state, &d) : KEDGE_OK;
    err = err      ? err
          : record ? kedge_cli_guarded(gather, &q, &o, &d)
                   : kedge_cli_admin(c,
                                     json_pack("{s:s,s:s,s:b}", "verb", "job.groups", "job", q.job.s,
                                               "picture", (int)q.picture),
                                     &o, &d);
    if (err) {
        return kedge_cli_fail(c, err, &d);
    }
    if (json_array_size(json_object_get(o, "groups")) == 0) {
        kedge_cli_say(c, "Job %s has no groups yet.\n", q.job.s);
        return kedge_cli_ok(c, o);
    }
    kedge_cli_say(c, "job      %s, groups after round %lld\n\n", q.job.s,
                  (long long)kedge_cli_int(o, "round"));
    say_groups(c, o);
    say_distances(c, o);
    say_sites(c, o);
    say_changes(c, o);
    say_history(c, o);
    err = svg ? write_picture(c, o, svg, &d) : KEDGE_OK;
    if (err) {
        json_decref(o);
        return kedge_cli_fail(c, err, &d);
    }
    return kedge_cli_ok(c, o);
}
