#include "sim/learn/trace.h"

#include <math.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/os/file.h"
#include "common/base/text.h"
#include "common/base/try.h"

enum { FIELDS = 4 };
#define TIME_MAX 1e12
#define SPEED_MAX 1e15

/* ---- reading ---- */

struct reading {
    const char *path;
    struct kedge_view rest;
    uint32_t number; /* of the line, from 1 */
    struct kedge_diag *d;
};

static int refuse(const struct reading *r, const char *expected)
{
    return kedge_diag_set(r->d, KEDGE_E_FORMAT, "%s: line %u: expected %s", r->path, r->number, expected);
}

/* The next line without its end; false: there is none. */
static bool next_line(struct reading *r, struct kedge_view *line)
{
    if (r->rest.len == 0) {
        return false;
    }
    const uint8_t *end = memchr(r->rest.ptr, '\n', r->rest.len);
    size_t len = end ? (size_t)(end - r->rest.ptr) : r->rest.len, used = len + (end != NULL);
    *line = kedge_view_of(r->rest.ptr, len > 0 && r->rest.ptr[len - 1] == '\r' ? len - 1 : len);
    r->rest = kedge_view_of(r->rest.ptr + used, r->rest.len - used);
    r->number++;
    return true;
}

static bool split(struct kedge_view line, struct kedge_view field[FIELDS])
{
    size_t count = 0, from = 0;
    for (size_t i = 0; i <= line.len; i++) {
        if (i == line.len || line.ptr[i] == ',') {
            if (count == FIELDS) {
                return false;
            }
            field[count++] = kedge_view_of(line.ptr + from, i - from);
            from = i + 1;
        }
    }
    return count == FIELDS;
}

static bool is_text(struct kedge_view v, const char *text)
{
    return v.len == strlen(text) && memcmp(v.ptr, text, v.len) == 0;
}

static int read_head(struct reading *r, bool *ret_by_site)
{
    struct kedge_view line, field[FIELDS];
    bool is_it = next_line(r, &line) && split(line, field) && is_text(field[0], "time_s")
                 && (is_text(field[1], "site") || is_text(field[1], "class"))
                 && is_text(field[2], "available") && is_text(field[3], "samples_per_s");
    if (!is_it) {
        r->number = 1;
        return refuse(r, "\"time_s,site,available,samples_per_s\" or \"time_s,class,…\"");
    }
    *ret_by_site = is_text(field[1], "site");
    return KEDGE_OK;
}

static int read_line(const struct reading *r, struct kedge_view text, const struct kedgei_trace *t,
                     uint32_t *ret_series, struct kedgei_trace_line *ret)
{
    struct kedge_view field[FIELDS];
    uint64_t series = 0, available = 0;
    struct kedgei_trace_line line = {.at = 0};
    if (!split(text, field)) {
        return refuse(r, "four fields with commas between");
    }
    if (kedge_real_decode(field[0], &line.at) || !(line.at >= 0 && line.at <= TIME_MAX)) {
        return refuse(r, "seconds from 0 in the first field");
    }
    if (kedge_decimal_decode(field[1], UINT32_MAX, &series) || series >= t->series) {
        return kedge_diag_set(r->d, KEDGE_E_FORMAT, "%s: line %u: expected a %s below %u in the second field",
                              r->path, r->number, t->by_site ? "site" : "device class", t->series);
    }
    if (kedge_decimal_decode(field[2], 1, &available)) {
        return refuse(r, "0 or 1 in the third field");
    }
    if (field[3].len > 0
        && (kedge_real_decode(field[3], &line.samples_per_s)
            || !(line.samples_per_s >= 1e-9 && line.samples_per_s <= SPEED_MAX))) {
        return refuse(r, "samples a second above 0, or nothing, in the fourth field");
    }
    line.available = available == 1;
    *ret_series = (uint32_t)series;
    *ret = line;
    return KEDGE_OK;
}

/* How many lines each has; begin[i + 1] holds that of series i. */
static int count_lines(struct reading r, struct kedgei_trace *t, uint32_t *ret_count)
{
    struct kedge_view text;
    struct kedgei_trace_line line;
    uint32_t series, count = 0;
    int err = KEDGE_OK;
    while (!err && next_line(&r, &text)) {
        if (count == KEDGEI_TRACE_LINES_MAX) {
            return kedge_diag_set(r.d, KEDGE_E_TOO_LONG, "%s: more than %d lines", r.path,
                                  KEDGEI_TRACE_LINES_MAX);
        }
        err = read_line(&r, text, t, &series, &line);
        if (!err) {
            t->begin[series + 1]++;
            count++;
        }
    }
    *ret_count = count;
    return err;
}

/* Second pass: each line to its series, whose times ascend. */
static int put_lines(struct reading r, struct kedgei_trace *t, uint32_t *next)
{
    struct kedge_view text;
    struct kedgei_trace_line line;
    uint32_t series;
    int err = KEDGE_OK;
    while (!err && next_line(&r, &text)) {
        err = read_line(&r, text, t, &series, &line);
        if (err) {
            break;
        }
        uint32_t at = next[series]++;
        if (at > t->begin[series] && line.at <= t->lines[at - 1].at) {
            return refuse(&r, "a later time than in the line before of the same site or class");
        }
        if (t->period > 0 && line.at >= t->period) {
            return refuse(&r, "a time below the trace's period");
        }
        t->lines[at] = line;
    }
    return err;
}

static int fill(struct reading *r, struct kedgei_trace *t)
{
    uint32_t count = 0, *next = NULL;
    t->begin = kedge_mem_new((size_t)t->series + 1, sizeof *t->begin);
    int err = t->begin ? count_lines(*r, t, &count) : KEDGE_E_NOMEM;
    if (!err) {
        for (uint32_t i = 0; i < t->series; i++) {
            t->begin[i + 1] += t->begin[i];
        }
        t->lines = kedge_mem_new(count ? count : 1, sizeof *t->lines);
        next = kedge_mem_new(t->series, sizeof *next);
        err = t->lines && next ? KEDGE_OK : KEDGE_E_NOMEM;
    }
    if (!err) {
        memcpy(next, t->begin, t->series * sizeof *next);
        err = put_lines(*r, t, next);
    }
    kedge_mem_free(next);
    return err == KEDGE_E_NOMEM ? kedge_diag_set(r->d, err, "no memory for the trace %s", r->path) : err;
}

int kedgei_trace_load(const char *path, uint32_t sites, uint32_t classes, double period,
                      struct kedgei_trace *ret, struct kedge_diag *reterr)
{
    struct kedgei_trace t = {.period = period};
    struct kedge_buf bytes KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&bytes, KEDGEI_TRACE_BYTES_MAX);
    KEDGE_TRY(kedge_file_read(path, &bytes, reterr));
    struct reading r = {.path = path, .rest = kedge_buf_view(&bytes), .d = reterr};
    KEDGE_TRY(read_head(&r, &t.by_site));
    t.series = t.by_site ? sites : classes;
    int err = fill(&r, &t);
    if (err) {
        kedgei_trace_deinit(&t);
        return err;
    }
    *ret = t;
    return KEDGE_OK;
}

void kedgei_trace_deinit(struct kedgei_trace *t)
{
    kedge_mem_free(t->begin);
    kedge_mem_free(t->lines);
    *t = (struct kedgei_trace){.by_site = false};
}

/* ---- looking up ---- */

struct view {
    const struct kedgei_trace_line *lines;
    uint32_t count;
    uint32_t holds, next; /* the line that holds now, UINT32_MAX: none; the first one behind now */
    double into;          /* the period, or since the start */
};

/* A sum of times and its remainder by the period are this much off at most: who waits for a line meets it. */
#define SLACK 1e-12

static struct view look(const struct kedgei_trace *t, uint32_t site, uint32_t class_index, double now)
{
    uint32_t series = t->by_site ? site : class_index;
    const double slack = now * SLACK, into = t->period > 0 ? fmod(now, t->period) : now;
    struct view v = {.lines = t->lines + t->begin[series],
                     .count = t->begin[series + 1] - t->begin[series],
                     .holds = UINT32_MAX,
                     .into = t->period > 0 && t->period - into <= slack ? 0 : into};
    uint32_t low = 0, high = v.count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (v.lines[middle].at <= v.into + slack) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    v.next = low;
    if (low > 0) {
        v.holds = low - 1;
    } else if (t->period > 0 && v.count > 0) {
        v.holds = v.count - 1;
    }
    return v;
}

struct kedgei_trace_state kedgei_trace_at(const struct kedgei_trace *t, uint32_t site, uint32_t class_index,
                                          double now)
{
    struct view v = look(t, site, class_index, now);
    if (v.holds == UINT32_MAX) {
        return (struct kedgei_trace_state){.available = true};
    }
    return (struct kedgei_trace_state){v.lines[v.holds].available, v.lines[v.holds].samples_per_s};
}

double kedgei_trace_when(const struct kedgei_trace *t, uint32_t site, uint32_t class_index, double now,
                         bool available)
{
    struct view v = look(t, site, class_index, now);
    for (uint32_t i = v.next; i < v.count; i++) {
        if (v.lines[i].available == available) {
            return now + (v.lines[i].at - v.into);
        }
    }
    for (uint32_t i = 0; i < v.next && t->period > 0; i++) {
        if (v.lines[i].available == available) {
            return now + (t->period - v.into) + v.lines[i].at;
        }
    }
    return (double)INFINITY;
}
