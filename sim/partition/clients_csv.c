/* Clients of a CSV file: a column says whose each row is, or the file is one client's. */
#include <string.h>

#include "common/base/try.h"
#include "common/tensor/csv.h"
#include "sim/partition/clients_impl.h"

enum { CLIENT, GROUP, STEP };

/* The classes' numbers of this file as numbers of all files. */
static int number_classes(struct kedgei_clients *b, const struct kedge_csv *csv, int32_t *labels,
                          struct kedge_diag *reterr)
{
    uint32_t places[KEDGE_CSV_CLASSES_MAX];
    const char *name = csv->classes;
    int err = kedgei_clients_labels(b, csv->classes ? KEDGEI_LABELS_NAMES : KEDGEI_LABELS_NUMBERS, reterr);
    for (uint32_t i = 0; i < csv->classes_count && !err; i++, name = kedge_names_next(name)) {
        err = kedgei_words_find(&b->classes, name, &places[i]);
        if (err) {
            err = kedge_diag_set(reterr, err == KEDGE_E_FULL ? KEDGE_E_FORMAT : err,
                                 err == KEDGE_E_FULL ? "more than %d classes"
                                                     : "no memory for names of classes",
                                 KEDGE_CSV_CLASSES_MAX);
        }
    }
    for (uint32_t i = 0; i < csv->rows && !err; i++) {
        labels[i] = csv->classes ? (int32_t)places[csv->labels[i]] : csv->labels[i];
    }
    return err;
}

/* Client, group and step of each row. */
static int name_rows(struct kedgei_clients *b, const struct kedge_csv *csv,
                     const struct kedgei_clients_file *as, struct kedge_diag *reterr)
{
    const char *client = csv->kept[CLIENT], *group = csv->kept[GROUP], *step = csv->kept[STEP];
    struct kedge_clients *c = &b->c;
    for (uint32_t i = 0; i < csv->rows; i++) {
        uint32_t row = c->n + i, of = as->client, at = as->step;
        int err = client ? kedgei_clients_name(b, client, &of, reterr) : KEDGE_OK;
        if (!err && group) {
            err = kedgei_clients_group(b, of, group, reterr);
        }
        if (!err && step) {
            err = kedgei_clients_step(step, &at, reterr);
        }
        if (err) {
            return kedge_diag_wrap(reterr, err, "row %u", i + 1);
        }
        c->client[row] = of;
        c->step[row] = (uint8_t)at;
        c->part[row] = (uint8_t)as->part;
        client = client ? kedge_names_next(client) : NULL;
        group = group ? kedge_names_next(group) : NULL;
        step = step ? kedge_names_next(step) : NULL;
    }
    return KEDGE_OK;
}

static int take(struct kedgei_clients *b, const struct kedge_csv *csv, const struct kedgei_clients_file *as,
                struct kedge_diag *reterr)
{
    struct kedge_clients *c = &b->c;
    if (csv->targets) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "the labels are reals, but clients' labels are classes: name another column by "
                              "\"label\"");
    }
    KEDGE_TRY(kedgei_clients_room(b, csv->rows, csv->features, reterr));
    memcpy(c->x + (size_t)c->n * c->features, csv->x, (size_t)csv->rows * csv->features * sizeof *csv->x);
    KEDGE_TRY(number_classes(b, csv, c->labels + c->n, reterr));
    KEDGE_TRY(name_rows(b, csv, as, reterr));
    c->n += csv->rows;
    return KEDGE_OK;
}

int kedgei_clients_csv(struct kedgei_clients *b, struct kedge_view bytes,
                       const struct kedgei_clients_file *as, struct kedge_diag *reterr)
{
    const struct kedge_clients_source *s = b->source;
    struct kedge_csv_options o = {.label = s->label[0] ? s->label : NULL,
                                  .target = KEDGE_CSV_TARGET_ANY,
                                  .missing = s->missing,
                                  .as_it_is = true};
    struct kedge_csv csv;
    b->c.is_csv = true;
    if (as->client == UINT32_MAX) {
        o.keep[CLIENT] = s->client[0] ? s->client : "client";
        o.keep[GROUP] = s->group[0] ? s->group : NULL;
        o.keep[STEP] = s->step[0] ? s->step : NULL;
    }
    KEDGE_TRY(kedge_csv_read(bytes, &o, &csv, reterr));
    int err = take(b, &csv, as, reterr);
    kedge_csv_deinit(&csv);
    return err;
}
