/* What many stores that are opened one after the other must make durable, with one sync of each file system
 * in place of four syncs of each store. Of this room but for the two functions of kv.h. */
#ifndef KEDGE_CHAIN_STORE_KV_KV_TOGETHER_H
#define KEDGE_CHAIN_STORE_KV_KV_TOGETHER_H

#include <stdbool.h>

/* A number above 0: what the file or folder at `path` holds now is made durable by
 * kedge_kv_lmdb_sync_together_end. 0 where no such time has begun, where the path cannot be looked at, and on
 * file systems of which it is not known that one call syncs them: then the caller syncs it. Any thread. */
unsigned kedgei_sync_together(const char *path);
/* Whether that has been done. True of 0. */
bool kedgei_synced_together(unsigned number);

#endif
