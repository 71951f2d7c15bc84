/* Files whose values are read side by side. A plain file is mapped and costs nothing; an encrypted one has
 * no place where its values lie and is decrypted by tiles, a chunk of the file at a time, because a chunk
 * is what is authenticated as a whole. A compact one is unpacked block by block into the same memory. So
 * tiles end where chunks of the encrypted files end, and all files must have the same header length:
 * canonical files of one layout do. */
#include "round/tensor_files.h"

#include <string.h>

#include "common/base/limits.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/tensor/safetensors.h"

enum { WORD = 4, LINE = 64, CHUNK_VALUES = KEDGE_BLOB_CHUNK / WORD };
enum { CHUNKS_MAX = (64 << 20) / KEDGE_BLOB_CHUNK }; /* of all threads' encrypted files together */
_Static_assert((int)CHUNK_VALUES % (int)KEDGE_COMPACT_BLOCK == 0, "a chunk holds whole blocks");

/* The header of an encrypted file, into head. The length that the first eight bytes state is bounded
 * before memory is taken for it. */
static int read_head(const struct kedge_blob_file *f, struct kedge_buf *head, struct kedge_diag *d)
{
    uint8_t first[8];
    uint64_t start = 0;
    if (f->size < sizeof first) {
        return KEDGE_E_FORMAT;
    }
    KEDGE_TRY(kedge_blob_file_read(f, 0, first, sizeof first));
    KEDGE_TRY(kedge_safetensors_data_start(first, &start, d));
    if (start > f->size) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "shorter than its header");
    }
    KEDGE_TRY(kedge_buf_reserve(head, (size_t)start));
    KEDGE_TRY(kedge_blob_file_read(f, 0, head->ptr, (size_t)start));
    head->len = (size_t)start;
    return KEDGE_OK;
}

/* Nothing of a file is used before its header is known to be the canonical one of this layout: from then on
 * a value's place follows from its number alone. */
static int check_tensors(struct kedgei_tensors *t, size_t i, enum kedge_dtype dtype, struct kedge_diag *d)
{
    const struct kedge_blob_file *f = &t->files[i];
    struct kedge_view view = kedge_view_of(f->map.ptr, f->map.len);
    struct kedge_layout got;
    struct kedge_buf head;
    uint64_t start;
    int err = KEDGE_OK;
    kedge_buf_init(&head, KEDGE_TENSOR_HEADER_MAX + 8);
    if (f->is_sealed) {
        err = read_head(f, &head, d);
        view = kedge_buf_view(&head);
    }
    if (!err) {
        err = kedge_safetensors_read(view, f->size, KEDGE_SAFETENSORS_CANONICAL, &got, &start, d);
    } else if (d && !d->text[0]) {
        (void)kedge_diag_set(d, err, "%s", kedge_strerror(err));
    }
    if (!err) {
        err = kedge_layout_check_same(t->layout, &got, dtype, d);
        kedge_layout_deinit(&got);
    }
    kedge_buf_deinit(&head);
    if (err) {
        return err;
    }
    t->values[i] = f->is_sealed ? NULL : f->map.ptr + start;
    t->start = f->is_sealed ? start : t->start; /* canonical headers of one layout have one length */
    t->sealed_count += f->is_sealed;
    return KEDGE_OK;
}

static int check_file(struct kedgei_tensors *t, size_t i, enum kedge_dtype dtype, struct kedge_diag *d)
{
    int err = KEDGE_OK;
    if (dtype == KEDGE_DTYPE_I32) {
        err = kedgei_compact_open(t->layout, &t->files[i], &t->compact[i], d);
    }
    if (!err && t->compact[i].kind == KEDGE_COMPACT_NONE) {
        err = check_tensors(t, i, dtype, d);
    } else if (!err) {
        t->compact_count++;
        t->sealed_count++;
    }
    return err ? kedge_diag_wrap(d, err, "%s", t->paths[i]) : KEDGE_OK;
}

static size_t held_count(const struct kedgei_tensors *t)
{
    return t->sealed_count < KEDGEI_TENSORS_HELD_MAX ? t->sealed_count : KEDGEI_TENSORS_HELD_MAX;
}

/* Memory for a chunk of each file that is not mapped. */
static int take_tiles(struct kedgei_tensors *t, struct kedge_diag *d)
{
    if (t->sealed_count == 0) {
        return KEDGE_OK;
    }
    t->memory = kedge_mem_new(held_count(t) * KEDGE_BLOB_CHUNK + LINE, 1);
    if (!t->memory) {
        return kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory for the tiles of %zu files", held_count(t));
    }
    t->held = t->memory + (LINE - (uintptr_t)t->memory % LINE) % LINE;
    return KEDGE_OK;
}

int kedgei_tensors_open(const struct kedge_layout *layout, enum kedge_dtype dtype,
                        const struct kedge_blob_at *at, size_t stride, size_t count,
                        struct kedgei_tensors *ret, struct kedge_diag *d)
{
    struct kedgei_tensors t = {.layout = layout,
                               .files = kedge_mem_new(count, sizeof *t.files),
                               .paths = kedge_mem_new(count, sizeof *t.paths),
                               .values = kedge_mem_new(count, sizeof *t.values),
                               .tile = kedge_mem_new(count, sizeof *t.tile),
                               .compact = kedge_mem_new(count, sizeof *t.compact)};
    int err = t.files && t.paths && t.values && t.tile && t.compact
                  ? KEDGE_OK
                  : kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory for %zu files", count);
    for (size_t i = 0; i < count && !err; i++) {
        const struct kedge_blob_at *file =
            (const struct kedge_blob_at *)(const void *)((const char *)at + i * stride);
        t.paths[i] = file->path;
        if (file->values) { /* in memory: no file, of which nothing is closed */
            t.values[i] = file->values;
            t.files[i] = (struct kedge_blob_file){.fd = -1};
            t.count++;
            continue;
        }
        err = kedge_blob_file_open(file, KEDGE_BLOB_MAP, &t.files[i], d);
        if (!err) {
            t.count++; /* to be closed, whatever it is */
            err = check_file(&t, i, dtype, d);
        }
    }
    err = err ? err : take_tiles(&t, d);
    if (err) {
        kedgei_tensors_close(&t);
        return err;
    }
    *ret = t;
    return KEDGE_OK;
}

unsigned kedgei_tensors_threads(const struct kedgei_tensors *t, unsigned threads)
{
    const size_t most = t->compact_count > 0   ? 1
                        : t->sealed_count == 0 ? threads
                                               : CHUNKS_MAX / held_count(t);
    return threads < most ? threads : (unsigned)most;
}

int kedgei_tensors_share(const struct kedgei_tensors *of, struct kedgei_tensors *ret, struct kedge_diag *d)
{
    struct kedgei_tensors t = *of;
    KEDGE_ASSERT(of->compact_count == 0);
    t.is_shared = true;
    t.memory = t.held = NULL;
    t.tile = kedge_mem_new(t.count + 1, sizeof *t.tile);
    int err = t.tile ? take_tiles(&t, d)
                     : kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory for the tiles of %zu files", t.count);
    if (err) {
        kedgei_tensors_close(&t);
        return err;
    }
    *ret = t;
    return KEDGE_OK;
}

void kedgei_tensors_close(struct kedgei_tensors *t)
{
    for (size_t i = 0; i < t->count && !t->is_shared; i++) {
        kedgei_compact_close(&t->compact[i]);
        kedge_blob_file_close(&t->files[i]);
    }
    if (!t->is_shared) {
        kedge_mem_free(t->compact);
        kedge_mem_free(t->files);
        kedge_mem_free(t->paths);
        kedge_mem_free(t->values);
    }
    kedge_mem_free(t->tile);
    kedge_mem_free(t->memory);
    *t = (struct kedgei_tensors){.count = 0};
}

/* A tile never crosses the end of a chunk: then each encrypted file costs one decryption for a tile, into
 * memory of one chunk. Compact files are cut at whole blocks instead, at the same places for all of them. */
size_t kedgei_tensors_tile(const struct kedgei_tensors *t, size_t first)
{
    size_t most = KEDGEI_TENSORS_TILE_MAX;
    if (t->compact_count > 0) { /* whole blocks */
        most = CHUNK_VALUES - first % CHUNK_VALUES;
    } else if (t->sealed_count > 0) {
        most = (size_t)(KEDGE_BLOB_CHUNK - (t->start + (uint64_t)first * WORD) % KEDGE_BLOB_CHUNK) / WORD;
    }
    uint64_t left = t->layout->values_count - first;
    return left < most ? (size_t)left : most;
}

/* Sites that sent the same bytes share a tile. It saves decryption where a simulation or a test gives many
 * sites one update, and is safe because tiles are only read. */
int kedgei_tensors_seek(struct kedgei_tensors *t, size_t from, size_t to, size_t first, size_t n,
                        struct kedge_diag *d)
{
    size_t held = 0;
    for (size_t i = from; i < to; i++) {
        if (t->values[i]) {
            t->tile[i] = (const uint8_t *)t->values[i] + first * WORD;
            continue;
        }
        if (i > from && strcmp(t->paths[i], t->paths[i - 1]) == 0) { /* sites that sent the same */
            t->tile[i] = t->tile[i - 1];
            continue;
        }
        KEDGE_ASSERT(held < KEDGEI_TENSORS_HELD_MAX);
        uint8_t *out = t->held + held++ * KEDGE_BLOB_CHUNK;
        int err = t->compact[i].kind != KEDGE_COMPACT_NONE
                      ? kedgei_compact_read(t->layout, &t->files[i], &t->compact[i], first, n,
                                            (int32_t *)(void *)out)
                      : kedge_blob_file_read(&t->files[i], t->start + (uint64_t)first * WORD, out, n * WORD);
        if (err) {
            return kedge_diag_set(d, err, "%s: %s", t->paths[i], kedge_strerror(err));
        }
        t->tile[i] = out;
    }
    return KEDGE_OK;
}
