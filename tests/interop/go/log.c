/* Kedge's half of the comparison with Go's tlog (check/): makes random logs with the real ledger, and judges
 * what Go sends.
 *
 *   interop_log make SEED SIZE all|some    the log on stdout
 *   interop_log judge                      cases on stdin, a byte 0 or 1 for each on stdout
 *
 * Numbers are big-endian; every record begins with its letter. What make writes: K u16 vkey · E u32 entry ·
 * C u32 note · W u16 vkey u64 time u32 cosigned note · R size root · I index size path · P old_size size path
 * · T u16 path u32 bytes. Paths of proofs are u8 count and hashes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/log/checkpoint.h"
#include "chain/log/cosignature.h"
#include "chain/store/ledger_tiles.h"
#include "common/base/os/file.h"
#include "common/base/rng.h"
#include "common/base/text.h"
#include "tests/fixtures/kv.h"

enum { CASES_MAX = 1 << 30, SOME = 1500, LONG_ONE_IN = 500 };

static const char origin[] = "interop.example/log", witness[] = "interop.example/witness";

static void must(int err, const char *what)
{
    if (err) {
        fprintf(stderr, "interop_log: %s: %s\n", what, kedge_strerror(err));
        exit(1);
    }
}

static void write_out(struct kedge_buf *b)
{
    must(b->err, "output");
    if (fwrite(b->ptr, 1, b->len, stdout) != b->len) {
        exit(1); /* nobody reads */
    }
    kedge_buf_clear(b);
}

/* ---- make ---- */

struct maker {
    struct kedge_rng rng;
    struct kedge_kv *kv;
    struct kedge_ledger *l;
    struct kedge_key_pair key, witness;
    struct kedge_buf out;
};

static void put_bytes(struct kedge_buf *b, uint8_t letter, struct kedge_view bytes)
{
    kedge_buf_put_u8(b, letter);
    kedge_buf_put_u32(b, (uint32_t)bytes.len);
    kedge_buf_put(b, bytes.ptr, bytes.len);
}

static void put_path(struct maker *m, uint8_t letter, uint64_t a, uint64_t b, const struct kedge_path *path)
{
    kedge_buf_put_u8(&m->out, letter);
    kedge_buf_put_u64(&m->out, a);
    kedge_buf_put_u64(&m->out, b);
    kedge_buf_put_u8(&m->out, (uint8_t)path->count);
    kedge_buf_put(&m->out, path->hashes, path->count * sizeof path->hashes[0]);
    write_out(&m->out);
}

static void put_inclusion(struct maker *m, uint64_t index, uint64_t size)
{
    struct kedge_path path;
    must(kedge_ledger_inclusion(m->l, index, size, &path), "inclusion");
    put_path(m, 'I', index, size, &path);
}

static void put_consistency(struct maker *m, uint64_t old_size, uint64_t size)
{
    struct kedge_path path;
    must(kedge_ledger_consistency(m->l, old_size, size, &path), "consistency");
    put_path(m, 'P', old_size, size, &path);
}

static void put_root(struct maker *m, uint64_t size)
{
    struct kedge_hash root;
    must(kedge_ledger_root(m->l, size, &root), "root");
    kedge_buf_put_u8(&m->out, 'R');
    kedge_buf_put_u64(&m->out, size);
    kedge_buf_put(&m->out, root.b, sizeof root.b);
    write_out(&m->out);
}

static void make_key(struct maker *m, struct kedge_key_pair *ret)
{
    struct kedge_seed seed;
    for (size_t i = 0; i < sizeof seed.b; i++) {
        seed.b[i] = (uint8_t)kedge_rng_u64(&m->rng);
    }
    kedge_key_from_seed(&seed, ret);
}

static void put_vkey(struct maker *m, uint8_t letter, const char *name, enum kedge_key_type type,
                     const struct kedge_public_key *key)
{
    struct kedge_vkey vkey;
    struct kedge_buf text;
    must(kedge_vkey_make(kedge_view_str(name), type, key, &vkey), "vkey");
    kedge_buf_init(&text, KEDGE_VKEY_MAX);
    kedge_vkey_encode(&vkey, &text);
    kedge_buf_put_u8(&m->out, letter);
    kedge_buf_put_u16(&m->out, (uint16_t)text.len);
    kedge_buf_put(&m->out, text.ptr, text.len);
    kedge_buf_deinit(&text);
}

static void open_log(struct maker *m)
{
    make_key(m, &m->key);
    make_key(m, &m->witness);
    must(kedge_kv_memory_new(&m->kv), "store");
    struct kedge_ledger_options options = {.origin = origin, .key = &m->key, .create = true};
    must(kedge_ledger_open(m->kv, &options, &m->l, NULL), "ledger");
    put_vkey(m, 'K', origin, KEDGE_KEY_ED25519, &m->key.public);
    write_out(&m->out);
}

static void put_cosigned(struct maker *m, struct kedge_view note)
{
    struct kedge_note parsed;
    struct kedge_buf line, cosigned;
    uint64_t time_s = kedge_rng_u64(&m->rng) >> 1 >> kedge_rng_below(&m->rng, 63);
    kedge_buf_init(&line, KEDGE_COSIGNATURE_LINE_MAX);
    kedge_buf_init(&cosigned, KEDGE_NOTE_MAX);
    must(kedge_note_parse(note, &parsed), "note");
    must(kedge_cosignature_make(parsed.text, kedge_view_str(witness), &m->witness, time_s, &line), "witness");
    must(kedge_note_add_line(note, kedge_buf_view(&line), &cosigned), "cosigned note");
    put_vkey(m, 'W', witness, KEDGE_KEY_COSIGNATURE, &m->witness.public);
    kedge_buf_put_u64(&m->out, time_s);
    kedge_buf_put_u32(&m->out, (uint32_t)cosigned.len);
    kedge_buf_put(&m->out, cosigned.ptr, cosigned.len);
    kedge_buf_deinit(&line);
    kedge_buf_deinit(&cosigned);
}

static void put_checkpoint(struct maker *m)
{
    struct kedge_buf note;
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    must(kedge_ledger_checkpoint(m->l, &note, NULL), "checkpoint");
    put_bytes(&m->out, 'C', kedge_buf_view(&note));
    put_cosigned(m, kedge_buf_view(&note));
    kedge_buf_deinit(&note);
    write_out(&m->out);
}

/* Random bytes: short mostly, now and then as long as an entry may be. */
static void append(struct maker *m, size_t count)
{
    struct kedge_ledger_append items[KEDGE_APPEND_MAX] = {0};
    struct kedge_buf bytes[KEDGE_APPEND_MAX];
    uint64_t indexes[KEDGE_APPEND_MAX];
    for (size_t i = 0; i < count; i++) {
        bool is_long = kedge_rng_below(&m->rng, LONG_ONE_IN) == 0;
        size_t len = is_long ? KEDGE_ENTRY_MAX : 1 + (size_t)kedge_rng_below(&m->rng, 80);
        kedge_buf_init(&bytes[i], KEDGE_ENTRY_MAX);
        for (size_t k = 0; k < len; k++) {
            kedge_buf_put_u8(&bytes[i], (uint8_t)kedge_rng_u64(&m->rng));
        }
        must(bytes[i].err, "entry");
        items[i].entry = kedge_buf_view(&bytes[i]);
        put_bytes(&m->out, 'E', items[i].entry);
    }
    must(kedge_ledger_append(m->l, items, count, indexes, NULL, NULL), "append");
    for (size_t i = 0; i < count; i++) {
        kedge_buf_deinit(&bytes[i]);
    }
    write_out(&m->out);
}

static void put_tile(struct maker *m, enum kedge_tile_kind kind, unsigned level, uint64_t index)
{
    uint16_t width = kedge_tile_width(level, index, kedge_ledger_size(m->l));
    struct kedge_tile tile = {kind, (uint8_t)level, index, width};
    struct kedge_buf bytes;
    char path[KEDGE_TILE_PATH_MAX];
    kedge_tile_path(&tile, path);
    kedge_buf_init(&bytes, KEDGE_BUNDLE_BYTES_MAX);
    must(kedge_ledger_resource(m->l, &tile, NULL, NULL, &bytes), path);
    kedge_buf_put_u8(&m->out, 'T');
    kedge_buf_put_u16(&m->out, (uint16_t)strlen(path));
    kedge_buf_put_str(&m->out, path);
    kedge_buf_put_u32(&m->out, (uint32_t)bytes.len);
    kedge_buf_put(&m->out, bytes.ptr, bytes.len);
    kedge_buf_deinit(&bytes);
    write_out(&m->out);
}

static void put_tiles(struct maker *m, uint64_t size)
{
    for (uint64_t i = 0; kedge_tile_width(0, i, size) > 0; i++) {
        put_tile(m, KEDGE_TILE_ENTRIES, 0, i);
    }
    for (unsigned level = 0; level < KEDGE_TILE_LEVELS; level++) {
        for (uint64_t i = 0; kedge_tile_width(level, i, size) > 0; i++) {
            put_tile(m, KEDGE_TILE_HASHES, level, i);
        }
    }
}

static void put_proofs(struct maker *m, uint64_t size, bool all)
{
    for (uint64_t n = 0; all && n <= size; n++) {
        put_root(m, n);
        for (uint64_t i = 0; i < n; i++) {
            put_inclusion(m, i, n);
            put_consistency(m, i + 1, n);
        }
    }
    for (unsigned i = 0; !all && i < SOME; i++) {
        uint64_t n = 1 + kedge_rng_below(&m->rng, size);
        put_root(m, n);
        put_inclusion(m, kedge_rng_below(&m->rng, n), n);
        uint64_t old_size = 1 + kedge_rng_below(&m->rng, n);
        put_root(m, old_size);
        put_consistency(m, old_size, n);
    }
}

static void make(uint64_t seed, uint64_t size, bool all)
{
    struct maker m;
    memset(&m, 0, sizeof m);
    kedge_rng_init(&m.rng, seed, KEDGE_RNG_TEST, size, all);
    kedge_buf_init(&m.out, CASES_MAX);
    open_log(&m);
    put_checkpoint(&m);
    while (kedge_ledger_size(m.l) < size) {
        uint64_t left = size - kedge_ledger_size(m.l);
        uint64_t count = all ? 1 : 1 + kedge_rng_below(&m.rng, KEDGE_APPEND_MAX);
        append(&m, (size_t)(count < left ? count : left));
        put_checkpoint(&m);
    }
    put_proofs(&m, size, all);
    put_tiles(&m, size);
    kedge_ledger_close(m.l);
    kedge_kv_close(m.kv);
    kedge_buf_deinit(&m.out);
}

/* ---- judge ---- */

static struct kedge_hash read_hash(struct kedge_reader *r)
{
    struct kedge_hash h = {{0}};
    struct kedge_view v = kedge_read_bytes(r, sizeof h.b);
    if (v.len == sizeof h.b) {
        memcpy(h.b, v.ptr, sizeof h.b);
    }
    return h;
}

/* I index size leaf root path, P old_size size old_root root path; a path is u8 count and hashes. */
static bool judge_proof(struct kedge_reader *r, bool inclusion)
{
    uint64_t a = kedge_read_u64(r), size = kedge_read_u64(r);
    struct kedge_hash first = read_hash(r), root = read_hash(r), path[256];
    size_t count = kedge_read_u8(r);
    for (size_t i = 0; i < count; i++) {
        path[i] = read_hash(r);
    }
    int err = inclusion ? kedge_inclusion_verify(a, size, &first, path, count, &root)
                        : kedge_consistency_verify(a, size, &first, &root, path, count);
    return err == KEDGE_OK;
}

/* N u16 vkey u32 note */
static bool judge_note(struct kedge_reader *r)
{
    struct kedge_vkey vkey;
    static struct kedge_note note;
    struct kedge_view key = kedge_read_bytes(r, kedge_read_u16(r));
    struct kedge_view bytes = kedge_read_bytes(r, kedge_read_u32(r));
    return kedge_vkey_decode(key, &vkey) == KEDGE_OK && kedge_note_parse(bytes, &note) == KEDGE_OK
           && kedge_note_verify(&note, &vkey, 1, NULL, NULL) == KEDGE_OK;
}

/* T u16 path */
static bool judge_path(struct kedge_reader *r)
{
    struct kedge_tile tile;
    return kedge_tile_parse(kedge_read_bytes(r, kedge_read_u16(r)), &tile) == KEDGE_OK;
}

static void judge(void)
{
    struct kedge_buf cases, verdicts;
    kedge_buf_init(&cases, CASES_MAX);
    kedge_buf_init(&verdicts, CASES_MAX);
    must(kedge_stdin_read(&cases, NULL), "cases");
    struct kedge_reader r = kedge_reader_of(kedge_buf_view(&cases));
    while (r.rest.len > 0 && !r.failed) {
        uint8_t letter = kedge_read_u8(&r);
        bool ok = letter == 'N'   ? judge_note(&r)
                  : letter == 'T' ? judge_path(&r)
                                  : judge_proof(&r, letter == 'I');
        kedge_buf_put_u8(&verdicts, ok);
    }
    must(kedge_reader_end(&r), "cases");
    write_out(&verdicts);
    kedge_buf_deinit(&cases);
    kedge_buf_deinit(&verdicts);
}

int main(int argc, char **argv)
{
    uint64_t seed, size;
    must(kedge_crypto_init(), "libsodium");
    if (argc == 2 && strcmp(argv[1], "judge") == 0) {
        judge();
    } else if (argc == 5 && strcmp(argv[1], "make") == 0
               && kedge_decimal_decode(kedge_view_str(argv[2]), INT64_MAX, &seed) == KEDGE_OK
               && kedge_decimal_decode(kedge_view_str(argv[3]), 1 << 20, &size) == KEDGE_OK) {
        make(seed, size, strcmp(argv[4], "all") == 0);
    } else {
        fprintf(stderr, "usage: interop_log make SEED SIZE all|some | judge\n");
        return 2;
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
