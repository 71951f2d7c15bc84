#include "cli/local.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "chain/store/guard.h"
#include "crypto/keyfile.h"

enum { GATHERED_MAX = 512 * 1024 * 1024, GATHER_MS = 300000 };

bool kedge_cli_coordinator_runs(const char *state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int n = snprintf(address.sun_path, sizeof address.sun_path, "%s/coordinator.ipc", state);
    if (n < 0 || (size_t)n >= sizeof address.sun_path) {
        return false;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool runs = fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return runs;
}

int kedge_cli_log_open(const char *state, const char *name, struct kedge_state_log *ret, struct kedge_diag *d)
{
    struct kedge_id id = {.s = ""};
    bool main_log = strcmp(name, "main") == 0;
    if (!main_log && kedge_id_from(kedge_view_str(name), &id) != KEDGE_OK) {
        return kedge_diag_set(d, KEDGE_E_USAGE, "\"%.80s\" is no log: expected main or a tenant's name",
                              name);
    }
    const struct kedge_id *tenant = main_log ? NULL : &id;
    int err = kedge_state_log_open(state, tenant, KEDGE_STATE_READ, ret, d);
    if (err == KEDGE_E_DENIED || err == KEDGE_E_DISK_FULL) { /* no lock file can be written here */
        err = kedge_state_log_open(state, tenant, KEDGE_STATE_COPY, ret, d);
    }
    if (err == KEDGE_E_NOT_FOUND && d && !d->hint[0]) {
        (void)kedge_diag_set(d, err, "%s: there is no log \"%s\" here", state, name);
        (void)kedge_diag_hint(d, "kedge ledger list --state %.150s tells which there are", state);
    }
    return err;
}

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

static int gather_in_child(void *arg, struct kedge_buf *ret_out, struct kedge_diag *d)
{
    struct gathering *g = arg;
    json_t *o = NULL;
    int err = g->gather(g->arg, &o, d);
    if (!err && json_dump_callback(o, append_text, ret_out, JSON_COMPACT) != 0) {
        err = kedge_diag_set(d, ret_out->err ? ret_out->err : KEDGE_E_NOMEM, "the answer does not fit");
    }
    json_decref(o);
    return err;
}

int kedge_cli_guarded(kedge_cli_gather *gather, void *arg, json_t **ret, struct kedge_diag *d)
{
    struct gathering g = {gather, arg};
    struct kedge_buf out;
    json_error_t at;
    kedge_buf_init(&out, GATHERED_MAX);
    int err = kedge_store_guarded(gather_in_child, &g, GATHER_MS, &out, d);
    if (!err) {
        *ret = json_loadb((const char *)out.ptr, out.len, 0, &at);
        err = *ret ? KEDGE_OK : kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory");
    }
    kedge_buf_deinit(&out);
    return err;
}

const char *kedge_cli_argument(const struct kedge_cli *c, int i)
{
    return i < c->argc ? c->argv[i] : NULL;
}

bool kedge_cli_no_more(struct kedge_cli *c, int arguments_max)
{
    for (int i = 0; i < c->argc; i++) {
        if (strncmp(c->argv[i], "--", 2) == 0) {
            (void)kedge_cli_usage(c, "unknown option or missing value: %.60s", c->argv[i]);
            return false;
        }
    }
    if (c->argc > arguments_max) {
        (void)kedge_cli_usage(c, "one argument too many: \"%.60s\"", c->argv[arguments_max]);
        return false;
    }
    return true;
}

int kedge_cli_put_json(const json_t *o, const char *path, struct kedge_diag *d)
{
    struct kedge_buf out;
    kedge_buf_init(&out, GATHERED_MAX);
    int err = json_dump_callback(o, append_text, &out, JSON_INDENT(2)) ? KEDGE_E_NOMEM : KEDGE_OK;
    kedge_buf_put_str(&out, "\n");
    err = err || out.err ? kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory") : KEDGE_OK;
    if (!err && path) {
        err = kedge_file_write(path, kedge_buf_view(&out), 0644, d);
    } else if (!err) {
        fwrite(out.ptr, 1, out.len, stdout);
        fflush(stdout);
    }
    kedge_buf_deinit(&out);
    return err;
}
