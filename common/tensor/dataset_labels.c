/* Classes by the names that the files themselves have: of both sets together, in byte order. */
#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/tensor/dataset_impl.h"

/* Where the names of a set stand among all. */
struct places {
    int32_t *at; /* owned */
    uint32_t count;
};

static int places_new(const struct kedge_csv *csv, struct places *ret, struct kedge_diag *reterr)
{
    ret->count = csv->classes_count;
    ret->at = kedge_mem_new(csv->classes_count + 1, sizeof *ret->at);
    return ret->at ? KEDGE_OK : kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for names of classes");
}

/* Both lists ascend, so that the smaller of two heads comes next. */
static int merge(const struct kedge_csv *a, const struct kedge_csv *b, struct places *of_a,
                 struct places *of_b, struct kedge_data_labels *ret, struct kedge_diag *reterr)
{
    const char *x = a->classes, *y = b->classes;
    uint32_t i = 0, k = 0;
    size_t used = 0;
    *ret = (struct kedge_data_labels){.count = 0};
    while (i < a->classes_count || k < b->classes_count) {
        int order = i == a->classes_count ? 1 : k == b->classes_count ? -1 : strcmp(x, y);
        const char *next = order <= 0 ? x : y;
        size_t len = strlen(next) + 1;
        if (used + len > KEDGE_CLASS_NAMES_BYTES_MAX) {
            return kedge_diag_set(reterr, KEDGE_E_SHAPE,
                                  "the labels have more than %d bytes of names, which is the most that a job "
                                  "learns: is this column the label?",
                                  KEDGE_CLASS_NAMES_BYTES_MAX);
        }
        memcpy(ret->text + used, next, len);
        used += len;
        if (order <= 0) {
            of_a->at[i++] = (int32_t)ret->count;
            x = kedge_names_next(x);
        }
        if (order >= 0) {
            of_b->at[k++] = (int32_t)ret->count;
            y = kedge_names_next(y);
        }
        ret->count++;
    }
    return KEDGE_OK;
}

/* Each file has numbered its names by itself; here they get the numbers that the names have in both
 * together. */
static void move_labels(struct kedge_dataset *ds, const struct places *places, uint32_t classes)
{
    for (uint32_t i = 0; i < ds->n; i++) {
        ds->labels[i] = places->at[ds->labels[i]];
    }
    ds->classes = classes;
}

static int unite(const struct kedge_data_binding *binding, struct kedgei_loaded *train,
                 struct kedgei_loaded *test, struct places *of_train, struct places *of_test,
                 struct kedge_data_labels *ret, struct kedge_diag *reterr)
{
    if (train->csv.classes_count == 0 || train->ds.is_real
        || (binding->has_test && test->csv.classes_count == 0)) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE,
                              "\"classes\": \"federated\": labels that are names stand in files of csv");
    }
    KEDGE_TRY(places_new(&train->csv, of_train, reterr));
    KEDGE_TRY(places_new(&test->csv, of_test, reterr));
    return merge(&train->csv, &test->csv, of_train, of_test, ret, reterr);
}

int kedgei_loaded_unite(const struct kedge_data_binding *binding, struct kedgei_loaded *train,
                        struct kedgei_loaded *test, struct kedge_data_labels *ret, struct kedge_diag *reterr)
{
    struct places of_train = {.at = NULL}, of_test = {.at = NULL};
    int err = unite(binding, train, test, &of_train, &of_test, ret, reterr);
    if (!err) {
        move_labels(&train->ds, &of_train, ret->count);
        move_labels(&test->ds, binding->has_test ? &of_test : &of_train, ret->count);
    } else {
        kedgei_loaded_deinit(train);
        kedgei_loaded_deinit(test);
    }
    kedge_mem_free(of_train.at);
    kedge_mem_free(of_test.at);
    return err ? kedge_diag_wrap(reterr, err, "%s", binding->train.path) : KEDGE_OK;
}

int kedge_data_binding_find(const struct kedge_data_binding *binding, struct kedge_dataset *train,
                            struct kedge_dataset *test, struct kedge_data_labels *ret_labels,
                            struct kedge_diag *reterr)
{
    struct kedgei_loaded a, b;
    KEDGE_TRY(kedgei_data_binding_load(binding, &a, &b, reterr));
    KEDGE_TRY(kedgei_loaded_unite(binding, &a, &b, ret_labels, reterr));
    kedge_csv_deinit(&a.csv);
    kedge_csv_deinit(&b.csv);
    *train = a.ds;
    *test = b.ds;
    return KEDGE_OK;
}
