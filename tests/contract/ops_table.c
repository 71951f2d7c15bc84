#include "tests/contract/ops_table.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"

static const float guard = 12345.678f;

bool suite_failed(const struct suite *s)
{
    return s->text[0] != 0;
}

void suite_fail(struct suite *s, const char *format, ...)
{
    if (!suite_failed(s)) {
        char why[256];
        va_list args;
        va_start(args, format);
        (void)vsnprintf(why, sizeof why, format, args);
        va_end(args);
        (void)snprintf(s->text, OPS_TABLE_TEXT, "%s, %s, %u sites: %s", s->ops->name, s->what, s->sites, why);
    }
}

static void drop_tensors(struct suite *s)
{
    for (uint32_t i = 0; i < s->tensors_count; i++) {
        s->ops->free(s->dev, s->tensors[i].block);
        free(s->tensors[i].host);
        free(s->tensors[i].got);
        free(s->tensors[i].want);
    }
    s->tensors_count = 0;
}

void suite_case(struct suite *s, uint32_t n, const char *format, ...)
{
    uint64_t seeds[OPS_TABLE_SITES_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(s->what, sizeof s->what, format, args);
    va_end(args);
    drop_tensors(s);
    for (uint32_t i = 0; i < s->sites; i++) {
        s->counts[i] = i == 0 ? n : i + 1 == s->sites ? 0 : (n + 1) / 2;
        seeds[i] = UINT64_C(0x0123456789abcdef) + i;
    }
    const struct kedge_ops_moment moment = {seeds, UINT64_C(0x100000002), 0, s->counts};
    s->ops->moment(s->dev, &moment);
}

void tensor_put(struct suite *s, struct tensor *t)
{
    const size_t all = t->count + 2 * (size_t)OPS_TABLE_GUARD;
    for (uint32_t site = 0; site < s->sites; site++) {
        for (size_t i = 0; i < all; i++) {
            const bool inside = i >= OPS_TABLE_GUARD && i < OPS_TABLE_GUARD + t->count;
            t->got[i] = inside ? t->host[site * t->count + i - OPS_TABLE_GUARD] : guard;
        }
        s->ops->upload(s->dev, site, t->block, t->got, all * sizeof(float));
    }
}

static struct tensor *tensor_new(struct suite *s, size_t count)
{
    const size_t all = count + 2 * (size_t)OPS_TABLE_GUARD;
    if (s->tensors_count == OPS_TABLE_TENSORS) {
        abort();
    }
    struct tensor *t = &s->tensors[s->tensors_count++];
    t->count = count;
    t->block = s->ops->alloc(s->dev, all * sizeof(float));
    t->at = (float *)t->block + OPS_TABLE_GUARD;
    t->host = malloc((s->sites * count + 1) * sizeof *t->host);
    t->got = malloc((s->sites * count + all) * sizeof *t->got);
    t->want = malloc((s->sites * count + 1) * sizeof *t->want);
    if (!t->block || !t->host || !t->got || !t->want) {
        abort();
    }
    return t;
}

struct tensor *tensor_random(struct suite *s, size_t count, double size)
{
    struct tensor *t = tensor_new(s, count);
    for (size_t i = 0; i < s->sites * count; i++) {
        t->host[i] = (float)((2 * kedge_rng_unit(&s->rng) - 1) * size);
    }
    tensor_put(s, t);
    return t;
}

struct tensor *tensor_empty(struct suite *s, size_t count)
{
    struct tensor *t = tensor_new(s, count);
    for (size_t i = 0; i < s->sites * count; i++) {
        t->host[i] = NAN;
    }
    tensor_put(s, t);
    return t;
}

void tensor_mask(struct suite *s, struct tensor *t, size_t width)
{
    for (uint32_t site = 0; site < s->sites; site++) {
        for (size_t i = s->counts[site] * width; i < t->count; i++) {
            t->host[site * t->count + i] = 0.0f;
        }
    }
    tensor_put(s, t);
}

/* Into got, and no guard is touched. */
static bool tensor_get(struct suite *s, struct tensor *t, const char *name)
{
    const size_t all = t->count + 2 * (size_t)OPS_TABLE_GUARD;
    float *whole = malloc(all * sizeof *whole);
    bool is_fine = whole != NULL;
    for (uint32_t site = 0; site < s->sites && is_fine; site++) {
        const int err = s->ops->download(s->dev, site, whole, t->block, all * sizeof *whole);
        if (err) {
            char text[128] = "";
            (void)s->ops->sync(s->dev, text, sizeof text);
            suite_fail(s, "%s: error %d: %s", name, err, text);
            is_fine = false;
        }
        for (size_t i = 0; i < all && is_fine; i++) {
            const bool inside = i >= OPS_TABLE_GUARD && i < OPS_TABLE_GUARD + t->count;
            if (!inside && whole[i] != guard) {
                suite_fail(s, "%s: written %s", name, i < OPS_TABLE_GUARD ? "before it" : "behind it");
                is_fine = false;
            }
        }
        memcpy(t->got + site * t->count, whole + OPS_TABLE_GUARD, t->count * sizeof *whole);
    }
    free(whole);
    return is_fine;
}

/* First place from where got is not near want, or count. */
static size_t compare(const float *got, const double *want, size_t count, double allowed, double middle)
{
    for (size_t i = 0; i < count; i++) {
        if (!(fabs((double)got[i] - want[i]) <= allowed * (fabs(want[i]) + middle))) {
            return i;
        }
    }
    return count;
}

static void check_span(struct suite *s, const char *name, uint32_t site, float *got, const double *want,
                       size_t count, size_t terms)
{
    double squares = 0;
    size_t most = 0;
    for (size_t i = 0; i < count; i++) {
        squares += want[i] * want[i];
        most = fabs(want[i]) > fabs(want[most]) ? i : most;
    }
    const double middle = count > 0 ? sqrt(squares / (double)count) : 0;
    const double allowed = OPS_TABLE_TOLERANCE * 0x1p-23 * sqrt((double)terms);
    const size_t bad = compare(got, want, count, allowed, middle);
    s->checks++;
    if (bad < count) {
        suite_fail(s, "%s: site %u, place %zu of %zu: %.9g, expected %.9g", name, site, bad, count,
                   (double)got[bad], want[bad]);
        return;
    }
    if (count > 0 && want[most] != 0) { /* and the comparison sees what it is there to see */
        const float kept = got[most];
        got[most] = (float)(want[most] * 1.01);
        if (compare(got, want, count, allowed, middle) == count) {
            suite_fail(s, "%s: 1 %% of error would not be seen", name);
        }
        got[most] = kept;
    }
}

void tensor_check(struct suite *s, struct tensor *t, size_t terms, const char *name)
{
    for (uint32_t site = 0; !suite_failed(s) && tensor_get(s, t, name) && site < s->sites; site++) {
        check_span(s, name, site, t->got + site * t->count, t->want + site * t->count, t->count, terms);
    }
}

void tensor_check_rows(struct suite *s, struct tensor *t, size_t width, size_t terms, const char *name)
{
    for (uint32_t site = 0; !suite_failed(s) && tensor_get(s, t, name) && site < s->sites; site++) {
        check_span(s, name, site, t->got + site * t->count, t->want + site * t->count,
                   s->counts[site] * width, terms);
    }
}

const char *ops_table_check(const struct kedge_ops *ops, const struct kedge_ops_config *config, uint64_t seed,
                            char *text, unsigned long *ret_checks)
{
    const uint32_t sites = config->sites;
    struct suite s = {.ops = ops, .sites = sites, .text = text};
    char why[128] = "";
    text[0] = 0;
    kedge_rng_init(&s.rng, seed, KEDGE_RNG_TEST, sites, 0);
    if (sites == 0 || sites > OPS_TABLE_SITES_MAX || ops->open(config, &s.dev, why, sizeof why)) {
        (void)snprintf(text, OPS_TABLE_TEXT, "%s cannot be opened for %u sites: %s", ops->name, sites, why);
        return text;
    }
    ops_table_device(&s);
    ops_table_layers(&s);
    ops_table_sequence(&s);
    ops_table_rest(&s);
    drop_tensors(&s);
    if (!suite_failed(&s) && ops->sync(s.dev, why, sizeof why)) {
        suite_fail(&s, "at the end: %s", why);
    }
    ops->close(s.dev);
    *ret_checks = s.checks;
    return suite_failed(&s) ? text : NULL;
}
