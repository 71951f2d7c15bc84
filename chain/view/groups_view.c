#include "chain/view/groups_view_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/log/dsse.h"
#include "chain/statement/entry_index.h"
#include "common/base/mem.h"
#include "common/base/try.h"

/* ---- what is found ---- */

static int take_step(struct kedgei_view_walk *w, uint64_t index)
{
    const struct kedge_st_step *s = &w->st->u.step;
    struct kedge_groups_view *v = w->view;
    (void)index;
    v->round = s->round;
    v->groups = s->group_count;
    v->has_directions = s->group_count > 0;
    for (uint32_t g = 0; g < s->group_count; g++) {
        v->models[g] = s->groups[g].after;
        v->directions[g] = s->groups[g].direction;
        v->has_directions = v->has_directions && !kedge_hash_is_zero(&v->directions[g]);
    }
    return kedgei_groups_change(v, s);
}

static int take_assigned(struct kedgei_view_walk *w, uint64_t index)
{
    const struct kedge_st_group_assigned *g = &w->st->u.group_assigned;
    uint32_t site;
    int err = kedgei_view_site(w, &g->site, &site);
    struct kedge_groups_move move = {.site = site,
                                     .round = g->round,
                                     .group = g->group,
                                     .how = kedge_group_how_name(g->how),
                                     .similarity = g->similarity,
                                     .entry = index};
    return err ? err : kedgei_view_move(w, site, &move, &g->update);
}

/* ---- order ---- */

static int compare_sites(const void *pa, const void *pb)
{
    const struct kedge_groups_site *a = pa, *b = pb;
    int c = kedge_id_cmp(&a->tenant, &b->tenant);
    return c ? c : kedge_id_cmp(&a->site, &b->site);
}

/* By the order of the ledger while sites are told their groups … */
static int compare_entries(const void *pa, const void *pb)
{
    const struct kedge_groups_move *a = pa, *b = pb;
    int c = (a->site > b->site) - (a->site < b->site);
    return c ? c : (a->entry > b->entry) - (a->entry < b->entry);
}

/* … then as people read it; sites ascend by tenant. */
static int compare_moves(const void *pa, const void *pb)
{
    const struct kedge_groups_move *a = pa, *b = pb;
    int c = (a->round > b->round) - (a->round < b->round);
    return c ? c : compare_entries(pa, pb);
}

/* Sites in order, each with its last move; moves know where they came from. Moves name sites by place, so
 * when sites are sorted, each site's old place is kept in a field that is not in use yet, and a table
 * from old to new places corrects the moves. Then moves are sorted by site and entry, so that a move's
 * origin is the group of the one before it, and at last by round, as people read them. */
static int put_in_order(struct kedge_groups_view *v)
{
    uint32_t *place = kedge_mem_new(v->site_count + 1, sizeof *place);
    KEDGE_TRY_MEM(place);
    for (size_t i = 0; i < v->site_count; i++) {
        v->sites[i].group = (uint32_t)i; /* its old place for a moment */
    }
    if (v->site_count > 0) {
        qsort(v->sites, v->site_count, sizeof *v->sites, compare_sites);
    }
    for (size_t i = 0; i < v->site_count; i++) {
        place[v->sites[i].group] = (uint32_t)i;
        v->sites[i].group = KEDGE_GROUPS_NO_GROUP;
    }
    for (size_t i = 0; i < v->move_count; i++) {
        v->moves[i].site = place[v->moves[i].site];
    }
    kedge_mem_free(place);
    if (v->move_count > 0) {
        qsort(v->moves, v->move_count, sizeof *v->moves, compare_entries);
    }
    for (size_t i = 0; i < v->move_count; i++) {
        struct kedge_groups_move *m = &v->moves[i];
        struct kedge_groups_site *s = &v->sites[m->site];
        m->from = s->group;
        s->group = m->group;
        s->round = m->round;
        s->how = m->how;
        s->similarity = m->similarity;
    }
    if (v->move_count > 0) {
        qsort(v->moves, v->move_count, sizeof *v->moves, compare_moves);
    }
    return KEDGE_OK;
}

/* ---- cosines and the picture ---- */

/* A copy has no table of keys in which an erasure could be looked up, so there a file that was erased
 * counts as absent. */
static enum kedge_groups_place look_at(const struct kedge_groups_log *log, const struct kedge_hash *update,
                                       char path[KEDGE_PATH_MAX], struct kedge_blob_at *at)
{
    char key[KEDGE_IDEM_KEY_MAX + 1] = "erased/";
    struct kedge_blob_file file;
    kedge_hash_hex(update, key + strlen(key));
    int err = kedge_blobs_at(log->blobs, update, path, at);
    if (!err) {
        err = kedge_blob_file_open(at, KEDGE_BLOB_MAP, &file, NULL);
    }
    if (!err) {
        kedge_blob_file_close(&file);
        return KEDGE_GROUPS_PLACED;
    }
    if (err == KEDGE_E_SEALED) {
        return KEDGE_GROUPS_SEALED;
    }
    bool is_erased = !kedge_ledger_is_copy(log->ledger)
                     && kedge_ledger_find(log->ledger, kedge_view_str(key), NULL) == KEDGE_OK;
    return is_erased ? KEDGE_GROUPS_ERASED : KEDGE_GROUPS_ABSENT;
}

struct picture {
    struct kedge_blob_at at[KEDGE_GROUPS_PICTURE_MAX + KEDGE_GROUPS_MAX];
    char path[KEDGE_GROUPS_PICTURE_MAX + KEDGE_GROUPS_MAX][KEDGE_PATH_MAX];
    uint32_t site[KEDGE_GROUPS_PICTURE_MAX];
    double xy[KEDGE_GROUPS_PICTURE_MAX + KEDGE_GROUPS_MAX][2];
    size_t sites, count; /* sites first, then the groups' directions */
};

/* The picture needs an inner product for each pair of updates, so their number is bounded. Of more sites
 * every n-th is shown; the others stay in the list without a place. */
static void choose_sites(struct kedge_groups_view *v, const struct kedge_groups_log *tenants,
                         size_t tenant_count, struct picture *p)
{
    size_t most = v->site_count < KEDGE_GROUPS_PICTURE_MAX ? v->site_count : KEDGE_GROUPS_PICTURE_MAX;
    for (size_t k = 0; k < most; k++) { /* every so many, when there are too many */
        uint32_t i = (uint32_t)(k * v->site_count / most);
        struct kedge_groups_site *s = &v->sites[i];
        size_t t = 0;
        while (t < tenant_count && !kedge_id_eq(&tenants[t].tenant, &s->tenant)) {
            t++;
        }
        s->place = look_at(&tenants[t], &s->update, p->path[p->sites], &p->at[p->sites]);
        if (s->place == KEDGE_GROUPS_PLACED) {
            p->site[p->sites++] = i;
        }
    }
    p->count = p->sites;
}

static int add_directions(struct kedge_groups_view *v, const struct kedge_groups_log *main, struct picture *p)
{
    int err = KEDGE_OK;
    for (uint32_t g = 0; g < v->groups && !err; g++) {
        p->at[p->count] = (struct kedge_blob_at){.path = p->path[p->count], .keys = NULL};
        err = kedge_blobs_path(main->blobs, &v->directions[g], p->path[p->count]);
        p->count++;
    }
    return err;
}

static void take_picture(struct kedge_groups_view *v, const struct picture *p, const double *diagonal)
{
    for (size_t k = 0; k < p->sites; k++) {
        struct kedge_groups_site *s = &v->sites[p->site[k]];
        s->x = p->xy[k][0];
        s->y = p->xy[k][1];
        s->place = diagonal[k] > 0 ? KEDGE_GROUPS_PLACED : KEDGE_GROUPS_ZERO;
    }
    for (uint32_t g = 0; g < v->groups; g++) {
        v->group_x[g] = p->xy[p->sites + g][0];
        v->group_y[g] = p->xy[p->sites + g][1];
    }
    v->has_picture = p->sites > 0;
}

/* Cosines between directions, and with a picture between all; the directions' block is the last. */
static int look(struct kedge_groups_view *v, const struct kedge_layout *layout,
                const struct kedge_groups_log *main, struct picture *p, bool picture, struct kedge_diag *d)
{
    int err = add_directions(v, main, p);
    double *cosine = kedge_mem_new(p->count * p->count, sizeof *cosine);
    double *diagonal = kedge_mem_new(p->count, sizeof *diagonal);
    if (!err) {
        err = cosine && diagonal ? KEDGE_OK : KEDGE_E_NOMEM;
    }
    if (!err) {
        err = kedge_compute_picture(layout, p->at, p->count, cosine, picture ? &p->xy[0][0] : NULL, &v->shown,
                                    d);
    }
    for (size_t i = 0; i < p->count && !err; i++) {
        diagonal[i] = cosine[i * p->count + i];
    }
    for (uint32_t g = 0; g < v->groups && !err; g++) {
        for (uint32_t k = 0; k < v->groups; k++) {
            v->cosine[g][k] = cosine[(p->sites + g) * p->count + p->sites + k];
        }
    }
    if (!err && picture) {
        take_picture(v, p, diagonal);
    }
    kedge_mem_free(cosine);
    kedge_mem_free(diagonal);
    return err;
}

static int spec_of_job(const struct kedge_groups_log *main, const struct kedge_hash *digest,
                       struct kedge_job_spec *ret, struct kedge_diag *d)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, KEDGE_SPEC_MAX);
    KEDGE_TRY(kedge_blobs_read(main->blobs, digest, &text, d));
    return kedge_job_spec_parse(kedge_buf_view(&text), ret, d);
}

static int measure(struct kedge_groups_view *v, const struct kedge_groups_log *main,
                   const struct kedge_groups_log *tenants, size_t tenant_count,
                   const struct kedge_job_spec *spec, bool picture, struct kedge_diag *d)
{
    struct kedge_layout layout;
    v->has_directions = v->has_directions && spec->strategy;
    for (uint32_t g = 0; g < v->groups && v->has_directions; g++) {
        int found = kedge_blobs_find(main->blobs, &v->directions[g], NULL);
        v->has_directions = found == KEDGE_OK;
    }
    if (!v->has_directions) {
        return KEDGE_OK;
    }
    struct picture *p = kedge_mem_new(1, sizeof *p);
    int err = p ? kedge_job_spec_layout(spec, &layout, d) : KEDGE_E_NOMEM;
    if (err) {
        kedge_mem_free(p);
        return err;
    }
    if (picture) {
        choose_sites(v, tenants, tenant_count, p);
    }
    err = look(v, &layout, main, p, picture, d);
    kedge_layout_deinit(&layout);
    kedge_mem_free(p);
    return err;
}

/* ---- all of it ---- */

static int take_opened(struct kedgei_view_walk *w, uint64_t index)
{
    (void)index;
    if (!kedge_id_eq(&w->st->u.job_opened.job, &w->view->job)) { /* a longer name */
        return KEDGE_OK;
    }
    w->view->models[0] = w->st->u.job_opened.initial_model; /* until there is a step */
    w->view->round = 0;
    w->view->directions[0] = w->st->subject; /* kept here for the caller: the spec */
    w->view->groups = 1;
    return KEDGE_OK;
}

static int read_main(struct kedgei_view_walk *w, const struct kedge_groups_log *main,
                     const struct kedge_id *job, struct kedge_job_spec *ret_spec)
{
    char key[KEDGE_IDEM_KEY_MAX + 1];
    struct kedge_groups_view *v = w->view;
    snprintf(key, sizeof key, "job-opened/%s", job->s);
    uint64_t index;
    int err = kedge_ledger_is_copy(main->ledger)
                  ? KEDGE_OK
                  : kedge_ledger_find(main->ledger, kedge_view_str(key), &index);
    if (!err) {
        err = kedgei_view_walk_log(w, main, KEDGE_ST_JOB_OPENED, key, take_opened);
    }
    if (err == KEDGE_E_NOT_FOUND || (!err && v->groups == 0)) {
        return kedge_diag_set(w->d, KEDGE_E_NOT_FOUND, "the main chain has opened no job \"%s\"", job->s);
    }
    if (!err) {
        err = spec_of_job(main, &v->directions[0], ret_spec, w->d);
    }
    if (err == KEDGE_E_NOT_FOUND) { /* a copy without it: what statements say is here all the same */
        *ret_spec = (struct kedge_job_spec){.strategy = NULL};
        err = KEDGE_OK;
    }
    v->groups = 0;
    snprintf(key, sizeof key, "step/%s/", job->s);
    return err ? err : kedgei_view_walk_log(w, main, KEDGE_ST_STEP, key, take_step);
}

int kedge_groups_view_read(const struct kedge_groups_log *main, const struct kedge_groups_log *tenants,
                           size_t tenant_count, const struct kedge_id *job, bool picture,
                           struct kedge_groups_view *ret, struct kedge_diag *reterr)
{
    struct kedge_groups_view *v = kedge_mem_new(1, sizeof *v);
    struct kedgei_view_walk w = {.st = kedge_mem_new(1, sizeof *w.st), .d = reterr, .view = v};
    struct kedge_job_spec *spec = kedge_mem_new(1, sizeof *spec);
    char prefix[KEDGE_IDEM_KEY_MAX + 1];
    kedge_buf_init(&w.entry, KEDGE_ENTRY_MAX);
    kedge_buf_init(&w.payload, KEDGE_ENTRY_MAX);
    int err = w.st && v && spec ? KEDGE_OK : KEDGE_E_NOMEM;
    if (!err) {
        v->job = *job;
        err = read_main(&w, main, job, spec);
        w.spec = spec;
    }
    snprintf(prefix, sizeof prefix, "group-assigned/%s/", job->s);
    for (size_t t = 0; t < tenant_count && !err; t++) {
        err = kedgei_view_walk_log(&w, &tenants[t], KEDGE_ST_GROUP_ASSIGNED, prefix, take_assigned);
        if (!err) {
            err = kedgei_view_follow(&w, &tenants[t]);
        }
    }
    if (!err) {
        err = put_in_order(v);
    }
    if (!err) {
        err = measure(v, main, tenants, tenant_count, spec, picture, reterr);
    }
    kedge_buf_deinit(&w.entry);
    kedge_buf_deinit(&w.payload);
    kedge_mem_free(w.st);
    kedge_mem_free(spec);
    if (!err) {
        *ret = *v;
    } else if (v) {
        kedge_groups_view_deinit(v);
    }
    kedge_mem_free(v);
    return err && reterr && !reterr->text[0]
               ? kedge_diag_set(reterr, err, "groups of job \"%s\": %s", job->s, kedge_strerror(err))
               : err;
}

void kedge_groups_view_deinit(struct kedge_groups_view *v)
{
    kedge_mem_free(v->sites);
    kedge_mem_free(v->moves);
    kedge_mem_free(v->changes);
    v->sites = NULL;
    v->moves = NULL;
    v->changes = NULL;
}
