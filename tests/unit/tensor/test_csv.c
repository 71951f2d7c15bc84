/* CSV files as people have them: each row of the tables is a file as some program writes it, or as somebody
 * spoilt it, with what it reads as or the message that it gets. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/tensor/csv.h"
#include "tests/unit/tensor/suite.h"

#define ANY .target = KEDGE_CSV_TARGET_ANY
#define REAL .target = KEDGE_CSV_TARGET_REAL
#define MEAN .missing = KEDGE_CSV_MISSING_MEAN
#define DROP .missing = KEDGE_CSV_MISSING_DROP
#define YES .header = KEDGE_CSV_HEADER_YES
#define NO .header = KEDGE_CSV_HEADER_NO
#define IRIS .classes = {3, "setosa\0versicolor\0virginica"}

/* reads: "f1=1 f2=2 -> 0 | …", a row after the other; "?" is a missing value. */
static const struct {
    const char *what, *text;
    struct kedge_csv_options o;
    const char *columns, *reads;
} good[] = {
    {"plain", "1,2,0\n3,4,1\n", {.label = NULL}, "column 1 column 2", "1 2 -> 0 | 3 4 -> 1"},
    {"Windows, no line end", "1,2,0\r\n3,4,7", {.label = NULL}, "column 1 column 2", "1 2 -> 0 | 3 4 -> 7"},
    {"old Mac", "a,b,y\r1,2,0\r3,4,1\r", {.label = "y"}, "a b", "1 2 -> 0 | 3 4 -> 1"},
    {"blank lines",
     "a,b,class\n\n-1.5e2, +.5 ,3\n  \n5.,2,0\n\n\n",
     {.label = "class"},
     "a b",
     "-150 0.5 -> 3 | 5 2 -> 0"},
    {"Excel's empty rows", "a,b,y\n1,2,0\n,,\n,,\n", {.label = NULL}, "a b", "1 2 -> 0"},
    {"quoted header",
     "\"class\",\"b\",\"c\"\n2,1E-1,9\n1,0,0\n",
     {.label = "class"},
     "b c",
     "0.1 9 -> 2 | 0 0 -> 1"},
    {"all quoted",
     "\"1\",\" 2\",\"0\"\n\"3\",\"4\",\"1\"\n",
     {.label = NULL},
     "column 1 column 2",
     "1 2 -> 0 | 3 4 -> 1"},
    {"a column named last", "x,last,y\n1,5,2\n", {.label = "last"}, "x y", "1 2 -> 5"},
    {"label first", "y,a,b\n1,5,2\n", {.label = "first"}, "a b", "5 2 -> 1"},
    {"label by place", "a,y,b\n1,5,2\n", {.label_place = 2}, "a b", "1 2 -> 5"},
    {"byte order mark",
     "\xef\xbb\xbf"
     "a,b,y\n1,2,0\n",
     {.label = "y"},
     "a b",
     "1 2 -> 0"},
    {"Excel's sep=", "sep=;\na;b;y\n1;2;0\n", {.label = "y"}, "a b", "1 2 -> 0"},
    {"semicolons", "a;b;y\n1;2;0\n3;4;1\n", {.label = NULL}, "a b", "1 2 -> 0 | 3 4 -> 1"},
    {"decimal commas",
     "a;b;y\n1,5;2;0\n,5;-4,25;1\n",
     {.decimal_comma = true},
     "a b",
     "1.5 2 -> 0 | 0.5 -4.25 -> 1"},
    {"decimal commas in every field",
     "1,5;2,5;3\n4,5;5,5;6\n",
     {.decimal_comma = true},
     "column 1 column 2",
     "1.5 2.5 -> 3 | 4.5 5.5 -> 6"},
    {"tabs", "a\tb\ty\n1\t\t0\n3\t4\t1\n", {MEAN}, "a b", "1 ? -> 0 | 3 4 -> 1"},
    {"pipes", "a|b|y\n1|2|0\n", {.label = NULL}, "a b", "1 2 -> 0"},
    {"blanks, as old data have them",
     "  1.0   2  0\n 3\t4 1 \n",
     {.label = NULL},
     "column 1 column 2",
     "1 2 -> 0 | 3 4 -> 1"},
    {"commas within quotes", "\"a, in cm\",b,y\n1,2,0\n", {.label = "y"}, "a, in cm b", "1 2 -> 0"},
    {"quotes within quotes", "\"a \"\"x\"\"\",b,y\n1,2,0\n", {.label = "y"}, "a \"x\" b", "1 2 -> 0"},
    {"line ends within quotes", "\"a\nof two\",b,y\n1,2,0\n", {.label = "y"}, "a of two b", "1 2 -> 0"},
    {"names of classes",
     "5.1,3.5,setosa\n6,3,virginica\n",
     {IRIS},
     "column 1 column 2",
     "5.1 3.5 -> 0 | 6 3 -> 2"},
    {"names of classes with header",
     "l,w,species\n5.1,3.5,setosa\n",
     {IRIS, .label = "species"},
     "l w",
     "5.1 3.5 -> 0"},
    {"quoted names", "1,2,\"setosa\"\n1,2, virginica \n", {IRIS}, "column 1 column 2", "1 2 -> 0 | 1 2 -> 2"},
    {"classes by number",
     "1,2,2\n1,2,4.0\n",
     {.classes = {2, "2\0"
                     "4"}},
     "column 1 column 2",
     "1 2 -> 0 | 1 2 -> 1"},
    {"a class named None",
     "1,2,None\n1,2,x\n",
     {.classes = {2, "None\0x"}},
     "column 1 column 2",
     "1 2 -> 0 | 1 2 -> 1"},
    {"names found", "a,b,y\n1,2,m\n1,2,b\n1,2,m\n", {ANY}, "a b", "1 2 -> 1 | 1 2 -> 0 | 1 2 -> 1"},
    {"names found without header", "1,2,m\n1,2,b\n", {ANY}, "column 1 column 2", "1 2 -> 1 | 1 2 -> 0"},
    {"numbers found", "1,2,3\n1,2,0\n", {ANY}, "column 1 column 2", "1 2 -> 3 | 1 2 -> 0"},
    {"reals found", "1,2,3\n1,2,0.5\n", {ANY}, "column 1 column 2", "1 2 -> 3 | 1 2 -> 0.5"},
    {"reals", "a,b,y\n1,2,-3.25\n1,2,4\n", {REAL}, "a b", "1 2 -> -3.25 | 1 2 -> 4"},
    {"missing, by mean",
     "a,b,y\nNA,2,0\n1,?,1\nnan,null,0\n#N/A,None,0\n",
     {MEAN},
     "a b",
     "? 2 -> 0 | 1 ? -> 1 | ? ? -> 0 | ? ? -> 0"},
    {"missing, dropped", "a,b,y\nNA,2,0\n1,2,1\n1,2,\n3,4,0\n", {DROP}, "a b", "1 2 -> 1 | 3 4 -> 0"},
    {"missing in the first row", "1,,0\n3,4,1\n", {MEAN}, "column 1 column 2", "1 ? -> 0 | 3 4 -> 1"},
    {"R and pandas write truth values", "a,b,y\nTRUE,False,1\n", {.label = NULL}, "a b", "1 0 -> 1"},
    {"columns numbered by pandas", "0,1,target\n5.1,3.5,0\n", {.label = "target"}, "0 1", "5.1 3.5 -> 0"},
    {"columns numbered by pandas, last", "0,1,2\n5.1,3.5,0\n", {YES}, "0 1", "5.1 3.5 -> 0"},
    {"no header said", "1,2,0\n", {NO}, "column 1 column 2", "1 2 -> 0"},
    {"an index of pandas left out",
     ",a,b,y\n7,1,2,0\n",
     {.ignore_count = 1, .ignore_places = {1}},
     "a b",
     "1 2 -> 0"},
    {"columns left out by name",
     "id,a,when,b,y\nx7,1,1.1.2020,2,0\n",
     {.ignore = {2, "when\0id"}},
     "a b",
     "1 2 -> 0"},
    {"the last left out", "a,b,y,note\n1,2,0,fine\n", {.ignore = {1, "note"}}, "a b", "1 2 -> 0"},
    {"umlauts", "Größe,b,y\n1,2,0\n", {.label = "y"}, "Größe b", "1 2 -> 0"},
};

/* What a table reads as, in the words of `reads`. */
static void tell(const struct kedge_csv *csv, char out[512])
{
    size_t used = 0;
    for (uint32_t r = 0; r < csv->rows; r++) {
        used += (size_t)snprintf(out + used, 512 - used, "%s", r ? " | " : "");
        for (uint32_t f = 0; f < csv->features; f++) {
            float v = csv->x[(size_t)r * csv->features + f];
            used += (size_t)(isnan(v) ? snprintf(out + used, 512 - used, "? ")
                                      : snprintf(out + used, 512 - used, "%g ", (double)v));
        }
        used += (size_t)(csv->targets ? snprintf(out + used, 512 - used, "-> %g", (double)csv->targets[r])
                                      : snprintf(out + used, 512 - used, "-> %d", csv->labels[r]));
    }
}

/* In memory of exactly their size, so that sanitizers see a byte beyond it. */
static int read_exactly(const char *text, size_t len, const struct kedge_csv_options *o,
                        struct kedge_csv *csv, struct kedge_diag *diag)
{
    uint8_t *exact = kedge_mem_new(len ? len : 1, 1);
    memcpy(exact, text, len);
    int err = kedge_csv_read(kedge_view_of(exact, len), o, csv, diag);
    kedge_mem_free(exact);
    return err;
}

START_TEST(files_read)
{
    struct kedge_csv csv;
    struct kedge_diag diag = {.text = ""};
    char told[512] = "", columns[256] = "";
    ck_assert_msg(read_exactly(good[_i].text, strlen(good[_i].text), &good[_i].o, &csv, &diag) == KEDGE_OK,
                  "%s: %s", good[_i].what, diag.text);
    tell(&csv, told);
    ck_assert_msg(strcmp(told, good[_i].reads) == 0, "%s: %s, expected %s", good[_i].what, told,
                  good[_i].reads);
    const char *name = csv.columns;
    for (uint32_t f = 0; f < csv.features; f++, name = kedge_names_next(name)) {
        snprintf(columns + strlen(columns), sizeof columns - strlen(columns), "%s%s", f ? " " : "", name);
    }
    ck_assert_msg(strcmp(columns, good[_i].columns) == 0, "%s: %s", good[_i].what, columns);
    kedge_csv_deinit(&csv);
}
END_TEST

#define TEXT(s) (s), sizeof(s) - 1

static const struct {
    const char *text;
    size_t len;
    struct kedge_csv_options o;
    const char *says; /* the whole message */
} bad[] = {
    {TEXT(""), {.label = NULL}, "empty file, expected CSV"},
    {TEXT("\n \n"), {.label = NULL}, "empty file, expected CSV"},
    {TEXT("a,b\n"), {.label = NULL}, "no line of data"},
    {TEXT("5\n6\n"),
     {.label = NULL},
     "line 1: found one column, expected features and a label separated by commas, semicolons, tabs, | or "
     "blanks"},
    {TEXT("1,2\n"),
     {.separator = ';'},
     "line 1: found one column, expected features and a label separated by what \"separator\" says"},
    {TEXT("1,2\n3\n"), {.label = NULL}, "line 2: 1 columns, expected 2"},
    {TEXT("1,2\n3,4,5\n"), {.label = NULL}, "line 2: more than 2 columns"},
    {TEXT("a,b,y\n1,2,0\n\n3,x,1\n"),
     {.label = NULL},
     "line 4, column 2 (\"b\"): found \"x\", expected a number; columns that are no numbers are left out by "
     "\"ignore\""},
    {TEXT("\"a\nb\",c\n1,0\nx,4\n"),
     {.label = NULL},
     "line 4, column 1 (\"a b\"): found \"x\", expected a number; columns that are no numbers are left out "
     "by "
     "\"ignore\""},
    {TEXT("9,2\nx\x1b[31m,4\n"),
     {.label = NULL},
     "line 2, column 1: found \"x?[31m\", expected a number; columns that are no numbers are left out by "
     "\"ignore\""},
    {TEXT("9,2\ninf,4\n"),
     {.label = NULL},
     "line 2, column 1: found \"inf\", expected a number; columns that are no numbers are left out by "
     "\"ignore\""},
    {TEXT("9,2\n1e39,4\n"),
     {.label = NULL},
     "line 2, column 1: found \"1e39\", expected a number within the range of F32"},
    {TEXT("a,y\nnan,4\n"),
     {.label = NULL},
     "line 2, column 1 (\"a\"): found \"nan\", expected a number; where values may be missing say "
     "\"missing\": "
     "\"mean\", or \"drop\" to leave such rows out"},
    {TEXT("a,y\n1,\n"),
     {MEAN},
     "line 2, column 2 (\"y\"): found \"\", expected a label; rows without one are left out by \"missing\": "
     "\"drop\""},
    {TEXT("a,y\n,1\n?,0\n"), {DROP}, "all 2 rows have missing values, and \"missing\" is \"drop\""},
    {TEXT("9,2\n3,-1\n"),
     {.label = NULL},
     "line 2, column 2: found \"-1\", expected a label: a whole number from 0 to 65535"},
    {TEXT("9,2\n3,1.5\n"),
     {.label = NULL},
     "line 2, column 2: found \"1.5\", expected a label: a whole number from 0 to 65535"},
    {TEXT("9,2\n3,65536\n"),
     {.label = NULL},
     "line 2, column 2: found \"65536\", expected a label: a whole number from 0 to 65535"},
    {TEXT("9,2\n3,x\n"),
     {ANY},
     "line 2, column 2: found \"x\", expected a label: a whole number from 0 to 65535"},
    {TEXT("a,y\n1,m\n2,b\n"),
     {.label = NULL},
     "line 2, column 2 (\"y\"): found \"m\", expected a label: a whole number from 0 to 65535, or names that "
     "the "
     "job or the binding lists; found \"classes\": [\"b\", \"m\"]"},
    {TEXT("a,y\n1,Setosa\n"),
     {IRIS},
     "line 2, column 2 (\"y\"): found \"Setosa\", expected one of the \"classes\": \"setosa\", "
     "\"versicolor\", "
     "\"virginica\""},
    {TEXT("a,y\n1,high\n"),
     {REAL},
     "line 2, column 2 (\"y\"): found \"high\", expected a number to predict, within the range of F32"},
    {TEXT("a,b\n1,2\n"),
     {.label = "class"},
     "line 1: no column is named \"class\" (the label); found \"a\", \"b\""},
    {TEXT("a,b,c,d,e,f\n1,2,3,4,5,6\n"),
     {.label = "class"},
     "line 1: no column is named \"class\" (the label); found \"a\", \"b\", \"c\", \"d\", \"e\", …"},
    {TEXT("a,b\n1,2\n"), {.label_place = 3}, "line 1: no column 3 (the label); found 2 columns"},
    {TEXT("y,y\n1,2\n"),
     {.label = "y"},
     "line 1: columns 1 and 2 are both named \"y\"; give the column's number"},
    {TEXT("a,b\n1,2\n"),
     {.ignore = {1, "id"}},
     "line 1: no column is named \"id\" (\"ignore\"); found \"a\", \"b\""},
    {TEXT("a,b\n1,2\n"), {.ignore = {1, "b"}, .label = "b"}, "the label's column is left out by \"ignore\""},
    {TEXT("a,b\n1,2\n"), {.ignore = {1, "a"}}, "no column is left for features"},
    {TEXT(",a,y\n0,1,2\n1,1,2\n"),
     {.label = NULL},
     "line 1, column 1: found no name; where the column only numbers the rows, leave it out: \"ignore\": "
     "[1]"},
    {TEXT("2019,2020,target\n1,2,0\n"),
     {.label = NULL},
     "line 1, column 3: found \"target\", expected a label: a whole number from 0 to 65535, or names that "
     "the job "
     "or the binding lists; found \"classes\": [\"0\", \"target\"]; where the first line has the columns' "
     "names say "
     "\"header\": true"},
    {TEXT("2019,mean,y\n1,2,0\n"),
     {.label_place = 1},
     "line 1, column 2: found \"mean\", expected a number; where the first line has the columns' names say "
     "\"header\": true"},
    {TEXT("a;y\n1,5;0\n"),
     {.label = NULL},
     "line 2, column 1 (\"a\"): found \"1,5\", expected a number; for decimal commas say \"decimal\": \",\""},
    {TEXT("a;y\n1.000,5;0\n"),
     {.decimal_comma = true},
     "line 2, column 1 (\"a\"): found \"1.000,5\", expected a number; columns that are no numbers are left "
     "out by "
     "\"ignore\""},
    {TEXT("a,y\n1,\"2\n3,4\n"),
     {.label = NULL},
     "line 2, column 2: a quote opens here and no other closes it"},
    {TEXT("a,y\n1,\"2\"x\n"),
     {.label = NULL},
     "line 2, column 2: text follows the closing quote; within quotes a quote is written twice"},
    {TEXT("PK\x03\x04\xff,"),
     {.label = NULL},
     "not a CSV text in UTF-8: first bytes are 50 4b 03 04 (a zip archive)"},
    {TEXT("\xff\xfe"
          "a\0,\0"),
     {.label = NULL},
     "a text in UTF-16; save it as CSV in UTF-8"},
    {TEXT("a,b,y\n1,2,\xe9t\xe9\n"),
     {.label = NULL},
     "line 2: byte 0xe9 is no character of UTF-8; save the file as CSV in UTF-8"},
    {TEXT("a,b,y\n1,2,0\n1,\0,0\n"),
     {.label = NULL},
     "line 3: byte 0x00 is no character of UTF-8; save the file as CSV in UTF-8"},
    {TEXT("9,2\n+-1,2\n"),
     {NO},
     "line 2, column 1: found \"+-1\", expected a number; columns that are no numbers are left out by "
     "\"ignore\""},
    {TEXT("9,2\n+,2\n"),
     {NO},
     "line 2, column 1: found \"+\", expected a number; columns that are no numbers are left out by "
     "\"ignore\""},
};

START_TEST(bad_files_are_described)
{
    struct kedge_csv csv;
    struct kedge_diag diag = {.text = ""};
    int err = read_exactly(bad[_i].text, bad[_i].len, &bad[_i].o, &csv, &diag);
    ck_assert_msg(err < 0, "accepted: %s", bad[_i].text);
    ck_assert_msg(strcmp(diag.text, bad[_i].says) == 0, "%s, expected %s", diag.text, bad[_i].says);
}
END_TEST

START_TEST(names_missing_values_and_dropped_rows_are_counted)
{
    static const char text[] = "a,b,y\nNA,2,m\n1,?,b\n5,?,m\n1,2,\n";
    struct kedge_csv_options o = {ANY, DROP};
    struct kedge_csv csv;
    struct kedge_diag diag = {.text = ""};
    ck_assert_msg(read_exactly(text, sizeof text - 1, &o, &csv, &diag) < 0, "all rows have missing values");
    static const char more[] = "a,b,y\nNA,2,m\n1,?,b\n5,?,m\n1,2,\n3,4,m\n3,4,b\n3,4,m\n";
    ck_assert_msg(read_exactly(more, sizeof more - 1, &o, &csv, &diag) == KEDGE_OK, "%s", diag.text);
    ck_assert_uint_eq(csv.rows, 3);
    ck_assert_uint_eq(csv.dropped, 4);
    ck_assert_uint_eq(csv.missing[0], 1);
    ck_assert_uint_eq(csv.missing[1], 2);
    ck_assert_uint_eq(csv.classes_count, 2);
    ck_assert_str_eq(csv.classes, "b");
    ck_assert_str_eq(kedge_names_next(csv.classes), "m");
    kedge_csv_deinit(&csv);
}
END_TEST

/* More than 1,024 names are no classes; the table of names grows on the way there. */
START_TEST(too_many_names_are_no_classes)
{
    struct kedge_buf text;
    struct kedge_csv csv;
    struct kedge_diag diag = {.text = ""};
    struct kedge_csv_options o = {ANY};
    kedge_buf_init(&text, 1 << 20);
    kedge_buf_put_str(&text, "a,y\n");
    for (int i = 0; i < KEDGE_CSV_CLASSES_MAX; i++) {
        kedge_buf_printf(&text, "%d,name-%d\n", i, i);
    }
    struct kedge_view v = kedge_buf_view(&text);
    ck_assert_int_eq(read_exactly((const char *)v.ptr, v.len, &o, &csv, &diag), KEDGE_OK);
    ck_assert_uint_eq(csv.classes_count, KEDGE_CSV_CLASSES_MAX);
    ck_assert_str_eq(csv.classes, "name-0");
    ck_assert_int_eq(csv.labels[2], 136); /* after 0, 1, 10 to 19, 100 to 199, 1000 to 1023 */
    kedge_csv_deinit(&csv);
    kedge_buf_put_str(&text, "1,other\n");
    v = kedge_buf_view(&text);
    ck_assert_int_lt(read_exactly((const char *)v.ptr, v.len, &o, &csv, &diag), 0);
    ASSERT_SAYS(diag, "line 1026, column 2 (\"y\"): found \"other\", expected one of the 1,024 names before");
    kedge_buf_deinit(&text);
}
END_TEST

/* What is to be predicted has no label yet. */
START_TEST(a_file_may_have_no_label)
{
    static const char text[] = "a,b\n1,2\n3,4\n";
    struct kedge_csv csv;
    struct kedge_diag diag = {.text = ""};
    struct kedge_csv_options o = {.no_label = true};
    uint32_t features = 0;
    ck_assert_msg(read_exactly(text, sizeof text - 1, &o, &csv, &diag) == KEDGE_OK, "%s", diag.text);
    ck_assert_uint_eq(csv.rows, 2);
    ck_assert_uint_eq(csv.features, 2);
    ck_assert(csv.x[3] == 4.0f && csv.labels[1] == 0);
    kedge_csv_deinit(&csv);
    struct kedge_view file = kedge_view_str(text), one = kedge_view_str("7\n8\n");
    ck_assert_int_eq(kedge_csv_count_features(file, &o, &features, &diag), KEDGE_OK);
    ck_assert_uint_eq(features, 2);
    ck_assert_int_eq(kedge_csv_count_features(one, &o, &features, &diag), KEDGE_OK);
    ck_assert_uint_eq(features, 1);
    o.no_label = false;
    ck_assert_int_eq(kedge_csv_count_features(file, &o, &features, &diag), KEDGE_OK);
    ck_assert_uint_eq(features, 1);
    ck_assert_int_eq(kedge_csv_count_features(one, &o, &features, &diag), KEDGE_E_FORMAT);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("csv");
    tcase_add_test(tc, a_file_may_have_no_label);
    tcase_add_loop_test(tc, files_read, 0, sizeof good / sizeof good[0]);
    tcase_add_loop_test(tc, bad_files_are_described, 0, sizeof bad / sizeof bad[0]);
    tcase_add_test(tc, names_missing_values_and_dropped_rows_are_counted);
    tcase_add_test(tc, too_many_names_are_no_classes);
    return run_suite(suite_create("csv"), tc);
}
