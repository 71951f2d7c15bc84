/* The trainer process: started, asked, confined, stopped. And the files of trainers of the owner's own. On
 * the work thread. */
#ifndef KEDGE_CLIENT_DAEMON_TRAINER_TRAINER_H
#define KEDGE_CLIENT_DAEMON_TRAINER_TRAINER_H

#include "client/daemon/host.h"

enum { KEDGE_TRAINER_FILE_MAX = 32 };

/* What a request says of the job's model: its layers, or of an external one {"external": NAME, "settings":
 * {…}}. NULL: no memory. */
json_t *kedge_client_model_json(const struct kedge_job_spec *spec);

/* Sends a request, which is taken over (NULL: no memory), to the trainer of the job at work and waits for the
 * answer, until the owner's time is up or the task with this serial is aborted. A trainer that fails is
 * stopped with all that it has started; the next request starts it anew. KEDGE_E_TRAINER (it ended, or says
 * what is no answer, or that it failed), KEDGE_E_TIMEOUT, KEDGE_E_CANCELLED, KEDGE_E_DENIED (policy.json), or
 * why it did not start. */
KEDGE_NODISCARD int kedge_client_ask(struct kedge_client_work *w, uint64_t serial, json_t *request,
                                     bool train, bool test, struct kedge_metrics *m, struct kedge_diag *d);

/* What of its sandbox a trainer of the owner's runs without, for people; "" when nothing is missing. */
enum { KEDGE_TRAINER_LACKS_LEN = 256 };
void kedge_client_trainer_lacks(const struct kedge_process *p, char ret[KEDGE_TRAINER_LACKS_LEN]);

/* Starts a trainer of the owner's as for a task, says hello and waits so many seconds for its one line of
 * answer, which is written to *ret_line (without its end; a caller's buffer), then stops it. *ret_more: there
 * was more than a line. Nothing else may use h's trainer. Errors as of kedge_client_ask, told as they happen
 * here; `lacks` is filled in as soon as it runs. */
KEDGE_NODISCARD int kedge_client_trainer_hello(struct kedge_client_work *w,
                                               const struct kedge_trainer_terms *terms, uint32_t seconds,
                                               struct kedge_buf *ret_line, bool *ret_more,
                                               char lacks[KEDGE_TRAINER_LACKS_LEN], struct kedge_diag *d);

/* Of an external model's trainer, all in a folder of its own, SITE/trainers/NAME, the only one that it may
 * write to: a copy of the model, where it leaves what it has trained and where nothing is yet; copies of the
 * drift and of the site's own model, "" where the job has none. */
struct kedge_trainer_given {
    char base[KEDGE_PATH_MAX], out[KEDGE_PATH_MAX], drift[KEDGE_PATH_MAX], personal[KEDGE_PATH_MAX];
};
/* drift, personal: NULL for none. The latter's file need not be there yet. */
KEDGE_NODISCARD int kedge_client_trainer_give(struct kedge_client_work *w, const char *base,
                                              const char *drift, const char *personal,
                                              struct kedge_trainer_given *ret, struct kedge_diag *d);
/* Takes what it has left at `from` to the working file `to`: a safetensors file of exactly the model's
 * tensors, F32, in any order, with any metadata; what is written is canonical, so that nobody changes it
 * behind the check. KEDGE_E_TRAINER (nothing there), KEDGE_E_FORMAT, KEDGE_E_SHAPE, KEDGE_E_NOT_FINITE, each
 * naming what was expected. */
KEDGE_NODISCARD int kedge_client_trainer_take(struct kedge_client_work *w, const char *from, const char *to,
                                              struct kedge_diag *d);

/* ---- trainer_said.c ---- */
/* Reads what there is of its standard error; false: nothing was there. */
bool kedgei_trainer_hear(struct kedge_client_work *w);
/* The last line that it said, after all that is there was read; "nothing". */
const char *kedgei_trainer_last_words(struct kedge_client_work *w);
/* As policy.json names it, or "built-in". */
const char *kedgei_trainer_name(const struct kedge_client_work *w);

#endif
