/* Idea: a round is a row of typed columns; JSON, CSV and the bytes on disk walk the same table. */
#include "sim/learn/report/report.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/text.h"
#include "common/base/try.h"

enum kind { COUNT32, COUNT64, REAL, HEX, MEMBERS };
enum { LAST_ROUNDS = 10, VERSION = 2, ROUNDS_MOST = 1000000 };
static const char magic[8] = {'K', 'D', 'G', 'L', 'E', 'A', 'R', 'N'};

struct column {
    const char *name;
    enum kind kind;
    size_t offset;
};

#define COLUMN(name, kind)                                    \
    {                                                         \
#name, kind, offsetof(struct kedge_learn_round, name) \
    }
static const struct column columns[] = {
    COLUMN(round, COUNT32),
    COLUMN(virtual_s, REAL),
    COLUMN(bytes_up, COUNT64),
    COLUMN(bytes_down, COUNT64),
    COLUMN(updates, COUNT64),
    COLUMN(joules, REAL),
    COLUMN(accuracy, REAL),
    COLUMN(accuracy_sites, REAL),
    COLUMN(accuracy_worst, REAL),
    COLUMN(accuracy_auxiliary, REAL),
    COLUMN(accuracy_personal, REAL),
    COLUMN(accuracy_personal_worst, REAL),
    COLUMN(backdoor, REAL),
    COLUMN(loss, REAL),
    COLUMN(discrepancy, REAL),
    COLUMN(rand_index, REAL),
    COLUMN(groups, COUNT32),
    COLUMN(members, MEMBERS),
    COLUMN(detections, COUNT32),
    COLUMN(migrations, COUNT32),
    COLUMN(digest, HEX),
};
enum { COLUMN_COUNT = sizeof columns / sizeof columns[0] };

static uint32_t u32_at(const void *base, size_t offset)
{
    uint32_t v;
    memcpy(&v, (const char *)base + offset, sizeof v);
    return v;
}

static uint64_t u64_at(const void *base, size_t offset)
{
    uint64_t v;
    memcpy(&v, (const char *)base + offset, sizeof v);
    return v;
}

static double real_at(const void *base, size_t offset)
{
    double v;
    memcpy(&v, (const char *)base + offset, sizeof v);
    return v;
}

/* ---- text ---- */

uint32_t kedge_learn_group_slots(const struct kedge_learn_round *round)
{
    uint32_t n = KEDGE_LEARN_GROUPS_MAX;
    while (n > 0 && round->members[n - 1] == 0) {
        n--;
    }
    return n;
}

void kedge_learn_put_real(struct kedge_buf *out, double v)
{
    char text[KEDGE_REAL_MAX];
    if (!isfinite(v)) {
        kedge_buf_put_str(out, "null");
        return;
    }
    if (v == floor(v) && fabs(v) < 1e15) { /* 600, where the shortest is 6e+02 */
        snprintf(text, sizeof text, "%.0f", v);
    } else {
        kedge_real_encode(v, text);
    }
    kedge_buf_put_str(out, text);
}

static void put_members(const struct kedge_learn_round *r, const char *between, struct kedge_buf *out)
{
    uint32_t n = kedge_learn_group_slots(r);
    for (uint32_t g = 0; g < n; g++) {
        kedge_buf_printf(out, "%s%u", g ? between : "", r->members[g]);
    }
}

static void put_cell(const struct kedge_learn_round *r, const struct column *c, bool json,
                     struct kedge_buf *out)
{
    const char *quote = json ? "\"" : "";
    switch (c->kind) {
    case COUNT32:
        kedge_buf_printf(out, "%u", u32_at(r, c->offset));
        return;
    case COUNT64:
        kedge_buf_printf(out, "%llu", (unsigned long long)u64_at(r, c->offset));
        return;
    case REAL:
        if (json || isfinite(real_at(r, c->offset))) {
            kedge_learn_put_real(out, real_at(r, c->offset));
        }
        return;
    case HEX:
        kedge_buf_printf(out, "%s%016llx%s", quote, (unsigned long long)u64_at(r, c->offset), quote);
        return;
    case MEMBERS:
        kedge_buf_put_str(out, json ? "[" : "");
        put_members(r, json ? "," : " ", out);
        kedge_buf_put_str(out, json ? "]" : "");
        return;
    }
}

void kedge_learn_put_json_line(const struct kedge_learn_round *round, struct kedge_buf *out)
{
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        kedge_buf_printf(out, "%s\"%s\":", i ? "," : "{", columns[i].name);
        put_cell(round, &columns[i], true, out);
    }
    kedge_buf_put_str(out, "}\n");
}

void kedge_learn_put_csv_head(struct kedge_buf *out)
{
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        kedge_buf_printf(out, "%s%s", i ? "," : "", columns[i].name);
    }
    kedge_buf_put_str(out, "\n");
}

void kedge_learn_put_csv_line(const struct kedge_learn_round *round, struct kedge_buf *out)
{
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        kedge_buf_put_str(out, i ? "," : "");
        put_cell(round, &columns[i], false, out);
    }
    kedge_buf_put_str(out, "\n");
}

/* ---- summary ---- */

const char *kedge_learn_measure_name(enum kedge_learn_measure m)
{
    static const char *const names[] = {
#define NAME(name, what) #name,
        KEDGE_LEARN_MEASURES(NAME)
#undef NAME
    };
    KEDGE_ASSERT(m < KEDGE_LEARN_MEASURE_COUNT);
    return names[m];
}

/* Largest value of a column, NAN when no round has one; *ret_at is the first round that has it. */
static double largest(const struct kedge_learn_round *rounds, size_t count, size_t offset, size_t *ret_at)
{
    double best = (double)NAN;
    *ret_at = 0;
    for (size_t i = 0; i < count; i++) {
        double v = real_at(&rounds[i], offset);
        if (isfinite(v) && !(best >= v)) {
            best = v;
            *ret_at = i;
        }
    }
    return best;
}

/* Mean of the last ten rounds that have a value, NAN without any. */
static double last_mean(const struct kedge_learn_round *rounds, size_t count, size_t offset)
{
    double sum = 0;
    uint32_t n = 0;
    for (size_t i = count; i > 0 && n < LAST_ROUNDS; i--) {
        double v = real_at(&rounds[i - 1], offset);
        if (isfinite(v)) {
            sum += v;
            n++;
        }
    }
    return n ? sum / n : (double)NAN;
}

void kedge_learn_summarise(const struct kedge_learn_round *rounds, size_t count,
                           struct kedge_learn_summary *ret)
{
    static const struct {
        enum kedge_learn_measure max, last; /* COUNT: none */
        size_t offset;
    } reals[] = {
#define M(name) KEDGE_LEARN_MEASURE_##name
#define AT(name) offsetof(struct kedge_learn_round, name)
        {M(accuracy_max), M(accuracy_last), AT(accuracy)},
        {M(COUNT), M(sites_last), AT(accuracy_sites)},
        {M(COUNT), M(worst_last), AT(accuracy_worst)},
        {M(auxiliary_max), M(auxiliary_last), AT(accuracy_auxiliary)},
        {M(personal_max), M(personal_last), AT(accuracy_personal)},
        {M(COUNT), M(personal_worst_last), AT(accuracy_personal_worst)},
        {M(COUNT), M(backdoor_last), AT(backdoor)},
        {M(rand_max), M(rand_last), AT(rand_index)},
    };
    struct kedge_learn_summary s = {.rounds = (uint32_t)count};
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++) {
        size_t at;
        double best = largest(rounds, count, reals[i].offset, &at);
        if (reals[i].max != M(COUNT)) {
            s.value[reals[i].max] = best;
        }
        if (reals[i].max == M(accuracy_max) && count > 0) {
            s.round_of_max = rounds[at].round;
        }
        s.value[reals[i].last] = last_mean(rounds, count, reals[i].offset);
    }
    if (count > 0) {
        const struct kedge_learn_round *end = &rounds[count - 1];
        s.value[M(bytes)] = (double)end->bytes_up + (double)end->bytes_down;
        s.value[M(updates)] = (double)end->updates;
        s.value[M(virtual_s)] = end->virtual_s;
        s.value[M(joules)] = end->joules;
        s.value[M(detections)] = end->detections;
        s.value[M(migrations)] = end->migrations;
        s.digest = end->digest;
    }
    *ret = s;
#undef M
#undef AT
}

void kedge_learn_put_summary(const struct kedge_learn_summary *s, struct kedge_buf *out)
{
    kedge_buf_printf(out, "\"rounds\":%u,\"round_of_max\":%u", s->rounds, s->round_of_max);
    for (int m = 0; m < KEDGE_LEARN_MEASURE_COUNT; m++) {
        kedge_buf_printf(out, ",\"%s\":", kedge_learn_measure_name((enum kedge_learn_measure)m));
        kedge_learn_put_real(out, s->value[m]);
    }
    kedge_buf_printf(out, ",\"digest\":\"%016llx\"", (unsigned long long)s->digest);
}

/* ---- bytes ---- */

static void put_round(const struct kedge_learn_round *r, struct kedge_buf *out)
{
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        size_t at = columns[i].offset;
        if (columns[i].kind == MEMBERS) {
            for (size_t g = 0; g < KEDGE_LEARN_GROUPS_MAX; g++) {
                kedge_buf_put_u32(out, r->members[g]);
            }
        } else if (columns[i].kind == COUNT32) {
            kedge_buf_put_u32(out, u32_at(r, at));
        } else { /* a real travels as its bits: NAN, too, comes back as it was */
            kedge_buf_put_u64(out, u64_at(r, at));
        }
    }
}

static void read_round(struct kedge_reader *in, struct kedge_learn_round *r)
{
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        char *to = (char *)r + columns[i].offset;
        if (columns[i].kind == MEMBERS) {
            for (size_t g = 0; g < KEDGE_LEARN_GROUPS_MAX; g++) {
                r->members[g] = kedge_read_u32(in);
            }
        } else if (columns[i].kind == COUNT32) {
            uint32_t v = kedge_read_u32(in);
            memcpy(to, &v, sizeof v);
        } else {
            uint64_t v = kedge_read_u64(in);
            memcpy(to, &v, sizeof v);
        }
    }
}

void kedge_learn_put_saved(const struct kedge_learn_saved *s, struct kedge_buf *out)
{
    struct kedge_hash sum;
    size_t begin = out->len;
    kedge_buf_put(out, magic, sizeof magic);
    kedge_buf_put_u32(out, VERSION);
    kedge_buf_put(out, s->spec.b, KEDGE_HASH_LEN);
    kedge_buf_put_u8(out, s->complete);
    kedge_buf_put_u64(out, s->spent_ms);
    kedge_buf_put_u32(out, s->count);
    for (uint32_t i = 0; i < s->count; i++) {
        put_round(&s->rounds[i], out);
    }
    kedge_buf_put_u64(out, s->state.len);
    kedge_buf_put(out, s->state.ptr, s->state.len);
    if (!out->err) {
        kedge_sha256(kedge_view_of(out->ptr + begin, out->len - begin), &sum);
        kedge_buf_put(out, sum.b, KEDGE_HASH_LEN);
    }
}

static int read_body(struct kedge_reader *in, struct kedge_learn_saved *s, struct kedge_diag *d)
{
    (void)kedge_read_bytes(in, sizeof magic + sizeof(uint32_t));
    struct kedge_view spec = kedge_read_bytes(in, KEDGE_HASH_LEN);
    if (spec.len == KEDGE_HASH_LEN) {
        memcpy(s->spec.b, spec.ptr, KEDGE_HASH_LEN);
    }
    uint8_t complete = kedge_read_u8(in);
    s->complete = complete == 1;
    s->spent_ms = kedge_read_u64(in);
    s->count = kedge_read_u32(in);
    if (in->failed || complete > 1 || s->count > ROUNDS_MOST || s->count > in->rest.len) {
        return kedge_diag_set(d, KEDGE_E_CORRUPT, "a saved run: not what was written");
    }
    s->rounds = kedge_mem_new(s->count ? s->count : 1, sizeof *s->rounds);
    if (!s->rounds) {
        return kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory");
    }
    for (uint32_t i = 0; i < s->count; i++) {
        read_round(in, &s->rounds[i]);
    }
    uint64_t len = kedge_read_u64(in);
    s->state = kedge_read_bytes(in, len <= SIZE_MAX ? (size_t)len : SIZE_MAX);
    if (kedge_reader_end(in) != KEDGE_OK) {
        kedge_mem_free(s->rounds);
        return kedge_diag_set(d, KEDGE_E_CORRUPT, "a saved run: not what was written");
    }
    return KEDGE_OK;
}

int kedge_learn_read_saved(struct kedge_view bytes, struct kedge_learn_saved *ret, struct kedge_diag *reterr)
{
    struct kedge_learn_saved s = {.count = 0};
    struct kedge_hash sum;
    if (bytes.len < sizeof magic + sizeof(uint32_t) + KEDGE_HASH_LEN
        || memcmp(bytes.ptr, magic, sizeof magic) != 0) {
        return kedge_diag_set(reterr, KEDGE_E_CORRUPT, "a saved run: expected one, found something else");
    }
    struct kedge_reader head = kedge_reader_of(kedge_view_of(bytes.ptr + sizeof magic, sizeof(uint32_t)));
    uint32_t version = kedge_read_u32(&head);
    if (version != VERSION) {
        return kedge_diag_set(reterr, KEDGE_E_VERSION, "a saved run of version %u, expected %d", version,
                              VERSION);
    }
    kedge_sha256(kedge_view_of(bytes.ptr, bytes.len - KEDGE_HASH_LEN), &sum);
    if (memcmp(sum.b, bytes.ptr + bytes.len - KEDGE_HASH_LEN, KEDGE_HASH_LEN) != 0) {
        return kedge_diag_set(reterr, KEDGE_E_CORRUPT, "a saved run: its checksum does not fit");
    }
    struct kedge_reader in = kedge_reader_of(kedge_view_of(bytes.ptr, bytes.len - KEDGE_HASH_LEN));
    KEDGE_TRY(read_body(&in, &s, reterr));
    *ret = s;
    return KEDGE_OK;
}
