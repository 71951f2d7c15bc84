/* A store with keys, for tests of encrypted blobs: content that is the same everywhere, files changed by
 * hand. */
#ifndef KEDGE_TESTS_CONTRACT_SEALED_H
#define KEDGE_TESTS_CONTRACT_SEALED_H

#include "chain/store/blob/blobs.h"

enum { CHUNK = KEDGE_BLOB_CHUNK, MOST = 3 * CHUNK + 1 };

/* The folder, its keys, and room for what was put in, what lies on the disk, and what comes out. */
extern char dir[64], keys_dir[80];
extern uint8_t content[MOST], stored[MOST + 1024], out[MOST];
extern const struct kedge_id site, job, other_job;

struct kedge_blobs *open_blobs(void);
struct kedge_blobs *set_up(void);
void tear_down(struct kedge_blobs *b);
struct kedge_hash digest_of(const uint8_t *bytes, size_t len);
void write_pieces(struct kedge_upload *u, const uint8_t *bytes, size_t from, size_t len, size_t piece);
struct kedge_hash upload(struct kedge_blobs *b, const struct kedge_id *key, size_t len, size_t piece);
size_t read_stored(const char *path, uint8_t *bytes, size_t max);
void write_stored(const char *path, const uint8_t *bytes, size_t len);

#endif
