/* What is read from folders of this machine, and in which process.
 *
 * Stores of a coordinator are files that LMDB maps, and a damaged file can crash what reads it. So everything
 * that reads one runs in a child (kedge_cli_guarded), which hands back JSON over a pipe, with a bound on
 * length and time; its death is an error message of this command and not a crash. The question whether a
 * coordinator runs is asked in a child, too: the network library starts threads, after which this process
 * could not fork safely. */
#include "cli/local.h"
#include "client/doctor/doctor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "chain/store/blob/guard.h"
#include "common/base/try.h"
#include "common/wire/messages.h"
#include "crypto/keyfile.h"

enum { GATHERED_MAX = 512 * 1024 * 1024, GATHER_MS = 300000, HELLO_MAX = 256, KNOCK_MS = 2000 };

int kedge_cli_may_look(const char *dir, struct kedge_diag *d)
{
    if (access(dir, X_OK) == 0 || errno != EACCES) {
        return KEDGE_OK;
    }
    (void)kedge_diag_set(d, KEDGE_E_DENIED, "%s: this user may not look into it", kedge_cli_word(dir).s);
    (void)kedge_diag_hint(d, "run this as the user to whom it belongs");
    return KEDGE_E_DENIED;
}

/* The door may be a dead socket of a killed coordinator, or belong to a program that does not answer; only a
 * reply of the protocol counts. */
static int knock_in_child(void *arg, struct kedge_buf *ret_out, struct kedge_diag *d)
{
    struct kedge_net_client_options options = {.url = arg, .connect_ms = KNOCK_MS / 4};
    (void)ret_out;
    return kedge_doctor_hello(&options, KNOCK_MS, d);
}

/* The lock is taken for a moment to see whether it is free. A coordinator that starts in that very moment
 * meets it locked, so it is let go at once. */
bool kedge_cli_coordinator_holds(const char *state)
{
    char lock[KEDGE_PATH_MAX];
    if (kedge_state_path(lock, NULL, state, "coordinator.lmdb/kedge.lock") != KEDGE_OK
        || !kedge_file_exists(lock)) {
        return false;
    }
    int fd = kedge_file_lock(lock, NULL);
    if (fd >= 0) {
        close(fd);
    }
    return fd == KEDGE_E_LOCKED;
}

/* The lock tells it at once, whatever the machine does; the door, whose answer a busy coordinator may owe for
 * longer than anybody waits, tells it to a user who may not open the lock. */
bool kedge_cli_coordinator_runs(const char *state)
{
    if (kedge_cli_coordinator_holds(state)) {
        return true;
    }
    char url[KEDGE_PATH_MAX + 32];
    int n = snprintf(url, sizeof url, "ipc://%s/coordinator.ipc", state);
    return n > 0 && (size_t)n < sizeof url && kedge_file_exists(url + strlen("ipc://"))
           && kedge_store_guarded(knock_in_child, url, 3 * KNOCK_MS, NULL, NULL) == KEDGE_OK;
}

/* A folder that cannot be written (a backup on a read-only disk, another user's) has no place for the lock
 * file: it is then read as a copy, without locks, which is right because nobody writes to it either. */
int kedge_cli_log_open(const char *state, const char *name, struct kedge_state_log *ret, struct kedge_diag *d)
{
    struct kedge_id id = {.s = ""};
    bool main_log = strcmp(name, "main") == 0;
    if (!main_log && kedge_id_from(kedge_view_str(name), &id) != KEDGE_OK) {
        return kedge_diag_set(d, KEDGE_E_USAGE, "\"%s\" is no log: expected main or a tenant's name",
                              kedge_cli_word(name).s);
    }
    const struct kedge_id *tenant = main_log ? NULL : &id;
    int err = kedge_state_log_open(state, tenant, KEDGE_STATE_READ, ret, d);
    if (err == KEDGE_E_DENIED || err == KEDGE_E_DISK_FULL) { /* no lock file can be written here */
        err = kedge_state_log_open(state, tenant, KEDGE_STATE_COPY, ret, d);
    }
    if (err == KEDGE_E_NOT_FOUND && d && !d->hint[0]) {
        (void)kedge_diag_set(d, err, "%s: there is no log \"%s\" here", state, name);
        (void)kedge_diag_hint(d, "kedge ledger list --state %s tells which there are", state);
    }
    return err;
}

int kedge_cli_find_state(const char *dir, char out[KEDGE_PATH_MAX], struct kedge_diag *d)
{
    char config[KEDGE_PATH_MAX];
    int err = kedge_path_join(config, dir, "config.json");
    bool is_state = !err && kedge_file_exists(config);
    int n = snprintf(out, KEDGE_PATH_MAX, "%s%s", dir, is_state ? "" : "/state");
    return !err && n > 0 && n < KEDGE_PATH_MAX
               ? KEDGE_OK
               : kedge_diag_set(d, KEDGE_E_TOO_LONG, "--record %s: path too long", kedge_cli_word(dir).s);
}

/* The private key's file is the only place of the public one in a state folder. A copy has none, and its
 * keeper has the key from a trust file. */
bool kedge_cli_log_vkey(const char *state, const struct kedge_state_log *log, struct kedge_vkey *ret)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_key_pair pair;
    const char *name = log->tenant.s[0] ? log->tenant.s : "main";
    if (kedge_state_path(path, NULL, state, "keys/log-%s.pem", name) != KEDGE_OK
        || kedge_keyfile_read_private(path, &pair, NULL) != KEDGE_OK) {
        return false;
    }
    int err = kedge_vkey_make(kedge_view_str(log->origin), KEDGE_KEY_ED25519, &pair.public, ret);
    kedge_key_wipe(&pair);
    return err == KEDGE_OK;
}

static int append_text(const char *text, size_t len, void *arg)
{
    kedge_buf_put(arg, text, len);
    return ((struct kedge_buf *)arg)->err ? -1 : 0;
}

struct gathering {
    kedge_cli_gather *gather;
    void *arg;
};

/* The answer goes through a pipe as text: the two processes share no memory. */
static int gather_in_child(void *arg, struct kedge_buf *ret_out, struct kedge_diag *d)
{
    struct gathering *g = arg;
    json_t *o KEDGE_CLEANUP(json_decrefp) = NULL;
    KEDGE_TRY(g->gather(g->arg, &o, d));
    if (json_dump_callback(o, append_text, ret_out, JSON_COMPACT) != 0) {
        KEDGE_TRY(kedge_diag_set(d, ret_out->err ? ret_out->err : KEDGE_E_NOMEM, "the answer does not fit"));
    }
    return KEDGE_OK;
}

int kedge_cli_guarded(kedge_cli_gather *gather, void *arg, json_t **ret, struct kedge_diag *d)
{
    struct gathering g = {gather, arg};
    struct kedge_buf out KEDGE_CLEANUP(kedge_buf_deinit);
    json_error_t at;
    kedge_buf_init(&out, GATHERED_MAX);
    KEDGE_TRY(kedge_store_guarded(gather_in_child, &g, GATHER_MS, &out, d));
    /* Our own words, which nest what was bounded when it was read. */
    *ret = json_loadb((const char *)out.ptr, out.len, 0, &at);
    return *ret ? KEDGE_OK : kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory");
}

int kedge_cli_put_json(const json_t *o, const char *path, struct kedge_diag *d)
{
    struct kedge_buf out;
    kedge_buf_init(&out, GATHERED_MAX);
    int err = json_dump_callback(o, append_text, &out, JSON_INDENT(2) | JSON_ENSURE_ASCII) ? KEDGE_E_NOMEM
                                                                                           : KEDGE_OK;
    kedge_buf_put_str(&out, "\n");
    err = err || out.err ? kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory") : KEDGE_OK;
    if (!err && path) {
        err = kedge_file_write(path, kedge_buf_view(&out), 0644, d);
    } else if (!err) {
        kedge_cli_put_ascii(kedge_buf_view(&out));
    }
    kedge_buf_deinit(&out);
    return err;
}
