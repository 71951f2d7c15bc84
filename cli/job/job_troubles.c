/* Whom a job's round waits for, since when, and which sites are in trouble with it, in words. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "common/base/os/clock.h"
#include "common/base/os/utc.h"

enum { MS_PER_S = 1000, WAIT_TOLD_S = 3, NAMES_MAX = 8 };

/* Seconds since a time of the coordinator's clock. */
static long long since(const json_t *o, const char *key)
{
    int64_t then = kedge_cli_int(o, key), now = (int64_t)kedge_os_unix_ms();
    return then > 0 && then < now ? (long long)((now - then) / MS_PER_S) : 0;
}

/* "acme/b (offline), acme/c (at work) and 3 more" */
static void put_names(const json_t *job, char *out, size_t size)
{
    const json_t *sites = json_object_get(job, "waits_for"), *site;
    size_t i, at = 0, count = (size_t)kedge_cli_int(job, "waits_for_count");
    out[0] = '\0';
    json_array_foreach(sites, i, site)
    {
        if (i == NAMES_MAX || at >= size) {
            break;
        }
        int n = snprintf(out + at, size - at, "%s%.63s/%.63s (%.40s)", i > 0 ? ", " : "",
                         kedge_cli_text(site, "tenant"), kedge_cli_text(site, "site"),
                         kedge_cli_text(site, "why"));
        at += n > 0 ? (size_t)n : 0;
    }
    if (count > NAMES_MAX && at < size) {
        snprintf(out + at, size - at, " and %zu more", count - NAMES_MAX);
    }
}

/* The word is the reason that programs know (common/base/trouble.h), the text in brackets its meaning; what
 * follows after the colon is the site's own and goes through the filter of kedge_cli_say. */
static void say_trouble(const struct kedge_cli *c, const char *title, const json_t *row)
{
    const char *text = kedge_cli_text(row, "text");
    bool again = json_is_true(json_object_get(row, "asked_again"));
    kedge_cli_say(c, "%s%s/%s: %s (%s), round %lld, %lld s ago, %lld in a row%s%s%s\n", title,
                  kedge_cli_text(row, "tenant"), kedge_cli_text(row, "site"), kedge_cli_text(row, "reason"),
                  kedge_cli_text(row, "reason_text"), (long long)kedge_cli_int(row, "round"),
                  since(row, "last_ms"), (long long)kedge_cli_int(row, "times"),
                  again ? "" : ", not asked meanwhile", text[0] ? ": " : "", text);
}

/* ", until 2026-11-28 18:05:09Z": nothing where no time is told. */
static struct kedge_cli_word until(const json_t *job, const char *key)
{
    struct kedge_cli_word word = {.s = ""};
    if (json_object_get(job, key)) {
        snprintf(word.s, sizeof word.s, ", until %s",
                 kedge_utc(kedge_cli_int(job, key) / 1000, KEDGE_UTC_SECONDS, "-").s);
    }
    return word;
}

/* For whom a job waits of which no round has opened yet: "tenants to join: org-b; 2 more sites, of at least 3
 * online". Empty: for nobody. */
static void put_enrolment(const json_t *job, char *out, size_t size)
{
    const json_t *missing = json_object_get(job, "tenants_missing"), *tenant;
    const long long lacking = (long long)kedge_cli_int(job, "sites_lacking");
    size_t i, at = 0;
    out[0] = '\0';
    json_array_foreach(missing, i, tenant)
    {
        const char *name = json_string_value(tenant);
        if (i < NAMES_MAX && at < size) {
            int n = snprintf(out + at, size - at, "%s%.63s", i == 0 ? "tenants to join: " : ", ",
                             name ? name : "");
            at += n > 0 ? (size_t)n : 0;
        }
    }
    if (json_array_size(missing) > NAMES_MAX && at < size) {
        int n = snprintf(out + at, size - at, " and %zu more", json_array_size(missing) - NAMES_MAX);
        at += n > 0 ? (size_t)n : 0;
    }
    if (lacking > 0 && at < size) {
        int n =
            snprintf(out + at, size - at, "%s%lld more site%s, of at least %lld online", at > 0 ? "; " : "",
                     lacking, lacking == 1 ? "" : "s", (long long)kedge_cli_int(job, "sites_min"));
        at += n > 0 ? (size_t)n : 0;
    }
    if (lacking > 0 && at < size && json_object_get(job, "sites_fitting")) {
        snprintf(out + at, size - at, ", with the labels that it needs (%lld have them)",
                 (long long)kedge_cli_int(job, "sites_fitting"));
    }
}

/* Three kinds of waiting: for sites of this job's round, for who has to come before the first one, and for a
 * turn where other jobs share the sites (coordinator/schedule). Both are told, because what helps is
 * different. */
void kedge_cli_show_troubles(const struct kedge_cli *c, const json_t *job)
{
    const json_t *troubles = json_object_get(job, "troubles"), *row;
    char names[1024];
    size_t i;
    if (kedge_cli_int(job, "waits_for_count") > 0) {
        put_names(job, names, sizeof names);
        kedge_cli_say(c, "waits    for %s, since %lld s%s\n", names, since(job, "round_open_since_ms"),
                      until(job, "round_until_ms").s);
    }
    put_enrolment(job, names, sizeof names);
    if (names[0] && json_object_get(job, "enrol_until_ms")) {
        kedge_cli_say(c, "waits    for %s%s; then it ends as failed\n", names,
                      until(job, "enrol_until_ms").s);
    }
    if (kedge_cli_int(job, "queue_length") > 0) {
        kedge_cli_say(
            c,
            "waits    for a place among the jobs that run, as number %lld of %lld in line%s; then it "
            "ends as failed\n",
            (long long)kedge_cli_int(job, "queue_position"), (long long)kedge_cli_int(job, "queue_length"),
            until(job, "enrol_until_ms").s);
    } else if (strcmp(kedge_cli_text(job, "state"), "queued") == 0) {
        kedge_cli_say(c, "waits    for its first entry in the main chain\n");
    }
    if (json_object_get(job, "sites_free")) {
        kedge_cli_say(
            c,
            "waits    for sites that have nothing to do for other jobs: %lld, and a round takes at least "
            "%lld\n",
            (long long)kedge_cli_int(job, "sites_free"), (long long)kedge_cli_int(job, "sites_min"));
    }
    if (json_object_get(job, "others_turn_ms")) {
        kedge_cli_say(c,
                      "waits    for its turn: other jobs have had these sites for a shorter time, at most "
                      "%.1f s more\n",
                      (double)kedge_cli_int(job, "others_turn_ms") / 1000);
    }
    json_array_foreach(troubles, i, row)
    {
        say_trouble(c, "trouble  ", row);
    }
}

/* For one who watches. A trouble is told when it begins and not each time that it is repeated; a wait is told
 * when it has lasted, and again only when it is for others. The progress line is ended first, or it would be
 * drawn over these lines. */
void kedge_cli_watch_troubles(struct kedge_cli *c, const json_t *job, struct kedge_cli_told *told)
{
    const json_t *troubles = json_object_get(job, "troubles"), *row;
    char names[sizeof told->waits];
    size_t i;
    json_array_foreach(troubles, i, row)
    {
        if (kedge_cli_int(row, "last_ms") > told->last_ms && kedge_cli_int(row, "times") == 1) {
            kedge_cli_progress_end(c);
            say_trouble(c, "", row);
        }
    }
    json_array_foreach(troubles, i, row)
    {
        told->last_ms =
            kedge_cli_int(row, "last_ms") > told->last_ms ? kedge_cli_int(row, "last_ms") : told->last_ms;
    }
    const char *state = kedge_cli_text(job, "state");
    bool halted = strcmp(state, "halted") == 0;
    if (halted && !told->halted) {
        kedge_cli_progress_end(c);
        kedge_cli_say(c, "halted: %s\n",
                      kedge_cli_text(job, "reason_text")[0] ? kedge_cli_text(job, "reason_text")
                                                            : "by the operator");
    }
    told->halted = halted;
    put_enrolment(job, names, sizeof names);
    if (names[0] && json_object_get(job, "enrol_until_ms") && strcmp(names, told->waits) != 0) {
        kedge_cli_progress_end(c);
        kedge_cli_say(c, "waits for %s%s\n", names, until(job, "enrol_until_ms").s);
        memcpy(told->waits, names, sizeof names);
    }
    put_names(job, names, sizeof names);
    bool waits = names[0] && since(job, "round_open_since_ms") >= WAIT_TOLD_S;
    if (waits && (strcmp(names, told->waits) != 0 || told->round != kedge_cli_int(job, "round"))) {
        kedge_cli_progress_end(c);
        kedge_cli_say(c, "round %lld waits for %s, since %lld s\n", (long long)kedge_cli_int(job, "round"),
                      names, since(job, "round_open_since_ms"));
        memcpy(told->waits, names, sizeof names);
        told->round = kedge_cli_int(job, "round");
    }
}
