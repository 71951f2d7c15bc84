/* --blob-key TENANT=FILE of the commands that read updates: what opens those that are encrypted. */
#ifndef KEDGE_CLI_AUDIT_AUDIT_BLOB_KEYS_H
#define KEDGE_CLI_AUDIT_AUDIT_BLOB_KEYS_H

#include "chain/audit/audit.h"
#include "cli/cli.h"

enum { KEDGE_CLI_BLOB_KEYS_MAX = 256 };

struct kedge_cli_blob_keys {
    struct kedge_audit_blob_key items[KEDGE_CLI_BLOB_KEYS_MAX]; /* paths of the command line */
    size_t count;
};

/* Takes the options. False after a usage error. */
bool kedge_cli_blob_keys_take(struct kedge_cli *c, struct kedge_cli_blob_keys *ret);

#endif
