/* Numbers of what is kept have no gap, so an event is found by arithmetic. Each is one block of memory: the
 * tenants' handles, the topic, the rest of the line. */
#include "coordinator/events/ring.h"

#include <string.h>

#include "common/base/mem.h"

struct slot {
    uint32_t *block; /* tenants first, for their alignment */
    uint32_t tenant_count, topic_len, rest_len;
};

struct kedge_event_ring {
    struct slot *slots;
    uint32_t cap, begin, count;
    size_t bytes, bytes_max;
    uint64_t first; /* number of the oldest */
};

static size_t size_of(const struct slot *s)
{
    return s->tenant_count * sizeof *s->block + s->topic_len + s->rest_len;
}

int kedge_event_ring_new(uint32_t events_max, size_t bytes_max, struct kedge_event_ring **ret)
{
    struct kedge_event_ring *r = kedge_mem_new(1, sizeof *r);
    if (!r) {
        return KEDGE_E_NOMEM;
    }
    *r = (struct kedge_event_ring){
        .slots = kedge_mem_new(events_max, sizeof *r->slots), .cap = events_max, .bytes_max = bytes_max};
    if (!r->slots) {
        kedge_mem_free(r);
        return KEDGE_E_NOMEM;
    }
    *ret = r;
    return KEDGE_OK;
}

static void drop_oldest(struct kedge_event_ring *r)
{
    struct slot *s = &r->slots[r->begin];
    r->bytes -= size_of(s);
    kedge_mem_free(s->block);
    *s = (struct slot){.block = NULL};
    r->begin = (r->begin + 1) % r->cap;
    r->count--;
    r->first++;
}

void kedge_event_ring_free(struct kedge_event_ring *r)
{
    if (r) {
        while (r->count > 0) {
            drop_oldest(r);
        }
        kedge_mem_free(r->slots);
        kedge_mem_free(r);
    }
}

void kedge_event_ring_push(struct kedge_event_ring *r, const struct kedge_event_row *row)
{
    struct slot s = {.tenant_count = row->tenant_count,
                     .topic_len = (uint32_t)row->topic.len,
                     .rest_len = (uint32_t)row->rest.len};
    const size_t len = size_of(&s);
    s.block = len <= r->bytes_max ? kedge_mem_new(len + 1, 1) : NULL;
    const bool follows = r->count > 0 && row->seq == r->first + r->count;
    while (r->count > 0 && (!s.block || !follows || r->count == r->cap || r->bytes + len > r->bytes_max)) {
        drop_oldest(r);
    }
    if (!s.block) {
        return;
    }
    uint8_t *text = (uint8_t *)(s.block + s.tenant_count);
    if (s.tenant_count > 0) {
        memcpy(s.block, row->tenants, s.tenant_count * sizeof *s.block);
    }
    memcpy(text, row->topic.ptr, row->topic.len);
    memcpy(text + row->topic.len, row->rest.ptr, row->rest.len);
    if (r->count == 0) {
        r->first = row->seq;
    }
    r->slots[(r->begin + r->count) % r->cap] = s;
    r->count++;
    r->bytes += len;
}

uint32_t kedge_event_ring_count(const struct kedge_event_ring *r)
{
    return r->count;
}

uint64_t kedge_event_ring_first(const struct kedge_event_ring *r)
{
    return r->count > 0 ? r->first : 0;
}

bool kedge_event_ring_get(const struct kedge_event_ring *r, uint64_t seq, struct kedge_event_row *ret)
{
    if (r->count == 0 || seq < r->first || seq - r->first >= r->count) {
        return false;
    }
    const struct slot *s = &r->slots[(r->begin + (uint32_t)(seq - r->first)) % r->cap];
    const uint8_t *text = (const uint8_t *)(s->block + s->tenant_count);
    *ret = (struct kedge_event_row){.seq = seq,
                                    .tenants = s->block,
                                    .tenant_count = s->tenant_count,
                                    .topic = kedge_view_of(text, s->topic_len),
                                    .rest = kedge_view_of(text + s->topic_len, s->rest_len)};
    return true;
}

bool kedge_event_row_is_for(const struct kedge_event_row *row, uint32_t tenant)
{
    for (uint32_t i = 0; i < row->tenant_count; i++) {
        if (row->tenants[i] == tenant) {
            return true;
        }
    }
    return false;
}
