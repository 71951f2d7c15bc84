/* The text of SITE/memory, read and written. Pure: memory.c does the reading and writing around it.
 *
 * The file is the site's own, yet it is read as if a stranger had written it: it may be damaged, from an
 * older version or edited by hand, and what it says goes into signed requests. Ranges are those that the core
 * asserts, so a file that passes here cannot make it stop. Keys that older versions did not write may be
 * missing; there is no version number, because every key that was added has a meaning for its absence. */
#include "client/daemon/stored.h"

#include <jansson.h>
#include <string.h>

#include "chain/statement/statement.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/json/json.h"
#include "crypto/hash.h"

/* ---- envelopes ---- */

void kedge_envelope_free(struct kedge_site_envelope *e)
{
    kedge_mem_free(e->text);
    *e = (struct kedge_site_envelope){.text = NULL};
}

struct kedge_site_envelope *kedge_envelope_find(struct kedge_site_envelope *envelopes,
                                                const struct kedge_site_digest *digest)
{
    for (size_t i = 0; i < KEDGE_SITE_STORED_MAX; i++) {
        struct kedge_site_envelope *e = &envelopes[i];
        if (e->text && memcmp(e->digest.b, digest->b, sizeof digest->b) == 0) {
            return e;
        }
    }
    return NULL;
}

/* ---- what was signed ---- */

/* One row for each job and kind, the newest last. Only the last round matters, since rounds grow; when the
 * table is full the oldest row goes, whose job has most likely ended. If it has not, its site could sign
 * twice for that round only if it was offered the same task again. */
void kedge_signeds_note(struct kedge_site_signeds *s, const struct kedge_id *job, enum kedge_site_kind kind,
                        uint32_t round)
{
    uint32_t at = s->count == KEDGE_SIGNEDS_MAX ? 0 : s->count;
    for (uint32_t i = 0; i < s->count; i++) {
        at = s->items[i].kind == kind && kedge_id_eq(&s->items[i].job, job) ? i : at;
    }
    if (at < s->count) {
        s->count--;
        memmove(&s->items[at], &s->items[at + 1], (s->count - at) * sizeof s->items[0]);
    }
    s->items[s->count++] = (struct kedge_site_signed){*job, kind, round};
}

bool kedge_signeds_has(const struct kedge_site_signeds *s, const struct kedge_id *job,
                       enum kedge_site_kind kind, uint32_t round)
{
    for (uint32_t i = 0; i < s->count; i++) {
        const struct kedge_site_signed *row = &s->items[i];
        if (row->kind == kind && row->round == round && kedge_id_eq(&row->job, job)) {
            return true;
        }
    }
    return false;
}

/* ---- reading ---- */

static bool get_id(const json_t *o, const char *key, struct kedge_id *ret)
{
    const char *text = json_string_value(json_object_get(o, key));
    return text && kedge_id_from(kedge_view_str(text), ret) == KEDGE_OK;
}

static bool get_hex(const json_t *o, const char *key, struct kedge_site_digest *ret)
{
    const char *text = json_string_value(json_object_get(o, key));
    return text && kedge_hex_decode(kedge_view_str(text), ret->b, sizeof ret->b) == KEDGE_OK;
}

static bool get_number(const json_t *o, const char *key, uint64_t least, uint64_t most, uint64_t *ret)
{
    const json_t *v = json_object_get(o, key);
    json_int_t n = json_integer_value(v);
    bool ok = json_is_integer(v) && n >= 0 && (uint64_t)n >= least && (uint64_t)n <= most;
    *ret = ok ? (uint64_t)n : 0;
    return ok;
}

/* The ranges are those of the tasks that the core takes (client/core/work.c). */
static const char *get_result(const json_t *o, struct kedge_site_result *r)
{
    uint64_t kind, round, group, work = 0;
    if (!get_id(o, "job", &r->job)) {
        return "\"job\": expected a job's name";
    }
    if (!get_number(o, "kind", KEDGE_SITE_PRETRAIN, KEDGE_SITE_EVALUATE, &kind)
        || !get_number(o, "round", 0, KEDGE_ROUNDS_MAX, &round)
        || !get_number(o, "group", 0, KEDGE_GROUPS_MAX - 1, &group)
        || !get_number(o, "update_len", 0, KEDGE_ST_COUNT_MAX, &r->update_len)) {
        return "expected kind, round, group and update_len in their ranges";
    }
    if (json_object_get(o, "work") && !get_number(o, "work", 0, KEDGE_SITE_WORKS_MAX - 1, &work)) {
        return "\"work\": expected a number in its range";
    }
    r->kind = (enum kedge_site_kind)kind;
    r->round = (uint32_t)round;
    r->group = (uint32_t)group;
    r->work = (uint32_t)work;
    return get_hex(o, "base", &r->base) && get_hex(o, "update", &r->update)
                   && get_hex(o, "envelope", &r->envelope)
               ? NULL
               : "\"base\", \"update\", \"envelope\": expected digests of 64 lower-case hex digits";
}

/* The text must be what the digest says: it is sent as it stands. */
static int get_envelope(const json_t *o, const struct kedge_site_digest *digest,
                        struct kedge_site_envelope *ret)
{
    const json_t *v = json_object_get(o, "signed");
    struct kedge_view text = kedge_view_of(json_string_value(v), json_string_length(v));
    struct kedge_hash hash;
    if (text.len == 0 || text.len > KEDGE_ENTRY_MAX) {
        return KEDGE_E_FORMAT;
    }
    kedge_sha256(text, &hash);
    if (memcmp(hash.b, digest->b, sizeof hash.b) != 0) {
        return KEDGE_E_FORMAT;
    }
    char *copy = kedge_mem_new(text.len + 1, 1);
    KEDGE_TRY_MEM(copy);
    memcpy(copy, text.ptr, text.len);
    *ret = (struct kedge_site_envelope){*digest, copy, text.len};
    return KEDGE_OK;
}

/* A list; a site of one job at a time kept one, as "last_signed". */
static int read_signed(const json_t *o, struct kedge_site_signeds *ret, struct kedge_diag *d)
{
    const json_t *list = json_object_get(o, "signed"), *last = json_object_get(o, "last_signed");
    const size_t count = list ? json_array_size(list) : last ? 1 : 0;
    bool ok = (!list || json_is_array(list)) && count <= KEDGE_SIGNEDS_MAX;
    for (size_t i = 0; i < count && ok; i++) {
        const json_t *row = list ? json_array_get(list, i) : last;
        struct kedge_id job;
        uint64_t kind, round;
        ok = get_id(row, "job", &job) && get_number(row, "kind", KEDGE_SITE_PRETRAIN, KEDGE_SITE_TRAIN, &kind)
             && get_number(row, "round", 0, KEDGE_ROUNDS_MAX, &round);
        if (ok) {
            kedge_signeds_note(ret, &job, (enum kedge_site_kind)kind, (uint32_t)round);
        }
    }
    return ok ? KEDGE_OK
              : kedge_diag_set(d, KEDGE_E_FORMAT, "\"%s\": expected at most %d of job, kind and round",
                               list ? "signed" : "last_signed", KEDGE_SIGNEDS_MAX);
}

/* Results of one work are of one job, and those of a job of one work; a work has two at most. */
static bool fits_works(const struct kedge_site_memory *m, const struct kedge_site_result *r)
{
    uint32_t same = 0;
    for (uint32_t i = 0; i < m->result_count; i++) {
        const struct kedge_site_result *other = &m->results[i];
        if ((other->work == r->work) != kedge_id_eq(&other->job, &r->job)) {
            return false;
        }
        same += other->work == r->work;
    }
    return same < KEDGE_SITE_RESULTS_MAX;
}

static int read_results(const json_t *list, struct kedge_site_stored *s, struct kedge_diag *d)
{
    if (!json_is_array(list) || json_array_size(list) > KEDGE_SITE_STORED_MAX) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "\"results\": expected a list of at most %d results",
                              KEDGE_SITE_STORED_MAX);
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *row = json_array_get(list, i);
        struct kedge_site_result *r = &s->memory.results[i];
        const char *wrong = get_result(row, r);
        wrong = wrong || fits_works(&s->memory, r) ? wrong : "two tasks of one job, or two jobs in one work";
        int err = wrong ? kedge_diag_set(d, KEDGE_E_FORMAT, "\"results\": %s", wrong)
                        : get_envelope(row, &r->envelope, &s->envelopes[i]);
        if (err) {
            return wrong ? err
                         : kedge_diag_set(d, err, "\"results\": \"signed\": %s",
                                          err == KEDGE_E_NOMEM ? kedge_strerror(err)
                                                               : "expected the text that \"envelope\" says");
        }
        s->memory.result_count++;
    }
    return KEDGE_OK;
}

static int read_shifts(const json_t *list, struct kedge_site_memory *m, struct kedge_diag *d)
{
    bool ok = !list || (json_is_array(list) && json_array_size(list) <= KEDGE_SITE_SHIFTS_MAX);
    for (size_t i = 0; ok && i < json_array_size(list); i++) {
        const json_t *o = json_array_get(list, i), *answered = json_object_get(o, "answered");
        struct kedge_site_shift *shift = &m->shifts[m->shift_count++];
        ok = get_id(o, "job", &shift->job) && json_is_boolean(answered);
        shift->answered = json_is_true(answered);
    }
    return ok ? KEDGE_OK
              : kedge_diag_set(d, KEDGE_E_FORMAT, "\"shifts\": expected at most %d of job and answered",
                               KEDGE_SITE_SHIFTS_MAX);
}

static bool get_loss(const json_t *o, const char *key, double *ret)
{
    const json_t *v = json_object_get(o, key);
    return json_is_string(v) && kedge_real_decode(kedge_view_str(json_string_value(v)), ret) == KEDGE_OK
           && *ret >= 0;
}

static bool get_grouped(const json_t *o, struct kedge_grouped *g)
{
    uint64_t round;
    const json_t *labels = json_object_get(o, "labels");
    bool ok = get_id(o, "job", &g->job) && get_number(o, "round", 0, KEDGE_ROUNDS_MAX, &round)
              && get_number(o, "samples", 0, INT64_MAX, &g->samples) && json_is_array(labels)
              && json_array_size(labels) <= KEDGE_LABELS_MAX;
    if (!ok) {
        return false;
    }
    g->round = (uint32_t)round;
    g->has_loss = json_object_get(o, "loss") != NULL;
    if (g->has_loss && (!get_loss(o, "loss", &g->loss) || !get_loss(o, "loss_square", &g->loss_square))) {
        return false;
    }
    g->labels.classes = (uint32_t)json_array_size(labels);
    for (uint32_t i = 0; i < g->labels.classes && ok; i++) {
        const json_t *v = json_array_get(labels, i);
        json_int_t n = json_integer_value(v);
        ok = json_is_integer(v) && n >= 0 && (uint64_t)n <= KEDGE_ST_COUNT_MAX;
        g->labels.counts[i] = (uint64_t)n;
    }
    return ok;
}

static int read_grouped(const json_t *list, struct kedge_groupeds *g, struct kedge_diag *d)
{
    bool ok = !list || (json_is_array(list) && json_array_size(list) <= KEDGE_GROUPED_MAX);
    for (size_t i = 0; ok && i < json_array_size(list); i++) {
        ok = get_grouped(json_array_get(list, i), &g->items[g->count++]);
    }
    return ok ? KEDGE_OK
              : kedge_diag_set(d, KEDGE_E_FORMAT,
                               "\"grouped\": expected at most %d of job, round, samples and labels",
                               KEDGE_GROUPED_MAX);
}

static int read_kept(const json_t *list, struct kedge_kept_table *t, struct kedge_diag *d)
{
    bool ok = !list || (json_is_array(list) && json_array_size(list) <= KEDGE_KEPT_JOBS_MAX);
    for (size_t i = 0; ok && i < json_array_size(list); i++) {
        const json_t *o = json_array_get(list, i);
        struct kedge_kept_row *row = &t->items[t->count++];
        ok = get_id(o, "job", &row->job) && get_hex(o, "accepted", &row->accepted)
             && get_hex(o, "pending", &row->pending);
    }
    return ok ? KEDGE_OK
              : kedge_diag_set(d, KEDGE_E_FORMAT, "\"kept\": expected at most %d of job, accepted, pending",
                               KEDGE_KEPT_JOBS_MAX);
}

static int read_all(const json_t *o, struct kedge_site_stored *s, struct kedge_diag *d)
{
    const json_t *enrolled = json_object_get(o, "enrolled");
    if (!json_is_boolean(enrolled)) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "\"enrolled\": expected true or false");
    }
    s->memory.enrolled = json_is_true(enrolled);
    KEDGE_TRY(read_signed(o, &s->signeds, d));
    KEDGE_TRY(read_shifts(json_object_get(o, "shifts"), &s->memory, d));
    KEDGE_TRY(read_grouped(json_object_get(o, "grouped"), &s->groupeds, d));
    KEDGE_TRY(read_kept(json_object_get(o, "kept"), &s->kept, d));
    return read_results(json_object_get(o, "results"), s, d);
}

int kedge_stored_decode(struct kedge_view text, struct kedge_site_stored *ret, struct kedge_diag *reterr)
{
    struct kedge_site_stored s = {.memory = {.enrolled = false}};
    json_t *o = NULL;
    KEDGE_TRY(kedgei_json_load(text, KEDGE_STORED_TEXT_MAX, "memory", &o, reterr));
    int err = read_all(o, &s, reterr);
    if (err) {
        kedge_stored_deinit(&s);
    } else {
        *ret = s;
    }
    json_decref(o);
    return err;
}

void kedge_stored_deinit(struct kedge_site_stored *s)
{
    for (size_t i = 0; i < KEDGE_SITE_STORED_MAX; i++) {
        kedge_envelope_free(&s->envelopes[i]);
    }
}

/* ---- writing ---- */

static json_t *hex(const struct kedge_site_digest *d)
{
    char text[2 * sizeof d->b + 1];
    kedge_hex_encode(d->b, sizeof d->b, text);
    return json_string(text);
}

static json_t *result_json(const struct kedge_site_result *r, const struct kedge_site_envelope *e)
{
    return json_pack("{s:s,s:i,s:i,s:i,s:I,s:I,s:o,s:o,s:o,s:s%}", "job", r->job.s, "kind", (int)r->kind,
                     "work", (int)r->work, "round", (int)r->round, "group", (json_int_t)r->group,
                     "update_len", (json_int_t)r->update_len, "base", hex(&r->base), "update",
                     hex(&r->update), "envelope", hex(&r->envelope), "signed", e->text, e->len);
}

static json_t *signed_json(const struct kedge_site_signeds *s)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < s->count; i++) {
        const struct kedge_site_signed *row = &s->items[i];
        json_array_append_new(list, json_pack("{s:s,s:i,s:i}", "job", row->job.s, "kind", (int)row->kind,
                                              "round", (int)row->round));
    }
    return list;
}

static json_t *shifts_json(const struct kedge_site_memory *m)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < m->shift_count; i++) {
        json_array_append_new(
            list, json_pack("{s:s,s:b}", "job", m->shifts[i].job.s, "answered", (int)m->shifts[i].answered));
    }
    return list;
}

static json_t *grouped_json(const struct kedge_groupeds *g)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < g->count; i++) {
        const struct kedge_grouped *row = &g->items[i];
        json_t *labels = json_array();
        for (uint32_t k = 0; k < row->labels.classes; k++) {
            json_array_append_new(labels, json_integer((json_int_t)row->labels.counts[k]));
        }
        json_t *o = json_pack("{s:s,s:i,s:I,s:o}", "job", row->job.s, "round", (int)row->round, "samples",
                              (json_int_t)row->samples, "labels", labels);
        if (o && row->has_loss) {
            char loss[KEDGE_REAL_MAX], square[KEDGE_REAL_MAX];
            kedge_real_encode(row->loss, loss);
            kedge_real_encode(row->loss_square, square);
            json_object_set_new(o, "loss", json_string(loss));
            json_object_set_new(o, "loss_square", json_string(square));
        }
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *kept_json(const struct kedge_kept_table *t)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < t->count; i++) {
        const struct kedge_kept_row *row = &t->items[i];
        json_array_append_new(list, json_pack("{s:s,s:o,s:o}", "job", row->job.s, "accepted",
                                              hex(&row->accepted), "pending", hex(&row->pending)));
    }
    return list;
}

static int put_chunk(const char *text, size_t len, void *out)
{
    kedge_buf_put(out, text, len);
    return ((struct kedge_buf *)out)->err ? -1 : 0;
}

int kedge_stored_encode(const struct kedge_site_stored *s, struct kedge_buf *out)
{
    struct kedge_site_envelope envelopes[KEDGE_SITE_STORED_MAX];
    memcpy(envelopes, s->envelopes, sizeof envelopes);
    json_t *results = json_array();
    int err = results ? KEDGE_OK : KEDGE_E_NOMEM;
    for (uint32_t i = 0; i < s->memory.result_count && !err; i++) {
        const struct kedge_site_result *r = &s->memory.results[i];
        const struct kedge_site_envelope *e = kedge_envelope_find(envelopes, &r->envelope);
        err = !e ? KEDGE_E_BUG : json_array_append_new(results, result_json(r, e)) ? KEDGE_E_NOMEM : KEDGE_OK;
    }
    json_t *o = json_pack("{s:b,s:o}", "enrolled", (int)s->memory.enrolled, "results", results);
    if (o && s->signeds.count > 0 && json_object_set_new(o, "signed", signed_json(&s->signeds))) {
        err = KEDGE_E_NOMEM;
    }
    if (o && s->memory.shift_count > 0 && json_object_set_new(o, "shifts", shifts_json(&s->memory))) {
        err = KEDGE_E_NOMEM;
    }
    if (o && s->groupeds.count > 0 && json_object_set_new(o, "grouped", grouped_json(&s->groupeds))) {
        err = KEDGE_E_NOMEM;
    }
    if (o && s->kept.count > 0 && json_object_set_new(o, "kept", kept_json(&s->kept))) {
        err = KEDGE_E_NOMEM;
    }
    if (!err && (!o || json_dump_callback(o, put_chunk, out, JSON_COMPACT))) {
        err = out->err ? out->err : KEDGE_E_NOMEM;
    }
    json_decref(o);
    return err;
}
