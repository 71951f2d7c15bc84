/* What the coordinator refused, and signed that it did: SITE/refusals/SITE.HEX.{refusal,envelope} and, of the
 * newest few, the update file. With it anybody can hold the reason against the record (kedge audit verify
 * --refusal), whatever the coordinator has kept. */
#include <string.h>

#include "chain/statement/mainbook.h"
#include "client/daemon/host.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/kept.h"
#include "common/base/os/log.h"
#include "common/base/try.h"

enum { KEPT_MAX = 32, FILES_MAX = 2, KEPT_S = 365 * 86400 };

/* Signed by the trust file's statement key, or the one that it was rotated to. Without a trust file there is
 * no key to check it by; an auditor has one. */
static int open_refused(struct kedge_site_host *h, const struct kedge_msg_refused *m,
                        struct kedge_statement *st)
{
    struct kedge_public_key key;
    if (!h->trust.known) {
        struct kedge_signed_statement read;
        int err = kedge_statement_read(m->envelope, st, &read, NULL);
        kedge_buf_deinit(&read.payload);
        return err;
    }
    int err = kedge_mainbook_follow(&h->trust.statement_key, h->trust.deployment, m->rotations, &key);
    return err ? err : kedge_statement_open(m->envelope, &key, st, NULL);
}

/* Every field is compared with what was sent, and the reason inside the signed statement with the reason in
 * the frame: evidence that does not name this very update, or that says another reason than the site was
 * told, proves nothing to an auditor. */
static bool is_ours(const struct kedge_site_host *h, const struct kedge_statement *st,
                    const struct kedge_site_result *r, int why)
{
    const struct kedge_st_refused *f = &st->u.refused;
    return st->kind == KEDGE_ST_REFUSED && memcmp(st->subject.b, r->envelope.b, sizeof r->envelope.b) == 0
           && memcmp(f->update.b, r->update.b, sizeof r->update.b) == 0
           && kedge_id_eq(&f->tenant, &h->config.tenant) && kedge_id_eq(&f->site, &h->config.site)
           && kedge_id_eq(&f->job, &r->job) && f->round == r->round && f->group == r->group
           && (f->update_kind == KEDGE_TRAIN_PRETRAIN) == (r->kind == KEDGE_SITE_PRETRAIN)
           && kedge_err_find(f->code) == why && kedge_err_class(why) == KEDGE_CLASS_REJECT;
}

static int put(const char *dir, const struct kedge_id *site, const struct kedge_site_digest *about,
               const char *kind, struct kedge_view content, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    int err = kedge_kept_path(path, dir, site, about->b, kind);
    return err ? err : kedge_file_write(path, content, 0600, d);
}

/* The envelope comes before the refusal that is about it: a crash in between leaves no refusal whose subject
 * is missing. */
static int put_all(struct kedge_client_work *w, const struct kedge_msg_refused *m,
                   const struct kedge_site_result *r, struct kedge_view envelope, struct kedge_diag *d)
{
    static const struct kedge_kept_rule rules[] = {
        {"refusal", KEPT_MAX, KEPT_MAX, 0}, {"envelope", KEPT_MAX, KEPT_MAX, 0}, {"update", FILES_MAX, 0, 0}};
    struct kedge_site_host *h = w->h;
    const struct kedge_id *site = &h->config.site;
    char dir[KEDGE_PATH_MAX], file[KEDGE_PATH_MAX];
    struct kedge_kept_gone gone;
    KEDGE_TRY(kedge_client_path(h, dir, "refusals"));
    KEDGE_TRY(kedge_dir_make(dir, 0700, d));
    KEDGE_TRY(put(dir, site, &r->envelope, "envelope", envelope, d));
    KEDGE_TRY(put(dir, site, &r->envelope, "refusal", m->envelope, d));
    KEDGE_TRY(kedge_client_work_path(w, "update", &r->update, file));
    int err = kedge_kept_link(dir, site, r->update.b, "update", file);
    if (err && err != KEDGE_E_NOT_FOUND) { /* lost by a power cut; the refusal says its digest */
        return err;
    }
    return kedge_kept_tidy(dir, rules, sizeof rules / sizeof rules[0], NULL, KEPT_S,
                           kedge_os_unix_ms() / 1000, &gone, d);
}

/* The site goes on without: what is kept is for its owner, and the log says what is not. */
static void keep(struct kedge_client_work *w, const struct kedge_msg_refused *m,
                 const struct kedge_site_result *r, struct kedge_view envelope)
{
    struct kedge_diag d = {.text = ""};
    int err = put_all(w, m, r, envelope, &d);
    if (err) {
        kedge_log(KEDGE_LOG_WARN, "refusal not kept", "%s", d.text[0] ? d.text : kedge_strerror(err));
    }
}

int kedge_client_take_refused(struct kedge_client_work *w, const struct kedge_msg *msg,
                              const struct kedge_site_result *r, struct kedge_view envelope, int *ret_why)
{
    const struct kedge_msg_refused *m = &msg->u.refused;
    struct kedge_site_host *h = w->h;
    int why = kedge_msg_error_code(msg);
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    int err = st ? open_refused(h, m, st) : KEDGE_E_NOMEM;
    if (!err && !is_ours(h, st, r, why)) {
        err = KEDGE_E_VERIFY;
    }
    kedge_mem_free(st);
    if (err) {
        kedge_log(KEDGE_LOG_WARN, "refusal",
                  "it is not signed by the coordinator, or not about what was sent: %s", kedge_strerror(err));
        return err;
    }
    kedge_log(KEDGE_LOG_WARN, "refused", "job=%s round=%u: %.*s; the signed refusal is kept in refusals/",
              r->job.s, r->round, (int)m->text.len, (const char *)m->text.ptr);
    keep(w, m, r, envelope);
    *ret_why = why;
    return KEDGE_OK;
}
