/* kedge ledger refusals: what a state folder, or a copy of one, keeps of updates that were refused
 * before they came into a ledger. What is shown is read, not judged: kedge audit verify --refusal does that.
 */
#include "cli/ledger/refusals.h"

#include <stdio.h>
#include <string.h>

#include "chain/state/refused.h"
#include "chain/state/state.h"
#include "cli/local.h"
#include "common/base/mem.h"
#include "common/base/os/utc.h"
#include "common/base/try.h"

/* Only names are taken here: the audit opens the files, and says of each what it is worth. */
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

/* Of a file that is not signed nothing is told but its name: its content is anybody's. */
json_t *kedge_cli_refusals_json(const struct kedge_cli_refusals *shown, const struct kedge_audit_report *r)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < r->refusal_count; i++) {
        const struct kedge_audit_refusal *f = &r->refusals[i];
        json_t *o =
            json_pack("{s:s,s:s}", "file", shown->paths[i], "verdict", kedge_audit_refusal_name(f->verdict));
        if (f->verdict != KEDGE_AUDIT_REFUSAL_NOT_SIGNED) {
            json_object_update_new(o, json_pack("{s:s,s:s,s:s,s:i,s:s}", "tenant", f->tenant.s, "site",
                                                f->site.s, "job", f->job.s, "round", (int)f->round, "code",
                                                f->code));
        }
        json_array_append_new(list, o);
    }
    return list;
}

struct listing {
    const struct kedge_cli *c;
    json_t *rows;
};

static const struct kedge_column columns[] = {{"tenant", -16},     {"site", -16},   {"job", -16},
                                              {"round", 7},        {"reason", -14}, {"listed", -7},
                                              {"kept until", -12}, {"kept", -18}};
enum { COLUMNS = sizeof columns / sizeof columns[0], PAGES_MAX = 1 << 12 };

/* "Listed" says whether the round's list of inputs names the refusal, so that all can see it; "kept until"
 * stands in the signed refusal itself. */
static void say(const struct kedge_cli *c, const json_t *row)
{
    char round[16];
    struct kedge_utc until = kedge_utc(kedge_cli_int(row, "kept_until_s"), KEDGE_UTC_DAY, "-");
    bool envelope = json_is_true(json_object_get(row, "has_envelope"));
    bool update = json_is_true(json_object_get(row, "has_update"));
    snprintf(round, sizeof round, "%lld", (long long)kedge_cli_int(row, "round"));
    const char *kept = envelope && update ? "envelope and file"
                       : envelope         ? "envelope"
                       : update           ? "file"
                                          : "nothing";
    const char *cells[COLUMNS] = {kedge_cli_text(row, "tenant"),
                                  kedge_cli_text(row, "site"),
                                  kedge_cli_text(row, "job"),
                                  round,
                                  kedge_cli_text(row, "code"),
                                  json_is_true(json_object_get(row, "listed")) ? "yes" : "no",
                                  until.s,
                                  kept};
    kedge_cli_row(c, columns, COLUMNS, cells);
}

/* ---- of a folder ---- */

static int list_one(void *arg, const struct kedge_refused_row *row)
{
    struct listing *l = arg;
    const struct kedge_st_refused *r = &row->st.u.refused;
    char update[KEDGE_HASH_HEX_LEN + 1], subject[KEDGE_HASH_HEX_LEN + 1];
    if (!row->is_refusal) {
        kedge_cli_say(l->c, "%s: not a refusal\n", kedge_cli_word(row->path).s);
        return KEDGE_OK; /* a damaged file hides no other */
    }
    kedge_hash_hex(&r->update, update);
    kedge_hash_hex(&row->st.subject, subject);
    json_t *o =
        json_pack("{s:s,s:s,s:s,s:i,s:i,s:s,s:s,s:b,s:s,s:s,s:I,s:b,s:b,s:b,s:s}", "tenant", r->tenant.s,
                  "site", r->site.s, "job", r->job.s, "round", (int)r->round, "group", (int)r->group, "code",
                  r->code, "reason", r->reason, "listed", r->listed == 1, "update", update, "envelope_sha256",
                  subject, "kept_until_s", (json_int_t)r->kept_until_s, "has_envelope", row->has_envelope,
                  "has_update", row->has_update, "was_shown", row->was_shown, "path", row->path);
    if (o) {
        say(l->c, o);
    }
    return o && json_array_append_new(l->rows, o) == 0 ? KEDGE_OK : KEDGE_E_NOMEM;
}

static int list_folder(struct kedge_cli *c, struct listing *l, const struct kedge_id *tenant,
                       struct kedge_diag *d)
{
    char dir[KEDGE_PATH_MAX];
    int err = kedge_refused_dir(dir, d, c->state, tenant);
    return err ? err : kedge_refused_each(dir, list_one, l, d);
}

static int list_folders(struct kedge_cli *c, struct listing *l, const struct kedge_id *only,
                        struct kedge_diag *d)
{
    struct kedge_id *ids = NULL;
    size_t count = 0, found = 0;
    int err = kedge_state_tenants(c->state, &ids, &count, d);
    for (size_t i = 0; i < count && !err; i++) {
        if (!only || kedge_id_eq(&ids[i], only)) {
            found++;
            err = list_folder(c, l, &ids[i], d);
        }
    }
    kedge_mem_free(ids);
    return err || !only || found > 0
               ? err
               : kedge_diag_set(d, KEDGE_E_NOT_FOUND, "%s: no tenant \"%s\" in this state folder", c->state,
                                only->s);
}

/* ---- of a coordinator that runs, which notes what was shown ---- */

/* A coordinator that runs is asked, not its folder read: it notes that a refusal was shown, and may not be
 * passed over. */
static bool is_running(const struct kedge_cli *c)
{
    char door[KEDGE_PATH_MAX];
    return c->connect
           || (kedge_path_join(door, c->state, "coordinator.ipc") == KEDGE_OK && kedge_file_exists(door));
}

/* Page by page, until no later one is named; the bound holds against a coordinator that never comes to an
 * end. */
static int ask_tenant(struct kedge_cli *c, struct listing *l, const char *tenant, struct kedge_diag *d)
{
    json_int_t from = 0;
    int err = KEDGE_OK;
    for (unsigned pages = 0; pages < PAGES_MAX && !err; pages++) {
        json_t *answer = NULL, *row;
        size_t i;
        err = kedge_cli_admin(
            c, json_pack("{s:s,s:s,s:I}", "verb", "ledger.refusals", "tenant", tenant, "from", from), &answer,
            d);
        json_array_foreach(json_object_get(answer, "refusals"), i, row)
        {
            say(c, row);
            err = err || json_array_append(l->rows, row) == 0 ? err : KEDGE_E_NOMEM;
        }
        json_int_t next = err ? 0 : (json_int_t)kedge_cli_int(answer, "next");
        json_decref(answer);
        if (next <= from) {
            break;
        }
        from = next;
    }
    return err;
}

/* Tenant by tenant, for each keeps its own. An error ends it, so that a part is never taken for the whole. */
static int ask_all(struct kedge_cli *c, struct listing *l, struct kedge_diag *d)
{
    json_auto_t *answer = NULL;
    const json_t *row;
    size_t i;
    KEDGE_TRY(kedge_cli_admin(c, json_pack("{s:s}", "verb", "tenant.list"), &answer, d));
    json_array_foreach(json_object_get(answer, "tenants"), i, row)
    {
        KEDGE_TRY(ask_tenant(c, l, kedge_cli_text(row, "tenant"), d));
    }
    return KEDGE_OK;
}

int kedge_cmd_ledger_refusals(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_id one;
    const char *tenant = kedge_cli_argument(c, 0);
    if (!kedge_cli_no_more(c, 1)) {
        return 2;
    }
    if (tenant && kedge_id_from(kedge_view_str(tenant), &one) != KEDGE_OK) {
        return kedge_cli_usage(c, "%s: not a tenant's name", kedge_cli_word(tenant).s);
    }
    struct listing l = {.c = c, .rows = json_array()};
    if (!l.rows) {
        return kedge_cli_fail(c, KEDGE_E_NOMEM, NULL);
    }
    kedge_cli_head(c, columns, COLUMNS);
    int err = !is_running(c) ? list_folders(c, &l, tenant ? &one : NULL, &d)
              : tenant       ? ask_tenant(c, &l, tenant, &d)
                             : ask_all(c, &l, &d);
    if (err) {
        json_decref(l.rows);
        return kedge_cli_fail(c, err, &d);
    }
    return kedge_cli_ok(c, json_pack("{s:o}", "refusals", l.rows));
}
