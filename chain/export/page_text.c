/* The style sheet of report.html and the words that its parts are made of. Contrasts of all colours, in light
 * and dark, are computed from this text by a test (tests/unit/export/test_page.c). */
#include <inttypes.h>

#include "chain/export/page.h"

#include "common/base/os/utc.h"

const char kedgei_page_head[] = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                                "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                                "style-src 'unsafe-inline'\">\n"
                                "<meta name=\"color-scheme\" content=\"light dark\">\n";

/* On a narrow screen columns of class `wide` go, and everything else breaks where it must: only drawings of
 * many groups are wider than it, and these scroll by themselves. */
const char kedgei_page_style[] =
    "<style>\n"
    ":root{--ink:#1b1f24;--dim:#5a6470;--paper:#ffffff;--soft:#f3f5f7;--edge:#c9d1d9;--good:#1a7f37;"
    "--line:#7d8894;--c0:#3b6fb6;--c1:#c4622d;--c2:#2e8b6f;--c3:#8a5ba8;--c4:#9c7621;--c5:#b8476b;--c6:#"
    "4f8aa3;"
    "--c7:#6f7f3a}\n"
    "@media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--dim:#9aa5b1;--paper:#0f1318;--soft:#1a2028;"
    "--edge:#36404b;--good:#56d364;--line:#6b7683;--c0:#6f9fe0;--c1:#e08a5a;--c2:#5cbf9e;--c3:#b68ad2;"
    "--c4:#d9b25c;--c5:#e07b9b;--c6:#7fb8d0;--c7:#a3b56a}}\n"
    "*{box-sizing:border-box}html{-webkit-text-size-adjust:100%}"
    "body{margin:0 auto;max-width:54rem;padding:1.5rem 1rem;background:var(--paper);color:var(--ink);"
    "font:1rem/1.5 system-ui,sans-serif;overflow-wrap:anywhere}\n"
    "h1{font-size:1.6rem;line-height:1.25;margin:.2em 0}h2{font-size:1.25rem;margin:2em 0 .5em;"
    "border-bottom:1px solid var(--edge)}h3{font-size:1.05rem;margin:1.5em 0 .4em}\n"
    "dl{display:grid;grid-template-columns:8.5rem 1fr;gap:.6rem 1rem;margin:1rem "
    "0}dt{font-weight:600}dd{margin:0}"
    "dd p,dd ul{margin:0 0 .4em}ul{padding-left:1.2rem}li{margin:.3em 0}\n"
    "table{border-collapse:collapse;width:100%;margin:.5rem 0}caption{text-align:left;color:var(--dim)}"
    "th,td{text-align:left;padding:.25rem .7rem .25rem 0;border-bottom:1px solid var(--edge);"
    "vertical-align:top;overflow-wrap:break-word}.name,td "
    "code{overflow-wrap:anywhere}.n{text-align:right}th.n,td.n{padding-right:1rem}\n"
    "code,pre,.mono{font-family:ui-monospace,monospace;font-size:.85em}"
    "pre{background:var(--soft);padding:.8rem;border-radius:4px;white-space:pre-wrap}\n"
    ".dim{color:var(--dim)}svg .dim{fill:var(--dim)}.good{color:var(--good);font-weight:600}\n"
    "svg{display:block;width:100%;max-width:30rem;height:auto;font:13px system-ui,sans-serif;fill:var(--ink)}"
    "svg .mono{font-size:11px}.scroll{overflow-x:auto}.scroll svg{width:auto;max-width:none}\n"
    "svg .box{fill:var(--soft);stroke:var(--edge)}svg .idle{stroke-dasharray:4 3}svg .out{stroke:var(--good);"
    "stroke-width:2}svg .line{fill:none;stroke:var(--line);stroke-width:1.5}svg .mix{stroke-width:.6;"
    "stroke-dasharray:3 3}svg .grid{stroke:var(--edge)}svg .curve{fill:none}svg "
    ".all{stroke:var(--ink);stroke-width:2}\n"
    ".key{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin-right:.4em}\n"
    ".c0{fill:var(--c0);stroke:var(--c0)}.c1{fill:var(--c1);stroke:var(--c1)}.c2{fill:var(--c2);stroke:var(--"
    "c2)}"
    ".c3{fill:var(--c3);stroke:var(--c3)}.c4{fill:var(--c4);stroke:var(--c4)}.c5{fill:var(--c5);stroke:var(--"
    "c5)}"
    ".c6{fill:var(--c6);stroke:var(--c6)}.c7{fill:var(--c7);stroke:var(--c7)}\n"
    ".key.c0{background:var(--c0)}.key.c1{background:var(--c1)}.key.c2{background:var(--c2)}"
    ".key.c3{background:var(--c3)}.key.c4{background:var(--c4)}.key.c5{background:var(--c5)}"
    ".key.c6{background:var(--c6)}.key.c7{background:var(--c7)}\n"
    "svg .bar{stroke:none}\n"
    "@media "
    "(max-width:36rem){.wide{display:none}dl{grid-template-columns:1fr;gap:.2rem}dd{margin-bottom:.6rem}"
    "table{table-layout:fixed;font-size:.8rem}.when{width:5.6rem}th,td{overflow-wrap:anywhere;hyphens:auto}"
    "th,td,th.n,td.n{padding-right:.4rem}}\n"
    ".day{white-space:nowrap}\n"
    "@media print{.job{break-before:page}body{max-width:none}}\n"
    "</style>\n</head>\n<body>\n<main>\n";

void kedgei_page_put(struct kedgei_page *p, const char *html)
{
    kedge_buf_put_str(&p->out, html);
}

void kedgei_page_text(struct kedgei_page *p, const char *text)
{
    kedgei_ex_html(&p->out, text);
}

void kedgei_page_count(struct kedgei_page *p, uint64_t n, const char *one, const char *many)
{
    kedge_buf_printf(&p->out, "%" PRIu64 " %s", n, n == 1 ? one : many);
}

void kedgei_page_digest(struct kedgei_page *p, const struct kedge_hash *h)
{
    char hex[KEDGE_HASH_HEX_LEN + 1];
    kedge_hash_hex(h, hex);
    kedge_buf_printf(&p->out, "<code>%s</code>", hex);
}

static int two_digits(const char *s)
{
    return 10 * (s[0] - '0') + (s[1] - '0');
}

void kedgei_page_time(struct kedgei_page *p, uint64_t ms, bool is_short)
{
    static const char *const months[] = {"January",   "February", "March",    "April",
                                         "May",       "June",     "July",     "August",
                                         "September", "October",  "November", "December"};
    struct kedge_utc exact = kedge_utc((int64_t)(ms / 1000), KEDGE_UTC_RFC3339, "");
    if (exact.s[0] == '\0') {
        kedgei_page_put(p, "not stated");
        return;
    }
    kedge_buf_printf(&p->out, "<time datetime=\"%s\">", exact.s);
    if (is_short) {
        kedge_buf_printf(&p->out, "<span class=\"day\">%.10s</span> %.5s</time>", exact.s, exact.s + 11);
    } else {
        kedge_buf_printf(&p->out, "%d %s %.4s, %.5s UTC</time>", two_digits(exact.s + 8),
                         months[two_digits(exact.s + 5) - 1], exact.s, exact.s + 11);
    }
}

void kedgei_page_percent(struct kedgei_page *p, double part, double whole)
{
    if (whole > 0) {
        kedge_buf_printf(&p->out, "%.1f&#160;%%", 100 * part / whole);
    } else {
        kedgei_page_put(p, "–");
    }
}

void kedgei_page_tenant(struct kedgei_page *p, const struct kedge_hash *salted)
{
    const struct kedgei_ex_log *t = kedgei_ex_tenant(&p->w->r, salted);
    char hex[KEDGE_HASH_HEX_LEN + 1];
    if (t && t->permitted) {
        kedgei_page_text(p, t->name);
        return;
    }
    kedge_hash_hex(salted, hex);
    kedge_buf_printf(&p->out, "<code>%.12s</code> (name withheld)", hex);
}
