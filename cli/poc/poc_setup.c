/* What `kedge poc` makes before anything runs: its settings (poc.json), the coordinator's folder, data for
 * each site, tenants, trust files, tokens. The settings of the first run hold for all later ones of that
 * folder, since data and keys were made for them. */

#include <dirent.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "chain/state/state.h"
#include "cli/poc/poc.h"
#include "common/base/mem.h"
#include "common/base/os/entropy.h"
#include "common/base/try.h"
#include "common/json/json.h"
#include "common/tensor/dataset.h"
#include "common/tensor/idx.h"
#include "sim/partition/files.h"

enum { FILE_MAX = 1 << 20, TOKEN_TTL_S = 86400, ADD_MS = 20000, CONFIG_MAX = 4096, ADDRESS_MAX = 32 };

static const uint32_t OWN_HOSTS = 0x7f400000, OWN_HOSTS_MASK = 0x003fffff; /* 127.64.0.0 to 127.127.255.255 */

static int write_json(const char *path, json_t *o, struct kedge_diag *d)
{
    struct kedge_buf text;
    kedge_buf_init(&text, FILE_MAX);
    size_t len = o ? json_dumpb(o, NULL, 0, JSON_INDENT(2)) : 0;
    int err = len ? kedge_buf_reserve(&text, len + 1) : KEDGE_E_NOMEM;
    if (!err) {
        text.len = json_dumpb(o, (char *)text.ptr, len, JSON_INDENT(2));
        kedge_buf_put_u8(&text, '\n');
        err = kedge_file_write(path, kedge_buf_view(&text), 0600, d);
    }
    kedge_buf_deinit(&text);
    json_decref(o);
    return err;
}

static int read_json(const char *path, json_t **ret, struct kedge_diag *d)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, FILE_MAX);
    KEDGE_TRY(kedge_file_read(path, &text, d));
    return kedgei_json_load(kedge_buf_view(&text), FILE_MAX, path, ret, d);
}

/* $KEDGE_DATA first, then what was installed with the program; nothing is fetched from a network. */
static int find_data(const struct kedge_poc *p, char out[KEDGE_PATH_MAX], struct kedge_diag *d)
{
    char roots[2][KEDGE_PATH_MAX] = {"", ""};
    const char *env = getenv("KEDGE_DATA");
    snprintf(roots[0], sizeof roots[0], "%s", env ? env : "");
    if (kedge_path_join(roots[1], p->bin, "../share/kedge/data") != KEDGE_OK) {
        roots[1][0] = '\0';
    }
    for (size_t i = 0; i < 2; i++) {
        if (roots[i][0] && kedge_path_join(out, roots[i], p->dataset) == KEDGE_OK && kedge_file_exists(out)) {
            return KEDGE_OK;
        }
    }
    (void)kedge_diag_set(d, KEDGE_E_NOT_FOUND, "data set \"%s\" is not here", kedge_cli_word(p->dataset).s);
    (void)kedge_diag_hint(d, "digits comes with Kedge; others: ./scripts/get-data %s",
                          kedge_cli_word(p->dataset).s);
    return KEDGE_E_NOT_FOUND;
}

/* Asked before any folder is made: a wrong name of a data set should leave nothing behind. */
static int check_data(const struct kedge_poc *p, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    enum kedge_partition_kind kind;
    if (kedge_partition_kind_find(p->partition, &kind) != KEDGE_OK) {
        return kedge_diag_set(d, KEDGE_E_USAGE, "--partition %s: expected iid, ring or planted",
                              kedge_cli_word(p->partition).s);
    }
    return find_data(p, path, d);
}

/* What a kedge poc leaves that was killed while it wrote its settings (kedge_file_write), the first file of
 * all. */
static bool is_unfinished(const char *name)
{
    static const char begin[] = "poc.json.", end[] = ".tmp";
    size_t len = strlen(name);
    return len >= sizeof begin + sizeof end - 2 && strncmp(name, begin, sizeof begin - 1) == 0
           && strcmp(name + len - (sizeof end - 1), end) == 0;
}

/* What is in a folder that no earlier kedge poc made is somebody's: nothing is put beside it. */
static int check_folder(const struct kedge_poc *p, struct kedge_diag *d)
{
    DIR *dir = opendir(p->dir);
    bool is_empty = true;
    if (!dir) {
        return KEDGE_OK; /* making it says what is wrong */
    }
    for (const struct dirent *e = readdir(dir); e && is_empty; e = readdir(dir)) {
        is_empty = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || is_unfinished(e->d_name);
    }
    closedir(dir);
    if (!is_empty) {
        (void)kedge_diag_set(d, KEDGE_E_EXISTS, "%s: the folder is not empty, and no kedge poc made it",
                             p->dir);
        (void)kedge_diag_hint(d, "name a new folder");
        return KEDGE_E_EXISTS;
    }
    return KEDGE_OK;
}

/* The ranges are those of the command line. */
static bool is_sound(const struct kedge_poc *p)
{
    return p->tenants >= 1 && p->tenants <= KEDGE_POC_TENANTS_MAX && p->sites >= 1
           && p->sites <= KEDGE_POC_SITES_MAX && p->rounds >= 1 && p->rounds <= KEDGE_POC_ROUNDS_MAX
           && p->groups >= 1 && p->groups <= p->tenants * p->sites && p->groups <= KEDGE_POC_GROUPS_MAX
           && p->model_inputs <= UINT32_MAX && p->model_classes <= UINT32_MAX && p->dataset[0]
           && p->partition[0];
}

/* Strings are copied and never freed: they live as long as the command. */
static int read_params(struct kedge_poc *p, const char *path, struct kedge_diag *d)
{
    json_t *o;
    KEDGE_TRY(read_json(path, &o, d));
    p->tenants = (uint64_t)kedge_cli_int(o, "tenants");
    p->sites = (uint64_t)kedge_cli_int(o, "sites");
    p->rounds = (uint64_t)kedge_cli_int(o, "rounds");
    p->groups = (uint64_t)kedge_cli_int(o, "groups");
    p->seed = (uint64_t)kedge_cli_int(o, "seed");
    p->model_inputs = (uint64_t)kedge_cli_int(o, "model_inputs");
    p->model_classes = (uint64_t)kedge_cli_int(o, "model_classes");
    p->trainer = kedge_mem_strdup(kedge_cli_text(o, "trainer"));
    p->mixing = kedge_mem_strdup(kedge_cli_text(o, "mixing"));
    p->strategy = kedge_mem_strdup(kedge_cli_text(o, "strategy"));
    p->rule = kedge_mem_strdup(kedge_cli_text(o, "rule"));
    p->server = kedge_mem_strdup(kedge_cli_text(o, "server"));
    p->insecure = json_is_true(json_object_get(o, "insecure"));
    p->dataset = kedge_mem_strdup(kedge_cli_text(o, "dataset"));
    p->partition = kedge_mem_strdup(kedge_cli_text(o, "partition"));
    p->own = json_incref(json_object_get(o, "clients"));
    json_decref(o);
    if (!p->dataset || !p->partition || !p->trainer || !p->mixing || !p->strategy || !p->rule || !p->server) {
        return kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory");
    }
    if (!is_sound(p)) {
        (void)kedge_diag_set(d, KEDGE_E_FORMAT,
                             "%s: expected the settings of an earlier kedge poc in their ranges", path);
        (void)kedge_diag_hint(d, "choose a new folder, or put the file back as it was");
        return KEDGE_E_FORMAT;
    }
    return KEDGE_OK;
}

/* What cannot work leaves no folder, whose settings would hold from then on. */
static int write_params(struct kedge_poc *p, const char *path, struct kedge_diag *d)
{
    int err = p->data[0] ? kedge_poc_read_clients(p, d) : check_data(p, d);
    err = err || !p->own ? err : kedge_poc_check_choices(p, d);
    if (err) {
        return err;
    }
    KEDGE_TRY(check_folder(p, d));
    KEDGE_TRY(kedge_dir_make(p->dir, 0700, d));
    json_t *o =
        json_pack("{s:I,s:I,s:I,s:I,s:I,s:s,s:s,s:I,s:I,s:s,s:s,s:b,s:s,s:s,s:s}", "tenants",
                  (json_int_t)p->tenants, "sites", (json_int_t)p->sites, "rounds", (json_int_t)p->rounds,
                  "groups", (json_int_t)p->groups, "seed", (json_int_t)p->seed, "dataset", p->dataset,
                  "partition", p->partition, "model_inputs", (json_int_t)p->model_inputs, "model_classes",
                  (json_int_t)p->model_classes, "trainer", p->trainer, "mixing", p->mixing, "insecure",
                  (int)p->insecure, "strategy", p->strategy, "rule", p->rule, "server", p->server);
    if (p->own && json_object_set(o, "clients", p->own) != 0) {
        json_decref(o);
        o = NULL;
    }
    return write_json(path, o, d);
}

/* What the first run was asked for is kept in poc.json, and later runs of the folder read it there. */
int kedge_poc_params(struct kedge_poc *p, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    KEDGE_TRY(kedge_path_join(path, p->dir, "poc.json"));
    KEDGE_TRY(kedge_file_exists(path) ? read_params(p, path, d) : write_params(p, path, d));
    KEDGE_TRY(p->own ? kedge_poc_take_clients(p, d) : KEDGE_OK);
    for (uint64_t i = 0; i < p->tenants; i++) {
        snprintf(p->tenant_ids[i].s, sizeof p->tenant_ids[i].s, "org-%c", (char)('a' + i));
    }
    return KEDGE_OK;
}

/* An address of loopback, drawn for this folder, and a port that is free there now. It must stay free while
 * the coordinator is not there, until the same command is given again: on 127.0.0.1, where every program
 * listens, the port would sooner or later be somebody else's. */
static void own_address(char ret[ADDRESS_MAX])
{
    uint32_t host;
    kedge_os_random(&host, sizeof host);
    host = OWN_HOSTS | (host & OWN_HOSTS_MASK);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(host)}};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), port = 0;
    if (fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0
        && getsockname(fd, (struct sockaddr *)&at, &len) == 0) {
        port = ntohs(at.sin_port);
    }
    if (fd >= 0) {
        close(fd);
    }
    snprintf(ret, ADDRESS_MAX, "%u.%u.%u.%u:%d", (unsigned)(host >> 24), (unsigned)(host >> 16 & 255),
             (unsigned)(host >> 8 & 255), (unsigned)(host & 255), port);
}

/* Whether config.json has the settings below, and not only those that kedge_state_create puts there. */
static bool has_own_config(const char *path)
{
    struct kedge_buf text;
    kedge_buf_init(&text, CONFIG_MAX);
    int err = kedge_file_exists(path) ? kedge_file_read(path, &text, NULL) : KEDGE_E_NOT_FOUND;
    kedge_buf_put(&text, "", 1);
    bool own = !err && !text.err && strstr((const char *)text.ptr, "\"settle_ms\"");
    kedge_buf_deinit(&text);
    return own;
}

/* An earlier run may have been killed between the folder and its settings; they are then written now. A
 * configuration that a person changed stays. */
int kedge_poc_state(struct kedge_poc *p, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX], config[512], address[ADDRESS_MAX];
    KEDGE_TRY(kedge_path_join(p->state, p->dir, "state"));
    KEDGE_TRY(kedge_path_join(path, p->state, "config.json"));
    if (has_own_config(path)) {
        return KEDGE_OK;
    }
    int err = kedge_state_create(p->state, "poc.kedge.local", d);
    if (err && err != KEDGE_E_EXISTS) { /* an earlier run may have been killed before it wrote its settings */
        return err;
    }
    own_address(address);
    snprintf(config, sizeof config,
             "{\"deployment\": \"poc.kedge.local\", \"listen\": [\"%s://%s\"],\n"
             " \"insecure\": %s, \"encrypt_blobs\": %s, \"pack_blobs\": true, \"lease_ms\": 5000,\n"
             " \"offline_grace_ms\": 2000, \"settle_ms\": 300}\n",
             p->insecure ? "tcp" : "tls+tcp", address, p->insecure ? "true" : "false",
             p->plain_blobs ? "false" : "true");
    return kedge_file_write(path, kedge_view_str(config), 0600, d);
}

/* ---- data ---- */

static int load(const struct kedge_poc *p, struct kedge_dataset *ret, struct kedge_diag *d)
{
    char dir[KEDGE_PATH_MAX];
    bool digits = strcmp(p->dataset, "digits") == 0;
    struct kedge_data_source source = {.format = KEDGE_DATA_IDX, .scale = digits ? 0.0625 : 1.0 / 255.0};
    KEDGE_TRY(find_data(p, dir, d));
    KEDGE_TRY(kedge_path_join(source.path, dir, digits ? "digits-images.idx" : "train-images-idx3-ubyte"));
    KEDGE_TRY(
        kedge_path_join(source.labels_path, dir, digits ? "digits-labels.idx" : "train-labels-idx1-ubyte"));
    return kedge_dataset_load(&source, ret, d);
}

/* policy.json comes last, and by the one of the last site kedge_poc_data sees that all sites are complete. */
static int site_files(struct kedge_poc *p, uint32_t site, const struct kedge_dataset *ds,
                      const struct kedge_partition *part, struct kedge_diag *d)
{
    char folder[KEDGE_PATH_MAX];
    struct kedge_buf binding KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&binding, FILE_MAX);
    KEDGE_TRY(kedge_path_join(folder, p->clients[site].folder, "data"));
    KEDGE_TRY(kedge_dir_make(folder, 0700, d));
    KEDGE_TRY(kedge_partition_write_idx(folder, ds, part, site, d));
    /* the trainer runs inside the site's folder: a relative path lets the folder be moved */
    kedge_partition_put_binding("data", ds->scale, &binding);
    return binding.err ? binding.err : kedge_poc_put_policy(p, site, kedge_buf_view(&binding), d);
}

/* Made once: data that were there when the federation began are never dealt out anew, or sites would exchange
 * their samples in the middle of a job. */
int kedge_poc_data(struct kedge_poc *p, struct kedge_diag *d)
{
    uint32_t sites = (uint32_t)(p->tenants * p->sites);
    struct kedge_partition_spec spec = {.sites = sites,
                                        .classes_per_site = 3,
                                        .groups = (uint32_t)p->groups,
                                        .train_share = 0.8,
                                        .seed = p->seed};
    struct kedge_dataset ds;
    struct kedge_partition part;
    char last[KEDGE_PATH_MAX];
    int err = kedge_path_join(last, p->clients[sites - 1].folder, "policy.json");
    if (err || p->own) {
        return err || kedge_file_exists(last) ? err : kedge_poc_put_clients(p, d);
    }
    err = kedge_partition_kind_find(p->partition, &spec.kind);
    if (err) {
        return kedge_diag_set(d, KEDGE_E_USAGE, "--partition: expected iid, ring or planted");
    }
    KEDGE_TRY(load(p, &ds, d));
    p->inputs = ds.features;
    p->classes = ds.classes;
    if (!kedge_file_exists(last)) {
        err = kedge_partition_make(&spec, ds.labels, ds.n, ds.classes, &part, d);
        for (uint32_t i = 0; i < sites && !err; i++) {
            err = site_files(p, i, &ds, &part, d);
        }
        if (!err) {
            kedge_partition_deinit(&part);
        }
    }
    kedge_dataset_deinit(&ds);
    return err;
}

/* ---- tenants, trust, tokens ---- */

/* The coordinator has just started and may still be busy, so adding waits and asks again; a tenant that is
 * there already is from an earlier run. */
int kedge_poc_tenants(struct kedge_poc *p, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    for (uint64_t i = 0; i < p->tenants; i++) {
        json_auto_t *answer = NULL;
        uint64_t begun = kedge_poc_now_ns(p);
        int err;
        snprintf(path, sizeof path, "%.900s/tenants/%s", p->dir, p->tenant_ids[i].s);
        KEDGE_TRY(kedge_dir_make(path, 0700, d));
        snprintf(path, sizeof path, "%.900s/tenants/%s/admin.pem", p->dir, p->tenant_ids[i].s);
        KEDGE_TRY(kedge_cli_key(path, true, &p->admins[i], d));
        do {
            err = kedge_cli_tenant_add(p->cli, &p->tenant_ids[i], &p->admins[i], &answer, d);
            err = err == KEDGE_E_EXISTS ? KEDGE_OK : err;
        } while (kedge_poc_wait(p, begun, ADD_MS, &err, d));
        KEDGE_TRY(err);
    }
    return KEDGE_OK;
}

/* Every site gets its own copy, as a device elsewhere would: sites check the main chain by it. */
int kedge_poc_trust(struct kedge_poc *p, bool sites, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    json_auto_t *trust = NULL;
    KEDGE_TRY(kedge_poc_ask(p, json_pack("{s:s}", "verb", "trust"), 10000, &trust, d));
    KEDGE_TRY(kedge_path_join(path, p->dir, "trust.json"));
    KEDGE_TRY(write_json(path, json_incref(trust), d));
    for (uint64_t i = 0; sites && i < p->tenants * p->sites; i++) {
        KEDGE_TRY(kedge_path_join(path, p->clients[i].folder, "trust.json"));
        KEDGE_TRY(write_json(path, json_incref(trust), d));
    }
    return KEDGE_OK;
}

/* A site that has site.json is enrolled: its token is used, and another one would only be a secret that lies
 * about. */
int kedge_poc_tokens(struct kedge_poc *p, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    for (uint64_t i = 0; i < p->tenants * p->sites; i++) {
        struct kedge_poc_child *client = &p->clients[i];
        json_auto_t *answer = NULL;
        char site[32];
        KEDGE_TRY(kedge_path_join(path, client->folder, "site.json"));
        if (kedge_file_exists(path)) {
            continue; /* it has used its token already */
        }
        snprintf(site, sizeof site, "site-%u", (unsigned)(i % p->sites + 1));
        KEDGE_TRY(kedge_poc_ask(p,
                                json_pack("{s:s,s:s,s:s,s:i}", "verb", "site.token", "tenant",
                                          p->tenant_ids[i / p->sites].s, "site", site, "ttl_s", TOKEN_TTL_S),
                                10000, &answer, d));
        KEDGE_TRY(kedge_path_join(client->token, client->folder, "enroll.token"));
        KEDGE_TRY(kedge_file_write(client->token, kedge_view_str(kedge_cli_text(answer, "token")), 0600, d));
    }
    return KEDGE_OK;
}
