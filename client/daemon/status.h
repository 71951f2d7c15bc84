/* SITE/status.json: what the daemon is doing, written for its owner (`kedge-client status`). Nothing reads it
 * to decide anything. Pure. */
#ifndef KEDGE_CLIENT_DAEMON_STATUS_H
#define KEDGE_CLIENT_DAEMON_STATUS_H

#include "client/core/site.h"
#include "common/base/bytes.h"
#include "common/base/diag.h"

enum { KEDGE_STATUS_LAST_MAX = 8, KEDGE_STATUS_FILE_MAX = 262144, KEDGE_STATUS_TEXT_MAX = 300 };

struct json_t;

/* Something that came to an end, or would not begin. */
struct kedge_status_outcome {
    uint64_t at_ms; /* since 1970 */
    struct kedge_id job;
    uint32_t round;
    enum kedge_site_kind kind;
    enum kedge_site_note note;          /* RECEIPT, DROPPED, REFUSED, FAILED */
    int err;                            /* why … */
    char detail[KEDGE_STATUS_TEXT_MAX]; /* … in the words of the log: which file, line and column; "": none */
};

struct kedge_status {
    struct kedge_id tenant, site;
    const char *server;
    int64_t pid;
    uint64_t since_ms, written_ms; /* since 1970: of the process, of this text */
    struct kedge_site_view view;
    bool connected, finishing, ended; /* ended: the process wrote this last */
    uint64_t answered_ms;             /* when the coordinator answered last, since 1970; 0: it never has */
    uint32_t last_count;              /* newest last */
    struct kedge_status_outcome last[KEDGE_STATUS_LAST_MAX];
    const struct json_t *policy;                  /* in force, as its file says it; NULL: none is shown */
    uint64_t policy_ms;                           /* when it was read, since 1970 */
    const char *policy_error;                     /* why a newer one was not taken; "": it was */
    const char *works_wait[KEDGE_SITE_WORKS_MAX]; /* why a task that is in hand is not trained yet, or NULL */
    const char *waits_for; /* why no work is taken now although there may be some; "": it would be */
    int64_t trainers[KEDGE_SITE_WORKS_MAX]; /* processes of trainers; 0: none */
    uint32_t trainer_idle_seconds;          /* how long one is kept without a task */
    const struct json_t *energy;            /* what is known of it; NULL: nothing */
    char engine[KEDGE_STATUS_TEXT_MAX]; /* what the last training ran on, in the trainer's words; "": none */
    char fallback[KEDGE_STATUS_TEXT_MAX]; /* why not on what the owner wanted; "": it did */
};

/* Adds an outcome, the oldest goes. */
void kedge_status_note(struct kedge_status *s, const struct kedge_status_outcome *o);
/* "training job=first round=3": for the service manager and for logs; kept from what others wrote. */
void kedge_status_line(const struct kedge_status *s, char out[KEDGE_STATUS_TEXT_MAX]);
/* Appends the file's text. KEDGE_E_NOMEM, KEDGE_E_TOO_LONG. */
KEDGE_NODISCARD int kedge_status_encode(const struct kedge_status *s, struct kedge_buf *out);
/* The object, to be released by json_decref; `where` begins the messages. KEDGE_E_FORMAT, KEDGE_E_TOO_LONG,
 * KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_status_decode(struct kedge_view text, const char *where, struct json_t **ret,
                                        struct kedge_diag *reterr);
/* Appends lines for people; members that are absent or of another type are left out. now_ms as written_ms. */
KEDGE_NODISCARD int kedge_status_tell(const struct json_t *o, bool running, uint64_t now_ms,
                                      struct kedge_buf *out);

#endif
