/* kedge ledger refusals: what a state folder, or a copy of one, keeps of updates that were refused at the
 * door. What is shown is read, not judged: kedge audit verify --refusal does that. */
#include "cli/refusals.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "chain/state/refused.h"
#include "chain/state/state.h"
#include "cli/local.h"
#include "common/base/mem.h"
#include "common/base/os/kept.h"

bool kedge_cli_refusals_take(struct kedge_cli *c, struct kedge_cli_refusals *ret)
{
    const char *path;
    ret->count = 0;
    while ((path = kedge_cli_option(c, "refusal", NULL)) != NULL) {
        if (ret->count == KEDGE_CLI_REFUSALS_MAX) {
            (void)kedge_cli_usage(c, "--refusal: at most %d", KEDGE_CLI_REFUSALS_MAX);
            return false;
        }
        ret->paths[ret->count++] = path;
    }
    return true;
}

struct listing {
    const struct kedge_cli *c;
    json_t *rows;
    char dir[KEDGE_PATH_MAX]; /* of the tenant at hand */
    struct kedge_statement *st;
};

static const struct kedge_column columns[] = {{"tenant", -16},     {"site", -16},   {"job", -16},
                                              {"round", 7},        {"reason", -14}, {"listed", -7},
                                              {"kept until", -12}, {"kept", -18}};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static bool is_kept(const struct listing *l, const struct kedge_hash *about, const char *kind)
{
    char path[KEDGE_PATH_MAX];
    return kedge_kept_path(path, l->dir, &l->st->u.refused.site, about->b, kind) == KEDGE_OK
           && kedge_file_exists(path);
}

static void say(const struct listing *l, bool envelope, bool update)
{
    const struct kedge_st_refused *r = &l->st->u.refused;
    char round[16], until[16] = "-";
    time_t at = (time_t)r->kept_until_s;
    struct tm day;
    snprintf(round, sizeof round, "%u", r->round);
    if (at > 0 && gmtime_r(&at, &day)) {
        (void)strftime(until, sizeof until, "%Y-%m-%d", &day);
    }
    const char *kept = envelope && update ? "envelope and file"
                       : envelope         ? "envelope"
                       : update           ? "file"
                                          : "nothing";
    const char *cells[COLUMNS] = {r->tenant.s, r->site.s, r->job.s, round, r->code, r->listed ? "yes" : "no",
                                  until,       kept};
    kedge_cli_row(l->c, columns, COLUMNS, cells);
}

static int list_one(void *arg, const struct kedge_id *owner, const char *path)
{
    struct listing *l = arg;
    struct kedge_buf text;
    struct kedge_signed_statement read = {.signature_count = 0};
    char update[KEDGE_HASH_HEX_LEN + 1], subject[KEDGE_HASH_HEX_LEN + 1];
    (void)owner;
    kedge_buf_init(&text, KEDGE_ENTRY_MAX);
    int err = kedge_file_read(path, &text, NULL);
    err = err ? err : kedge_statement_read(kedge_buf_view(&text), l->st, &read, NULL);
    kedge_buf_deinit(&text);
    kedge_buf_deinit(&read.payload);
    if (err || l->st->kind != KEDGE_ST_REFUSED) {
        kedge_cli_say(l->c, "%s: not a refusal\n", kedge_cli_word(path).s);
        return KEDGE_OK; /* a damaged file hides no other */
    }
    const struct kedge_st_refused *r = &l->st->u.refused;
    bool envelope = is_kept(l, &l->st->subject, KEDGE_REFUSED_ENVELOPE);
    bool file = is_kept(l, &r->update, KEDGE_REFUSED_UPDATE);
    kedge_hash_hex(&r->update, update);
    kedge_hash_hex(&l->st->subject, subject);
    json_t *row = json_pack(
        "{s:s,s:s,s:s,s:i,s:i,s:s,s:s,s:b,s:s,s:s,s:I,s:b,s:b,s:s}", "tenant", r->tenant.s, "site", r->site.s,
        "job", r->job.s, "round", (int)r->round, "group", (int)r->group, "code", r->code, "reason", r->reason,
        "listed", r->listed == 1, "update", update, "envelope_sha256", subject, "kept_until_s",
        (json_int_t)r->kept_until_s, "has_envelope", envelope, "has_update", file, "path", path);
    say(l, envelope, file);
    return json_array_append_new(l->rows, row) == 0 ? KEDGE_OK : KEDGE_E_NOMEM;
}

static int list_tenant(struct kedge_cli *c, struct listing *l, const struct kedge_id *tenant,
                       struct kedge_diag *d)
{
    int err = kedge_state_path(l->dir, d, c->state, "tenants/%s/" KEDGE_REFUSED_DIR, tenant->s);
    return err ? err : kedge_kept_each(l->dir, KEDGE_REFUSED_REFUSAL, list_one, l, d);
}

int kedge_cmd_ledger_refusals(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_id *ids = NULL, one;
    size_t count = 0, found = 0;
    const char *tenant = kedge_cli_argument(c, 0);
    if (!kedge_cli_no_more(c, 1)) {
        return 2;
    }
    if (tenant && kedge_id_from(kedge_view_str(tenant), &one) != KEDGE_OK) {
        return kedge_cli_usage(c, "%s: not a tenant's name", kedge_cli_word(tenant).s);
    }
    struct listing l = {.c = c, .rows = json_array(), .st = kedge_mem_new(1, sizeof *l.st)};
    int err = l.st && l.rows ? kedge_state_tenants(c->state, &ids, &count, &d) : KEDGE_E_NOMEM;
    if (!err) {
        kedge_cli_head(c, columns, COLUMNS);
    }
    for (size_t i = 0; i < count && !err; i++) {
        if (!tenant || kedge_id_eq(&ids[i], &one)) {
            found++;
            err = list_tenant(c, &l, &ids[i], &d);
        }
    }
    if (!err && tenant && found == 0) {
        err = kedge_diag_set(&d, KEDGE_E_NOT_FOUND, "%s: no tenant \"%s\" in this state folder", c->state,
                             tenant);
    }
    kedge_mem_free(ids);
    kedge_mem_free(l.st);
    if (err) {
        json_decref(l.rows);
        return kedge_cli_fail(c, err, &d);
    }
    return kedge_cli_ok(c, json_pack("{s:o}", "refusals", l.rows));
}
