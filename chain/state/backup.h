/* Copies of a whole state folder, keys included, from which a coordinator can go on: `kedge backup` and
 * `kedge restore`. A backup is a state folder with two files more:
 *
 *   backup.json   what it is a copy of, when it was made, how far its logs are
 *   SHA256SUMS    every other file and its digest, as sha256sum(1) writes and checks them
 *
 * A folder without both is none, and they are written last. */
#ifndef KEDGE_CHAIN_STATE_BACKUP_H
#define KEDGE_CHAIN_STATE_BACKUP_H

#include "chain/state/snapshot.h"

#define KEDGE_BACKUP_FILE "backup.json"
#define KEDGE_BACKUP_SUMS "SHA256SUMS"
#define KEDGE_BACKUP_FORMAT "kedge backup 1"

struct kedge_backup {
    char deployment[KEDGE_DEPLOYMENT_MAX + 1];
    uint64_t made_unix_ms;
    uint64_t main_entries; /* of the main chain */
    uint64_t entries;      /* of all logs */
    uint64_t tenants, files, bytes;
};

/* Whether the folder says of itself that it is a backup. */
bool kedge_backup_is(const char *dir);

/* Copies the state folder into `out`, an empty folder, as of one moment (snapshot.h), beside a running
 * coordinator or not. What nobody needs is left out: uploads under way, addresses, sockets. Not durable yet,
 * and no backup before kedge_backup_seal. Damaged files can crash LMDB: run it under kedge_store_guarded. */
KEDGE_NODISCARD int kedge_backup_copy(const char *state, const char *out, struct kedge_diag *reterr);
/* Makes the copy a backup, durably. */
KEDGE_NODISCARD int kedge_backup_seal(const char *out, struct kedge_backup *ret, struct kedge_diag *reterr);

/* KEDGE_E_NOT_FOUND: no backup here; _FORMAT, _CORRUPT: damaged. Only backup.json is looked at. */
KEDGE_NODISCARD int kedge_backup_read(const char *dir, struct kedge_backup *ret, struct kedge_diag *reterr);
/* Copies every file of SHA256SUMS into `out`, an empty folder, and nothing else, each compared with its
 * digest; durable when it returns. KEDGE_E_CORRUPT names the first file that is missing or another. */
KEDGE_NODISCARD int kedge_backup_restore(const char *dir, const char *out, struct kedge_diag *reterr);
/* The marks of a former state folder against those of a backup: KEDGE_OK when no log of it ever signed more
 * than the backup holds; KEDGE_E_SHORTER names the first that did. */
KEDGE_NODISCARD int kedge_backup_check_marks(const char *dir, const char *former, struct kedge_diag *reterr);

/* Copies the blobs that the logs below `out` name, and that are not erased, from the state folder into it.
 * Encrypted ones stay as they are. */
KEDGE_NODISCARD int kedge_backup_put_blobs(const char *state, const struct kedge_snapshot *s, const char *out,
                                           struct kedge_diag *reterr);

#endif
