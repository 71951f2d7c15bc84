/* The decisions of a round, from blob files to bytes: initial model, grouping, directions, mixing, the
 * server's step; aggregate.h has the aggregates. The coordinator's workers and the auditor call the same
 * functions; the first writes blobs, the second only hashes. Files are mapped, encrypted ones decrypted chunk
 * by chunk (chain/store/blob/blob_file.h), results leave by tiles: memory does not depend on the size of
 * models, except where said, and is at most some 64 KiB for each of 512 updates. Updates may be encrypted,
 * models and directions are plain.
 *
 * Vectors that a simulation holds in memory come and go as their values alone (kedge_blob_at.values,
 * kedge_sink.values_only); who gives them answers for their length.
 *
 * All model and update files are canonical safetensors of the job's layout (F32 models, I32 updates and
 * directions). Every function: KEDGE_E_SHAPE or _FORMAT with the file's name in reterr when a file is not
 * that; the sink's error otherwise. Nothing is written to a sink after an error. */
#ifndef KEDGE_ROUND_COMPUTE_H
#define KEDGE_ROUND_COMPUTE_H

#include <stdint.h>

#include "chain/store/blob/blob_file.h"
#include "common/base/bytes.h"
#include "common/base/diag.h"
#include "common/tensor/layout.h"
#include "job/job_spec.h"

/* How the making of a vector is cut, by coordinates: into `shards`, of which each has every so-manieth tile,
 * made side by side by `threads` threads, the caller's included. What is made is the same for every cut: it
 * is a matter of speed and of memory, which is a tile of each input for each thread, and of the result for
 * each shard. Zeros: one thread; two shards for each thread. Beyond the bounds the bound counts; where there
 * are too many encrypted inputs, or too few values, fewer threads do it. */
enum { KEDGE_CUT_THREADS_MAX = 16, KEDGE_CUT_SHARDS_MAX = 64 };
struct kedge_cut {
    unsigned threads, shards;
};

/* Where result bytes go, in order. Returns KEDGE_OK or the error that ends the computation. */
struct kedge_sink {
    int (*write)(void *arg, struct kedge_view bytes);
    void *arg;
    bool values_only; /* it takes no header: the vector stays in memory */
    struct kedge_cut
        cut; /* how what goes there may be made; `write` is called by the caller's thread alone */
};

/* The first model, made from the spec's seed. */
KEDGE_NODISCARD int kedge_compute_initial(const struct kedge_job_spec *spec, struct kedge_sink sink,
                                          struct kedge_diag *reterr);
/* KEDGE_OK when the file is a canonical model (F32, finite) or update (I32, every |q| ≤ limit) of the layout.
 * compact: the form in which the update shall be, and no more of its values than are allowed; NULL: whole. */
KEDGE_NODISCARD int kedge_compute_check_model(const struct kedge_layout *layout, const char *path,
                                              struct kedge_diag *reterr);
KEDGE_NODISCARD int kedge_compute_check_update(const struct kedge_layout *layout,
                                               const struct kedge_blob_at *update,
                                               const struct kedge_compact *compact, int32_t limit,
                                               struct kedge_diag *reterr);
/* Updates that make groups, in site order. What a tenant with many sites has to say in it is its share, not
 * their number (grouping/quota.h), so each comes with its tenant. */
struct kedge_compute_sites {
    const struct kedge_blob_at *files;
    const uint32_t *tenant; /* place in the spec */
    size_t count;           /* 1 … KEDGE_GRAM_VECTORS_MAX */
};
/* The groups of these updates, by what the spec says of groups, in this round; ret_group has an item for each
 * (KEDGE_GROUP_NONE: left out), *ret_groups the number of groups used: one of all where every update is zero.
 */
KEDGE_NODISCARD int kedge_compute_groups(const struct kedge_layout *layout,
                                         const struct kedge_compute_sites *sites,
                                         const struct kedge_job_spec *spec, uint32_t round,
                                         uint32_t *ret_group, uint32_t *ret_groups,
                                         struct kedge_diag *reterr);
/* Direction of a group (I32 file): the mean of its members' unit updates under weights that keep any tenant
 * at a third of their sum, or at the job's tenant_share_max where that is less. KEDGE_E_NO_DIRECTION: all
 * are zero. */
KEDGE_NODISCARD int kedge_compute_direction(const struct kedge_layout *layout,
                                            const struct kedge_compute_sites *members,
                                            const struct kedge_job_spec *spec, struct kedge_sink sink,
                                            struct kedge_diag *reterr);
/* The same of a group that these updates make; zero where all of them are. */
KEDGE_NODISCARD int kedge_compute_made_direction(const struct kedge_layout *layout,
                                                 const struct kedge_compute_sites *members,
                                                 const struct kedge_job_spec *spec, struct kedge_sink sink,
                                                 struct kedge_diag *reterr);
/* Newcomer: group of the largest cosine. An encrypted update is in memory as a whole meanwhile. */
KEDGE_NODISCARD int kedge_compute_nearest(const struct kedge_layout *layout,
                                          const struct kedge_blob_at *update,
                                          const struct kedge_blob_at *of_groups, size_t groups,
                                          uint32_t *ret_group, double *ret_cosine, struct kedge_diag *reterr);
/* Inter-group mixing; sinks[j] gets group j's model for each trained j, the others none. */
KEDGE_NODISCARD int kedge_compute_mixing(const struct kedge_layout *layout,
                                         const struct kedge_blob_at *of_groups, const bool *trained,
                                         size_t groups, double eta, const struct kedge_sink *sinks,
                                         struct kedge_diag *reterr);

#endif
