/* One refusal that the auditor was shown, while it is judged. Internal to refusals.c and refusal_reasons.c.
 */
#ifndef KEDGE_CHAIN_AUDIT_FACTS_REFUSALS_H
#define KEDGE_CHAIN_AUDIT_FACTS_REFUSALS_H

#include "chain/audit/record.h"

/* What the evidence says of the reason. */
enum kedgei_shown { KEDGEI_SHOWN_NOTHING, KEDGEI_SHOWN_FITS, KEDGEI_SHOWN_OTHER };

struct kedgei_look {
    struct kedgei_audit *a;
    char where[32], dirs[2][KEDGE_PATH_MAX]; /* where evidence may lie: beside the refusal, in the record */
    struct kedge_statement *st, *claimed;    /* the refusal; the refused statement, NULL: not at hand */
    const struct kedge_st_refused *r;
    const struct kedgei_log *log;
    struct kedgei_job *job;           /* NULL: not in this record */
    const struct kedgei_round *round; /* NULL: likewise */
    bool is_bad;                      /* an error was found */
    enum kedge_audit_refusal_verdict verdict;
    char why[160]; /* what the evidence shows instead, or why it shows nothing */
};

/* An error about the refusal. */
void kedgei_refusal_convict(struct kedgei_look *l, const char *format, ...) KEDGE_PRINTF(2, 3);
/* The refused statement into l->claimed. False: it is not at hand, or not what the refusal says. */
bool kedgei_refusal_envelope(struct kedgei_look *l);
/* Whether evidence and record bear the reason out; l->why says what they show instead, or lack. */
enum kedgei_shown kedgei_refusal_reason(struct kedgei_look *l, bool has_statement);
/* Is the reason one that is given while the round is open only? */
bool kedgei_refusal_needs_open_round(int reason);

#endif
