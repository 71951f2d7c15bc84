/* Where in a tenant's ledger a statement that is signed here may stand
 * (chain/statement/statement_position.h). */
#ifndef KEDGE_CLI_LEDGER_POSITION_H
#define KEDGE_CLI_LEDGER_POSITION_H

#include "cli/cli.h"

/* Fills st->at, unless it is filled or the kind has none: from --position FILE, else from what the
 * coordinator says of the ledger of st's tenant. KEDGE_E_POSITION: the file is of another tenant;
 * KEDGE_E_FORMAT; errors of asking. */
KEDGE_NODISCARD int kedge_cli_position(struct kedge_cli *c, struct kedge_statement *st, struct kedge_diag *d);

#endif
