/* LEAF's JSON: {"users": […], "num_samples": […], "user_data": {USER: {"x": [[…], …], "y": […]}}}. Files may
 * have gigabytes of numbers, so they are read once from front to back and never stand in memory as a tree.
 * What is not read here is passed over by counting brackets: no recursion, whatever the file holds. */
#include <string.h>

#include "common/base/mem.h"
#include "common/base/text.h"
#include "common/base/try.h"
#include "common/tensor/csv.h"
#include "sim/partition/clients_impl.h"

enum { NUMBER_MAX = 63, DEPTH_MAX = 4 };
#define F32_MAX 3.4028234e38

struct scan {
    const uint8_t *begin, *at, *end;
    struct kedge_diag *d;
};

/* Values of one user. */
struct values {
    float *v; /* owned */
    size_t count, room;
    uint32_t samples;
};

static int say(const struct scan *s, const char *expected)
{
    return kedge_diag_set(s->d, KEDGE_E_FORMAT, "byte %zu: expected %s", (size_t)(s->at - s->begin) + 1,
                          expected);
}

static void skip_blanks(struct scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\r' || *s->at == '\t')) {
        s->at++;
    }
}

/* Whether the next character is this one, which is then taken. */
static bool take(struct scan *s, char c)
{
    skip_blanks(s);
    if (s->at == s->end || *s->at != (uint8_t)c) {
        return false;
    }
    s->at++;
    return true;
}

/* After a member: true when another follows; else the closing bracket was there, or *err says what is not. */
static bool take_more(struct scan *s, char close, int *err)
{
    if (take(s, ',')) {
        return true;
    }
    *err = take(s, close) ? KEDGE_OK : say(s, close == ']' ? "\",\" or \"]\"" : "\",\" or \"}\"");
    return false;
}

/* A text as it stands between its quotes, which are not in it. */
static int read_string(struct scan *s, struct kedge_view *ret)
{
    if (!take(s, '"')) {
        return say(s, "a text in quotes");
    }
    const uint8_t *begin = s->at;
    while (s->at < s->end && *s->at != '"') {
        s->at += *s->at == '\\' && s->at + 1 < s->end ? 2 : 1;
    }
    if (s->at >= s->end) {
        return say(s, "the quote that ends a text");
    }
    *ret = kedge_view_of(begin, (size_t)(s->at - begin));
    s->at++;
    return KEDGE_OK;
}

static int read_key(struct scan *s, struct kedge_view *ret)
{
    int err = read_string(s, ret);
    return err || take(s, ':') ? err : say(s, "\":\"");
}

static int read_name(const struct scan *s, struct kedge_view text, char out[KEDGE_CLIENTS_NAME_MAX + 1])
{
    if (text.len > KEDGE_CLIENTS_NAME_MAX || memchr(text.ptr, '\\', text.len)
        || memchr(text.ptr, 0, text.len)) {
        return say(s, "a user's name of at most 127 bytes, without escapes");
    }
    memcpy(out, text.ptr, text.len);
    out[text.len] = '\0';
    return KEDGE_OK;
}

/* Any value: brackets are counted, what stands within them is not looked at. */
static int skip_value(struct scan *s)
{
    struct kedge_view text;
    uint64_t depth = 0;
    do {
        skip_blanks(s);
        if (s->at == s->end) {
            return say(s, "the end of a value");
        }
        if (*s->at == '"') {
            KEDGE_TRY(read_string(s, &text));
            continue;
        }
        if (depth == 0 && (*s->at == ',' || *s->at == '}' || *s->at == ']')) {
            return say(s, "a value");
        }
        bool opens = *s->at == '{' || *s->at == '[', closes = *s->at == '}' || *s->at == ']';
        bool is_word = !opens && !closes && *s->at != ',' && *s->at != ':';
        depth = depth + opens - closes;
        s->at++;
        while (is_word && s->at < s->end && !strchr(" \n\r\t,:{}[]\"", *s->at)) {
            s->at++;
        }
    } while (depth > 0);
    return KEDGE_OK;
}

/* A number is at most 63 bytes long; kedge_real_decode decides whether it is one, and NaN or an infinity
 * cannot be written. */
static int read_number(struct scan *s, double *ret)
{
    char text[NUMBER_MAX + 1];
    size_t len = 0;
    skip_blanks(s);
    while (s->at + len < s->end && len < NUMBER_MAX && s->at[len] != 0
           && strchr("+-.eE0123456789", s->at[len])) {
        text[len] = s->at[len] == 'E' ? 'e' : (char)s->at[len];
        len++;
    }
    if (len == 0 && s->at < s->end && *s->at == '"') {
        return say(s, "numbers: samples that are texts are not read");
    }
    if (len == 0 || kedge_real_decode(kedge_view_of((const uint8_t *)text, len), ret) != KEDGE_OK
        || !(*ret >= -F32_MAX && *ret <= F32_MAX)) {
        return say(s, "a number within the range of F32");
    }
    s->at += len;
    return KEDGE_OK;
}

static int push(struct scan *s, struct values *v, double value)
{
    if (v->count == v->room) {
        size_t room = 2 * v->room + 1024;
        float *more = kedge_mem_resize(v->v, room, sizeof *more);
        if (!more) {
            return kedge_diag_set(s->d, KEDGE_E_NOMEM, "no memory for %zu values of a user", room);
        }
        v->v = more;
        v->room = room;
    }
    v->v[v->count++] = (float)value;
    return KEDGE_OK;
}

/* One sample: a number, or lists of numbers in each other, as images are. */
static int read_sample(struct scan *s, struct values *v)
{
    uint32_t depth = 0;
    do {
        double value;
        if (take(s, '[')) {
            if (++depth > DEPTH_MAX) {
                return say(s, "at most four lists in each other");
            }
            continue;
        }
        KEDGE_TRY(read_number(s, &value));
        KEDGE_TRY(push(s, v, value));
        while (depth > 0 && take(s, ']')) {
            depth--;
        }
        if (depth > 0 && !take(s, ',')) {
            return say(s, "\",\" or \"]\"");
        }
    } while (depth > 0);
    return KEDGE_OK;
}

/* A list of samples that are all as long as the first. That length is not kept: before sample k there must be
 * k times as many values as this one has. */
static int read_list(struct scan *s, struct values *v)
{
    int err = KEDGE_OK;
    v->count = v->samples = 0;
    if (!take(s, '[')) {
        return say(s, "a list");
    }
    if (take(s, ']')) {
        return KEDGE_OK;
    }
    do {
        size_t before = v->count;
        err = read_sample(s, v);
        if (!err && v->samples > 0 && (v->count - before) * v->samples != before) {
            err = say(s, "samples that are all of one length");
        }
        if (err || ++v->samples == INT32_MAX) {
            return err ? err : say(s, "fewer samples");
        }
    } while (take_more(s, ']', &err));
    return err;
}

static int add_user(struct kedgei_clients *b, struct scan *s, uint32_t client, enum kedge_clients_part part,
                    const struct values *x, const struct values *y)
{
    struct kedge_clients *c = &b->c;
    const char *name = b->clients.text + b->clients.at[client];
    if (x->samples != y->samples || y->count != y->samples) {
        return kedge_diag_set(s->d, KEDGE_E_FORMAT,
                              "user \"%.60s\": %u samples in \"x\", but %zu labels in \"y\"", name,
                              x->samples, y->count);
    }
    if (x->samples == 0) {
        return KEDGE_OK; /* of this part; a client without any sample is found when they are dealt */
    }
    size_t features = x->count / x->samples;
    if (features > KEDGE_CSV_COLUMNS_MAX) {
        return kedge_diag_set(s->d, KEDGE_E_FORMAT, "user \"%.60s\": %zu features, expected at most %d", name,
                              features, KEDGE_CSV_COLUMNS_MAX);
    }
    int err = kedgei_clients_room(b, x->samples, (uint32_t)features, s->d);
    if (err) {
        return kedge_diag_wrap(s->d, err, "user \"%.60s\"", name);
    }
    memcpy(c->x + (size_t)c->n * features, x->v, x->count * sizeof *x->v);
    for (uint32_t i = 0; i < y->samples; i++) {
        double label = y->v[i];
        if (!(label >= 0 && label <= KEDGE_CSV_LABEL_MAX) || (double)(int32_t)label != label) {
            return kedge_diag_set(s->d, KEDGE_E_FORMAT,
                                  "user \"%.60s\": label %g, expected a whole number from 0 to %d", name,
                                  label, KEDGE_CSV_LABEL_MAX);
        }
        c->labels[c->n + i] = (int32_t)label;
        c->client[c->n + i] = client;
        c->part[c->n + i] = (uint8_t)part;
        c->step[c->n + i] = 0;
    }
    c->n += x->samples;
    return kedgei_clients_labels(b, KEDGEI_LABELS_NUMBERS, s->d);
}

/* {"x": […], "y": […]}, other keys are passed over. */
static int read_user(struct scan *s, struct values *x, struct values *y)
{
    bool has_x = false, has_y = false;
    struct kedge_view key;
    int err = KEDGE_OK;
    if (!take(s, '{')) {
        return say(s, "an object with \"x\" and \"y\"");
    }
    do {
        err = read_key(s, &key);
        if (!err && kedge_view_eq(key, kedge_view_str("x"))) {
            has_x = true;
            err = read_list(s, x);
        } else if (!err && kedge_view_eq(key, kedge_view_str("y"))) {
            has_y = true;
            err = read_list(s, y);
        } else if (!err) {
            err = skip_value(s);
        }
        if (err) {
            return err;
        }
    } while (take_more(s, '}', &err));
    return err || (has_x && has_y) ? err : say(s, "\"x\" and \"y\" before this");
}

/* "NAME": {"x": […], "y": […]}; x and y are buffers for one user after the other. */
static int read_member(struct kedgei_clients *b, struct scan *s, enum kedge_clients_part part,
                       struct kedgei_words *seen, struct values *x, struct values *y)
{
    struct kedge_view key;
    char name[KEDGE_CLIENTS_NAME_MAX + 1];
    uint32_t client, number;
    KEDGE_TRY(read_key(s, &key));
    KEDGE_TRY(read_name(s, key, name));
    KEDGE_TRY(kedgei_clients_name(b, name, &client, s->d));
    uint32_t before = seen->count;
    KEDGE_TRY(kedgei_words_find(seen, name, &number));
    if (number < before) {
        return kedge_diag_set(s->d, KEDGE_E_FORMAT, "user \"%.60s\" stands twice in \"user_data\"", name);
    }
    KEDGE_TRY(read_user(s, x, y));
    return add_user(b, s, client, part, x, y);
}

/* A user may stand in several files of a folder (training and test), but not twice in one, where one of the
 * two would be lost unseen. `seen` has the names of this file; the number that a name gets shows whether it
 * was there. */
static int read_users(struct kedgei_clients *b, struct scan *s, enum kedge_clients_part part,
                      struct kedgei_words *seen)
{
    struct values x = {0}, y = {0};
    int err = take(s, '{') ? KEDGE_OK : say(s, "an object of users");
    bool more = !err && !take(s, '}');
    while (more) {
        err = read_member(b, s, part, seen, &x, &y);
        more = !err && take_more(s, '}', &err);
    }
    kedge_mem_free(x.v);
    kedge_mem_free(y.v);
    return err;
}

/* ["a", "b", …] */
static int read_names(struct scan *s, struct kedgei_words *users)
{
    struct kedge_view text;
    char name[KEDGE_CLIENTS_NAME_MAX + 1];
    uint32_t number;
    int err = take(s, '[') ? KEDGE_OK : say(s, "a list of users");
    bool more = !err && !take(s, ']');
    while (more) {
        KEDGE_TRY(read_string(s, &text));
        KEDGE_TRY(read_name(s, text, name));
        KEDGE_TRY(kedgei_words_find(users, name, &number));
        more = take_more(s, ']', &err);
    }
    return err;
}

/* "users" and "user_data" name the same ones. */
static int compare_users(const struct scan *s, struct kedgei_words *users, struct kedgei_words *seen)
{
    for (uint32_t i = 0; i < users->count; i++) {
        const char *name = users->text + users->at[i];
        uint32_t before = seen->count, number;
        int err = kedgei_words_find(seen, name, &number);
        if (!err && number >= before) {
            err = kedge_diag_set(s->d, KEDGE_E_FORMAT,
                                 "user \"%.60s\" is in \"users\", but not in \"user_data\"",
                                 kedge_text_shown(name).s);
        }
        if (err) {
            return err;
        }
    }
    return users->count == seen->count
               ? KEDGE_OK
               : kedge_diag_set(s->d, KEDGE_E_FORMAT, "%u users in \"users\", but %u in \"user_data\"",
                                users->count, seen->count);
}

static int read_file(struct kedgei_clients *b, struct scan *s, enum kedge_clients_part part,
                     struct kedgei_words *users, struct kedgei_words *seen)
{
    bool has_data = false;
    struct kedge_view key;
    int err = take(s, '{') ? KEDGE_OK : say(s, "an object with \"users\" and \"user_data\"");
    bool more = !err && !take(s, '}');
    while (more) {
        err = read_key(s, &key);
        if (!err && kedge_view_eq(key, kedge_view_str("user_data"))) {
            err = has_data ? say(s, "\"user_data\" once") : read_users(b, s, part, seen);
            has_data = true;
        } else if (!err && kedge_view_eq(key, kedge_view_str("users"))) {
            err = read_names(s, users);
        } else if (!err) {
            err = skip_value(s);
        }
        if (err) {
            return err;
        }
        more = take_more(s, '}', &err);
    }
    skip_blanks(s);
    if (!err && s->at != s->end) {
        err = say(s, "the end of the file");
    }
    if (!err && !has_data) {
        err = kedge_diag_set(s->d, KEDGE_E_FORMAT, "no \"user_data\" in it: expected LEAF's JSON");
    }
    return err ? err : compare_users(s, users, seen);
}

int kedgei_clients_leaf(struct kedgei_clients *b, struct kedge_view bytes,
                        const struct kedgei_clients_file *as, struct kedge_diag *reterr)
{
    struct kedgei_words users = {.most = KEDGE_CLIENTS_MAX}, seen = {.most = KEDGE_CLIENTS_MAX};
    struct scan s = {bytes.ptr, bytes.ptr, bytes.ptr + bytes.len, reterr};
    if (reterr) {
        reterr->text[0] = '\0';
    }
    int err = read_file(b, &s, as->part, &users, &seen);
    if (err && reterr && !reterr->text[0]) {
        err = kedge_diag_set(reterr, err, "%s", kedge_strerror(err));
    }
    kedgei_words_deinit(&users);
    kedgei_words_deinit(&seen);
    return err;
}
