/* What the printer writes of a spec, the parser reads as the same spec: over drawn specs, of which each has
 * some keys with some values. Most that come of it are refused by rules between keys; it goes on until enough
 * were taken. SEED=n replays. */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/base/text.h"
#include "job/keys.h"
#include "tests/fixtures/run.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WATCHED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define WATCHED 1
#endif
#endif
#ifndef WATCHED
#define WATCHED 0
#endif

enum { TAKEN = WATCHED ? 500 : 5000, KEYS_MAX = 128 };

static struct kedge_rng rng;

static uint64_t below(uint64_t n)
{
    return kedge_rng_below(&rng, n);
}

static const char *one_of(const char *const *words)
{
    size_t count = 0;
    while (words[count]) {
        count++;
    }
    return words[below(count)];
}

/* ---- values ---- */

static void put_whole(const struct kedge_job_key *row, struct kedge_buf *out)
{
    double span = row->most - row->least; /* the small ones more often */
    uint64_t most = span < 16 || below(2) ? (uint64_t)(span < 20 ? span : 20) : (uint64_t)span;
    kedge_buf_printf(out, "%" PRIu64, (uint64_t)row->least + below(most + 1));
}

static void put_real(double least, double most, struct kedge_buf *out)
{
    char text[KEDGE_REAL_MAX];
    double unit = (double)below(1001) / 1000, v = least + unit * (below(2) ? most - least : 1 - least);
    v = v < least ? least : v > most ? most : v;
    kedge_real_encode(v, text);
    kedge_buf_printf(out, below(2) ? "%s" : "\"%s\"", text);
}

static void put_options(struct kedge_buf *out)
{
    size_t count = 1 + below(3), at = below(KEDGE_STRATEGY_OPTION_COUNT);
    for (size_t i = 0; i < count; i++) {
        const struct kedge_strategy_option *o =
            kedge_strategy_option_at((at + 5 * i) % KEDGE_STRATEGY_OPTION_COUNT);
        kedge_buf_printf(out, "%s\"%s\":", i ? "," : "{", o->name);
        if (below(2)) {
            kedge_buf_printf(out, "%" PRIu64, 1 + below(o->largest < 10 ? 1 : 10));
        } else {
            put_real(o->least, o->largest, out);
        }
    }
    kedge_buf_put_str(out, "}");
}

static void put_strategy(struct kedge_buf *out)
{
    kedge_buf_printf(out, "\"%s\"", kedge_strategy_at(below(kedge_strategy_count()))->name);
}

static void put_rule(struct kedge_buf *out)
{
    kedge_buf_printf(out, "\"%s\"", kedge_rule_at(below(kedge_rule_count()))->name);
}

#define EXTERNAL                                                                                        \
    ("\"external\",\"external\":{\"trainer\":\"mine\",\"tensors\":[{\"name\":\"a.b\",\"shape\":[3,2]}," \
     "{\"name\":\"c\",\"shape\":[]}],\"settings\":{\"depth\":[1,2],\"name\":\"\\u00e9\"}},"             \
     "\"initial_model\":\"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\"")
static const char *const models[] = {
    "{\"preset\":\"mclr\",\"inputs\":4,\"classes\":3}",
    "{\"preset\":\"mlp\",\"inputs\":4,\"hidden\":5,\"classes\":3}",
    "{\"layers\":[{\"type\":\"dense\",\"in\":4,\"out\":1}],\"loss\":\"mse\"}",
    "{\"preset\":\"lenet\",\"classes\":10}",
    EXTERNAL,
    NULL};
static const char *const classes[] = {"\"federated\"", "[\"a\",\"b \\\"c\\\"\",\"\\u00e4\"]", NULL};
static const char *const batches[] = {"\"auto\"", "1", "32", "65536", NULL};
static const char *const sizes[] = {"1", "4", "16", "300", NULL};
static const char *const servers[] = {"\"none\"", "\"momentum\"", "\"adagrad\"",
                                      "\"yogi\"", "\"adam\"",     NULL};
static const char *const compressions[] = {
    "{\"kind\":\"int8\"}", "{\"kind\":\"bf16\",\"carry\":0}", "{\"kind\":\"topk\",\"share\":0.25}",
    "{\"kind\":\"topk-int8\",\"share\":\"0.010001\",\"carry\":\"0.9\"}", NULL};
static const char *const cohorts[] = {"0", "6", "512", "[1,1]", "[2,64]", NULL};
static const char *const needs[] = {"[\"gpu=h100\"]", "[\"zone=eu\",\"a=1\"]", NULL};
static const char *const targets[] = {"[0.5]", "[\"0.25\",0.9]", "[0.000001,1]", NULL};
static const char *const budgets[] = {"{\"joules\":50000}",
                                      "{\"joules\":\"0.000001\",\"watts\":0.25}",
                                      "{\"site_minutes\":1e12}",
                                      "{\"money\":3,\"per_joule\":\"0.0000001\"}",
                                      "{\"money\":0.1,\"per_joule\":0,\"per_site_minute\":0.3}",
                                      NULL};
static const char *const plans[] = {"\"auto\"", "{\"data\":3}", "{\"time\":\"0.1\",\"energy\":0}",
                                    "{\"data\":1000,\"least_percent\":100}", NULL};
static const char *const fractions[] = {"0", "0.1", "\"0.25\"", "0.499999", NULL};
static const char *const bounds[] = {"0", "0.5", "3", "1e3", NULL};
static const char *const roots[] = {"\"a/s1\"", "\"bb/other.site\"", NULL};
static const char *const shared[] = {"[\"0\"]", "[\"0.weight\"]", "[\"0\",\"3\"]", "[\"0\",\"2\"]", NULL};
static const char *const sites[] = {"1", "6", "512", NULL};

static const struct {
    const char *key;
    const char *const *texts;
    void (*put)(struct kedge_buf *out);
} own[] = {
    {"classes", classes, NULL},
    {"budget", budgets, NULL},
    {"sites_per_round", cohorts, NULL},
    {"needs", needs, NULL},
    {"plan", plans, NULL},
    {"targets", targets, NULL},
    {"batch", batches, NULL},
    {"batch_start", sizes, NULL},
    {"batch_least", sizes, NULL},
    {"batch_most", sizes, NULL},
    {"server", servers, NULL},
    {"compression", compressions, NULL},
    {"rule_fraction", fractions, NULL},
    {"rule_bound", bounds, NULL},
    {"root_site", roots, NULL},
    {"control_sites", sites, NULL},
    {"options", NULL, put_options},
    {"strategy", NULL, put_strategy},
    {"share", shared, NULL},
    {"rule", NULL, put_rule},
};

static bool put_own(const struct kedge_job_key *row, struct kedge_buf *out)
{
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        if (strcmp(own[i].key, row->key) == 0) {
            kedge_buf_printf(out, ",\"%s\":", row->key);
            if (own[i].put) {
                own[i].put(out);
            } else {
                kedge_buf_put_str(out, one_of(own[i].texts));
            }
            return true;
        }
    }
    return false;
}

static void put_key(const struct kedge_job_key *row, struct kedge_buf *out)
{
    if (row->kind == KEDGE_JOB_KEY_OWN) {
        (void)put_own(row, out);
        return;
    }
    kedge_buf_printf(out, ",\"%s\":", row->key);
    if (row->kind == KEDGE_JOB_KEY_WORD) {
        kedge_buf_printf(out, "\"%s\"", one_of(row->words));
    } else if (row->kind == KEDGE_JOB_KEY_REAL) {
        put_real(row->least, row->most, out);
    } else if (row->kind == KEDGE_JOB_KEY_SHARE) {
        kedge_buf_printf(out, "0.%06" PRIu64, 300000 + below(700000));
    } else if (row->kind == KEDGE_JOB_KEY_SEED) {
        kedge_buf_printf(out, "\"%" PRIu64 "\"", kedge_rng_u64(&rng));
    } else {
        put_whole(row, out);
    }
}

/* One spec: what is required, a strategy half the time, and up to six other keys. */
static void draw(struct kedge_buf *out)
{
    static const char *const often[] = {"strategy", "groups", "sites_per_round"};
    bool has[KEYS_MAX] = {false};
    ck_assert_uint_le(kedge_job_key_count, KEYS_MAX);
    kedge_buf_clear(out);
    kedge_buf_printf(out,
                     "{\"name\":\"j\",\"data\":\"d-1\",\"rounds\":%" PRIu64 ",\"tenants\":%s,\"model\":%s",
                     1 + below(200), below(2) ? "[\"a\",\"bb\",\"c\"]" : "[\"bb\",\"a\"]", one_of(models));
    for (size_t i = 0; i < sizeof often / sizeof often[0]; i++) {
        has[kedge_job_key_find(often[i]) - kedge_job_keys] = below(2);
    }
    for (uint64_t i = below(7); i > 0; i--) {
        has[below(kedge_job_key_count)] = true;
    }
    for (size_t i = 0; i < kedge_job_key_count; i++) {
        if (has[i] && !kedge_job_keys[i].is_required) {
            put_key(&kedge_job_keys[i], out);
        }
    }
    kedge_buf_put_str(out, "}");
}

/* ---- the property ---- */

static struct kedge_job_spec first, second;

static void check_printed(const struct kedge_buf *drawn, struct kedge_buf *out)
{
    struct kedge_diag d = {.text = ""};
    out->len = 0;
    kedge_job_spec_put(&first, out);
    ck_assert_int_eq(out->err, KEDGE_OK);
    memset(&second, 0, sizeof second);
    int err = kedge_job_spec_parse(kedge_buf_view(out), &second, &d);
    if (err != KEDGE_OK || memcmp(&first, &second, sizeof first) != 0) {
        size_t at = 0;
        while (at < sizeof first && ((const char *)&first)[at] == ((const char *)&second)[at]) {
            at++;
        }
        ck_abort_msg("%.*s\nis printed as\n%.*s\nwhich is %s (byte %zu)", (int)drawn->len,
                     (const char *)drawn->ptr, (int)out->len, (const char *)out->ptr,
                     err ? d.text : "another spec", at);
    }
}

START_TEST(test_printed_and_read)
{
    struct kedge_buf text, out;
    const char *more = getenv("TAKEN");
    uint32_t taken = 0, drawn = 0, wanted = more ? (uint32_t)strtoul(more, NULL, 10) : TAKEN;
    const char *seed = getenv("SEED");
    kedge_rng_init(&rng, seed ? strtoull(seed, NULL, 10) : 1, KEDGE_RNG_TEST, 0, 0);
    kedge_buf_init(&text, KEDGE_SPEC_MAX);
    kedge_buf_init(&out, KEDGE_SPEC_MAX);
    uint32_t strategies[64] = {0};
    for (; taken < wanted && drawn / 40 < wanted; drawn++) {
        struct kedge_diag d;
        draw(&text);
        memset(&first, 0, sizeof first);
        if (kedge_job_spec_parse(kedge_buf_view(&text), &first, &d) == KEDGE_OK
            && kedge_job_spec_check_read(kedge_buf_view(&text), &first, &d) == KEDGE_OK) {
            check_printed(&text, &out);
            taken++;
            for (size_t i = 0; i < kedge_strategy_count(); i++) {
                strategies[i] += kedge_strategy_at(i) == first.strategy;
            }
        }
    }
    printf("  %u specs of %u drawn\n", taken, drawn);
    ck_assert_uint_eq(taken, wanted);
    for (size_t i = 0; i < kedge_strategy_count(); i++) { /* none was left out */
        struct kedge_diag d;
        text.len = 0;
        kedge_buf_printf(
            &text,
            "{\"name\":\"j\",\"data\":\"d\",\"rounds\":60,\"tenants\":[\"a\",\"b\"],\"model\":%s,"
            "\"strategy\":\"%s\",\"groups\":2,\"sites_per_round\":4,\"control_sites\":4}",
            models[0], kedge_strategy_at(i)->name);
        bool runs = kedge_job_spec_parse(kedge_buf_view(&text), &first, &d) == KEDGE_OK;
        ck_assert_msg(!runs || strategies[i] > 0, "%s was never drawn", kedge_strategy_at(i)->name);
    }
    kedge_buf_deinit(&text);
    kedge_buf_deinit(&out);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("job_print");
    TCase *tests = tcase_create("print");
    tcase_set_timeout(tests, 240);
    tcase_add_test(tests, test_printed_and_read);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
