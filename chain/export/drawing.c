/* The provenance of a job, drawn: time runs downwards, one column per group. A box is what a round made of a
 * group; the bar in it shows whose weight it is, tenant by tenant. Long jobs show their beginning and end. */
#include <string.h>

#include "chain/export/work.h"

/* Up to three groups fit the width of a phone; more are drawn as wide as they must be, and scroll. */
enum {
    WIDTH = 328,
    LEFT = 80, /* for the rounds' names */
    FITTING = 3,
    COLUMN_MIN = 84,
    NARROW = 96, /* a box below it has no room for words */
    TOP = 56,
    ROW = 76,
    BOX = 52,
    GAP = 12,
    BAR = 8,
    SHOWN = 12, /* rounds that are drawn: the first and last six of more */
    COLOURS = 8,
};

struct drawing {
    struct kedgei_ex_work *w;
    const struct kedgei_ex_job *job;
    struct kedge_buf *out;
    uint32_t columns;
    int column_width;
};

static int column_x(const struct drawing *d, uint32_t group)
{
    return LEFT + (int)group * d->column_width;
}

/* The tenant's colour: its place among those of the job. */
static unsigned colour_of(const struct drawing *d, const struct kedge_hash *salted)
{
    for (uint32_t i = 0; i < d->job->part_count; i++) {
        if (kedge_hash_eq(&d->job->parts[i].id, salted)) {
            return i % COLOURS;
        }
    }
    return 0;
}

static void put_title(struct drawing *d, const struct kedge_st_aggregate *a)
{
    kedge_buf_printf(d->out, "<title>round %u, group %u: %u updates, weight %llu", a->round, a->group,
                     a->count, (unsigned long long)a->weight_sum);
    for (uint32_t i = 0; i < a->tenant_count; i++) {
        const struct kedgei_ex_log *t = kedgei_ex_tenant(&d->w->r, &a->tenants[i].id);
        kedge_buf_put_str(d->out, "\n");
        kedgei_ex_html(d->out, t ? t->name : "an organisation whose log is not here");
        kedge_buf_printf(d->out, ": %u updates, weight %llu, %u turned away", a->tenants[i].accepted,
                         (unsigned long long)a->tenants[i].weight_sum, a->tenants[i].refused);
    }
    kedge_buf_put_str(d->out, "</title>");
}

/* Shares of the weight, as wide as the box; the last takes what rounding left. */
static void put_bar(struct drawing *d, const struct kedge_st_aggregate *a, int x, int y, int width)
{
    double done = 0;
    for (uint32_t i = 0; i < a->tenant_count && a->weight_sum > 0; i++) {
        double share = (double)a->tenants[i].weight_sum / (double)a->weight_sum;
        int from = x + (int)(done * width);
        done += share;
        int to = i + 1 == a->tenant_count ? x + width : x + (int)(done * width);
        if (to > from) {
            kedge_buf_printf(d->out, "<rect class=\"bar c%u\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>",
                             colour_of(d, &a->tenants[i].id), from, y, to - from, BAR);
        }
    }
}

/* A box with the digest of the group's model after the round. */
static void put_box(struct drawing *d, const struct kedge_st_step_group *g,
                    const struct kedge_st_aggregate *a, int y)
{
    char hex[KEDGE_HASH_HEX_LEN + 1];
    int x = column_x(d, g->group) + GAP / 2, width = d->column_width - GAP;
    bool narrow = width < NARROW;
    kedge_hash_hex(&g->after, hex);
    kedge_buf_printf(d->out,
                     "<g><rect class=\"box%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\"/>",
                     a ? "" : " idle", x, y, width, BOX);
    if (a) {
        put_title(d, a);
        put_bar(d, a, x + 8, y + BOX - BAR - 7, width - 16);
        kedge_buf_printf(d->out, "<text x=\"%d\" y=\"%d\">%u%s</text>", x + 8, y + 17, a->count,
                         narrow          ? ""
                         : a->count == 1 ? " update"
                                         : " updates");
    } else {
        kedge_buf_printf(d->out, "<text class=\"dim\" x=\"%d\" y=\"%d\">%s</text>", x + 8, y + 17,
                         narrow ? "–" : "no update");
    }
    kedge_buf_printf(d->out, "<text class=\"mono dim\" x=\"%d\" y=\"%d\">%.*s</text></g>\n", x + 8, y + 32,
                     narrow ? 6 : 12, hex);
}

/* The lines from the boxes above; mixing joins all groups. */
static void put_lines(struct drawing *d, const struct kedge_st_step *step, int y, bool first)
{
    bool mixing = step->eta > 0;
    for (uint32_t i = 0; i < step->group_count; i++) {
        int to = column_x(d, step->groups[i].group) + d->column_width / 2;
        for (uint32_t k = 0; k < step->group_count; k++) {
            int from = column_x(d, step->groups[k].group) + d->column_width / 2;
            if (first) {
                from = LEFT + (int)d->columns * d->column_width / 2;
            }
            if (i == k || (mixing && !first)) {
                kedge_buf_printf(d->out, "<path class=\"line%s\" d=\"M%d %dC%d %d %d %d %d %d\"/>\n",
                                 i == k ? "" : " mix", from, y - (ROW - BOX), from, y - 8, to, y - 16, to, y);
            }
        }
    }
}

/* One round; w->b is its step, w->a one aggregate at a time. */
static int put_round(struct drawing *d, const struct kedgei_ex_round *round, int y, bool first)
{
    struct kedgei_ex_work *w = d->w;
    bool drawn[KEDGE_GROUPS_MAX] = {false};
    int err = kedgei_ex_read(&w->r.main, round->step, w->b, w->reterr);
    if (err) {
        return err;
    }
    const struct kedge_st_step *step = &w->b->u.step;
    put_lines(d, step, y, first);
    kedge_buf_printf(
        d->out,
        "<text x=\"0\" y=\"%d\">round %u</text><text class=\"mono dim\" x=\"0\" y=\"%d\">main[%llu]"
        "</text>\n",
        y + 20, step->round, y + 36, (unsigned long long)round->step);
    for (uint32_t i = 0; i < round->aggregate_count && !err; i++) {
        err = kedgei_ex_read(&w->r.main, round->aggregates[i], w->a, w->reterr);
        const struct kedge_st_aggregate *a = &w->a->u.aggregate;
        for (uint32_t g = 0; !err && g < step->group_count; g++) {
            if (step->groups[g].group == a->group && a->group < KEDGE_GROUPS_MAX) {
                put_box(d, &step->groups[g], a, y);
                drawn[a->group] = true;
            }
        }
    }
    for (uint32_t g = 0; !err && g < step->group_count; g++) {
        if (step->groups[g].group < KEDGE_GROUPS_MAX && !drawn[step->groups[g].group]) {
            put_box(d, &step->groups[g], NULL, y);
        }
    }
    return err;
}

static void put_releases(struct drawing *d, int y)
{
    for (uint32_t g = 0; g < d->columns; g++) {
        if (d->job->releases[g] == KEDGEI_EX_NONE) {
            continue;
        }
        int x = column_x(d, g) + GAP / 2, width = d->column_width - GAP;
        int middle = x + width / 2;
        kedge_buf_printf(d->out,
                         "<path class=\"line\" d=\"M%d %dV%d\"/><g><rect class=\"box out\" x=\"%d\" y=\"%d\" "
                         "width=\"%d\" height=\"%d\" rx=\"4\"/><text x=\"%d\" y=\"%d\">%s</text>"
                         "<text class=\"mono dim\" x=\"%d\" y=\"%d\">main[%llu]</text></g>\n",
                         middle, y - (ROW - BOX), y, x, y, width, BOX, x + 8, y + 20, "released", x + 8,
                         y + 38, (unsigned long long)d->job->releases[g]);
    }
}

/* An SVG says its height before anything else, so rounds are counted first. A round without a step (one that
 * was still open, or failed) made no model and is not drawn. */
int kedgei_ex_drawing(struct kedgei_ex_work *w, const struct kedgei_ex_job *job, struct kedge_buf *out)
{
    struct drawing d = {.w = w, .job = job, .out = out, .columns = kedgei_ex_job_groups(job)};
    bool fits = d.columns <= FITTING;
    d.column_width = fits ? (WIDTH - LEFT) / (int)d.columns : COLUMN_MIN;
    const int full = LEFT + (int)d.columns * d.column_width;
    size_t total = 0, seen = 0;
    for (size_t i = 0; i < job->round_count; i++) {
        total += job->rounds[i].step != KEDGEI_EX_NONE;
    }
    size_t rows = total > SHOWN ? SHOWN + 1 : total;
    int height = TOP + (int)(rows + 1) * ROW + 8, y = TOP;
    char hex[KEDGE_HASH_HEX_LEN + 1];
    kedge_hash_hex(&job->initial_model, hex);
    if (!fits) {
        kedge_buf_put_str(
            out, "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"drawing of job ");
        kedgei_ex_html(out, job->id.s);
        kedge_buf_printf(out, "\"><svg width=\"%d\" height=\"%d\"", full, height);
    } else {
        kedge_buf_put_str(out, "<svg");
    }
    kedge_buf_printf(out, " viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"rounds of job ", full, height);
    kedgei_ex_html(out, job->id.s);
    kedge_buf_printf(
        out,
        "\">\n<rect class=\"box\" x=\"%d\" y=\"4\" width=\"%d\" height=\"28\" rx=\"4\"/>"
        "<text x=\"%d\" y=\"22\" text-anchor=\"middle\">first model <tspan class=\"mono dim\">%.12s"
        "</tspan></text>\n",
        LEFT + GAP / 2, (int)d.columns * d.column_width - GAP, LEFT + (int)d.columns * d.column_width / 2,
        hex);
    int err = KEDGE_OK;
    for (size_t i = 0; i < job->round_count && !err; i++) {
        if (job->rounds[i].step == KEDGEI_EX_NONE) {
            continue;
        }
        size_t n = seen++;
        if (total > SHOWN && n >= SHOWN / 2 && n < total - SHOWN / 2) {
            if (n == SHOWN / 2) {
                kedge_buf_printf(
                    out,
                    "<text class=\"dim\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">… %zu more rounds "
                    "…</text>\n",
                    LEFT + (full - LEFT) / 2, y + BOX / 2, total - SHOWN);
                y += ROW;
            }
            continue;
        }
        err = put_round(&d, &job->rounds[i], y, n == 0);
        y += ROW;
    }
    put_releases(&d, y);
    kedge_buf_put_str(out, fits ? "</svg>\n" : "</svg></div>\n");
    return err ? err : out->err;
}
