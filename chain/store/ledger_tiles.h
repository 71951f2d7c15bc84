/* A ledger as c2sp.org/tlog-tiles resources: what a web server or an export hands out as files. Readers'
 * functions, from any thread beside the writer.
 *
 * Nothing is given beyond the newest signed checkpoint (the newest stored one for a read-only handle), and
 * nothing that the tree does not vouch for: a tile is hashed up to its parent or to the peaks of the tree,
 * an entry to its tile, before a byte of it goes out. */
#ifndef KEDGE_CHAIN_STORE_LEDGER_TILES_H
#define KEDGE_CHAIN_STORE_LEDGER_TILES_H

#include "chain/log/note.h"
#include "chain/log/tile.h"
#include "chain/store/ledger.h"

/* Appends the first `width` (1…256) hashes of a tile, 32 bytes each. Any width up to what the checkpoint's
 * tree has is there, so that a client finds the partial tile of every checkpoint it may hold.
 * KEDGE_E_NOT_FOUND: beyond that; KEDGE_E_CORRUPT: the tile is not the tree's; KEDGE_E_TOO_LONG: ret's max.
 */
KEDGE_NODISCARD int kedge_ledger_tile(struct kedge_ledger *l, unsigned level, uint64_t index, unsigned width,
                                      struct kedge_buf *ret);

/* Whether the reader may have the entry; the view is valid during the call. Must not append. */
typedef bool kedge_ledger_may_read(void *arg, uint64_t index, struct kedge_view entry);
/* Appends the first `width` records of an entry bundle; entries that may_read (NULL: all may be read)
 * refuses become records of length 0. Errors as kedge_ledger_tile; up to KEDGE_BUNDLE_BYTES_MAX bytes. */
KEDGE_NODISCARD int kedge_ledger_bundle(struct kedge_ledger *l, uint64_t index, unsigned width,
                                        kedge_ledger_may_read *may_read, void *arg, struct kedge_buf *ret);

/* The resource that a path names: a tile or, by may_read, a bundle. */
KEDGE_NODISCARD int kedge_ledger_resource(struct kedge_ledger *l, const struct kedge_tile *tile,
                                          kedge_ledger_may_read *may_read, void *arg, struct kedge_buf *ret);

/* The key that the log's checkpoints are verified by, as the store was opened with. KEDGE_E_KEY. */
KEDGE_NODISCARD int kedge_ledger_vkey(const struct kedge_ledger *l, struct kedge_vkey *ret);

#endif
