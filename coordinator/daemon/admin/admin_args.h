/* What an operator's request says, before anything is done about it: one JSON object with a "verb", and each
 * verb's arguments with their types, names and ranges checked. What is returned borrows from the request's
 * JSON. All: KEDGE_E_FORMAT and a text that names the field. Pure. */
#ifndef KEDGE_COORDINATOR_DAEMON_ADMIN_ADMIN_ARGS_H
#define KEDGE_COORDINATOR_DAEMON_ADMIN_ADMIN_ARGS_H

#include "common/base/bytes.h"
#include "common/base/diag.h"
#include "common/base/text.h"
#include "crypto/sign.h"

enum { KEDGE_ADMIN_TOKEN_MAX = 128, KEDGE_ADMIN_TTL_MAX_S = 30 * 86400 };

struct json_t;

/* The caller ends *ret_args, which holds *ret_verb, with json_decref. Also KEDGE_E_TOO_LONG, KEDGE_E_NOMEM.
 */
KEDGE_NODISCARD int kedge_admin_open(struct kedge_view text, struct json_t **ret_args, const char **ret_verb,
                                     struct kedge_diag *reterr);

/* job.submit */
struct kedge_admin_submit {
    const char *spec;
    const char *token;   /* at most KEDGE_ADMIN_TOKEN_MAX characters; NULL: none */
    const char *initial; /* path of a model; NULL: none */
};
KEDGE_NODISCARD int kedge_admin_submit_args(const struct json_t *args, struct kedge_admin_submit *ret,
                                            struct kedge_diag *reterr);

/* site.token */
struct kedge_admin_token {
    struct kedge_id tenant, site;
    const char *address; /* what a token can hold; NULL: the coordinator's own */
    uint32_t ttl_s;      /* 1 … KEDGE_ADMIN_TTL_MAX_S */
};
KEDGE_NODISCARD int kedge_admin_token_args(const struct json_t *args, struct kedge_admin_token *ret,
                                           struct kedge_diag *reterr);

/* tenant.add, tenant.join, site.enroll, site.revoke */
struct kedge_admin_signed {
    struct kedge_id tenant;
    struct kedge_view envelope; /* not yet opened; ends with NUL */
};
KEDGE_NODISCARD int kedge_admin_signed_args(const struct json_t *args, struct kedge_admin_signed *ret,
                                            struct kedge_diag *reterr);
/* The envelope of tenant.add: a key statement of the tenant's admin, signed by that very key, else
 * KEDGE_E_DENIED. */
KEDGE_NODISCARD int kedge_admin_check_key(const struct kedge_admin_signed *a,
                                          const struct kedge_public_key *main_log_key,
                                          struct kedge_diag *reterr);

/* site.list, site.pending: names to look for; NULL: any */
struct kedge_admin_filter {
    const char *tenant, *site;
};
KEDGE_NODISCARD int kedge_admin_filter_args(const struct json_t *args, struct kedge_admin_filter *ret,
                                            struct kedge_diag *reterr);

/* read.token: "name" (may be absent), and either "tenant" or "auditor": true */
struct kedge_admin_reader {
    struct kedge_id name; /* empty: any */
    bool auditor;
    struct kedge_id tenant;
    uint32_t ttl_s; /* 1 … KEDGE_ADMIN_READER_TTL_MAX_S */
};
enum { KEDGE_ADMIN_READER_TTL_MAX_S = 3 * 366 * 86400 };
KEDGE_NODISCARD int kedge_admin_reader_args(const struct json_t *args, struct kedge_admin_reader *ret,
                                            struct kedge_diag *reterr);
/* read.revoke */
KEDGE_NODISCARD int kedge_admin_reader_name(const struct json_t *args, struct kedge_id *ret,
                                            struct kedge_diag *reterr);

/* viewer.add: "tenant", "name", "key"; viewer.remove: "tenant", "name" */
struct kedge_admin_viewer {
    struct kedge_id tenant, name;
    struct kedge_public_key key; /* of viewer.add */
};
KEDGE_NODISCARD int kedge_admin_viewer_args(const struct json_t *args, bool add,
                                            struct kedge_admin_viewer *ret, struct kedge_diag *reterr);
/* viewer.list */
KEDGE_NODISCARD int kedge_admin_viewer_tenant(const struct json_t *args, struct kedge_id *ret,
                                              struct kedge_diag *reterr);

/* role.grant: "role", "name", "key"; role.revoke: "key", "reason" (may be absent); both: "propose": true (may
 * be absent), to be answered with what organisations are to approve */
struct kedge_admin_role {
    bool propose;
    bool auditor; /* else an operator */
    struct kedge_id name;
    struct kedge_public_key key;
    const char *reason;
};
KEDGE_NODISCARD int kedge_admin_role_args(const struct json_t *args, bool grant, struct kedge_admin_role *ret,
                                          struct kedge_diag *reterr);

/* role.quorum: "quorum", "propose" */
struct kedge_admin_quorum {
    bool propose;
    uint32_t quorum; /* at most KEDGE_ST_QUORUM_MAX */
};
KEDGE_NODISCARD int kedge_admin_quorum_args(const struct json_t *args, struct kedge_admin_quorum *ret,
                                            struct kedge_diag *reterr);
/* role.rotate: "reason" (may be absent), "propose" */
struct kedge_admin_rotate {
    bool propose;
    const char *reason; /* NULL: none */
};
KEDGE_NODISCARD int kedge_admin_rotate_args(const struct json_t *args, struct kedge_admin_rotate *ret,
                                            struct kedge_diag *reterr);
/* role.submit: "envelope" */
KEDGE_NODISCARD int kedge_admin_envelope_args(const struct json_t *args, struct kedge_view *ret,
                                              struct kedge_diag *reterr);

/* ledger.updates: "tenant", and "from", the entry to begin with (may be absent) */
struct kedge_admin_updates {
    struct kedge_id tenant;
    uint64_t from;
};
KEDGE_NODISCARD int kedge_admin_updates_args(const struct json_t *args, struct kedge_admin_updates *ret,
                                             struct kedge_diag *reterr);

/* ledger.receipt: "log", a tenant or "main", and either "index" or "key", an idempotency key */
struct kedge_admin_receipt {
    struct kedge_id log;
    bool is_main;
    const char *key; /* at most KEDGE_IDEM_KEY_MAX characters; NULL: index */
    uint64_t index;
};
KEDGE_NODISCARD int kedge_admin_receipt_args(const struct json_t *args, struct kedge_admin_receipt *ret,
                                             struct kedge_diag *reterr);

/* job.list: a page of the jobs that fit, in the order of names. "from": the name that it begins with, or
 * "after": the name before it; "limit": jobs in it. Of what is absent any fits: "state" (a state, "active" or
 * "ended"), "since_ms" (submitted then or later), "prefix" (of the name), "tenant" (of the job) */
enum { KEDGE_ADMIN_LIST_MAX = 256 };
struct kedge_admin_list {
    struct kedge_id from; /* empty: before all names */
    bool after;           /* … which is not in the page itself */
    uint32_t limit;       /* 1 … KEDGE_ADMIN_LIST_MAX */
    uint32_t states;      /* a bit each of enum kedge_job_state */
    uint64_t since_ms;
    struct kedge_id prefix; /* the beginning of a name, empty: any */
    struct kedge_id tenant; /* empty: any */
};
KEDGE_NODISCARD int kedge_admin_list_args(const struct json_t *args, struct kedge_admin_list *ret,
                                          struct kedge_diag *reterr);
/* job.events: "job", and which of its moves: from number "from" (absent: 0) on, at most "limit" of them
 * (absent: KEDGE_ADMIN_EVENTS_MAX) */
enum { KEDGE_ADMIN_EVENTS_MAX = 256 };
struct kedge_admin_events {
    struct kedge_id job;
    uint32_t from, limit;
};
KEDGE_NODISCARD int kedge_admin_events_args(const struct json_t *args, struct kedge_admin_events *ret,
                                            struct kedge_diag *reterr);
/* "from_round" of job.show; absent: 0 */
KEDGE_NODISCARD int kedge_admin_from_round(const struct json_t *args, uint32_t *ret,
                                           struct kedge_diag *reterr);

#endif
