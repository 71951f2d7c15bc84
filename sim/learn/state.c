/* A run's state between two rounds, for resuming: what training made. Data are not in it: partition and
 * shifts come from the seed again. Only the same program on the same kind of machine reads it. */
#include "sim/learn/state.h"

#include <string.h>

#include "common/base/bytes.h"
#include "common/base/mem.h"
#include "sim/learn/close.h"
#include "sim/learn/flight.h"
#include "strategy/server.h"

static const char magic[16] = "kedge-learn/v3\n";

/* One pass over the state, which writes it or reads it, so that the two cannot differ. */
struct pass {
    struct kedge_buf *out; /* NULL: reading */
    const uint8_t *in;
    uint64_t len, at;
    int err;
};

/* One walk for both directions: what is written and what is read cannot differ in order or length. */
static void visit(struct pass *p, void *value, size_t len)
{
    if (p->err) {
        return;
    }
    if (p->out) {
        kedge_buf_put(p->out, value, len);
        p->err = p->out->err;
    } else if (p->len - p->at < len) {
        p->err = KEDGE_E_FORMAT;
    } else {
        memcpy(value, p->in + p->at, len);
        p->at += len;
    }
}

static void visit_any(void *arg, void *value, size_t len)
{
    visit(arg, value, len);
}

/* A vector that a site may have. */
static void visit_vector(struct pass *p, void **vector, uint64_t d)
{
    uint8_t has = *vector != NULL;
    visit(p, &has, 1);
    if (!p->err && has && !*vector) {
        *vector = kedge_mem_new(d, 4);
        p->err = *vector ? KEDGE_OK : KEDGE_E_NOMEM;
    }
    if (!p->err && has) {
        visit(p, *vector, d * 4);
    }
}

/* The pointers are handed through a void *, because a vector that is absent is told by one byte and made when
 * it is read. */
static void visit_site(struct pass *p, struct kedgei_learn *l, struct kedgei_learn_site *s)
{
    void *own = s->own, *pretraining = s->pretraining, *control = s->control;
    visit(p, &s->group, sizeof s->group);
    visit(p, &s->joined, sizeof s->joined);
    visit(p, &s->since, sizeof s->since);
    visit(p, &s->shifted, sizeof s->shifted);
    visit_vector(p, &own, l->d);
    visit_vector(p, &pretraining, l->d);
    if (l->spec->job.compression.kind != KEDGE_COMPACT_NONE) {
        void *left = s->left;
        visit(p, &s->left_group, sizeof s->left_group);
        visit_vector(p, &left, l->d);
        s->left = left;
    }
    visit_vector(p, &control, l->d);
    s->own = own;
    s->control = control;
    s->pretraining = pretraining;
    if (!p->err && s->group != KEDGE_ROUND_NONE && s->group >= l->slots) {
        p->err = KEDGE_E_FORMAT;
    }
}

/* What a name stands for; where it is read, it gets another name. */
static void visit_named(struct pass *p, struct kedgei_learn *l, struct kedge_hash *name, uint64_t count)
{
    const void *there = kedgei_vectors_find(&l->vectors, name);
    uint8_t has = there != NULL;
    visit(p, &has, 1);
    if (p->err || !has) {
        memset(name, 0, sizeof *name);
    } else if (p->out) {
        kedge_buf_put(p->out, there, count * 4);
        p->err = p->out->err;
    } else {
        void *values = kedge_mem_new(count, 4);
        p->err = values ? KEDGE_OK : KEDGE_E_NOMEM;
        visit(p, values, count * 4);
        p->err = p->err ? p->err : kedgei_vectors_give(&l->vectors, values, name);
    }
}

/* What is known between two rounds. The first models of a run that is resumed are swept. */
static void visit_between(struct pass *p, struct kedgei_learn *l)
{
    const uint64_t states = kedge_server_states(l->spec->job.server);
    struct kedge_round_state at = l->at;
    visit(p, &at, sizeof at);
    if (p->err || at.groups > l->slots) {
        p->err = p->err ? p->err : KEDGE_E_FORMAT;
        return;
    }
    for (uint32_t g = 0; g < at.groups; g++) {
        visit_named(p, l, &at.group[g].model, l->shared);
        visit_named(p, l, &at.group[g].direction, l->shared);
        visit_named(p, l, &at.group[g].direction_made, l->shared);
        visit_named(p, l, &at.group[g].server_state, states * l->shared);
    }
    if (!p->err && !p->out) {
        l->at = at;
        kedgei_vectors_sweep(&l->vectors, &l->at);
        kedgei_learn_take_models(l);
    }
}

/* The shape comes first: a state of another model, federation or seed would otherwise be read as numbers that
 * fit by chance. */
static void visit_all(struct pass *p, struct kedgei_learn *l, uint32_t *next_round)
{
    char head[sizeof magic];
    uint64_t shape[5] = {l->d, l->n, l->slots, l->pool.classes, l->spec->job.seed}, seen[5];
    memcpy(head, magic, sizeof magic);
    memcpy(seen, shape, sizeof shape);
    visit(p, head, sizeof head);
    visit(p, seen, sizeof seen);
    if (!p->err && (memcmp(head, magic, sizeof magic) != 0 || memcmp(seen, shape, sizeof shape) != 0)) {
        p->err = KEDGE_E_FORMAT;
    }
    visit(p, next_round, sizeof *next_round);
    visit(p, &l->line, sizeof l->line);
    visit(p, l->trained, sizeof l->trained);
    visit(p, l->aux, l->d * sizeof(float));
    visit_between(p, l);
    for (uint32_t i = 0; i < l->n && !p->err; i++) {
        visit_site(p, l, &l->sites[i]);
    }
    if (l->grouped) {
        visit(p, l->grouped, l->n * sizeof *l->grouped);
    }
    if (l->job.target_count > 0) {
        visit(p, &l->held, sizeof l->held);
        visit(p, &l->tier, sizeof l->tier);
    }
    kedgei_learn_flight_visit(l, visit_any, p);
    if (!p->err && *next_round > l->spec->job.rounds) {
        p->err = KEDGE_E_FORMAT;
    }
}

int kedgei_learn_save(struct kedgei_learn *l, uint32_t next)
{
    struct kedge_buf out;
    kedge_buf_init(&out, SIZE_MAX);
    struct pass p = {.out = &out};
    visit_all(&p, l, &next);
    int err = p.err ? p.err : l->host->save(l->host->arg, next, out.ptr, out.len);
    kedge_buf_deinit(&out);
    return err ? kedge_diag_set(l->reterr, err, "round %u: the state cannot be saved: %s", next,
                                kedge_strerror(err))
               : KEDGE_OK;
}

/* Bytes that are left over are an error, too. Data are not in the state, so their shifts are done again,
 * round by round. */
int kedgei_learn_resume(struct kedgei_learn *l, uint32_t *ret_next)
{
    struct pass p = {.in = l->host->resume, .len = l->host->resume_len};
    uint32_t next = 0;
    visit_all(&p, l, &next);
    if (!p.err && p.at != p.len) {
        p.err = KEDGE_E_FORMAT;
    }
    if (p.err) {
        return kedge_diag_set(l->reterr, p.err, "the saved state is not of this simulation: %s",
                              kedge_strerror(p.err));
    }
    int err = KEDGE_OK;
    for (uint32_t round = 0; round < next && !err; round++) {
        err = kedgei_learn_shift(l, round);
    }
    *ret_next = next;
    return err;
}
