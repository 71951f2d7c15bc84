/* Statements about keys on the command line: made, signed by several, sent. */
#ifndef KEDGE_CLI_KEYS_KEY_H
#define KEDGE_CLI_KEYS_KEY_H

#include "cli/cli.h"

/* Signs st with `pair`, then with `second` (may be NULL), then with every --also-key; then writes the
 * envelope to
 * --out for others to sign, or sends it. Returns the exit code. */
int kedge_cli_key_change(struct kedge_cli *c, struct kedge_statement *st, const struct kedge_key_pair *pair,
                         const struct kedge_key_pair *second);

#endif
