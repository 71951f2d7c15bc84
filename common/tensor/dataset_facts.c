/* What there is to know of a binding's data before anything trains on them. */
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/tensor/dataset_impl.h"

static int put_columns(const struct kedge_csv *train, const struct kedge_csv *test,
                       struct kedge_data_facts *facts, struct kedge_diag *reterr)
{
    const char *name = train->columns;
    facts->columns = kedge_mem_new(train->features, sizeof *facts->columns);
    if (!facts->columns) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for %u columns", train->features);
    }
    for (uint32_t c = 0; c < train->features; c++, name = kedge_names_next(name)) {
        memcpy(facts->columns[c].name, name, strlen(name) + 1);
        facts->columns[c].missing = train->missing[c] + (test->missing ? test->missing[c] : 0);
    }
    return KEDGE_OK;
}

static void put_reals(const struct kedge_dataset *ds, struct kedge_data_facts *facts)
{
    for (uint32_t i = 0; i < ds->n; i++) {
        float v = kedge_dataset_target(ds, i);
        facts->least = v < facts->least ? v : facts->least;
        facts->most = v > facts->most ? v : facts->most;
    }
}

/* told: names that both files have together; or NULL. */
static int put_classes(const struct kedge_data_binding *b, const struct kedge_data_labels *told,
                       const struct kedgei_loaded *train, const struct kedgei_loaded *test,
                       struct kedge_data_facts *facts, struct kedge_diag *reterr)
{
    const bool found = !told && train->csv.classes_count > 0;
    const char *name = told ? told->text : found ? train->csv.classes : b->classes;
    uint32_t named = told ? told->count : found ? train->csv.classes_count : b->classes_count;
    uint32_t count = train->ds.classes > test->ds.classes ? train->ds.classes : test->ds.classes;
    count = count > named ? count : named;
    count = count < KEDGE_CSV_CLASSES_MAX ? count : KEDGE_CSV_CLASSES_MAX;
    facts->wants_classes = found;
    facts->tells_classes = told != NULL;
    facts->classes = kedge_mem_new(count, sizeof *facts->classes);
    if (!facts->classes) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for %u classes", count);
    }
    facts->classes_count = count;
    for (uint32_t i = 0; i < count; i++) {
        if (i < named) {
            memcpy(facts->classes[i].name, name, strlen(name) + 1);
            name = kedge_names_next(name);
        } else {
            (void)snprintf(facts->classes[i].name, sizeof facts->classes[i].name, "%u", i);
        }
    }
    for (uint32_t i = 0; i < train->ds.n; i++) {
        facts->classes[(uint32_t)train->ds.labels[i] < count ? train->ds.labels[i] : 0].train +=
            (uint32_t)train->ds.labels[i] < count;
    }
    for (uint32_t i = 0; i < test->ds.n; i++) {
        facts->classes[(uint32_t)test->ds.labels[i] < count ? test->ds.labels[i] : 0].test +=
            (uint32_t)test->ds.labels[i] < count;
    }
    return KEDGE_OK;
}

/* Loaded exactly as training would load it, so that an owner sees before a job what would fail in
 * it. */
int kedge_data_binding_facts(const struct kedge_data_binding *binding, struct kedge_data_facts *ret,
                             struct kedge_diag *reterr)
{
    struct kedge_data_binding *any = kedge_mem_new(1, sizeof *any);
    struct kedgei_loaded train, test;
    struct kedge_data_labels labels;
    if (!any) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for a data binding");
    }
    *any = *binding;
    any->target = KEDGE_CSV_TARGET_ANY;
    int err = kedgei_data_binding_load(any, &train, &test, reterr);
    kedge_mem_free(any);
    if (!err && binding->tells_classes) {
        err = kedgei_loaded_unite(binding, &train, &test, &labels, reterr);
    }
    if (err) {
        return err;
    }
    struct kedge_data_facts facts = {.train = train.ds.n,
                                     .test = test.ds.n,
                                     .features = train.ds.features,
                                     .dropped = train.csv.dropped + test.csv.dropped,
                                     .is_real = train.ds.is_real};
    err = train.csv.columns ? put_columns(&train.csv, &test.csv, &facts, reterr) : KEDGE_OK;
    if (!err && facts.is_real) {
        facts.least = facts.most = kedge_dataset_target(&train.ds, 0);
        put_reals(&train.ds, &facts);
        put_reals(&test.ds, &facts);
    } else if (!err) {
        err = put_classes(binding, binding->tells_classes ? &labels : NULL, &train, &test, &facts, reterr);
    }
    kedgei_loaded_deinit(&train);
    kedgei_loaded_deinit(&test);
    if (err) {
        kedge_data_facts_deinit(&facts);
        return err;
    }
    *ret = facts;
    return KEDGE_OK;
}

void kedge_data_facts_deinit(struct kedge_data_facts *facts)
{
    kedge_mem_free(facts->columns);
    kedge_mem_free(facts->classes);
    *facts = (struct kedge_data_facts){.train = 0};
}
