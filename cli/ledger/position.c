/* kedge ledger position; and how statements that are signed here get theirs. */
#include "cli/ledger/position.h"

#include <string.h>

#include "chain/log/merkle.h"
#include "chain/statement/statement_position.h"
#include "cli/local.h"
#include "cli/receipt.h"
#include "common/base/try.h"
#include "common/json/json.h"

enum {
    SPAN =
        1
        << 20, /* entries: hundreds of rounds of a large tenant, so that several can sign in their own time */
    FILE_MAX = 4096
};

/* What ledger.position and the file of kedge ledger position say, in the same words. */
static int read_position(const json_t *o, const struct kedge_id *tenant, struct kedge_st_position *ret,
                         struct kedge_diag *d)
{
    struct kedge_public_key key;
    struct kedge_hash root;
    const json_t *size = json_object_get(o, "size"), *before = json_object_get(o, "before");
    uint64_t span = SPAN;
    if (strcmp(kedge_cli_text(o, "tenant"), tenant->s) != 0) {
        return kedge_diag_set(d, KEDGE_E_POSITION, "a position in the ledger of \"%.63s\", expected of %s",
                              kedge_cli_text(o, "tenant"), tenant->s);
    }
    if (kedge_hex_decode(kedge_view_str(kedge_cli_text(o, "main_log_key")), key.b, KEDGE_KEY_LEN) != KEDGE_OK
        || !kedge_public_key_is_valid(&key)
        || kedge_hash_from_hex(kedge_view_str(kedge_cli_text(o, "root")), &root) != KEDGE_OK
        || !json_is_integer(size) || json_integer_value(size) < 0
        || json_integer_value(size) > (json_int_t)(KEDGE_ST_COUNT_MAX / 2)) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "a position: expected tenant, main_log_key, size and root of a ledger");
    }
    if (before) {
        json_int_t more = json_integer_value(before) - json_integer_value(size);
        if (!json_is_integer(before) || more < 1 || more > KEDGE_POSITION_SPAN_MAX) {
            return kedge_diag_set(d, KEDGE_E_FORMAT,
                                  "a position: \"before\": expected 1 to %d above \"size\"",
                                  KEDGE_POSITION_SPAN_MAX);
        }
        span = (uint64_t)more;
    }
    *ret = kedge_position_make(&key, (uint64_t)json_integer_value(size), &root, span);
    return KEDGE_OK;
}

/* From a file or, with "-", from stdin: an admin's machine without a network is handed the position on
 * whatever there is. */
static int read_file(const char *path, json_t **ret, struct kedge_diag *d)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    KEDGE_TRY(kedge_cli_read_file(path, FILE_MAX, &text, d));
    return kedgei_json_load(kedge_buf_view(&text), FILE_MAX, "a position", ret, d);
}

/* By kedge_cli_ask and not kedge_cli_admin: it is asked for while something is being signed, and appends
 * nothing. */
static int ask(struct kedge_cli *c, const struct kedge_id *tenant, json_t **ret, struct kedge_diag *d)
{
    return kedge_cli_ask(c, json_pack("{s:s,s:s}", "verb", "ledger.position", "tenant", tenant->s), ret, d);
}

/* Where the position comes from is a question of trust: from the coordinator it is held to the main chain's
 * key that the caller knows; from a file, which an air-gapped admin brings along, only where such a key is
 * known. */
int kedge_cli_position(struct kedge_cli *c, struct kedge_statement *st, struct kedge_diag *d)
{
    json_t *o = NULL;
    if (st->at.before > 0 || !kedge_statement_has_position(st->kind)) {
        return KEDGE_OK;
    }
    const struct kedge_id *tenant = kedge_statement_tenant(st);
    int err = c->position ? read_file(c->position, &o, d) : ask(c, tenant, &o, d);
    if (!err) {
        err = read_position(o, tenant, &st->at, d);
    }
    if (!err && (c->trust || !c->position)) { /* a file may be used where no other key is known */
        err = kedge_cli_check_deployment(c, &st->at.main_log_key, d);
    }
    if (!err && st->kind == KEDGE_ST_KEY) { /* entry 0, also where the ledger has begun: said again */
        struct kedge_public_key main_log = st->at.main_log_key;
        struct kedge_hash none;
        kedge_merkle_empty_root(&none);
        st->at = kedge_position_make(&main_log, 0, &none, SPAN);
    }
    json_decref(o);
    return err && c->position ? kedge_diag_wrap(d, err, "--position %s", kedge_cli_word(c->position).s) : err;
}

/* For machines that cannot ask: what is signed there names this position, and the ledger refuses it once it
 * has grown past "before". */
int kedge_cmd_ledger_position(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_st_position at;
    struct kedge_id tenant;
    uint64_t span;
    json_t *o = NULL;
    const char *name = kedge_cli_argument(c, 0), *out = kedge_cli_option(c, "out", NULL);
    if (!kedge_cli_number(c, "entries", 1, KEDGE_POSITION_SPAN_MAX, SPAN, &span)) {
        return 2;
    }
    if (!name || kedge_id_from(kedge_view_str(name), &tenant) != KEDGE_OK) {
        return kedge_cli_usage(c, "TENANT: expected a name of a-z, 0-9, '.', '_', '-'");
    }
    if (!kedge_cli_no_more(c, 1)) {
        return 2;
    }
    int err = ask(c, &tenant, &o, &d);
    if (!err) {
        err = read_position(o, &tenant, &at, &d);
    }
    if (!err) {
        json_object_set_new(o, "before", json_integer((json_int_t)at.seen_size + (json_int_t)span));
        err = out || !c->json ? kedge_cli_put_json(o, out, &d) : KEDGE_OK;
    }
    if (err) {
        json_decref(o);
        return kedge_cli_fail(c, err, &d);
    }
    if (out) {
        kedge_cli_say(
            c,
            "Wrote %s: what is signed with --position %s stands in this ledger while it has at most "
            "%llu entries more, and nothing that it rests on has changed.\n",
            out, out, (unsigned long long)span);
    }
    return kedge_cli_ok(c, o);
}
