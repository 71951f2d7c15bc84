/* What of a site survives a crash, as the text in SITE/memory: all that was signed and has no receipt
 * yet, with the envelopes, what was signed last, whose data have shifted, the data that the site was
 * grouped by, and which kept vectors count. Pure. */
#ifndef KEDGE_CLIENT_DAEMON_STORED_H
#define KEDGE_CLIENT_DAEMON_STORED_H

#include "client/core/site.h"
#include "client/daemon/update/kept.h"
#include "client/daemon/update/shift.h"
#include "common/base/bytes.h"
#include "common/base/diag.h"

/* A site's own statements have some 2 KiB each; two of the longest that there may be have room in any case,
 * with their quotes doubled, for they are JSON within JSON. */
enum {
    KEDGE_STORED_TEXT_MAX = 160 * 1024 + KEDGE_KEPT_JOBS_MAX * 320 + KEDGE_GROUPED_MAX * KEDGE_LABELS_MAX * 17
                            + 2 * KEDGE_SITE_RESULTS_MAX * KEDGE_ENTRY_MAX,
    KEDGE_SIGNEDS_MAX = 32,
};

/* A signed statement that waits for its receipt; without text the place is free. */
struct kedge_site_envelope {
    struct kedge_site_digest digest;
    char *text; /* owned */
    size_t len;
};
void kedge_envelope_free(struct kedge_site_envelope *e);
/* Among KEDGE_SITE_STORED_MAX; NULL when it is not there. */
struct kedge_site_envelope *kedge_envelope_find(struct kedge_site_envelope *envelopes,
                                                const struct kedge_site_digest *digest);

/* The last tasks whose updates this site signed, the last of each job and kind. It signs no second one for a
 * task, whatever became of the first: two signed updates of one site in one round would let others choose
 * between them. */
struct kedge_site_signeds {
    uint32_t count; /* oldest first */
    struct kedge_site_signed {
        struct kedge_id job;
        enum kedge_site_kind kind; /* never EVALUATE */
        uint32_t round;
    } items[KEDGE_SIGNEDS_MAX];
};
void kedge_signeds_note(struct kedge_site_signeds *s, const struct kedge_id *job, enum kedge_site_kind kind,
                        uint32_t round);
bool kedge_signeds_has(const struct kedge_site_signeds *s, const struct kedge_id *job,
                       enum kedge_site_kind kind, uint32_t round);

struct kedge_site_stored {
    struct kedge_site_memory memory;
    struct kedge_site_envelope envelopes[KEDGE_SITE_STORED_MAX]; /* of the results */
    struct kedge_site_signeds signeds;
    struct kedge_groupeds groupeds;
    struct kedge_kept_table kept;
};

/* Kinds, rounds, groups and lengths are within what a task may have, and every envelope is what its digest
 * says: it is sent as it stands. KEDGE_E_FORMAT and KEDGE_E_TOO_LONG say what is wrong, KEDGE_E_NOMEM. Free
 * with kedge_stored_deinit. */
KEDGE_NODISCARD int kedge_stored_decode(struct kedge_view text, struct kedge_site_stored *ret,
                                        struct kedge_diag *reterr);
void kedge_stored_deinit(struct kedge_site_stored *s);
/* What decode reads. KEDGE_E_NOMEM, or KEDGE_E_BUG: a result's envelope is missing. */
KEDGE_NODISCARD int kedge_stored_encode(const struct kedge_site_stored *s, struct kedge_buf *out);

#endif
