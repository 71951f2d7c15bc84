/* kedge sim SPEC.json --compare A,B,… --seeds N: every variant with every seed, a table of means with
 * confidence intervals, and differences from the first variant, paired by seed. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/local.h"
#include "cli/sim/sim_learn.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "sim/learn/compare.h"
#include "sim/learn/report/plot.h"
#include "sim/learn/spec/spec_json.h"

enum { NAME_SIZE = KEDGE_LEARN_VARIANT_NAME_MAX + 1, SCRIPT_MAX = 256 * 1024 * 1024, COLUMNS = 7, CELL = 40 };

/* All results stay in memory until the end: the table is made of pairs of runs, and the pictures of every
 * round. */
struct compare {
    struct kedge_cli_learn *l;
    uint32_t variants, seeds;
    char name[KEDGE_LEARN_VARIANTS_MAX][NAME_SIZE];
    const char *names[KEDGE_LEARN_VARIANTS_MAX];
    struct kedge_learn_result *results;    /* variants × seeds */
    struct kedge_learn_summary *summaries; /* the same */
    uint32_t done, ran;                    /* runs; those of them that were not there already */
    struct kedge_learn_spec spec;          /* of the run at work */
};

static struct kedge_learn_comparison comparison_of(const struct compare *k)
{
    return (struct kedge_learn_comparison){k->variants, k->seeds, k->names, k->summaries};
}

/* "a,b,c": names that are not empty, each once. */
static int take_names(struct compare *k)
{
    const char *at = k->l->compare;
    for (;;) {
        size_t len = strcspn(at, ",");
        if (len == 0 || len >= NAME_SIZE || k->variants == KEDGE_LEARN_VARIANTS_MAX) {
            return kedge_cli_usage(k->l->c,
                                   "--compare %s: expected 1 to %d names of strategies or of the spec's "
                                   "variants, with commas between",
                                   kedge_cli_word(k->l->compare).s, KEDGE_LEARN_VARIANTS_MAX);
        }
        memcpy(k->name[k->variants], at, len);
        k->name[k->variants][len] = '\0';
        for (uint32_t i = 0; i < k->variants; i++) {
            if (strcmp(k->name[i], k->name[k->variants]) == 0) {
                return kedge_cli_usage(k->l->c, "--compare: %s stands twice", k->name[i]);
            }
        }
        k->names[k->variants] = k->name[k->variants];
        k->variants++;
        at += len;
        if (*at == '\0') {
            return 0;
        }
        at++;
    }
}

/* ---- runs ---- */

/* False stops the run at a round's end, where its state can be saved. */
static bool on_round(void *arg, const struct kedge_learn_round *r, bool again)
{
    struct compare *k = arg;
    if (!again) {
        char text[96];
        snprintf(text, sizeof text, "%s, seed %u of %u: round %u of %u", k->names[k->done % k->variants],
                 k->done / k->variants + 1, k->seeds, r->round + 1, k->spec.job.rounds);
        kedge_cli_progress(k->l->c, "runs", k->done, (uint64_t)k->variants * k->seeds, text);
    }
    return !kedge_cli_interrupted();
}

/* OUT/runs/NAME-sSEED-DIGEST: another spec's results are never taken for this one's. */
static int folder_of(const struct compare *k, uint32_t v, char out[KEDGE_PATH_MAX], struct kedge_diag *d)
{
    struct kedge_hash digest;
    char hex[KEDGE_HASH_HEX_LEN + 1];
    int err = kedge_learn_spec_digest(&k->spec, &digest);
    kedge_hash_hex(&digest, hex);
    int n = err ? 0
                : snprintf(out, KEDGE_PATH_MAX, "%s/runs/%s-s%llu-%.12s", k->l->out, k->names[v],
                           (unsigned long long)k->spec.job.seed, hex);
    if (err || n >= KEDGE_PATH_MAX) {
        return kedge_diag_set(d, err ? err : KEDGE_E_TOO_LONG, "--out: the path is too long");
    }
    return KEDGE_OK;
}

/* A run that is in its folder already is taken from there, so that an interrupted comparison goes on with the
 * seed that was cut off. */
static int run_one(struct compare *k, uint32_t v, uint32_t seed, struct kedge_diag *d)
{
    char out[KEDGE_PATH_MAX];
    struct kedge_learn_result *r = &k->results[v * k->seeds + seed];
    int err = kedge_cli_learn_spec(k->l, k->names[v], seed, &k->spec, d);
    if (!err && k->l->out) {
        err = folder_of(k, v, out, d);
    }
    if (!err) {
        err = kedge_cli_learn_run(k->l, &k->spec, k->l->out ? out : NULL, true, on_round, k, r, d);
    }
    if (err) {
        return kedge_diag_wrap(d, err, "%s, seed %llu", k->names[v], (unsigned long long)k->spec.job.seed);
    }
    k->summaries[v * k->seeds + seed] = r->summary;
    k->ran += !r->was_complete;
    return r->complete || !kedge_cli_learn_speaks(k->l) ? KEDGE_OK : KEDGE_E_CANCELLED;
}

/* All specs before the first run: what is wrong with the last one is told now. By seed, then variant, so that
 * a comparison that is cut short has whole seeds. */
static int run_all(struct compare *k, struct kedge_diag *d)
{
    struct kedge_learn_spec spec;
    int err = KEDGE_OK;
    for (uint32_t v = 0; v < k->variants && !err; v++) {
        err = kedge_cli_learn_spec(k->l, k->names[v], 0, &spec, d);
    }
    for (; k->done < k->variants * k->seeds && !err; k->done++) {
        err = run_one(k, k->done % k->variants, k->done / k->variants, d);
    }
    kedge_cli_progress_end(k->l->c);
    return err;
}

/* ---- results ---- */

/* One seed has a mean and no interval; a measure that nobody took has neither. */
static void put_estimate(char cell[CELL], struct kedge_learn_estimate e, const char *sign)
{
    if (!isfinite(e.mean)) {
        snprintf(cell, CELL, "-");
    } else if (!isfinite(e.half)) {
        snprintf(cell, CELL, *sign ? "%+.2f" : "%.2f", 100 * e.mean);
    } else {
        snprintf(cell, CELL, *sign ? "%+.2f ±%.2f" : "%.2f ±%.2f", 100 * e.mean, 100 * e.half);
    }
}

/* Differences are paired by seed: the same seed means the same data and the same draws, so most of what
 * varies between runs cancels out. */
static void say_table(const struct compare *k)
{
    static const struct kedge_column columns[COLUMNS] = {
        {"variant", -20}, {"max %", 12},     {"last 10 %", 12}, {"worst 10th %", 12},
        {"Δ max", 12},    {"Δ last 10", 12}, {"sent", 8}};
    struct kedge_learn_comparison c = comparison_of(k);
    kedge_cli_head(k->l->c, columns, COLUMNS);
    for (uint32_t v = 0; v < k->variants; v++) {
        char cell[COLUMNS][CELL];
        const char *cells[COLUMNS];
        snprintf(cell[0], CELL, "%s", k->names[v]);
        put_estimate(cell[1], kedge_learn_compare(&c, v, KEDGE_LEARN_MEASURE_accuracy_max), "");
        put_estimate(cell[2], kedge_learn_compare(&c, v, KEDGE_LEARN_MEASURE_accuracy_last), "");
        put_estimate(cell[3], kedge_learn_compare(&c, v, KEDGE_LEARN_MEASURE_worst_last), "");
        put_estimate(cell[4], kedge_learn_compare_first(&c, v, KEDGE_LEARN_MEASURE_accuracy_max), "+");
        put_estimate(cell[5], kedge_learn_compare_first(&c, v, KEDGE_LEARN_MEASURE_accuracy_last), "+");
        snprintf(cell[6], CELL, "%s",
                 kedge_cli_learn_bytes(kedge_learn_compare(&c, v, KEDGE_LEARN_MEASURE_bytes).mean).s);
        for (size_t i = 0; i < COLUMNS; i++) {
            cells[i] = v == 0 && (i == 4 || i == 5) ? "" : cell[i];
        }
        kedge_cli_row(k->l->c, columns, COLUMNS, cells);
    }
}

/* {"kind":"comparison","seeds":…,"rounds":…,"first_seed":"…","variants":[…]} */
static void put_json(const struct compare *k, struct kedge_buf *out)
{
    struct kedge_learn_comparison c = comparison_of(k);
    uint64_t spent = 0;
    for (uint32_t i = 0; i < k->variants * k->seeds; i++) {
        spent += k->results[i].spent_ms;
    }
    kedge_buf_printf(out,
                     "{\"kind\":\"comparison\",\"name\":\"%s\",\"seeds\":%u,\"first_seed\":\"%llu\","
                     "\"rounds\":%u,\"seconds\":%llu,\"variants\":[",
                     k->spec.job.name.s, k->seeds, (unsigned long long)(k->spec.job.seed - (k->seeds - 1)),
                     k->spec.job.rounds, (unsigned long long)(spent / 1000));
    for (uint32_t v = 0; v < k->variants; v++) {
        kedge_buf_put_str(out, v ? "," : "");
        kedge_learn_put_comparison(&c, v, out);
    }
    kedge_buf_put_str(out, "]}");
}

static int draw(const struct compare *k, struct kedge_diag *d)
{
    uint32_t runs = k->variants * k->seeds;
    const struct kedge_learn_round **rounds = kedge_mem_new(runs, sizeof *rounds);
    uint32_t *counts = kedge_mem_new(runs, sizeof *counts);
    struct kedge_learn_curve curves[KEDGE_LEARN_VARIANTS_MAX];
    struct kedge_buf script;
    int err = rounds && counts ? KEDGE_OK : kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory");
    for (uint32_t i = 0; i < runs && !err; i++) {
        rounds[i] = k->results[i].rounds;
        counts[i] = k->results[i].count;
    }
    for (uint32_t v = 0; v < k->variants && !err; v++) {
        curves[v] =
            (struct kedge_learn_curve){k->names[v], k->seeds, rounds + v * k->seeds, counts + v * k->seeds};
    }
    kedge_buf_init(&script, SCRIPT_MAX);
    if (!err) {
        kedge_learn_plot_compare(k->spec.job.name.s, curves, k->variants, &script);
        err = kedge_cli_learn_draw(k->l, k->l->out, KEDGE_LEARN_PLOT_COMPARE, &script, d);
    }
    kedge_buf_deinit(&script);
    kedge_mem_free(rounds);
    kedge_mem_free(counts);
    return err;
}

static int keep(const struct compare *k, const struct kedge_buf *json, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    KEDGE_TRY(kedge_path_join(path, k->l->out, "compare.json"));
    KEDGE_TRY(kedge_file_write(path, kedge_buf_view(json), 0644, d));
    return draw(k, d);
}

/* Of several processes one speaks. The same text goes into compare.json and into the answer, so the two
 * cannot differ. */
static int answer(const struct compare *k)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_buf json;
    json_t *data = NULL;
    if (!kedge_cli_learn_speaks(k->l)) {
        return 0;
    }
    say_table(k);
    kedge_cli_say(k->l->c,
                  "\n%u run%s over %u seed%s, %u now; mean ± 95 %% confidence (Student's t); Δ: less %s, "
                  "paired by seed.\n",
                  k->variants * k->seeds, k->variants * k->seeds == 1 ? "" : "s", k->seeds,
                  k->seeds == 1 ? "" : "s", k->ran, k->names[0]);
    kedge_buf_init(&json, SCRIPT_MAX);
    put_json(k, &json);
    int err = json.err ? json.err : KEDGE_OK;
    if (!err && k->l->out) {
        err = keep(k, &json, &d);
    }
    if (!err && k->l->out) {
        kedge_cli_say(k->l->c, "Runs, compare.json and pictures are in %s.\n", k->l->out);
    }
    if (!err) {
        data = json_loadb((const char *)json.ptr, json.len, 0, NULL);
        err = data ? KEDGE_OK : KEDGE_E_NOMEM;
    }
    kedge_buf_deinit(&json);
    return err ? kedge_cli_learn_fail(k->l, err, &d) : kedge_cli_ok(k->l->c, data);
}

int kedge_cli_sim_compare(struct kedge_cli_learn *l)
{
    struct kedge_diag d = {.text = ""};
    struct compare k = {.l = l, .seeds = l->seeds ? (uint32_t)l->seeds : 1};
    if (!l->compare) {
        return kedge_cli_usage(l->c, "--seeds: expected --compare A,B,… with it");
    }
    int code = take_names(&k);
    if (code) {
        return code;
    }
    k.results = kedge_mem_new((size_t)k.variants * k.seeds, sizeof *k.results);
    k.summaries = kedge_mem_new((size_t)k.variants * k.seeds, sizeof *k.summaries);
    kedge_cli_catch_interrupt();
    int err = k.results && k.summaries ? run_all(&k, &d) : KEDGE_E_NOMEM;
    if (err == KEDGE_E_CANCELLED && kedge_cli_interrupted()) {
        code = kedge_cli_interrupt_end(l->c, "interrupted", "%s",
                                       l->out ? "the same command goes on where results were last saved"
                                              : "with --out DIR finished runs are kept, and others resumed");
    } else {
        code = err ? kedge_cli_learn_fail(l, err, &d) : answer(&k);
    }
    for (uint32_t i = 0; k.results && i < k.variants * k.seeds; i++) {
        kedge_learn_result_deinit(&k.results[i]);
    }
    kedge_mem_free(k.results);
    kedge_mem_free(k.summaries);
    return code;
}
