/* Statements that concern the whole federation, on the command line: asked for, or proposed. */
#ifndef KEDGE_CLI_KEYS_ROLE_H
#define KEDGE_CLI_KEYS_ROLE_H

#include "cli/cli.h"

/* Asks; steals request. With `propose` (may be NULL) the statement is written to that file for organisations
 * to approve. KEDGE_OK: *ret is the answer; otherwise all is said and *ret_code is the exit code. */
KEDGE_NODISCARD int kedge_cli_role_ask(struct kedge_cli *c, json_t *request, const char *propose,
                                       json_t **ret, int *ret_code);

#endif
