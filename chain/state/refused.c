/* Reads the evidence of refused updates (base/os/kept.h). Its files are written one after another and
 * tidied by age, so any of them may be missing: the row says what is there. A refusal counts only if the
 * statement in it is about the digest and the site that the file's name says. */
#include "chain/state/refused.h"

#include <string.h>
#include <sys/stat.h>

#include "chain/state/state.h"
#include "common/base/mem.h"

int kedge_refused_dir(char out[KEDGE_PATH_MAX], struct kedge_diag *reterr, const char *state,
                      const struct kedge_id *tenant)
{
    return kedge_state_path(out, reterr, state, "tenants/%s/" KEDGE_REFUSED_DIR, tenant->s);
}

struct reading {
    const char *dir;
    kedge_refused_visit *visit;
    void *arg;
    struct kedge_refused_row *row;
};

static bool is_there(const struct reading *r, const struct kedge_hash *about, const char *kind,
                     struct stat *ret)
{
    char path[KEDGE_PATH_MAX];
    return kedge_kept_path(path, r->dir, &r->row->st.u.refused.site, about->b, kind) == KEDGE_OK
           && lstat(path, ret) == 0;
}

static int read_one(void *arg, const struct kedge_id *owner, const uint8_t digest[KEDGE_KEPT_DIGEST],
                    const char *path)
{
    struct reading *r = arg;
    struct kedge_refused_row *row = r->row;
    struct kedge_signed_statement read = {.signature_count = 0};
    struct kedge_buf text;
    struct stat st;
    kedge_buf_init(&text, KEDGE_ENTRY_MAX);
    int err = kedge_file_read(path, &text, NULL);
    if (!err) {
        err = kedge_statement_read(kedge_buf_view(&text), &row->st, &read, NULL);
    }
    kedge_buf_deinit(&text);
    kedge_buf_deinit(&read.payload);
    row->path = path;
    row->is_refusal = !err && row->st.kind == KEDGE_ST_REFUSED
                      && memcmp(row->st.subject.b, digest, sizeof row->st.subject.b) == 0
                      && kedge_id_eq(&row->st.u.refused.site, owner);
    if (row->is_refusal) {
        row->has_envelope = is_there(r, &row->st.subject, KEDGE_REFUSED_ENVELOPE, &st);
        row->was_shown = is_there(r, &row->st.subject, KEDGE_REFUSED_SHOWN, &st);
        row->has_update = is_there(r, &row->st.u.refused.update, KEDGE_REFUSED_UPDATE, &st);
        row->bytes = row->has_update ? (uint64_t)st.st_size : 0;
        row->stored_ms = row->has_update ? (uint64_t)st.st_mtim.tv_sec * 1000 : 0;
    }
    return r->visit(r->arg, row);
}

int kedge_refused_each(const char *dir, kedge_refused_visit *visit, void *arg, struct kedge_diag *reterr)
{
    struct reading r = {.dir = dir, .visit = visit, .arg = arg, .row = kedge_mem_new(1, sizeof *r.row)};
    int err = r.row ? kedge_kept_each(dir, KEDGE_REFUSED_REFUSAL, read_one, &r, reterr) : KEDGE_E_NOMEM;
    kedge_mem_free(r.row);
    return err;
}

static int mark(const char *dir, const struct kedge_id *site, const struct kedge_hash *about)
{
    char path[KEDGE_PATH_MAX];
    int err = kedge_kept_path(path, dir, site, about->b, KEDGE_REFUSED_SHOWN);
    return err || kedge_file_exists(path) ? err : kedge_file_write(path, kedge_view_str("\n"), 0600, NULL);
}

int kedge_refused_mark(const char *dir, const struct kedge_refused_row *row)
{
    const struct kedge_st_refused *r = &row->st.u.refused;
    int err = mark(dir, &r->site, &row->st.subject);
    return err || !row->has_update ? err : mark(dir, &r->site, &r->update);
}

/* ---- one job's files ---- */

struct of_job {
    const char *dir;
    const struct kedge_id *job;
    bool removes, found;
    struct kedge_diag *d;
};

static int visit_job(void *arg, const struct kedge_refused_row *row)
{
    struct of_job *o = arg;
    if (!row->is_refusal || !row->has_update || !kedge_id_eq(&row->st.u.refused.job, o->job)) {
        return KEDGE_OK;
    }
    o->found = true;
    return o->removes ? kedge_kept_remove(o->dir, row->st.u.refused.update.b, KEDGE_REFUSED_UPDATE, o->d)
                      : KEDGE_OK;
}

int kedge_refused_erase_job(const char *dir, const struct kedge_id *job, struct kedge_diag *reterr)
{
    struct of_job o = {.dir = dir, .job = job, .removes = true, .d = reterr};
    return kedge_refused_each(dir, visit_job, &o, reterr);
}

/* A folder that cannot be read counts as one that has files of the job: the caller wants to know that
 * nothing is left, and must not be told so by an error. */
bool kedge_refused_has_job(const char *dir, const struct kedge_id *job)
{
    struct of_job o = {.dir = dir, .job = job};
    return kedge_refused_each(dir, visit_job, &o, NULL) != KEDGE_OK || o.found;
}
