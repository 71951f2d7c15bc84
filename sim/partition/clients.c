/* Data of real clients: CSV, npz, LEAF's JSON, or a folder of them, read into one table with a client for
 * each row.
 *
 * Three kinds of words become numbers here: clients, true groups, classes. Classes that are names are
 * numbered last and by their bytes, since their order of appearance would depend on which file was read
 * first; clients keep the order in which they come. */
#include "sim/partition/clients.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/os/file.h"
#include "common/base/text.h"
#include "common/base/try.h"
#include "common/tensor/dataset.h"
#include "sim/partition/clients_impl.h"

void kedge_clients_deinit(struct kedge_clients *c)
{
    kedge_mem_free(c->x);
    kedge_mem_free(c->labels);
    kedge_mem_free(c->client);
    kedge_mem_free(c->part);
    kedge_mem_free(c->step);
    kedge_mem_free(c->names);
    kedge_mem_free(c->text);
    kedge_mem_free(c->truth);
    kedge_mem_free(c->class_names);
    *c = (struct kedge_clients){0};
}

/* ---- true groups from a file ---- */

/* Without the quotes around it; the text ends in place. */
static char *unquote(char *text)
{
    size_t len = strlen(text);
    if (len >= 2 && text[0] == '"' && text[len - 1] == '"') {
        text[len - 1] = '\0';
        return text + 1;
    }
    return text;
}

/* One line "client,group": the last comma divides it, so that a client's name may have one. */
static int read_truth_line(struct kedgei_clients *b, char *line, uint32_t number, uint32_t known,
                           struct kedge_diag *reterr)
{
    char *comma = strrchr(line, ',');
    uint32_t client;
    if (!comma) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "line %u: expected a client, a comma and its group",
                              number);
    }
    *comma = '\0';
    const char *name = unquote(line), *group = unquote(comma + 1);
    if (number == 1) {
        return strcmp(name, "client") == 0 && strcmp(group, "group") == 0
                   ? KEDGE_OK
                   : kedge_diag_set(reterr, KEDGE_E_FORMAT, "line 1: expected \"client,group\"");
    }
    int err = kedgei_clients_name(b, name, &client, reterr);
    if (!err) {
        err = client < known ? kedgei_clients_group(b, client, group, reterr)
                             : kedge_diag_set(reterr, KEDGE_E_FORMAT,
                                              "client \"%.60s\": the data have none of this name", name);
    }
    return err ? kedge_diag_wrap(reterr, err, "line %u", number) : KEDGE_OK;
}

static int read_truth_lines(struct kedgei_clients *b, char *text, struct kedge_diag *reterr)
{
    uint32_t known = b->clients.count, number = 0;
    int err = KEDGE_OK;
    for (char *line = text, *next; line && *line && !err; line = next) {
        next = strchr(line, '\n');
        size_t len = next ? (size_t)(next - line) : strlen(line);
        next = next ? next + 1 : NULL;
        len -= len > 0 && line[len - 1] == '\r';
        line[len] = '\0';
        number++;
        err = len > 0 ? read_truth_line(b, line, number, known, reterr) : KEDGE_OK;
    }
    return err;
}

static int read_truth(struct kedgei_clients *b, struct kedge_diag *reterr)
{
    uint8_t *bytes = NULL;
    size_t len = 0;
    int err = kedge_data_file_read(b->source->truth, &bytes, &len, reterr);
    if (err) {
        return err;
    }
    char *text = kedge_mem_new(len + 1, 1);
    if (text) {
        memcpy(text, bytes, len);
        err = memchr(text, '\0', len) ? kedge_diag_set(reterr, KEDGE_E_FORMAT, "a NUL stands in it")
                                      : read_truth_lines(b, text, reterr);
    } else {
        err = kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for it");
    }
    kedge_mem_free(text);
    kedge_mem_free(bytes);
    return err ? kedge_diag_wrap(reterr, err, "%s", b->source->truth) : KEDGE_OK;
}

/* ---- the whole of it ---- */

static int refuse_key(const char *key, const char *value, const char *path, const char *why,
                      struct kedge_diag *reterr)
{
    return kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"%s\": \"%.60s\", but %s %s", key,
                          kedge_text_shown(value).s, path, why);
}

/* Keys that name columns or arrays, where there are none. */
static int check_keys(const struct kedge_clients_source *s, const char *why, struct kedge_diag *reterr)
{
    return s->client[0]  ? refuse_key("client", s->client, s->path, why, reterr)
           : s->group[0] ? refuse_key("group", s->group, s->path, why, reterr)
           : s->step[0]  ? refuse_key("step", s->step, s->path, why, reterr)
                         : KEDGE_OK;
}

static int read_files(struct kedgei_clients *b, struct kedge_diag *reterr)
{
    static const struct kedgei_clients_file whole = {UINT32_MAX, KEDGE_CLIENTS_DEALT, 0};
    const struct kedge_clients_source *s = b->source;
    if (s->group[0] && s->truth[0]) {
        return refuse_key("group", s->group, s->truth, "is to say it too", reterr);
    }
    if (!kedge_file_exists(s->path)) {
        return kedge_diag_set(reterr, KEDGE_E_NOT_FOUND, "%s: not found", s->path);
    }
    if (kedgei_clients_is_folder(s->path)) {
        int err = check_keys(s, "is a folder, whose parts have names of their own", reterr);
        return err ? err : kedgei_clients_folder(b, s->path, reterr);
    }
    if (kedgei_clients_ends(s->path, ".csv")) {
        return kedgei_clients_file(b, s->path, kedgei_clients_csv, &whole, reterr);
    }
    if (kedgei_clients_ends(s->path, ".npz")) {
        return kedgei_clients_file(b, s->path, kedgei_clients_npz, &whole, reterr);
    }
    if (kedgei_clients_ends(s->path, ".json")) {
        int err = check_keys(s, "is LEAF's, which names its clients itself", reterr);
        err = err || !s->label[0] ? err
                                  : refuse_key("label", s->label, s->path, "is LEAF's, with \"y\"", reterr);
        return err ? err : kedgei_clients_file(b, s->path, kedgei_clients_leaf, &whole, reterr);
    }
    return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                          "%s: clients are read from a .csv, .npz or .json file, or from a folder", s->path);
}

static const struct kedgei_words *sorting; /* qsort has no argument of its own; one thread sorts */

static int compare_words(const void *a, const void *b)
{
    return strcmp(sorting->text + sorting->at[*(const uint32_t *)a],
                  sorting->text + sorting->at[*(const uint32_t *)b]);
}

/* Classes by name get their numbers in byte order, so that these do not depend on the order of files. */
static void sort_classes(struct kedgei_clients *b, uint32_t *order, uint32_t *place)
{
    struct kedge_clients *c = &b->c;
    uint32_t count = b->classes.count;
    char *to = c->class_names;
    for (uint32_t i = 0; i < count; i++) {
        order[i] = i;
    }
    sorting = &b->classes;
    qsort(order, count, sizeof *order, compare_words);
    for (uint32_t i = 0; i < count; i++) {
        const char *name = b->classes.text + b->classes.at[order[i]];
        place[order[i]] = i;
        memcpy(to, name, strlen(name) + 1);
        to += strlen(name) + 1;
    }
    for (uint32_t i = 0; i < c->n; i++) {
        c->labels[i] = (int32_t)place[c->labels[i]];
    }
}

static int number_classes(struct kedgei_clients *b, struct kedge_diag *reterr)
{
    struct kedge_clients *c = &b->c;
    uint32_t count = b->classes.count;
    if (b->labels == KEDGEI_LABELS_NAMES) {
        uint32_t *order = kedge_mem_new(count, sizeof *order), *place = kedge_mem_new(count, sizeof *place);
        c->class_names = kedge_mem_new(b->classes.used, 1);
        bool there = order && place && c->class_names;
        if (there) {
            sort_classes(b, order, place);
        }
        kedge_mem_free(order);
        kedge_mem_free(place);
        if (!there) {
            return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for %u classes", count);
        }
    }
    for (uint32_t i = 0; i < c->n; i++) {
        uint32_t k = (uint32_t)c->labels[i] + 1;
        c->classes = k > c->classes ? k : c->classes;
    }
    return KEDGE_OK;
}

/* Names and true groups into the result; either all clients have a true group or none. */
static int finish(struct kedgei_clients *b, struct kedge_diag *reterr)
{
    struct kedge_clients *c = &b->c;
    uint32_t count = b->clients.count;
    c->names = kedge_mem_new(count, sizeof *c->names);
    if (!c->names || kedgei_clients_truth_room(b, count) != KEDGE_OK) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for %u clients", count);
    }
    for (uint32_t i = 0; i < count; i++) {
        c->names[i] = b->clients.text + b->clients.at[i];
        if (b->groups.count > 0 && b->truth[i] == UINT32_MAX) {
            return kedge_diag_set(reterr, KEDGE_E_FORMAT, "client \"%.60s\": no true group is told of it",
                                  c->names[i]);
        }
    }
    for (uint32_t i = 0; i < c->n; i++) {
        c->steps = c->step[i] >= c->steps ? c->step[i] + 1u : c->steps;
    }
    c->count = count;
    c->text = b->clients.text;
    b->clients.text = NULL;
    c->true_count = b->groups.count;
    if (c->true_count > 0) {
        c->truth = b->truth;
        b->truth = NULL;
    }
    return KEDGE_OK;
}

static void begin(struct kedgei_clients *b, const struct kedge_clients_source *source)
{
    *b = (struct kedgei_clients){.source = source,
                                 .clients = {.most = KEDGE_CLIENTS_MAX},
                                 .groups = {.most = KEDGE_CLIENTS_GROUPS_MAX},
                                 .classes = {.most = KEDGE_CSV_CLASSES_MAX}};
}

static int complete(struct kedgei_clients *b, struct kedge_diag *reterr)
{
    const struct kedge_clients_source *s = b->source;
    if (b->c.n == 0) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "%s: no samples", s->path);
    }
    if (s->missing != KEDGE_CSV_MISSING_REFUSE && !b->c.is_csv) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "\"missing\": but %s holds no CSV file, and all others have every value",
                              s->path);
    }
    KEDGE_TRY(number_classes(b, reterr));
    KEDGE_TRY(s->truth[0] ? read_truth(b, reterr) : KEDGE_OK);
    return finish(b, reterr);
}

/* After what was read, or failed to be: the result. */
static int end(struct kedgei_clients *b, int err, struct kedge_clients *ret, struct kedge_diag *reterr)
{
    if (!err) {
        err = complete(b, reterr);
    }
    kedgei_words_deinit(&b->clients);
    kedgei_words_deinit(&b->groups);
    kedgei_words_deinit(&b->classes);
    kedge_mem_free(b->truth);
    if (err) {
        kedge_clients_deinit(&b->c);
        return err;
    }
    *ret = b->c;
    return KEDGE_OK;
}

int kedgei_clients_parse(const struct kedge_clients_source *source, kedgei_clients_read_fn *read,
                         struct kedge_view bytes, struct kedge_clients *ret, struct kedge_diag *reterr)
{
    static const struct kedgei_clients_file whole = {UINT32_MAX, KEDGE_CLIENTS_DEALT, 0};
    struct kedgei_clients b;
    begin(&b, source);
    return end(&b, read(&b, bytes, &whole, reterr), ret, reterr);
}

int kedge_clients_load(const struct kedge_clients_source *source, struct kedge_clients *ret,
                       struct kedge_diag *reterr)
{
    struct kedgei_clients b;
    begin(&b, source);
    return end(&b, read_files(&b, reterr), ret, reterr);
}
