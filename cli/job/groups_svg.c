/* The picture of a job's groups as SVG, from the two coordinates of each site that the view computed
 * (chain/view/groups_view.h). No script, no font and no link in it: it may be opened anywhere and looks the
 * same. */
#include "cli/job/groups_svg.h"

#include <math.h>
#include <string.h>

#include "cli/cli.h"

enum {
    WIDTH = 720,
    HEIGHT = 580,
    LEFT = 40,
    TOP = 64,
    SIDE = 480,
    LEGEND = 560,
    LINE = 20, /* of the list of groups */
    RADIUS = 5,
    DIAMOND = 9,
    GAP = 2,          /* between two dots */
    DOTS_MAX = 512,   /* of more, those after lie where they lie */
    TRIES_MAX = 2048, /* places for one dot */
};

/* Told apart also by people who see few colours (Okabe and Ito), with an outline that is seen on any of them;
 * from the ninth group on hollow, from the seventeenth on dashed. Beyond them the number tells. */
static const char *const colours[] = {"#0072b2", "#e69f00", "#009e73", "#d55e00",
                                      "#cc79a7", "#56b4e9", "#b8860b", "#444444"};
enum { COLOURS = sizeof colours / sizeof colours[0] };

/* Colours stand at the elements, where every program finds them; those that know of a dark screen take these.
 */
static const char dark[] =
    "<style>@media (prefers-color-scheme:dark){.paper{fill:#0f1318}.ink{fill:#e6edf3}.dim{fill:#9aa5b1}"
    ".edge{stroke:#6b7683}.axis{stroke:#36404b}.dot{stroke:#e6edf3}.g0{fill:#3f9fe0}.g7{fill:#9a9a9a}"
    ".h0{stroke:#3f9fe0}.h7{stroke:#9a9a9a}}</style>\n";

static void put_paint(struct kedge_buf *out, int64_t group)
{
    size_t g = group >= 0 ? (size_t)group : 0, c = g % COLOURS;
    if (g < COLOURS) {
        kedge_buf_printf(out, "class=\"dot g%zu\" fill=\"%s\" stroke=\"#1b1f24\" stroke-width=\"0.8\"", c,
                         colours[c]);
    } else {
        kedge_buf_printf(out, "class=\"h%zu\" fill-opacity=\"0\" stroke=\"%s\" stroke-width=\"2\"%s", c,
                         colours[c], g < 2 * (size_t)COLOURS ? "" : " stroke-dasharray=\"2 2\"");
    }
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

/* Where things lie in the picture, in its units. Sites whose updates are alike would lie on each other: each
 * dot takes the nearest free place on a spiral around its own. */
struct frame {
    double scale;
    size_t count, moved; /* places that are taken; dots that lie beside their own */
    struct spot {
        double x, y, radius;
    } taken[DOTS_MAX];
};

/* The same unit on both axes, or distances between sites would not be distances in the picture. */
static double at_x(const struct frame *f, const json_t *row)
{
    return LEFT + SIDE / 2.0 + f->scale * kedge_cli_real(row, "x");
}

static double at_y(const struct frame *f, const json_t *row)
{
    return TOP + SIDE / 2.0 - f->scale * kedge_cli_real(row, "y");
}

static void take(struct frame *f, double x, double y, double radius)
{
    if (f->count < DOTS_MAX) {
        f->taken[f->count++] = (struct spot){x, y, radius};
    }
}

static bool is_free(const struct frame *f, double x, double y)
{
    bool inside =
        x >= LEFT + RADIUS && x <= LEFT + SIDE - RADIUS && y >= TOP + RADIUS && y <= TOP + SIDE - RADIUS;
    for (size_t i = 0; i < f->count && inside; i++) {
        double dx = x - f->taken[i].x, dy = y - f->taken[i].y, least = RADIUS + GAP + f->taken[i].radius;
        inside = dx * dx + dy * dy >= least * least;
    }
    return inside;
}

/* Points of a sunflower: each is a golden angle further and a little farther out, so the first free one is
 * close to the wanted place and no direction is preferred. Beyond DOTS_MAX dots are left where they lie: a
 * picture with so many is read by its colours. */
static void find_place(struct frame *f, double *x, double *y)
{
    static const double golden_angle = 2.399963229728653;
    for (int i = 0; i < TRIES_MAX && f->count < DOTS_MAX; i++) {
        double r = 2.5 * sqrt(i), px = *x + r * cos(i * golden_angle), py = *y + r * sin(i * golden_angle);
        if (is_free(f, px, py)) {
            f->moved += i > 0;
            *x = px;
            *y = py;
            break;
        }
    }
    take(f, *x, *y, RADIUS);
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

/* As high as the square of dots, or as the list of groups beside it. */
static size_t height_of(const json_t *o)
{
    const size_t list = TOP + 20 + LINE * (json_array_size(json_object_get(o, "groups")) + 1);
    return list > HEIGHT ? list : HEIGHT;
}

/* Everything that a browser shows without the style stands as an attribute of its element; the style only
 * changes colours on a dark screen. The title is what screen readers say. */
static void put_head(const json_t *o, struct kedge_buf *out)
{
    const size_t height = height_of(o);
    kedge_buf_printf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %zu\" width=\"%d\" height=\"%zu\" "
        "font-family=\"sans-serif\" font-size=\"13\" role=\"img\">\n",
        WIDTH, height, WIDTH, height);
    kedge_buf_put_str(out, "<title>Groups of job ");
    put_words(out, kedge_cli_text(o, "job"));
    kedge_buf_printf(out, " after round %lld</title>\n", (long long)kedge_cli_int(o, "round"));
    kedge_buf_put_str(out, dark);
    kedge_buf_printf(out, "<rect class=\"paper\" width=\"%d\" height=\"%zu\" fill=\"#ffffff\"/>\n", WIDTH,
                     height);
    kedge_buf_printf(
        out, "<text class=\"ink\" fill=\"#1b1f24\" x=\"%d\" y=\"24\" font-size=\"17\">Groups of job ", LEFT);
    put_words(out, kedge_cli_text(o, "job"));
    kedge_buf_printf(out, " after round %lld</text>\n", (long long)kedge_cli_int(o, "round"));
    kedge_buf_printf(
        out,
        "<text class=\"dim\" x=\"%d\" y=\"46\" fill=\"#5a6470\">A dot is a site: its pre-training update, by "
        "cosines. The two axes have %.0f %% of the spread.</text>\n",
        LEFT, 100 * kedge_cli_real(o, "picture_shown"));
    kedge_buf_printf(out,
                     "<rect class=\"edge\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" "
                     "stroke=\"#999999\"/>\n"
                     "<path class=\"axis\" d=\"M%d %dH%dM%d %dV%d\" stroke=\"#dddddd\"/>\n",
                     LEFT, TOP, SIDE, SIDE, LEFT, TOP + SIDE / 2, LEFT + SIDE, LEFT + SIDE / 2, TOP,
                     TOP + SIDE);
}

static void put_sites(const json_t *sites, struct frame *f, struct kedge_buf *out)
{
    const json_t *row;
    size_t i;
    json_array_foreach(sites, i, row)
    {
        if (strcmp(kedge_cli_text(row, "update"), "placed") != 0) {
            continue;
        }
        double x = at_x(f, row), y = at_y(f, row);
        find_place(f, &x, &y);
        kedge_buf_printf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\" ", x, y, RADIUS);
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
    if (f->moved > 0) {
        kedge_buf_printf(
            out,
            "<text class=\"dim\" x=\"%d\" y=\"%d\" fill=\"#5a6470\">%zu dot%s moved aside, so that "
            "none lies on another.</text>\n",
            LEFT, TOP + SIDE + 22, f->moved, f->moved == 1 ? " is" : "s are");
    }
}

/* Directions lie where they lie: dots make room for them. */
static void take_groups(const json_t *groups, struct frame *f)
{
    const json_t *row;
    size_t i;
    json_array_foreach(groups, i, row)
    {
        if (!json_object_get(row, "part_of")) {
            take(f, at_x(f, row), at_y(f, row), DIAMOND);
        }
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
        kedge_buf_printf(
            out,
            "<text class=\"ink\" fill=\"#1b1f24\" x=\"%.1f\" y=\"%.1f\" font-weight=\"bold\">%lld</text>\n",
            x + 11, y - 6, group);
        kedge_buf_printf(out, "<circle cx=\"%d\" cy=\"%zu\" r=\"%d\" ", LEGEND, TOP + 10 + LINE * i, RADIUS);
        put_paint(out, group);
        kedge_buf_printf(
            out,
            "/>\n<text class=\"ink\" fill=\"#1b1f24\" x=\"%d\" y=\"%zu\">group %lld, %lld site%s</text>\n",
            LEGEND + 14, TOP + 14 + LINE * i, group, (long long)kedge_cli_int(row, "sites"),
            kedge_cli_int(row, "sites") == 1 ? "" : "s");
    }
    kedge_buf_printf(
        out, "<text class=\"dim\" x=\"%d\" y=\"%zu\" fill=\"#5a6470\">diamond: its direction</text>\n",
        LEGEND - 5, TOP + 20 + LINE * json_array_size(groups));
}

/* The groups' directions take their places before the sites, because those are moved to make room. They are
 * drawn after them, on top. */
void kedge_cli_groups_svg(const json_t *answer, struct kedge_buf *out)
{
    const json_t *sites = json_object_get(answer, "sites"), *groups = json_object_get(answer, "groups");
    double most = reach(groups, reach(sites, 0));
    struct frame f = {.scale = most > 0 ? (SIDE / 2.0 - 24) / most : 0};
    put_head(answer, out);
    take_groups(groups, &f);
    put_sites(sites, &f, out);
    put_groups(groups, &f, out);
    kedge_buf_put_str(out, "</svg>\n");
}
