/* RFC 3161 time stamps among the anchors: what run, status and verify do about them. */
#ifndef KEDGE_CLI_ANCHOR_ANCHOR_TSA_H
#define KEDGE_CLI_ANCHOR_ANCHOR_TSA_H

#include "cli/cli.h"

/* `kedge anchor run --tsa URL …`: takes the other options; the exit code. */
int kedge_cli_stamp_run(struct kedge_cli *c, const char *url);
/* How many time stamps c->state has; says what the newest is, and gives it as JSON. NULL: none, or err. */
KEDGE_NODISCARD int kedge_cli_stamp_status(const struct kedge_cli *c, json_t **ret, struct kedge_diag *d);
/* `kedge anchor verify SIZE.tsr …` */
int kedge_cli_stamp_verify(struct kedge_cli *c, const char *path, struct kedge_view reply,
                           const char *note_path, const char *vkey, const char *ca_path);

#endif
