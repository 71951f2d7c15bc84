#include "sim/learn/report/plot.h"

#include <math.h>
#include <stdio.h>

#include "common/base/text.h"
#include "sim/learn/compare.h"

enum { PANELS = 4, COLOURS = 8 };
static const char *const colours[COLOURS] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                             "#E69F00", "#56B4E9", "#000000", "#8C8C8C"};

/* Half as strong, for areas beyond eight. */
static const char *const tints[COLOURS] = {"#80B9D9", "#EAAF80", "#80CFB9", "#E6BCD3",
                                           "#F3CF80", "#ABDAF4", "#5A5A5A", "#C6C6C6"};

/* ---- what lies on the x axis ---- */

struct axis {
    const char *label;
    double scale; /* a value times this is in the label's unit; 0: there is nothing to show */
};

static double x_of(const struct kedge_learn_round *r, int panel)
{
    switch (panel) {
    case 0:
        return (double)r->round;
    case 1:
        return r->virtual_s;
    case 2:
        return (double)r->bytes_up + (double)r->bytes_down;
    default:
        return r->joules;
    }
}

/* A unit in which the largest value is a number below a thousand, where there is such a unit. */
static struct axis axis_of(int panel, double largest)
{
    static const struct {
        int panel;
        double from;
        struct axis axis;
    } units[] = {
        {0, 0, {"rounds", 1}},
        {1, 7200, {"virtual time, hours", 1.0 / 3600}},
        {1, 0, {"virtual time, s", 1}},
        {2, 1e12, {"sent up and down, TB", 1e-12}},
        {2, 1e9, {"sent up and down, GB", 1e-9}},
        {2, 1e6, {"sent up and down, MB", 1e-6}},
        {2, 0, {"sent up and down, kB", 1e-3}},
        {3, 1e6, {"energy of all sites, MJ", 1e-6}},
        {3, 1e3, {"energy of all sites, kJ", 1e-3}},
        {3, 0, {"energy of all sites, J", 1}},
    };
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (units[i].panel == panel && largest > units[i].from) {
            return units[i].axis;
        }
    }
    return (struct axis){"", 0};
}

static void put(struct kedge_buf *out, double v)
{
    char text[KEDGE_REAL_MAX];
    if (!isfinite(v)) {
        kedge_buf_put_str(out, " ?");
        return;
    }
    kedge_real_encode(v, text);
    kedge_buf_printf(out, " %s", text);
}

/* ---- pages ---- */

/* Both formats in a loop; the caller writes what stands in the loop and closes it by end_page. */
static void begin_page(struct kedge_buf *out, const char *name, int width, int height)
{
    kedge_buf_printf(
        out,
        "do for [kind in \"svg png\"] {\n"
        "if (kind eq \"svg\") {\n"
        "set terminal svg size %d,%d dynamic font \"DejaVu Sans,Helvetica,Arial,sans-serif,13\" "
        "background \"#ffffff\" noenhanced\n"
        "} else {\n"
        "set terminal pngcairo size %d,%d font \"DejaVu Sans,10\" background \"#ffffff\" noenhanced\n"
        "}\n"
        "set output \"%s.\".kind\n",
        width, height, width, height, name);
}

static void end_page(struct kedge_buf *out)
{
    kedge_buf_put_str(out, "unset multiplot\nset output\n}\n");
}

static void put_common(struct kedge_buf *out)
{
    kedge_buf_put_str(out, "set encoding utf8\nset datafile missing \"?\"\n");
}

/* Lines and ticks of a panel; the key, drawn last, has none. */
static void put_frame(struct kedge_buf *out)
{
    kedge_buf_put_str(out, "unset key\nset border 3 lc rgb \"#444444\"\nset xtics nomirror out scale 0.6\n"
                           "set ytics nomirror out scale 0.6\n"
                           "set grid ytics lt 1 lc rgb \"#d0d0d0\" lw 0.7\n");
}

/* The panel's place on the page, in the left four fifths, with its title above it. */
static void place(struct kedge_buf *out, const char *title, int at, int panels)
{
    int rows = panels > 2 ? 2 : 1, columns = panels > 1 ? 2 : 1;
    double width = 0.735 / columns, height = 0.93 / rows;
    int row = at / columns, column = at % columns;
    double left = 0.065 + width * column, top = 0.935 - height * row;
    kedge_buf_printf(out, "set lmargin at screen %.4f\nset rmargin at screen %.4f\n", left,
                     left + width - 0.045);
    kedge_buf_printf(out, "set tmargin at screen %.4f\nset bmargin at screen %.4f\n",
                     top - (rows == 1 ? 0.07 : 0.045), top - height + (rows == 1 ? 0.17 : 0.085));
    kedge_buf_printf(out, "set title '%s' font \",12\" offset 0,-0.6\n", title);
}

/* wide: a line that others may cover. */
static void put_style(struct kedge_buf *out, uint32_t i, bool wide)
{
    static const int dashes[] = {1, 2, 4, 3};
    kedge_buf_printf(out, "lc rgb \"%s\" dt %d lw %s", colours[i % COLOURS], dashes[i / COLOURS % 4],
                     wide ? "3.6" : "1.8");
}

static const char *area_colour(uint32_t i)
{
    return i < COLOURS ? colours[i] : tints[i % COLOURS];
}

/* A plot of nothing in the right fifth that has the key. */
static void put_key(struct kedge_buf *out, const char *const *names, uint32_t count, bool areas, bool wide)
{
    kedge_buf_put_str(
        out, "set lmargin at screen 0.80\nset rmargin at screen 0.995\nset tmargin at screen 0.935\n"
             "set bmargin at screen 0.08\nunset title\nunset border\nunset tics\nunset grid\nunset xlabel\n"
             "unset ylabel\nset key at graph 0,1 left top Left reverse samplen 3 spacing 1.3\n"
             "set xrange [0:1]\nset yrange [0:1]\nplot ");
    for (uint32_t k = 0; k < count; k++) {
        uint32_t i = areas ? count - 1 - k : k; /* as areas lie: the last one on top */
        kedge_buf_put_str(out, k ? ", 2 with lines " : "2 with lines ");
        if (areas) {
            kedge_buf_printf(out, "lc rgb \"%s\" lw 10", area_colour(i));
        } else {
            put_style(out, i, wide && i == 0);
        }
        kedge_buf_printf(out, " title '%s'", names[i]);
    }
    kedge_buf_put_str(out, "\n");
}

/* A panel per axis that has something to show: accuracy in percent over columns 1 to 4 of the blocks $curve0
 * …, with the mean in column `first + line` (blocks_per_line: one block per line) and a band in the two
 * behind it. */
static void put_panels(struct kedge_buf *out, const char *name, const char *title,
                       const struct axis axes[PANELS], const char *const *names, uint32_t lines,
                       bool own_block, bool bands)
{
    static const char *const titles[PANELS] = {"Accuracy by rounds", "Accuracy by time",
                                               "Accuracy by bytes sent", "Accuracy by energy"};
    int panels = 0, at = 0;
    for (int p = 0; p < PANELS; p++) {
        panels += axes[p].scale > 0;
    }
    put_common(out);
    begin_page(out, name, 1100, panels > 2 ? 720 : 420);
    kedge_buf_printf(out, "set multiplot title '%s' noenhanced font \",13\"\n", title);
    for (int p = 0; p < PANELS; p++) {
        if (axes[p].scale == 0) {
            continue;
        }
        place(out, titles[p], at, panels);
        put_frame(out);
        kedge_buf_printf(out,
                         "set xlabel '%s'\nset ylabel '%s' offset 1,0\nset xrange [0:*] noextend\n"
                         "set yrange [*:*<100]\nplot ",
                         axes[p].label, at % 2 ? "" : "test accuracy, %");
        at++;
        for (uint32_t i = 0; bands && i < lines; i++) {
            kedge_buf_printf(out,
                             "$curve%u using %d:6:7 with filledcurves fs transparent solid 0.18 noborder "
                             "lc rgb \"%s\", ",
                             i, p + 1, colours[i % COLOURS]);
        }
        for (uint32_t i = 0; i < lines; i++) {
            kedge_buf_printf(out, "%s$curve%u using %d:%u with lines ", i ? ", " : "", own_block ? i : 0,
                             p + 1, own_block ? 5 : 5 + i);
            put_style(out, i, !own_block && i == 0);
        }
        kedge_buf_put_str(out, "\n");
    }
    put_key(out, names, lines, false, !own_block);
    end_page(out);
}

/* ---- one run ---- */

struct sense {
    const char *name;
    size_t offset;
};
#define SENSE(name, field)                              \
    {                                                   \
        name, offsetof(struct kedge_learn_round, field) \
    }
static const struct sense senses[] = {
    SENSE("all test samples", accuracy),
    SENSE("mean over sites", accuracy_sites),
    SENSE("worst tenth of sites", accuracy_worst),
    SENSE("mean of the models", accuracy_auxiliary),
    SENSE("sites\xe2\x80\x99 own models", accuracy_personal),
};
enum { SENSES = sizeof senses / sizeof senses[0] };

static double sense_of(const struct kedge_learn_round *r, size_t i)
{
    return *(const double *)(const void *)((const char *)r + senses[i].offset);
}

/* The mean of the models is worth a line only where it is not the model itself. */
static bool is_known(const struct kedge_learn_round *rounds, uint32_t count, size_t i)
{
    bool known = false;
    for (uint32_t k = 0; k < count && !known; k++) {
        known = isfinite(sense_of(&rounds[k], i)) && (i != 3 || rounds[k].groups > 1);
    }
    return known;
}

void kedge_learn_plot_accuracy(const char *title, const struct kedge_learn_round *rounds, uint32_t count,
                               struct kedge_buf *out)
{
    const char *names[SENSES];
    size_t which[SENSES];
    struct axis axes[PANELS];
    uint32_t lines = 0;
    for (size_t i = 0; i < SENSES; i++) {
        if (is_known(rounds, count, i)) {
            which[lines] = i;
            names[lines++] = senses[i].name;
        }
    }
    for (int p = 0; p < PANELS; p++) {
        axes[p] = axis_of(p, count ? x_of(&rounds[count - 1], p) : 0);
    }
    axes[0] = (struct axis){"rounds", 1};
    kedge_buf_put_str(out, "$curve0 << END\n");
    for (uint32_t k = 0; k < count; k++) {
        if (!isfinite(rounds[k].accuracy)) {
            continue;
        }
        for (int p = 0; p < PANELS; p++) {
            put(out, x_of(&rounds[k], p) * axes[p].scale);
        }
        for (uint32_t i = 0; i < lines; i++) {
            put(out, 100 * sense_of(&rounds[k], which[i]));
        }
        kedge_buf_put_str(out, "\n");
    }
    kedge_buf_put_str(out, "END\n");
    put_panels(out, KEDGE_LEARN_PLOT_ACCURACY, title, axes, names, lines, false, false);
}

/* ---- groups ---- */

bool kedge_learn_plot_has_groups(const struct kedge_learn_round *rounds, uint32_t count)
{
    bool has = false;
    for (uint32_t k = 0; k < count && !has; k++) {
        has = rounds[k].groups > 1;
    }
    return has;
}

void kedge_learn_plot_groups(const char *title, const struct kedge_learn_round *rounds, uint32_t count,
                             struct kedge_buf *out)
{
    char texts[KEDGE_LEARN_GROUPS_MAX][sizeof "group 4294967295"];
    const char *names[KEDGE_LEARN_GROUPS_MAX];
    for (uint32_t g = 0; g < KEDGE_LEARN_GROUPS_MAX; g++) {
        (void)snprintf(texts[g], sizeof texts[g], "group %u", g);
        names[g] = texts[g];
    }
    uint32_t groups = 1;
    kedge_buf_put_str(out, "$members << END\n");
    for (uint32_t k = 0; k < count; k++) {
        uint64_t sum = 0;
        kedge_buf_printf(out, "%u 0", rounds[k].round);
        for (uint32_t g = 0; g < KEDGE_LEARN_GROUPS_MAX; g++) {
            sum += rounds[k].members[g];
            kedge_buf_printf(out, " %llu", (unsigned long long)sum);
        }
        uint32_t slots = kedge_learn_group_slots(&rounds[k]);
        groups = slots > groups ? slots : groups;
        kedge_buf_put_str(out, "\n");
    }
    kedge_buf_put_str(out, "END\n");
    put_common(out);
    begin_page(out, KEDGE_LEARN_PLOT_GROUPS, 1100, 420);
    kedge_buf_printf(out, "set multiplot title '%s' noenhanced font \",13\"\n", title);
    place(out, "Sites per group by rounds", 0, 1);
    put_frame(out);
    kedge_buf_put_str(
        out, "set xlabel 'rounds'\nset ylabel 'sites in the group' offset 1,0\nset xrange [*:*] noextend\n"
             "set yrange [0:*] noextend\nplot ");
    for (uint32_t g = 0; g < groups; g++) {
        kedge_buf_printf(out, "%s$members using 1:%u:%u with filledcurves fs solid 1 noborder lc rgb \"%s\"",
                         g ? ", " : "", g + 2, g + 3, area_colour(g));
    }
    for (uint32_t g = 1; g < groups; g++) { /* a white line between neighbours */
        kedge_buf_printf(out, ", $members using 1:%u with lines lc rgb \"#ffffff\" lw 1", g + 2);
    }
    kedge_buf_put_str(out, "\n");
    put_key(out, names, groups, true, false);
    end_page(out);
}

/* ---- variants ---- */

/* One line of a variant's block: four x values, mean, both ends of the band. */
static void put_round(struct kedge_buf *out, const struct kedge_learn_curve *c, uint32_t k,
                      const struct axis axes[PANELS])
{
    double values[KEDGE_LEARN_SEEDS_MAX], x[PANELS] = {0};
    uint32_t seeds = c->seeds < KEDGE_LEARN_SEEDS_MAX ? c->seeds : KEDGE_LEARN_SEEDS_MAX;
    for (uint32_t s = 0; s < seeds; s++) {
        values[s] = 100 * c->rounds[s][k].accuracy;
        for (int p = 0; p < PANELS; p++) {
            x[p] += x_of(&c->rounds[s][k], p) / seeds;
        }
    }
    struct kedge_learn_estimate e = kedge_learn_estimate_of(values, seeds);
    if (!isfinite(e.mean)) {
        return;
    }
    for (int p = 0; p < PANELS; p++) {
        put(out, x[p] * axes[p].scale);
    }
    double half = isfinite(e.half) ? e.half : 0;
    double least = e.mean - half, most = e.mean + half;
    put(out, e.mean);
    put(out, least > 0 ? least : 0);
    put(out, most < 100 ? most : 100);
    kedge_buf_put_str(out, "\n");
}

static uint32_t rounds_of(const struct kedge_learn_curve *c)
{
    uint32_t least = c->seeds ? c->counts[0] : 0;
    for (uint32_t s = 1; s < c->seeds; s++) {
        least = c->counts[s] < least ? c->counts[s] : least;
    }
    return least;
}

void kedge_learn_plot_compare(const char *title, const struct kedge_learn_curve *curves, uint32_t count,
                              struct kedge_buf *out)
{
    const char *names[64];
    struct axis axes[PANELS];
    count = count < 64 ? count : 64;
    for (int p = 0; p < PANELS; p++) {
        double largest = 0;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t n = rounds_of(&curves[i]);
            double x = n ? x_of(&curves[i].rounds[0][n - 1], p) : 0;
            largest = x > largest ? x : largest;
        }
        axes[p] = axis_of(p, largest);
    }
    axes[0] = (struct axis){"rounds", 1};
    bool bands = false;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t n = rounds_of(&curves[i]);
        names[i] = curves[i].name;
        bands = bands || curves[i].seeds > 1;
        kedge_buf_printf(out, "$curve%u << END\n", i);
        for (uint32_t k = 0; k < n; k++) {
            put_round(out, &curves[i], k, axes);
        }
        kedge_buf_put_str(out, "END\n");
    }
    put_panels(out, KEDGE_LEARN_PLOT_COMPARE, title, axes, names, count, true, bands);
}
