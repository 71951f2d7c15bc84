/* Witness policies from files, for commands. */
#ifndef KEDGE_CLI_WITNESS_WITNESS_POLICY_H
#define KEDGE_CLI_WITNESS_WITNESS_POLICY_H

#include "chain/log/witness_quorum.h"

/* Reads and parses; errors name the file and the line. Free with kedge_witness_policy_free. */
KEDGE_NODISCARD int kedge_cli_witness_policy(const char *path, struct kedge_witness_policy **ret,
                                             struct kedge_diag *d);

#endif
