/* STATE/tenants/T/refused/: what the sites of T sent and the coordinator refused, for as long as it is kept.
 *   SITE.HEX.refusal   the coordinator's signed statement "refused"; HEX: SHA-256 of the site's envelope
 *   SITE.HEX.envelope  the site's signed statement
 *   SITE.HEX.update    the refused file, where it came whole; HEX: its SHA-256 (encrypted as uploads are)
 *   SITE.HEX.shown     those files about HEX were listed for somebody: they may go when their time is over
 * A site keeps the first three of its own in SITE/refusals/. */
#ifndef KEDGE_CHAIN_STATE_REFUSED_H
#define KEDGE_CHAIN_STATE_REFUSED_H

#include "chain/statement/statement.h"
#include "common/base/os/kept.h"

#define KEDGE_REFUSED_DIR "refused"
#define KEDGE_REFUSED_REFUSAL "refusal"
#define KEDGE_REFUSED_ENVELOPE "envelope"
#define KEDGE_REFUSED_UPDATE "update"
#define KEDGE_REFUSED_SHOWN "shown"

/* Bounds of the coordinator, for each site and each tenant; bytes of files are in config.json. */
enum {
    KEDGE_REFUSED_PER_SITE = 32,
    KEDGE_REFUSED_PER_TENANT = 1024,
    KEDGE_REFUSED_FILES_PER_SITE = 4,
};

/* The tenant's folder in a state folder. Errors as kedge_state_path. */
KEDGE_NODISCARD int kedge_refused_dir(char out[KEDGE_PATH_MAX], struct kedge_diag *reterr, const char *state,
                                      const struct kedge_id *tenant);

/* One refusal in the folder. Borrowed. */
struct kedge_refused_row {
    const char *path;
    bool is_refusal; /* what follows is there; else the file is damaged, or something else */
    struct kedge_statement st;
    bool has_envelope, has_update, was_shown;
    uint64_t bytes, stored_ms; /* of the update's file, as it lies there, and when it came there */
};
/* Another result than KEDGE_OK ends the walk with it. */
typedef int kedge_refused_visit(void *arg, const struct kedge_refused_row *row);
/* Every refusal, oldest first. Signatures are not checked. An absent folder is an empty one. */
KEDGE_NODISCARD int kedge_refused_each(const char *dir, kedge_refused_visit *visit, void *arg,
                                       struct kedge_diag *reterr);
/* Somebody has been shown the row. */
KEDGE_NODISCARD int kedge_refused_mark(const char *dir, const struct kedge_refused_row *row);
/* Removes the update files that refusals of this job name. */
KEDGE_NODISCARD int kedge_refused_erase_job(const char *dir, const struct kedge_id *job,
                                            struct kedge_diag *reterr);
/* Is there such a file? True also when the folder cannot be read. */
bool kedge_refused_has_job(const char *dir, const struct kedge_id *job);

#endif
