/* What a CSV file is: its encoding, separator, header and columns, by its first records and what its owner
 * says. Where nothing is said, a guess is made only where another would contradict the file. */
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/text.h"
#include "common/base/try.h"
#include "common/tensor/csv_impl.h"
#include "common/tensor/idx.h"

enum { LOOK_AT = 10, FOUND_MAX = 40 }; /* records; bytes of a field in a message */

/* The message has what a person looks for in the file: line, column, and the column's name where
 * there is a header. */
int kedgei_csv_say(const struct kedgei_csv_shape *shape, const struct kedgei_csv_field *f,
                   const char *expected, struct kedge_diag *reterr)
{
    char found[FOUND_MAX], name[FOUND_MAX] = "", place[FOUND_MAX + 8] = "";
    bool whole = kedgei_csv_text(f, found, sizeof found);
    kedge_text_make_plain(found);
    if (shape && shape->has_header) {
        struct kedgei_csv_reader r = kedgei_csv_reader_of(shape->file, shape->separator);
        struct kedgei_csv_field head = {.column = 0};
        (void)kedgei_csv_next_record(&r);
        while (r.more && head.column < f->column && kedgei_csv_next_field(&r, &head, NULL) == KEDGE_OK) {
        }
        if (head.column == f->column && kedgei_csv_text(&head, name, sizeof name) && name[0] != '\0') {
            kedge_text_make_plain(name);
            (void)snprintf(place, sizeof place, " (\"%s\")", name);
        }
    }
    return kedge_diag_set(reterr, KEDGE_E_FORMAT, "line %u, column %u%s: found \"%s%s\", expected %s",
                          f->line, f->column, place, found, whole ? "" : "…", expected);
}

/* ---- encoding ---- */

/* The first bytes often show what the file really is (UTF-16, a zip, a spreadsheet); otherwise the
 * line of the first byte that is not UTF-8 is told. */
static int say_encoding(struct kedge_view file, struct kedge_diag *reterr)
{
    char found[KEDGE_SNIFF_TEXT_MAX];
    uint32_t line = 1;
    size_t at = 0;
    kedge_sniff_text(file, found);
    if (file.len >= 2 && (memcmp(file.ptr, "\xff\xfe", 2) == 0 || memcmp(file.ptr, "\xfe\xff", 2) == 0)) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "a text in UTF-16; save it as CSV in UTF-8");
    }
    const char *kind = strchr(found, '(');
    if (!kind || strcmp(kind, "(text)") != 0) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "not a CSV text in UTF-8: first bytes are %s", found);
    }
    while (at < file.len) {
        uint32_t point;
        size_t len = kedge_utf8_next(kedge_view_of(file.ptr + at, file.len - at), &point);
        if (len == 0 || point == 0) {
            break;
        }
        line += point == '\n';
        at += len;
    }
    return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                          "line %u: byte 0x%02x is no character of UTF-8; save the file as CSV in UTF-8",
                          line, at < file.len ? file.ptr[at] : 0);
}

/* Takes off a byte order mark and Excel's "sep=;" line. */
static int open_text(struct kedge_view file, struct kedgei_csv_shape *s, struct kedge_diag *reterr)
{
    if (file.len > 0 && (!kedge_utf8_is_valid(file) || memchr(file.ptr, 0, file.len))) {
        return say_encoding(file, reterr);
    }
    if (file.len >= 3 && memcmp(file.ptr, "\xef\xbb\xbf", 3) == 0) {
        file = kedge_view_of(file.ptr + 3, file.len - 3);
    }
    s->first_line = 1;
    if (file.len > 5 && memcmp(file.ptr, "sep=", 4) == 0 && (file.ptr[5] == '\n' || file.ptr[5] == '\r')) {
        size_t len = file.len > 6 && file.ptr[5] == '\r' && file.ptr[6] == '\n' ? 7 : 6;
        s->separator = s->separator ? s->separator : (char)file.ptr[4];
        s->first_line = 2;
        file = kedge_view_of(file.ptr + len, file.len - len);
    }
    s->file = file;
    return KEDGE_OK;
}

static struct kedgei_csv_reader reader_at_start(const struct kedgei_csv_shape *s)
{
    struct kedgei_csv_reader r = kedgei_csv_reader_of(s->file, s->separator);
    r.line = s->first_line;
    return r;
}

/* A walk over the fields of the first record, which may be names: false at its end, or with *err set. */
static struct kedgei_csv_reader first_record(const struct kedgei_csv_shape *s)
{
    struct kedgei_csv_reader r = reader_at_start(s);
    (void)kedgei_csv_next_record(&r);
    return r;
}

static bool next_of_first(struct kedgei_csv_reader *r, struct kedgei_csv_field *ret, int *err,
                          struct kedge_diag *reterr)
{
    bool more = r->more;
    *err = more ? kedgei_csv_next_field(r, ret, reterr) : KEDGE_OK;
    return more && *err == KEDGE_OK;
}

/* ---- separator ---- */

/* Fields of the record that r is at; 0 when it cannot be read. Ends with the first field beyond `most`. */
static uint32_t count_fields(struct kedgei_csv_reader *r, uint32_t most)
{
    struct kedgei_csv_field f;
    uint32_t n = 0;
    while (r->more && n <= most) {
        if (kedgei_csv_next_field(r, &f, NULL) != KEDGE_OK) {
            return 0;
        }
        n++;
    }
    return n;
}

/* The fields of the first record; *ret_alike: the next ones have as many. Ten records are looked
 * at: more would cost time and hardly ever change the answer. */
static uint32_t try_separator(struct kedge_view file, char separator, bool *ret_alike)
{
    struct kedgei_csv_reader r = kedgei_csv_reader_of(file, separator);
    uint32_t first = 0;
    *ret_alike = true;
    for (int i = 0; i < LOOK_AT && kedgei_csv_next_record(&r); i++) {
        uint32_t n = count_fields(&r, KEDGE_CSV_COLUMNS_MAX);
        first = i == 0 ? n : first;
        *ret_alike = *ret_alike && n == first && n > 0;
    }
    return first;
}

/* A comma may be a decimal one, so that it comes last of those that split all records alike. */
static char find_separator(struct kedge_view file)
{
    static const char candidates[] = {'\t', ';', '|', ','};
    char best = ',';
    uint32_t most = 1;
    bool alike;
    for (size_t i = 0; i < sizeof candidates; i++) {
        uint32_t n = try_separator(file, candidates[i], &alike);
        if (n > 1 && alike) {
            return candidates[i];
        }
        if (n > most) {
            most = n;
            best = candidates[i];
        }
    }
    return most == 1 && try_separator(file, ' ', &alike) > 1 ? ' ' : best;
}

/* ---- header, label ---- */

static bool is_named(const struct kedge_names *names, const struct kedgei_csv_field *f)
{
    const char *name = names->text;
    for (uint32_t i = 0; i < names->count; i++, name = kedge_names_next(name)) {
        if (kedgei_csv_field_is(f, name)) {
            return true;
        }
    }
    return false;
}

enum content { CONTENT_TEXT, CONTENT_NUMBER, CONTENT_MISSING };

static enum content content_of(const struct kedgei_csv_field *f, bool decimal_comma, double *ret)
{
    *ret = -1;
    return kedgei_csv_is_missing(f)                               ? CONTENT_MISSING
           : kedgei_csv_number(f, decimal_comma, ret) == KEDGE_OK ? CONTENT_NUMBER
                                                                  : CONTENT_TEXT;
}

/* Column names: a text above a number somewhere, and no number but the columns' own, as pandas writes them.
 * Texts above texts say nothing: classes may have names, in the label's column. */
static bool looks_like_header(const struct kedgei_csv_shape *s, const struct kedge_csv_options *o)
{
    struct kedgei_csv_reader a = reader_at_start(s), b;
    struct kedgei_csv_field above, below;
    bool found = false;
    (void)kedgei_csv_next_record(&a);
    b = a;
    (void)count_fields(&b, s->columns);
    bool has_second = kedgei_csv_next_record(&b);
    for (uint32_t c = 0; c < s->columns && a.more; c++) {
        double number, other;
        if (kedgei_csv_next_field(&a, &above, NULL) != KEDGE_OK) {
            return false;
        }
        bool has_below = has_second && b.more && kedgei_csv_next_field(&b, &below, NULL) == KEDGE_OK;
        enum content content = content_of(&above, o->decimal_comma, &number);
        if (s->roles[c] >= KEDGEI_CSV_IGNORED) {
            continue;
        }
        if (content == CONTENT_NUMBER && number != c && number != c + 1) {
            return false;
        }
        bool classes = s->roles[c] == KEDGEI_CSV_LABEL && o->target != KEDGE_CSV_TARGET_REAL;
        if (content == CONTENT_TEXT && classes && o->classes.count > 0) {
            found = found || !is_named(&o->classes, &above);
        } else if (content == CONTENT_TEXT) {
            found = found
                    || (has_below ? content_of(&below, o->decimal_comma, &other) != CONTENT_TEXT
                                  : !has_second && !classes);
        }
    }
    return found;
}

static int say_no_column(const struct kedgei_csv_shape *s, const char *name, const char *what,
                         struct kedge_diag *reterr)
{
    struct kedgei_csv_reader r = first_record(s);
    struct kedgei_csv_field f;
    char names[160] = "", one[FOUND_MAX];
    size_t used = 0;
    int err;
    for (int i = 0; i < 5 && next_of_first(&r, &f, &err, NULL); i++) {
        (void)kedgei_csv_text(&f, one, 24);
        kedge_text_make_plain(one);
        int n = snprintf(names + used, sizeof names - used, "%s\"%s\"", i ? ", " : "", one);
        used += n > 0 ? (size_t)n : 0;
    }
    return kedge_diag_set(reterr, KEDGE_E_NOT_FOUND, "line %u: no column is named \"%s\" (%s); found %s%s",
                          s->first_line, name, what, names, r.more ? ", …" : "");
}

/* The column of that name in the first record; UINT32_MAX when there is none. */
static int find_column(const struct kedgei_csv_shape *s, const char *name, uint32_t *ret,
                       struct kedge_diag *reterr)
{
    struct kedgei_csv_reader r = first_record(s);
    struct kedgei_csv_field f;
    int err;
    *ret = UINT32_MAX;
    while (next_of_first(&r, &f, &err, reterr)) {
        if (!kedgei_csv_field_is(&f, name)) {
            continue;
        }
        if (*ret != UINT32_MAX) {
            return kedge_diag_set(
                reterr, KEDGE_E_FORMAT,
                "line %u: columns %u and %u are both named \"%s\"; give the column's number", f.line,
                *ret + 1, f.column, name);
        }
        *ret = f.column - 1;
    }
    return err;
}

static int place_is_there(const struct kedgei_csv_shape *s, uint32_t place, const char *what,
                          struct kedge_diag *reterr)
{
    return place >= 1 && place <= s->columns
               ? KEDGE_OK
               : kedge_diag_set(reterr, KEDGE_E_NOT_FOUND, "line %u: no column %u (%s); found %u columns",
                                s->first_line, place, what, s->columns);
}

/* Columns left out; a name means that there is a header. */
static int set_ignored(struct kedgei_csv_shape *s, const struct kedge_csv_options *o,
                       struct kedge_diag *reterr)
{
    for (uint32_t i = 0; i < o->ignore_count; i++) {
        KEDGE_TRY(place_is_there(s, o->ignore_places[i], "\"ignore\"", reterr));
        s->roles[o->ignore_places[i] - 1] = KEDGEI_CSV_IGNORED;
    }
    const char *name = o->ignore.text;
    for (uint32_t i = 0; i < o->ignore.count; i++, name = kedge_names_next(name)) {
        uint32_t column;
        KEDGE_TRY(find_column(s, name, &column, reterr));
        if (column == UINT32_MAX || o->header == KEDGE_CSV_HEADER_NO) {
            return say_no_column(s, name, "\"ignore\"", reterr);
        }
        s->roles[column] = KEDGEI_CSV_IGNORED;
        s->has_header = true;
    }
    return KEDGE_OK;
}

/* Columns whose text is kept. */
static int set_kept(struct kedgei_csv_shape *s, const struct kedge_csv_options *o, struct kedge_diag *reterr)
{
    for (uint32_t k = 0; k < KEDGE_CSV_KEEP_MAX; k++) {
        uint32_t column = UINT32_MAX;
        KEDGE_TRY(o->keep[k] ? find_column(s, o->keep[k], &column, reterr) : KEDGE_OK);
        if (o->keep[k] && column == UINT32_MAX) {
            return say_no_column(s, o->keep[k], "no feature", reterr);
        }
        if (o->keep[k] && s->roles[column] != KEDGEI_CSV_FEATURE) {
            return kedge_diag_set(reterr, KEDGE_E_FORMAT, "line %u: column \"%s\" cannot be two things",
                                  s->first_line, o->keep[k]);
        }
        if (o->keep[k]) {
            s->roles[column] = (uint8_t)(KEDGEI_CSV_KEPT + k);
            s->has_header = true;
        }
    }
    return KEDGE_OK;
}

/* The label's column: by place, by name, or the first or last of those that are not left out. */
static int set_label(struct kedgei_csv_shape *s, const struct kedge_csv_options *o, struct kedge_diag *reterr)
{
    const char *label = o->label ? o->label : "last";
    uint32_t column = UINT32_MAX;
    if (o->label_place > 0) {
        KEDGE_TRY(place_is_there(s, o->label_place, "the label", reterr));
        column = o->label_place - 1;
    } else if (o->header != KEDGE_CSV_HEADER_NO) {
        KEDGE_TRY(find_column(s, label, &column, reterr));
        s->has_header = s->has_header || column != UINT32_MAX;
    }
    if (column == UINT32_MAX && strcmp(label, "first") != 0 && strcmp(label, "last") != 0) {
        return say_no_column(s, label, "the label", reterr);
    }
    bool first = strcmp(label, "first") == 0;
    for (uint32_t i = 0; i < s->columns && column == UINT32_MAX; i++) {
        uint32_t c = first ? i : s->columns - 1 - i;
        column = s->roles[c] >= KEDGEI_CSV_IGNORED ? UINT32_MAX : c;
    }
    if (column != UINT32_MAX && s->roles[column] >= KEDGEI_CSV_KEPT) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "line %u: the label's column \"%s\" cannot be two things", s->first_line,
                              o->keep[s->roles[column] - KEDGEI_CSV_KEPT]);
    }
    if (column == UINT32_MAX || s->roles[column] == KEDGEI_CSV_IGNORED) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "the label's column is left out by \"ignore\"");
    }
    s->roles[column] = KEDGEI_CSV_LABEL;
    return KEDGE_OK;
}

/* A column without a name beside others that have one: row numbers, as pandas writes them, would be trained
 * on. */
static int check_header(const struct kedgei_csv_shape *s, const struct kedge_csv_options *o,
                        struct kedge_diag *reterr)
{
    struct kedgei_csv_reader r = first_record(s);
    struct kedgei_csv_field f;
    int err;
    while (next_of_first(&r, &f, &err, reterr)) {
        if (f.text.len == 0 && s->roles[f.column - 1] == KEDGEI_CSV_FEATURE) {
            return kedge_diag_set(
                reterr, KEDGE_E_FORMAT,
                o->as_it_is ? "line %u, column %u: found no name; name column %u, or take it out of the file"
                            : "line %u, column %u: found no name; where the column only numbers the rows, "
                              "leave it out: \"ignore\": [%u]",
                f.line, f.column, f.column);
        }
    }
    return err;
}

static int count_columns(struct kedgei_csv_shape *s, bool given, uint32_t least, struct kedge_diag *reterr)
{
    struct kedgei_csv_reader r = reader_at_start(s);
    struct kedgei_csv_field f;
    if (!kedgei_csv_next_record(&r)) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "empty file, expected CSV");
    }
    uint32_t line = r.line;
    while (r.more) {
        KEDGE_TRY(kedgei_csv_next_field(&r, &f, reterr));
        if (++s->columns > KEDGE_CSV_COLUMNS_MAX) {
            return kedge_diag_set(reterr, KEDGE_E_TOO_LONG, "line %u: more than %d columns", line,
                                  KEDGE_CSV_COLUMNS_MAX);
        }
    }
    if (s->columns < least) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "line %u: found one column, expected features and a label separated by %s",
                              line,
                              given ? "what \"separator\" says" : "commas, semicolons, tabs, | or blanks");
    }
    s->roles = kedge_mem_new(s->columns, sizeof *s->roles);
    return s->roles ? KEDGE_OK
                    : kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for %u columns", s->columns);
}

struct kedgei_csv_reader kedgei_csv_at_data(const struct kedgei_csv_shape *s)
{
    struct kedgei_csv_reader r = reader_at_start(s);
    if (s->has_header && kedgei_csv_next_record(&r)) {
        (void)count_fields(&r, UINT32_MAX - 1);
    }
    return r;
}

static int count_rows(struct kedgei_csv_shape *s, struct kedge_diag *reterr)
{
    struct kedgei_csv_reader r = kedgei_csv_at_data(s);
    struct kedgei_csv_field f;
    uint64_t rows = 0;
    while (kedgei_csv_next_record(&r)) {
        while (r.more) {
            KEDGE_TRY(kedgei_csv_next_field(&r, &f, reterr));
        }
        rows++;
    }
    if (rows == 0) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "no line of data");
    }
    /* A complete row has two characters a column: this bounds memory by the file, and leaves it to the rows
     * to say which of them is short. */
    if (rows >= UINT32_MAX || rows > 4 * ((uint64_t)s->file.len / s->columns + 1)) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "%llu lines are too short for %u columns",
                              (unsigned long long)rows, s->columns);
    }
    s->rows = (uint32_t)rows;
    return KEDGE_OK;
}

static int find_roles(struct kedgei_csv_shape *s, const struct kedge_csv_options *o,
                      struct kedge_diag *reterr)
{
    KEDGE_TRY(set_ignored(s, o, reterr));
    int err = set_kept(s, o, reterr);
    err = err || o->no_label ? err : set_label(s, o, reterr);
    if (err) {
        return err;
    }
    for (uint32_t c = 0; c < s->columns; c++) {
        s->features += s->roles[c] == KEDGEI_CSV_FEATURE;
    }
    if (s->features == 0) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "no column is left for features");
    }
    if (o->header == KEDGE_CSV_HEADER_YES
        || (o->header == KEDGE_CSV_HEADER_DETECT && !s->has_header && looks_like_header(s, o))) {
        s->has_header = true;
    }
    return s->has_header ? check_header(s, o, reterr) : KEDGE_OK;
}

int kedgei_csv_find_shape(struct kedge_view file, const struct kedge_csv_options *o,
                          struct kedgei_csv_shape *ret, struct kedge_diag *reterr)
{
    struct kedgei_csv_shape s = {.separator = o->separator};
    KEDGE_TRY(open_text(file, &s, reterr));
    bool given = s.separator != '\0';
    s.separator = given ? s.separator : find_separator(s.file);
    int err = count_columns(&s, given, o->no_label ? 1 : 2, reterr);
    if (!err) {
        err = find_roles(&s, o, reterr);
    }
    if (!err) {
        err = count_rows(&s, reterr);
    }
    if (err) {
        kedge_mem_free(s.roles);
        return err;
    }
    *ret = s;
    return KEDGE_OK;
}

char *kedgei_csv_names(const struct kedgei_csv_shape *s)
{
    struct kedgei_csv_reader r = reader_at_start(s);
    struct kedgei_csv_field f = {.column = 0};
    char *names = kedge_mem_new(s->features, KEDGE_CSV_NAME_MAX + 1), *at = names;
    (void)kedgei_csv_next_record(&r);
    for (uint32_t c = 0; names && c < s->columns; c++) {
        bool there = r.more && kedgei_csv_next_field(&r, &f, NULL) == KEDGE_OK;
        if (s->roles[c] != KEDGEI_CSV_FEATURE) {
            continue;
        }
        if (s->has_header && there) {
            (void)kedgei_csv_text(&f, at, KEDGE_CSV_NAME_MAX + 1);
            kedge_text_make_plain(at);
        } else {
            (void)snprintf(at, KEDGE_CSV_NAME_MAX + 1, "column %u", c + 1);
        }
        at += strlen(at) + 1;
    }
    return names;
}
