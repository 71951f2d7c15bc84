/* The child writes records into the file and a head into the pipe that tells how many. The parent
 * believes neither: it reads within what is there.
 *
 * Reading LMDB's mapped file is the one dangerous step of an audit, since a damaged page can crash or
 * loop. It is done in a child process with a time limit; the child also runs the full check of the store,
 * while it has it open. The parent maps the file that the child wrote and reads it within its bounds. */
#include "chain/audit/base/spool.h"

#include <string.h>
#include <unistd.h>

#include "chain/store/blob/guard.h"
#include "chain/store/checkpoint_form.h"
#include "chain/store/entry_form.h"
#include "common/base/os/file.h"
#include "common/base/try.h"

enum {
    HEAD_MAX = 64 * 1024,  /* of the message */
    WRITE_SIZE = 1 << 20,  /* bytes that are written at once */
    RECORD_LEAST = 13,     /* kind, number, length */
    WITHHELD_MAX = 1 << 30 /* bytes of indexes */
};

/* ---- the child ----
 * Message: 32 bytes salted id, u8 is copy, u8 damaged, u16 length, text, u64 entries, checkpoints, keys.
 * File: records of u8 kind, u64 number, u32 length, bytes. */

struct child {
    const struct kedgei_spooling *what;
    int fd;
    struct kedge_buf out;      /* on its way into the file */
    struct kedge_buf withheld; /* indexes of entries that are not there */
    struct kedge_buf room;     /* of an entry, of a checkpoint */
    struct kedge_view origin;
    bool is_copy;
    uint64_t size; /* of the log as this handle sees it; a writer may be ahead */
    char kind;
    uint64_t entries, heads, keys, bytes;
};

/* The sum of all that is written is bounded by what the parent allowed: a table that leads in a circle
 * would otherwise fill the disk until the time is over. */
static int put_record(struct child *c, char kind, uint64_t number, struct kedge_view bytes)
{
    int err = KEDGE_OK;
    c->bytes += RECORD_LEAST + bytes.len;
    if (c->bytes > c->what->most) {
        return KEDGE_E_CORRUPT;
    }
    if (c->out.len + RECORD_LEAST + bytes.len > WRITE_SIZE) {
        err = kedge_fd_write(c->fd, kedge_buf_view(&c->out));
        kedge_buf_clear(&c->out);
    }
    if (!err && c->out.len + RECORD_LEAST + bytes.len > WRITE_SIZE) { /* no entry, no checkpoint is so long */
        return KEDGE_E_CORRUPT;
    }
    kedge_buf_put_u8(&c->out, (uint8_t)kind);
    kedge_buf_put_u64(&c->out, number);
    kedge_buf_put_u32(&c->out, (uint32_t)bytes.len);
    kedge_buf_put(&c->out, bytes.ptr, bytes.len);
    return err ? err : c->out.err;
}

/* Entries below, checkpoints up to the size that this handle sees. An entry that cannot be unpacked goes
 * over as it is: it then has another leaf hash, and the parent names it in its place in the log. Refusing
 * it here would hide which entry it was. */
static int put_numbered(void *arg, struct kedge_view key, struct kedge_view value)
{
    struct child *c = arg;
    if (key.len != 8) {
        return KEDGE_E_CORRUPT;
    }
    uint64_t number = kedge_load_be64(key.ptr);
    if (c->kind == 'e' ? number >= c->size : number > c->size) {
        return KEDGE_OK;
    }
    if (c->kind == 'e' && value.len == 0 && c->is_copy) {
        kedge_buf_put_u64(&c->withheld, number);
        return c->withheld.len > c->what->most ? KEDGE_E_CORRUPT : c->withheld.err;
    }
    struct kedge_view whole;
    int form = c->kind == 'e' ? kedge_entry_load(value, &c->room, &whole)
                              : kedge_head_load(c->origin, number, value, &c->room, &whole);
    if (form == KEDGE_E_NOMEM) {
        return form;
    }
    value = form == KEDGE_OK ? whole : value; /* damaged: no leaf hash, no signature is over what is there */
    c->entries += c->kind == 'e';
    c->heads += c->kind == 'h';
    return put_record(c, c->kind, number, value);
}

static int put_key(void *arg, struct kedge_view key, uint64_t index)
{
    struct child *c = arg;
    if (index >= c->size) {
        return KEDGE_OK;
    }
    c->keys++;
    return put_record(c, 'k', index, key);
}

/* After the scan, since a leaf hash is read by its own transaction; each goes over as a record of its own
 * kind, so it cannot be taken for an entry. */
static int put_withheld(struct child *c, struct kedge_ledger *ledger)
{
    struct kedge_reader reader = kedge_reader_of(kedge_buf_view(&c->withheld));
    int err = KEDGE_OK;
    for (size_t i = 0; i < c->withheld.len / 8 && !err; i++) {
        uint64_t index = kedge_read_u64(&reader);
        struct kedge_hash leaf;
        KEDGE_TRY(kedge_ledger_leaf_hash(ledger, index, &leaf));
        err = put_record(c, 'w', index, kedge_view_of(leaf.b, sizeof leaf.b));
        c->entries++;
    }
    return err;
}

/* The whole check of one log; beside a writer the mark may be ahead of what this handle sees.
 * Checkpoints' signatures are left to the parent where it has a trusted key: checking them here under the
 * key that the store names would prove nothing, and twice is too slow. */
static int check_log(const struct kedgei_spooling *r, struct kedge_state_log *log, struct kedge_diag *damage)
{
    char path[KEDGE_PATH_MAX];
    int err = r->unsigned_heads ? kedge_ledger_check_unsigned(log->ledger, damage)
                                : kedge_ledger_check(log->ledger, NULL, NULL, damage);
    if (err || r->beside) {
        return err;
    }
    err = kedge_state_path(path, damage, r->state, "high-water/%s", r->tenant ? r->tenant->s : "main");
    return err ? err : kedge_ledger_check_high_water(log->ledger, path, damage);
}

/* Entries and checkpoints, of one state of the store. */
static int put_tables(struct child *c, const struct kedge_state_log *log)
{
    const struct kedge_view all = kedge_view_of(NULL, 0);
    struct kedge_kv_tx *tx;
    c->origin = kedge_view_str(kedge_ledger_origin(log->ledger));
    KEDGE_TRY(kedge_kv_begin(log->kv, false, &tx, NULL));
    c->kind = 'e';
    int err = kedge_kv_scan(tx, KEDGE_KV_ENTRY, all, all, put_numbered, c);
    if (!err) {
        c->kind = 'h';
        err = kedge_kv_scan(tx, KEDGE_KV_HEAD, all, all, put_numbered, c);
    }
    kedge_kv_abort(tx);
    return err;
}

/* Damage that the check has told already does not end the reading of keys; everything that can be read is
 * wanted. */
static int put_records(struct child *c, struct kedge_state_log *log, bool damaged)
{
    const struct kedge_view all = kedge_view_of(NULL, 0);
    KEDGE_TRY(put_tables(c, log));
    KEDGE_TRY(put_withheld(c, log->ledger));
    if (!c->is_copy) {
        int err = kedge_ledger_scan_keys(log->ledger, all, put_key, c);
        if (err && !(err == KEDGE_E_CORRUPT && damaged)) {
            return err;
        }
    }
    return kedge_fd_write(c->fd, kedge_buf_view(&c->out));
}

static int read_log(struct child *c, struct kedge_state_log *log, struct kedge_buf *ret_head)
{
    struct kedge_diag damage = {.err = KEDGE_OK};
    struct kedge_hash salted;
    c->size = kedge_ledger_size(log->ledger);
    c->is_copy = kedge_ledger_is_copy(log->ledger);
    kedge_state_salted_id(log, &salted);
    int checked = check_log(c->what, log, &damage);
    int err = put_records(c, log, checked != KEDGE_OK);
    kedge_buf_put(ret_head, salted.b, sizeof salted.b);
    kedge_buf_put_u8(ret_head, c->is_copy);
    kedge_buf_put_u8(ret_head, checked != KEDGE_OK);
    kedge_buf_put_u16(ret_head, (uint16_t)strlen(damage.text));
    kedge_buf_put_str(ret_head, damage.text);
    kedge_buf_put_u64(ret_head, c->entries);
    kedge_buf_put_u64(ret_head, c->heads);
    kedge_buf_put_u64(ret_head, c->keys);
    return err ? err : ret_head->err;
}

static int run_child(void *arg, struct kedge_buf *ret_head, struct kedge_diag *reterr)
{
    struct child *c = arg;
    struct kedge_state_log log = {.kv = NULL};
    enum kedge_state_mode mode = c->what->beside ? KEDGE_STATE_READ : KEDGE_STATE_COPY;
    KEDGE_TRY(kedge_state_log_open(c->what->state, c->what->tenant, mode, &log, reterr));
    kedge_buf_init(&c->out, WRITE_SIZE);
    kedge_buf_init(&c->withheld, WITHHELD_MAX);
    kedge_buf_init(&c->room, KEDGE_ENTRY_MAX);
    int err = kedge_buf_reserve(&c->out, WRITE_SIZE);
    if (!err) {
        err = read_log(c, &log, ret_head);
    }
    kedge_state_log_close(&log);
    if (err == KEDGE_E_DISK_FULL) {
        return kedge_diag_set(
            reterr, err, "no room for a copy of the ledger in scratch files: TMPDIR names another folder");
    }
    return err ? kedge_diag_set(reterr, err, "reading the ledger: %s", kedge_strerror(err)) : KEDGE_OK;
}

/* ---- the parent ---- */

bool kedgei_spool_next(struct kedge_reader *r, struct kedgei_spool_record *ret)
{
    if (r->failed || r->rest.len == 0) {
        return false;
    }
    ret->kind = (char)kedge_read_u8(r);
    ret->number = kedge_read_u64(r);
    ret->bytes = kedge_read_bytes(r, kedge_read_u32(r));
    return !r->failed;
}

/* Every count must fit into the file, at 13 bytes a record at least, before memory is taken for it. */
static int read_head(struct kedge_view message, struct kedgei_spool *ret)
{
    struct kedge_reader r = kedge_reader_of(message);
    struct kedge_view salted = kedge_read_bytes(&r, KEDGE_HASH_LEN);
    ret->is_copy = kedge_read_u8(&r) != 0;
    ret->damaged = kedge_read_u8(&r) != 0;
    struct kedge_view text = kedge_read_bytes(&r, kedge_read_u16(&r));
    ret->entries = kedge_read_u64(&r);
    ret->heads = kedge_read_u64(&r);
    ret->keys = kedge_read_u64(&r);
    uint64_t most = ret->records.len / RECORD_LEAST;
    if (kedge_reader_end(&r) != KEDGE_OK || text.len >= sizeof ret->damage || ret->entries > most
        || ret->heads > most || ret->keys > most) {
        return KEDGE_E_CORRUPT;
    }
    memcpy(ret->salted.b, salted.ptr, sizeof ret->salted.b);
    memcpy(ret->damage, text.ptr, text.len);
    return KEDGE_OK;
}

int kedgei_spool(const struct kedgei_spooling *what, struct kedgei_scratch *scratch, struct kedgei_spool *ret,
                 struct kedge_diag *reterr)
{
    struct kedge_buf head KEDGE_CLEANUP(kedge_buf_deinit);
    struct child c = {.what = what};
    *ret = (struct kedgei_spool){.entries = 0};
    kedge_buf_init(&head, HEAD_MAX);
    c.fd = kedgei_scratch_file(reterr);
    if (c.fd < 0) {
        return c.fd;
    }
    int err = kedge_store_guarded(run_child, &c, what->timeout_ms, &head, reterr);
    if (!err) {
        err = kedgei_scratch_map(scratch, c.fd, &ret->records, reterr);
    }
    close(c.fd);
    if (!err && read_head(kedge_buf_view(&head), ret) != KEDGE_OK) {
        kedgei_scratch_unmap(scratch, ret->records);
        return kedge_diag_set(reterr, KEDGE_E_CORRUPT,
                              "the process that read the store gave no account of it");
    }
    return err;
}
