/* What a site keeps of a job from one of its trainings to the next: vectors with a name each.
 *
 *   control    the control variate of SCAFFOLD, int32 in units of the job's scale
 *   residual   what compression has not sent of the updates so far (error feedback), int32 likewise
 *   head       the tensors of the model that are not shared (FedPer, FedRep), float
 *   personal   the site's own model of Ditto, float
 *
 * A kept vector changes with an update, and only if the coordinator accepts that update: then the server has
 * what belongs to the change. A crash can come at any moment in between, so there are two places for each
 * vector, and each file says which update it belongs to:
 *
 *   SITE/kept/JOB/NAME        the vector in force, or a former one that is not yet replaced
 *   SITE/kept/JOB/NAME.next   the one that belongs to the update signed last; durable before that is signed
 *
 *   SITE/kept/JOB/NAME.work   what a training changes: mapped, so that a vector may be larger than memory; it
 *                             becomes NAME.next, or goes
 *
 * A table, part of SITE/memory, says for each job which update counts: the last one with a receipt
 * (docs/modules/client-daemon.md). What belongs to another update is written over. */
#ifndef KEDGE_CLIENT_DAEMON_UPDATE_KEPT_H
#define KEDGE_CLIENT_DAEMON_UPDATE_KEPT_H

#include "client/core/site.h"
#include "common/base/diag.h"
#include "common/base/os/file.h"
#include "common/tensor/layout.h"

/* ---- which update counts; pure ---- */

enum { KEDGE_KEPT_JOBS_MAX = 16 };

struct kedge_kept_row {
    struct kedge_id job;
    struct kedge_site_digest accepted; /* the last update with a receipt; zero: none, nothing is kept */
    struct kedge_site_digest pending;  /* signed last, its receipt not yet seen; zero: none */
};
/* The jobs trained for last; the oldest first. */
struct kedge_kept_table {
    uint32_t count;
    struct kedge_kept_row items[KEDGE_KEPT_JOBS_MAX];
};

/* This update was signed for the job. */
void kedge_kept_signed(struct kedge_kept_table *t, const struct kedge_id *job,
                       const struct kedge_site_digest *update);
/* A receipt came; once more does no harm. Updates of jobs that keep nothing change nothing. */
void kedge_kept_accepted(struct kedge_kept_table *t, const struct kedge_id *job,
                         const struct kedge_site_digest *update);
/* The update that the vectors in force belong to; zero: there are none. */
struct kedge_site_digest kedge_kept_in_force(const struct kedge_kept_table *t, const struct kedge_id *job);

/* ---- the vectors; on the work thread ---- */

/* One of them, of one training. */
struct kedge_kept {
    const char *name; /* static */
    uint64_t count;
    uint32_t group; /* whose model was trained when it was kept */
    bool is_new;    /* there was none: the values are zero */
    uint8_t *file;  /* the map of NAME.work, and in it */
    void *values;   /* int32_t or float, each of 4 bytes */
    int fd;
    char work[KEDGE_PATH_MAX]; /* "": it is NAME.next by now */
};

/* Reads the vector that belongs to the update `in_force` (zero: none) into a file of its own, for which there
 * is room on the disk from then on. dir: SITE. KEDGE_E_NOT_FOUND: there is no such file; KEDGE_E_CORRUPT: it
 * is damaged; KEDGE_E_DISK_FULL; KEDGE_E_IO. Close after success, before it is opened again. */
KEDGE_NODISCARD int kedge_kept_open(const char *dir, const struct kedge_id *job, const char *name,
                                    const struct kedge_site_digest *in_force, uint64_t count,
                                    struct kedge_kept *ret, struct kedge_diag *reterr);
/* The same of a vector that nothing depends on: where it is missing or damaged, the log says so and the site
 * begins anew. */
KEDGE_NODISCARD int kedge_kept_open_or_begin(const char *dir, const struct kedge_id *job, const char *name,
                                             const struct kedge_site_digest *in_force, uint64_t count,
                                             struct kedge_kept *ret, struct kedge_diag *reterr);
/* From now on it is of a training of this group's model; what another group's left is not carried over. */
void kedge_kept_set_group(struct kedge_kept *k, uint32_t group);
/* Makes what is now in `values` and `group` durable as what belongs to this update. Afterwards the values can
 * be read and no longer changed. */
KEDGE_NODISCARD int kedge_kept_write(const char *dir, const struct kedge_id *job,
                                     const struct kedge_site_digest *update, struct kedge_kept *k,
                                     struct kedge_diag *reterr);
void kedge_kept_close(struct kedge_kept *k);
/* Before anything is opened: removes each NAME.work, of whatever job, that a killed process has left in SITE.
 * They are as long as models, and the job may never come again. */
void kedge_kept_sweep(const char *dir);

/* ---- as model files: canonical safetensors, F32 ---- */

/* Writes the values to such a file, whole or not at all: a copy for a trainer, not synced. Where the vector
 * is new there is no file then. */
KEDGE_NODISCARD int kedge_kept_to_model(const struct kedge_kept *k, const struct kedge_layout *layout,
                                        const char *path, struct kedge_diag *reterr);
/* Takes the values from one. KEDGE_E_NOT_FOUND: there is none; KEDGE_E_FORMAT, KEDGE_E_SHAPE. */
KEDGE_NODISCARD int kedge_kept_from_model(struct kedge_kept *k, const struct kedge_layout *layout,
                                          const char *path, struct kedge_diag *reterr);

#endif
