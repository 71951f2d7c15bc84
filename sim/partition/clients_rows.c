/* What readers of clients' files put into the table: names, groups, rows, labels. */
#include <string.h>

#include "common/base/mem.h"
#include "common/base/text.h"
#include "common/base/try.h"
#include "common/tensor/dataset.h"
#include "sim/partition/clients_impl.h"

enum { ROWS_FIRST = 256 };

bool kedgei_clients_ends(const char *s, const char *end)
{
    size_t a = strlen(s), b = strlen(end);
    return a > b && strcmp(s + a - b, end) == 0;
}

int kedgei_clients_name(struct kedgei_clients *b, const char *name, uint32_t *ret, struct kedge_diag *reterr)
{
    if (!name[0] || strlen(name) > KEDGE_CLIENTS_NAME_MAX || !kedge_text_is_plain(kedge_view_str(name))) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "client \"%.60s\": expected a name of 1 to %d bytes, UTF-8 without control "
                              "characters",
                              kedge_text_shown(name).s, KEDGE_CLIENTS_NAME_MAX);
    }
    int err = kedgei_words_find(&b->clients, name, ret);
    if (err == KEDGE_E_FULL) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "client \"%.60s\": there are %d before it, the most",
                              name, KEDGE_CLIENTS_MAX);
    }
    return err ? kedge_diag_set(reterr, err, "no memory for the names of clients") : KEDGE_OK;
}

/* Twice as many as asked for, so that names that come one by one cost a copy now and then only. A client
 * without a group has UINT32_MAX. */
int kedgei_clients_truth_room(struct kedgei_clients *b, uint32_t client)
{
    if (client < b->truth_room) {
        return KEDGE_OK;
    }
    uint32_t room = 2 * client + 16;
    uint32_t *truth = kedge_mem_resize(b->truth, room, sizeof *truth);
    KEDGE_TRY_MEM(truth);
    for (uint32_t i = b->truth_room; i < room; i++) {
        truth[i] = UINT32_MAX;
    }
    b->truth = truth;
    b->truth_room = room;
    return KEDGE_OK;
}

/* Every row of a client tells its group: all must tell the same. */
int kedgei_clients_group(struct kedgei_clients *b, uint32_t client, const char *group,
                         struct kedge_diag *reterr)
{
    const char *name = b->clients.text + b->clients.at[client];
    uint32_t number;
    if (!group[0]) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "client \"%.60s\": its group has no name", name);
    }
    int err = kedgei_clients_truth_room(b, client);
    if (!err) {
        err = kedgei_words_find(&b->groups, group, &number);
    }
    if (err) {
        return kedge_diag_set(reterr, err == KEDGE_E_FULL ? KEDGE_E_FORMAT : err,
                              err == KEDGE_E_FULL ? "more than %d groups" : "no memory for names of groups",
                              KEDGE_CLIENTS_GROUPS_MAX);
    }
    if (b->truth[client] != UINT32_MAX && b->truth[client] != number) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "client \"%.60s\": in group \"%.60s\" and in \"%.60s\"",
                              name, kedge_text_shown(b->groups.text + b->groups.at[b->truth[client]]).s,
                              kedge_text_shown(group).s);
    }
    b->truth[client] = number;
    return KEDGE_OK;
}

/* Five arrays grow together, by a half each time. rows_max moves on only when all have grown; one that is
 * larger already is no harm. */
int kedgei_clients_room(struct kedgei_clients *b, uint32_t rows, uint32_t features, struct kedge_diag *reterr)
{
    struct kedge_clients *c = &b->c;
    if (c->n > 0 && features != c->features) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE, "%u features, but %u in what was read before", features,
                              c->features);
    }
    if (rows > INT32_MAX - c->n) {
        return kedge_diag_set(reterr, KEDGE_E_TOO_LONG, "more than %d samples", INT32_MAX);
    }
    c->features = features;
    if (c->n + rows <= b->rows_max) {
        return KEDGE_OK;
    }
    uint64_t wanted = (uint64_t)c->n + rows;
    uint32_t max = wanted > b->rows_max * (uint64_t)3 / 2 ? (uint32_t)wanted : b->rows_max / 2 * 3;
    max = max < ROWS_FIRST ? ROWS_FIRST : max;
    bool there = true;
    void *more = kedge_mem_resize(c->x, (size_t)max, features * sizeof *c->x);
    there = there && more;
    c->x = more ? more : c->x;
    more = kedge_mem_resize(c->labels, max, sizeof *c->labels);
    there = there && more;
    c->labels = more ? more : c->labels;
    more = kedge_mem_resize(c->client, max, sizeof *c->client);
    there = there && more;
    c->client = more ? more : c->client;
    more = kedge_mem_resize(c->part, max, 1);
    there = there && more;
    c->part = more ? more : c->part;
    more = kedge_mem_resize(c->step, max, 1);
    there = there && more;
    c->step = more ? more : c->step;
    if (!there) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for %u samples of %u features", max,
                              features);
    }
    b->rows_max = max;
    return KEDGE_OK;
}

int kedgei_clients_labels(struct kedgei_clients *b, enum kedgei_labels kind, struct kedge_diag *reterr)
{
    if (b->labels != KEDGEI_LABELS_UNKNOWN && b->labels != kind) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "labels are %s, but %s in what was read before",
                              kind == KEDGEI_LABELS_NAMES ? "names" : "numbers",
                              kind == KEDGEI_LABELS_NAMES ? "numbers" : "names");
    }
    b->labels = kind;
    return KEDGE_OK;
}

int kedgei_clients_step(const char *text, uint32_t *ret, struct kedge_diag *reterr)
{
    uint64_t v;
    if (kedge_decimal_decode(kedge_view_str(text), KEDGE_CLIENTS_STEPS_MAX - 1, &v) != KEDGE_OK) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "step \"%.40s\": expected a whole number from 0 to %d",
                              kedge_text_shown(text).s, KEDGE_CLIENTS_STEPS_MAX - 1);
    }
    *ret = (uint32_t)v;
    return KEDGE_OK;
}

/* Every error of a reader gets the file's name in front here, so no reader needs to know it. */
int kedgei_clients_file(struct kedgei_clients *b, const char *path, kedgei_clients_read_fn *read,
                        const struct kedgei_clients_file *as, struct kedge_diag *reterr)
{
    uint8_t *bytes = NULL;
    size_t len = 0;
    KEDGE_TRY(kedge_data_file_read(path, &bytes, &len, reterr));
    int err = read(b, kedge_view_of(bytes, len), as, reterr);
    kedge_mem_free(bytes);
    return err ? kedge_diag_wrap(reterr, err, "%s", path) : KEDGE_OK;
}
