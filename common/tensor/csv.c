#include "common/tensor/csv.h"

#include <string.h>

#include "common/base/mem.h"
#include "common/base/text.h"
#include "common/tensor/idx.h"

/* Walks the lines of a text; a line is without its LF or CR LF. */
struct lines {
    struct kedge_view rest;
    uint32_t number;
};

static bool next_line(struct lines *l, struct kedge_view *ret)
{
    if (l->rest.len == 0) {
        return false;
    }
    const uint8_t *end = memchr(l->rest.ptr, '\n', l->rest.len);
    size_t len = end ? (size_t)(end - l->rest.ptr) : l->rest.len;
    *ret = kedge_view_of(l->rest.ptr, len > 0 && l->rest.ptr[len - 1] == '\r' ? len - 1 : len);
    size_t step = end ? len + 1 : len;
    l->rest = kedge_view_of(l->rest.ptr + step, l->rest.len - step);
    l->number++;
    return true;
}

/* The next field of a line without the blanks around it; false at the end. */
static bool next_field(struct kedge_view *line, bool *more, struct kedge_view *ret)
{
    if (!*more) {
        return false;
    }
    const uint8_t *end = line->len ? memchr(line->ptr, ',', line->len) : NULL;
    size_t len = end ? (size_t)(end - line->ptr) : line->len;
    struct kedge_view field = kedge_view_of(line->ptr, len);
    while (field.len > 0 && (field.ptr[0] == ' ' || field.ptr[0] == '\t')) {
        field.ptr++;
        field.len--;
    }
    while (field.len > 0 && (field.ptr[field.len - 1] == ' ' || field.ptr[field.len - 1] == '\t')) {
        field.len--;
    }
    *more = end != NULL;
    if (end) {
        *line = kedge_view_of(end + 1, line->len - len - 1);
    }
    *ret = field;
    return true;
}

/* Numbers as spreadsheets and statistics programs write them: also "+1", ".5" and "1E-3". */
static int read_number(struct kedge_view field, double *ret)
{
    char text[KEDGE_REAL_MAX];
    size_t used = 0, i = 0;
    if (field.len == 0 || field.len > sizeof text - 2) {
        return KEDGE_E_FORMAT;
    }
    if (field.ptr[0] == '+' || field.ptr[0] == '-') {
        if (field.ptr[0] == '-') {
            text[used++] = '-';
        }
        i = 1;
        if (field.len == 1 || field.ptr[1] == '-') {
            return KEDGE_E_FORMAT;
        }
    }
    if (i < field.len && field.ptr[i] == '.') {
        text[used++] = '0';
    }
    for (; i < field.len; i++) {
        text[used++] = (char)(field.ptr[i] == 'E' ? 'e' : field.ptr[i]);
    }
    return kedge_real_decode(kedge_view_of(text, used), ret);
}

struct shape {
    uint32_t columns, rows, label;
    bool header;
};

static struct kedge_view unquote(struct kedge_view name)
{
    if (name.len >= 2 && name.ptr[0] == '"' && name.ptr[name.len - 1] == '"') {
        return kedge_view_of(name.ptr + 1, name.len - 2);
    }
    return name;
}

/* Columns, header and label column from the first line. */
static int read_first_line(struct kedge_view line, const char *label, struct shape *ret,
                           struct kedge_diag *reterr)
{
    struct kedge_view field;
    bool more = true, found = false;
    uint32_t column = 0;
    *ret = (struct shape){0};
    while (next_field(&line, &more, &field)) {
        double v;
        if (column == KEDGE_CSV_COLUMNS_MAX) {
            return kedge_diag_set(reterr, KEDGE_E_TOO_LONG, "line 1: more than %d columns",
                                  KEDGE_CSV_COLUMNS_MAX);
        }
        if (read_number(field, &v) != KEDGE_OK) {
            ret->header = true;
        }
        if (!found && kedge_view_eq(unquote(field), kedge_view_str(label))) {
            ret->label = column;
            found = true;
        }
        column++;
    }
    ret->columns = column;
    if (column < 2) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "line 1: found one column, expected features and a label separated by commas");
    }
    if (ret->header && found) {
        return KEDGE_OK;
    }
    if (strcmp(label, "last") != 0) {
        return kedge_diag_set(reterr, KEDGE_E_NOT_FOUND, "line 1: no column is named \"%s\" (the label)",
                              label);
    }
    ret->label = column - 1;
    return KEDGE_OK;
}

static int count_rows(struct kedge_view file, struct shape *shape, struct kedge_diag *reterr)
{
    struct lines lines = {.rest = file};
    struct kedge_view line;
    uint64_t rows = 0, blank = 0;
    while (next_line(&lines, &line)) {
        blank = line.len == 0 ? blank + 1 : 0;
        rows++;
        if (rows == UINT32_MAX) {
            return kedge_diag_set(reterr, KEDGE_E_TOO_LONG, "more than 2^32 lines");
        }
    }
    rows -= blank + (shape->header ? 1 : 0);
    if (rows == 0) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "no line of data");
    }
    /* A complete row has two characters a column: this bounds memory by the file, and leaves it to the rows
     * to say which of them is short. */
    if (rows > 4 * ((uint64_t)file.len / shape->columns + 1)) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "%llu lines are too short for %u columns",
                              (unsigned long long)rows, shape->columns);
    }
    shape->rows = (uint32_t)rows;
    return KEDGE_OK;
}

static int say_field(uint32_t line, uint32_t column, struct kedge_view field, const char *expected,
                     struct kedge_diag *reterr)
{
    return kedge_diag_set(reterr, KEDGE_E_FORMAT, "line %u, column %u: found \"%.*s\", expected %s", line,
                          column + 1, field.len < 40 ? (int)field.len : 40, (const char *)field.ptr,
                          expected);
}

static int read_row(struct kedge_view line, uint32_t number, const struct shape *shape, float *x,
                    int32_t *label, struct kedge_diag *reterr)
{
    struct kedge_view field;
    bool more = true;
    uint32_t column = 0;
    while (next_field(&line, &more, &field)) {
        double v;
        if (column == shape->columns) {
            return kedge_diag_set(reterr, KEDGE_E_FORMAT, "line %u: more than %u columns", number,
                                  shape->columns);
        }
        if (read_number(field, &v) != KEDGE_OK) {
            return say_field(number, column, field, "a number", reterr);
        }
        if (column != shape->label) {
            if (!(v <= 3.4028234e38 && v >= -3.4028234e38)) {
                return say_field(number, column, field, "a number within the range of F32", reterr);
            }
            *x++ = (float)v;
        } else {
            if (!(v >= 0 && v <= KEDGE_CSV_LABEL_MAX) || (double)(int32_t)v != v) {
                return say_field(number, column, field, "a label: a whole number from 0 to 65535", reterr);
            }
            *label = (int32_t)v;
        }
        column++;
    }
    if (column != shape->columns) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "line %u: %u columns, expected %u", number, column,
                              shape->columns);
    }
    return KEDGE_OK;
}

static int read_rows(struct kedge_view file, const struct shape *shape, struct kedge_csv *csv,
                     struct kedge_diag *reterr)
{
    struct lines lines = {.rest = file};
    struct kedge_view line;
    if (shape->header && !next_line(&lines, &line)) {
        return KEDGE_E_BUG;
    }
    for (uint32_t row = 0; row < shape->rows && next_line(&lines, &line); row++) {
        int err = read_row(line, lines.number, shape, csv->x + (size_t)row * csv->features, &csv->labels[row],
                           reterr);
        if (err) {
            return err;
        }
    }
    return KEDGE_OK;
}

int kedge_csv_read(struct kedge_view file, const char *label, struct kedge_csv *ret,
                   struct kedge_diag *reterr)
{
    struct lines lines = {.rest = file};
    struct kedge_view line;
    struct shape shape;
    if (!kedge_utf8_is_valid(file)) {
        char found[KEDGE_SNIFF_TEXT_MAX];
        kedge_sniff_text(file, found);
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "not a CSV text in UTF-8: first bytes are %s", found);
    }
    if (!next_line(&lines, &line)) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "empty file, expected CSV");
    }
    int err = read_first_line(line, label, &shape, reterr);
    if (!err) {
        err = count_rows(file, &shape, reterr);
    }
    if (err) {
        return err;
    }
    struct kedge_csv csv = {.rows = shape.rows, .features = shape.columns - 1};
    csv.x = kedge_mem_new((size_t)csv.rows * csv.features, sizeof *csv.x);
    csv.labels = kedge_mem_new(csv.rows, sizeof *csv.labels);
    err = csv.x && csv.labels ? read_rows(file, &shape, &csv, reterr)
                              : kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for %u rows", csv.rows);
    if (err) {
        kedge_csv_deinit(&csv);
        return err;
    }
    *ret = csv;
    return KEDGE_OK;
}

void kedge_csv_deinit(struct kedge_csv *csv)
{
    kedge_mem_free(csv->x);
    kedge_mem_free(csv->labels);
    *csv = (struct kedge_csv){0};
}
