/* Folds the record of a state folder, up to the opening of every round of every job:
 *
 *      round_states STATE      prints "JOB ROUND DIGEST" (kedge_round_state_digest), a line each
 *
 * Each round is folded twice, from the job's beginning and from where a restart would begin; both must be the
 * same. A coordinator logs what it had as it opened the round. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/state/state.h"
#include "common/base/mem.h"
#include "job/job_spec.h"
#include "round/fold_ledgers.h"

enum { SITES_MOST = 4096 };

struct tenant {
    struct kedge_state_log log;
    struct kedge_hash salted;
    struct kedge_id *sites; /* ascending */
    uint32_t site_count;
};

static struct kedge_state_log main_log;
static struct tenant *tenants;
static size_t tenant_count;

/* of the job that is looked at */
static struct kedge_job_spec spec;
static const struct tenant *of_job[KEDGE_SPEC_TENANTS_MAX]; /* ascending, and so are its sites */
static struct kedge_round_log logs_of_job[KEDGE_SPEC_TENANTS_MAX];

static void must(int err, const char *what, const struct kedge_diag *d)
{
    if (err) {
        fprintf(stderr, "round_states: %s: %s\n", what, d && d->text[0] ? d->text : kedge_strerror(err));
        exit(1);
    }
}

static int add_site(void *arg, struct kedge_view key, uint64_t index)
{
    struct tenant *t = arg;
    const size_t skip = strlen("site-enrolled/");
    (void)index;
    if (t->site_count < SITES_MOST) {
        struct kedge_id *id = &t->sites[t->site_count++];
        snprintf(id->s, sizeof id->s, "%.*s", (int)(key.len - skip), (const char *)key.ptr + skip);
    }
    return KEDGE_OK;
}

static void open_all(const char *state)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_id *ids;
    must(kedge_state_log_open(state, NULL, KEDGE_STATE_READ, &main_log, &d), "main chain", &d);
    must(kedge_state_tenants(state, &ids, &tenant_count, &d), "tenants", &d);
    tenants = kedge_mem_new(tenant_count, sizeof *tenants);
    for (size_t i = 0; tenants && i < tenant_count; i++) {
        struct tenant *t = &tenants[i];
        must(kedge_state_log_open(state, &ids[i], KEDGE_STATE_READ, &t->log, &d), ids[i].s, &d);
        kedge_state_salted_id(&t->log, &t->salted);
        t->sites = kedge_mem_new(SITES_MOST, sizeof *t->sites);
        must(t->sites ? kedge_ledger_scan_keys(t->log.ledger, kedge_view_str("site-enrolled/"), add_site, t)
                      : KEDGE_E_NOMEM,
             "sites", NULL);
    }
    kedge_mem_free(ids);
}

/* ---- one job ---- */

static uint32_t first_site(uint32_t place)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i < place; i++) {
        first += of_job[i]->site_count;
    }
    return first;
}

static uint32_t find_site(void *arg, uint32_t place, const struct kedge_id *site)
{
    (void)arg;
    for (uint32_t i = 0; i < of_job[place]->site_count; i++) {
        if (kedge_id_eq(&of_job[place]->sites[i], site)) {
            return first_site(place) + i;
        }
    }
    return KEDGE_ROUND_NONE;
}

/* The digest as round `until` opens; false: the record has not opened it. */
static bool digest_at(uint32_t from, uint32_t until, struct kedge_hash *ret)
{
    static struct kedge_round_site sites[SITES_MOST];
    struct kedge_diag d = {.text = ""};
    struct kedge_round_fold fold;
    const uint32_t count = first_site(spec.tenant_count);
    const struct kedge_round_logs logs = {.main = {.ledger = main_log.ledger, .blobs = main_log.blobs},
                                          .tenants = logs_of_job,
                                          .tenant_count = spec.tenant_count,
                                          .site = find_site};
    for (uint32_t place = 0; place < spec.tenant_count; place++) {
        for (uint32_t i = 0; i < of_job[place]->site_count; i++) {
            sites[first_site(place) + i] = kedge_round_site_first(&spec, place);
        }
    }
    kedge_round_fold_begin(&fold, &spec, sites, count);
    must(kedge_round_fold_ledgers(&fold, &logs, from, until, &d), spec.name.s, &d);
    must(kedge_round_state_digest(&fold.state, sites, count, ret), "digest", NULL);
    return fold.is_open && fold.round == until;
}

static void put_job(const struct kedge_hash *digest)
{
    struct kedge_buf text;
    struct kedge_diag d = {.text = ""};
    kedge_buf_init(&text, KEDGE_SPEC_MAX);
    must(kedge_blobs_read(main_log.blobs, digest, &text, &d), "spec", &d);
    must(kedge_job_spec_parse(kedge_buf_view(&text), &spec, &d), "spec", &d);
    kedge_buf_deinit(&text);
    for (uint32_t place = 0; place < spec.tenant_count; place++) {
        size_t i = 0;
        while (i + 1 < tenant_count && !kedge_id_eq(&tenants[i].log.tenant, &spec.tenants[place])) {
            i++;
        }
        of_job[place] = &tenants[i];
        logs_of_job[place] = (struct kedge_round_log){tenants[i].log.tenant, tenants[i].salted,
                                                      tenants[i].log.ledger, tenants[i].log.blobs};
    }
    for (uint32_t round = 0; round <= spec.rounds; round++) {
        struct kedge_hash whole, short_one;
        char hex[KEDGE_HASH_HEX_LEN + 1];
        if (digest_at(0, round, &whole)) {
            bool found = digest_at(KEDGE_ROUND_NONE, round, &short_one);
            must(found && kedge_hash_eq(&whole, &short_one) ? KEDGE_OK : KEDGE_E_BUG,
                 "a restart's fold is another than the whole one", NULL);
            kedge_hash_hex(&whole, hex);
            printf("%s %" PRIu32 " %s\n", spec.name.s, round, hex);
        }
    }
}

static int see_job(void *arg, struct kedge_view key, uint64_t index)
{
    struct kedge_buf entry;
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    struct kedge_signed_statement form;
    (void)arg;
    (void)key;
    kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
    must(st ? kedge_ledger_get(main_log.ledger, index, &entry) : KEDGE_E_NOMEM, "job-opened", NULL);
    must(kedge_statement_read(kedge_buf_view(&entry), st, &form, NULL), "job-opened", NULL);
    kedge_buf_deinit(&form.payload);
    kedge_buf_deinit(&entry);
    put_job(&st->subject);
    kedge_mem_free(st);
    return KEDGE_OK;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: round_states STATE\n");
        return 2;
    }
    open_all(argv[1]);
    must(kedge_ledger_scan_keys(main_log.ledger, kedge_view_str("job-opened/"), see_job, NULL), "jobs", NULL);
    for (size_t i = 0; i < tenant_count; i++) {
        kedge_state_log_close(&tenants[i].log);
        kedge_mem_free(tenants[i].sites);
    }
    kedge_mem_free(tenants);
    kedge_state_log_close(&main_log);
    return 0;
}
