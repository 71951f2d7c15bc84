/* kedge audit explain: where a model comes from, as a tree of at most 100 columns. chain/audit says what
 * stands in it; here it is drawn. */
#include "chain/audit/explain/explain.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "chain/audit/files/archive.h"
#include "cli/audit/audit_anchors.h"
#include "cli/audit/audit_copy.h"
#include "cli/local.h"
#include "common/base/try.h"

enum { COLUMNS = 100, DEPTH = 8, ROUNDS_SHOWN = 10, THREADS_MAX = 64, TENANTS_MAX = 64, BLOCK = 1 << 16 };

/* ---- drawing ---- */

/* What draw() remembers between two lines: only whether a vertical bar goes on at each level. The tree is
 * printed as it is walked, so each caller says whether its line is the last of its branch. */
struct tree {
    const struct kedge_cli *c;
    bool more[DEPTH]; /* whether a branch of that level goes on below */
};

/* Cut to what is left of the line, whole characters. */
static void cut(char *text, size_t columns)
{
    size_t width = 0, i = 0, keep = 0;
    while (text[i]) {
        if (((uint8_t)text[i] & 0xc0) != 0x80) {
            if (width == columns) {
                break;
            }
            if (width == columns - 1) {
                keep = i;
            }
            width++;
        }
        i++;
    }
    if (text[i]) {
        memcpy(text + keep, "…", sizeof "…");
    }
}

/* A line of the tree at a level; last: nothing follows in its branch. */
static void draw(struct tree *t, unsigned level, bool last, const char *format, ...) KEDGE_PRINTF(4, 5);
static void draw(struct tree *t, unsigned level, bool last, const char *format, ...)
{
    char branch[DEPTH * 8], text[1024];
    size_t len = 0; /* of branch: at most 7 bytes a level */
    for (unsigned i = 1; i < level; i++) {
        len += (size_t)snprintf(branch + len, sizeof branch - len, "%s", t->more[i] ? "│  " : "   ");
    }
    if (level > 0) {
        len += (size_t)snprintf(branch + len, sizeof branch - len, "%s", last ? "└─ " : "├─ ");
        t->more[level] = !last;
    }
    branch[len] = '\0';
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text - sizeof "…", format, ap);
    va_end(ap);
    cut(text, COLUMNS - 3 * (size_t)level);
    kedge_cli_say(t->c, "%s%s\n", branch, text);
}

/* "org-a[12] by 0123456789abcdef": the statement and the key that signed it. */
struct source {
    char s[128];
};
static struct source source_of(const json_t *o, const char *name)
{
    const json_t *row = json_object_get(o, name);
    struct source r = {""};
    if (row) {
        snprintf(r.s, sizeof r.s, "%s[%lld]%s%.16s", kedge_cli_text(row, "log"),
                 (long long)kedge_cli_int(row, "index"), *kedge_cli_text(row, "key") ? " by key " : "",
                 kedge_cli_text(row, "key"));
    }
    return r;
}

/* A tenant's name where the record has its ledger, else the beginning of its salted id. */
static struct source tenant_of(const json_t *o)
{
    struct source r;
    const char *name = kedge_cli_text(o, "tenant");
    if (*name) {
        snprintf(r.s, sizeof r.s, "%s", name);
    } else {
        snprintf(r.s, sizeof r.s, "tenant %.16s… (ledger not here)", kedge_cli_text(o, "salted_id"));
    }
    return r;
}

/* Measured joules and modelled ones are never added up: a sum of both would look like a measurement. */
static struct source energy_of(const json_t *o)
{
    const json_t *e = json_object_get(o, "energy");
    double measured = kedge_cli_real(e, "measured_joules"), modelled = kedge_cli_real(e, "modelled_joules");
    struct source r = {""};
    size_t at = 0;
    if (measured > 0) {
        at += (size_t)snprintf(r.s, sizeof r.s, ", %.6g J measured", measured);
    }
    if (modelled > 0) {
        at += (size_t)snprintf(r.s + at, sizeof r.s - at, ", %.6g J modelled", modelled);
    }
    if (kedge_cli_int(e, "updates_without_figure") > 0) {
        snprintf(r.s + at, sizeof r.s - at, ", energy unknown of %lld",
                 (long long)kedge_cli_int(e, "updates_without_figure"));
    }
    return r;
}

/* ---- branches ---- */

/* Shares are means over rounds and not sums of samples: a site counts by the weight that it had where it took
 * part, which is what the model is made of. */
static void draw_totals(struct tree *t, const json_t *tenants)
{
    size_t i, k;
    json_t *row, *site;
    draw(t, 1, false, "contributions, each as its mean share of the rounds' weights");
    json_array_foreach(tenants, i, row)
    {
        const json_t *sites = json_object_get(row, "sites");
        draw(t, 2, i + 1 == json_array_size(tenants), "%s: %.3f %%, %lld updates, %lld samples%s",
             tenant_of(row).s, kedge_cli_real(row, "mean_share_percent"),
             (long long)kedge_cli_int(row, "updates"), (long long)kedge_cli_int(row, "samples"),
             energy_of(row).s);
        json_array_foreach(sites, k, site)
        {
            long long refused = (long long)kedge_cli_int(site, "refused");
            char away[40] = "";
            if (refused > 0) {
                snprintf(away, sizeof away, ", %lld turned away", refused);
            }
            draw(t, 3, k + 1 == json_array_size(sites), "%s: %.3f %%, %lld updates, %lld samples%s%s",
                 kedge_cli_text(site, "site"), kedge_cli_real(site, "mean_share_percent"),
                 (long long)kedge_cli_int(site, "updates"), (long long)kedge_cli_int(site, "samples"),
                 energy_of(site).s, away);
        }
    }
}

static void draw_site(struct tree *t, bool last, const json_t *s)
{
    char energy[64] = "energy unknown";
    if (json_object_get(s, "energy_joules")) {
        snprintf(energy, sizeof energy, "%.6g J %s", kedge_cli_real(s, "energy_joules"),
                 kedge_cli_text(s, "energy_quality"));
    }
    draw(t, 4, last, "%s: %.3f %%, %lld samples, %s; %s", kedge_cli_text(s, "site"),
         kedge_cli_real(s, "share_percent"), (long long)kedge_cli_int(s, "samples"), energy,
         source_of(s, "source").s);
}

static void draw_aggregate(struct tree *t, const json_t *aggregate)
{
    const json_t *tenants = json_object_get(aggregate, "tenants");
    size_t i, k;
    json_t *row, *site;
    draw(t, 2, false, "aggregate %s, %lld updates, weight %lld; %s", kedge_cli_text(aggregate, "rule"),
         (long long)kedge_cli_int(aggregate, "updates"), (long long)kedge_cli_int(aggregate, "weight"),
         source_of(aggregate, "source").s);
    json_array_foreach(tenants, i, row)
    {
        const json_t *sites = json_object_get(row, "sites"), *refused = json_object_get(row, "refused");
        size_t all = json_array_size(sites) + json_array_size(refused);
        draw(t, 3, i + 1 == json_array_size(tenants), "%s: %.3f %%, %lld updates", tenant_of(row).s,
             kedge_cli_real(row, "share_percent"), (long long)kedge_cli_int(row, "accepted"));
        json_array_foreach(sites, k, site)
        {
            draw_site(t, k + 1 == all, site);
        }
        json_array_foreach(refused, k, site)
        {
            draw(t, 4, json_array_size(sites) + k + 1 == all, "%s: turned away, %s",
                 kedge_cli_text(site, "site"), kedge_cli_text(site, "reason"));
        }
    }
}

/* The newest rounds come first in the answer and are the ones that are drawn: they shaped the model most, and
 * a person can read about ten. */
static void draw_rounds(struct tree *t, const json_t *rounds)
{
    size_t count = json_array_size(rounds);
    for (size_t i = 0; i < count && i < ROUNDS_SHOWN; i++) {
        const json_t *round = json_array_get(rounds, i);
        const json_t *aggregate = json_object_get(round, "aggregate"), *step = json_object_get(round, "step");
        draw(t, 1, false, "round %lld, opened in %s", (long long)kedge_cli_int(round, "round"),
             source_of(round, "opened").s);
        if (aggregate) {
            draw_aggregate(t, aggregate);
        } else {
            draw(t, 2, false, "no update of this group");
        }
        if (step) {
            draw(t, 2, true, "step %s → %.16s…; %s", kedge_cli_text(step, "rule"),
                 kedge_cli_text(step, "after"), source_of(step, "source").s);
        } else {
            draw(t, 2, true, "not closed yet");
        }
    }
    if (count > ROUNDS_SHOWN) {
        draw(t, 1, false, "%zu earlier rounds (--format json has all)", count - ROUNDS_SHOWN);
    }
}

/* Only decisions that put a site into this model's group: how it left another one is in that group's tree. */
static void draw_grouping(struct tree *t, const json_t *grouping, long long group)
{
    size_t i;
    json_t *row;
    draw(t, 1, false, "decisions that put sites into group %lld", group);
    json_array_foreach(grouping, i, row)
    {
        draw(t, 2, i + 1 == json_array_size(grouping), "%s/%s: %s in round %lld, similarity %.4g; %s",
             kedge_cli_text(row, "tenant"), kedge_cli_text(row, "site"), kedge_cli_text(row, "how"),
             (long long)kedge_cli_int(row, "round"), kedge_cli_real(row, "similarity"),
             source_of(row, "source").s);
    }
}

static void draw_job(struct tree *t, const json_t *job)
{
    const json_t *tenants = json_object_get(job, "tenants");
    size_t i;
    json_t *row;
    draw(t, 1, false, "job %s, %lld parameters, data \"%s\"; %s", kedge_cli_text(job, "name"),
         (long long)kedge_cli_int(job, "parameters"), kedge_cli_text(job, "data"),
         source_of(job, "opened").s);
    draw(t, 2, false, "spec %s", kedge_cli_text(job, "spec"));
    draw(t, 2, json_array_size(tenants) == 0, "first model %s", kedge_cli_text(job, "initial_model"));
    json_array_foreach(tenants, i, row)
    {
        bool joined = json_object_get(row, "joined") != NULL;
        draw(t, 2, i + 1 == json_array_size(tenants), "%s%s%s", tenant_of(row).s, joined ? " joined; " : "",
             source_of(row, "joined").s);
    }
}

/* As its kind tells it. */
static void put_anchor(const json_t *row, const char *aside, struct kedge_buf *out)
{
    const struct kedge_anchor_kind *kind;
    for (size_t i = 0; (kind = kedge_anchor_kind_at(i)) != NULL; i++) {
        if (strcmp(kind->told, kedge_cli_text(row, "kind")) == 0 && kind->explain) {
            kind->explain(row, aside, out);
            return;
        }
    }
    kedge_buf_printf(out, "%s%s; %s", kedge_cli_text(row, "kind"), aside, kedge_cli_text(row, "file"));
}

static void draw_anchors(struct tree *t, const json_t *anchors)
{
    size_t i;
    json_t *row;
    if (json_array_size(anchors) == 0) {
        draw(t, 1, false, "not anchored outside yet");
        return;
    }
    draw(t, 1, false, "anchored outside: it existed no later than");
    json_array_foreach(anchors, i, row)
    {
        bool last = i + 1 == json_array_size(anchors),
             trusted = json_is_true(json_object_get(row, "trusted"));
        const char *aside = trusted ? "" : " (by whom: not judged)";
        struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
        kedge_buf_init(&text, 4096);
        put_anchor(row, aside, &text);
        draw(t, 2, last, "%.*s", (int)text.len, text.len ? (const char *)text.ptr : "");
    }
}

static void draw_logs(struct tree *t, const json_t *logs)
{
    size_t i, k;
    json_t *row, *name;
    draw(t, 1, true, "logs");
    json_array_foreach(logs, i, row)
    {
        const json_t *names = json_object_get(row, "cosignatures");
        char anchored[64] = "", cosigned[200] = "";
        if (json_object_get(row, "anchored")) {
            snprintf(anchored, sizeof anchored, ", %lld of them in the main chain",
                     (long long)kedge_cli_int(row, "anchored"));
        }
        json_array_foreach(names, k, name)
        {
            size_t at = strlen(cosigned);
            snprintf(cosigned + at, sizeof cosigned - at, "%s%.60s", k ? ", " : ", cosigned by ",
                     json_string_value(name));
        }
        draw(t, 2, i + 1 == json_array_size(logs), "%s: %lld entries%s; checkpoint of %lld by key %.16s%s",
             kedge_cli_text(row, "log"), (long long)kedge_cli_int(row, "entries"), anchored,
             (long long)kedge_cli_int(row, "checkpoint"), kedge_cli_text(row, "key"), cosigned);
    }
}

static void draw_tree(const struct kedge_cli *c, const json_t *o)
{
    struct tree t = {.c = c};
    const json_t *job = json_object_get(o, "job"), *release = json_object_get(o, "release");
    const json_t *evaluation = json_object_get(o, "evaluation"), *grouping = json_object_get(o, "grouping");
    const json_t *rounds = json_object_get(o, "rounds");
    draw(&t, 0, false, "model %s", kedge_cli_text(o, "model"));
    if (release) {
        draw(&t, 1, false, "released as %s, group %lld, after round %lld; %s",
             kedge_cli_text(release, "file"), (long long)kedge_cli_int(o, "group"),
             (long long)kedge_cli_int(release, "round"), source_of(release, "source").s);
    } else {
        draw(&t, 1, false, "not released: %s of group %lld", kedge_cli_text(o, "role"),
             (long long)kedge_cli_int(o, "group"));
    }
    draw_job(&t, job);
    if (json_array_size(rounds) > 0) {
        draw_totals(&t, json_object_get(o, "tenants"));
    }
    if (evaluation) {
        double samples = kedge_cli_real(evaluation, "samples");
        char correct[32] = "";
        if (json_object_get(evaluation, "correct") && samples > 0) {
            snprintf(correct, sizeof correct, "%.2f %% correct, ",
                     100 * kedge_cli_real(evaluation, "correct") / samples);
        }
        draw(&t, 1, false, "evaluated by %lld sites on %.0f samples: %sloss %.5g",
             (long long)kedge_cli_int(evaluation, "sites"), samples, correct,
             kedge_cli_real(evaluation, "loss"));
    }
    if (grouping) {
        draw_grouping(&t, grouping, (long long)kedge_cli_int(o, "group"));
    }
    draw_rounds(&t, rounds);
    draw_anchors(&t, json_object_get(o, "anchors"));
    draw_logs(&t, json_object_get(o, "logs"));
}

/* ---- the command ---- */

/* 64 hex digits, or a file's SHA-256. */
static int digest_of(const char *model, struct kedge_hash *ret, struct kedge_diag *d)
{
    static uint8_t block[BLOCK];
    struct kedge_hasher *h;
    size_t n;
    if (kedge_hash_from_hex(kedge_view_str(model), ret) == KEDGE_OK) {
        return KEDGE_OK;
    }
    int fd = kedge_file_open(model, 0, d);
    if (fd < 0) {
        return fd;
    }
    FILE *f = fdopen(fd, "r");
    int err = f ? kedge_hasher_new(&h) : KEDGE_E_NOMEM;
    if (err) {
        (void)(f ? fclose(f) : close(fd));
        return kedge_diag_set(d, err, "%s: %s", model, kedge_strerror(err));
    }
    while ((n = fread(block, 1, sizeof block, f)) > 0) {
        kedge_hasher_update(h, kedge_view_of(block, n));
    }
    err = ferror(f) ? KEDGE_E_IO : KEDGE_OK;
    kedge_hasher_final(h, ret);
    kedge_hasher_free(h);
    fclose(f);
    return err ? kedge_diag_set(d, err, "%s: cannot read", model) : KEDGE_OK;
}

static void show_progress(void *arg, const char *what, uint64_t done, uint64_t total)
{
    kedge_cli_progress(arg, "auditing", done, total, what);
}

/* What keeps the audit from judging is "cannot read" (3), as with kedge audit verify: 1 would be the answer
 * that the record does not hold. */
static int fail(struct kedge_cli *c, int err, const struct kedge_diag *d)
{
    int code = kedge_exit_code(err);
    return kedge_cli_fail_as(c, err, d, code == 1 || code == 4 ? 3 : code);
}

/* What was found; steals tree. A tree is shown also where the record does not verify, since it helps to find
 * out why, but the last line then says that nothing in it is proven. Only a verified record has exit code 0.
 */
static int answer(struct kedge_cli *c, const struct kedge_audit_report *r, bool copy, json_t *tree)
{
    static const char *const verdicts[] = {"no", "self-consistent", "yes"};
    if (!tree) {
        kedge_cli_say(c, "The record does not know this model.\n");
        return kedge_cli_answer(c, json_pack("{s:b,s:s}", "known", false, "verdict", verdicts[r->verdict]),
                                1);
    }
    if (!c->json) {
        draw_tree(c, tree);
    }
    switch (r->verdict) {
    case KEDGE_AUDIT_YES:
        kedge_cli_say(
            c, copy ? "This copy is verified under the trusted keys; the ledgers that are not in it were not "
                      "looked at.\n"
                    : "The record is verified under the trusted keys (arithmetic: kedge audit replay).\n");
        break;
    case KEDGE_AUDIT_SELF_CONSISTENT:
        kedge_cli_say(c, "Self-consistent only: without --trust FILE nothing says whose keys these are.\n");
        break;
    case KEDGE_AUDIT_NO:
        kedge_cli_say(c, "The record is NOT verified: %llu findings, which kedge audit verify names.\n",
                      (unsigned long long)r->error_count);
        break;
    }
    json_t *data = json_pack("{s:b,s:s,s:b,s:o}", "known", true, "verdict", verdicts[r->verdict], "copy",
                             copy, "provenance", tree);
    return kedge_cli_answer(c, data, r->verdict == KEDGE_AUDIT_YES ? 0 : 1);
}

struct asked {
    const char *model, *dir, *trust_path, *seen;
    struct kedge_cli_anchors anchors;
    struct kedge_id tenants[TENANTS_MAX];
    struct kedge_audit_options options;
};

/* A record that is being written is read with locks; a tenant's copy is judged as what it is. */
static void look_at_folder(struct kedge_cli *c, struct asked *q, const char *dir, bool is_archive)
{
    char state[KEDGE_PATH_MAX];
    bool runs = !is_archive && kedge_cli_coordinator_runs(dir);
    if (!is_archive && !runs && kedge_path_join(state, dir, "state") == KEDGE_OK) {
        runs = kedge_cli_coordinator_runs(state);
    }
    q->options.beside_coordinator = runs;
    q->options.live = runs;
    q->options.tenants = q->tenants;
    q->options.tenant_count = runs ? 0 : kedge_cli_copy_tenants(dir, q->tenants, TENANTS_MAX);
    if (q->options.tenant_count > 0) {
        kedge_cli_say(c, "A copy with the ledger of %s%s: what others alone have is not in the tree.\n",
                      q->tenants[0].s, q->options.tenant_count > 1 ? " and others" : "");
    }
}

/* An archive is unpacked into a folder of its own, which goes again whatever happens; that it cannot be
 * removed is an error too, for it may hold what the archive's owner deems secret. */
static int explain(struct kedge_cli *c, struct asked *q, struct kedge_audit_report *report, json_t **tree,
                   struct kedge_diag *d)
{
    static struct kedge_unpacked unpacked;
    struct kedge_trust trust = {.tenant_count = 0};
    struct kedge_hash model;
    const char *dir = q->dir;
    KEDGE_TRY(digest_of(q->model, &model, d));
    KEDGE_TRY(q->trust_path ? kedge_trust_read(q->trust_path, &trust, d) : KEDGE_OK);
    int err = kedge_cli_anchors_merge(&q->anchors, q->trust_path ? &trust : NULL, d);
    bool is_archive = !err && kedge_archive_is(dir);
    if (is_archive) {
        err = kedge_archive_unpack(dir, NULL, &unpacked, d);
        is_archive = !err;
        dir = unpacked.dir;
    }
    if (!err) {
        look_at_folder(c, q, dir, is_archive);
        err = kedge_audit_explain(dir, q->trust_path ? &trust : NULL, &q->seen, q->seen ? 1 : 0, &q->options,
                                  &model, report, tree, d);
        kedge_cli_progress_end(c);
    }
    kedge_trust_deinit(&trust);
    int removed = is_archive ? kedge_archive_remove(&unpacked, err ? NULL : d) : KEDGE_OK;
    if (!err && removed) {
        kedge_audit_report_deinit(report);
        json_decref(*tree);
    }
    return err ? err : removed;
}

int kedge_cmd_audit_explain(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct asked q = {.trust_path = c->trust, .seen = kedge_cli_option(c, "seen", NULL)};
    struct kedge_audit_report report;
    json_t *tree = NULL;
    uint64_t threads;
    if (!kedge_cli_anchors_take(c, &q.anchors) || !kedge_cli_number(c, "threads", 1, THREADS_MAX, 0, &threads)
        || !kedge_cli_no_more(c, 2)) {
        return 2;
    }
    q.model = kedge_cli_argument(c, 0);
    q.dir = kedge_cli_argument(c, 1);
    if (!q.dir) {
        return kedge_cli_usage(
            c, "expected MODEL (a file or its SHA-256) and DIR (the record: a folder or a tar archive)");
    }
    q.options = (struct kedge_audit_options){.threads = (uint32_t)threads,
                                             .anchors = &q.anchors.trust,
                                             .progress = show_progress,
                                             .progress_arg = c};
    int err = explain(c, &q, &report, &tree, &d);
    kedge_cli_anchors_deinit(&q.anchors);
    if (err) {
        return fail(c, err, &d);
    }
    int code = answer(c, &report, q.options.tenant_count > 0, tree);
    kedge_audit_report_deinit(&report);
    return code;
}
