/* A witness's cosignature: made, kept, handed in. */
#include "chain/follow/bare_note.h"
#include "chain/log/cosignature.h"
#include "cli/ledger/follow.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/try.h"

static int save_cosigned(const struct kedgei_watch *f, bool is_main, struct kedge_view note,
                         struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    int err = kedge_state_path(path, d, f->dir, "cosigned/%s.note", is_main ? "main" : "own");
    return err ? err : kedge_file_write(path, note, 0600, d);
}

/* The answer tells how far the quorum has come with it (final_size), which take_final of the caller acts
 * upon. */
static int send_note(struct kedgei_watch *f, struct kedge_view note, struct kedge_diag *d)
{
    struct kedge_net_reply reply = {.impl = NULL};
    struct kedge_msg msg = {.type = KEDGE_MSG_COSIGN}, got;
    msg.u.cosign.note = note;
    int err = kedgei_follow_call(f, &msg, &reply, &got, d);
    if (!err && got.type != KEDGE_MSG_COSIGN_OK) {
        err = kedge_diag_set(d, KEDGE_E_FORMAT, "the coordinator gave an answer that is none");
    }
    if (!err) {
        f->final_size = got.u.cosign_ok.final_size;
    }
    kedge_net_reply_release(&reply);
    return err;
}

/* What a cosignature is made of: the checkpoint as the copy has it, the same with the log's signature only,
 * our line, and both together. */
struct notes {
    struct kedge_buf own, bare, line, cosigned;
};

/* Lines that others had the coordinator serve are left out: they are theirs to give, and may be made up. */
static int make_cosigned(const struct kedgei_watch *f, const struct kedge_state_log *log,
                         struct kedge_note *parsed, struct notes *n)
{
    const struct kedge_vkey *vkey = log == &f->main ? &f->w.main_log : &f->w.log;
    uint64_t size;
    KEDGE_TRY(kedge_ledger_checkpoint(log->ledger, &n->own, &size));
    KEDGE_TRY(kedge_follow_bare_note(kedge_buf_view(&n->own), vkey, &n->bare));
    KEDGE_TRY(kedge_note_parse(kedge_buf_view(&n->bare), parsed));
    if (size != kedge_ledger_size(log->ledger)) {
        return KEDGE_E_STATE; /* on its way to a later checkpoint */
    }
    KEDGE_TRY(kedge_cosignature_make(parsed->text, kedge_view_str(f->w.name), &f->w.cosign,
                                     kedge_os_unix_ms() / 1000, &n->line));
    return kedge_note_add_line(kedge_buf_view(&n->bare), kedge_buf_view(&n->line), &n->cosigned);
}

/* A cosignature says "up to this size the log only grew, as far as I have seen" (c2sp.org/tlog-cosignature).
 * It is made over the copy's own checkpoint and only if the copy holds every entry that it covers: a witness
 * that signed what it has not stored could not prove later what it had seen. */
int kedgei_follow_cosign(struct kedgei_watch *f, const struct kedge_state_log *log, struct kedge_diag *d)
{
    struct notes n;
    struct kedge_note *parsed = kedge_mem_new(1, sizeof *parsed);
    kedge_buf_init(&n.own, KEDGE_NOTE_MAX);
    kedge_buf_init(&n.bare, KEDGE_NOTE_MAX);
    kedge_buf_init(&n.line, KEDGE_COSIGNATURE_LINE_MAX);
    kedge_buf_init(&n.cosigned, KEDGE_NOTE_MAX);
    int err = parsed ? make_cosigned(f, log, parsed, &n) : KEDGE_E_NOMEM;
    if (err) {
        (void)kedge_diag_set(d, err, "log %s: cannot cosign: %s", log->origin, kedge_strerror(err));
    }
    /* Kept before it is given away: a witness knows what it has said. */
    if (!err) {
        err = save_cosigned(f, log == &f->main, kedge_buf_view(&n.cosigned), d);
    }
    if (!err) {
        err = send_note(f, kedge_buf_view(&n.cosigned), d);
    }
    kedge_mem_free(parsed);
    kedge_buf_deinit(&n.own);
    kedge_buf_deinit(&n.bare);
    kedge_buf_deinit(&n.line);
    kedge_buf_deinit(&n.cosigned);
    return err;
}

/* The coordinator gets its own signed words back and stops when they convict it (follow.h). Whatever comes of
 * that, the witness has done what it can: the error of the caller stays the one that is told. */
void kedgei_follow_show(struct kedgei_watch *f, const struct kedge_state_log *log)
{
    struct kedge_buf note;
    struct kedge_diag ignored;
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    if (kedge_ledger_checkpoint(log->ledger, &note, NULL) == KEDGE_OK) {
        (void)!send_note(f, kedge_buf_view(&note), &ignored);
    }
    kedge_buf_deinit(&note);
}
