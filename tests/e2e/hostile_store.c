/* The records and files of the coordinator that hostile.c runs. */
#include <check.h>
#include <string.h>

#include "chain/state/state.h"
#include "tests/e2e/hostile.h"

static struct kedge_kv *open_store(bool read_only)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_kv *kv;
    struct kedge_kv_lmdb_options o = {.read_only = read_only};
    ck_assert_int_eq(kedge_path_join(path, hx_state(), "coordinator.lmdb"), KEDGE_OK);
    ck_assert_int_eq(kedge_kv_lmdb_open(path, &o, &kv, NULL), KEDGE_OK);
    return kv;
}

uint64_t hx_count_records(enum kedge_kv_table table)
{
    uint64_t count = 0;
    struct kedge_kv_tx *tx;
    struct kedge_kv *kv = open_store(true);
    ck_assert_int_eq(kedge_kv_begin(kv, false, &tx, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_kv_count(tx, table, &count), KEDGE_OK);
    kedge_kv_abort(tx);
    kedge_kv_close(kv);
    return count;
}

/* Puts a record in the place of another, which goes to `old` (empty: there was none). */
static void exchange(enum kedge_kv_table table, const char *key, struct kedge_view value,
                     struct kedge_buf *old)
{
    struct kedge_kv_tx *tx;
    struct kedge_kv *kv = open_store(false);
    struct kedge_view k = kedge_view_str(key);
    ck_assert_int_eq(kedge_kv_begin(kv, true, &tx, NULL), KEDGE_OK);
    int err = kedge_kv_get(tx, table, k, old);
    ck_assert(err == KEDGE_OK || err == KEDGE_E_NOT_FOUND);
    err = value.len > 0 ? kedge_kv_put(tx, table, k, value, KEDGE_KV_PUT) : kedge_kv_del(tx, table, k);
    ck_assert_int_eq(err, KEDGE_OK);
    ck_assert_int_eq(kedge_kv_commit(tx, NULL), KEDGE_OK);
    kedge_kv_close(kv);
}

void hx_replace(enum kedge_kv_table table, const char *key, struct kedge_view value)
{
    struct kedge_buf old;
    kedge_buf_init(&old, KEDGE_KV_VALUE_MAX);
    hx_end(false);
    exchange(table, key, value, &old);
    hx_launch();
    kedge_buf_deinit(&old);
}

/* Of the files of all ledgers, with what was left unused in them. */
static struct kedge_hash digest_of_ledgers(void)
{
    static const char *const files[] = {"main/ledger.lmdb/data.mdb", "tenants/org-a/ledger.lmdb/data.mdb",
                                        "tenants/org-b/ledger.lmdb/data.mdb"};
    char path[KEDGE_PATH_MAX];
    struct kedge_hash digest = {{0}};
    struct kedge_buf file;
    kedge_buf_init(&file, 64 << 20);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        kedge_buf_clear(&file);
        ck_assert_int_eq(kedge_path_join(path, hx_state(), files[i]), KEDGE_OK);
        ck_assert_int_eq(kedge_file_read(path, &file, NULL), KEDGE_OK);
        kedge_sha256_2(kedge_view_of(digest.b, KEDGE_HASH_LEN), kedge_buf_view(&file), &digest);
    }
    kedge_buf_deinit(&file);
    return digest;
}

void hx_damage(enum kedge_kv_table table, const char *key, struct kedge_view value, const char *said)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf old, none, log;
    kedge_buf_init(&old, KEDGE_KV_VALUE_MAX);
    kedge_buf_init(&none, KEDGE_KV_VALUE_MAX);
    kedge_buf_init(&log, 1 << 20);
    hx_end(false);
    exchange(table, key, value, &old);
    struct kedge_hash before = digest_of_ledgers();
    hx_launch();
    ck_assert_int_eq(hx_await_end(), 5); /* corrupt state */
    struct kedge_hash after = digest_of_ledgers();
    ck_assert(kedge_hash_eq(&before, &after)); /* whatever is evidence is there as it was */
    ck_assert_int_eq(kedge_path_join(path, hx_state(), "log"), KEDGE_OK);
    ck_assert_int_eq(kedge_file_read(path, &log, NULL), KEDGE_OK);
    kedge_buf_put_u8(&log, 0);
    ck_assert_msg(strstr((const char *)log.ptr, said) != NULL, "%s: %s", said, (const char *)log.ptr);
    exchange(table, key, kedge_buf_view(&old), &none);
    hx_launch();
    kedge_buf_deinit(&old);
    kedge_buf_deinit(&none);
    kedge_buf_deinit(&log);
}
