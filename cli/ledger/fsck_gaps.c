/* What a state folder should have and does not: files that are gone leave no file to look at. High-water
 * marks (chain/store) say which logs were signed once, so a log with a mark and without its files is missing
 * and not new. */
#include "cli/ledger/fsck_gaps.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "chain/state/state.h"
#include "cli/cli.h"
#include "common/base/try.h"
#include "common/json/json.h"

enum { TENANT_FILE_MAX = 4096 };

struct gaps {
    const char *state;
    char deployment[KEDGE_DEPLOYMENT_MAX + 1];
    kedge_fsck_tell_gap *tell;
    void *arg;
};

/* Whether the mark says that something was signed; a damaged one does, too. */
static bool was_signed(const struct gaps *g, const char *log)
{
    char mark[KEDGE_PATH_MAX], origin[KEDGE_ORIGIN_MAX + 1];
    uint64_t size = 0;
    snprintf(origin, sizeof origin, "%s/%s", g->deployment, log);
    return kedge_state_path(mark, NULL, g->state, "high-water/%s", log) == KEDGE_OK
           && (kedge_high_water_size(mark, origin, &size, NULL) == KEDGE_E_CORRUPT || size > 0);
}

/* Of a mark that was being written. */
static bool is_temporary(const char *name)
{
    size_t len = strlen(name);
    return len > 4 && strcmp(name + len - 4, ".tmp") == 0;
}

/* The coordinator's first deed with a store of its own is entry 0 of the main chain. */
static void look_for_store(const struct gaps *g)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_fsck_gap gap = {
        "coordinator", false, path,
        "the coordinator's own store is gone: jobs, tokens and readers are in no log",
        "restore it from a backup; a coordinator that starts without it forgets them"};
    if (kedge_state_path(path, NULL, g->state, "coordinator.lmdb") == KEDGE_OK && !kedge_file_exists(path)
        && was_signed(g, "main")) {
        g->tell(g->arg, &gap);
    }
}

/* Two gaps that no store shows: the file is gone although the log was signed, and a file that is there but
 * says nothing usable. A tenant that was never signed for is the rest of a crash and no gap. */
static void look_for_tenant(const struct gaps *g, const char *tenant)
{
    char path[KEDGE_PATH_MAX];
    uint8_t salt[KEDGE_SALT_LEN];
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    json_auto_t *o = NULL;
    struct kedge_fsck_gap gap = {
        tenant, true, path,
        "the tenant's log was signed, and this file is gone: the coordinator would start "
        "as if there were no such tenant",
        "restore it from a backup, then look once more"};
    kedge_buf_init(&text, TENANT_FILE_MAX);
    if (kedge_state_path(path, NULL, g->state, "tenants/%s/tenant.json", tenant) != KEDGE_OK) {
        return;
    }
    int err = kedge_file_read(path, &text, NULL);
    if (err == KEDGE_E_NOT_FOUND) {
        if (was_signed(g, tenant)) {
            g->tell(g->arg, &gap);
        }
    } else if (err || kedgei_json_load(kedge_buf_view(&text), TENANT_FILE_MAX, path, &o, NULL) != KEDGE_OK
               || strcmp(kedge_cli_text(o, "tenant"), tenant) != 0
               || kedge_hex_decode(kedge_view_str(kedge_cli_text(o, "salt")), salt, sizeof salt)
                      != KEDGE_OK) {
        gap.text = "the tenant's name and salt cannot be read from it";
        g->tell(g->arg, &gap);
    }
}

/* The high-water marks are the only list of logs that is not in the logs themselves: a folder that is gone
 * leaves its mark behind. */
int kedge_fsck_gaps(const char *state, kedge_fsck_tell_gap *tell, void *arg, struct kedge_diag *reterr)
{
    struct gaps g = {.state = state, .tell = tell, .arg = arg};
    char path[KEDGE_PATH_MAX];
    KEDGE_TRY(kedge_state_deployment(state, g.deployment, reterr));
    KEDGE_TRY(kedge_state_path(path, reterr, state, "high-water"));
    DIR *dir = opendir(path); /* copies have none */
    const struct dirent *e;
    while (dir && (e = readdir(dir)) != NULL) {
        struct kedge_id id;
        if (is_temporary(e->d_name) || kedge_id_from(kedge_view_str(e->d_name), &id) != KEDGE_OK) {
            continue;
        }
        if (strcmp(id.s, "main") == 0) {
            look_for_store(&g);
        } else {
            look_for_tenant(&g, id.s);
        }
    }
    if (dir) {
        closedir(dir);
    }
    return KEDGE_OK;
}
