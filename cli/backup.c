/* kedge backup, restore: the whole state folder of a coordinator, with its keys, as of one moment, and back.
 */
#include "chain/state/backup.h"

#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chain/audit/audit.h"
#include "chain/store/blob/guard.h"
#include "cli/local.h"
#include "cli/making.h"
#include "common/base/os/utc.h"
#include "common/base/try.h"

enum { NICE = 10 };

/* ---- backup ---- */

struct copying {
    const char *state, *out;
};

/* In a child process, which a damaged store may crash; what it made is looked at by this process. */
static int copy_in_child(void *arg, struct kedge_buf *ret_out, struct kedge_diag *d)
{
    const struct copying *c = arg;
    (void)ret_out;
    return kedge_backup_copy(c->state, c->out, d);
}

/* The order makes a backup whole or none: copied under another name, verified as an auditor would, sealed
 * with what it holds, and only then given its name. The copying is done in a child process, since a damaged
 * store can crash what reads it. */
static int back_up(struct kedge_cli *c, const char *state, const struct kedge_cli_making *m,
                   struct kedge_backup *ret, struct kedge_diag *d)
{
    struct copying copying = {state, m->unfinished};
    kedge_cli_progress(c, "copying", 0, 0, state);
    int err = kedge_store_guarded(copy_in_child, &copying, 0, NULL, d);
    kedge_cli_progress_end(c);
    if (err) {
        return err;
    }
    KEDGE_TRY(kedge_cli_making_verify(c, m->unfinished, state, d));
    err = kedge_backup_seal(m->unfinished, ret, d);
    return err ? err : kedge_cli_making_name(m->unfinished, m->whole, d);
}

/* A backup within what it is a backup of would be copied itself, and lost with it. */
static bool is_within(const char *path, const char *dir)
{
    char parent[KEDGE_PATH_MAX], real_dir[KEDGE_PATH_MAX], real_path[KEDGE_PATH_MAX];
    snprintf(parent, sizeof parent, "%s", path);
    char *slash = strrchr(parent, '/');
    if (slash) {
        slash[slash == parent ? 1 : 0] = '\0';
    } else {
        snprintf(parent, sizeof parent, ".");
    }
    if (kedge_path_real(parent, real_path, NULL) != KEDGE_OK
        || kedge_path_real(dir, real_dir, NULL) != KEDGE_OK) {
        return false;
    }
    size_t len = strlen(real_dir);
    return strncmp(real_path, real_dir, len) == 0 && (real_path[len] == '/' || real_path[len] == '\0');
}

/* Made under another name, and named OUT when the copy verifies. */
int kedge_cmd_backup(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_backup b;
    struct kedge_cli_making m KEDGE_CLEANUP(kedge_cli_making_end) = {.lock = -1};
    char state[KEDGE_PATH_MAX];
    const char *given = kedge_cli_argument(c, 0), *out = kedge_cli_argument(c, 1);
    if (!given || !out) {
        return kedge_cli_usage(c, "expected the state folder and the folder to make: kedge backup STATE OUT");
    }
    if (!kedge_cli_no_more(c, 2)) {
        return 2;
    }
    umask(077);
    (void)setpriority(PRIO_PROCESS, 0, NICE); /* rounds go first */
    KEDGE_CLI_TRY(c, kedge_cli_making_find(given, state, &d), &d);
    if (is_within(out, state)) {
        return kedge_cli_usage(c, "%s is within the state folder: a backup belongs elsewhere",
                               kedge_cli_word(out).s);
    }
    KEDGE_CLI_TRY(c, kedge_cli_making_begin(&m, out, &d), &d);
    KEDGE_CLI_TRY(c, back_up(c, state, &m, &b, &d), &d);
    struct kedge_utc made = kedge_utc((int64_t)(b.made_unix_ms / 1000), KEDGE_UTC_RFC3339, "?");
    kedge_cli_say(
        c,
        "Backed up %s as of %s: %llu entries of %llu logs, %llu files, %.1f MB; the copy verifies.\n"
        "%s holds this coordinator's private keys: keep it as you keep those, and off this machine.\n"
        "kedge restore %s STATE makes a state folder of it again.\n",
        b.deployment, made.s, (unsigned long long)b.entries, (unsigned long long)b.tenants + 1,
        (unsigned long long)b.files, (double)b.bytes / 1e6, m.whole, m.whole);
    return kedge_cli_ok(c,
                        json_pack("{s:s,s:s,s:s,s:I,s:I,s:I,s:I,s:I,s:b}", "backup", m.whole, "deployment",
                                  b.deployment, "time", made.s, "main_entries", (json_int_t)b.main_entries,
                                  "entries", (json_int_t)b.entries, "tenants", (json_int_t)b.tenants, "files",
                                  (json_int_t)b.files, "bytes", (json_int_t)b.bytes, "verified", 1));
}

/* ---- restore ---- */

/* What was signed after the backup is not in it, and a log that signs on from there makes a second history.
 * So somebody has to know: the marks of the folder that was left, or the operator. */
static int check_newest(const char *dir, const char *former, bool word, struct kedge_diag *d)
{
    if (former) {
        char state[KEDGE_PATH_MAX];
        int err = kedge_cli_making_find(former, state, d);
        return err ? err : kedge_backup_check_marks(dir, state, d);
    }
    if (word) {
        return KEDGE_OK;
    }
    (void)kedge_diag_set(d, KEDGE_E_USAGE, "nobody says that %s is the newest state", kedge_cli_word(dir).s);
    return kedge_diag_hint(
        d, "--former DIR compares it with the folder that was lost, as far as its high-water marks are left; "
           "--newest is your word that nothing was signed since, or that what was signed is lost for good");
}

/* The new folder grows beside its name and gets it at the end, as a backup does. The order of the checks is
 * the cheap ones first: what kind of folder it is, whether it is whole, whether it may be the newest. The
 * marks of the former folder are the only witness of what was signed after the backup. */
int kedge_cmd_restore(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_backup b;
    struct kedge_cli_making m KEDGE_CLEANUP(kedge_cli_making_end) = {.lock = -1};
    const char *former = kedge_cli_option(c, "former", NULL);
    bool word = kedge_cli_flag(c, "newest");
    const char *dir = kedge_cli_argument(c, 0), *state = kedge_cli_argument(c, 1);
    if (!dir || !state) {
        return kedge_cli_usage(c,
                               "expected a backup and the state folder to make: kedge restore BACKUP STATE");
    }
    if (!kedge_cli_no_more(c, 2)) {
        return 2;
    }
    umask(077);
    KEDGE_CLI_TRY(c, kedge_cli_may_look(dir, &d), &d);
    KEDGE_CLI_TRY(c, kedge_backup_read(dir, &b, &d), &d);
    KEDGE_CLI_TRY(c, check_newest(dir, former, word, &d), &d);
    KEDGE_CLI_TRY(c, kedge_cli_making_begin(&m, state, &d), &d);
    kedge_cli_progress(c, "restoring", 0, 0, dir);
    int err = kedge_backup_restore(dir, m.unfinished, &d);
    kedge_cli_progress_end(c);
    KEDGE_CLI_TRY(c, err, &d);
    KEDGE_CLI_TRY(c, kedge_cli_making_name(m.unfinished, m.whole, &d), &d);
    struct kedge_utc made = kedge_utc((int64_t)(b.made_unix_ms / 1000), KEDGE_UTC_RFC3339, "?");
    kedge_cli_say(c,
                  "Restored %s into %s as of %s: %llu entries of %llu logs.\n"
                  "Start it with: kedge-coordinator --state %s\n"
                  "Never run it beside the coordinator that it is a copy of. Sites and witnesses that saw a "
                  "newer main\n"
                  "chain refuse this one until their keepers accept it.\n",
                  b.deployment, m.whole, made.s, (unsigned long long)b.entries,
                  (unsigned long long)b.tenants + 1, m.whole);
    return kedge_cli_ok(c, json_pack("{s:s,s:s,s:s,s:I,s:I}", "state", m.whole, "deployment", b.deployment,
                                     "time", made.s, "main_entries", (json_int_t)b.main_entries, "entries",
                                     (json_int_t)b.entries));
}
