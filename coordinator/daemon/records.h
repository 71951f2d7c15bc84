/* The records of coordinator.lmdb as they are stored: tokens and jobs as JSON, refusals as bytes. What a disk
 * or another program made of them is decoded like any other input from outside: a record is taken whole, with
 * every name, number and digest within its range, or refused with KEDGE_E_CORRUPT and a text that names table
 * and key. KEDGE_E_NOMEM. encode makes what decode takes. Pure. */
#ifndef KEDGE_COORDINATOR_DAEMON_RECORDS_H
#define KEDGE_COORDINATOR_DAEMON_RECORDS_H

#include "common/base/bytes.h"
#include "common/base/diag.h"
#include "common/base/task_kind.h"
#include "coordinator/core/coord.h"
#include "crypto/hash.h"
#include "crypto/sign.h"

enum {
    KEDGE_RECORD_MAX = 1024,    /* bytes of a record */
    KEDGE_RECORD_KEY_MAX = 256, /* bytes of its key */
};

/* Table "token", key: SHA-256 of the token's secret. */
struct kedge_token_record {
    struct kedge_id tenant, site;
    uint64_t expiry_s; /* unix time, at most 2^53 */
    bool used;         /* a device came with it, whose keys are */
    struct kedge_public_key tls_key, statement_key;
};
KEDGE_NODISCARD int kedge_token_record_decode(struct kedge_view key, struct kedge_view value,
                                              struct kedge_token_record *ret, struct kedge_diag *reterr);
KEDGE_NODISCARD int kedge_token_record_encode(const struct kedge_token_record *r, struct kedge_buf *out);

/* Table "state", key: KEDGE_READ_TOKEN_PREFIX ‖ SHA-256 of the token's 32 secret bytes. Who may read logs
 * over HTTPS. */
#define KEDGE_READ_TOKEN_PREFIX "read-token/"
enum { KEDGE_READ_TOKEN_KEY_LEN = sizeof KEDGE_READ_TOKEN_PREFIX - 1 + KEDGE_HASH_LEN };
struct kedge_read_token_record {
    struct kedge_id name;
    bool auditor;                 /* reads all logs */
    struct kedge_id tenant;       /* unless an auditor: reads what this tenant may */
    uint64_t created_s, expiry_s; /* unix time, at most 2^53 */
    uint64_t revoked_s;           /* 0: not revoked */
};
KEDGE_NODISCARD int kedge_read_token_record_decode(struct kedge_view key, struct kedge_view value,
                                                   struct kedge_read_token_record *ret,
                                                   struct kedge_diag *reterr);
KEDGE_NODISCARD int kedge_read_token_record_encode(const struct kedge_read_token_record *r,
                                                   struct kedge_buf *out);
/* The record's key; secret: 32 bytes. */
void kedge_read_token_key(const uint8_t secret[KEDGE_HASH_LEN], uint8_t out[KEDGE_READ_TOKEN_KEY_LEN]);

/* Table "state", key: KEDGE_VIEWER_PREFIX TENANT/NAME. Whose TLS key sees what the tenant's admins see. */
#define KEDGE_VIEWER_PREFIX "viewer/"
struct kedge_viewer_record {
    struct kedge_id tenant, name; /* of the key; a name is a tenant's own */
    struct kedge_public_key key;
    uint64_t since_s; /* unix time, at most 2^53 */
};
KEDGE_NODISCARD int kedge_viewer_record_decode(struct kedge_view key, struct kedge_view value,
                                               struct kedge_viewer_record *ret, struct kedge_diag *reterr);
void kedge_viewer_record_key(const struct kedge_id *tenant, const struct kedge_id *name,
                             struct kedge_buf *out);
KEDGE_NODISCARD int kedge_viewer_record_encode(const struct kedge_viewer_record *r, struct kedge_buf *out_key,
                                               struct kedge_buf *out_value);

/* Table "state", key: KEDGE_SEEN_PREFIX TENANT/SITE. When a site was last heard of. Value: be64. */
#define KEDGE_SEEN_PREFIX "seen/"
struct kedge_seen_record {
    uint64_t ms; /* unix time, 1 … 2^53 */
};
KEDGE_NODISCARD int kedge_seen_record_decode(struct kedge_view key, struct kedge_view value,
                                             struct kedge_seen_record *ret, struct kedge_diag *reterr);
void kedge_seen_record_key(const struct kedge_id *tenant, const struct kedge_id *site, struct kedge_buf *out);
void kedge_seen_record_encode(const struct kedge_id *tenant, const struct kedge_id *site,
                              const struct kedge_seen_record *r, struct kedge_buf *out_key,
                              struct kedge_buf *out_value);

/* Table "state", key: KEDGE_JOB_TOKEN_PREFIX and the SHA-256 of a submit token in hex. Value: the job's name.
 */
#define KEDGE_JOB_TOKEN_PREFIX "job-token/"
KEDGE_NODISCARD int kedge_job_token_decode(struct kedge_view key, struct kedge_view value,
                                           struct kedge_id *ret, struct kedge_diag *reterr);
void kedge_job_token_key(const char *token_hash, struct kedge_buf *out);

/* Table "job", key: its name. */
struct kedge_job_record {
    struct kedge_id job;
    struct kedge_hash spec, initial_model;
    enum kedge_job_state state;
    int reason;                         /* a kedge_err, KEDGE_OK: none */
    uint64_t created_ms;                /* unix time, at most 2^53 */
    char token[KEDGE_HASH_HEX_LEN + 1]; /* SHA-256 of the submit token, "": submitted without */
};
KEDGE_NODISCARD int kedge_job_record_decode(struct kedge_view key, struct kedge_view value,
                                            struct kedge_job_record *ret, struct kedge_diag *reterr);
KEDGE_NODISCARD int kedge_job_record_encode(const struct kedge_job_record *r, struct kedge_buf *out);

/* Whose doing it is that a job moved: the class of its cause. */
enum kedge_job_cause {
    KEDGE_CAUSE_PROGRESS, /* nobody's: it goes on as it should */
    KEDGE_CAUSE_USER,     /* somebody asked for it */
    KEDGE_CAUSE_RESOURCES,
    KEDGE_CAUSE_SITE,
    KEDGE_CAUSE_NETWORK,
    KEDGE_CAUSE_STORAGE,
    KEDGE_CAUSE_CHAIN,
    KEDGE_CAUSE_INTERNAL,
    KEDGE_CAUSE_COUNT,
};

/* Table "state", key: KEDGE_JOB_MOVE_PREFIX JOB/SEQUENCE, the sequence with ten digits. A move of a job from
 * one state to the next, as job_moves.h tells. Value: be64 epoch, be64 ms, be32 reason, a byte each for from,
 * to and cause, then the actor. */
#define KEDGE_JOB_MOVE_PREFIX "job-move/"
enum { KEDGE_ACTOR_MAX = 80 };
struct kedge_job_move {
    struct kedge_id job;
    uint32_t sequence; /* of the job's moves, from 0 on, without gaps */
    uint64_t epoch;    /* which start of the coordinator wrote it, from 1 on */
    enum kedge_job_state from, to;
    enum kedge_job_cause cause;
    int reason;                      /* a kedge_err that belongs to the new state, KEDGE_OK: none */
    uint64_t ms;                     /* unix time, at most 2^53 */
    char actor[KEDGE_ACTOR_MAX + 1]; /* who asked for it, or "coordinator": plain, not empty */
};
KEDGE_NODISCARD int kedge_job_move_decode(struct kedge_view key, struct kedge_view value,
                                          struct kedge_job_move *ret, struct kedge_diag *reterr);
void kedge_job_move_key(const struct kedge_id *job, uint32_t sequence, struct kedge_buf *out);
/* What the keys of a job's moves begin with. */
void kedge_job_move_prefix(const struct kedge_id *job, struct kedge_buf *out);
void kedge_job_move_encode(const struct kedge_job_move *m, struct kedge_buf *out_key,
                           struct kedge_buf *out_value);

/* Table "state", key: KEDGE_EPOCH_KEY. How often a coordinator has started over this store. Value: be64. */
#define KEDGE_EPOCH_KEY "epoch"
KEDGE_NODISCARD int kedge_epoch_decode(struct kedge_view value, uint64_t *ret, struct kedge_diag *reterr);

/* Table "round", key: JOB/ROUND/TENANT/SITE/KIND, the round with eight digits, the kind a digit. Value: be32
 * error, envelope, update, be64 weight. */
struct kedge_refusal_record {
    struct kedge_id job, tenant, site;
    uint32_t round;
    enum kedge_task_kind kind; /* PRETRAIN or TRAIN */
    int err;                   /* of class REJECT */
    struct kedge_hash envelope, update;
    uint64_t weight; /* as announced, at most KEDGE_ST_COUNT_MAX */
};
KEDGE_NODISCARD int kedge_refusal_record_decode(struct kedge_view key, struct kedge_view value,
                                                struct kedge_refusal_record *ret, struct kedge_diag *reterr);
void kedge_refusal_record_encode(const struct kedge_refusal_record *r, struct kedge_buf *out_key,
                                 struct kedge_buf *out_value);
/* What the keys of a job's refusals begin with: of this round, or with KEDGE_COORD_NONE of all. */
void kedge_refusal_prefix(const struct kedge_id *job, uint32_t round, struct kedge_buf *out);

#endif
