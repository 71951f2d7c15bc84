/* Rows: numbers into a matrix, labels into classes or reals. Records and fields are csv_fields.c's, what the
 * file is csv_shape.c's. */
#include "common/tensor/csv.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/text.h"
#include "common/base/try.h"
#include "common/tensor/csv_impl.h"

#define F32_MAX 3.4028234e38

/* Names of classes that were not given, in the order in which they are met: one block of texts with
 * their NULs, so that each row needs a number only. */
struct found_classes {
    uint32_t count;
    size_t used, room;
    char *text; /* owned, as struct kedge_names */
    struct kedgei_csv_field first;
};

struct table {
    const struct kedge_csv_options *o;
    struct kedgei_csv_shape shape;
    struct kedge_csv csv; /* rows: those read so far */
    float *targets;       /* csv's, or scratch of TARGET_ANY */
    struct found_classes found;
    bool has_label; /* one has been read: */
    bool by_name;   /* labels are names, and the options have none */
    bool is_whole;  /* all labels so far could be classes by number */
    size_t kept_used[KEDGE_CSV_KEEP_MAX], kept_room[KEDGE_CSV_KEEP_MAX];
};

static int say(const struct table *t, const struct kedgei_csv_field *f, const char *expected,
               struct kedge_diag *reterr)
{
    return kedgei_csv_say(&t->shape, f, expected, reterr);
}

/* ---- features ---- */

/* A field that is no number is an error, never a guess: the message names the option that would read it
 * (decimal comma, header, missing, ignore), because a wrong guess would train a model on wrong numbers in
 * silence. */
static int read_feature(struct table *t, const struct kedgei_csv_field *f, uint32_t feature, float *x,
                        bool *hole, struct kedge_diag *reterr)
{
    double v;
    if (kedgei_csv_is_missing(f)) {
        t->csv.missing[feature]++;
        *x = NAN;
        *hole = true;
        return t->o->missing != KEDGE_CSV_MISSING_REFUSE ? KEDGE_OK
                                                         : say(t, f,
                                                               "a number; where values may be missing say "
                                                               "\"missing\": \"mean\", or \"drop\" to leave "
                                                               "such rows out",
                                                               reterr);
    }
    if (kedgei_csv_number(f, t->o->decimal_comma, &v) != KEDGE_OK) {
        if (t->o->as_it_is) {
            return say(t, f, "a number; take columns that are no numbers out of the file", reterr);
        }
        if (!t->o->decimal_comma && kedgei_csv_number(f, true, &v) == KEDGE_OK) {
            return say(t, f, "a number; for decimal commas say \"decimal\": \",\"", reterr);
        }
        bool may_be_header = f->line == t->shape.first_line;
        return say(t, f,
                   may_be_header
                       ? "a number; where the first line has the columns' names say \"header\": true"
                       : "a number; columns that are no numbers are left out by \"ignore\"",
                   reterr);
    }
    if (!(fabs(v) <= F32_MAX)) {
        return say(t, f, "a number within the range of F32", reterr);
    }
    *x = (float)v;
    return KEDGE_OK;
}

/* ---- labels ---- */

/* Through int32_t and back: a whole number within range, and nothing else, survives that. */
static bool is_class_number(double v)
{
    return v >= 0 && v <= KEDGE_CSV_LABEL_MAX && (double)(int32_t)v == v;
}

/* By the name's bytes; "2.0" is also the class "2". */
static bool find_class(const struct table *t, const struct kedgei_csv_field *f, int32_t *ret)
{
    const char *name = t->o->classes.text;
    double v, other;
    for (uint32_t i = 0; i < t->o->classes.count; i++, name = kedge_names_next(name)) {
        if (kedgei_csv_field_is(f, name)) {
            *ret = (int32_t)i;
            return true;
        }
    }
    if (kedgei_csv_number(f, t->o->decimal_comma, &v) != KEDGE_OK) {
        return false;
    }
    name = t->o->classes.text;
    for (uint32_t i = 0; i < t->o->classes.count; i++, name = kedge_names_next(name)) {
        if (kedge_real_decode(kedge_view_str(name), &other) == KEDGE_OK && other == v) {
            *ret = (int32_t)i;
            return true;
        }
    }
    return false;
}

/* "…": "a", "b", "c", as much as there is room for. */
static void list_names(struct kedge_names names, char *out, size_t out_len)
{
    const char *name = names.text;
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < names.count; i++, name = kedge_names_next(name)) {
        char shown[KEDGE_CSV_NAME_MAX + 1];
        memcpy(shown, name, strlen(name) + 1);
        kedge_text_make_plain(shown);
        size_t need = strlen(shown) + 4;
        if (used + need + 5 > out_len) {
            (void)snprintf(out + used, out_len - used, "%s…", i ? ", " : "");
            return;
        }
        used += (size_t)snprintf(out + used, out_len - used, "%s\"%s\"", i ? ", " : "", shown);
    }
}

/* The number of a name that no list gives: by the order in which names are met, which sort_classes replaces
 * by byte order at the end. */
static int intern(struct table *t, const struct kedgei_csv_field *f, int32_t *ret, struct kedge_diag *reterr)
{
    struct found_classes *found = &t->found;
    const char *name = found->text;
    for (uint32_t i = 0; i < found->count; i++, name = kedge_names_next(name)) {
        if (kedgei_csv_field_is(f, name)) {
            *ret = (int32_t)i;
            return KEDGE_OK;
        }
    }
    if (found->count == KEDGE_CSV_CLASSES_MAX) {
        return say(t, f, "one of the 1,024 names before: is this column the label?", reterr);
    }
    if (found->used + KEDGE_CSV_NAME_MAX + 1 > found->room) {
        size_t room = found->room * 2 + KEDGE_CSV_NAME_MAX + 1;
        char *grown = kedge_mem_resize(found->text, room, 1);
        if (!grown) {
            return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for names of classes");
        }
        found->text = grown;
        found->room = room;
    }
    if (!kedgei_csv_text(f, found->text + found->used, KEDGE_CSV_NAME_MAX + 1)) {
        return say(t, f, "a name of at most 127 bytes", reterr);
    }
    if (t->o->finds_classes && !kedge_text_is_plain(kedge_view_str(found->text + found->used))) {
        return say(t, f, "a label without control characters and characters that nobody sees", reterr);
    }
    found->first = found->count == 0 ? *f : found->first;
    found->used += strlen(found->text + found->used) + 1;
    *ret = (int32_t)found->count++;
    return KEDGE_OK;
}

/* The first label decides whether labels are numbers or names. Labels that are numbers are classes by
 * themselves; names get numbers. */
static int read_class(struct table *t, const struct kedgei_csv_field *f, uint32_t row,
                      struct kedge_diag *reterr)
{
    double v;
    if (t->o->classes.count > 0) {
        char text[320], names[240];
        if (find_class(t, f, &t->csv.labels[row])) {
            return KEDGE_OK;
        }
        list_names(t->o->classes, names, sizeof names);
        (void)snprintf(text, sizeof text, "one of the \"classes\": %s", names);
        return say(t, f, text, reterr);
    }
    bool is_number = kedgei_csv_number(f, t->o->decimal_comma, &v) == KEDGE_OK;
    t->by_name = t->has_label ? t->by_name : !is_number || t->o->finds_classes;
    t->has_label = true;
    if (t->by_name) {
        return intern(t, f, &t->csv.labels[row], reterr);
    }
    if (!is_number || (t->o->target == KEDGE_CSV_TARGET_CLASS && !is_class_number(v))) {
        return say(t, f, "a label: a whole number from 0 to 65535", reterr);
    }
    t->is_whole = t->is_whole && is_class_number(v);
    t->csv.labels[row] = is_class_number(v) ? (int32_t)v : 0;
    if (t->targets) {
        t->targets[row] = (float)v;
    }
    return fabs(v) <= F32_MAX ? KEDGE_OK : say(t, f, "a number within the range of F32", reterr);
}

/* "NA" may be the name of a class. So a field that looks like a missing value is one only if no
 * class has that name. */
static int read_label(struct table *t, const struct kedgei_csv_field *f, uint32_t row, bool *hole,
                      struct kedge_diag *reterr)
{
    double v;
    if (kedgei_csv_is_missing(f) && !(t->o->classes.count > 0 && find_class(t, f, &t->csv.labels[row]))) {
        *hole = true;
        return t->o->missing == KEDGE_CSV_MISSING_DROP
                   ? KEDGE_OK
                   : say(t, f, "a label; rows without one are left out by \"missing\": \"drop\"", reterr);
    }
    if (t->o->target != KEDGE_CSV_TARGET_REAL) {
        return read_class(t, f, row, reterr);
    }
    if (kedgei_csv_number(f, t->o->decimal_comma, &v) != KEDGE_OK || !(fabs(v) <= F32_MAX)) {
        return say(t, f, "a number to predict, within the range of F32", reterr);
    }
    t->targets[row] = (float)v;
    return KEDGE_OK;
}

/* ---- columns whose text is kept ---- */

/* Room doubles, so a column of millions of rows costs few copies. */
static int keep_text(struct table *t, const struct kedgei_csv_field *f, uint32_t k, struct kedge_diag *reterr)
{
    size_t need = t->kept_used[k] + KEDGE_CSV_NAME_MAX + 1;
    if (need > t->kept_room[k]) {
        char *grown = kedge_mem_resize(t->csv.kept[k], need * 2, 1);
        if (!grown) {
            return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for the column \"%s\"", t->o->keep[k]);
        }
        t->csv.kept[k] = grown;
        t->kept_room[k] = need * 2;
    }
    char *to = t->csv.kept[k] + t->kept_used[k];
    if (!kedgei_csv_text(f, to, KEDGE_CSV_NAME_MAX + 1)) {
        return say(t, f, "a text of at most 127 bytes", reterr);
    }
    t->kept_used[k] += strlen(to) + 1;
    return KEDGE_OK;
}

/* ---- rows ---- */

/* A row that is left out is written over by the next one; texts kept of it are taken back. */
static int read_row(struct table *t, struct kedgei_csv_reader *r, struct kedge_diag *reterr)
{
    const struct kedgei_csv_shape *s = &t->shape;
    uint32_t row = t->csv.rows, column = 0, feature = 0, line = r->line;
    float *x = t->csv.x + (size_t)row * s->features;
    size_t kept_used[KEDGE_CSV_KEEP_MAX];
    bool hole = false;
    memcpy(kept_used, t->kept_used, sizeof kept_used);
    while (r->more) {
        struct kedgei_csv_field f;
        int err = kedgei_csv_next_field(r, &f, reterr);
        if (err) {
            return err;
        }
        if (column == s->columns) {
            return kedge_diag_set(reterr, KEDGE_E_FORMAT, "line %u: more than %u columns", line, s->columns);
        }
        if (s->roles[column] == KEDGEI_CSV_FEATURE) {
            err = read_feature(t, &f, feature, &x[feature], &hole, reterr);
            feature++;
        } else if (s->roles[column] == KEDGEI_CSV_LABEL) {
            err = read_label(t, &f, row, &hole, reterr);
        } else if (s->roles[column] >= KEDGEI_CSV_KEPT) {
            err = keep_text(t, &f, (uint32_t)(s->roles[column] - KEDGEI_CSV_KEPT), reterr);
        }
        if (err) {
            return err;
        }
        column++;
    }
    if (column != s->columns) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "line %u: %u columns, expected %u", line, column,
                              s->columns);
    }
    if (hole && t->o->missing == KEDGE_CSV_MISSING_DROP) {
        t->csv.dropped++;
        memcpy(t->kept_used, kept_used, sizeof kept_used);
    } else {
        t->csv.rows++;
    }
    return KEDGE_OK;
}

/* The rows were counted when the shape was found, and memory for them is taken: the loop ends with
 * that number whatever the text says. */
static int read_rows(struct table *t, struct kedge_diag *reterr)
{
    struct kedgei_csv_reader r = kedgei_csv_at_data(&t->shape);
    for (uint32_t i = 0; i < t->shape.rows && kedgei_csv_next_record(&r); i++) {
        KEDGE_TRY(read_row(t, &r, reterr));
    }
    return t->csv.rows > 0 ? KEDGE_OK
                           : kedge_diag_set(reterr, KEDGE_E_FORMAT,
                                            "all %u rows have missing values, and \"missing\" is \"drop\"",
                                            t->csv.dropped);
}

/* ---- names of classes that were not given ---- */

/* In byte order, so that they do not depend on the order of the rows. */
static int sort_classes(struct table *t, struct kedge_diag *reterr)
{
    struct found_classes *found = &t->found;
    const char *names[KEDGE_CSV_CLASSES_MAX];
    int32_t place[KEDGE_CSV_CLASSES_MAX];
    char *sorted = kedge_mem_new(found->used, 1), *at = sorted;
    if (!sorted) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for names of classes");
    }
    const char *name = found->text;
    for (uint32_t i = 0; i < found->count; i++, name = kedge_names_next(name)) {
        names[i] = name;
        place[i] = 0;
        for (uint32_t k = 0; k < i; k++) {
            bool above = strcmp(names[k], name) > 0;
            place[k] += above;
            place[i] += !above;
        }
    }
    for (uint32_t p = 0; p < found->count; p++) {
        uint32_t i = 0;
        while (place[i] != (int32_t)p) {
            i++;
        }
        memcpy(at, names[i], strlen(names[i]) + 1);
        at += strlen(at) + 1;
    }
    for (uint32_t row = 0; row < t->csv.rows; row++) {
        t->csv.labels[row] = place[t->csv.labels[row]];
    }
    t->csv.classes = sorted;
    t->csv.classes_count = found->count;
    return KEDGE_OK;
}

static int say_classes(const struct table *t, struct kedge_diag *reterr)
{
    char text[400], names[200];
    list_names((struct kedge_names){t->csv.classes_count, t->csv.classes}, names, sizeof names);
    (void)snprintf(
        text, sizeof text,
        "a label: a whole number from 0 to 65535, or names that the job or the binding lists; found "
        "\"classes\": [%s]%s",
        names,
        t->found.first.line == t->shape.first_line && !t->shape.has_header
            ? "; where the first line has the columns' names say \"header\": true"
            : "");
    return say(t, &t->found.first, text, reterr);
}

/* What the labels turned out to be, which is known only at the end: with TARGET_ANY one label that
 * is no whole number makes all of them reals. */
static int finish_labels(struct table *t, struct kedge_diag *reterr)
{
    if (t->by_name) {
        int err = sort_classes(t, reterr);
        if (!err && t->o->target == KEDGE_CSV_TARGET_CLASS && !t->o->finds_classes) {
            err = say_classes(t, reterr);
        }
        return err;
    }
    bool reals = t->o->target == KEDGE_CSV_TARGET_REAL
                 || (t->o->target == KEDGE_CSV_TARGET_ANY && t->o->classes.count == 0 && !t->is_whole);
    if (reals) {
        t->csv.targets = t->targets;
        t->targets = NULL;
        kedge_mem_free(t->csv.labels);
        t->csv.labels = NULL;
    }
    return KEDGE_OK;
}

static int read_table(struct table *t, struct kedge_diag *reterr)
{
    const struct kedgei_csv_shape *s = &t->shape;
    bool any = t->o->target == KEDGE_CSV_TARGET_ANY;
    t->csv.features = s->features;
    t->csv.has_header = s->has_header;
    t->csv.separator = s->separator;
    t->csv.x = kedge_mem_new((size_t)s->rows * s->features, sizeof *t->csv.x);
    t->csv.missing = kedge_mem_new(s->features, sizeof *t->csv.missing);
    t->csv.columns = kedgei_csv_names(s);
    t->csv.labels = kedge_mem_new(s->rows, sizeof *t->csv.labels);
    t->targets = t->o->target == KEDGE_CSV_TARGET_CLASS ? NULL : kedge_mem_new(s->rows, sizeof *t->targets);
    if (!t->csv.x || !t->csv.missing || !t->csv.columns || !t->csv.labels
        || (!t->targets && (any || t->o->target == KEDGE_CSV_TARGET_REAL))) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for %u rows", s->rows);
    }
    int err = read_rows(t, reterr);
    return err ? err : finish_labels(t, reterr);
}

/* Two passes over the text: the first finds the shape and counts rows, the second fills memory of
 * exactly that size. */
int kedge_csv_read(struct kedge_view file, const struct kedge_csv_options *options, struct kedge_csv *ret,
                   struct kedge_diag *reterr)
{
    static const struct kedge_csv_options none = {.label = NULL};
    struct table t = {.o = options ? options : &none, .is_whole = true};
    KEDGE_TRY(kedgei_csv_find_shape(file, t.o, &t.shape, reterr));
    int err = read_table(&t, reterr);
    kedge_mem_free(t.shape.roles);
    kedge_mem_free(t.found.text);
    kedge_mem_free(t.targets);
    if (err) {
        kedge_csv_deinit(&t.csv);
        return err;
    }
    *ret = t.csv;
    return KEDGE_OK;
}

int kedge_csv_count_features(struct kedge_view file, const struct kedge_csv_options *options, uint32_t *ret,
                             struct kedge_diag *reterr)
{
    struct kedgei_csv_shape shape;
    KEDGE_TRY(kedgei_csv_find_shape(file, options, &shape, reterr));
    *ret = shape.features;
    kedge_mem_free(shape.roles);
    return KEDGE_OK;
}

void kedge_csv_deinit(struct kedge_csv *csv)
{
    kedge_mem_free(csv->x);
    kedge_mem_free(csv->labels);
    kedge_mem_free(csv->targets);
    kedge_mem_free(csv->missing);
    kedge_mem_free(csv->columns);
    kedge_mem_free(csv->classes);
    for (int k = 0; k < KEDGE_CSV_KEEP_MAX; k++) {
        kedge_mem_free(csv->kept[k]);
    }
    *csv = (struct kedge_csv){0};
}
