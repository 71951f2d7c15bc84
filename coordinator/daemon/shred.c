/* Destroys the keys under which a tenant's updates are encrypted at rest, job by job, once nothing
 * of the job's updates may be read any more. This erases copies that nobody can reach, in backups
 * and on lost disks.
 *
 * The one thing that must not happen is to destroy the key of something that is still wanted. So
 * the question is put to the ledger, which says what is to be erased, and never to the folder,
 * which only says what happens to be mounted. */
#include "coordinator/daemon/shred.h"

#include <stdio.h>

#include "chain/state/refused.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "coordinator/daemon/erase.h"
#include "coordinator/daemon/host.h"

/* Signatures are not checked again: they were when the entry was appended, and an auditor checks
 * them from outside. */
int kedge_host_read_own(struct kedge_ledger *l, uint64_t index, struct kedge_statement *ret)
{
    struct kedge_signed_statement signed_by;
    struct kedge_buf entry;
    kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
    kedge_buf_init(&signed_by.payload, KEDGE_ENTRY_MAX);
    int err = kedge_ledger_get(l, index, &entry);
    if (!err) {
        err = kedge_statement_read(kedge_buf_view(&entry), ret, &signed_by, NULL);
    }
    kedge_buf_deinit(&signed_by.payload);
    kedge_buf_deinit(&entry);
    return err;
}

struct left {
    struct kedge_ledger *ledger;
    struct kedge_statement *st;
    size_t erased;
};

/* KEDGE_E_EXISTS: an update that nobody ordered to be erased. */
static int visit_update(void *arg, struct kedge_view key, uint64_t index)
{
    struct left *l = arg;
    (void)key;
    int err = kedge_host_read_own(l->ledger, index, l->st);
    l->erased++;
    return err ? err : kedge_ledger_has_erased(l->ledger, &l->st->subject) ? KEDGE_OK : KEDGE_E_EXISTS;
}

/* The job has ended, and the ledger orders all its updates to be erased. That no file is left says nothing:
 * files may be on a disk that is not mounted, or still to come back from a backup, which is noise without its
 * key. Then what is kept of the job's refused files goes, too. Where every update of a job was refused there
 * is no order: the key stays for as long as they do. */
static bool is_over(void *arg, const struct kedge_id *job)
{
    const struct kedge_shred *s = arg;
    struct left l = {.ledger = s->ledger};
    char prefix[KEDGE_ID_MAX + 16];
    bool found = false;
    for (size_t i = 0; i < s->ended_count && !found; i++) {
        found = kedge_id_eq(&s->ended[i], job);
    }
    l.st = found ? kedge_mem_new(1, sizeof *l.st) : NULL;
    snprintf(prefix, sizeof prefix, "update/%s/", job->s);
    bool over =
        l.st && kedge_ledger_scan_keys(s->ledger, kedge_view_str(prefix), visit_update, &l) == KEDGE_OK;
    kedge_mem_free(l.st);
    return over
           && (l.erased > 0 ? kedge_refused_erase_job(s->refused_dir, job, NULL) == KEDGE_OK
                            : !kedge_refused_has_job(s->refused_dir, job));
}

/* The list of ended jobs is copied here, on the loop thread: a worker that looked into the table of
 * jobs would race with submissions. */
int kedge_shred_begin(struct kedge_host *h, uint32_t tenant, struct kedge_shred *ret)
{
    struct kedge_shred s = {.blobs = h->tenants[tenant].log.blobs, .ledger = h->tenants[tenant].log.ledger};
    struct kedge_blob_keys *keys = kedge_blobs_keys(s.blobs);
    size_t most = kedge_blob_keys_count(keys);
    struct kedge_blob_key_id id;
    struct kedge_id name;
    KEDGE_TRY(kedge_refused_dir(s.refused_dir, NULL, h->state, &h->tenants[tenant].id));
    s.ended = kedge_mem_new(most + 1, sizeof *s.ended);
    if (!s.ended) {
        return KEDGE_E_NOMEM;
    }
    for (size_t i = 0; i < most && kedge_blob_keys_at(keys, i, &name, &id); i++) {
        if (!kedge_host_job_find(h, &name, false)) {
            s.ended[s.ended_count++] = name;
        }
    }
    *ret = s;
    return KEDGE_OK;
}

int kedge_shred_run(const struct kedge_shred *s, size_t *ret_count, struct kedge_diag *d)
{
    struct kedge_shred copy = *s;
    return kedge_blobs_shred(s->blobs, is_over, &copy, ret_count, d);
}

/* Shredding reads the head of every file in the folder, since each names its key. The hourly look
 * asks the ledger first, which is cheap, and goes on only if there is a job that could be shredded. */
int kedge_shred_run_if_due(const struct kedge_shred *s, size_t *ret_count, struct kedge_diag *d)
{
    struct kedge_shred copy = *s;
    bool is_due = false;
    for (size_t i = 0; i < s->ended_count && !is_due; i++) {
        is_due = s->ended[i].s[0] && is_over(&copy, &s->ended[i]);
    }
    *ret_count = 0;
    return is_due ? kedge_shred_run(s, ret_count, d) : KEDGE_OK;
}

void kedge_shred_end(struct kedge_shred *s)
{
    kedge_mem_free(s->ended);
    s->ended = NULL;
    s->ended_count = 0;
}

int kedge_host_shred(struct kedge_host *h, uint32_t tenant, size_t *ret_count, struct kedge_diag *d)
{
    struct kedge_shred s;
    int err = kedge_shred_begin(h, tenant, &s);
    if (err) {
        return kedge_diag_set(d, err, "the keys of tenant %s: %s", h->tenants[tenant].id.s,
                              kedge_strerror(err));
    }
    err = kedge_shred_run(&s, ret_count, d);
    kedge_shred_end(&s);
    return err;
}
