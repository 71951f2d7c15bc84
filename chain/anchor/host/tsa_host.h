/* The process that has the main chain's checkpoints time-stamped (RFC 3161): one token per interval, however
 * many tenants, and none without anything new. It only reads the coordinator's record.
 *
 *   STATE/anchors/tsa/lock                 one process at a time
 *   STATE/anchors/tsa/SIZE.note SIZE.tsr   what was stamped, and the reply (chain/state/anchors.h)
 *   STATE/anchors/tsa/ca.pem               the certificates that it was verified with, for status; auditors
 *                                          name their own */
#ifndef KEDGE_CHAIN_ANCHOR_HOST_TSA_HOST_H
#define KEDGE_CHAIN_ANCHOR_HOST_TSA_HOST_H

#include "chain/anchor/stamp.h"
#include "common/http/client.h"

enum {
    KEDGE_TSA_TIMEOUT_MS = 20000, /* of one request */
    KEDGE_TSA_BACKOFF_MS = 5000,  /* after a failure, doubled each time up to … */
    KEDGE_TSA_BACKOFF_MAX_MS = 300000,
    KEDGE_TSA_POLL_MS = 60000, /* how often the main chain is looked at, at least */
    KEDGE_TSA_SKEW_S = 3600,   /* a token's time may differ so much from this machine's */
};

struct kedge_tsa_settings {
    const char *url;          /* http:// or https://: a token proves itself */
    struct kedge_view ca_pem; /* the certificates under which tokens must verify */
    uint64_t interval_ms;     /* between two tokens, at least; 0: whenever there is something new */
};

struct kedge_tsa_progress {
    uint64_t size;     /* of the newest checkpoint with a token; 0: none */
    int64_t time_s;    /* of that token */
    bool is_settled;   /* there is no newer checkpoint */
    uint32_t failures; /* in a row */
};

/* Time, network and what people see, so that tests can have an hour in a second. */
struct kedge_tsa_hooks {
    uint64_t (*now_ms)(void *arg);                                  /* the clock on the wall */
    void (*wait_until)(void *arg, uint64_t ms);                     /* may return early */
    bool (*go_on)(void *arg, const struct kedge_tsa_progress *now); /* asked before each wait; false: end */
    void (*say)(void *arg, const char *text);
    /* Sends a query and appends the reply; NULL: over HTTP to the settings' url. */
    int (*post)(void *arg, struct kedge_view query, struct kedge_buf *reply, struct kedge_diag *d);
    void *arg;
};

/* Until a hook says to end. What the authority answers wrongly or not at all is said and asked again, later
 * each time. Errors: KEDGE_E_LOCKED, _ARG (url), _KEY (ca_pem), _FULL; KEDGE_E_CORRUPT, _FORK: the main chain
 * is shorter than what has a token, or has other entries there; a token that is here and does not hold. */
KEDGE_NODISCARD int kedge_tsa_run(const char *state, const struct kedge_tsa_settings *settings,
                                  const struct kedge_tsa_hooks *hooks, struct kedge_diag *reterr);

/* The newest token of a state folder, judged with ca_pem (len 0: its claims) as what fits `origin`.
 * *ret_count: how many there are; 0: *ret is not written. Errors of kedge_stamp_check, which name the file.
 */
KEDGE_NODISCARD int kedge_tsa_newest(const char *state, const char *origin, struct kedge_view ca_pem,
                                     struct kedge_stamp *ret, size_t *ret_count, struct kedge_diag *reterr);

#endif
