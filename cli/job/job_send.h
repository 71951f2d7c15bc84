/* How a spec becomes a job: sent, and proven to stand in the main chain as it was sent. */
#ifndef KEDGE_CLI_JOB_JOB_SEND_H
#define KEDGE_CLI_JOB_JOB_SEND_H

#include "cli/cli.h"
#include "job/job_spec.h"

/* Submits the text (a JSON string, stolen) of this spec; token, initial: as --submit-token and
 * --initial-model, NULL: none. Tells what came of it; returns the exit code. */
int kedge_cli_job_send(struct kedge_cli *c, json_t *text, const struct kedge_job_spec *spec,
                       const char *token, const char *initial);
/* A spec that is wrong is wrong usage: its exit code is 2. */
int kedge_cli_fail_submit(struct kedge_cli *c, int err, const struct kedge_diag *d);

#endif
