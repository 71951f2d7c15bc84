/* Real keys, statements and trees for simulated federations ("signatures": "real"), in place of digests that
 * stand for them.
 *
 * The simulator's own records are compared with what real code makes of the same facts: each result is signed
 * by its site's key and opened again as the coordinator would, each entry goes into an RFC 6962 tree. An
 * envelope's name in the simulation is its digest; its bytes are kept here. Altered statements are made and
 * must not verify (open_forged). It costs some signatures for each update, which is why such runs are bounded
 * (KEDGE_SIM_REAL_MAX). */
#include "sim/real_impl.h"

#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"

enum { TEXT_MAX = KEDGE_PROOF_TEXT_MAX };
enum role { ROLE_SITE, ROLE_ADMIN, ROLE_LOG, ROLE_COORDINATOR, ROLE_MAIN_LOG };

void sim_real_new(struct sim *w)
{
    int err = kedge_crypto_init();
    KEDGE_ASSERT(err == KEDGE_OK);
    w->real = sim_new_array(1, sizeof *w->real);
    w->real->st = sim_new_array(1, sizeof *w->real->st);
}

static void free_log(struct sim_log *l)
{
    kedge_mem_free(l->leaves);
    kedge_mem_free(l->envelopes);
}

void sim_real_free(struct sim *w)
{
    struct sim_real *r = w->real;
    if (!r) {
        return;
    }
    for (uint32_t i = 0; i < r->text_count; i++) {
        kedge_buf_deinit(&r->texts[i].bytes);
    }
    for (uint32_t i = 0; i < r->tenant_count; i++) {
        free_log(&r->tenants[i]);
    }
    free_log(&r->main);
    sim_index_deinit(&r->envelopes);
    kedge_mem_free(r->texts);
    kedge_mem_free(r->tenants);
    kedge_mem_free(r->sites);
    kedge_mem_free(r->admins);
    kedge_mem_free(r->logs);
    kedge_mem_free(r->st);
    kedge_mem_free(r);
    w->real = NULL;
}

/* Keys follow from the seed: a run replays to the last byte. */
static struct kedge_key_pair make_key(const struct sim *w, enum role role, uint32_t index)
{
    struct kedge_digest d = sim_digest(w->seed, (uint64_t)role, index, "key", 3);
    struct kedge_seed seed;
    struct kedge_key_pair pair;
    memcpy(seed.b, d.b, sizeof seed.b);
    kedge_key_from_seed(&seed, &pair);
    return pair;
}

struct sim_real *sim_real_of(struct sim *w)
{
    struct sim_real *r = w->real;
    if (r->sites) {
        return r;
    }
    r->site_count = w->config.sites;
    r->tenant_count = w->config.tenants;
    r->sites = sim_new_array(r->site_count, sizeof *r->sites);
    r->admins = sim_new_array(r->tenant_count, sizeof *r->admins);
    r->logs = sim_new_array(r->tenant_count, sizeof *r->logs);
    r->tenants = sim_new_array(r->tenant_count, sizeof *r->tenants);
    for (uint32_t i = 0; i < r->site_count; i++) {
        r->sites[i] = make_key(w, ROLE_SITE, i);
    }
    for (uint32_t i = 0; i < r->tenant_count; i++) {
        r->admins[i] = make_key(w, ROLE_ADMIN, i);
        r->logs[i] = make_key(w, ROLE_LOG, i);
    }
    r->coordinator = make_key(w, ROLE_COORDINATOR, 0);
    r->main_log = make_key(w, ROLE_MAIN_LOG, 0);
    return r;
}

/* ---- texts ---- */

uint32_t sim_real_put_text(struct sim_real *r, struct kedge_buf *bytes)
{
    KEDGE_ASSERT(bytes->err == KEDGE_OK);
    r->texts = sim_grow(r->texts, r->text_count + 1, &r->text_max, sizeof *r->texts);
    r->texts[r->text_count].bytes = *bytes; /* taken */
    return ++r->text_count;
}

struct kedge_view sim_real_text(const struct sim_real *r, uint32_t text)
{
    KEDGE_ASSERT(text >= 1 && text <= r->text_count);
    return kedge_buf_view(&r->texts[text - 1].bytes);
}

static uint64_t envelope_key(const uint8_t *digest)
{
    return kedge_load_be64(digest);
}

/* The envelope with this digest; its bytes are hashed again, for a map finds by half a hash. */
bool sim_real_envelope(const struct sim_real *r, const uint8_t *digest, struct kedge_view *ret)
{
    uint32_t text;
    struct kedge_hash hash;
    if (!sim_index_find(&r->envelopes, envelope_key(digest), &text)) {
        return false;
    }
    *ret = sim_real_text(r, text);
    kedge_sha256(*ret, &hash);
    return memcmp(hash.b, digest, sizeof hash.b) == 0;
}

/* Signs r->st and keeps the envelope; its digest is its name from then on. */
static struct kedge_digest sign(struct sim *w, const struct kedge_key_pair *pair)
{
    struct sim_real *r = sim_real_of(w);
    struct kedge_buf bytes;
    struct kedge_diag d = {.text = ""};
    struct kedge_hash hash;
    struct kedge_digest out;
    kedge_buf_init(&bytes, KEDGE_ENTRY_MAX);
    int err = kedge_statement_sign(r->st, pair, &bytes, &d);
    if (err) {
        sim_violate(w, "a %s cannot be signed: %s", kedge_statement_kind_name(r->st->kind), d.text);
    }
    kedge_sha256(kedge_buf_view(&bytes), &hash);
    memcpy(out.b, hash.b, sizeof out.b);
    uint32_t old;
    if (sim_index_find(&r->envelopes, envelope_key(out.b), &old)) {
        kedge_buf_deinit(&bytes); /* the same statement by the same key: the same bytes */
    } else {
        (void)sim_index_put(&r->envelopes, envelope_key(out.b), sim_real_put_text(r, &bytes));
    }
    return out;
}

static struct kedge_hash as_hash(const uint8_t *b)
{
    struct kedge_hash h;
    memcpy(h.b, b, sizeof h.b);
    return h;
}

struct kedge_statement *sim_real_blank(struct sim *w, enum kedge_statement_kind kind)
{
    struct kedge_statement *st = sim_real_of(w)->st;
    memset(st, 0, sizeof *st);
    st->kind = kind;
    /* The simulated ledgers have no trees: the place is well-formed, and nobody judges it. */
    st->at = (struct kedge_st_position){.main_log_key = sim_real_of(w)->coordinator.public, .before = 1};
    return st;
}

/* ---- results of sites ---- */

static void state_update(struct kedge_statement *st, const struct kedge_id *tenant,
                         const struct kedge_id *site, const struct kedge_site_result *result, uint64_t weight)
{
    struct kedge_st_update *u = &st->u.update;
    st->subject = as_hash(result->update.b);
    u->tenant = *tenant;
    u->site = *site;
    u->job = result->job;
    u->round = result->round;
    u->group =
        result->group == KEDGE_SITE_NONE ? 0 : result->group; /* the record says 0 for "not yet in a group" */
    u->update_kind = result->kind == KEDGE_SITE_PRETRAIN ? KEDGE_TRAIN_PRETRAIN : KEDGE_TRAIN_TRAIN;
    u->base = as_hash(result->base.b);
    u->samples = weight;
    u->steps = u->batch = 1;
    u->energy_quality = KEDGE_ENERGY_UNKNOWN;
    (void)snprintf(u->engine, sizeof u->engine, "sim");
}

void sim_real_sign_result(struct sim *w, uint32_t site, struct kedge_site_result *result, uint64_t weight)
{
    struct sim_real *r = sim_real_of(w);
    bool evaluation = result->kind == KEDGE_SITE_EVALUATE;
    struct kedge_statement *st = sim_real_blank(w, evaluation ? KEDGE_ST_EVALUATION : KEDGE_ST_UPDATE);
    struct kedge_id tenant, name;
    sim_tenant_id(w, w->devices[site].tenant, &tenant);
    sim_site_id(w, site, &name);
    if (evaluation) {
        struct kedge_st_evaluation *e = &st->u.evaluation;
        st->subject = as_hash(result->base.b);
        *e = (struct kedge_st_evaluation){.tenant = tenant,
                                          .site = name,
                                          .job = result->job,
                                          .round = result->round,
                                          .group = result->group,
                                          .samples = weight};
    } else {
        state_update(st, &tenant, &name, result, weight);
    }
    struct kedge_digest envelope = sign(w, &r->sites[site]);
    result->envelope = sim_to_site(&envelope);
}

/* The facts are those of the statement: what stood beside it on the way proves nothing. */
static void read_result(const struct kedge_statement *st, struct kedge_site_result *result, uint64_t *weight)
{
    if (st->kind == KEDGE_ST_EVALUATION) {
        const struct kedge_st_evaluation *e = &st->u.evaluation;
        result->job = e->job;
        result->kind = KEDGE_SITE_EVALUATE;
        result->round = e->round;
        result->group = e->group;
        memcpy(result->base.b, st->subject.b, sizeof result->base.b);
        memset(&result->update, 0, sizeof result->update);
        *weight = e->samples;
        return;
    }
    const struct kedge_st_update *u = &st->u.update;
    bool cold = u->update_kind == KEDGE_TRAIN_PRETRAIN;
    result->job = u->job;
    result->kind = cold ? KEDGE_SITE_PRETRAIN : KEDGE_SITE_TRAIN;
    result->round = u->round;
    result->group = cold && u->group == 0 ? KEDGE_SITE_NONE : u->group;
    memcpy(result->base.b, u->base.b, sizeof result->base.b);
    memcpy(result->update.b, st->subject.b, sizeof result->update.b);
    *weight = u->samples;
}

/* What sim_device sends as forged has an envelope that nobody made: one byte of a real one is altered. */
static int open_forged(struct sim *w, uint32_t site, const uint8_t *digest)
{
    struct sim_real *r = sim_real_of(w);
    uint8_t original[32];
    struct kedge_view view;
    struct kedge_buf bytes;
    memcpy(original, digest, sizeof original);
    original[0] ^= 1;
    if (!sim_real_envelope(r, original, &view)) {
        return KEDGE_E_VERIFY;
    }
    kedge_buf_init(&bytes, KEDGE_ENTRY_MAX);
    kedge_buf_put(&bytes, view.ptr, view.len);
    bytes.ptr[sim_hash(w->now_ns, digest, sizeof original) % bytes.len] ^= 4;
    int err = kedge_statement_open(kedge_buf_view(&bytes), &r->sites[site].public, r->st, NULL);
    if (err == KEDGE_OK) {
        sim_violate(w, "an altered statement of site %u verifies", site);
    }
    kedge_buf_deinit(&bytes);
    return KEDGE_E_VERIFY;
}

int sim_real_open_result(struct sim *w, uint32_t site, struct kedge_site_result *result, uint64_t *weight)
{
    struct sim_real *r = sim_real_of(w);
    struct kedge_view envelope;
    if (!sim_real_envelope(r, result->envelope.b, &envelope)) {
        return open_forged(w, site, result->envelope.b);
    }
    struct kedge_diag d = {.text = ""};
    int err = kedge_statement_open(envelope, &r->sites[site].public, r->st, &d);
    struct kedge_id name;
    sim_site_id(w, site, &name);
    bool own = !err && (r->st->kind == KEDGE_ST_UPDATE || r->st->kind == KEDGE_ST_EVALUATION)
               && kedge_id_eq(&name, r->st->kind == KEDGE_ST_UPDATE ? &r->st->u.update.site
                                                                    : &r->st->u.evaluation.site);
    if (!own) {
        sim_violate(w, "a statement of site %u does not open: %s %s", site, kedge_err_code(err), d.text);
        return KEDGE_E_VERIFY;
    }
    read_result(r->st, result, weight);
    return KEDGE_OK;
}

/* ---- statements of tenants and of the coordinator ---- */

void sim_real_sign_entry(struct sim *w, uint32_t tenant, struct sim_entry *entry)
{
    struct sim_real *r = sim_real_of(w);
    struct kedge_id name, site, job = w->jobs[entry->job].params.id;
    sim_tenant_id(w, tenant, &name);
    sim_site_id(w, entry->site == SIM_NONE ? 0 : entry->site, &site);
    if (entry->type == SIM_JOINED) {
        struct kedge_statement *st = sim_real_blank(w, KEDGE_ST_JOB_JOINED);
        st->subject = as_hash(w->jobs[entry->job].initial.b);
        st->u.job_joined = (struct kedge_st_job_joined){name, job};
    } else if (entry->type == SIM_REVOKED) {
        struct kedge_st_site_revoked *v = &sim_real_blank(w, KEDGE_ST_SITE_REVOKED)->u.site_revoked;
        *v = (struct kedge_st_site_revoked){
            .tenant = name, .site = site, .statement_key = r->sites[entry->site].public, .reason = "sold"};
    } else {
        const struct sim_device *d = &w->devices[entry->site];
        struct kedge_st_group_assigned *a = &sim_real_blank(w, KEDGE_ST_GROUP_ASSIGNED)->u.group_assigned;
        *a =
            (struct kedge_st_group_assigned){.tenant = name, .site = site, .job = job, .group = entry->group};
        a->round = entry->round;
        a->how = sim_how_of(w, entry);
        if (d->pretrained[entry->job] != SIM_NONE) {
            a->update = as_hash(w->ledgers[tenant].entries[d->pretrained[entry->job]].update.b);
        }
    }
    entry->envelope = sign(w, entry->type == SIM_ASSIGNED ? &r->coordinator : &r->admins[tenant]);
}

static void append(struct sim *w, struct sim_log *l, const struct kedge_digest *envelope)
{
    struct kedge_view bytes;
    struct kedge_hash leaf;
    if (!sim_real_envelope(w->real, envelope->b, &bytes)) {
        sim_violate(w, "an entry without an envelope");
        return;
    }
    kedge_merkle_leaf(bytes, &leaf);
    int err = kedge_frontier_append(&l->tree, &leaf);
    KEDGE_ASSERT(err == KEDGE_OK);
    l->leaves = sim_grow(l->leaves, l->count + 1, &l->max, sizeof *l->leaves);
    l->envelopes = sim_grow(l->envelopes, l->count + 1, &l->envelope_max, sizeof *l->envelopes);
    l->envelopes[l->count] = *envelope;
    l->leaves[l->count++] = leaf;
}

void sim_real_entry_appended(struct sim *w, uint32_t tenant, const struct sim_entry *entry)
{
    append(w, &sim_real_of(w)->tenants[tenant], &entry->envelope);
}

static void append_signed(struct sim *w, struct sim_main *entry)
{
    struct sim_real *r = sim_real_of(w);
    entry->envelope = sign(w, &r->coordinator);
    append(w, &r->main, &entry->envelope);
}

static void state_opened(struct sim *w, const struct sim_main *m)
{
    const struct sim_job *j = &w->jobs[m->job];
    if (m->type == SIM_JOB_OPENED) {
        struct kedge_statement *st = sim_real_blank(w, KEDGE_ST_JOB_OPENED);
        st->subject = st->u.job_opened.initial_model = as_hash(j->initial.b);
        st->u.job_opened.job = j->params.id;
        for (uint32_t t = 0; t < j->params.tenant_count; t++) {
            struct kedge_digest id = sim_digest(w->seed, t, 0, "tenant", 6);
            st->u.job_opened.tenants[st->u.job_opened.tenant_count++] = as_hash(id.b);
        }
        kedge_statement_sort(st);
        return;
    }
    struct kedge_statement *st = sim_real_blank(w, KEDGE_ST_ROUND_OPENED);
    struct kedge_st_round_opened *o = &st->u.round_opened;
    st->subject = as_hash(j->initial.b);
    o->job = j->params.id;
    o->round = m->round;
    o->draw = m->draw;
    o->round_kind = m->kind == KEDGE_TASK_PRETRAIN ? KEDGE_TRAIN_PRETRAIN : KEDGE_TRAIN_TRAIN;
    o->seed = j->params.seed;
    o->main_size = w->real->main.count;
    kedge_frontier_root(&w->real->main.tree, &o->main_root);
}

/* A group's model before this close. */
static const struct kedge_digest *before(const struct sim *w, const struct sim_main *m, uint32_t group)
{
    const struct sim_job *j = &w->jobs[m->job];
    const struct sim_main *last =
        m->round > 0 ? sim_main_find(w, SIM_ROUND_CLOSED, m->job, m->round - 1) : NULL;
    return last && group < last->model_count              ? &last->models[group]
           : group < kedge_coord_first_models(&j->params) ? &j->begin[group]
                                                          : &j->initial;
}

/* One aggregate per group, then the step that they make together. */
static void append_closed(struct sim *w, struct sim_main *m)
{
    const struct sim_job *j = &w->jobs[m->job];
    for (uint32_t g = 0; g < m->group_count; g++) {
        struct kedge_statement *st = sim_real_blank(w, KEDGE_ST_AGGREGATE);
        struct kedge_st_aggregate *a = &st->u.aggregate;
        st->subject = as_hash(m->sums[g].model.b);
        a->job = j->params.id;
        a->round = m->round;
        a->group = g;
        (void)snprintf(a->rule, sizeof a->rule, "sim");
        a->weight_sum = m->sums[g].weight;
        a->count = m->sums[g].count;
        a->base = as_hash(before(w, m, g)->b);
        append_signed(w, m);
    }
    struct kedge_st_step *s = &sim_real_blank(w, KEDGE_ST_STEP)->u.step;
    s->job = j->params.id;
    s->round = m->round;
    (void)snprintf(s->rule, sizeof s->rule, "sim");
    s->eta = 1;
    for (uint32_t g = 0; g < m->model_count; g++) {
        struct kedge_st_step_group *to = &s->groups[s->group_count++];
        to->group = g;
        to->before = as_hash(before(w, m, g)->b);
        to->after = as_hash(m->models[g].b);
        to->aggregate = g < m->group_count ? as_hash(m->sums[g].model.b) : to->before;
    }
    append_signed(w, m);
}

void sim_real_main_appended(struct sim *w, struct sim_main *m)
{
    const struct sim_job *j = &w->jobs[m->job];
    if (m->type == SIM_ROUND_CLOSED) {
        append_closed(w, m);
        return;
    }
    if (m->type == SIM_JOB_CLOSED) {
        struct kedge_statement *st = sim_real_blank(w, KEDGE_ST_JOB_CLOSED);
        st->subject = as_hash(j->initial.b);
        st->u.job_closed.job = j->params.id;
        st->u.job_closed.rounds = j->last_closed == SIM_NONE ? 0 : j->last_closed;
        st->u.job_closed.outcome = m->state == KEDGE_JOB_COMPLETED   ? KEDGE_OUTCOME_COMPLETED
                                   : m->state == KEDGE_JOB_CANCELLED ? KEDGE_OUTCOME_CANCELLED
                                                                     : KEDGE_OUTCOME_FAILED;
    } else {
        state_opened(w, m);
    }
    append_signed(w, m);
}
