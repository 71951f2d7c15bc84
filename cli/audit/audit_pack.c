/* kedge audit pack: the record for an auditor, without anything that only the operator needs. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "chain/audit/files/archive.h"
#include "chain/state/pack.h"
#include "chain/state/tree.h"
#include "chain/store/blob/guard.h"
#include "cli/local.h"
#include "cli/making.h"
#include "common/base/try.h"

enum { NICE = 10 };

struct packing {
    const char *state;
    char record[KEDGE_PATH_MAX + 32], file[KEDGE_PATH_MAX + 32];
    bool update_keys;
};

/* In a child process: what reads the state folder may die of a damaged store. */
static int copy_in_child(void *arg, struct kedge_buf *ret_out, struct kedge_diag *d)
{
    const struct packing *p = arg;
    (void)ret_out;
    return kedge_state_pack(p->state, p->record, p->update_keys, d);
}

/* What was written is what is judged: it is unpacked as an auditor unpacks it. */
static int verify(struct kedge_cli *c, const struct packing *p, struct kedge_diag *d)
{
    static struct kedge_unpacked unpacked;
    KEDGE_TRY(kedge_archive_unpack(p->file, NULL, &unpacked, d));
    int err = kedge_cli_making_verify(c, unpacked.dir, p->state, d);
    int removed = kedge_archive_remove(&unpacked, err ? NULL : d);
    return err ? err : removed;
}

/* The progress line ends with the caller. */
static int copy_and_pack(struct kedge_cli *c, const struct kedge_cli_making *m, struct packing *p,
                         struct kedge_diag *d)
{
    kedge_cli_progress(c, "copying", 0, 0, p->state);
    KEDGE_TRY(kedge_dir_make(p->record, 0700, d));
    KEDGE_TRY(kedge_store_guarded(copy_in_child, p, 0, NULL, d));
    kedge_cli_progress(c, "packing", 0, 0, m->whole);
    return kedge_archive_pack(p->record, m->whole, p->file, d);
}

/* Three steps of which each may fail: copy, pack, verify what was packed. Only then does the file get its
 * name, and the folder of the copy goes with the lock (kedge_cli_making_end) in any case. */
static int pack(struct kedge_cli *c, const struct kedge_cli_making *m, struct packing *p,
                struct kedge_diag *d)
{
    snprintf(p->record, sizeof p->record, "%s/record", m->unfinished);
    snprintf(p->file, sizeof p->file, "%s/pack", m->unfinished);
    int err = copy_and_pack(c, m, p, d);
    kedge_cli_progress_end(c);
    KEDGE_TRY(err);
    KEDGE_TRY(verify(c, p, d));
    KEDGE_TRY(kedge_tree_sync(m->unfinished, d));
    return kedge_cli_making_name(p->file, m->whole, d);
}

/* A copy is made and packed, not the folder itself: the coordinator goes on writing there. It has its name
 * only after it was verified, so a file of that name is always one that verifies. */
int kedge_cmd_audit_pack(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_cli_making m KEDGE_CLEANUP(kedge_cli_making_end) = {.lock = -1};
    struct packing p = {.update_keys = kedge_cli_flag(c, "update-keys")};
    char state[KEDGE_PATH_MAX];
    const char *given = kedge_cli_argument(c, 0), *out = kedge_cli_argument(c, 1);
    if (!given || !out) {
        return kedge_cli_usage(
            c, "expected the state folder and the file to write: kedge audit pack STATE OUT.tar.gz");
    }
    if (!kedge_cli_no_more(c, 2)) {
        return 2;
    }
    if (!kedge_archive_is_name(out)) {
        return kedge_cli_usage(c, "%s: expected a name that ends in .tar, .tar.gz or .tar.zst",
                               kedge_cli_word(out).s);
    }
    umask(077);
    (void)setpriority(PRIO_PROCESS, 0, NICE); /* rounds go first */
    p.state = state;
    KEDGE_CLI_TRY(c, kedge_cli_making_find(given, state, &d), &d);
    KEDGE_CLI_TRY(c, kedge_cli_making_begin(&m, out, &d), &d);
    KEDGE_CLI_TRY(c, pack(c, &m, &p, &d), &d);
    int64_t size = kedge_file_size(m.whole);
    kedge_cli_say(
        c,
        "Packed the record of %s into %s, %.1f MB; it verifies. It has no private key of the coordinator's, "
        "no "
        "token\nand no address. %s\n"
        "For the auditor: kedge audit verify %s --trust FILE, with the trust file over another way.\n",
        state, m.whole, (double)size / 1e6,
        p.update_keys ? "With the keys of encrypted updates, whose content it opens to its reader."
                      : "Encrypted updates stay sealed: --update-keys adds their keys, for a replay.",
        m.whole);
    return kedge_cli_ok(c, json_pack("{s:s,s:I,s:b,s:b}", "pack", m.whole, "bytes", (json_int_t)size,
                                     "update_keys", p.update_keys, "verified", 1));
}
