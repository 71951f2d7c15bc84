/* The table of witnesses and what they are asked; shared by witness*.c only. */
#ifndef KEDGE_COORDINATOR_DAEMON_WITNESS_WITNESS_IMPL_H
#define KEDGE_COORDINATOR_DAEMON_WITNESS_WITNESS_IMPL_H

#include "chain/log/witness_quorum.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/witness/witness.h"

enum { ASKED_TWICE = 2, COSIGN_LEAST_MS = 100, OUTSIDE_EVERY_MAX_MS = 30000 };

struct kedgei_witness {
    uint32_t tenant;
    struct kedge_id id;
    struct kedge_public_key tls_key;
    struct kedge_vkey vkey;
    bool active;
    bool in_policy;    /* its cosignature may count towards the quorum */
    uint32_t asked;    /* times that it looked at the main chain since the start … */
    uint64_t asked_ns; /* … last, … */
    uint64_t every_ns; /* … and the longest time between two of them */
    uint64_t last_seen_ms;
    uint64_t main_size, own_size; /* of what it cosigned last … */
    uint64_t main_ns, own_ns;     /* … and when */
};

/* What witnesses are asked to cosign of one log. They are shown it bare: whose cosignatures it has by now is
 * not for each of them to know. */
struct kedgei_proposal {
    struct kedge_buf bare, note; /* note: with the cosignatures that came so far */
    uint64_t size, since_ns;
};

struct kedge_witnesses {
    struct kedgei_witness *rows; /* owned */
    uint32_t count;
    size_t room;
    struct kedge_witness_policy *policy; /* NULL: none */
    bool has_quorum;
    struct kedgei_proposal main;
    struct kedgei_proposal
        *tenants;                /* by handle, KEDGE_TENANTS_MAX; made when a witness first asks for one */
    struct kedge_buf final_note; /* main chain's, cosigned by the quorum */
    uint64_t final_size;
    bool settled;
    uint64_t started_ns;
    uint64_t outside_ns, outside_every_ns; /* a party that asks witnesses elsewhere: as asked_ns, every_ns */
    uint64_t
        outside_size[KEDGE_WITNESSES_MAX]; /* by place in the policy: what it cosigned last since the start */
};

/* That the quorum holds for the note over our main chain; KEDGE_E_DENIED and others with the reason. */
KEDGE_NODISCARD int kedgei_witness_evaluate(const struct kedge_host *h, struct kedge_view note,
                                            uint64_t *ret_size, struct kedge_diag *d);
/* A checkpoint that our own key signed and that our log does not have: we are an old backup, or there are two
 * of us. log: a tenant, or KEDGE_COORD_NONE for the main chain. d->err is KEDGE_E_CORRUPT or KEDGE_E_FORK
 * then. */
bool kedgei_witness_is_ahead(struct kedge_host *h, uint32_t log, struct kedge_view note,
                             struct kedge_diag *d);
void kedgei_proposal_init(struct kedgei_proposal *p);
void kedgei_proposal_deinit(struct kedgei_proposal *p);

#endif
