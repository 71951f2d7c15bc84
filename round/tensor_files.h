/* Internal to this room: tensor files of one layout, opened and checked, and their values tile by tile. */
#ifndef KEDGE_ROUND_TENSOR_FILES_H
#define KEDGE_ROUND_TENSOR_FILES_H

#include "round/compact_files.h"

enum {
    KEDGEI_TENSORS_TILE_MAX = 65536, /* values of a tile */
    KEDGEI_TENSORS_HELD_MAX = 512,   /* encrypted or compact files whose tiles are in memory at once */
};

struct kedgei_tensors {
    const struct kedge_layout *layout;
    struct kedge_blob_file *files;
    const char **paths;  /* borrowed */
    const void **values; /* where a plain file's values are mapped, or in memory; NULL: the file is encrypted
                            or compact */
    const void **tile;   /* of files that were sought: the tile's first value */
    struct kedgei_compact_file *compact;
    size_t count, sealed_count; /* sealed_count: encrypted or compact */
    size_t compact_count;
    uint64_t start;         /* of the values in an encrypted file's content */
    uint8_t *memory, *held; /* a chunk for each such file, KEDGEI_TENSORS_HELD_MAX at most; held: aligned */
    bool is_shared;         /* files, paths and values are another one's */
};

/* Files must be canonical, of the layout and that type; updates (I32) may be compact instead, all or none.
 * `at` with a stride, so that an array of structures that begin with it serves as well. KEDGE_E_SHAPE,
 * KEDGE_E_FORMAT and errors of kedge_blob_file_open, with the file's name. Close after success. */
KEDGE_NODISCARD int kedgei_tensors_open(const struct kedge_layout *layout, enum kedge_dtype dtype,
                                        const struct kedge_blob_at *at, size_t stride, size_t count,
                                        struct kedgei_tensors *ret, struct kedge_diag *d);
void kedgei_tensors_close(struct kedgei_tensors *t);
/* Of at most `threads` threads so many may read these files at once: 1 where they are compact, for these are
 * read in their order, and not so many that the chunks of encrypted ones take more than 64 MiB. */
unsigned kedgei_tensors_threads(const struct kedgei_tensors *t, unsigned threads);
/* The same files for another thread, with tiles of its own; none of them compact. Close it before `of`.
 * KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedgei_tensors_share(const struct kedgei_tensors *of, struct kedgei_tensors *ret,
                                         struct kedge_diag *d);

/* Values of the tile that begins at `first`: to the end of a chunk where files are encrypted, to a multiple
 * of a chunk's values where they are compact. */
size_t kedgei_tensors_tile(const struct kedgei_tensors *t, size_t first);
/* Sets tile[from … to) to values first … first + n - 1, n a tile's or less; of the others nothing is left. At
 * most KEDGEI_TENSORS_HELD_MAX files. KEDGE_E_CORRUPT and others, with the file's name. */
KEDGE_NODISCARD int kedgei_tensors_seek(struct kedgei_tensors *t, size_t from, size_t to, size_t first,
                                        size_t n, struct kedge_diag *d);

#endif
