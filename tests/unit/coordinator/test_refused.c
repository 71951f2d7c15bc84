/* What a coordinator keeps of refused updates, under a clock of the test's: the hourly look, time that is
 * over only for what was shown, files in packs, erasure. The rest of the coordinator is played here. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chain/state/refused.h"
#include "chain/store/blob/blobs.h"
#include "common/base/mem.h"
#include "common/base/os/log.h"
#include "coordinator/daemon/erase.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/jobs.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/sites/refused.h"
#include "coordinator/daemon/sites/requests.h"
#include "tests/fixtures/kv.h"
#include "tests/unit/base/check.h"

enum { DAY_S = 86400, BEGIN_S = 1800000000 };
static const uint64_t HOUR_NS = 3600u * 1000000000ull;

static struct kedge_tenant tenants[1] = {{.id = {"org-a"}}};
static struct kedge_site_entry sites[2] = {{.id = {"site-0"}, .active = true},
                                           {.id = {"site-1"}, .active = true}};
static struct kedge_host host;
static struct kedge_blobs *blobs;
static char state[64], folder[KEDGE_PATH_MAX], keys_dir[80];
static uint64_t unix_s;
static unsigned looks;
static struct kedge_hash erased;
static struct kedge_job running; /* while runs */
static bool runs;

/* ---- what the others do ---- */

/* NOLINTBEGIN(cert-dcl51-cpp,bugprone-reserved-identifier): the linker's names */
uint64_t __wrap_kedge_os_unix_ms(void);
uint64_t __wrap_kedge_os_unix_ms(void)
{
    return unix_s * 1000;
}
/* NOLINTEND(cert-dcl51-cpp,bugprone-reserved-identifier) */

void kedge_host_work(struct kedge_host *h, struct kedge_work *work)
{
    looks++;
    work->run(h, work);
    work->item.handle(h, &work->item);
}

void kedge_host_reply(struct kedge_net_request *req, const struct kedge_msg *msg)
{
    (void)req;
    (void)msg;
}

void kedge_host_reply_error(struct kedge_net_request *req, int err, uint32_t retry_ms, const char *text)
{
    (void)req;
    (void)retry_ms;
    ck_abort_msg("%s: %s", kedge_strerror(err), text);
}

bool kedge_ledger_has_erased(struct kedge_ledger *l, const struct kedge_hash *update)
{
    (void)l;
    return kedge_hash_eq(update, &erased);
}

struct kedge_job *kedge_host_job_find(struct kedge_host *h, const struct kedge_id *id, bool ended_too)
{
    (void)h;
    (void)ended_too;
    return runs && kedge_id_eq(id, &running.spec.name) ? &running : NULL;
}

/* ---- the tests ---- */

static void open_ledger(void)
{
    struct kedge_state_log *log = &tenants[0].log;
    struct kedge_seed seed = {.b = {2}};
    struct kedge_ledger_options options = {.origin = "log.test", .key = &log->key, .create = true};
    kedge_key_from_seed(&seed, &log->key);
    ck_assert_int_eq(kedge_kv_memory_new(&log->kv), KEDGE_OK);
    ck_assert_int_eq(kedge_ledger_open(log->kv, &options, &log->ledger, NULL), KEDGE_OK);
}

static void begin(bool pack)
{
    struct kedge_blobs_options options = {.pack = pack, .keys_dir = keys_dir, .encrypt = true};
    char dir[KEDGE_PATH_MAX];
    snprintf(state, sizeof state, "/tmp/kedge-refused-XXXXXX");
    ck_assert_int_eq(kedge_crypto_init(), KEDGE_OK);
    kedge_log_init("test", KEDGE_LOG_ERROR);
    ck_assert_ptr_nonnull(mkdtemp(state));
    snprintf(dir, sizeof dir, "%s/tenants", state);
    ck_assert_int_eq(kedge_dir_make(dir, 0700, NULL), KEDGE_OK);
    snprintf(dir, sizeof dir, "%s/tenants/org-a", state);
    ck_assert_int_eq(kedge_dir_make(dir, 0700, NULL), KEDGE_OK);
    snprintf(folder, sizeof folder, "%s/tenants/org-a/" KEDGE_REFUSED_DIR, state);
    snprintf(keys_dir, sizeof keys_dir, "%s/keys", state);
    ck_assert_int_eq(kedge_blobs_open(dir, &options, &blobs, NULL), KEDGE_OK);
    tenants[0].log.blobs = blobs;
    open_ledger();
    runs = false;
    host = (struct kedge_host){.tenants = tenants, .tenant_count = 1, .sites = sites, .site_count = 2};
    snprintf(host.state, sizeof host.state, "%s", state);
    host.config.refused_days = 30;
    host.config.refused_mb = 1;
    unix_s = BEGIN_S;
    looks = 0;
    memset(&erased, 0, sizeof erased);
}

static void end(void)
{
    kedge_ledger_close(tenants[0].log.ledger);
    kedge_kv_close(tenants[0].log.kv);
    kedge_blobs_close(blobs);
    ck_assert_int_eq(kedge_dir_remove(state), KEDGE_OK);
}

static const char *path_of(uint32_t site, const struct kedge_hash *about, const char *kind)
{
    static char path[KEDGE_PATH_MAX];
    ck_assert_int_eq(kedge_kept_path(path, folder, &sites[site].id, about->b, kind), KEDGE_OK);
    return path;
}

static bool is_kept(uint32_t site, const struct kedge_hash *about, const char *kind)
{
    return kedge_file_exists(path_of(site, about, kind));
}

static void set_age(const char *path)
{
    struct timespec times[2] = {{.tv_sec = (time_t)unix_s}, {.tv_sec = (time_t)unix_s}};
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* A refusal of site 0's of an update `n n n …` of that job, with its file, kept now. */
static void keep_one(uint8_t n, const char *job, struct kedge_statement *ret)
{
    struct kedge_seed seed = {.b = {1}};
    struct kedge_key_pair key;
    struct kedge_buf text;
    kedge_key_from_seed(&seed, &key);
    *ret = (struct kedge_statement){.kind = KEDGE_ST_REFUSED};
    memset(ret->subject.b, n, sizeof ret->subject.b);
    memset(ret->u.refused.update.b, n + 100, sizeof ret->u.refused.update.b);
    ret->u.refused.site = sites[0].id;
    ret->u.refused.tenant = tenants[0].id;
    ck_assert_int_eq(kedge_id_from(kedge_view_str(job), &ret->u.refused.job), KEDGE_OK);
    snprintf(ret->u.refused.code, sizeof ret->u.refused.code, "BOUND");
    kedge_buf_init(&text, KEDGE_ENTRY_MAX);
    ck_assert_int_eq(kedge_statement_sign(ret, &key, &text, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_dir_make(folder, 0700, NULL), KEDGE_OK);
    static const char *const kinds[] = {KEDGE_REFUSED_REFUSAL, KEDGE_REFUSED_ENVELOPE, KEDGE_REFUSED_UPDATE};
    for (int i = 0; i < 3; i++) {
        const struct kedge_hash *about = i == 2 ? &ret->u.refused.update : &ret->subject;
        struct kedge_view content = i == 0 ? kedge_buf_view(&text) : kedge_view_str("x");
        ck_assert_int_eq(kedge_file_write(path_of(0, about, kinds[i]), content, 0600, NULL), KEDGE_OK);
        set_age(path_of(0, about, kinds[i]));
    }
    kedge_buf_deinit(&text);
}

static int show(void *arg, const struct kedge_refused_row *row)
{
    (*(unsigned *)arg)++;
    ck_assert(row->is_refusal && row->has_envelope && row->has_update);
    return kedge_refused_mark(folder, row);
}

static unsigned show_all(void)
{
    unsigned count = 0;
    ck_assert_int_eq(kedge_refused_each(folder, show, &count, NULL), KEDGE_OK);
    return count;
}

static void pass_hours(unsigned hours)
{
    for (unsigned i = 0; i < hours; i++) {
        unix_s += 3600;
        kedge_host_refused_look(&host, host.refused_due_ns);
    }
}

START_TEST(the_look_comes_every_hour)
{
    begin(false);
    ck_assert_uint_eq(kedge_host_refused_due_ns(&host), 0); /* at once, after a start */
    kedge_host_refused_look(&host, 5);
    ck_assert_uint_eq(looks, 1);
    ck_assert_uint_eq(kedge_host_refused_due_ns(&host), 5 + HOUR_NS);
    kedge_host_refused_look(&host, 4 + HOUR_NS);
    ck_assert_uint_eq(looks, 1);
    kedge_host_refused_look(&host, 5 + HOUR_NS);
    ck_assert_uint_eq(looks, 2);
    ck_assert_uint_eq(kedge_host_refused_due_ns(&host), 5 + 2 * HOUR_NS);
    end();
}
END_TEST

START_TEST(what_was_shown_goes_when_its_time_is_over)
{
    struct kedge_statement st;
    begin(false);
    keep_one(1, "digits", &st);
    ck_assert_uint_eq(show_all(), 1);
    pass_hours(30 * 24);
    ck_assert(is_kept(0, &st.subject, KEDGE_REFUSED_REFUSAL));
    ck_assert(is_kept(0, &st.u.refused.update, KEDGE_REFUSED_UPDATE));
    pass_hours(1);
    ck_assert(!is_kept(0, &st.subject, KEDGE_REFUSED_REFUSAL));
    ck_assert(!is_kept(0, &st.subject, KEDGE_REFUSED_ENVELOPE));
    ck_assert(!is_kept(0, &st.u.refused.update, KEDGE_REFUSED_UPDATE));
    ck_assert(!is_kept(0, &st.subject, KEDGE_REFUSED_SHOWN)); /* nor are marks left */
    ck_assert(!is_kept(0, &st.u.refused.update, KEDGE_REFUSED_SHOWN));
    end();
}
END_TEST

START_TEST(what_nobody_was_shown_stays)
{
    struct kedge_statement st;
    begin(false);
    keep_one(1, "digits", &st);
    unix_s += 3000 * DAY_S;
    pass_hours(2);
    ck_assert(is_kept(0, &st.subject, KEDGE_REFUSED_REFUSAL));
    ck_assert(is_kept(0, &st.u.refused.update, KEDGE_REFUSED_UPDATE));
    ck_assert_uint_eq(show_all(), 1);
    pass_hours(1);
    ck_assert(!is_kept(0, &st.subject, KEDGE_REFUSED_REFUSAL));
    ck_assert(!is_kept(0, &st.u.refused.update, KEDGE_REFUSED_UPDATE));
    end();
}
END_TEST

/* Bounds hold for what nobody was shown, too; what was shown goes first. */
START_TEST(the_bound_takes_what_was_shown_first)
{
    struct kedge_statement st[6];
    begin(false);
    for (uint8_t i = 0; i < 6; i++) {
        unix_s += 60;
        keep_one(i + 1, "digits", &st[i]);
        if (i == 3) {
            ck_assert_uint_eq(show_all(), 4); /* the first four; then two come that nobody looks at */
        }
    }
    pass_hours(1); /* of each site four files are kept */
    for (int i = 0; i < 6; i++) {
        ck_assert_msg(is_kept(0, &st[i].u.refused.update, KEDGE_REFUSED_UPDATE) == (i >= 2), "%d", i);
    }
    for (uint8_t i = 0; i < 3; i++) { /* three more: now one of those that nobody was shown has to go */
        unix_s += 60;
        keep_one(i + 7, "digits", &st[i]);
    }
    pass_hours(1);
    ck_assert(!is_kept(0, &st[3].u.refused.update, KEDGE_REFUSED_UPDATE));
    ck_assert(!is_kept(0, &st[4].u.refused.update, KEDGE_REFUSED_UPDATE));
    ck_assert(is_kept(0, &st[5].u.refused.update, KEDGE_REFUSED_UPDATE));
    for (int i = 0; i < 3; i++) {
        ck_assert(is_kept(0, &st[i].u.refused.update, KEDGE_REFUSED_UPDATE));
    }
    end();
}
END_TEST

/* A blob that shares its file with others, as one that was committed and then refused does. */
START_TEST(a_blob_is_kept_wherever_it_lies)
{
    static const char content[] = "an update that was made durable, and then refused";
    for (int pack = 0; pack < 2; pack++) {
        struct kedge_view part = kedge_view_str(content);
        struct kedge_hash update;
        struct kedge_buf found;
        char path[KEDGE_PATH_MAX];
        begin(pack == 1);
        ck_assert_int_eq(kedge_blobs_put(blobs, &part, 1, &update, NULL), KEDGE_OK);
        ck_assert_int_eq(kedge_blobs_path(blobs, &update, path), KEDGE_OK);
        ck_assert_int_eq(strchr(path, '@') != NULL, pack);
        kedge_host_refused_keep_blob(&host, 1, &update);
        kedge_host_refused_keep_blob(&host, 1, &update); /* once more is fine */
        ck_assert_int_eq(kedge_blobs_drop(blobs, &update, NULL), KEDGE_OK);
        kedge_buf_init(&found, 4096);
        ck_assert_int_eq(kedge_file_read(path_of(1, &update, KEDGE_REFUSED_UPDATE), &found, NULL), KEDGE_OK);
        ck_assert(kedge_view_eq(kedge_buf_view(&found), part));
        kedge_buf_deinit(&found);
        memset(update.b, 9, sizeof update.b);
        kedge_host_refused_keep_blob(&host, 1, &update); /* none: nothing to keep */
        ck_assert(!is_kept(1, &update, KEDGE_REFUSED_UPDATE));
        end();
    }
}
END_TEST

START_TEST(erasure_reaches_them)
{
    struct kedge_statement st[3];
    begin(false);
    keep_one(1, "digits", &st[0]);
    keep_one(2, "digits", &st[1]);
    keep_one(3, "letters", &st[2]);
    erased = st[0].u.refused.update; /* ordered, and then a crash: the look after the start removes it */
    kedge_host_refused_look(&host, 1);
    ck_assert(!is_kept(0, &st[0].u.refused.update, KEDGE_REFUSED_UPDATE));
    ck_assert(is_kept(0, &st[0].subject, KEDGE_REFUSED_REFUSAL)); /* that it was refused stays known */
    ck_assert(is_kept(0, &st[1].u.refused.update, KEDGE_REFUSED_UPDATE));
    ck_assert(kedge_refused_has_job(folder, &st[1].u.refused.job));
    ck_assert_int_eq(kedge_refused_erase_job(folder, &st[1].u.refused.job, NULL), KEDGE_OK);
    ck_assert(!kedge_refused_has_job(folder, &st[1].u.refused.job));
    ck_assert(!is_kept(0, &st[1].u.refused.update, KEDGE_REFUSED_UPDATE));
    ck_assert(is_kept(0, &st[2].u.refused.update, KEDGE_REFUSED_UPDATE));
    ck_assert_int_eq(kedge_host_refused_erase(&host, 0, &st[2].u.refused.update, NULL), KEDGE_OK);
    ck_assert(!is_kept(0, &st[2].u.refused.update, KEDGE_REFUSED_UPDATE));
    end();
}
END_TEST

/* As the job's first upload makes it; the upload itself comes to nothing. */
static void make_key(const char *job)
{
    const struct kedge_hash digest = {.b = {1}};
    struct kedge_id id;
    struct kedge_upload *u;
    uint64_t offset;
    ck_assert_int_eq(kedge_id_from(kedge_view_str(job), &id), KEDGE_OK);
    ck_assert_int_eq(kedge_upload_open(blobs, &sites[0].id, &id, &digest, 1000, &u, &offset, NULL), KEDGE_OK);
    kedge_upload_abort(u);
}

static bool has_key(const char *job)
{
    char path[KEDGE_PATH_MAX];
    snprintf(path, sizeof path, "%s/%s.pem", keys_dir, job);
    return kedge_file_exists(path);
}

/* An accepted update of the job in the tenant's ledger. */
static void accept(const char *job, struct kedge_hash *ret)
{
    static struct kedge_statement st;
    struct kedge_buf envelope;
    char key[KEDGE_IDEM_KEY_MAX];
    st = (struct kedge_statement){.kind = KEDGE_ST_UPDATE, .subject = {.b = {77}}};
    st.u.update = (struct kedge_st_update){.round = 1,
                                           .update_kind = KEDGE_TRAIN_TRAIN,
                                           .tenant = tenants[0].id,
                                           .site = sites[0].id,
                                           .samples = 10,
                                           .steps = 1,
                                           .batch = 10,
                                           .learning_rate = 0.1,
                                           .energy_joules = 1,
                                           .energy_quality = KEDGE_ENERGY_MODELLED,
                                           .engine = "test"};
    ck_assert_int_eq(kedge_id_from(kedge_view_str(job), &st.u.update.job), KEDGE_OK);
    kedge_buf_init(&envelope, KEDGE_ENTRY_MAX);
    ck_assert_int_eq(kedge_statement_sign(&st, &tenants[0].log.key, &envelope, NULL), KEDGE_OK);
    snprintf(key, sizeof key, "update/%s/00000001/train/site-0", job);
    const struct kedge_ledger_append item = {.entry = kedge_buf_view(&envelope),
                                             .idem_key = kedge_view_str(key)};
    ck_assert_int_eq(kedge_ledger_append(tenants[0].log.ledger, &item, 1, NULL, NULL, NULL), KEDGE_OK);
    kedge_buf_deinit(&envelope);
    *ret = st.subject;
}

/* Where all updates of a job were refused nobody orders one to be erased: its key stays for as long as the
 * job runs or a file of them is kept, and goes in the very look in which the last of them goes. */
START_TEST(a_key_outlives_its_job_for_the_refused_files)
{
    struct kedge_statement st;
    struct kedge_hash accepted;
    begin(false);
    ck_assert_int_eq(kedge_id_from(kedge_view_str("letters"), &running.spec.name), KEDGE_OK);
    runs = true;
    make_key("digits");
    make_key("letters");
    make_key("accepted");
    accept("accepted", &accepted);
    keep_one(1, "digits", &st);
    pass_hours(1);
    ck_assert(has_key("digits"));
    unix_s += 31 * DAY_S; /* its time is over, and nobody was shown it */
    pass_hours(1);
    ck_assert(has_key("digits") && is_kept(0, &st.u.refused.update, KEDGE_REFUSED_UPDATE));
    ck_assert_uint_eq(show_all(), 1);
    ck_assert(has_key("digits"));
    pass_hours(1);
    ck_assert(!is_kept(0, &st.u.refused.update, KEDGE_REFUSED_UPDATE));
    ck_assert(!has_key("digits"));
    ck_assert(has_key("letters") && has_key("accepted")); /* it runs; its update is not erased */
    runs = false;
    pass_hours(1);
    ck_assert(!has_key("letters") && has_key("accepted"));
    keep_one(2, "accepted", &st);
    erased = accepted; /* the last update of a job takes what is kept of its refused ones along */
    pass_hours(1);
    ck_assert(!has_key("accepted") && !is_kept(0, &st.u.refused.update, KEDGE_REFUSED_UPDATE));
    ck_assert(is_kept(0, &st.subject, KEDGE_REFUSED_REFUSAL));
    end();
}
END_TEST

int main(void)
{
    const TTest *tests[] = {the_look_comes_every_hour,
                            what_was_shown_goes_when_its_time_is_over,
                            what_nobody_was_shown_stays,
                            the_bound_takes_what_was_shown_first,
                            a_blob_is_kept_wherever_it_lies,
                            erasure_reaches_them,
                            a_key_outlives_its_job_for_the_refused_files};
    return run_suite("coordinator_refused", tests, sizeof tests / sizeof tests[0]);
}
