/* What the ledger suites share: a folder, a key, a store, entries "entry-N" whose roots are known. */
#ifndef KEDGE_TESTS_CONTRACT_LEDGER_FIXTURE_H
#define KEDGE_TESTS_CONTRACT_LEDGER_FIXTURE_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chain/store/ledger.h"
#include "common/base/os/file.h"
#include "tests/fixtures/kv.h"

#define ORIGIN "ledger.example/tenant-a"

struct fixture {
    char dir[64], store[96], mark[96];
    struct kedge_key_pair key;
    struct kedge_kv *kv; /* under test */
    struct kedge_ledger *l;
};

static inline void fixture_init(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    ck_assert_int_eq(kedge_crypto_init(), KEDGE_OK);
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"; /* crashes are modelled */
    snprintf(f->dir, sizeof f->dir, "%s/kedge-ledger-XXXXXX", base);
    ck_assert_ptr_nonnull(mkdtemp(f->dir));
    snprintf(f->store, sizeof f->store, "%s/store", f->dir);
    snprintf(f->mark, sizeof f->mark, "%s/mark", f->dir);
    struct kedge_seed seed;
    memset(&seed, 7, sizeof seed);
    kedge_key_from_seed(&seed, &f->key);
}

static inline void fixture_deinit(struct fixture *f)
{
    kedge_ledger_close(f->l);
    kedge_kv_close(f->kv);
    ck_assert_int_eq(kedge_dir_remove(f->dir), KEDGE_OK);
}

static inline struct kedge_kv *fixture_lmdb(const char *dir, bool create)
{
    struct kedge_kv_lmdb_options options = {.create = create};
    struct kedge_kv *kv;
    struct kedge_diag d = {0};
    ck_assert_msg(kedge_kv_lmdb_open(dir, &options, &kv, &d) == KEDGE_OK, "%s", d.text);
    return kv;
}

static inline int fixture_open(struct fixture *f, bool create, struct kedge_diag *d)
{
    struct kedge_ledger_options options = {
        .origin = ORIGIN, .key = &f->key, .high_water_path = f->mark, .create = create};
    return kedge_ledger_open(f->kv, &options, &f->l, d);
}

static inline void fixture_must_open(struct fixture *f, bool create)
{
    struct kedge_diag d = {0};
    ck_assert_msg(fixture_open(f, create, &d) == KEDGE_OK, "%s", d.text);
}

static inline struct kedge_view entry_text(uint64_t i, char out[32])
{
    int n = snprintf(out, 32, "entry-%llu", (unsigned long long)i);
    return kedge_view_of(out, (size_t)n);
}

/* Appends entry-from … entry-(to-1), `step` per transaction. */
static inline int append_range(struct kedge_ledger *l, uint64_t from, uint64_t to, size_t step,
                               struct kedge_diag *d)
{
    static char texts[KEDGE_APPEND_MAX][32];
    struct kedge_ledger_append items[KEDGE_APPEND_MAX];
    uint64_t indexes[KEDGE_APPEND_MAX];
    while (from < to) {
        size_t count = to - from < step ? (size_t)(to - from) : step;
        for (size_t i = 0; i < count; i++) {
            items[i] = (struct kedge_ledger_append){.entry = entry_text(from + i, texts[i])};
        }
        int err = kedge_ledger_append(l, items, count, indexes, NULL, d);
        if (err) {
            return err;
        }
        for (size_t i = 0; i < count; i++) {
            ck_assert_uint_eq(indexes[i], from + i);
        }
        from += count;
    }
    return KEDGE_OK;
}

/* kind 0: memory, 1: LMDB, 2: the faulty wrapper over memory. */
static inline struct kedge_kv *new_kv(struct fixture *f, int kind)
{
    struct kedge_kv *kv = NULL, *inner;
    switch (kind) {
    case 0:
        ck_assert_int_eq(kedge_kv_memory_new(&kv), KEDGE_OK);
        return kv;
    case 1:
        return fixture_lmdb(f->store, true);
    default:
        ck_assert_int_eq(kedge_kv_memory_new(&inner), KEDGE_OK);
        ck_assert_int_eq(kedge_kv_faulty_new(inner, &kv), KEDGE_OK);
        return kv;
    }
}

static inline void check_is_clean(struct kedge_ledger *l)
{
    struct kedge_diag d = {0};
    ck_assert_msg(kedge_ledger_check(l, NULL, NULL, &d) == KEDGE_OK, "%s", d.text);
}

static inline struct kedge_ledger_append item(const char *entry, const char *key)
{
    return (struct kedge_ledger_append){kedge_view_str(entry),
                                        key ? kedge_view_str(key) : kedge_view_of(NULL, 0), NULL, 0};
}

#endif
