/* Settings of kedge-coordinator: STATE/config.json, strict JSON; unknown keys are errors. */
#ifndef KEDGE_COORDINATOR_DAEMON_CONFIG_H
#define KEDGE_COORDINATOR_DAEMON_CONFIG_H

#include "common/base/bytes.h"
#include "common/base/diag.h"
#include "common/base/os/file.h"
#include "common/net/server.h"
#include "coordinator/events/event.h"
#include "crypto/sign.h"

enum { KEDGE_CONFIG_OPERATORS_MAX = 16, KEDGE_CONFIG_EVENTS_LISTEN_MAX = 3 };

struct kedge_config {
    char deployment[129];                                   /* "deployment", required */
    char listen[KEDGE_NET_URLS_MAX - 1][KEDGE_NET_URL_MAX]; /* "listen": tls+tcp://HOST:PORT… */
    unsigned listen_count;
    struct kedge_public_key operators[KEDGE_CONFIG_OPERATORS_MAX]; /* "operators": TLS keys, hex */
    unsigned operator_count;
    unsigned workers;       /* "workers": threads, 1…16; 0: twice the processors, 4…16 */
    unsigned close_threads; /* "close_threads": that make one vector of a close, 1…16; 0: the processors */
    uint32_t lease_ms, offline_grace_ms, settle_ms; /* "lease_ms", … see coordinator/core/coord.h */
    bool witness_strict; /* "witness_strict": refuse a witness policy whose quorum is not safe */
    char https_listen[KEDGE_NET_URL_MAX];   /* "https_listen": https://HOST:PORT, "": none */
    char https_certificate[KEDGE_PATH_MAX]; /* "https_certificate": absolute path of a PEM chain, "": ours
                                             */
    char https_key[KEDGE_PATH_MAX];         /* "https_key": its private key */
    unsigned https_connections;             /* "https_connections": at most so many at once */
    uint32_t target_weight; /* "target_weight": of a job below its first of two targets, in sites' time … */
    uint32_t share_floor_percent; /* "share_floor_percent": … of which each keeps so much of an equal share */
    uint32_t deadline_guard_s;    /* "deadline_guard_s": coordinator/schedule/deadline.h; 0: no guard */
    uint32_t refused_days, refused_mb; /* "refused_days", "refused_mb": how long, how much of each tenant */
    bool encrypt_blobs; /* "encrypt_blobs": updates are encrypted at rest; read by chain/state */
    bool events_off;    /* "events": false: no stream of events */
    char events_folder[KEDGE_PATH_MAX]; /* "events_folder": absolute path, "": STATE/events */
    char events_listen[KEDGE_CONFIG_EVENTS_LISTEN_MAX][KEDGE_NET_URL_MAX]; /* "events_listen": on loopback */
    unsigned events_listen_count;
    struct kedge_id events_tenants[KEDGE_EVENT_STREAMS_MAX]; /* "events_tenants": with a stream each */
    unsigned events_tenant_count;
    bool insecure; /* "insecure": permits tcp:// on loopback */
};

/* KEDGE_E_FORMAT names the key. */
KEDGE_NODISCARD int kedge_config_parse(struct kedge_view text, struct kedge_config *ret,
                                       struct kedge_diag *reterr);

#endif
