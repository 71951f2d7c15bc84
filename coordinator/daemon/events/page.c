/* A tenant's numbers are not stored. Its last event has the number that its count says; those before it in
 * the ring have the numbers before, counted over the events that it may see. */
#include "coordinator/daemon/events/page.h"

#include <inttypes.h>
#include <string.h>

#include "common/base/try.h"
#include "coordinator/daemon/events/events.h"
#include "coordinator/daemon/host.h"

enum { TEXT_LINES = 128 };
#define SEQ_MAX (UINT64_C(1) << 53)

static bool sees(uint32_t tenant, const struct kedge_event_row *row)
{
    return tenant == KEDGE_COORD_NONE || kedge_event_row_is_for(row, tenant);
}

static uint64_t count_visible(const struct kedge_event_ring *ring, uint32_t tenant)
{
    struct kedge_event_row row;
    uint64_t count = 0;
    for (uint64_t at = kedge_event_ring_first(ring); kedge_event_ring_get(ring, at, &row); at++) {
        count += sees(tenant, &row);
    }
    return count;
}

int kedge_host_events_page(const struct kedge_host *h, uint32_t tenant, uint64_t from, uint32_t most,
                           kedge_events_visit *visit, void *arg, struct kedge_events_page *ret)
{
    const struct kedge_event_ring *ring = kedge_host_events_ring(h);
    const uint64_t end = kedge_host_events_next(h, tenant);
    const uint64_t first = ring ? end - count_visible(ring, tenant) : end;
    struct kedge_event_row row;
    uint64_t seq = first;
    uint32_t taken = 0;
    *ret = (struct kedge_events_page){.first = first, .next = end, .end = end};
    for (uint64_t at = ring ? kedge_event_ring_first(ring) : 0;
         ring && taken < most && kedge_event_ring_get(ring, at, &row); at++) {
        if (!sees(tenant, &row)) {
            continue;
        }
        int got = seq >= from ? visit(arg, seq, &row) : 0;
        if (got < 0) {
            return got;
        }
        taken += (uint32_t)got;
        seq++;
    }
    ret->next = taken < most ? end : seq;
    return KEDGE_OK;
}

static int put_line(void *arg, uint64_t seq, const struct kedge_event_row *row)
{
    struct kedge_buf *out = arg;
    kedge_event_head(seq, out);
    kedge_buf_put(out, row->rest.ptr, row->rest.len);
    kedge_buf_put_str(out, "\n");
    return out->err ? out->err : 1;
}

int kedge_host_events_text(const struct kedge_host *h, uint32_t tenant, uint64_t from, struct kedge_buf *out)
{
    struct kedge_events_page page;
    struct kedge_buf lines KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&lines, TEXT_LINES * (KEDGE_EVENT_LINE_MAX + 1));
    KEDGE_TRY(kedge_host_events_page(h, tenant, from, TEXT_LINES, put_line, &lines, &page));
    if (from > 0 && from < page.first) {
        kedge_buf_printf(out,
                         "{\"v\":%d,\"gap\":{\"from\":%" PRIu64 ",\"to\":%" PRIu64 ",\"lost\":\"all\"}}\n",
                         KEDGE_EVENT_VERSION, from, page.first - 1);
    }
    kedge_buf_put(out, lines.ptr, lines.len);
    kedge_buf_printf(out, "{\"v\":%d,\"next\":%" PRIu64 "}\n", KEDGE_EVENT_VERSION, page.next);
    return out->err;
}

/* "NAME" and a number up to max at the beginning of *io, which then begins behind them. */
static bool take_number(struct kedge_view *io, const char *name, uint64_t max, uint64_t *ret)
{
    struct kedge_view v = *io;
    const size_t len = strlen(name);
    size_t digits = 0;
    if (v.len < len || !kedge_view_eq(kedge_view_of(v.ptr, len), kedge_view_str(name))) {
        return false;
    }
    v = kedge_view_of(v.ptr + len, v.len - len);
    while (digits < v.len && v.ptr[digits] >= '0' && v.ptr[digits] <= '9') {
        digits++;
    }
    *io = kedge_view_of(v.ptr + digits, v.len - digits);
    return kedge_decimal_decode(kedge_view_of(v.ptr, digits), max, ret) == KEDGE_OK;
}

bool kedge_events_target(struct kedge_view target, uint64_t *ret_from, uint64_t *ret_wait_s)
{
    *ret_from = *ret_wait_s = 0;
    if (kedge_view_eq(target, kedge_view_str("/events"))) {
        return true;
    }
    return take_number(&target, "/events?from=", SEQ_MAX, ret_from)
           && (target.len == 0
               || (take_number(&target, "&wait=", KEDGE_EVENTS_WAIT_S_MAX, ret_wait_s) && target.len == 0));
}
