/* kedge ledger list, show: a look into the logs of a state folder, beside a running coordinator too. What is
 * shown is read, not judged: kedge audit does that. */
#include <stdio.h>
#include <string.h>

#include "cli/local.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/json/json.h"

enum { SHOW_DEFAULT = 50, SHOW_MAX = 100000, CELL = 64 };

/* Handed to the child that reads the store, and back comes JSON: so this is all that the reading may depend
 * on. */
struct question {
    const char *state, *log;
    uint64_t from, limit;
    bool whole; /* one entry with its content */
};

/* ---- list ---- */

/* Called under kedge_cli_guarded: a damaged store can make LMDB crash, which then ends a child and not this
 * command. A log without a checkpoint is a new one and no error. */
static int gather_log(void *arg, json_t **ret, struct kedge_diag *d)
{
    struct question *q = arg;
    struct kedge_state_log log;
    struct kedge_hash root;
    struct kedge_vkey vkey;
    uint64_t checkpoint = 0;
    KEDGE_TRY(kedge_cli_log_open(q->state, q->log, &log, d));
    uint64_t size = kedge_ledger_size(log.ledger);
    int err = kedge_ledger_root(log.ledger, size, &root);
    int none = kedge_ledger_checkpoint(log.ledger, NULL, &checkpoint);
    if (!err && none != KEDGE_E_NOT_FOUND) {
        err = none;
    }
    if (err) {
        (void)kedge_diag_set(d, err, "log %s: %s", q->log, kedge_strerror(err));
    } else {
        *ret = json_pack("{s:s,s:s,s:I,s:o,s:I}", "log", q->log, "origin", log.origin, "size",
                         (json_int_t)size, "root", kedgei_json_hex(root.b, KEDGE_HASH_LEN), "checkpoint_size",
                         (json_int_t)checkpoint);
        if (kedge_cli_log_vkey(q->state, &log, &vkey)) {
            struct kedge_buf text;
            kedge_buf_init(&text, KEDGE_VKEY_MAX);
            kedge_vkey_encode(&vkey, &text);
            json_object_set_new(*ret, "vkey", json_stringn((const char *)text.ptr, text.len));
            kedge_buf_deinit(&text);
        }
    }
    kedge_state_log_close(&log);
    return err;
}

static const struct kedge_column list_columns[] = {
    {"log", -32}, {"entries", 9}, {"signed up to", 12}, {"root", -16}, {"", -20}};

static void say_log(const struct kedge_cli *c, const char *name, const json_t *row, const char *trouble)
{
    char size[24], checkpoint[24], root[17];
    snprintf(size, sizeof size, "%lld", (long long)kedge_cli_int(row, "size"));
    snprintf(checkpoint, sizeof checkpoint, "%lld", (long long)kedge_cli_int(row, "checkpoint_size"));
    snprintf(root, sizeof root, "%.16s", kedge_cli_text(row, "root"));
    const char *cells[] = {name, row ? size : "-", row ? checkpoint : "-", root, trouble};
    kedge_cli_row(c, list_columns, 5, cells);
}

/* One log at a time, so that a damaged one does not hide the others; *ret_err keeps the first trouble. */
static void list_one(struct kedge_cli *c, const char *name, json_t *logs, struct kedge_diag *first,
                     int *ret_err)
{
    struct question q = {.state = c->state, .log = name};
    struct kedge_diag d = {.text = ""};
    json_t *row = NULL;
    int err = kedge_cli_guarded(gather_log, &q, &row, &d);
    say_log(c, name, row, err ? kedge_strerror(err) : "");
    if (err) {
        row = json_pack("{s:s,s:s,s:s}", "log", name, "error", kedge_err_code(err), "message", d.text);
        *first = *ret_err ? *first : d;
        *ret_err = *ret_err ? *ret_err : err;
    }
    json_array_append_new(logs, row);
}

/* A log that cannot be read hides no other: all are listed, and the first trouble is told afterwards. */
int kedge_cmd_ledger_list(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""}, trouble = {.text = ""};
    char deployment[KEDGE_DEPLOYMENT_MAX + 1];
    struct kedge_id *ids KEDGE_CLEANUP(kedge_mem_release) = NULL;
    size_t count = 0;
    int bad = KEDGE_OK;
    if (!kedge_cli_no_more(c, 0)) {
        return 2;
    }
    KEDGE_CLI_TRY(c, kedge_state_deployment(c->state, deployment, &d), &d);
    KEDGE_CLI_TRY(c, kedge_state_tenants(c->state, &ids, &count, &d), &d);
    json_t *logs = json_array();
    kedge_cli_head(c, list_columns, 4);
    list_one(c, "main", logs, &trouble, &bad);
    for (size_t i = 0; i < count; i++) {
        list_one(c, ids[i].s, logs, &trouble, &bad);
    }
    if (bad) {
        json_decref(logs);
        return kedge_cli_fail(c, bad, &trouble);
    }
    return kedge_cli_ok(c, json_pack("{s:s,s:o}", "deployment", deployment, "logs", logs));
}

/* ---- show ---- */

/* The leaf hash is told of each entry, also of one that this copy may not have: it is what the proofs are
 * about. */
static int append_entry(const struct question *q, struct kedge_state_log *log, uint64_t index,
                        struct kedge_buf *entry, json_t *rows)
{
    struct kedge_hash leaf;
    json_auto_t *row = json_pack("{s:I}", "index", (json_int_t)index);
    kedge_buf_clear(entry);
    int err = row ? kedge_ledger_get(log->ledger, index, entry) : KEDGE_E_NOMEM;
    bool is_withheld = err == KEDGE_E_WITHHELD; /* a copy that may not have all */
    KEDGE_TRY(is_withheld ? KEDGE_OK : err);
    KEDGE_TRY(kedge_ledger_leaf_hash(log->ledger, index, &leaf));
    if (is_withheld) {
        json_object_set_new(row, "kind", json_string("withheld"));
        json_object_set_new(row, "who", json_string(""));
        json_object_set_new(row, "what", json_string("not for this copy's keeper; its leaf hash is known"));
    } else {
        KEDGE_TRY(kedge_cli_describe(kedge_buf_view(entry), !log->tenant.s[0], q->whole, row));
    }
    json_object_set_new(row, "leaf_hash", kedgei_json_hex(leaf.b, KEDGE_HASH_LEN));
    return json_array_append(rows, row) ? KEDGE_E_NOMEM : KEDGE_OK;
}

/* At most `limit` entries, from `from` on. An entry that cannot be read ends the listing, unlike one that
 * cannot be understood (describe.c): the first is damage of the store. */
static int gather_entries(void *arg, json_t **ret, struct kedge_diag *d)
{
    struct question *q = arg;
    struct kedge_state_log log;
    struct kedge_buf entry;
    int err = kedge_cli_log_open(q->state, q->log, &log, d);
    if (err) {
        return err;
    }
    uint64_t size = kedge_ledger_size(log.ledger), index = q->from;
    json_t *rows = json_array();
    kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
    if (q->whole && index >= size) {
        err = kedge_diag_set(d, KEDGE_E_NOT_FOUND, "log %s has %llu entries, there is no entry %llu", q->log,
                             (unsigned long long)size, (unsigned long long)index);
    }
    for (; !err && index < size && index - q->from < q->limit; index++) {
        err = append_entry(q, &log, index, &entry, rows);
        if (err) {
            (void)kedge_diag_set(d, err, "log %s, entry %llu: %s", q->log, (unsigned long long)index,
                                 kedge_strerror(err));
        }
    }
    kedge_buf_deinit(&entry);
    if (err) {
        json_decref(rows);
    } else {
        *ret = json_pack("{s:s,s:s,s:I,s:o}", "log", q->log, "origin", log.origin, "size", (json_int_t)size,
                         "entries", rows);
    }
    kedge_state_log_close(&log);
    return err;
}

static const struct kedge_column show_columns[] = {{"index", 7}, {"kind", -14}, {"who", -25}, {"what", -48}};

static void say_entries(const struct kedge_cli *c, const json_t *rows)
{
    size_t i;
    json_t *row;
    kedge_cli_head(c, show_columns, 4);
    json_array_foreach(rows, i, row)
    {
        char index[24];
        snprintf(index, sizeof index, "%lld", (long long)kedge_cli_int(row, "index"));
        const char *cells[] = {index, kedge_cli_text(row, "kind"), kedge_cli_text(row, "who"),
                               kedge_cli_text(row, "what")};
        kedge_cli_row(c, show_columns, 4, cells);
    }
}

/* The signature is not checked here, and the words say so: "as it says". */
static void say_whole(const struct kedge_cli *c, const struct question *q, const json_t *row)
{
    struct kedge_diag d;
    const json_t *payload = json_object_get(row, "payload");
    kedge_cli_say(c, "log %s, entry %llu: %s  %s  %s\nleaf %s\n", q->log, (unsigned long long)q->from,
                  kedge_cli_text(row, "kind"), kedge_cli_text(row, "who"), kedge_cli_text(row, "what"),
                  kedge_cli_text(row, "leaf_hash"));
    if (payload) {
        kedge_cli_say(c, "signed by the key with SHA-256 %s (as it says)\n", kedge_cli_text(row, "signer"));
        if (!c->json) {
            (void)!kedge_cli_put_json(payload, NULL, &d);
        }
    } else if (json_object_get(row, "note")) {
        kedge_cli_say(c, "%s", kedge_cli_text(row, "note"));
    }
}

int kedge_cmd_ledger_show(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct question q = {.state = c->state};
    json_t *answer = NULL;
    if (!kedge_cli_number(c, "from", 0, KEDGE_TREE_SIZE_MAX, 0, &q.from)
        || !kedge_cli_number(c, "limit", 1, SHOW_MAX, SHOW_DEFAULT, &q.limit) || !kedge_cli_no_more(c, 2)) {
        return 2;
    }
    const char *index = kedge_cli_argument(c, 1);
    q.log = kedge_cli_argument(c, 0);
    if (!q.log) {
        return kedge_cli_usage(c, "LOG is missing: main or a tenant's name");
    }
    if (index) {
        if (kedge_decimal_decode(kedge_view_str(index), KEDGE_TREE_SIZE_MAX, &q.from) != KEDGE_OK) {
            return kedge_cli_usage(c, "INDEX \"%s\": expected a whole number from 0",
                                   kedge_cli_word(index).s);
        }
        q.whole = true;
        q.limit = 1;
    }
    int err = kedge_cli_guarded(gather_entries, &q, &answer, &d);
    if (err) {
        return kedge_cli_fail(c, err, &d);
    }
    const json_t *rows = json_object_get(answer, "entries");
    uint64_t size = (uint64_t)kedge_cli_int(answer, "size"), shown = json_array_size(rows);
    if (q.whole) {
        say_whole(c, &q, json_array_get(rows, 0));
    } else {
        say_entries(c, rows);
        if (q.from + shown < size) {
            kedge_cli_say(c, "… %llu more: --from %llu\n", (unsigned long long)(size - q.from - shown),
                          (unsigned long long)(q.from + shown));
        }
    }
    return kedge_cli_ok(c, answer);
}
