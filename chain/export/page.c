/* report.html: the export for people, in one file that loads nothing. No script, no link out; everything that
 * others wrote is escaped. */
#include <stdio.h>
#include <string.h>

#include "chain/export/work.h"

enum { ROUNDS_LISTED = 200, PAGE_MAX = 64 * 1024 * 1024 };

static const char head[] = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                           "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                           "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                           "style-src 'unsafe-inline'\">\n"
                           "<meta name=\"color-scheme\" content=\"light dark\">\n";

static const char style[] =
    "<style>\n"
    ":root{--ink:#1b1f24;--dim:#5a6470;--paper:#fff;--soft:#f3f5f7;--edge:#c9d1d9;--good:#1a7f37;--line:#"
    "8b96a3;"
    "--c0:#3b6fb6;--c1:#c4622d;--c2:#2e8b6f;--c3:#8a5ba8;--c4:#b3882a;--c5:#b8476b;--c6:#4f8aa3;--c7:#6f7f3a}"
    "\n"
    "@media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--dim:#9aa5b1;--paper:#0f1318;--soft:#1a2028;"
    "--edge:#36404b;--good:#56d364;--line:#6b7683;--c0:#6f9fe0;--c1:#e08a5a;--c2:#5cbf9e;--c3:#b68ad2;--c4:#"
    "d9b25c;"
    "--c5:#e07b9b;--c6:#7fb8d0;--c7:#a3b56a}}\n"
    "*{box-sizing:border-box}body{margin:0 auto;max-width:66rem;padding:1.5rem;background:var(--paper);"
    "color:var(--ink);font:1rem/1.5 system-ui,sans-serif}\n"
    "h1{font-size:1.6rem;margin:.2em 0}h2{font-size:1.2rem;margin:2em 0 .5em;border-bottom:1px solid "
    "var(--edge)}"
    "h3{font-size:1rem;margin:1.5em 0 .4em}\n"
    "table{border-collapse:collapse;width:100%;display:block;overflow-x:auto}"
    "th,td{text-align:left;padding:.25rem .8rem .25rem 0;border-bottom:1px solid "
    "var(--edge);vertical-align:top;"
    "white-space:nowrap}td.n,th.n{text-align:right}\n"
    "code,pre,.mono{font-family:ui-monospace,monospace;font-size:.85em}td code{white-space:normal;"
    "overflow-wrap:anywhere}pre{background:var(--soft);padding:.8rem;overflow-x:auto;border-radius:4px}\n"
    ".dim{color:var(--dim);fill:var(--dim)}.good{color:var(--good);font-weight:600}\n"
    "svg{width:100%;height:auto;font:13px system-ui,sans-serif;fill:var(--ink)}svg .mono{font-size:11px}\n"
    "svg .box{fill:var(--soft);stroke:var(--edge)}svg .idle{stroke-dasharray:4 3}svg .out{stroke:var(--good);"
    "stroke-width:2}svg .line{fill:none;stroke:var(--line);stroke-width:1.5}svg .mix{stroke-width:.6;"
    "stroke-dasharray:3 3}\n"
    ".key{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin-right:.4em}\n"
    ".c0{fill:var(--c0);background:var(--c0)}.c1{fill:var(--c1);background:var(--c1)}"
    ".c2{fill:var(--c2);background:var(--c2)}.c3{fill:var(--c3);background:var(--c3)}"
    ".c4{fill:var(--c4);background:var(--c4)}.c5{fill:var(--c5);background:var(--c5)}"
    ".c6{fill:var(--c6);background:var(--c6)}.c7{fill:var(--c7);background:var(--c7)}\n"
    "</style>\n</head>\n<body>\n";

struct page {
    struct kedgei_ex_work *w;
    struct kedge_buf out;
};

static void put(struct page *p, const char *html)
{
    kedge_buf_put_str(&p->out, html);
}

/* <td>text</td> */
static void cell(struct page *p, const char *text)
{
    put(p, "<td>");
    kedgei_ex_html(&p->out, text);
    put(p, "</td>");
}

static void digest_cell(struct page *p, const struct kedge_hash *h)
{
    char hex[KEDGE_HASH_HEX_LEN + 1];
    kedge_hash_hex(h, hex);
    kedge_buf_printf(&p->out, "<td><code>%s</code></td>", hex);
}

static void number_cell(struct page *p, uint64_t n)
{
    kedge_buf_printf(&p->out, "<td class=\"n\">%llu</td>", (unsigned long long)n);
}

/* ---- sections ---- */

static void put_summary(struct page *p)
{
    const struct kedgei_ex_work *w = p->w;
    put(p, "<h1>Provenance of ");
    kedgei_ex_html(&p->out, w->r.deployment);
    bool whole = w->o->audit.tenant_count == 0;
    put(p,
        whole
            ? "</h1>\n<p class=\"good\">The record verifies.</p>\n<p>"
            : "</h1>\n<p class=\"good\">This tenant's copy of the record verifies, as far as it goes: other "
              "tenants' ledgers are not in it and were not checked.</p>\n<p>");
    if (w->r.all_permitted) { /* else it would tell how large other tenants are */
        kedge_buf_printf(&p->out, "%llu statements in the main chain and %u ledger%s: ",
                         (unsigned long long)w->report.counts.entries, w->r.tenant_count,
                         w->r.tenant_count == 1 ? "" : "s");
    }
    kedge_buf_printf(
        &p->out,
        "every signature is by a key of the trust file, %severy released model is the one that the "
        "record names. %u model%s, %u round%s. <span class=\"dim\">Stated by ",
        whole ? "every update in it counts exactly once, " : "", w->sum.models, w->sum.models == 1 ? "" : "s",
        w->sum.rounds, w->sum.rounds == 1 ? "" : "s");
    kedgei_ex_html(&p->out, w->o->tool);
    kedge_buf_printf(&p->out,
                     " at %s. What that shows, and what it does not, is in verify-report.json.</span></p>\n",
                     w->time);
}

static int put_models(struct page *p)
{
    struct kedgei_ex_work *w = p->w;
    put(p, "<h2>Released models</h2>\n<table><tr><th>file</th><th>job</th><th class=\"n\">group</th>"
           "<th class=\"n\">round</th><th>SHA-256</th><th>entry</th></tr>\n");
    for (uint32_t j = 0; j < w->r.job_count; j++) {
        for (size_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
            uint64_t index = w->r.jobs[j]->releases[g];
            if (index == KEDGEI_EX_NONE) {
                continue;
            }
            int err = kedgei_ex_read(&w->r.main, index, w->a, w->reterr);
            if (err) {
                return err;
            }
            put(p, "<tr>");
            cell(p, w->a->u.release.file);
            cell(p, w->a->u.release.job.s);
            number_cell(p, w->a->u.release.group);
            number_cell(p, w->a->u.release.round);
            digest_cell(p, &w->a->subject);
            kedge_buf_printf(&p->out, "<td>main[%llu]</td></tr>\n", (unsigned long long)index);
        }
    }
    put(p, "</table>\n");
    return KEDGE_OK;
}

static void put_legend(struct page *p)
{
    put(p, "<p class=\"dim\">Bars: whose weight a model is. ");
    for (uint32_t i = 0; i < p->w->r.tenant_count; i++) {
        kedge_buf_printf(&p->out, "<span class=\"key c%u\"></span>", i % 8);
        kedgei_ex_html(&p->out, p->w->r.tenants[i].name);
        put(p, p->w->r.tenants[i].permitted ? " &ensp; " : " (name withheld) &ensp; ");
    }
    put(p, "</p>\n");
}

static int put_round_rows(struct page *p, const struct kedgei_ex_round *round)
{
    struct kedgei_ex_work *w = p->w;
    for (uint32_t i = 0; i < round->aggregate_count; i++) {
        int err = kedgei_ex_read(&w->r.main, round->aggregates[i], w->a, w->reterr);
        if (err) {
            return err;
        }
        const struct kedge_st_aggregate *a = &w->a->u.aggregate;
        uint64_t refused = 0;
        for (uint32_t t = 0; t < a->tenant_count; t++) {
            refused += a->tenants[t].refused;
        }
        put(p, "<tr>");
        number_cell(p, a->round);
        number_cell(p, a->group);
        cell(p, a->rule);
        number_cell(p, a->count);
        number_cell(p, a->weight_sum);
        number_cell(p, refused);
        digest_cell(p, &w->a->subject);
        put(p, "</tr>\n");
    }
    return KEDGE_OK;
}

static int put_job(struct page *p, const struct kedgei_ex_job *job)
{
    put(p, "<h2>Job ");
    kedgei_ex_html(&p->out, job->id.s);
    put(p, "</h2>\n");
    put_legend(p);
    int err = kedgei_ex_drawing(p->w, job, &p->out);
    put(p, "<h3>Rounds</h3>\n<table><tr><th class=\"n\">round</th><th class=\"n\">group</th><th>rule</th>"
           "<th class=\"n\">updates</th><th class=\"n\">weight</th><th class=\"n\">turned away</th>"
           "<th>aggregate</th></tr>\n");
    for (size_t i = 0; i < job->round_count && i < ROUNDS_LISTED && !err; i++) {
        err = put_round_rows(p, &job->rounds[i]);
    }
    put(p, "</table>\n");
    if (job->round_count > ROUNDS_LISTED) {
        kedge_buf_printf(&p->out, "<p class=\"dim\">… and %zu more rounds, in lineage.intoto.jsonl.</p>\n",
                         job->round_count - ROUNDS_LISTED);
    }
    return err;
}

static void put_metrics(struct page *p, const struct kedgei_ex_job *job)
{
    bool any = false;
    for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
        const struct kedgei_ex_metrics *m = &job->metrics[g];
        if (m->samples == 0) {
            continue;
        }
        if (!any) {
            put(p, "<h3>Evaluations</h3>\n<table><tr><th class=\"n\">group</th><th class=\"n\">round</th>"
                   "<th class=\"n\">sites</th><th class=\"n\">samples</th><th class=\"n\">");
            put(p, job->spec.shows_loss ? "loss</th></tr>\n" : "accuracy</th></tr>\n");
        }
        any = true;
        put(p, "<tr>");
        number_cell(p, g);
        number_cell(p, m->round);
        number_cell(p, m->sites);
        number_cell(p, m->samples);
        kedge_buf_printf(&p->out,
                         job->spec.shows_loss ? "<td class=\"n\">%.6g</td></tr>\n"
                                              : "<td class=\"n\">%.4f</td></tr>\n",
                         (job->spec.shows_loss ? m->loss_sum : (double)m->correct) / (double)m->samples);
    }
    put(p, any ? "</table>\n" : "");
    if (job->updates > 0 && job->joules_known) {
        kedge_buf_printf(&p->out, "<p>Energy of training, as the sites state it: %.1f J, %s.</p>\n",
                         job->joules, job->joules_modelled ? "modelled at least in part" : "measured");
    }
}

static void put_witnesses(struct page *p)
{
    const struct kedgei_ex_work *w = p->w;
    put(p, "<h2>Checkpoints and time stamps</h2>\n<table><tr><th>checkpoint</th><th>SHA-256 of the "
           "file</th></tr>\n");
    for (size_t i = 0; i < w->note_count; i++) {
        struct kedge_hash digest;
        kedge_sha256(kedge_buf_view(&w->notes[i].bytes), &digest);
        put(p, "<tr>");
        cell(p, w->notes[i].path);
        digest_cell(p, &digest);
        put(p, "</tr>\n");
    }
    put(p, "</table>\n");
    for (size_t i = 0; i < w->token_count; i++) {
        char time[KEDGEI_EX_TIME_MAX];
        kedgei_ex_format_time(w->tokens[i].stamp.time_s, time);
        kedge_buf_printf(&p->out, "<p>%s existed at <b>%s</b>, says ", w->tokens[i].checkpoint, time);
        kedgei_ex_html(&p->out, w->tokens[i].stamp.authority);
        kedge_buf_printf(&p->out, " (<code>%s</code>).</p>\n", w->tokens[i].path);
    }
    if (w->anchors > 0) {
        kedge_buf_printf(
            &p->out,
            "<p>%u anchor%s of the main chain on an Ethereum-compatible chain: <code>anchors/</code>.</p>\n",
            w->anchors, w->anchors == 1 ? "" : "s");
    }
    put(p, w->token_count
               ? ""
               : "<p class=\"dim\">No time stamp of an outside authority is in this export.</p>\n");
}

static void put_how_to(struct page *p)
{
    put(p,
        "<h2>Check it yourself</h2>\n<pre>"
        "kedge audit verify-export . --trust TRUST.json\n"
        "sha256sum models/*/*.safetensors\n"
        "kedge audit verify-model models/NAME --signature models/NAME/model.sig --key keys/models.pub.pem\n"
        "kedge ledger verify proofs/main-INDEX.tlog-proof --log VKEY --entry entries/main-INDEX.json\n"
        "openssl ts -verify -data checkpoints/FILE.note -in tsa/01.tsr -CAfile tsa/ca.pem</pre>\n"
        "<p>The keys in this folder say nothing about who holds them: compare them with what you got over "
        "another "
        "way. The whole record, re-executed decision by decision, is what <code>kedge audit replay</code> "
        "checks.</p>\n</body>\n</html>\n");
}

int kedgei_ex_page(struct kedgei_ex_work *w)
{
    struct page p = {.w = w};
    kedge_buf_init(&p.out, PAGE_MAX);
    put(&p, head);
    put(&p, "<title>Provenance of ");
    kedgei_ex_html(&p.out, w->r.deployment);
    put(&p, "</title>\n");
    put(&p, style);
    put_summary(&p);
    int err = put_models(&p);
    for (uint32_t j = 0; j < w->r.job_count && !err; j++) {
        if (w->r.jobs[j]->release_count > 0) {
            err = put_job(&p, w->r.jobs[j]);
            put_metrics(&p, w->r.jobs[j]);
        }
    }
    put_witnesses(&p);
    put_how_to(&p);
    if (!err && p.out.err) {
        err = kedge_diag_set(w->reterr, p.out.err, "report.html: %s", kedge_strerror(p.out.err));
    }
    err = err ? err : kedgei_ex_put(&w->f, kedge_buf_view(&p.out), w->reterr, "report.html");
    kedge_buf_deinit(&p.out);
    return err;
}
