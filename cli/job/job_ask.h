/* What several commands ask of one job: its spec, byte for byte, and its rounds, however many answers they
 * take. */
#ifndef KEDGE_CLI_JOB_JOB_ASK_H
#define KEDGE_CLI_JOB_JOB_ASK_H

#include "cli/cli.h"
#include "job/job_spec.h"

/* The text of the job's spec, held against the digest that the coordinator names; ret: initialised, the
 * caller deinits it. */
KEDGE_NODISCARD int kedge_cli_job_spec_text(struct kedge_cli *c, const char *job, struct kedge_buf *ret,
                                            struct kedge_diag *d);
/* All rows of `list` ("history", "costs") in the answers to `verb` (job.show, job.costs), in the answer to
 * the first of them; the caller's. */
KEDGE_NODISCARD int kedge_cli_job_rounds(struct kedge_cli *c, const char *verb, const char *list,
                                         const char *job, json_t **ret, struct kedge_diag *d);

#endif
