#include "cli/groups_svg.h"

#include <math.h>
#include <string.h>

#include "cli/cli.h"
#include "common/base/limits.h"

enum { WIDTH = 720, HEIGHT = 560, LEFT = 40, TOP = 56, SIDE = 480, LEGEND = 560, RADIUS = 5 };

/* Told apart also by people who see few colours (Okabe and Ito); from the ninth group on hollow. */
static const char *const colours[] = {"#0072b2", "#e69f00", "#009e73", "#d55e00",
                                      "#cc79a7", "#56b4e9", "#b8860b", "#444444"};
enum { COLOURS = sizeof colours / sizeof colours[0] };

static void put_paint(struct kedge_buf *out, int64_t group)
{
    size_t g = group >= 0 ? (size_t)group : 0;
    const char *colour = colours[g % COLOURS];
    kedge_buf_printf(out, "fill=\"%s\" fill-opacity=\"%s\" stroke=\"%s\" stroke-width=\"1.5\"", colour,
                     g < COLOURS ? "0.75" : "0", colour);
}

/* The square around 0 that holds every point. */
static double reach(const json_t *rows, double so_far)
{
    const json_t *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        double x = fabs(kedge_cli_real(row, "x")), y = fabs(kedge_cli_real(row, "y"));
        so_far = x > so_far ? x : so_far;
        so_far = y > so_far ? y : so_far;
    }
    return so_far;
}

struct frame {
    double scale;
};

static double at_x(const struct frame *f, const json_t *row)
{
    return LEFT + SIDE / 2.0 + f->scale * kedge_cli_real(row, "x");
}

static double at_y(const struct frame *f, const json_t *row)
{
    return TOP + SIDE / 2.0 - f->scale * kedge_cli_real(row, "y");
}

/* A text that the coordinator gave, for a browser: none of it is markup. */
static void put_words(struct kedge_buf *out, const char *text)
{
    struct kedge_view left = kedge_view_str(text);
    while (left.len > 0) {
        char shown[KEDGE_CHAR_SHOWN_MAX];
        size_t len, n = kedge_char_show(left, shown, &len);
        if (n == 1 && strchr("<>&\"'", left.ptr[0])) {
            kedge_buf_printf(out, "&#%u;", left.ptr[0]);
        } else {
            kedge_buf_put(out, shown, len);
        }
        left = kedge_view_of(left.ptr + n, left.len - n);
    }
}

static void put_head(const json_t *o, struct kedge_buf *out)
{
    kedge_buf_printf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n",
        WIDTH, HEIGHT, WIDTH, HEIGHT);
    kedge_buf_put_str(out, "<title>Groups of job ");
    put_words(out, kedge_cli_text(o, "job"));
    kedge_buf_printf(out, " after round %lld</title>\n", (long long)kedge_cli_int(o, "round"));
    kedge_buf_printf(out, "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", WIDTH, HEIGHT);
    kedge_buf_printf(out, "<text x=\"%d\" y=\"22\" font-size=\"15\">Groups of job ", LEFT);
    put_words(out, kedge_cli_text(o, "job"));
    kedge_buf_printf(out, " after round %lld</text>\n", (long long)kedge_cli_int(o, "round"));
    kedge_buf_printf(
        out,
        "<text x=\"%d\" y=\"42\" fill=\"#555555\">pre-training updates by their cosines; the two axes "
        "have %.0f %% of the spread</text>\n",
        LEFT, 100 * kedge_cli_real(o, "picture_shown"));
    kedge_buf_printf(out,
                     "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#999999\"/>\n"
                     "<path d=\"M%d %dH%dM%d %dV%d\" stroke=\"#dddddd\"/>\n",
                     LEFT, TOP, SIDE, SIDE, LEFT, TOP + SIDE / 2, LEFT + SIDE, LEFT + SIDE / 2, TOP,
                     TOP + SIDE);
}

static void put_sites(const json_t *sites, const struct frame *f, struct kedge_buf *out)
{
    const json_t *row;
    size_t i;
    json_array_foreach(sites, i, row)
    {
        if (strcmp(kedge_cli_text(row, "update"), "placed") != 0) {
            continue;
        }
        kedge_buf_printf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\" ", at_x(f, row), at_y(f, row),
                         RADIUS);
        put_paint(out, kedge_cli_int(row, "group"));
        kedge_buf_put_str(out, "><title>");
        put_words(out, kedge_cli_text(row, "tenant"));
        kedge_buf_put_str(out, "/");
        put_words(out, kedge_cli_text(row, "site"));
        kedge_buf_printf(out, ": group %lld since round %lld (", (long long)kedge_cli_int(row, "group"),
                         (long long)kedge_cli_int(row, "round"));
        put_words(out, kedge_cli_text(row, "how"));
        kedge_buf_put_str(out, ")</title></circle>\n");
    }
}

static void put_groups(const json_t *groups, const struct frame *f, struct kedge_buf *out)
{
    const json_t *row;
    size_t i;
    json_array_foreach(groups, i, row)
    {
        long long group = (long long)kedge_cli_int(row, "group");
        double x = at_x(f, row), y = at_y(f, row);
        if (json_object_get(row, "part_of")) {
            continue; /* where the other one is */
        }
        kedge_buf_printf(out, "<path d=\"M%.1f %.1fl9 9l-9 9l-9 -9z\" ", x, y - 9);
        put_paint(out, group);
        kedge_buf_printf(out, "><title>direction of group %lld</title></path>\n", group);
        kedge_buf_printf(out, "<text x=\"%.1f\" y=\"%.1f\" font-weight=\"bold\">%lld</text>\n", x + 11, y - 6,
                         group);
        kedge_buf_printf(out, "<circle cx=\"%d\" cy=\"%zu\" r=\"%d\" ", LEGEND, TOP + 10 + 20 * i, RADIUS);
        put_paint(out, group);
        kedge_buf_printf(out, "/>\n<text x=\"%d\" y=\"%zu\">group %lld, %lld site%s</text>\n", LEGEND + 14,
                         TOP + 14 + 20 * i, group, (long long)kedge_cli_int(row, "sites"),
                         kedge_cli_int(row, "sites") == 1 ? "" : "s");
    }
    kedge_buf_printf(out, "<text x=\"%d\" y=\"%zu\" fill=\"#555555\">diamond: its direction</text>\n",
                     LEGEND - 5, TOP + 20 + 20 * json_array_size(groups));
}

void kedge_cli_groups_svg(const json_t *answer, struct kedge_buf *out)
{
    const json_t *sites = json_object_get(answer, "sites"), *groups = json_object_get(answer, "groups");
    double most = reach(groups, reach(sites, 0));
    struct frame f = {most > 0 ? (SIDE / 2.0 - 24) / most : 0};
    put_head(answer, out);
    put_sites(sites, &f, out);
    put_groups(groups, &f, out);
    kedge_buf_put_str(out, "</svg>\n");
}
