/* SITE/energy: read at the start, written around every task. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "client/daemon/energy/energy_impl.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/slots.h"
#include "common/base/try.h"

_Static_assert((int)KEDGE_ENERGY_TEXT_MAX <= (int)KEDGE_SLOT_CONTENT_MAX, "what is remembered fits its slot");

int kedgei_energy_read(struct kedge_site_host *h, struct kedge_diag *d)
{
    struct kedge_client_energy *e = h->energy;
    char path[KEDGE_PATH_MAX];
    struct kedge_buf text;
    struct kedge_diag wrong = {.text = ""};
    int err = kedge_client_path(h, path, "energy");
    if (err || !kedge_file_exists(path)) {
        return err;
    }
    kedge_buf_init(&text, KEDGE_ENERGY_TEXT_MAX);
    err = kedge_slots_read(path, &text, &e->sequence, d);
    if (!err && kedge_energy_stored_decode(kedge_buf_view(&text), &e->stored, &wrong) != KEDGE_OK) {
        err = kedge_diag_set(
            d, wrong.err == KEDGE_E_NOMEM ? wrong.err : KEDGE_E_CORRUPT,
            "%s: damaged (%.200s); move it away to forget what was used of budgets and learnt of "
            "batches",
            path, wrong.text);
    }
    kedge_buf_deinit(&text);
    return err;
}

int kedgei_energy_write(struct kedge_site_host *h, const struct kedge_budget *b, struct kedge_diag *d)
{
    struct kedge_client_energy *e = h->energy;
    char path[KEDGE_PATH_MAX];
    struct kedge_buf text;
    e->stored.budget = *b;
    kedge_buf_init(&text, KEDGE_ENERGY_TEXT_MAX);
    int err = kedge_client_path(h, path, "energy");
    if (!err) {
        err = kedge_energy_stored_encode(&e->stored, &text);
    }
    if (!err) {
        err = kedge_slots_write(path, e->sequence + 1, kedge_buf_view(&text), d);
    }
    e->sequence += !err;
    kedge_buf_deinit(&text);
    return err && !d->text[0] ? kedge_diag_set(d, err, "energy: %s", kedge_strerror(err)) : err;
}

/* A digest of everything that makes costs comparable: model, data, rates, sizes, and what the owner counts as
 * cost. Costs of another kind are not held against these, and a job under a new name with the same task goes
 * on with what was learnt. */
static void key_of(const struct kedge_client_work *w, uint8_t key[32])
{
    const struct kedge_job_spec *s = w->spec;
    const struct kedge_energy_policy *p = &w->policy->energy;
    char lr[KEDGE_REAL_MAX], l2[KEDGE_REAL_MAX], eta[KEDGE_REAL_MAX], most[KEDGE_REAL_MAX];
    struct kedge_buf text;
    struct kedge_hash hash;
    kedge_buf_init(&text, KEDGE_METRICS_LINE_MAX + 1024);
    kedge_model_put_json(&s->model, &text);
    kedge_real_encode(s->learning_rate, lr);
    kedge_real_encode(s->l2, l2);
    kedge_real_encode(p->eta, eta);
    kedge_real_encode(p->max_w, most);
    kedge_buf_printf(&text, "\n%s\n%s %s %d %u %u %u %s", s->data, lr, l2, (int)s->rate_rule, s->batch,
                     s->batch_least, s->batch_most, s->is_external ? s->external.trainer.s : "");
    char *bound = json_dumps(json_object_get(w->policy->data, s->data), JSON_COMPACT | JSON_SORT_KEYS);
    kedge_buf_printf(&text, "%s\n%s %s %d", bound ? bound : "", eta, most, (int)p->share);
    free(bound);
    kedge_sha256(kedge_buf_view(&text), &hash);
    memcpy(key, hash.b, sizeof hash.b);
    kedge_buf_deinit(&text);
}

struct kedge_energy_task *kedgei_energy_find(struct kedge_client_energy *e, const uint8_t key[32])
{
    for (uint32_t i = 0; i < e->stored.task_count; i++) {
        if (memcmp(e->stored.tasks[i].rounds.key, key, 32) == 0) {
            return &e->stored.tasks[i];
        }
    }
    return NULL;
}

/* Rows are kept in the order of their last use, the newest last, so the first one goes when there is no room.
 * The row is worked on as a copy and put back only when it is whole. */
int kedgei_energy_task(struct kedge_client_work *w, uint8_t ret_key[32], struct kedge_diag *d)
{
    struct kedge_energy_stored *s = &w->h->energy->stored;
    struct kedge_energy_task *t = kedge_mem_new(1, sizeof *t);
    uint32_t sizes[KEDGE_SPEC_BATCHES_MAX], start = 0, at = s->task_count;
    uint8_t key[32];
    KEDGE_TRY_MEM(t);
    key_of(w, key);
    for (uint32_t i = 0; i < s->task_count; i++) {
        at = memcmp(s->tasks[i].rounds.key, key, sizeof key) == 0 ? i : at;
    }
    int err = KEDGE_OK;
    struct kedge_batch_options options = kedge_batch_defaults();
    options.explore = w->policy->energy.explore;
    if (at < s->task_count) {
        *t = s->tasks[at];
        t->rounds.batch.options = options; /* as the owner, and this program, have it now */
    } else {
        const uint32_t count = kedge_job_spec_batches(w->spec, sizes, &start);
        err = kedge_rounds_init(&t->rounds, &options, sizes, count, start, d);
        memcpy(t->rounds.key, key, sizeof key);
        at = s->task_count == KEDGE_ENERGY_TASKS_MAX ? 0 : at; /* the oldest is forgotten */
    }
    if (!err) { /* the last from now on */
        if (at < s->task_count) {
            memmove(&s->tasks[at], &s->tasks[at + 1], (s->task_count - at - 1) * sizeof *t);
            s->task_count--;
        }
        memcpy(ret_key, key, sizeof key);
        s->tasks[s->task_count++] = *t;
    }
    kedge_mem_free(t);
    return err;
}

/* Local time, for hours and days are the owner's. */
struct kedge_budget_clock kedgei_energy_clock(void)
{
    const time_t now = (time_t)(kedge_os_unix_ms() / 1000);
    struct tm local;
    if (!localtime_r(&now, &local)) {
        return (struct kedge_budget_clock){(int64_t)now / 86400, 0};
    }
    const int64_t day = ((int64_t)now + local.tm_gmtoff) / 86400;
    return (struct kedge_budget_clock){day, (uint32_t)(local.tm_hour * 60 + local.tm_min)};
}

double kedgei_energy_most_w(const struct kedge_client_energy *e, const struct kedge_energy_policy *p)
{
    double sum = 0;
    if (p->max_w > 0) {
        return p->max_w;
    }
    for (uint32_t i = 0; i < e->meters.count; i++) {
        sum += e->meters.meters[i].counts ? e->meters.meters[i].power_max_w : 0;
    }
    return sum > 0 ? sum : (double)NAN;
}
