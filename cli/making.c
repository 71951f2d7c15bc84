/* Folders that are made whole or not at all: a backup, a restored state, an audit pack.
 *
 * They grow beside their final name, under NAME.unfinished, while a lock keeps a second command out; the name
 * comes by a rename at the end. What an interrupted command has left is removed by the next one, which the
 * lock makes safe. */
#include "cli/making.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chain/audit/audit.h"
#include "cli/local.h"
#include "common/base/try.h"

/* Without "/" at its end, so that what is made beside it is beside it. */
static int clean_name(const char *given, char out[KEDGE_PATH_MAX], struct kedge_diag *d)
{
    size_t len = strlen(given);
    while (len > 1 && given[len - 1] == '/') {
        len--;
    }
    if (len >= KEDGE_PATH_MAX - 64) {
        return kedge_diag_set(d, KEDGE_E_TOO_LONG, "%.60s…: path too long", given);
    }
    memcpy(out, given, len);
    out[len] = '\0';
    return KEDGE_OK;
}

/* rmdir answers the question without a race: a folder that it removes was empty. */
static bool is_empty_dir(const char *path)
{
    return rmdir(path) == 0 && mkdir(path, 0700) == 0;
}

/* What an interrupted command left under that name goes. */
int kedge_cli_making_begin(struct kedge_cli_making *m, const char *given, struct kedge_diag *d)
{
    m->lock = -1;
    KEDGE_TRY(clean_name(given, m->whole, d));
    if (kedge_file_exists(m->whole) && !is_empty_dir(m->whole)) {
        (void)kedge_diag_set(d, KEDGE_E_EXISTS, "%s is there already", kedge_cli_word(m->whole).s);
        return kedge_diag_hint(d, "name a folder that is still to be made: nothing is ever written over");
    }
    snprintf(m->unfinished, sizeof m->unfinished, "%s.unfinished", m->whole);
    snprintf(m->lock_path, sizeof m->lock_path, "%s.lock", m->unfinished);
    m->lock = kedge_file_lock(m->lock_path, d);
    if (m->lock < 0) {
        return kedge_diag_wrap(d, m->lock, "%s is being made", kedge_cli_word(m->whole).s);
    }
    int err = kedge_dir_remove(m->unfinished);
    err = err ? kedge_diag_set(d, err, "%s: cannot be removed", m->unfinished) : KEDGE_OK;
    return err ? err : kedge_dir_make(m->unfinished, 0700, d);
}

/* Also after success, when `unfinished` has its final name and there is nothing left to remove. The lock's
 * file goes while the lock is still held. */
void kedge_cli_making_end(struct kedge_cli_making *m)
{
    if (m->lock >= 0) {
        (void)!kedge_dir_remove(m->unfinished);
        (void)unlink(m->lock_path);
        close(m->lock);
    }
}

/* The name is durable when the folder above is synced. A folder that this user may not open for that still
 * has the new name: it is no error. */
int kedge_cli_making_name(const char *unfinished, const char *whole, struct kedge_diag *d)
{
    char parent[KEDGE_PATH_MAX];
    if (rename(unfinished, whole) != 0) {
        return kedge_diag_set(d, kedge_errno(errno), "%s: cannot be renamed to %s: %s", unfinished, whole,
                              strerror(errno));
    }
    int n = snprintf(parent, sizeof parent, "%s", whole);
    char *slash = n > 0 && (size_t)n < sizeof parent ? strrchr(parent, '/') : NULL;
    if (slash) {
        slash[slash == parent ? 1 : 0] = '\0';
    }
    int err = kedge_dir_sync(slash ? parent : ".");
    return err == KEDGE_E_DENIED ? KEDGE_OK : err;
}

static void show_progress(void *arg, const char *what, uint64_t done, uint64_t total)
{
    kedge_cli_progress(arg, "verifying", done, total, what);
}

/* The copy is judged as an auditor judges it, but for who signed it: that the operator is not asked. */
int kedge_cli_making_verify(struct kedge_cli *c, const char *dir, const char *state, struct kedge_diag *d)
{
    const struct kedge_audit_options options = {.progress = show_progress, .progress_arg = c};
    struct kedge_audit_report report;
    int err = kedge_audit_verify(dir, NULL, NULL, 0, &options, &report, d);
    kedge_cli_progress_end(c);
    if (err) {
        return err;
    }
    for (uint32_t i = 0; i < report.finding_count; i++) {
        const struct kedge_audit_finding *f = &report.findings[i];
        if (f->severity != KEDGE_AUDIT_NOTE) {
            kedge_cli_say(c, "%s: %s [%s]\n", f->where, f->text, kedge_audit_code_name(f->code));
        }
    }
    if (report.error_count > 0) {
        (void)kedge_diag_set(d, KEDGE_E_CORRUPT, "the copy does not verify: %llu errors; nothing was kept",
                             (unsigned long long)report.error_count);
        err = kedge_diag_hint(
            d,
            "try once more, in case something was erased meanwhile; else kedge ledger fsck %s "
            "says what is damaged",
            kedge_cli_word(state).s);
    }
    kedge_audit_report_deinit(&report);
    return err;
}

int kedge_cli_making_find(const char *given, char out[KEDGE_PATH_MAX], struct kedge_diag *d)
{
    int err = kedge_cli_may_look(given, d);
    return err ? err : kedge_cli_find_state(given, out, d);
}
