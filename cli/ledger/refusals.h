/* --refusal FILE of audits: signed refusals that are held against the record. */
#ifndef KEDGE_CLI_LEDGER_REFUSALS_H
#define KEDGE_CLI_LEDGER_REFUSALS_H

#include "chain/audit/audit.h"
#include "cli/cli.h"

enum { KEDGE_CLI_REFUSALS_MAX = 64 };

struct kedge_cli_refusals {
    const char *paths[KEDGE_CLI_REFUSALS_MAX]; /* of the command line */
    size_t count;
};

/* Takes the options. False after a usage error. */
bool kedge_cli_refusals_take(struct kedge_cli *c, struct kedge_cli_refusals *ret);

/* What the audit says of each, in the order of the options; of one that nobody signed no names. */
json_t *kedge_cli_refusals_json(const struct kedge_cli_refusals *shown, const struct kedge_audit_report *r);

#endif
