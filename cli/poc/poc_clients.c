/* `kedge poc --data PATH`: sites that have a researcher's own clients, one each, read as `kedge sim` reads
 * them. What was found in the data and decided from it is kept in poc.json under "clients", so that the same
 * folder goes on without the data. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/poc/poc.h"
#include "common/base/try.h"
#include "common/tensor/json.h"
#include "sim/learn/report/report_sites.h"
#include "sim/partition/files.h"

enum { GROUPS = 3, SITES_OF_GROUP = 2, LIST_MAX = 1 << 20, TIMEOUT_S = 600, FILE_MAX = 1 << 20 };

/* Values beyond this are taken for measurements in units of their own, which want scales. */
#define PLAIN_MOST 10.0
/* Of the mean squared length of a sample: steps of a linear model then neither crawl nor swing. */
#define RATE_TIMES_LENGTH 4.0

static const struct {
    double value;
    const char *text;
} rates[] = {{0.2, "0.2"},       {0.1, "0.1"},       {0.05, "0.05"},    {0.02, "0.02"},
             {0.01, "0.01"},     {0.005, "0.005"},   {0.002, "0.002"},  {0.001, "0.001"},
             {0.0005, "0.0005"}, {0.0002, "0.0002"}, {0.0001, "0.0001"}};
enum { RATES = sizeof rates / sizeof rates[0] };

static const char *const missing_words[] = {"refuse", "drop", "mean", NULL};
static const char *const standardize_words[] = {"none", "local", "federated", NULL};

/* -1: it is none of them. The place is the value of the enum that the loader takes. */
static int find_word(const char *const *words, const char *word)
{
    int i = 0;
    while (words[i] && strcmp(words[i], word) != 0) {
        i++;
    }
    return words[i] ? i : -1;
}

/* ---- the command line ---- */

int kedge_poc_take_data(struct kedge_cli *c, struct kedge_poc *p)
{
    p->data = kedge_cli_option(c, "data", "");
    p->client = kedge_cli_option(c, "client", "");
    p->label = kedge_cli_option(c, "label", "");
    p->group = kedge_cli_option(c, "group", "");
    p->missing = kedge_cli_option(c, "missing", "");
    p->standardize = kedge_cli_option(c, "standardize", "");
    const char *dataset = kedge_cli_option(c, "dataset", ""),
               *partition = kedge_cli_option(c, "partition", "");
    p->dataset = p->data[0] ? "clients" : dataset[0] ? dataset : "digits";
    p->partition = p->data[0] ? "clients" : partition[0] ? partition : "planted";
    if (!p->data[0] && (p->client[0] || p->label[0] || p->group[0] || p->missing[0] || p->standardize[0])) {
        return kedge_cli_usage(c, "--client, --label, --group, --missing and --standardize belong to --data "
                                  "PATH, which is missing");
    }
    if (p->data[0] && (dataset[0] || partition[0])) {
        return kedge_cli_usage(c, "--%s: not with --data, whose clients are the sites",
                               dataset[0] ? "dataset" : "partition");
    }
    if (p->missing[0] && find_word(missing_words, p->missing) < 0) {
        return kedge_cli_usage(c, "--missing %s: expected refuse, drop or mean",
                               kedge_cli_word(p->missing).s);
    }
    if (p->standardize[0] && find_word(standardize_words, p->standardize) < 0) {
        return kedge_cli_usage(c, "--standardize %s: expected none, local or federated",
                               kedge_cli_word(p->standardize).s);
    }
    return 0;
}

/* ---- what the data are ---- */

/* A partition that was dealt out and cannot be prepared is released here; the caller owns it only on success.
 */
static int deal(const struct kedge_poc *p, struct kedge_clients *c, bool by_mean, struct kedge_partition *ret,
                struct kedge_diag *d)
{
    if (c->steps > 1) {
        (void)kedge_diag_set(
            d, KEDGE_E_USAGE,
            "%s: has data of later steps (train-1.csv and so on), but the sites of kedge poc "
            "keep the data that they begin with",
            p->data);
        return kedge_diag_hint(d, "kedge sim changes data at given rounds: \"steps\" in its spec");
    }
    KEDGE_TRY(kedge_clients_deal(c, 0, p->seed, ret, d));
    int err = kedge_clients_prepare(c, ret, by_mean, false, d);
    if (err) {
        kedge_partition_deinit(ret);
    }
    return err;
}

/* Reads the clients and deals their samples out; missing values are filled as a site would fill them. */
static int load(const struct kedge_poc *p, struct kedge_clients *ret, struct kedge_partition *ret_part,
                struct kedge_diag *d)
{
    int missing = p->missing[0] ? find_word(missing_words, p->missing) : 0;
    const struct kedge_clients_source source = {.path = p->data,
                                                .client = p->client,
                                                .label = p->label,
                                                .group = p->group,
                                                .step = "",
                                                .truth = "",
                                                .missing =
                                                    (enum kedge_csv_missing)(missing < 0 ? 0 : missing)};
    struct kedge_clients c;
    struct kedge_partition part;
    KEDGE_TRY(kedge_clients_load(&source, &c, d));
    int err = deal(p, &c, source.missing == KEDGE_CSV_MISSING_MEAN, &part, d);
    if (err) {
        kedge_clients_deinit(&c);
        return err;
    }
    *ret = c;
    *ret_part = part;
    return KEDGE_OK;
}

/* As many sites as there are clients, or fewer, which is said; each tenant has as many as the others. */
static int count_sites(struct kedge_poc *p, const struct kedge_clients *c, struct kedge_diag *d)
{
    if (p->sites * p->tenants > c->count || p->tenants > c->count) {
        (void)kedge_diag_set(
            d, KEDGE_E_USAGE, "%s: %u clients, but --tenants %llu with --sites %llu each want %llu", p->data,
            c->count, (unsigned long long)p->tenants, (unsigned long long)(p->sites ? p->sites : 1),
            (unsigned long long)(p->tenants * (p->sites ? p->sites : 1)));
        (void)kedge_diag_hint(d, "every site has one client of its own: take fewer");
        return KEDGE_E_USAGE;
    }
    if (p->sites == 0) {
        p->sites = c->count / p->tenants;
        p->sites = p->sites < KEDGE_POC_SITES_MAX ? p->sites : KEDGE_POC_SITES_MAX;
    }
    uint64_t all = p->sites * p->tenants;
    if (all < c->count) {
        kedge_cli_say(p->cli, "Of %u clients the first %llu take part, in the order of the data.\n", c->count,
                      (unsigned long long)all);
    }
    if (p->groups == 0) { /* a group of one site learns from nobody */
        p->groups = all / SITES_OF_GROUP < GROUPS ? all / SITES_OF_GROUP : GROUPS;
        p->groups = p->groups == 0 || strcmp(p->standardize, "federated") == 0 ? 1 : p->groups;
    }
    if (p->groups > all) {
        return kedge_diag_set(d, KEDGE_E_USAGE, "--groups %llu: expected at most as many as sites, %llu",
                              (unsigned long long)p->groups, (unsigned long long)all);
    }
    return KEDGE_OK;
}

/* Over the training samples of those that take part: the largest value, and the mean squared length. */
static void measure(const struct kedge_clients *c, const struct kedge_partition *part, uint32_t sites,
                    double *ret_most, double *ret_length)
{
    double most = 0, sum = 0;
    uint64_t rows = 0;
    for (uint32_t u = 0; u < sites; u++) {
        uint32_t n;
        const uint32_t *train = kedge_partition_train(part, u, &n);
        for (uint32_t i = 0; i < n; i++) {
            for (uint32_t f = 0; f < c->features; f++) {
                double v = fabs((double)c->x[(size_t)train[i] * c->features + f]);
                most = v > most ? v : most;
                sum += v * v;
            }
        }
        rows += n;
    }
    *ret_most = most;
    *ret_length = sum / (double)rows;
}

/* Gradient steps of a linear model swing when the rate times the squared length of a sample is above a
 * constant, whatever the data are. A first job should learn something without its researcher having to find
 * that out. */
static const char *choose_rate(double length)
{
    size_t i = 0;
    while (i + 1 < RATES && rates[i].value * length > RATE_TIMES_LENGTH) {
        i++;
    }
    return rates[i].text;
}

static json_t *names_of(const struct kedge_clients *c)
{
    json_t *names = json_array();
    const char *name = c->class_names;
    for (uint32_t i = 0; name && i < c->classes; i++, name = kedge_names_next(name)) {
        (void)json_array_append_new(names, json_string(name));
    }
    return names;
}

/* How the first job is to learn. Nobody has described the data: they are scaled if they look like
 * measurements, and the rate is one at which a linear model learns. Both are written into poc.json and into
 * the job's spec, where they can be seen and changed. */
static int decide(struct kedge_poc *p, const struct kedge_clients *c, const struct kedge_partition *part,
                  struct kedge_diag *d)
{
    double most, length;
    char path[PATH_MAX];
    measure(c, part, (uint32_t)(p->sites * p->tenants), &most, &length);
    const char *standardize = p->standardize[0] ? p->standardize : most > PLAIN_MOST ? "local" : "none";
    bool scaled = strcmp(standardize, "none") != 0;
    if (!p->standardize[0] && scaled) {
        kedge_cli_say(p->cli,
                      "Values up to %g: each site standardizes its own (\"standardize\": \"local\"; another "
                      "way: --standardize).\n",
                      most);
    }
    p->own = json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:I,s:I,s:o}", "data",
                       realpath(p->data, path) ? path : p->data, "client", p->client, "label", p->label,
                       "group", p->group, "missing", p->missing, "standardize", standardize, "learning_rate",
                       choose_rate(scaled ? c->features : length), "inputs", (json_int_t)c->features,
                       "classes", (json_int_t)(c->classes > 1 ? c->classes : 2), "class_names", names_of(c));
    return p->own ? KEDGE_OK : kedge_diag_set(d, KEDGE_E_NOMEM, "no memory for what the data are");
}

int kedge_poc_read_clients(struct kedge_poc *p, struct kedge_diag *d)
{
    struct kedge_clients c;
    struct kedge_partition part;
    KEDGE_TRY(load(p, &c, &part, d));
    int err = count_sites(p, &c, d);
    if (!err) {
        err = decide(p, &c, &part, d);
    }
    kedge_partition_deinit(&part);
    kedge_clients_deinit(&c);
    return err;
}

/* ---- poc.json ---- */

/* From poc.json, which a person may have edited: what does not fit is refused, and never passed on to the
 * loader. */
int kedge_poc_take_clients(struct kedge_poc *p, struct kedge_diag *d)
{
    p->data = kedge_cli_text(p->own, "data");
    p->client = kedge_cli_text(p->own, "client");
    p->label = kedge_cli_text(p->own, "label");
    p->group = kedge_cli_text(p->own, "group");
    p->missing = kedge_cli_text(p->own, "missing");
    p->standardize = kedge_cli_text(p->own, "standardize");
    int64_t inputs = kedge_cli_int(p->own, "inputs"), classes = kedge_cli_int(p->own, "classes");
    if (inputs < 1 || inputs > KEDGE_CSV_COLUMNS_MAX || classes < 2 || classes > KEDGE_CSV_LABEL_MAX + 1
        || find_word(standardize_words, p->standardize) < 0) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "%s/poc.json: \"clients\": expected what an earlier kedge poc wrote", p->dir);
    }
    p->inputs = (uint32_t)inputs;
    p->classes = (uint32_t)classes;
    return KEDGE_OK;
}

/* ---- the sites ---- */

/* A site's samples are picked out of all of them and written as a file of its own: its trainer never sees
 * those of the others. */
static int put_set(const struct kedge_poc *p, const struct kedge_clients *c,
                   const struct kedge_partition *part, uint32_t site, bool test, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    uint32_t n;
    const uint32_t *rows =
        test ? kedge_partition_test(part, site, &n) : kedge_partition_train(part, site, &n);
    const struct kedge_dataset all = {.n = c->n,
                                      .features = c->features,
                                      .classes = c->classes,
                                      .labels = c->labels,
                                      .reals = c->x,
                                      .scale = 1};
    struct kedge_dataset own;
    int err = kedge_path_join(path, p->clients[site].folder, test ? "data/test.npz" : "data/train.npz");
    if (!err) {
        err = kedge_dataset_pick(&all, rows, n, &own);
    }
    if (err) {
        return kedge_diag_set(d, err, "%s: %s", p->clients[site].folder, kedge_strerror(err));
    }
    err = kedge_partition_write_npz(path, &own, d);
    kedge_dataset_deinit(&own);
    return err;
}

static int put_site(const struct kedge_poc *p, const struct kedge_clients *c,
                    const struct kedge_partition *part, uint32_t site, struct kedge_diag *d)
{
    char folder[KEDGE_PATH_MAX];
    struct kedge_buf binding;
    KEDGE_TRY(kedge_path_join(folder, p->clients[site].folder, "data"));
    KEDGE_TRY(kedge_dir_make(folder, 0700, d));
    KEDGE_TRY(put_set(p, c, part, site, false, d));
    KEDGE_TRY(put_set(p, c, part, site, true, d));
    kedge_buf_init(&binding, KEDGE_PATH_MAX);
    kedge_buf_put_str(&binding, "{"); /* seen from the site's folder, which may be moved */
    kedge_partition_put_npz_source(&binding, "train", "data/train.npz");
    kedge_buf_put_str(&binding, ",");
    kedge_partition_put_npz_source(&binding, "test", "data/test.npz");
    kedge_buf_put_str(&binding, "}");
    int err = binding.err ? binding.err : kedge_poc_put_policy(p, site, kedge_buf_view(&binding), d);
    kedge_buf_deinit(&binding);
    return err;
}

/* sites.csv, as kedge sim --export has it: which site is which client. */
static int put_list(const struct kedge_poc *p, const struct kedge_clients *c,
                    const struct kedge_partition *part, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, LIST_MAX);
    kedge_buf_put_str(&text, "tenant,site,client,group,train,test\n");
    for (uint32_t i = 0; i < p->tenants * p->sites; i++) {
        kedge_buf_printf(&text, "%s,site-%u,", p->tenant_ids[i / p->sites].s, (unsigned)(i % p->sites + 1));
        kedge_learn_put_csv_text(&text, c->names[i]);
        kedge_buf_put_str(&text, ",");
        if (c->truth) {
            kedge_buf_printf(&text, "%u", c->truth[i]);
        }
        kedge_buf_printf(&text, ",%u,%u\n", part->sites[i].train_count, part->sites[i].test_count);
    }
    KEDGE_TRY(kedge_path_join(path, p->dir, "sites.csv"));
    return text.err ? text.err : kedge_file_write(path, kedge_buf_view(&text), 0600, d);
}

/* The sites have their data in their own folders already. Data that no longer fit what the folder was begun
 * with are refused. */
static int put_dealt(const struct kedge_poc *p, const struct kedge_clients *c,
                     const struct kedge_partition *part, struct kedge_diag *d)
{
    uint64_t all = p->tenants * p->sites;
    if (c->count < all || c->features != p->inputs) {
        (void)kedge_diag_set(d, KEDGE_E_STATE,
                             "%s: has %u clients and %u features, but %s was begun with others", p->data,
                             c->count, c->features, p->dir);
        return kedge_diag_hint(d, "put the data back as they were, or name a new folder");
    }
    for (uint32_t i = 0; i < all; i++) {
        KEDGE_TRY(put_site(p, c, part, i, d));
    }
    return put_list(p, c, part, d);
}

int kedge_poc_put_clients(const struct kedge_poc *p, struct kedge_diag *d)
{
    struct kedge_clients c;
    struct kedge_partition part;
    KEDGE_TRY(load(p, &c, &part, d));
    int err = put_dealt(p, &c, &part, d);
    kedge_partition_deinit(&part);
    kedge_clients_deinit(&c);
    return err;
}

/* Names of classes are put in only if there is one for each: the spec would be refused otherwise. */
void kedge_poc_put_client_keys(const struct kedge_poc *p, struct kedge_buf *out)
{
    const json_t *names = json_object_get(p->own, "class_names"), *name;
    size_t i;
    kedge_buf_printf(out,
                     ",\n  \"local_epochs\": 2,\n  \"learning_rate\": \"%s\",\n  \"standardize\": \"%s\",\n"
                     "  \"round_timeout_s\": %d",
                     kedge_cli_text(p->own, "learning_rate"), p->standardize, TIMEOUT_S);
    if (json_array_size(names) == p->classes) {
        kedge_buf_put_str(out, ",\n  \"classes\": [");
        json_array_foreach(names, i, name)
        {
            kedge_buf_put_str(out, i ? ", " : "");
            kedge_json_put_string(out, kedge_view_str(json_string_value(name)));
        }
        kedge_buf_put_str(out, "]");
    }
}

/* The owner's side of the job: which jobs may train here, on which data, by which program. On a real device
 * its owner writes this file. */
int kedge_poc_put_policy(const struct kedge_poc *p, uint32_t site, struct kedge_view binding,
                         struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf policy KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&policy, FILE_MAX);
    kedge_buf_printf(&policy, "{\"jobs\": \"*\", \"data\": {\"%s\": %.*s}", p->dataset, (int)binding.len,
                     (const char *)binding.ptr);
    if (p->trainer[0]) {
        kedge_buf_printf(&policy, ", \"trainer\": [\"%s\"]", p->trainer);
    }
    kedge_buf_put_str(&policy, p->insecure ? ", \"insecure\": true}\n" : "}\n");
    KEDGE_TRY(policy.err ? policy.err : kedge_path_join(path, p->clients[site].folder, "policy.json"));
    return kedge_file_write(path, kedge_buf_view(&policy), 0600, d);
}
