/* A copy of some tenants' ledgers, as `kedge ledger follow` keeps it. */
#ifndef KEDGE_CLI_AUDIT_AUDIT_COPY_H
#define KEDGE_CLI_AUDIT_AUDIT_COPY_H

#include "common/base/text.h"

/* The tenants whose ledgers are in the copy at dir; 0 when dir holds a whole record, or nothing that can be
 * read. Looks in a child process. */
size_t kedge_cli_copy_tenants(const char *dir, struct kedge_id *out, size_t max);

#endif
