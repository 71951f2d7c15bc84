/* Files that an audit leaves: its verdict on every statement for programs, and a report to be filed. */
#ifndef KEDGE_CLI_AUDIT_AUDIT_REPORT_H
#define KEDGE_CLI_AUDIT_AUDIT_REPORT_H

#include <stdio.h>

#include "chain/audit/audit.h"
#include "cli/cli.h"

/* JSON Lines, one object per entry of every log. The file appears under its name when it is whole. */
struct kedge_cli_statements {
    const char *path;
    char partial[KEDGE_PATH_MAX];
    FILE *file;
    bool trusted; /* a trust file was given */
};
KEDGE_NODISCARD int kedge_cli_statements_open(struct kedge_cli_statements *s, const char *path, bool trusted,
                                              struct kedge_diag *d);
/* A kedge_audit_each; arg: the struct. */
int kedge_cli_statements_put(void *arg, const struct kedge_audit_entry *entry);
/* Gives it its name; with keep false only removes what was written. */
KEDGE_NODISCARD int kedge_cli_statements_close(struct kedge_cli_statements *s, bool keep,
                                               struct kedge_diag *d);

struct kedge_cli_filing {
    const char *dir, *trust_path; /* trust_path NULL: none */
    const char *const *seen;
    size_t seen_count;
    bool live;
    uint64_t unix_ms; /* when the audit began */
    const struct kedge_trust_anchors *anchors;
    const struct kedge_trust *trust;
    const struct kedge_audit_report *report;
};
/* Writes the report, Markdown that reads as plain text, durably. */
KEDGE_NODISCARD int kedge_cli_file_report(const struct kedge_cli_filing *f, const char *path,
                                          struct kedge_diag *d);

#endif
