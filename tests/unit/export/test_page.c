/* report.html: what its first page says, to whom, and that everybody can read it. */
#include <ctype.h>
#include <math.h>

#include "tests/unit/export/made.h"

#define REASON "wrong <b>labels</b> at org-b"

static struct kedge_buf page;

/* A record with times, with a job that was cancelled, and its export for these tenants (NULL: all). */
static void export_page(struct made *m, const struct kedge_id *tenant, bool nobody)
{
    prepare(m);
    ck_assert_int_eq(kedge_dir_remove(at("fed")), KEDGE_OK);
    kedge_trust_deinit(&m->trust);
    fx_clock(UINT64_C(1795780980123)); /* 2026-11-27 12:03:00 UTC */
    fx_cancelled_too(at("fed"), REASON);
    fx_clock(0);
    ck_assert_int_eq(kedge_trust_read(at("fed/trust.json"), &m->trust, &m->d), KEDGE_OK);
    m->o.all_tenants = !tenant && !nobody;
    m->o.tenants = tenant;
    m->o.tenant_count = tenant ? 1 : 0;
    make(m);
    kedge_buf_init(&page, 1 << 22);
    ck_assert_int_eq(kedge_file_read(at("out/report.html"), &page, &m->d), KEDGE_OK);
    kedge_buf_put_u8(&page, 0);
}

static bool says(const char *text)
{
    return strstr((const char *)page.ptr, text) != NULL;
}

#define SAYS(text) ck_assert_msg(says(text), "not said: %s", text)
#define SAYS_NOT(text) ck_assert_msg(!says(text), "said: %s", text)

static void end(struct made *m)
{
    kedge_buf_deinit(&page);
    finish(m);
}

START_TEST(the_first_page_says_who_what_when_and_which_data)
{
    struct made m;
    export_page(&m, NULL, false);
    SAYS("The organisation <b>org-a</b>, with the sites s1, s2.");
    SAYS("The model <b>plain-g0.safetensors</b> of the job plain, made in round 2");
    SAYS("It was right for 75.0&#160;% of 20 test samples of 1 site after round 2, as the sites state.");
    SAYS("From <time datetime=\"2026-11-27T12:03:00Z\">27 November 2026, 12:03 UTC</time> to "
         "<time datetime=\"2026-11-27T12:08:00Z\">27 November 2026, 12:08 UTC</time>, by the coordinator’s "
         "own clock");
    SAYS("What each site keeps under the name “fx”: ");
    SAYS("The job stopped gave no model: cancelled <time datetime=\"2026-11-27T12:12:00Z\">");
    SAYS("“wrong &lt;b&gt;labels&lt;/b&gt; at org-b”");
    SAYS("<h2>What is proved, and by what</h2>");
    SAYS("every update in it counts exactly once");
    SAYS("<h2>What is not proved</h2>");
    SAYS("<li>That the models are what the recorded updates give");
    SAYS("aria-label=\"Accuracy of job plain: 75.0 % after round 1, 75.0 % after round 2\"");
    SAYS("<span class=\"day\">2026-11-27</span> 12:05</time>");
    end(&m);
}
END_TEST

/* Who exports for one organisation gets no name of another's, nor a reason that could have one. */
START_TEST(names_are_for_those_who_may_know_them)
{
    struct made m;
    struct kedge_id tenant;
    ck_assert_int_eq(kedge_id_from(kedge_view_str("org-a"), &tenant), KEDGE_OK);
    export_page(&m, &tenant, false);
    SAYS("The organisation <b>org-a</b>, with the sites s1, s2.");
    SAYS("1 organisation whose name is not in this export");
    SAYS("</code> (name withheld)");
    SAYS("The job stopped gave no model: cancelled");
    SAYS_NOT("org-b");
    SAYS_NOT("labels");
    end(&m);
    export_page(&m, NULL, true);
    SAYS("2 organisations whose names are not in this export");
    SAYS("Nothing in this export says how good it is.");
    SAYS_NOT("org-");
    SAYS_NOT("The job stopped");
    end(&m);
}
END_TEST

/* ---- hostile words and outside resources ---- */

/* Elements open and close in order, and nothing that runs or loads is there. */
START_TEST(the_page_is_whole_and_loads_nothing)
{
    static const char *const bad[] = {"<script", "<img",    "<link", "<iframe", "src=",       "href=",
                                      "url(",    "@import", "http:", "https:",  "javascript:"};
    static const char *const empty[] = {"!DOCTYPE", "meta", NULL};
    struct made m;
    char open[64][16];
    size_t depth = 0;
    export_page(&m, NULL, false);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        SAYS_NOT(bad[i]);
    }
    for (const char *p = strchr((const char *)page.ptr, '<'); p; p = strchr(p + 1, '<')) {
        const char *end = strchr(p, '>');
        bool closes = p[1] == '/', is_empty = end && end[-1] == '/';
        size_t len = strcspn(p + 1 + closes, " >/\n");
        ck_assert(end && len > 0 && len < sizeof open[0] && depth < 64);
        for (size_t i = 0; empty[i]; i++) {
            is_empty = is_empty || (len == strlen(empty[i]) && strncmp(p + 1, empty[i], len) == 0);
        }
        if (closes) {
            ck_assert_uint_gt(depth, 0);
            depth--;
            ck_assert_msg(strlen(open[depth]) == len && strncmp(open[depth], p + 2, len) == 0, "<%s> … %.*s",
                          open[depth], (int)(end - p), p);
        } else if (!is_empty) {
            snprintf(open[depth++], sizeof open[0], "%.*s", (int)len, p + 1);
        }
    }
    ck_assert_uint_eq(depth, 0);
    SAYS("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    SAYS("default-src 'none'; style-src 'unsafe-inline'");
    end(&m);
}
END_TEST

/* ---- contrast: WCAG 2.2, 1.4.3 (text 4.5) and 1.4.11 (parts of drawings 3) ---- */

static double channel(const char *hex)
{
    char two[3] = {hex[0], hex[1], 0};
    double v = (double)strtoul(two, NULL, 16) / 255;
    return v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
}

/* The n-th value (0: light, 1: dark) of a colour of the style sheet. */
static double luminance(const char *name, int nth)
{
    char text[32];
    snprintf(text, sizeof text, "--%s:#", name);
    const char *at = (const char *)page.ptr;
    for (int i = 0; i <= nth; i++) {
        at = strstr(at, text);
        ck_assert_msg(at != NULL, "no colour %s", name);
        at += strlen(text);
    }
    for (int i = 0; i < 6; i++) {
        ck_assert_msg(isxdigit((unsigned char)at[i]), "%s: six digits", name);
    }
    return 0.2126 * channel(at) + 0.7152 * channel(at + 2) + 0.0722 * channel(at + 4);
}

static double contrast(const char *a, const char *b, int nth)
{
    double x = luminance(a, nth), y = luminance(b, nth);
    return x > y ? (x + 0.05) / (y + 0.05) : (y + 0.05) / (x + 0.05);
}

START_TEST(colours_can_be_told_from_what_is_under_them)
{
    static const struct {
        const char *name;
        double least;
    } colours[] = {{"ink", 4.5}, {"dim", 4.5}, {"good", 4.5}, {"line", 3}, {"c0", 3}, {"c1", 3},
                   {"c2", 3},    {"c3", 3},    {"c4", 3},     {"c5", 3},   {"c6", 3}, {"c7", 3}};
    struct made m;
    export_page(&m, NULL, false);
    for (int nth = 0; nth < 2; nth++) {
        for (size_t i = 0; i < sizeof colours / sizeof colours[0]; i++) {
            double paper = contrast(colours[i].name, "paper", nth),
                   soft = contrast(colours[i].name, "soft", nth);
            ck_assert_msg(paper >= colours[i].least && soft >= colours[i].least, "%s, %s: %.2f, %.2f",
                          colours[i].name, nth ? "dark" : "light", paper, soft);
        }
    }
    ck_assert(contrast("paper", "soft", 0) < 3); /* the test can say no */
    end(&m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("export-page");
    TCase *t = tcase_create("page");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, the_first_page_says_who_what_when_and_which_data);
    tcase_add_test(t, names_are_for_those_who_may_know_them);
    tcase_add_test(t, the_page_is_whole_and_loads_nothing);
    tcase_add_test(t, colours_can_be_told_from_what_is_under_them);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? 0 : 1;
}
