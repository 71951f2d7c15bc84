/* Accuracy, or loss, over the rounds of a job: all sites together as one strong line, and where there are
 * groups a thin line for each. It is drawn for a phone's width and grows with the screen. */
#include <stdio.h>

#include "chain/export/work.h"

enum {
    WIDTH = 340,
    HEIGHT = 210,
    LEFT = 50,
    RIGHT = 284, /* behind it stands the last value */
    TOP = 12,
    BOTTOM = 170,
    COLOURS = 8,
    DOTS_MAX = 40, /* of more points only the line is drawn */
    ALL = -1,      /* all groups together */
};

struct chart {
    const struct kedgei_ex_job *job;
    struct kedge_buf *out;
    uint32_t groups, first, last; /* numbers of rounds at both ends */
    double most;                  /* at the top of the y axis */
};

/* Mean over the test samples of a point; false: nothing was evaluated there. */
static bool value_of(const struct chart *c, size_t point, int group, uint32_t *ret_round, double *ret)
{
    struct kedgei_ex_metrics sum = {0};
    for (uint32_t g = 0; g < c->groups; g++) {
        const struct kedgei_ex_metrics *m = &c->job->evaluated[point * c->groups + g];
        if (m->samples > 0 && (group == ALL || (uint32_t)group == g)) {
            sum.round = m->round > sum.round ? m->round : sum.round;
            sum.samples += m->samples;
            sum.correct += m->correct;
            sum.loss_sum += m->loss_sum;
        }
    }
    if (sum.samples == 0) {
        return false;
    }
    *ret_round = sum.round;
    *ret = (c->job->spec.shows_loss ? sum.loss_sum : 100 * (double)sum.correct) / (double)sum.samples;
    return true;
}

static double x_of(const struct chart *c, uint32_t round)
{
    double span = c->last > c->first ? (double)(c->last - c->first) : 1;
    return LEFT + (double)(round - c->first) / span * (RIGHT - LEFT);
}

static double y_of(const struct chart *c, double value)
{
    double share = value / c->most;
    share = share > 1 ? 1 : share > 0 ? share : 0; /* a loss may be negative, or no number */
    return BOTTOM - share * (BOTTOM - TOP);
}

/* ---- axes ---- */

/* 1, 2 or 5 times a power of ten, at least v. */
static double rounded_up(double v)
{
    static const double steps[] = {1, 2, 5};
    double unit = 1e-9;
    for (int i = 0; i < 30; i++) {
        for (size_t k = 0; k < sizeof steps / sizeof steps[0]; k++) {
            if (steps[k] * unit >= v) {
                return steps[k] * unit;
            }
        }
        unit *= 10;
    }
    return unit;
}

/* The axis of accuracy always ends at 100 %, so that charts of two jobs can be compared by eye; a loss has no
 * natural end and gets a round number above its largest value. */
static void measure(struct chart *c)
{
    bool any = false;
    double most = 0;
    for (size_t i = 0; i < c->job->points; i++) {
        uint32_t round;
        double v;
        for (int g = ALL; g < (int)c->groups; g++) {
            if (value_of(c, i, g, &round, &v)) {
                c->first = any ? c->first : round;
                c->last = round > c->last ? round : c->last;
                any = true;
                most = v > most ? v : most;
            }
        }
    }
    c->most = c->job->spec.shows_loss ? rounded_up(most) : 100;
}

static void put_axes(const struct chart *c)
{
    bool loss = c->job->spec.shows_loss;
    for (int i = 0; i <= 4; i++) {
        double v = c->most * i / 4, y = y_of(c, v);
        char label[32];
        snprintf(label, sizeof label, loss ? "%.3g" : "%.0f %%", v);
        kedge_buf_printf(c->out,
                         "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text class=\"dim\" x=\"%d\" y=\"%.1f\" "
                         "text-anchor=\"end\">%s</text>\n",
                         LEFT, y, RIGHT, LEFT - 6, y + 4, label);
    }
    kedge_buf_printf(c->out,
                     "<text class=\"dim\" x=\"%d\" y=\"%d\">round %u</text>"
                     "<text class=\"dim\" x=\"%d\" y=\"%d\" text-anchor=\"end\">round %u</text>\n",
                     LEFT, BOTTOM + 20, c->first, RIGHT, BOTTOM + 20, c->last);
}

/* ---- lines ---- */

/* Points without an evaluation are left out and the line goes on to the next: a round in which nobody
 * evaluated is no drop to zero. */
static void put_line(const struct chart *c, int group)
{
    char colour[8] = "";
    bool open = false;
    snprintf(colour, sizeof colour, " c%d", group < 0 ? 0 : group % COLOURS);
    kedge_buf_printf(c->out, "<path class=\"curve%s\"%s d=\"", group == ALL ? " all" : colour,
                     group == ALL ? "" : " stroke-width=\"1\"");
    for (size_t i = 0; i < c->job->points; i++) {
        uint32_t round;
        double v;
        if (value_of(c, i, group, &round, &v)) {
            kedge_buf_printf(c->out, "%s%.1f %.1f", open ? "L" : "M", x_of(c, round), y_of(c, v));
            open = true;
        }
    }
    kedge_buf_put_str(c->out, "\"/>\n");
    for (size_t i = 0; i < c->job->points && group == ALL && c->job->points <= DOTS_MAX; i++) {
        uint32_t round;
        double v;
        if (value_of(c, i, group, &round, &v)) {
            kedge_buf_printf(c->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"/>\n", x_of(c, round),
                             y_of(c, v));
        }
    }
}

/* "12.5 %", "0.0312" */
static void format_value(const struct chart *c, double v, char out[32])
{
    snprintf(out, 32, c->job->spec.shows_loss ? "%.3g" : "%.1f %%", v);
}

/* The first and the last value, for those who do not see the line. Returns false when there is none. */
static bool put_head(const struct chart *c, double *ret_last)
{
    char first_text[32], last_text[32];
    bool any = false;
    double v, first = 0;
    uint32_t round, first_round = 0, last_round = 0;
    for (size_t i = 0; i < c->job->points; i++) {
        if (value_of(c, i, ALL, &round, &v)) {
            first = any ? first : v;
            first_round = any ? first_round : round;
            last_round = round;
            *ret_last = v;
            any = true;
        }
    }
    if (!any) {
        return false;
    }
    format_value(c, first, first_text);
    format_value(c, *ret_last, last_text);
    kedge_buf_printf(c->out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s of job ", WIDTH, HEIGHT,
                     c->job->spec.shows_loss ? "Loss" : "Accuracy");
    kedgei_ex_html(c->out, c->job->id.s);
    kedge_buf_printf(c->out, ": %s after round %u, %s after round %u\">\n", first_text, first_round,
                     last_text, last_round);
    return true;
}

void kedgei_ex_chart(const struct kedgei_ex_job *job, struct kedge_buf *out)
{
    struct chart c = {.job = job, .out = out, .groups = kedgei_ex_job_groups(job)};
    char text[32];
    double last = 0;
    if (!job->evaluated || !put_head(&c, &last)) {
        return;
    }
    measure(&c);
    put_axes(&c);
    for (uint32_t g = 0; g < c.groups && c.groups > 1; g++) {
        put_line(&c, (int)g);
    }
    put_line(&c, ALL);
    format_value(&c, last, text);
    kedge_buf_printf(out, "<text x=\"%d\" y=\"%.1f\">%s</text>\n", RIGHT + 6, y_of(&c, last) + 4, text);
    kedge_buf_printf(out, "<text class=\"dim\" x=\"%d\" y=\"%d\">%s</text>\n</svg>\n", LEFT, BOTTOM + 36,
                     c.groups > 1 ? "strong: all sites together; thin: each group" : "all sites together");
}
