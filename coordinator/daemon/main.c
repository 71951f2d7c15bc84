/* kedge-coordinator: opens the state folder, restores, listens, runs until SIGTERM or SIGINT.
 *
 * The order of the start is the order of trust. First the lock of the folder, then keys and the
 * main chain, then what the ledgers say, and only then the network: no request is answered by a
 * coordinator that does not yet know what its record says. The end goes the other way: no more
 * requests, then no more work, then no more appends, and the files last. */
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chain/state/in_use.h"
#include "chain/store/blob/pruned.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/entropy.h"
#include "common/base/os/log.h"
#include "common/base/os/notify.h"
#include "common/base/text.h"
#include "common/base/try.h"
#include "coordinator/daemon/admin/health.h"
#include "coordinator/daemon/effects.h"
#include "coordinator/daemon/events/events.h"
#include "coordinator/daemon/heap.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/inbox.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/restore/restore.h"
#include "coordinator/daemon/restore/torn_copy.h"
#include "coordinator/daemon/sites/blobs.h"
#include "coordinator/daemon/sites/known.h"
#include "coordinator/daemon/web/https.h"
#include "coordinator/daemon/workers.h"
#include "crypto/passphrase.h"

enum {
    QUEUE_MAX = 65536,
    CONFIG_TEXT_MAX = 65536,
    PRUNED_MAX = 1 << 27,
    COMMITTERS =
        16, /* threads for all tenants' ledgers: they wait for the disk, which takes syncs together */
};

struct stop_item {
    struct kedge_item item;
};

static void stop_handle(struct kedge_host *h, struct kedge_item *item)
{
    (void)item;
    h->stop = 1;
}

/* One thread waits for the signals, so that no handler runs anywhere. */
static void *signal_main(void *arg)
{
    static struct stop_item stop = {{stop_handle}};
    struct kedge_host *h = arg;
    sigset_t set;
    int got;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    if (sigwait(&set, &got) == 0) {
        kedge_log(KEDGE_LOG_INFO, "stopping", "signal %d", got);
        kedge_host_post(h, &stop.item);
    }
    return NULL;
}

/* All tables have their largest size from the start. Handles are indices into them, and workers
 * hold pointers to rows while the loop goes on: a table that grew would move its rows under them.
 * The system gives pages only when they are touched, so empty rows cost no memory. */
static int make_tables(struct kedge_host *h, struct kedge_diag *d)
{
    struct kedge_coord_limits limits = {KEDGE_TENANTS_MAX, KEDGE_SITES_MAX, KEDGE_JOBS_MAX};
    struct kedge_coord_times times;
    size_t len = kedge_coord_size(&limits);
    kedge_coord_times_default(&times);
    times.lease = (uint64_t)h->config.lease_ms * 1000000u;
    times.offline_grace = (uint64_t)h->config.offline_grace_ms * 1000000u;
    times.settle = (uint64_t)h->config.settle_ms * 1000000u;
    times.share_floor = h->config.share_floor_percent * 10000;
    h->tenants = kedge_mem_new(KEDGE_TENANTS_MAX, sizeof *h->tenants);
    h->sites = kedge_mem_new(KEDGE_SITES_MAX, sizeof *h->sites);
    h->site_index = kedge_mem_new(KEDGE_SITE_INDEX_SIZE, sizeof *h->site_index);
    h->jobs = kedge_mem_new(KEDGE_JOBS_MAX, sizeof *h->jobs);
    h->tickets = kedge_mem_new(KEDGE_TICKETS_MAX, sizeof *h->tickets);
    h->requests = kedge_mem_new(KEDGE_REQUESTS_MAX, sizeof *h->requests);
    h->coord_mem = kedge_mem_new(len, 1);
    if (!h->tenants || !h->sites || !h->site_index || !h->jobs || !h->tickets || !h->requests
        || !h->coord_mem) {
        return kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory at start");
    }
    memset(h->site_index, 0xff, KEDGE_SITE_INDEX_SIZE * sizeof *h->site_index);
    for (uint32_t i = 0; i < KEDGE_REQUESTS_MAX; i++) {
        h->requests[i].next_free = i + 1 < KEDGE_REQUESTS_MAX ? i + 1 : KEDGE_COORD_NONE;
    }
    h->execute = kedge_host_execute;
    int err = kedge_coord_init(h->coord_mem, len, &limits, &times, &h->coord);
    if (!err) {
        err = kedge_queue_new(QUEUE_MAX, &h->queue);
    }
    if (!err) {
        err = kedge_inbox_open(h, d);
    }
    return err ? kedge_diag_set(d, err, "cannot start: %s", kedge_strerror(err)) : KEDGE_OK;
}

/* The policy is entry 0 of every main chain: it names the statement key by which an auditor judges
 * all that follows. The idempotency key makes a repetition after a crash harmless. */
static int write_policy(struct kedge_host *h, struct kedge_diag *d)
{
    if (kedge_ledger_size(h->main.ledger) > 0) {
        return KEDGE_OK;
    }
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    struct kedge_buf envelope;
    kedge_buf_init(&envelope, KEDGE_ENTRY_MAX);
    KEDGE_TRY_MEM(st);
    st->kind = KEDGE_ST_POLICY;
    snprintf(st->u.policy.deployment, sizeof st->u.policy.deployment, "%s", h->config.deployment);
    st->u.policy.statement_key = h->statement_key.public;
    st->u.policy.main_log_key = h->main.key.public;
    int err = kedge_statement_sign(st, &h->statement_key, &envelope, d);
    struct kedge_ledger_append item = {.entry = kedge_buf_view(&envelope),
                                       .idem_key = kedge_view_str("policy")};
    if (!err) {
        err = kedge_ledger_append(h->main.ledger, &item, 1, NULL, NULL, d);
    }
    kedge_buf_deinit(&envelope);
    kedge_mem_free(st);
    return err;
}

/* Models are given up only while no coordinator runs. Readers are told so; a list that is damaged tells them
 * nothing, and harms nothing else. */
static int load_pruned(struct kedge_host *h, struct kedge_diag *d)
{
    char folder[KEDGE_PATH_MAX];
    struct kedge_diag why = {.text = ""};
    kedge_buf_init(&h->pruned, PRUNED_MAX);
    int err = kedge_state_path(folder, d, h->state, "main");
    if (!err && kedge_pruned_read(folder, &h->pruned, &why) != KEDGE_OK) {
        kedge_log(KEDGE_LOG_WARN, "pruned models", "%s", why.text);
        kedge_buf_clear(&h->pruned);
    }
    return err;
}

static int read_config(struct kedge_host *h, struct kedge_diag *d)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, CONFIG_TEXT_MAX);
    KEDGE_TRY(kedge_state_config(h->state, &text, d));
    return kedge_config_parse(kedge_buf_view(&text), &h->config, d);
}

static int read_keys(struct kedge_host *h, struct kedge_diag *d)
{
    KEDGE_TRY(kedge_state_key(h->state, KEDGE_STATE_KEY_TLS, &h->tls_key, d));
    return kedge_state_key(h->state, KEDGE_STATE_KEY_STATEMENT, &h->statement_key, d);
}

/* The main chain, and what it says of who decides. */
static int open_main(struct kedge_host *h, struct kedge_diag *d)
{
    KEDGE_TRY(kedge_state_log_open(h->state, NULL, KEDGE_STATE_TAKE_OVER, &h->main, d));
    KEDGE_TRY(write_policy(h, d));
    KEDGE_TRY(kedge_host_authority_load(h, d));
    KEDGE_TRY(kedge_main_view_new(h->main.ledger, &h->main_view));
    KEDGE_TRY(load_pruned(h, d));
    KEDGE_TRY(kedge_commit_pool_new(COMMITTERS, &h->commit_pool, d));
    return kedge_committer_start(h->main.ledger, NULL, &h->main_committer, d);
}

/* The lock of coordinator.lmdb comes first: nothing is written before it is certain that no other
 * coordinator serves this folder. The look for a torn copy comes before even that, for opening a
 * store may already change the files that the look has to judge. */
static int open_state(struct kedge_host *h, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_kv_lmdb_options kv = {.create = true, .lock_wait_ms = KEDGE_LOCK_WAIT_MS};
    KEDGE_TRY(read_config(h, d));
    KEDGE_TRY(kedge_torn_check_folder(h->state, d));
    KEDGE_TRY(kedge_state_path(path, d, h->state, "coordinator.lmdb"));
    KEDGE_TRY(kedge_kv_lmdb_open(path, &kv, &h->kv, d));
    KEDGE_TRY(kedge_in_use_write(h->state, d));
    KEDGE_TRY(kedge_job_moves_epoch(h->kv, &h->epoch, d));
    KEDGE_TRY(read_keys(h, d));
    return open_main(h, d);
}

static int start_workers(struct kedge_host *h, struct kedge_diag *d)
{
    /* Twice the processors: half of the time a worker waits for the disk. */
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned n = h->config.workers ? h->config.workers
                                   : (unsigned)(processors < 2   ? 4
                                                : processors > 8 ? 16
                                                                 : 2 * processors);
    if (h->config.close_threads == 0) {
        h->config.close_threads = processors < 1 ? 1 : processors > 16 ? 16 : (unsigned)processors;
    }
    return kedge_workers_open(h, n, d);
}

/* More than enough in a service; a shell's limit may be low. */
static void find_places(struct kedge_host *h, uint64_t files)
{
    kedge_places_for(files, h->tenant_count, h->config.https_connections, &h->places);
    kedge_log(h->places.is_short ? KEDGE_LOG_WARN : KEDGE_LOG_INFO, "open files",
              "at most %" PRIu64 ": room for %" PRIu32
              " tenants, %u connections of sites, operators and witnesses, %u of others%s",
              h->places.files, h->places.tenants, h->places.known, h->places.strangers,
              h->places.is_short ? "; raise the limit: ulimit -n 32768, or LimitNOFILE= in the service" : "");
}

static int start_server(struct kedge_host *h, struct kedge_diag *d)
{
    char ipc[KEDGE_PATH_MAX + 32];
    snprintf(ipc, sizeof ipc, "ipc://%s/coordinator.ipc", h->state);
    struct kedge_net_server_options options = {.key = &h->tls_key,
                                               .insecure = h->config.insecure,
                                               .handler = kedge_host_on_request,
                                               .reply_size = kedge_host_reply_size,
                                               .knows = kedge_host_knows,
                                               .busy = kedge_host_on_busy,
                                               .peers = h->places.known,
                                               .strangers = h->places.strangers,
                                               .arg = h};
    for (unsigned i = 0; i < h->config.listen_count; i++) {
        options.urls[i] = h->config.listen[i];
    }
    options.urls[KEDGE_NET_URLS_MAX - 1] = ipc;
    KEDGE_TRY(kedge_host_known_open(h, d));
    KEDGE_TRY(kedge_net_server_open(&options, &h->server, d));
    for (unsigned i = 0; i < h->config.listen_count; i++) {
        kedge_log(KEDGE_LOG_INFO, "listening", "%s", kedge_net_server_url(h->server, i));
        if (strncmp(h->config.listen[i], "tcp://", 6) == 0) {
            kedge_log(KEDGE_LOG_WARN, "INSECURE",
                      "%s is plain: any program on this machine can speak as any site; for measuring only",
                      h->config.listen[i]);
        }
    }
    return KEDGE_OK;
}

/* Addresses with the ports that they really have, for those who start us with port 0. */
static int write_address(struct kedge_host *h, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, 4096);
    for (unsigned i = 0; i < h->config.listen_count; i++) {
        kedge_buf_printf(&text, "%s\n", kedge_net_server_url(h->server, i));
    }
    KEDGE_TRY(kedge_state_path(path, d, h->state, "address"));
    return kedge_file_write(path, kedge_buf_view(&text), 0600, d);
}

/* What was found to be damaged is evidence, in every store: closing leaves their files alone, so
 * that the operator finds them as they were when the error was noticed. */
static void keep_all(struct kedge_host *h)
{
    if (h->kv) {
        kedge_kv_keep(h->kv);
    }
    if (h->main.kv) {
        kedge_kv_keep(h->main.kv);
    }
    for (uint32_t i = 0; i < h->tenant_count; i++) {
        if (h->tenants[i].log.kv) {
            kedge_kv_keep(h->tenants[i].log.kv);
        }
    }
}

/* Also after a start that failed half way, so each step takes what is not there. err: why it stops.
 *
 * The server closes first, so that nothing new comes; workers end next, because their work hands
 * entries to the committers; committers end after that with everything durable. STATE/in-use goes
 * when all logs are closed, and only after a clean end: while it is there, a copy of the folder
 * counts as one that may be torn. */
static void stop_all(struct kedge_host *h, int err)
{
    struct kedge_diag d = {.text = ""};
    (void)kedge_notify("STOPPING=1", "stopping");
    kedge_net_server_close(h->server);
    kedge_host_known_close(h);
    kedge_host_https_close(h);
    kedge_host_events_stop(h);
    kedge_workers_close(h);
    for (uint32_t i = 0; i < h->tenant_count; i++) {
        kedge_committer_stop(h->tenants[i].committer);
    }
    kedge_commit_pool_free(h->commit_pool);
    kedge_committer_stop(h->main_committer);
    if (kedge_err_class(err) == KEDGE_CLASS_CORRUPT) {
        keep_all(h);
    }
    kedge_uploads_close_all(h);
    if (h->kv && !h->fatal && kedge_err_class(err) != KEDGE_CLASS_CORRUPT) {
        kedge_host_seen_flush(h);
    }
    /* Everything durable is on disk now; blobs without a statement are swept so that the folder can be
     * audited. Not after a start that failed: what jobs there are is not known then. */
    if (h->server && !h->fatal && kedge_host_sweep(h, &d) != KEDGE_OK) {
        kedge_log(KEDGE_LOG_WARN, "sweep", "%s", d.text);
    }
    for (uint32_t i = 0; i < h->tenant_count; i++) {
        kedge_state_log_close(&h->tenants[i].log);
    }
    kedge_waiting_free(h);
    kedge_state_log_close(&h->main);
    kedge_main_view_free(h->main_view);
    kedge_buf_deinit(&h->pruned);
    if (h->kv && !h->fatal && kedge_err_class(err) != KEDGE_CLASS_CORRUPT) {
        kedge_in_use_remove(h->state); /* all logs are closed: a copy of the folder is whole from now on */
    }
    kedge_kv_close(h->kv);
    kedge_host_witnesses_close(h);
    kedge_host_authority_close(h);
    kedge_host_events_close(h);
    kedge_key_wipe(&h->tls_key);
    kedge_key_wipe(&h->statement_key);
}

/* Everything that is on the disk; nobody is served yet. */
static int open_record(struct kedge_host *h, struct kedge_diag *d)
{
    KEDGE_TRY(kedge_crypto_init());
    /* Thousands of statements by the same few keys: what is accepted here is in the record, where auditors
     * put every signature to libsodium. */
    (void)kedge_verify_allow_tables(true);
    KEDGE_TRY(open_state(h, d));
    KEDGE_TRY(make_tables(h, d));
    KEDGE_TRY(kedge_host_events_open(h, d));
    KEDGE_TRY(kedge_host_witnesses_open(h, h->config.witness_strict, d));
    KEDGE_TRY(start_workers(h, d));
    return kedge_host_restore(h, d);
}

static int open_network(struct kedge_host *h, struct kedge_diag *d)
{
    KEDGE_TRY(start_server(h, d));
    KEDGE_TRY(write_address(h, d));
    KEDGE_TRY(kedge_host_https_open(h, d));
    kedge_host_events_serve(h);
    return KEDGE_OK;
}

/* Everything from opening to closing. An error on the way is told once, in the log and on
 * standard error, and everything that was opened is closed again. */
static int run(struct kedge_host *h)
{
    struct kedge_diag d = {.text = "", .hint = ""};
    pthread_t signals;
    /* Before anything is opened: a shell's limit may be too low for many tenants' ledgers, too. */
    const uint64_t files = kedge_places_raise();
    kedge_kv_lmdb_open_most(kedge_places_stores(files));
    h->started_ns = kedge_os_now_ns();
    int err = open_record(h, &d);
    find_places(h, files);
    if (!err) {
        err = open_network(h, &d);
    }
    if (!err && pthread_create(&signals, NULL, signal_main, h) != 0) {
        err = kedge_diag_set(&d, KEDGE_E_NOMEM, "cannot start a thread");
    } else if (!err) {
        pthread_detach(signals); /* it waits for signals as long as there is a process */
    }
    if (err) {
        kedge_log(KEDGE_LOG_ERROR, "cannot start", "%s%s%s", d.text[0] ? d.text : kedge_strerror(err),
                  d.hint[0] ? "; " : "", d.hint);
        fprintf(stderr, "kedge-coordinator: %s\n",
                kedge_text_shown(d.text[0] ? d.text : kedge_strerror(err)).s);
        if (d.hint[0]) {
            fprintf(stderr, "  %s\n", kedge_text_shown(d.hint).s);
        }
    } else {
        kedge_log(KEDGE_LOG_INFO, "serving", "deployment=%s tenants=%u sites=%u", h->config.deployment,
                  h->tenant_count, h->site_count);
        (void)kedge_notify("READY=1", "serving");
        err = kedge_host_run(h);
    }
    stop_all(h, err);
    return err;
}

static int usage(FILE *out, int code)
{
    fputs("Usage: kedge-coordinator --state DIR [--passphrase-file FILE] [--verbose]\n"
          "The server of a Kedge federation. DIR is a state folder made by `kedge init DIR`;\n"
          "its config.json says where to listen. Stops on SIGTERM.\n"
          "  --passphrase-file FILE  for keys that `kedge key protect` sealed; or $KEDGE_PASSPHRASE_FILE\n"
          "Exit codes: 0 done, 2 usage, 3 cannot reach or read, 5 corrupt state, 70 bug.\n",
          out);
    return code;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"state", required_argument, NULL, 's'}, {"passphrase-file", required_argument, NULL, 'p'},
        {"verbose", no_argument, NULL, 'v'},     {"version", no_argument, NULL, 'V'},
        {"help", no_argument, NULL, 'h'},        {NULL, 0, NULL, 0}};
    static struct kedge_host host; /* as long as the process: signal_main never stops looking at it */
    struct kedge_host *h = &host;
    enum kedge_log_level least = KEDGE_LOG_INFO;
    int opt;
    kedge_heap_init();
    kedge_kv_lmdb_around_opening(kedge_heap_map);
    while ((opt = getopt_long(argc, argv, "s:vVh", options, NULL)) != -1) {
        switch (opt) {
        case 's':
            if (snprintf(h->state, sizeof h->state, "%s", optarg) >= KEDGE_PATH_MAX) {
                return usage(stderr, 2);
            }
            break;
        case 'p':
            kedge_passphrase_use_file(optarg);
            break;
        case 'v':
            least = KEDGE_LOG_DEBUG;
            break;
        case 'V':
            puts("kedge-coordinator " KEDGE_COORDINATOR_VERSION);
            return 0;
        case 'h':
            return usage(stdout, 0);
        default:
            return usage(stderr, 2);
        }
    }
    if (!h->state[0] || optind != argc) {
        return usage(stderr, 2);
    }
    umask(077);
    signal(SIGPIPE, SIG_IGN);
    sigset_t set; /* before any thread: all inherit it, only signal_main waits for these */
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    uint64_t seed;
    kedge_os_random(&seed, sizeof seed);
    json_object_seed((size_t)seed);
    kedge_log_init("kedge-coordinator", least);
    int err = run(h);
    return err ? kedge_exit_code(err) : 0;
}
