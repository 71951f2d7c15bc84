/* The first page of report.html: who, what, when, which data, what is proved and by what, and what is not. It
 * is for readers who decide about a model and are no engineers: each word of the trade is explained below it.
 */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "chain/export/page.h"
#include "common/base/try.h"

enum { NAMES_SHOWN = 50 };

/* ---- who ---- */

/* Sites of one of the record's tenants over all jobs that are exported, each once. Rows of a job ascend, so a
 * site is new unless an earlier job has it. */
static bool is_in_earlier_job(const struct kedgei_ex_record *r, uint32_t job,
                              const struct kedgei_ex_site *site)
{
    for (uint32_t j = 0; j < job; j++) {
        for (size_t i = 0; i < r->jobs[j]->site_count; i++) {
            const struct kedgei_ex_site *s = &r->jobs[j]->sites[i];
            if (s->tenant == site->tenant && kedge_id_eq(&s->id, &site->id)) {
                return true;
            }
        }
    }
    return false;
}

static void put_sites_of(struct kedgei_page *p, uint32_t tenant)
{
    const struct kedgei_ex_record *r = &p->w->r;
    uint32_t told = 0;
    for (uint32_t j = 0; j < r->job_count && told <= NAMES_SHOWN; j++) {
        for (size_t i = 0; i < r->jobs[j]->site_count && told <= NAMES_SHOWN; i++) {
            const struct kedgei_ex_site *s = &r->jobs[j]->sites[i];
            if (s->tenant != tenant || is_in_earlier_job(r, j, s)) {
                continue;
            }
            if (told < NAMES_SHOWN) {
                kedgei_page_put(p, told ? ", " : ", with the sites ");
                kedgei_page_text(p, s->id.s);
            } else {
                kedgei_page_put(p, " and others");
            }
            told++;
        }
    }
}

static void put_who(struct kedgei_page *p)
{
    const struct kedgei_ex_record *r = &p->w->r;
    uint32_t withheld = 0;
    kedgei_page_put(p, "<dt>Who</dt><dd><ul>");
    for (uint32_t i = 0; i < r->tenant_count; i++) {
        withheld += !r->tenants[i].permitted;
        if (r->tenants[i].permitted) {
            kedgei_page_put(p, "<li>The organisation <b>");
            kedgei_page_text(p, r->tenants[i].name);
            kedgei_page_put(p, "</b>");
            put_sites_of(p, i);
            kedgei_page_put(p, ".</li>");
        }
    }
    if (withheld > 0) {
        kedgei_page_put(p, "<li>");
        kedgei_page_count(p, withheld, "organisation whose name is", "organisations whose names are");
        kedgei_page_put(p, " not in this export, for it was not asked to name them.</li>");
    }
    if (p->w->o->audit.tenant_count > 0) {
        kedgei_page_put(p, "<li>Other organisations, whose part of the record is not in this copy.</li>");
    }
    kedgei_page_put(p, "<li>The coordinator of <b>");
    kedgei_page_text(p, r->deployment);
    kedgei_page_put(p,
                    "</b>, which took what the sites sent and computed the models.</li></ul><p>This report "
                    "was made by the holder of the key with the SHA-256 ");
    struct kedge_hash key;
    kedge_public_key_hash(&p->w->o->key.public, &key);
    kedgei_page_digest(p, &key);
    kedgei_page_put(p, ", with the program ");
    kedgei_page_text(p, p->w->o->tool);
    kedgei_page_put(p, ". Which person or company holds a key, the record does not say.</p></dd>\n");
}

/* ---- what ---- */

static void put_quality(struct kedgei_page *p, const struct kedgei_ex_job *job, uint32_t group)
{
    const struct kedgei_ex_metrics *m = &job->metrics[group];
    if (m->samples == 0) {
        kedgei_page_put(p, " Nothing in this export says how good it is.");
        return;
    }
    if (job->spec.shows_loss) {
        kedge_buf_printf(&p->out, " Its mean loss was %.4g", m->loss_sum / (double)m->samples);
    } else {
        kedgei_page_put(p, " It was right for ");
        kedgei_page_percent(p, (double)m->correct, (double)m->samples);
    }
    kedge_buf_printf(&p->out, " of %" PRIu64 " test samples of ", m->samples);
    kedgei_page_count(p, m->sites, "site", "sites");
    kedge_buf_printf(&p->out, " after round %u, as the sites state.", m->round);
}

static int put_models(struct kedgei_page *p, const struct kedgei_ex_job *job)
{
    struct kedgei_ex_work *w = p->w;
    for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
        if (job->releases[g] == KEDGEI_EX_NONE) {
            continue;
        }
        KEDGE_TRY(kedgei_ex_read(&w->r.main, job->releases[g], w->a, w->reterr));
        const struct kedge_st_release *r = &w->a->u.release;
        kedgei_page_put(p, "<li>The model <b>");
        kedgei_page_text(p, r->file);
        kedgei_page_put(p, "</b> of the job ");
        kedgei_page_text(p, job->id.s);
        kedge_buf_printf(&p->out, ", made in round %u", r->round);
        if (job->closed != KEDGEI_EX_NONE) {
            kedgei_page_put(p, ", job ended ");
            kedgei_page_time(p, job->closed_ms, false);
        }
        kedgei_page_put(p, ".");
        put_quality(p, job, g);
        kedgei_page_put(p, " SHA-256 of the file: ");
        kedgei_page_digest(p, &w->a->subject);
        kedgei_page_put(p, "</li>");
    }
    return KEDGE_OK;
}

static const char *outcome_of(const struct kedgei_ex_job *job)
{
    if (job->closed == KEDGEI_EX_NONE) {
        return "not ended";
    }
    return job->outcome == KEDGE_OUTCOME_COMPLETED   ? "completed"
           : job->outcome == KEDGE_OUTCOME_CANCELLED ? "cancelled"
                                                     : "failed";
}

/* A job without a model is told to who may know all that took part in it; to who may know some of them
 * without its reason, which can name others. */
static void put_other_job(struct kedgei_page *p, const struct kedgei_ex_job *job)
{
    uint32_t known = 0;
    for (uint32_t i = 0; i < job->part_count; i++) {
        const struct kedgei_ex_log *t = kedgei_ex_tenant(&p->w->r, &job->parts[i].id);
        known += t && t->permitted;
    }
    if (known == 0) {
        return;
    }
    kedgei_page_put(p, "<li>The job ");
    kedgei_page_text(p, job->id.s);
    kedge_buf_printf(&p->out, " gave no model: %s", outcome_of(job));
    if (job->closed != KEDGEI_EX_NONE && job->closed_ms > 0) {
        kedgei_page_put(p, " ");
        kedgei_page_time(p, job->closed_ms, false);
    }
    kedgei_page_put(p, " after ");
    kedgei_page_count(p, job->round_count, "round", "rounds");
    if (job->reason[0] && known == job->part_count) {
        kedgei_page_put(p, ": “");
        kedgei_page_text(p, job->reason);
        kedgei_page_put(p, "”");
    }
    kedgei_page_put(p, ".</li>");
}

static int put_what(struct kedgei_page *p)
{
    const struct kedgei_ex_record *r = &p->w->r;
    kedgei_page_put(p, "<dt>What</dt><dd><ul>");
    for (uint32_t j = 0; j < r->job_count; j++) {
        KEDGE_TRY(put_models(p, r->jobs[j]));
    }
    for (uint32_t j = 0; j < r->job_count && p->w->o->model_count == 0; j++) {
        if (r->jobs[j]->release_count == 0) {
            put_other_job(p, r->jobs[j]);
        }
    }
    kedgei_page_put(p, "</ul></dd>\n");
    return KEDGE_OK;
}

/* ---- when ---- */

static void put_when(struct kedgei_page *p)
{
    const struct kedgei_ex_work *w = p->w;
    uint64_t first = 0, last = 0;
    for (uint32_t j = 0; j < w->r.job_count; j++) {
        const struct kedgei_ex_job *job = w->r.jobs[j];
        if (job->release_count > 0) {
            first = first == 0 || (job->opened_ms && job->opened_ms < first) ? job->opened_ms : first;
            last = job->closed_ms > last ? job->closed_ms : last;
        }
    }
    kedgei_page_put(p, "<dt>When</dt><dd>");
    if (first > 0 && last > 0) {
        kedgei_page_put(p, "<p>From ");
        kedgei_page_time(p, first, false);
        kedgei_page_put(p, " to ");
        kedgei_page_time(p, last, false);
        kedgei_page_put(p, ", by the coordinator’s own clock, which nobody else has checked.</p>");
    } else {
        kedgei_page_put(p, "<p>The statements of these jobs have no times.</p>");
    }
    for (size_t i = 0; i < w->token_count; i++) {
        kedgei_page_put(p, "<p>Before ");
        kedgei_page_time(p, (uint64_t)w->tokens[i].stamp.time_s * 1000, false);
        kedgei_page_put(p, ", says the time-stamping authority ");
        kedgei_page_text(p, w->tokens[i].stamp.authority);
        kedgei_page_put(p, ": all that <code>");
        kedgei_page_text(p, w->tokens[i].checkpoint);
        kedgei_page_put(p, "</code> covers was there then.</p>");
    }
    kedgei_page_put(p, "<p>This report states ");
    kedgei_page_time(p, (uint64_t)(w->o->time_s > 0 ? w->o->time_s : 0) * 1000, false);
    kedgei_page_put(p, " as the time when it was made.</p></dd>\n");
}

/* ---- which data ---- */

static bool is_first_with_data(const struct kedgei_ex_record *r, uint32_t job)
{
    for (uint32_t j = 0; j < job; j++) {
        if (r->jobs[j]->release_count > 0 && strcmp(r->jobs[j]->spec.data, r->jobs[job]->spec.data) == 0) {
            return false;
        }
    }
    return r->jobs[job]->release_count > 0;
}

static void put_data(struct kedgei_page *p)
{
    const struct kedgei_ex_record *r = &p->w->r;
    kedgei_page_put(p, "<dt>Which data</dt><dd><ul>");
    for (uint32_t j = 0; j < r->job_count; j++) {
        uint64_t samples = 0, sites = 0;
        if (!is_first_with_data(r, j)) {
            continue;
        }
        for (size_t i = 0; i < r->jobs[j]->site_count; i++) {
            samples += r->jobs[j]->sites[i].samples;
            sites += r->jobs[j]->sites[i].sent > 0;
        }
        kedgei_page_put(p, "<li>What each site keeps under the name “");
        kedgei_page_text(p, r->jobs[j]->spec.data);
        kedgei_page_put(p, "”");
        if (sites > 0) {
            kedge_buf_printf(&p->out, ": %" PRIu64 " training samples at ", samples);
            kedgei_page_count(p, sites, "site", "sites");
            kedgei_page_put(p, " named above, as these state");
        }
        kedgei_page_put(p, ".</li>");
    }
    kedgei_page_put(p,
                    "</ul><p>A site trains on its own files and sends an update: numbers by which the model "
                    "is to change. The record holds updates, or their checksums. It holds no sample and no "
                    "checksum of the data.</p></dd>\n");
}

/* ---- what is proved ---- */

static const char *heading_of(enum kedge_audit_level level)
{
    static const char *const headings[KEDGE_AUDIT_LEVEL_COUNT] = {
        [KEDGE_AUDIT_CONSISTENT] = "The record does not contradict itself.",
        [KEDGE_AUDIT_SIGNED] = "The parties that it names signed it.",
        [KEDGE_AUDIT_COMPLETE] = "Nothing was changed after this checkpoint was taken.",
        [KEDGE_AUDIT_REEXECUTED] = "The models follow from the updates.",
    };
    return (unsigned)level < KEDGE_AUDIT_LEVEL_COUNT ? headings[level] : "";
}

static void put_claims(struct kedgei_page *p, const struct kedge_audit_claims *claims, bool shown)
{
    for (size_t i = 0; i < claims->count; i++) {
        const struct kedge_audit_claim *c = &claims->items[i];
        if (c->shown != shown) {
            continue;
        }
        kedgei_page_put(p, "<li>");
        if (shown) {
            kedge_buf_printf(&p->out, "<b>%s</b> Proved: ", heading_of(c->level));
            kedgei_page_text(p, c->text);
        } else { /* the texts begin with a letter of ASCII */
            kedge_buf_put_u8(&p->out, (uint8_t)toupper((unsigned char)c->text[0]));
            kedgei_page_text(p, c->text[0] ? c->text + 1 : "");
        }
        if (c->from[0]) {
            kedgei_page_put(p, " (");
            kedgei_page_text(p, c->from);
            kedgei_page_put(p, ")");
        }
        kedgei_page_put(p, ".");
        if (!shown && c->how[0]) {
            kedgei_page_put(p, " <span class=\"dim\">What would show it: ");
            kedgei_page_text(p, c->how);
            kedgei_page_put(p, ".</span>");
        }
        kedgei_page_put(p, "</li>\n");
    }
}

static int put_proved(struct kedgei_page *p)
{
    struct kedge_audit_claims claims;
    KEDGE_TRY(kedgei_ex_claims(p->w, &claims));
    kedgei_page_put(
        p, "<h2>What is proved, and by what</h2>\n<p>Each was found by computing it again from the "
           "record, with the program named above. Anybody can do the same: see the end.</p>\n<ul>\n");
    put_claims(p, &claims, true);
    kedgei_page_put(
        p, "<li><b>Each model file is the one that the record names.</b> Proved: its SHA-256 is that "
           "of the release in the record, and the file beside it, model.sig, is signed by the maker "
           "of this report.</li>\n</ul>\n<h2>What is not proved</h2>\n<ul>\n");
    put_claims(p, &claims, false);
    kedgei_page_put(
        p, "<li>Which files the sites trained on, whether these were theirs to use, and whether they "
           "were right: the data never came into the record.</li>\n"
           "<li>That a site was not passed over before it could send anything: only the site itself "
           "knows.</li>\n"
           "<li>That the coordinator’s clock was right, and what the sites state of themselves: samples, "
           "test results, energy.</li>\n"
           "<li>That the models are good for any other data than those they were tested on.</li>\n"
           "</ul>\n");
    kedge_audit_claims_deinit(&claims);
    return KEDGE_OK;
}

static void put_words(struct kedgei_page *p)
{
    kedgei_page_put(
        p,
        "<h2>The words</h2>\n<dl>\n"
        "<dt>Organisation</dt><dd>A party with its own log and its own keys (in the programs: tenant).</dd>\n"
        "<dt>Site</dt><dd>A computer of an organisation that trains on the data there.</dd>\n"
        "<dt>Job</dt><dd>One training that the organisations agreed to, from its first model to its "
        "end.</dd>\n"
        "<dt>Round</dt><dd>A step of a job: sites train, the coordinator makes one new model of their "
        "updates.</dd>\n"
        "<dt>Group</dt><dd>Sites that share a model. A job may have one group or several.</dd>\n"
        "<dt>Weight</dt><dd>How much an update counts in the new model, by the rule of the job.</dd>\n"
        "<dt>Record</dt><dd>The logs of the coordinator and of the organisations. Every entry is signed, and "
        "none can be changed without a trace in the checkpoints that follow.</dd>\n"
        "<dt>Checkpoint</dt><dd>A signed checksum over all entries of a log so far.</dd>\n"
        "<dt>SHA-256</dt><dd>A checksum: two files with the same one are the same file.</dd>\n"
        "<dt>main[7]</dt><dd>Entry 7 of the coordinator’s log, where it can be looked up.</dd>\n</dl>\n");
}

int kedgei_page_first(struct kedgei_page *p)
{
    const struct kedgei_ex_work *w = p->w;
    bool whole = w->o->audit.tenant_count == 0;
    kedgei_page_put(p, "<h1>Provenance of ");
    kedgei_page_text(p, w->r.deployment);
    kedgei_page_put(
        p, whole ? "</h1>\n<p class=\"good\">The record was checked, and no fault was found.</p>\n"
                 : "</h1>\n<p class=\"good\">This organisation’s copy of the record was checked, as far "
                   "as it goes: other organisations’ logs are not in it and were not checked. No fault was "
                   "found.</p>\n");
    kedgei_page_put(
        p, "<p>This page says who trained the models in this folder, when, and with which data; what "
           "of that is proved, and what is not.");
    if (w->r.all_permitted) { /* else it would tell how large other organisations are */
        kedgei_page_put(p, " The record has ");
        kedgei_page_count(p, w->report.counts.entries, "statement", "statements");
        kedge_buf_printf(&p->out, " in the log of the coordinator and %u log%s of organisations.",
                         w->r.tenant_count, w->r.tenant_count == 1 ? "" : "s");
    }
    kedgei_page_put(p, "</p>\n<dl>\n");
    put_who(p);
    KEDGE_TRY(put_what(p));
    put_when(p);
    put_data(p);
    kedgei_page_put(p, "</dl>\n");
    KEDGE_TRY(put_proved(p));
    put_words(p);
    return KEDGE_OK;
}
