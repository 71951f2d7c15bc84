/* When sites were last heard of, kept over restarts. Every request changes it, so it must cost
 * nothing: the time is noted in memory, and now and then a worker writes all that changed in one
 * transaction. It informs people; no decision depends on it, so a lost minute does no harm. */
#include "coordinator/daemon/restore/seen.h"

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/log.h"
#include "common/base/try.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/members.h"
#include "coordinator/daemon/records.h"

#define NS_PER_S UINT64_C(1000000000)
enum { PAUSE_S = 60, PAUSE_FIRST_S = 1 };

bool kedge_seen_is_due(const struct kedge_seen *s, uint64_t now_ns, bool first)
{
    uint64_t pause_ns = (first ? PAUSE_FIRST_S : PAUSE_S) * NS_PER_S;
    return !s->busy && (s->written_ns == 0 || now_ns - s->written_ns >= pause_ns);
}

/* ---- writing ---- */

struct seen_row {
    uint32_t site;
    uint64_t ms;
};
struct seen_work {
    struct kedge_work work;
    struct seen_row *rows;
    size_t count;
    int err;
    struct kedge_diag diag;
};

static int put_one(struct kedge_kv_tx *tx, const struct kedge_host *h, const struct seen_row *row)
{
    struct kedge_seen_record r = {.ms = row->ms};
    struct kedge_buf key KEDGE_CLEANUP(kedge_buf_deinit), value KEDGE_CLEANUP(kedge_buf_deinit);
    /* names and tenants of sites never change, wherever this runs */
    const struct kedge_site_entry *s = &h->sites[row->site];
    kedge_buf_init(&key, KEDGE_RECORD_KEY_MAX);
    kedge_buf_init(&value, KEDGE_RECORD_MAX);
    kedge_seen_record_encode(&h->tenants[s->tenant].id, &s->id, &r, &key, &value);
    KEDGE_TRY(key.err);
    KEDGE_TRY(value.err);
    return kedge_kv_put(tx, KEDGE_KV_STATE, kedge_buf_view(&key), kedge_buf_view(&value), KEDGE_KV_PUT);
}

static int put_all(struct kedge_host *h, const struct seen_row *rows, size_t count, struct kedge_diag *d)
{
    struct kedge_kv_tx *tx;
    int err = KEDGE_OK;
    KEDGE_TRY(kedge_kv_begin(h->kv, true, &tx, d));
    for (size_t i = 0; i < count && !err; i++) {
        err = put_one(tx, h, &rows[i]);
    }
    return kedge_kv_end(tx, err, d);
}

/* The sites whose time is not the stored one, as a copy: the worker must not read rows that change
 * while it writes. */
static struct seen_row *collect(const struct kedge_host *h, size_t *ret_count)
{
    struct seen_row *rows = kedge_mem_new((size_t)h->site_count + 1, sizeof *rows);
    size_t count = 0;
    for (uint32_t i = 0; rows && i < h->site_count; i++) {
        if (h->sites[i].last_seen_ms != h->sites[i].stored_seen_ms) {
            rows[count++] = (struct seen_row){i, h->sites[i].last_seen_ms};
        }
    }
    *ret_count = count;
    return rows;
}

static void seen_run(struct kedge_host *h, struct kedge_work *work)
{
    struct seen_work *w = (struct seen_work *)work;
    w->err = put_all(h, w->rows, w->count, &w->diag);
}

static void seen_done(struct kedge_host *h, struct kedge_item *item)
{
    struct seen_work *w = (struct seen_work *)item;
    for (size_t i = 0; i < w->count && !w->err; i++) {
        h->sites[w->rows[i].site].stored_seen_ms = w->rows[i].ms;
    }
    if (w->err) {
        kedge_log(KEDGE_LOG_WARN, "last seen", "not stored: %s",
                  w->diag.text[0] ? w->diag.text : kedge_strerror(w->err));
    }
    h->seen.busy = false;
    kedge_mem_free(w->rows);
    kedge_mem_free(w);
}

/* At the first request of a site that has no record the pause is short: after an enrolment people
 * look at once whether their device has come. */
void kedge_host_saw(struct kedge_host *h, uint32_t site)
{
    struct kedge_site_entry *s = &h->sites[site];
    uint64_t now_ns = kedge_os_now_ns();
    s->last_seen_ms = kedge_os_unix_ms();
    if (!kedge_seen_is_due(&h->seen, now_ns, s->stored_seen_ms == 0)) {
        return;
    }
    struct seen_work *w = kedge_mem_new(1, sizeof *w);
    size_t count = 0;
    struct seen_row *rows = w ? collect(h, &count) : NULL;
    if (!rows) { /* the next request tries again */
        kedge_mem_free(w);
        return;
    }
    *w = (struct seen_work){.work = {.item = {seen_done}, .run = seen_run}, .rows = rows, .count = count};
    h->seen = (struct kedge_seen){.written_ns = now_ns, .busy = true};
    kedge_host_work_own(h, &w->work);
}

void kedge_host_seen_flush(struct kedge_host *h)
{
    struct kedge_diag d = {.text = ""};
    size_t count = 0;
    struct seen_row *rows = collect(h, &count);
    int err = rows && count > 0 ? put_all(h, rows, count, &d) : KEDGE_OK;
    if (err) {
        kedge_log(KEDGE_LOG_WARN, "last seen", "not stored: %s", d.text[0] ? d.text : kedge_strerror(err));
    }
    kedge_mem_free(rows);
}

/* ---- reading ---- */

static int load_one(struct kedge_kv_tx *tx, const struct kedge_id *tenant, struct kedge_site_entry *s)
{
    struct kedge_buf key;
    struct kedge_view value;
    struct kedge_seen_record r;
    struct kedge_diag d = {.text = ""};
    kedge_buf_init(&key, KEDGE_RECORD_KEY_MAX);
    kedge_seen_record_key(tenant, &s->id, &key);
    int err = key.err ? key.err : kedge_kv_peek(tx, KEDGE_KV_STATE, kedge_buf_view(&key), &value);
    int bad = err ? KEDGE_OK : kedge_seen_record_decode(kedge_buf_view(&key), value, &r, &d);
    if (!err && !bad) {
        s->last_seen_ms = s->stored_seen_ms = r.ms;
    } else if (bad) {
        kedge_log(KEDGE_LOG_WARN, "last seen", "%s", d.text);
    }
    kedge_buf_deinit(&key);
    return err == KEDGE_E_NOT_FOUND ? KEDGE_OK : err;
}

int kedge_host_seen_load(struct kedge_host *h, struct kedge_diag *d)
{
    struct kedge_kv_tx *tx;
    int err = kedge_kv_begin(h->kv, false, &tx, d);
    if (err) {
        return err;
    }
    for (uint32_t i = 0; i < h->site_count && !err; i++) {
        err = load_one(tx, &h->tenants[h->sites[i].tenant].id, &h->sites[i]);
    }
    kedge_kv_abort(tx);
    return err ? kedge_diag_set(d, err, "coordinator.lmdb: cannot read when sites were seen: %s",
                                kedge_strerror(err))
               : KEDGE_OK;
}
