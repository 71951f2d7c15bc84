/* Every limit of the system, with its reason. Outside input is refused beyond them before memory is taken. */
#ifndef KEDGE_COMMON_BASE_LIMITS_H
#define KEDGE_COMMON_BASE_LIMITS_H

enum {
    KEDGE_ENTRY_MAX = 65535,           /* ledger entry: uint16 length prefix of C2SP entry bundles */
    KEDGE_NOTE_MAX = 256 * 1024,       /* signed note: room for 16 post-quantum signatures */
    KEDGE_NOTE_SIGNATURES_MAX = 100,   /* as Go's sumdb/note */
    KEDGE_ROTATIONS_MAX = 32 * 1024,   /* rotations of the statement key that a site is shown: some 25 */
    KEDGE_PROOF_MAX = 64,              /* hashes of a Merkle proof: a tree of 2^63 leaves needs 64 */
    KEDGE_CHUNK_MAX = 4 * 1024 * 1024, /* blob chunk on the wire */
    KEDGE_FRAME_MAX = KEDGE_CHUNK_MAX + 4096, /* one message: a chunk and its header */
    KEDGE_ADMIN_JSON_MAX = 3 * 1024 * 1024,   /* an answer to an operator: a row for each tenant */
    KEDGE_ADMIN_REQUEST_MAX = 1024 * 1024,    /* a request; a spec, or a signed statement, is in it */
    KEDGE_UPLOAD_IDLE_S = 600, /* an upload of which nothing comes is closed: a link is mended by then, and
                                * what came is kept and read once more when the site goes on */
    KEDGE_CHUNK_BUDGET = 64 * 1024 * 1024, /* chunks in flight, all peers together */
    KEDGE_JSON_DEPTH_MAX = 16,             /* nesting of any JSON we read */
    KEDGE_SPEC_MAX = 64 * 1024,            /* job spec */
    KEDGE_TENANTS_MAX = 4096,              /* of one kedge-coordinator; idle ones cost it 10 kB each */
    KEDGE_SITES_MAX = 4096,                /* sites of one kedge-coordinator */
    KEDGE_CORE_SITES_MAX = 1 << 20,        /* sites that its core can be made for: simulations have so many */
    KEDGE_JOBS_MAX = 64,                   /* jobs in memory; ended ones leave the table */
    KEDGE_JOBS_WAITING_MAX = 20480,        /* jobs that wait for a place there: some 300 bytes each */
    KEDGE_AT_WORK_MAX = 3,        /* jobs that a site has in hand while it asks for another one's task */
    KEDGE_TROUBLE_TEXT_MAX = 240, /* what a site may tell of a task that it could not do: a line or two */
    KEDGE_CLASS_NAME_MAX = 127,   /* bytes of a class's name */
    KEDGE_CLASS_NAMES_BYTES_MAX = 4096, /* of all names that a job learns from its sites: one statement has
                                         * them, escaped twice over, and a task carries them */
    KEDGE_SHIFTED_MAX = 4,              /* jobs of which a poll says that the site's data have shifted */
    KEDGE_GROUPS_MAX = 64,              /* groups of one job */
    KEDGE_GROUPS_USUAL = 16,            /* … at most, where its spec does not say how many */
    KEDGE_STALENESS_MAX = 64, /* rounds for which an asynchronous job may wait for an update: models kept */
    KEDGE_PRETRAIN_SITES_MAX = 512, /* sites whose updates make groups: their inner products are in memory */
    KEDGE_TENSORS_MAX = 1024,       /* tensors of one model */
    KEDGE_TENSOR_DIMS_MAX = 8,
    KEDGE_TENSOR_HEADER_MAX = 1024 * 1024, /* safetensors header */
    KEDGE_ROUNDS_MAX = 1000000,
    KEDGE_LAYERS_MAX = 64,
    KEDGE_HEARTBEAT_MS = 4000,  /* how often a site that works is heard of */
    KEDGE_LOCK_WAIT_MS = 15000, /* for the locks of a killed process: it keeps them while its memory goes */
    KEDGE_LEASE_MIN_MS = 5000,  /* a coordinator's lease: a heartbeat, and a second for its way */
};

/* Entries that a tenant's statement may come late by: two of each of 4,096 sites in 2,048 rounds. Nobody
 * signs for ever. */
enum { KEDGE_POSITION_SPAN_MAX = 1 << 24 };

#endif
