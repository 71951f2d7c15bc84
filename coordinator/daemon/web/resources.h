/* Logs as read-only resources, by path: LOG/checkpoint, LOG/tile/…, LOG/tile/entries/…, LOG/blob/<64 hex>,
 * with LOG a tenant's name or "main" (c2sp.org/tlog-tiles, and blobs beside them). Who may read which is
 * decided here, for HTTPS and for the wire protocol alike.
 *
 * An auditor reads all. A tenant reads its own log whole, and of the main chain what main_view.h says:
 * withheld entries are records of length 0. All else that it asks for is not found, in the same words as what
 * does not exist. */
#ifndef KEDGE_COORDINATOR_DAEMON_WEB_RESOURCES_H
#define KEDGE_COORDINATOR_DAEMON_WEB_RESOURCES_H

#include "chain/log/tile.h"
#include "chain/store/blob/blob_file.h"
#include "common/base/bytes.h"
#include "crypto/hash.h"

struct kedge_host;
struct kedge_main_view;
struct kedge_state_log;
struct kedge_tenant;

struct kedge_log_reader {
    uint32_t tenant; /* its handle, unless an auditor */
    bool auditor;
};

enum kedge_resource_kind {
    KEDGE_RESOURCE_CHECKPOINT, /* changes; everything else stays as it is for its reader */
    KEDGE_RESOURCE_TILE,
    KEDGE_RESOURCE_BUNDLE,
    KEDGE_RESOURCE_BLOB,
};

/* Something that the reader may ask for; whether it exists is found out by opening it. A value, good as long
 * as the process. */
struct kedge_resource_ask {
    enum kedge_resource_kind kind;
    const struct kedge_state_log *log;
    const struct kedge_tenant *viewer; /* main: only as far as this tenant sees it; NULL: whole */
    struct kedge_main_view *main_view;
    const char *state;              /* the state folder */
    const struct kedge_buf *pruned; /* main: models that the operator gave up (chain/store/blob/pruned.h) */
    struct kedge_tile tile;
    struct kedge_hash blob;
};

/* Loop thread. KEDGE_E_NOT_FOUND, for every reason alike. */
KEDGE_NODISCARD int kedge_host_resource_ask(const struct kedge_host *h, const struct kedge_log_reader *reader,
                                            struct kedge_view path, struct kedge_resource_ask *ret);

/* Worker threads, from here on. Memory: at most KEDGE_RESOURCE_KEEP_MAX and an entry, for every size. */
enum { KEDGE_RESOURCE_KEEP_MAX = 1024 * 1024 };
struct kedge_resource {
    struct kedge_resource_ask ask;
    uint64_t size;               /* bytes of the whole */
    struct kedge_buf kept;       /* all of it, unless it is a blob or a very long bundle */
    struct kedge_blob_file file; /* of a blob */
};

/* KEDGE_E_NOT_FOUND; KEDGE_E_WITHHELD: a model that the reader may have and the operator gave up;
 * KEDGE_E_CORRUPT, _IO, _NOMEM, …: ours. */
KEDGE_NODISCARD int kedge_resource_open(const struct kedge_resource_ask *ask, struct kedge_resource *ret);
/* len bytes from offset on, all within the size. */
KEDGE_NODISCARD int kedge_resource_read(const struct kedge_resource *r, uint64_t offset, uint8_t *out,
                                        size_t len);
void kedge_resource_close(struct kedge_resource *r);

#endif
