/* kedge-client try-data: what each binding of policy.json gives, loaded as training would load it. Nothing is
 * sent, and nothing but counts is shown. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/daemon/owner/owner.h"
#include "client/daemon/policy.h"
#include "common/base/mem.h"
#include "common/base/os/file.h"
#include "common/base/text.h"
#include "common/base/try.h"
#include "common/tensor/dataset.h"

enum { CLASSES_SHOWN = 16 };

static int usage(FILE *out, int code)
{
    fputs("Usage: kedge-client try-data [NAME…] --site DIR [--format json|text]\n"
          "Loads the data that policy.json binds (or those of these names) as training would, and says how "
          "many\n"
          "rows, columns, classes and missing values there are, or the first line and column that cannot be "
          "read. Root tries "
          "it\n"
          "as the user to whom DIR belongs. Nothing is sent.\n"
          "Example: kedge-client try-data mine --site /var/lib/kedge-client\n"
          "Exit codes: 0 all of it can be trained on, 1 some cannot, 2 usage, 3 no site or policy to read.\n",
          out);
    return code;
}

static json_t *failure(int err, const struct kedge_diag *d)
{
    return json_pack("{s:b,s:{s:s,s:s,s:s}}", "ok", 0, "error", "code", kedge_err_code(err), "message",
                     kedge_text_shown(d->text[0] ? d->text : kedge_strerror(err)).s, "hint",
                     kedge_text_shown(d->hint).s);
}

/* Columns that miss values, by name, or by number where they have none. */
static json_t *holes_of(const struct kedge_data_facts *f)
{
    json_t *list = json_array();
    for (uint32_t i = 0; f->columns && i < f->features; i++) {
        if (f->columns[i].missing > 0) {
            char number[16];
            snprintf(number, sizeof number, "%u", i + 1);
            json_array_append_new(
                list, json_pack("{s:s,s:i}", "column",
                                f->columns[i].name[0] ? kedge_text_shown(f->columns[i].name).s : number,
                                "missing", (int)f->columns[i].missing));
        }
    }
    return list;
}

static json_t *classes_of(const struct kedge_data_facts *f)
{
    json_t *list = json_array();
    for (uint32_t i = 0; !f->is_real && i < f->classes_count; i++) {
        const struct kedge_data_class *c = &f->classes[i];
        json_array_append_new(list, json_pack("{s:s,s:i,s:i}", "class", kedge_text_shown(c->name).s, "train",
                                              (int)c->train, "test", (int)c->test));
    }
    return list;
}

static json_t *try_one(const json_t *binding)
{
    struct kedge_diag d = {.text = "", .hint = ""};
    struct kedge_data_binding *b = kedge_mem_new(1, sizeof *b);
    struct kedge_data_facts f;
    int err = b ? kedge_doctor_binding(binding, b, &d) : KEDGE_E_NOMEM;
    if (!err) {
        err = kedge_data_binding_facts(b, &f, &d);
    }
    kedge_mem_free(b);
    if (err) {
        return failure(err, &d);
    }
    json_t *o = json_pack("{s:b,s:i,s:i,s:i,s:i,s:o,s:b,s:o,s:b,s:b}", "ok", 1, "train", (int)f.train, "test",
                          (int)f.test, "columns", (int)f.features, "dropped", (int)f.dropped, "holes",
                          holes_of(&f), "real", f.is_real, "classes", classes_of(&f), "wants_classes",
                          f.wants_classes, "tells_classes", f.tells_classes);
    if (f.is_real) {
        json_object_set_new(o, "least", json_real(f.least));
        json_object_set_new(o, "most", json_real(f.most));
    }
    kedge_data_facts_deinit(&f);
    return o;
}

/* ---- for people ---- */

static json_int_t number(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

static const char *text(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

/* "rows of setosa: 50, versicolor: 48": of many the first say enough. */
static void tell_classes(const json_t *o)
{
    const json_t *list = json_object_get(o, "classes");
    const size_t count = json_array_size(list);
    for (size_t i = 0; i < count && i < CLASSES_SHOWN; i++) {
        const json_t *c = json_array_get(list, i);
        printf("%s %s: %lld", i ? "," : "      rows of class", text(c, "class"),
               (long long)(number(c, "train") + number(c, "test")));
    }
    if (count > 0) {
        puts(count > CLASSES_SHOWN ? ", …" : "");
    }
    if (json_is_true(json_object_get(o, "tells_classes"))) {
        puts("      jobs that learn the names of their classes are told these (\"classes\": \"federated\")");
    }
    if (json_is_true(json_object_get(o, "wants_classes"))) {
        puts("      labels are names: a job or this binding must say which number each has (\"classes\": "
             "[…])");
    }
}

static void tell_holes(const json_t *o)
{
    const json_t *list = json_object_get(o, "holes");
    for (size_t i = 0; i < json_array_size(list) && i < CLASSES_SHOWN; i++) {
        const json_t *c = json_array_get(list, i);
        printf("%s %s: %lld", i ? "," : "      missing in column", text(c, "column"),
               (long long)number(c, "missing"));
    }
    if (json_array_size(list) > 0) {
        printf("; %lld rows are left out for it\n", (long long)number(o, "dropped"));
    }
}

static void tell(const char *name, const json_t *o)
{
    const json_t *error = json_object_get(o, "error");
    if (error) {
        printf("FAIL  %s: %s\n", kedge_text_shown(name).s, text(error, "message"));
        if (text(error, "hint")[0]) {
            printf("      %s\n", text(error, "hint"));
        }
        return;
    }
    printf("ok    %s: %lld rows to train with, %lld to test, %lld columns, ", kedge_text_shown(name).s,
           (long long)number(o, "train"), (long long)number(o, "test"), (long long)number(o, "columns"));
    if (json_is_true(json_object_get(o, "real"))) {
        printf("labels are numbers from %g to %g\n", json_real_value(json_object_get(o, "least")),
               json_real_value(json_object_get(o, "most")));
    } else {
        printf("%zu classes\n", json_array_size(json_object_get(o, "classes")));
    }
    tell_classes(o);
    tell_holes(o);
    if (number(o, "test") == 0) {
        puts("      nothing is left to test with: add \"split\": \"0.8\", or \"test\"");
    }
}

static int read_policy(const char *dir, struct kedge_site_policy *p, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf text;
    KEDGE_TRY(kedge_path_join(path, dir, "policy.json"));
    kedge_buf_init(&text, KEDGE_POLICY_FILE_MAX);
    int err = kedge_file_read(path, &text, d);
    if (!err) {
        err = kedge_policy_parse(kedge_buf_view(&text), path, p, d);
    }
    kedge_buf_deinit(&text);
    return err;
}

static bool is_named(const char *name, char **names, int count)
{
    bool named = count == 0;
    for (int i = 0; i < count && !named; i++) {
        named = strcmp(names[i], name) == 0;
    }
    return named;
}

/* The exit code. */
static int try_all(const struct kedge_site_policy *p, const struct kedgei_owner_asked *asked, char **names,
                   int count)
{
    json_t *found = json_object(), *binding;
    const char *name;
    bool well = true;
    json_object_foreach(p->data, name, binding)
    {
        if (is_named(name, names, count)) {
            json_t *o = try_one(binding);
            well = well && json_is_true(json_object_get(o, "ok"));
            if (!asked->json) {
                tell(name, o);
            }
            json_object_set_new(found, name, o);
        }
    }
    if (asked->json) {
        json_t *answer = json_pack("{s:i,s:s,s:{s:b,s:O}}", "schema_version", 1, "status", "ok", "data",
                                   "well", well, "bindings", found);
        (void)json_dumpf(answer, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
        puts("");
        json_decref(answer);
    }
    json_decref(found);
    return well ? 0 : 1;
}

int kedge_client_try_data_main(int argc, char **argv)
{
    struct kedgei_owner_asked asked = {.may_name = true};
    struct kedge_diag d = {.text = "", .hint = ""};
    struct kedge_site_policy p = {.allow_all = false};
    char dir[KEDGE_PATH_MAX];
    int code;
    if (!kedgei_owner_options(argc, argv, &asked, &code, usage)) {
        return code;
    }
    int err = kedge_doctor_become_owner(asked.dir);
    err = err ? kedge_diag_set(&d, err, "cannot become the user to whom %s belongs", asked.dir)
              : kedge_path_real(asked.dir, dir, &d);
    if (!err) {
        err = read_policy(dir, &p, &d);
    }
    if (!err && chdir(dir) != 0) { /* where the trainer runs: relative paths begin there */
        err = kedge_diag_set(&d, kedge_errno(errno), "%s: %s", dir, strerror(errno));
    }
    char **names = argv + asked.first_name;
    for (int i = 0; !err && i < argc - asked.first_name; i++) {
        if (!json_object_get(p.data, names[i])) {
            err = kedge_diag_set(&d, KEDGE_E_NOT_FOUND, "%s/policy.json binds no data named \"%.100s\"", dir,
                                 names[i]);
        }
    }
    if (!err && json_object_size(p.data) == 0) {
        err = kedge_diag_set(&d, KEDGE_E_NOT_FOUND, "%s/policy.json binds no data", dir);
        (void)kedge_diag_hint(&d, "say where they are, under \"data\": kedge-client --help has an example");
    }
    code = err ? kedgei_owner_fail(asked.json, err, &d) : try_all(&p, &asked, names, argc - asked.first_name);
    kedge_policy_deinit(&p);
    return code;
}
