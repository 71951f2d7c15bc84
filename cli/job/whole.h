/* Of a job over a frozen base: the whole model, the base with what the job made of the tensors that it
 * trains. */
#ifndef KEDGE_CLI_JOB_WHOLE_H
#define KEDGE_CLI_JOB_WHOLE_H

#include "cli/cli.h"
#include "common/base/os/file.h"

/* spec: the job's, a file; model: the released one. Fetches the base and writes STEM.safetensors with the
 * spec as STEM.json beside it, for kedge predict; *ret_has false: the job has no base, or a spec that this
 * program does not read, and nothing is written. */
KEDGE_NODISCARD int kedge_cli_take_whole(struct kedge_cli *c, const char *job, const char *spec,
                                         const char *model, const char *stem, bool *ret_has,
                                         struct kedge_diag *d);

#endif
