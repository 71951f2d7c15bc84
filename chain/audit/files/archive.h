/* Records that arrive as a tar archive, plain or compressed with gzip or zstd: unpacked into a private
 * folder, judged there, removed. An archive is somebody's file: nothing outside that folder is touched, no
 * links and no devices are made, and what it may grow to is bounded. */
#ifndef KEDGE_CHAIN_AUDIT_FILES_ARCHIVE_H
#define KEDGE_CHAIN_AUDIT_FILES_ARCHIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/diag.h"
#include "common/base/os/file.h"

struct kedge_archive_limits {
    uint64_t entries; /* files and folders; 0: 16 million */
    uint64_t bytes;   /* unpacked; 0: what the disk has but 256 MiB */
};

struct kedge_unpacked {
    char root[KEDGE_PATH_MAX]; /* the private folder, 0700, in $TMPDIR or /tmp */
    char dir[KEDGE_PATH_MAX];  /* the record in it: root, or the one folder that root holds */
    int keeper, alive;         /* a process that removes root when this one dies; the end of a pipe to it */
};

/* True for a regular file: a record's folder is none. */
bool kedge_archive_is(const char *path);
/* limits NULL: the defaults. Nothing is left after an error, nor when the process is killed before
 * kedge_archive_remove. Call it before there are threads: it forks. KEDGE_E_FORMAT: no such archive, a path
 * that leaves the folder, a link, a name twice; KEDGE_E_TOO_LONG: beyond the limits; _IO, _DISK_FULL, _NOMEM.
 */
KEDGE_NODISCARD int kedge_archive_unpack(const char *path, const struct kedge_archive_limits *limits,
                                         struct kedge_unpacked *ret, struct kedge_diag *reterr);
/* Writes all files and folders below `dir`, in the order of their names and with no times and owners, as a
 * new tar archive: plain, or compressed when `name` ends in ".tar.gz", ".tgz" or ".tar.zst". `path` is where
 * it is written. KEDGE_E_ARG: `name` ends otherwise. */
KEDGE_NODISCARD int kedge_archive_pack(const char *dir, const char *name, const char *path,
                                       struct kedge_diag *reterr);
/* Whether it takes such a name. */
bool kedge_archive_is_name(const char *name);
/* Removes what was unpacked. */
KEDGE_NODISCARD int kedge_archive_remove(struct kedge_unpacked *u, struct kedge_diag *reterr);

#endif
