/* What an audit has shown, and what it has not. A record that agrees with itself and is signed can still have
 * been written anew by the holder of its log keys, who left out an update, a job, or computed another model:
 * that takes a word from elsewhere (a checkpoint, witnesses, an anchor) or a replay to find. So a verdict is
 * told as claims, each with what it rests on, and beside them those that are missing, each with what would
 * show it. docs/modules/audit.md "Levels". */
#ifndef KEDGE_CHAIN_AUDIT_BASE_SHOWN_H
#define KEDGE_CHAIN_AUDIT_BASE_SHOWN_H

#include "chain/audit/audit.h"

struct json_t;

enum kedge_audit_level {
    KEDGE_AUDIT_CONSISTENT, /* all that is in this copy agrees with each other */
    KEDGE_AUDIT_SIGNED,     /* by the keys of the trust file and those that follow from them */
    KEDGE_AUDIT_COMPLETE,   /* a log has the first entries that somebody else saw, and no others */
    KEDGE_AUDIT_REEXECUTED, /* what was decided and computed follows from the recorded inputs */
    KEDGE_AUDIT_LEVEL_COUNT,
};
/* "consistent", "signed", "complete-as-of", "models-re-executed"; static storage. */
const char *kedge_audit_level_name(enum kedge_audit_level level);

enum { KEDGE_AUDIT_CLAIM_MAX = 640, KEDGE_AUDIT_HOW_MAX = 256 };

struct kedge_audit_claim {
    enum kedge_audit_level level;
    bool shown;
    const char *log;      /* COMPLETE: origin, of the report; else NULL */
    uint64_t entries, of; /* COMPLETE: these first entries, of as many in this copy */
    const char
        *source; /* COMPLETE and shown: "seen", "trust-file", "witnesses", "time-stamp", "chain"; else NULL */
    char from[KEDGE_AUDIT_WHERE_MAX]; /* what says so: a file, who anchored when; may be empty */
    char text[KEDGE_AUDIT_CLAIM_MAX]; /* what is shown, or what is not */
    char how[KEDGE_AUDIT_HOW_MAX];    /* not shown: what would show it */
};

struct kedge_audit_claims {
    size_t count;
    struct kedge_audit_claim *items; /* owned; ascending by level, those that are shown first within one */
};

/* Of a report, which must outlive them. A record with an error shows nothing. KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_audit_claims(const struct kedge_audit_report *report,
                                       struct kedge_audit_claims *ret);
void kedge_audit_claims_deinit(struct kedge_audit_claims *claims);
/* The array "shown" or "not_shown" of reports in JSON; NULL: out of memory. */
struct json_t *kedge_audit_claims_json(const struct kedge_audit_claims *claims, bool shown);

#endif
