/* What an audit has shown and what it has not, told: chain/audit/base/shown.h in sentences. */
#ifndef KEDGE_CLI_AUDIT_AUDIT_SHOWN_H
#define KEDGE_CLI_AUDIT_AUDIT_SHOWN_H

#include "chain/audit/base/shown.h"
#include "cli/cli.h"

/* The verdict, and after it one line for each thing that is shown, or is not and would be by what. */
void kedge_cli_shown_say(const struct kedge_cli *c, const struct kedge_audit_report *r,
                         const struct kedge_audit_claims *claims);
/* The chapters of a report to be filed; put_words escapes what others wrote. */
void kedge_cli_shown_file(const struct kedge_audit_claims *claims,
                          void (*put_words)(struct kedge_buf *out, const char *text), struct kedge_buf *out);
/* "signatures": "libsodium", or "first-pass" with --fast. */
const char *kedge_cli_signatures_by(const struct kedge_audit_report *r);

#endif
