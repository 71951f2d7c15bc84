/* Anchors outside, for the commands of audit: whose word counts, and what they say. */
#ifndef KEDGE_CLI_AUDIT_AUDIT_ANCHORS_H
#define KEDGE_CLI_AUDIT_AUDIT_ANCHORS_H

#include "chain/audit/audit.h"
#include "cli/cli.h"

/* What the command line names. */
struct kedge_cli_anchors {
    const char *options[KEDGE_ANCHOR_KINDS_MAX]; /* of each kind, as given; NULL: not */
    struct kedge_trust_anchors trust;
    struct kedge_buf files[KEDGE_ANCHOR_KINDS_MAX];
};
/* Takes the options of all kinds out of the arguments; false after a usage error. */
bool kedge_cli_anchors_take(struct kedge_cli *c, struct kedge_cli_anchors *ret);
/* Makes of both what counts: the trust file's (trust may be NULL), and in place of it what the command line
 * names. anchors->trust is then good for kedge_audit_options until deinit. */
KEDGE_NODISCARD int kedge_cli_anchors_merge(struct kedge_cli_anchors *anchors,
                                            const struct kedge_trust *trust, struct kedge_diag *d);
void kedge_cli_anchors_deinit(struct kedge_cli_anchors *anchors);

/* One sentence for each kind that there is. */
void kedge_cli_anchors_say(const struct kedge_cli *c, const struct kedge_audit_report *r);
/* {"evm": {…}, "rfc3161": {…}}: count, those that count, the newest of them. */
json_t *kedge_cli_anchors_json(const struct kedge_audit_report *r);
/* The chapter of a report to be filed; put_words escapes what others wrote. */
void kedge_cli_anchors_file(const struct kedge_audit_report *r,
                            void (*put_words)(struct kedge_buf *out, const char *text),
                            struct kedge_buf *out);

#endif
