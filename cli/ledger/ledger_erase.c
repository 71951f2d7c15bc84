/* kedge ledger erase: a tenant's admin orders that updates are no longer kept. Each order is a statement of
 * the tenant's ledger; the coordinator removes the file when it is durable.
 *
 * Updates are files by digest, and two equal updates are one file. So what is chosen is files: an order names
 * the first entry with that file, and all entries with it are told. Rounds of a job that runs still need
 * their updates, so its files are left or, where they were named, refused. The command may be interrupted and
 * given again: what is erased already is counted and passed over. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/local.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/try.h"

enum { DIGESTS_MAX = 256, DAYS_MAX = 36500, PAGES_MAX = 1 << 20, CELL = 80, RANGES_LEN = 160 };
#define DAY_MS UINT64_C(86400000)

struct update {
    struct kedge_hash digest;
    struct kedge_id job, site;
    uint64_t entry, bytes, stored_ms;
    uint32_t round;
    bool pretrain, running, erased, here, chosen, told;
    bool first;      /* of the entries with this file: what an order names */
    bool is_refused; /* before it came into a ledger: none names it, and its order stands in none */
};

struct order {
    struct kedge_id tenant, job;
    bool of_job, has_digests, has_age, dry_run;
    uint64_t rounds_from, rounds_to, days;
    struct kedge_hash digests[DIGESTS_MAX];
    size_t digest_count;
    const char *reason, *authority;
    struct update *updates; /* ascending by file, then by entry: equal updates are one file */
    size_t count, cap;
    size_t chosen, done, known, running; /* files */
    size_t refused;                      /* of the chosen: those that no ledger names */
    uint64_t keys;                       /* that were destroyed, for nothing is left under them */
    uint64_t bytes;
};

/* ---- the command line ---- */

static bool take_rounds(struct kedge_cli *c, struct order *o)
{
    const char *text = kedge_cli_option(c, "rounds", NULL);
    o->rounds_to = KEDGE_ROUNDS_MAX;
    if (!text) {
        return true;
    }
    const char *dash = strchr(text, '-');
    size_t len = dash ? (size_t)(dash - text) : strlen(text);
    int err = kedge_decimal_decode(kedge_view_of(text, len), KEDGE_ROUNDS_MAX, &o->rounds_from);
    o->rounds_to = o->rounds_from;
    if (!err && dash) {
        err = kedge_decimal_decode(kedge_view_str(dash + 1), KEDGE_ROUNDS_MAX, &o->rounds_to);
    }
    if (err || o->rounds_to < o->rounds_from || !o->of_job) {
        (void)kedge_cli_usage(c, "--rounds %s: expected A or A-B, rounds of --job", kedge_cli_word(text).s);
        return false;
    }
    return true;
}

static bool take_digests(struct kedge_cli *c, struct order *o)
{
    const char *hex;
    while ((hex = kedge_cli_option(c, "digest", NULL)) != NULL) {
        if (o->digest_count == DIGESTS_MAX
            || kedge_hash_from_hex(kedge_view_str(hex), &o->digests[o->digest_count]) != KEDGE_OK) {
            (void)kedge_cli_usage(c, "--digest %s: expected 64 hex digits, at most %d times",
                                  kedge_cli_word(hex).s, DIGESTS_MAX);
            return false;
        }
        o->digest_count++;
    }
    o->has_digests = o->digest_count > 0;
    return true;
}

static bool take_age(struct kedge_cli *c, struct order *o)
{
    const char *text = kedge_cli_option(c, "older-than", NULL);
    o->has_age = text != NULL;
    if (text && kedge_decimal_decode(kedge_view_str(text), DAYS_MAX, &o->days) != KEDGE_OK) {
        (void)kedge_cli_usage(c, "--older-than %s: expected days, 0 to %d", kedge_cli_word(text).s, DAYS_MAX);
        return false;
    }
    return true;
}

/* Exactly one of three says what is meant: digests, a job, or an age. The reason is demanded because it
 * stands in the ledger for good, in the place of what was erased. */
static bool take_words(struct kedge_cli *c, struct order *o)
{
    const char *job = kedge_cli_option(c, "job", NULL);
    o->of_job = job != NULL;
    if (job && kedge_id_from(kedge_view_str(job), &o->job) != KEDGE_OK) {
        (void)kedge_cli_usage(c, "--job %s: expected a job's name", kedge_cli_word(job).s);
        return false;
    }
    if (!take_rounds(c, o) || !take_digests(c, o) || !take_age(c, o)) {
        return false;
    }
    o->reason = kedge_cli_option(c, "reason", NULL);
    o->authority = kedge_cli_option(c, "authority", "the tenant's admin");
    o->dry_run = kedge_cli_flag(c, "dry-run");
    if (!o->of_job + !o->has_digests + !o->has_age != 2) {
        (void)kedge_cli_usage(c, "expected one of --digest HEX, --job JOB, --older-than DAYS");
        return false;
    }
    if (!o->reason || !o->reason[0] || strlen(o->reason) > KEDGE_ST_REASON_MAX) {
        (void)kedge_cli_usage(c, "--reason TEXT: expected 1 to %d bytes, for the record",
                              KEDGE_ST_REASON_MAX);
        return false;
    }
    if (!o->authority[0] || strlen(o->authority) > KEDGE_ST_AUTHORITY_MAX) {
        (void)kedge_cli_usage(c, "--authority: expected 1 to %d bytes", KEDGE_ST_AUTHORITY_MAX);
        return false;
    }
    if (!o->dry_run && !c->admin_key) {
        (void)kedge_cli_usage(c, "--admin-key FILE is missing: the tenant's admin signs each order");
        return false;
    }
    const char *tenant = kedge_cli_argument(c, 0);
    if (!tenant || kedge_id_from(kedge_view_str(tenant), &o->tenant) != KEDGE_OK) {
        (void)kedge_cli_usage(c, "TENANT: expected a name of a-z, 0-9, '.', '_', '-'");
        return false;
    }
    return kedge_cli_no_more(c, 1);
}

/* ---- what there is ---- */

/* The coordinator's list is data like any other: what cannot be an update ends the command before anything is
 * ordered. */
static int add_update(struct order *o, const json_t *row, struct kedge_diag *d)
{
    if (!kedge_mem_grow(&o->updates, &o->cap, o->count, 256, sizeof *o->updates)) {
        return KEDGE_E_NOMEM;
    }
    struct update u = {.entry = (uint64_t)kedge_cli_int(row, "entry"),
                       .bytes = (uint64_t)kedge_cli_int(row, "bytes"),
                       .stored_ms = (uint64_t)kedge_cli_int(row, "stored_ms"),
                       .round = (uint32_t)kedge_cli_int(row, "round"),
                       .pretrain = strcmp(kedge_cli_text(row, "kind"), "pretrain") == 0,
                       .running = json_is_true(json_object_get(row, "running")),
                       .erased = json_is_true(json_object_get(row, "erased")),
                       .here = json_object_get(row, "bytes") != NULL};
    if (kedge_hash_from_hex(kedge_view_str(kedge_cli_text(row, "update")), &u.digest) != KEDGE_OK
        || kedge_id_from(kedge_view_str(kedge_cli_text(row, "job")), &u.job) != KEDGE_OK
        || kedge_id_from(kedge_view_str(kedge_cli_text(row, "site")), &u.site) != KEDGE_OK) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "the coordinator lists an update that is none");
    }
    o->updates[o->count++] = u;
    return KEDGE_OK;
}

/* Updates with one file come to stand beside each other, the first entry first: choose_file takes them as
 * one. */
static int compare_digests(const void *a, const void *b)
{
    const struct update *x = a, *y = b;
    int order = kedge_hash_cmp(&x->digest, &y->digest);
    return order ? order : (x->entry > y->entry) - (x->entry < y->entry);
}

/* Of refused updates those whose file is kept; entry: after all that a ledger names. */
static int add_row(struct order *o, bool is_refused, const json_t *row, struct kedge_diag *d)
{
    if (is_refused && !json_is_true(json_object_get(row, "has_update"))) {
        return KEDGE_OK;
    }
    int err = add_update(o, row, d);
    if (!err && is_refused) {
        o->updates[o->count - 1].is_refused = true;
        o->updates[o->count - 1].entry = UINT64_MAX;
    }
    return err;
}

/* All pages of what the tenant's ledger names, or of what is kept beside it. The loop ends where the
 * coordinator names no later page; one that names the same or an earlier page would otherwise be asked again
 * and again. */
static int read_pages(struct kedge_cli *c, struct order *o, bool is_refused, struct kedge_diag *d)
{
    uint64_t from = 0;
    for (unsigned pages = 0; pages < PAGES_MAX; pages++) {
        json_auto_t *answer = NULL;
        const json_t *row;
        size_t i;
        KEDGE_TRY(kedge_cli_admin(
            c,
            json_pack("{s:s,s:s,s:I,s:b}", "verb", is_refused ? "ledger.refusals" : "ledger.updates",
                      "tenant", o->tenant.s, "from", (json_int_t)from, "unnoted", (int)is_refused),
            &answer, d));
        json_array_foreach(json_object_get(answer, is_refused ? "refusals" : "updates"), i, row)
        {
            KEDGE_TRY(add_row(o, is_refused, row, d));
        }
        uint64_t next = (uint64_t)kedge_cli_int(answer, "next");
        if (next <= from) {
            break;
        }
        from = next;
    }
    return KEDGE_OK;
}

static int read_updates(struct kedge_cli *c, struct order *o, struct kedge_diag *d)
{
    int err = read_pages(c, o, false, d);
    if (!err) {
        err = read_pages(c, o, true, d);
    }
    if (o->count > 1) {
        qsort(o->updates, o->count, sizeof *o->updates, compare_digests);
    }
    return err;
}

/* ---- what is meant ---- */

/* By age only what is still here, since the time is that of the file. By job and by digest also what was
 * erased before, so that it can be told. */
static bool is_meant(const struct order *o, const struct update *u, uint64_t now_ms)
{
    if (o->of_job) {
        return kedge_id_eq(&u->job, &o->job) && u->round >= o->rounds_from && u->round <= o->rounds_to;
    }
    if (o->has_age) {
        return u->here && u->stored_ms + o->days * DAY_MS <= now_ms;
    }
    for (size_t i = 0; i < o->digest_count; i++) {
        if (kedge_hash_eq(&u->digest, &o->digests[i])) {
            return true;
        }
    }
    return false;
}

/* All entries from `at` on with the same file; returns where the next one begins. */
static size_t choose_file(struct order *o, size_t at, uint64_t now_ms, const struct update **ret_running,
                          bool *ret_meant)
{
    struct update *first = &o->updates[at];
    const struct update *running = NULL;
    size_t end = at;
    bool meant = false;
    for (; end < o->count && kedge_hash_eq(&o->updates[end].digest, &first->digest); end++) {
        meant = meant || is_meant(o, &o->updates[end], now_ms);
        running = o->updates[end].running ? &o->updates[end] : running;
    }
    *ret_meant = meant;
    if (!meant) {
        return end;
    }
    if (first->erased && !first->here) {
        o->known++;
    } else if (running) {
        o->running++;
        *ret_running = running;
    } else {
        first->first = true;
        o->chosen++;
        o->refused += first->is_refused;
        o->bytes += first->bytes;
        for (size_t i = at; i < end; i++) {
            o->updates[i].chosen = true;
        }
    }
    return end;
}

/* All or nothing for what was named: if one digest is no update of this tenant, nothing is erased, as the
 * admin may have meant another tenant or mistyped. By age there is no such expectation. */
static int choose(struct kedge_cli *c, struct order *o, struct kedge_diag *d)
{
    uint64_t now_ms = kedge_os_unix_ms();
    size_t meant = 0;
    const struct update *running = NULL;
    for (size_t i = 0; i < o->count;) {
        bool is_one = false;
        i = choose_file(o, i, now_ms, &running, &is_one);
        meant += is_one;
    }
    if (running && !o->has_age) {
        c->told = true;
        (void)kedge_diag_set(d, KEDGE_E_STATE,
                             "job \"%s\" has not ended: its rounds still need their updates", running->job.s);
        return kedge_diag_hint(d, "wait for its end, or end it: kedge job stop %s --cancel", running->job.s);
    }
    if (meant == 0 && o->of_job) {
        c->told = true;
        return kedge_diag_set(d, KEDGE_E_NOT_FOUND, "tenant %s has no such updates of job \"%s\"",
                              o->tenant.s, o->job.s);
    }
    if (o->has_digests && meant < o->digest_count) {
        c->told = true;
        return kedge_diag_set(d, KEDGE_E_NOT_FOUND,
                              "%zu of %zu digests are of updates of tenant %s; nothing was done", meant,
                              o->digest_count, o->tenant.s);
    }
    return KEDGE_OK;
}

/* ---- telling ---- */

/* "0-3, 7": the rounds of a job with a chosen update. */
static void name_rounds(const struct order *o, const struct kedge_id *job, bool *seen, char out[RANGES_LEN])
{
    size_t len = 0;
    memset(seen, 0, KEDGE_ROUNDS_MAX + 2);
    for (size_t i = 0; i < o->count; i++) {
        if (o->updates[i].chosen && kedge_id_eq(&o->updates[i].job, job)
            && o->updates[i].round <= KEDGE_ROUNDS_MAX) {
            seen[o->updates[i].round] = true;
        }
    }
    out[0] = '\0';
    for (uint32_t r = 0; r <= KEDGE_ROUNDS_MAX; r++) {
        uint32_t last = r;
        while (seen[r] && seen[last + 1]) {
            last++;
        }
        if (seen[r] && len + 40 < RANGES_LEN) {
            int n = last > r ? snprintf(out + len, RANGES_LEN - len, "%s%u-%u", len ? ", " : "", r, last)
                             : snprintf(out + len, RANGES_LEN - len, "%s%u", len ? ", " : "", r);
            len += (size_t)n;
        } else if (seen[r]) {
            snprintf(out + len, RANGES_LEN - len, ", …");
            return;
        }
        r = last;
    }
}

/* One row per job, for people and as JSON. Told before it is done, and told alike by --dry-run, which stops
 * here. */
static int tell_jobs(const struct kedge_cli *c, struct order *o, json_t *jobs)
{
    static const struct kedge_column columns[] = {
        {"job", -24}, {"updates", 9}, {"bytes", 14}, {"rounds", -40}};
    bool *seen = kedge_mem_new(KEDGE_ROUNDS_MAX + 2, sizeof *seen);
    if (!seen) {
        return KEDGE_E_NOMEM;
    }
    kedge_cli_head(c, columns, 4);
    for (size_t i = 0; i < o->count; i++) {
        if (!o->updates[i].chosen || o->updates[i].told) {
            continue;
        }
        char updates[CELL], bytes[CELL], rounds[RANGES_LEN];
        uint64_t n = 0, sum = 0;
        for (size_t k = i; k < o->count; k++) {
            if (o->updates[k].chosen && kedge_id_eq(&o->updates[k].job, &o->updates[i].job)) {
                n++;
                sum += o->updates[k].bytes;
                o->updates[k].told = true;
            }
        }
        name_rounds(o, &o->updates[i].job, seen, rounds);
        snprintf(updates, sizeof updates, "%" PRIu64, n);
        snprintf(bytes, sizeof bytes, "%" PRIu64, sum);
        const char *cells[] = {o->updates[i].job.s, updates, bytes, rounds};
        kedge_cli_row(c, columns, 4, cells);
        json_array_append_new(jobs, json_pack("{s:s,s:I,s:I,s:s}", "job", o->updates[i].job.s, "updates",
                                              (json_int_t)n, "bytes", (json_int_t)sum, "rounds", rounds));
    }
    kedge_mem_free(seen);
    return KEDGE_OK;
}

static json_t *updates_json(const struct order *o)
{
    json_t *list = json_array();
    for (size_t i = 0; i < o->count; i++) {
        const struct update *u = &o->updates[i];
        char hex[KEDGE_HASH_HEX_LEN + 1];
        if (u->chosen) {
            kedge_hash_hex(&u->digest, hex);
            json_array_append_new(
                list, json_pack("{s:s,s:o,s:s,s:i,s:s,s:s,s:I}", "update", hex, "entry",
                                u->is_refused ? json_null() : json_integer((json_int_t)u->entry), "job",
                                u->job.s, "round", (int)u->round, "kind", u->pretrain ? "pretrain" : "train",
                                "site", u->site.s, "bytes", (json_int_t)u->bytes));
        }
    }
    return list;
}

static void tell_rest(const struct kedge_cli *c, const struct order *o)
{
    if (o->known > 0) {
        kedge_cli_say(c, "%zu %s erased before.\n", o->known, o->known == 1 ? "was" : "were");
    }
    if (o->running > 0) {
        kedge_cli_say(c, "%zu of jobs that have not ended stay until then.\n", o->running);
    }
}

/* ---- doing it ---- */

/* The same signed statement for both: an update that the ledger names is erased by an entry, a refused one by
 * an order beside it. */
static int send_order(struct kedge_cli *c, const struct order *o, const struct update *u,
                      const struct kedge_key_pair *key, struct kedge_statement *st, struct kedge_diag *d)
{
    json_t *envelope = NULL;
    json_auto_t *answer = NULL;
    st->kind = KEDGE_ST_ERASED; /* of a refused file no entry is looked for: any number will do */
    st->u.erased = (struct kedge_st_erased){
        .tenant = o->tenant, .update = u->digest, .entry = u->is_refused ? 1 : u->entry};
    snprintf(st->u.erased.reason, sizeof st->u.erased.reason, "%s", o->reason);
    snprintf(st->u.erased.authority, sizeof st->u.erased.authority, "%s", o->authority);
    KEDGE_TRY(kedge_cli_sign(c, st, key, &envelope, d));
    return kedge_cli_admin(c,
                           json_pack("{s:s,s:s,s:o}", "verb",
                                     u->is_refused ? "ledger.erase-refused" : "ledger.erase", "tenant",
                                     o->tenant.s, u->is_refused ? "order" : "envelope", envelope),
                           &answer, d);
}

/* One order after the other, each with a receipt of its own: when one fails, those before it are in force,
 * and the same command goes on after them. */
static int send_orders(struct kedge_cli *c, struct order *o, struct kedge_diag *d)
{
    struct kedge_key_pair key;
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    int err = st ? kedge_cli_key(c->admin_key, false, &key, d) : KEDGE_E_NOMEM;
    bool has_key = !err;
    c->receipts_untold = true; /* one each */
    for (size_t i = 0; i < o->count && !err; i++) {
        if (o->updates[i].first) {
            kedge_cli_progress(c, "erasing", o->done, o->chosen, o->updates[i].job.s);
            err = send_order(c, o, &o->updates[i], &key, st, d);
            o->done += err == KEDGE_OK;
        }
    }
    kedge_cli_progress_end(c);
    if (has_key) {
        kedge_key_wipe(&key);
    }
    kedge_mem_free(st);
    if (err && o->done > 0) {
        (void)kedge_diag_wrap(d, err, "%zu of %zu are erased", o->done, o->chosen);
        (void)kedge_diag_hint(d, "the same command goes on with the rest");
    }
    return err;
}

/* With the last update under a key goes the key: what copies and backups have of these files is noise then.
 */
static int destroy_keys(struct kedge_cli *c, struct order *o, struct kedge_diag *d)
{
    json_t *answer = NULL;
    int err =
        kedge_cli_admin(c, json_pack("{s:s,s:s}", "verb", "ledger.shred", "tenant", o->tenant.s), &answer, d);
    o->keys = err ? 0 : (uint64_t)kedge_cli_int(answer, "keys_destroyed");
    json_decref(answer);
    return err ? kedge_diag_wrap(d, err, "the updates are erased, but a key that they were under is not")
               : err;
}

static int carry_out(struct kedge_cli *c, struct order *o, struct kedge_diag *d)
{
    json_t *jobs = json_array();
    int err = choose(c, o, d);
    if (!err && o->chosen > 0) {
        kedge_cli_say(c, "%s of tenant %s:\n", o->dry_run ? "Would be erased" : "To be erased", o->tenant.s);
        err = tell_jobs(c, o, jobs);
    }
    err = err || o->dry_run || o->chosen == 0 ? err : send_orders(c, o, d);
    err = err || o->dry_run || o->chosen + o->known == 0 ? err : destroy_keys(c, o, d);
    if (err) {
        json_decref(jobs);
        return err;
    }
    if (o->chosen == 0) {
        kedge_cli_say(c, "Nothing to erase.\n");
    } else if (!o->dry_run) {
        kedge_cli_say(c, "Erased: %zu updates, %" PRIu64 " bytes, each with an entry in the tenant's ledger",
                      o->done, o->bytes);
        if (o->refused > 0) {
            kedge_cli_say(c, ", but for %zu that were refused and that no ledger names", o->refused);
        }
        kedge_cli_say(c, ".\n");
    }
    if (o->keys > 0) {
        kedge_cli_say(c,
                      "Destroyed: %" PRIu64
                      " keys under which nothing is left; copies of the encrypted files are "
                      "of no use any more, unless the keys were copied, too.\n",
                      o->keys);
    }
    tell_rest(c, o);
    if (o->chosen > o->refused) {
        kedge_cli_say(
            c, "No longer to be replayed: the aggregates of these rounds that took them, for all tenants; "
               "of round 0 the groups, too.\nAll else holds: who sent what and when, every weight and "
               "list, every model (kedge audit verify names the rest).\n");
    }
    return kedge_cli_ok(c, json_pack("{s:s,s:b,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:o,s:o}", "tenant", o->tenant.s,
                                     "dry_run", (int)o->dry_run, "chosen", (json_int_t)o->chosen, "bytes",
                                     (json_int_t)o->bytes, "erased", (json_int_t)o->done, "refused",
                                     (json_int_t)o->refused, "erased_before", (json_int_t)o->known, "running",
                                     (json_int_t)o->running, "keys_destroyed", (json_int_t)o->keys, "jobs",
                                     jobs, "updates", updates_json(o)));
}

int kedge_cmd_ledger_erase(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct order *o = kedge_mem_new(1, sizeof *o);
    if (!o) {
        return kedge_cli_fail(c, KEDGE_E_NOMEM, NULL);
    }
    if (!take_words(c, o)) {
        kedge_mem_free(o);
        return 2;
    }
    int err = read_updates(c, o, &d);
    if (!err) {
        err = carry_out(c, o, &d);
    }
    kedge_mem_free(o->updates);
    kedge_mem_free(o);
    return err ? kedge_cli_fail(c, err, &d) : 0;
}
