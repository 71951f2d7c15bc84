/* One job in report.html: when it was, who gave what, how good its models were, how they were made. */
#include <inttypes.h>

#include "chain/export/page.h"
#include "common/base/try.h"

enum { ROUNDS_LISTED = 200, SITES_LISTED = 200 };

static void number_cell(struct kedgei_page *p, uint64_t n)
{
    kedge_buf_printf(&p->out, "<td class=\"n\">%" PRIu64 "</td>", n);
}

static void put_summary(struct kedgei_page *p, const struct kedgei_ex_job *job)
{
    size_t closed = 0;
    for (size_t i = 0; i < job->round_count; i++) {
        closed += job->rounds[i].step != KEDGEI_EX_NONE;
    }
    kedgei_page_put(p, "<p>Opened: ");
    kedgei_page_time(p, job->opened_ms, false);
    kedgei_page_put(p, job->closed == KEDGEI_EX_NONE ? ". Not ended yet; " : ". Ended: ");
    if (job->closed != KEDGEI_EX_NONE) {
        kedgei_page_time(p, job->closed_ms, false);
        kedgei_page_put(p, job->outcome == KEDGE_OUTCOME_COMPLETED   ? ", completed, after "
                           : job->outcome == KEDGE_OUTCOME_CANCELLED ? ", cancelled, after "
                                                                     : ", failed, after ");
    }
    kedgei_page_count(p, closed, "round", "rounds");
    kedgei_page_put(p, " (times by the coordinator’s clock). Data: “");
    kedgei_page_text(p, job->spec.data);
    kedgei_page_put(p, "”. Strategy: ");
    kedgei_page_text(p, job->spec.strategy ? job->spec.strategy->name : "unknown");
    kedgei_page_put(p, ". What the organisations agreed to is the job’s spec, SHA-256 ");
    kedgei_page_digest(p, &job->spec_digest);
    kedgei_page_put(p, ".</p>\n");
}

/* ---- who ---- */

static void put_organisations(struct kedgei_page *p, const struct kedgei_ex_job *job)
{
    double all = 0;
    for (uint32_t i = 0; i < job->part_count; i++) {
        all += job->parts[i].weight;
    }
    kedgei_page_put(
        p, "<h3>Who took part</h3>\n<table><caption>Organisations</caption><thead><tr>"
           "<th scope=\"col\">organi&#173;sation</th><th scope=\"col\" class=\"n\">share of the weight</th>"
           "<th scope=\"col\" class=\"n\">updates used</th>"
           "<th scope=\"col\" class=\"n\">turned away</th></tr></thead>\n<tbody>\n");
    for (uint32_t i = 0; i < job->part_count; i++) {
        const struct kedgei_ex_part *part = &job->parts[i];
        kedgei_page_put(p, "<tr><th scope=\"row\" class=\"name\">");
        kedgei_page_tenant(p, &part->id);
        kedgei_page_put(p, "</th><td class=\"n\">");
        kedgei_page_percent(p, part->weight, all);
        kedgei_page_put(p, "</td>");
        number_cell(p, part->used);
        number_cell(p, part->refused);
        kedgei_page_put(p, "</tr>\n");
    }
    kedgei_page_put(p, "</tbody></table>\n");
}

static void put_sites(struct kedgei_page *p, const struct kedgei_ex_job *job)
{
    if (job->site_count == 0) {
        return;
    }
    kedgei_page_put(p, "<table><caption>Sites of the organisations named here</caption><thead><tr>"
                       "<th scope=\"col\">organi&#173;sation</th><th scope=\"col\">site</th>"
                       "<th scope=\"col\" class=\"n\">training samples</th>"
                       "<th scope=\"col\" class=\"n\">updates used</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < job->site_count && i < SITES_LISTED; i++) {
        const struct kedgei_ex_site *s = &job->sites[i];
        kedgei_page_put(p, "<tr><td class=\"name\">");
        kedgei_page_text(p, p->w->r.tenants[s->tenant].name);
        kedgei_page_put(p, "</td><th scope=\"row\" class=\"name\">");
        kedgei_page_text(p, s->id.s);
        kedgei_page_put(p, "</th>");
        number_cell(p, s->samples);
        kedge_buf_printf(&p->out, "<td class=\"n\">%" PRIu64 " of %" PRIu64 "</td></tr>\n", s->used, s->sent);
    }
    kedgei_page_put(p, "</tbody></table>\n");
    if (job->site_count > SITES_LISTED) {
        kedge_buf_printf(&p->out, "<p class=\"dim\">… and %zu more sites, in lineage.intoto.jsonl.</p>\n",
                         job->site_count - SITES_LISTED);
    }
}

/* ---- how good ---- */

static void put_metrics(struct kedgei_page *p, const struct kedgei_ex_job *job)
{
    if (!job->evaluated) {
        return;
    }
    bool loss = job->spec.shows_loss;
    kedge_buf_printf(&p->out, "<h3>%s over the rounds</h3>\n", loss ? "Loss" : "Accuracy");
    kedgei_ex_chart(job, &p->out);
    kedge_buf_printf(&p->out,
                     "<table><caption>Last evaluation, on test samples of the sites</caption><thead><tr>"
                     "<th scope=\"col\" class=\"n\">group</th><th scope=\"col\" class=\"n\">round</th>"
                     "<th scope=\"col\" class=\"n wide\">sites</th><th scope=\"col\" class=\"n\">samples</th>"
                     "<th scope=\"col\" class=\"n\">%s</th></tr></thead>\n<tbody>\n",
                     loss ? "loss" : "accuracy");
    for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
        const struct kedgei_ex_metrics *m = &job->metrics[g];
        if (m->samples == 0) {
            continue;
        }
        kedgei_page_put(p, "<tr>");
        number_cell(p, g);
        number_cell(p, m->round);
        kedge_buf_printf(&p->out, "<td class=\"n wide\">%" PRIu64 "</td>", m->sites);
        number_cell(p, m->samples);
        kedgei_page_put(p, "<td class=\"n\">");
        if (loss) {
            kedge_buf_printf(&p->out, "%.4g", m->loss_sum / (double)m->samples);
        } else {
            kedgei_page_percent(p, (double)m->correct, (double)m->samples);
        }
        kedgei_page_put(p, "</td></tr>\n");
    }
    kedgei_page_put(p, "</tbody></table>\n");
}

static void put_energy(struct kedgei_page *p, const struct kedgei_ex_job *job)
{
    if (job->updates > 0 && job->joules_known) {
        kedge_buf_printf(&p->out, "<p>Energy of training, as the sites state it: %.1f J, %s.</p>\n",
                         job->joules, job->joules_modelled ? "modelled at least in part" : "measured");
    }
}

/* ---- how they were made ---- */

static int put_drawing(struct kedgei_page *p, const struct kedgei_ex_job *job)
{
    kedgei_page_put(
        p, "<h3>How the models were made</h3>\n<p>From top to bottom: each box is a group’s model after "
           "a round, with the beginning of its SHA-256. The bar in it shows whose weight is in it: ");
    for (uint32_t i = 0; i < job->part_count; i++) {
        kedge_buf_printf(&p->out, "%s<span class=\"key c%u\"></span>", i ? ", " : "", i % 8);
        kedgei_page_tenant(p, &job->parts[i].id);
    }
    kedgei_page_put(p, ".</p>\n");
    return kedgei_ex_drawing(p->w, job, &p->out);
}

static int put_round_rows(struct kedgei_page *p, const struct kedgei_ex_round *round)
{
    struct kedgei_ex_work *w = p->w;
    for (uint32_t i = 0; i < round->aggregate_count; i++) {
        KEDGE_TRY(kedgei_ex_read(&w->r.main, round->aggregates[i], w->a, w->reterr));
        const struct kedge_st_aggregate *a = &w->a->u.aggregate;
        char hex[KEDGE_HASH_HEX_LEN + 1];
        uint64_t refused = 0;
        for (uint32_t t = 0; t < a->tenant_count; t++) {
            refused += a->tenants[t].refused;
        }
        kedge_hash_hex(&w->a->subject, hex);
        kedgei_page_put(p, "<tr>");
        number_cell(p, a->round);
        kedgei_page_put(p, "<td>");
        kedgei_page_time(p, round->closed_ms, true);
        kedgei_page_put(p, "</td>");
        number_cell(p, a->group);
        number_cell(p, a->count);
        number_cell(p, refused);
        kedgei_page_put(p, "<td class=\"wide\">");
        kedgei_page_text(p, a->rule);
        kedge_buf_printf(&p->out, "</td><td class=\"wide\"><code>%.16s</code></td></tr>\n", hex);
    }
    return KEDGE_OK;
}

static int put_rounds(struct kedgei_page *p, const struct kedgei_ex_job *job)
{
    int err = KEDGE_OK;
    kedgei_page_put(
        p, "<h3>Rounds</h3>\n<table><caption>Times in UTC, by the coordinator’s clock</caption><thead><tr>"
           "<th scope=\"col\" class=\"n\">round</th><th scope=\"col\" class=\"when\">closed</th>"
           "<th scope=\"col\" class=\"n\">group</th><th scope=\"col\" class=\"n\">used</th>"
           "<th scope=\"col\" class=\"n\">turned away</th><th scope=\"col\" class=\"wide\">rule</th>"
           "<th scope=\"col\" class=\"wide\">SHA-256 of their sum begins</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < job->round_count && i < ROUNDS_LISTED && !err; i++) {
        err = put_round_rows(p, &job->rounds[i]);
    }
    kedgei_page_put(p, "</tbody></table>\n");
    if (job->round_count > ROUNDS_LISTED) {
        kedge_buf_printf(&p->out, "<p class=\"dim\">… and %zu more rounds, in lineage.intoto.jsonl.</p>\n",
                         job->round_count - ROUNDS_LISTED);
    }
    return err;
}

int kedgei_page_job(struct kedgei_page *p, const struct kedgei_ex_job *job)
{
    kedgei_page_put(p, "<section class=\"job\">\n<h2>Job ");
    kedgei_page_text(p, job->id.s);
    kedgei_page_put(p, "</h2>\n");
    put_summary(p, job);
    put_organisations(p, job);
    put_sites(p, job);
    put_metrics(p, job);
    put_energy(p, job);
    KEDGE_TRY(put_drawing(p, job));
    int err = put_rounds(p, job);
    kedgei_page_put(p, "</section>\n");
    return err;
}
