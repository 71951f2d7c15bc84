/* Stores that are open on demand: more of them than may have an environment at a time hold what they were
 * given, one with a transaction open keeps its environment, nobody else gets in meanwhile, and neither a
 * kill nor a close in between loses or leaves anything. */
#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chain/store/kv/kv.h"
#include "common/base/os/file.h"
#include "common/base/rng.h"
#include "tests/fixtures/effort.h"

enum { STORES = 12, SEATS = 3, THREADS = 6, KILLS = 20 };

static char dir[64];
static struct kedge_kv *kvs[STORES];

static void path_of(unsigned i, char out[96])
{
    snprintf(out, 96, "%s/s%u", dir, i);
}

static int open_store(unsigned i, struct kedge_kv **ret, struct kedge_diag *d)
{
    char path[96];
    const struct kedge_kv_lmdb_options options = {
        .create = true, .on_demand = true, .map_bytes = 1 << 20, .map_bytes_max = 64 << 20};
    path_of(i, path);
    return kedge_kv_lmdb_open(path, &options, ret, d);
}

static void begin_stores(unsigned seats)
{
    snprintf(dir, sizeof dir, "%s/kedge-demand-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    kedge_kv_lmdb_open_most(seats);
    for (unsigned i = 0; i < STORES; i++) {
        struct kedge_diag d = {0};
        ck_assert_msg(open_store(i, &kvs[i], &d) == KEDGE_OK, "%s", d.text);
    }
}

static void end_stores(void)
{
    for (unsigned i = 0; i < STORES; i++) {
        kedge_kv_close(kvs[i]);
    }
    ck_assert_uint_eq(kedge_kv_lmdb_open_count(), 0);
    ck_assert_int_eq(kedge_dir_remove(dir), KEDGE_OK);
}

static int put(struct kedge_kv *kv, const char *key, struct kedge_view value)
{
    struct kedge_kv_tx *tx;
    int err = kedge_kv_begin(kv, true, &tx, NULL);
    return err ? err
               : kedge_kv_end(tx, kedge_kv_put(tx, KEDGE_KV_META, kedge_view_str(key), value, KEDGE_KV_PUT),
                              NULL);
}

static void put_number(struct kedge_kv *kv, const char *key, unsigned number)
{
    char text[16];
    snprintf(text, sizeof text, "%u", number);
    ck_assert_int_eq(put(kv, key, kedge_view_str(text)), KEDGE_OK);
}

/* UINT32_MAX: there is none. */
static unsigned number_in(struct kedge_kv_tx *tx, const char *key)
{
    char text[16] = "";
    struct kedge_view value;
    int err = kedge_kv_peek(tx, KEDGE_KV_META, kedge_view_str(key), &value);
    if (err == KEDGE_E_NOT_FOUND) {
        return UINT32_MAX;
    }
    ck_assert_int_eq(err, KEDGE_OK);
    ck_assert_uint_lt(value.len, sizeof text);
    memcpy(text, value.ptr, value.len);
    return (unsigned)strtoul(text, NULL, 10);
}

static unsigned number_of(struct kedge_kv *kv, const char *key)
{
    struct kedge_kv_tx *tx;
    ck_assert_int_eq(kedge_kv_begin(kv, false, &tx, NULL), KEDGE_OK);
    unsigned n = number_in(tx, key);
    kedge_kv_abort(tx);
    return n;
}

START_TEST(more_stores_than_environments)
{
    begin_stores(SEATS);
    for (unsigned turn = 0; turn < 5; turn++) {
        for (unsigned i = 0; i < STORES; i++) {
            ck_assert_uint_eq(number_of(kvs[i], "n"), turn == 0 ? UINT32_MAX : 100 * i + turn - 1);
            put_number(kvs[i], "n", 100 * i + turn);
            ck_assert_uint_le(kedge_kv_lmdb_open_count(), SEATS);
        }
    }
    end_stores();
}
END_TEST

START_TEST(an_open_transaction_keeps_its_environment)
{
    struct kedge_kv_tx *reads[SEATS + 1], *write;
    begin_stores(SEATS);
    for (unsigned i = 0; i <= SEATS; i++) {
        put_number(kvs[i], "n", i);
        ck_assert_int_eq(kedge_kv_begin(kvs[i], false, &reads[i], NULL), KEDGE_OK);
    }
    ck_assert_uint_eq(kedge_kv_lmdb_open_count(), SEATS + 1); /* none of them can leave */
    ck_assert_int_eq(kedge_kv_begin(kvs[SEATS + 1], true, &write, NULL), KEDGE_OK);
    for (unsigned i = SEATS + 2; i < STORES; i++) {
        put_number(kvs[i], "n", i);
    }
    for (unsigned i = 0; i <= SEATS; i++) {
        ck_assert_uint_eq(number_in(reads[i], "n"), i);
        kedge_kv_abort(reads[i]);
    }
    ck_assert_int_eq(
        kedge_kv_put(write, KEDGE_KV_META, kedge_view_str("n"), kedge_view_str("7"), KEDGE_KV_PUT), KEDGE_OK);
    ck_assert_int_eq(kedge_kv_commit(write, NULL), KEDGE_OK);
    put_number(kvs[SEATS + 2], "n", 5);                   /* one that rests needs a seat */
    ck_assert_uint_le(kedge_kv_lmdb_open_count(), SEATS); /* the bound holds again */
    ck_assert_uint_eq(number_of(kvs[SEATS + 1], "n"), 7);
    end_stores();
}
END_TEST

/* A store that is used all the time stays open, while others come and go: its file is away meanwhile, so that
 * to open it again would fail. */
START_TEST(the_longest_unused_leaves)
{
    begin_stores(2);
    put_number(kvs[0], "n", 0);
    unsigned before = kedge_kv_lmdb_open_count();
    for (unsigned i = 1; i < STORES; i++) {
        struct kedge_kv_tx *tx;
        put_number(kvs[i], "n", i);
        ck_assert_int_eq(kedge_kv_begin(kvs[0], false, &tx, NULL), KEDGE_OK);
        kedge_kv_abort(tx);
        char path[96], file[128], aside[128];
        path_of(0, path);
        snprintf(file, sizeof file, "%s/data.mdb", path);
        snprintf(aside, sizeof aside, "%s/aside", path);
        ck_assert_int_eq(rename(file, aside), 0);
        put_number(kvs[i == 1 ? STORES - 1 : i - 1], "n", i);
        ck_assert_uint_eq(number_of(kvs[0], "n"), 0);
        ck_assert_int_eq(rename(aside, file), 0);
    }
    ck_assert_uint_eq(before, 2);
    end_stores();
}
END_TEST

static int lock_in_child(unsigned i)
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        char path[96];
        path_of(i, path);
        execl("/bin/sh", "sh", "-c", "exec flock -n \"$0/kedge.lock\" true", path, (char *)NULL);
        _exit(99);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

START_TEST(nobody_gets_in_while_it_rests)
{
    struct kedge_kv *other;
    begin_stores(1);
    put_number(kvs[1], "n", 1); /* all others rest */
    ck_assert_int_eq(open_store(0, &other, NULL), KEDGE_E_LOCKED);
    ck_assert_int_eq(lock_in_child(0), 1); /* nor another process */
    put_number(kvs[0], "n", 3);
    end_stores();
}
END_TEST

START_TEST(a_file_that_went_is_not_made_anew)
{
    char path[96], file[128];
    struct kedge_kv_tx *tx;
    struct kedge_diag d = {0};
    begin_stores(1);
    put_number(kvs[0], "n", 1);
    put_number(kvs[1], "n", 1);
    path_of(0, path);
    snprintf(file, sizeof file, "%s/data.mdb", path);
    ck_assert_int_eq(unlink(file), 0);
    ck_assert_int_eq(kedge_kv_begin(kvs[0], false, &tx, &d), KEDGE_E_CORRUPT);
    ck_assert_ptr_nonnull(strstr(d.text, "data.mdb was removed"));
    ck_assert(!kedge_file_exists(file));
    put_number(kvs[1], "n", 2); /* the others go on */
    end_stores();
}
END_TEST

START_TEST(maps_grow)
{
    enum { PIECE = 100000, PIECES = 100 };
    static char text[PIECE];
    memset(text, 'x', sizeof text);
    begin_stores(2);
    for (unsigned k = 0; k < PIECES; k++) { /* 10 MB into a map of one that began with 1 MiB */
        for (unsigned i = 0; i < 3; i++) {
            char key[16];
            snprintf(key, sizeof key, "%u", k);
            ck_assert_int_eq(put(kvs[i], key, kedge_view_of(text, sizeof text)), KEDGE_OK);
        }
    }
    end_stores();
}
END_TEST

/* What a record said before it was replaced is not in the file after a close, though the store rested then.
 */
START_TEST(a_resting_store_is_cleaned)
{
    static const char secret[] = "what was here before is nobody's business";
    char path[96], file[128];
    struct kedge_buf bytes;
    begin_stores(1);
    ck_assert_int_eq(put(kvs[0], "n", kedge_view_str(secret)), KEDGE_OK);
    put_number(kvs[0], "n", 1);
    put_number(kvs[1], "n", 1);
    kedge_kv_close(kvs[0]);
    kvs[0] = NULL;
    path_of(0, path);
    snprintf(file, sizeof file, "%s/data.mdb", path);
    kedge_buf_init(&bytes, 1 << 20);
    ck_assert_int_eq(kedge_file_read(file, &bytes, NULL), KEDGE_OK);
    ck_assert_ptr_null(memmem(bytes.ptr, bytes.len, secret, strlen(secret)));
    kedge_buf_deinit(&bytes);
    end_stores();
}
END_TEST

/* ---- threads ---- */

struct user {
    unsigned id;
    unsigned written[STORES];
};

static void key_of(const struct user *u, unsigned n, char out[32])
{
    snprintf(out, 32, "%u-%u", u->id, n);
}

static void *use_stores(void *arg)
{
    struct user *u = arg;
    struct kedge_rng rng;
    char key[32];
    kedge_rng_init(&rng, u->id, KEDGE_RNG_TEST, 0, 0);
    for (unsigned n = 0; n < EFFORT(400, 60); n++) {
        unsigned i = (unsigned)kedge_rng_below(&rng, STORES);
        if (u->written[i] == 0 || kedge_rng_below(&rng, 3) == 0) {
            key_of(u, u->written[i]++, key);
            put_number(kvs[i], key, i);
        } else {
            key_of(u, (unsigned)kedge_rng_below(&rng, u->written[i]), key);
            ck_assert_uint_eq(number_of(kvs[i], key), i);
        }
    }
    return NULL;
}

START_TEST(many_threads_share_few_environments)
{
    pthread_t threads[THREADS];
    struct user users[THREADS] = {{.id = 0}};
    begin_stores(2);
    for (unsigned i = 0; i < THREADS; i++) {
        users[i].id = i;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, use_stores, &users[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (unsigned u = 0; u < THREADS; u++) {
        for (unsigned i = 0; i < STORES; i++) {
            for (unsigned k = 0; k < users[u].written[i]; k++) {
                char key[32];
                key_of(&users[u], k, key);
                ck_assert_uint_eq(number_of(kvs[i], key), i);
            }
        }
    }
    end_stores();
}
END_TEST

/* ---- kills ---- */

/* Writes a rising number to each store in turn and says so, until it is killed. */
static void write_until_killed(int out)
{
    for (unsigned i = 0; i < STORES; i++) {
        if (open_store(i, &kvs[i], NULL) != KEDGE_OK) {
            _exit(1);
        }
    }
    for (unsigned n = 0;; n++) {
        uint8_t i = (uint8_t)(n % STORES);
        char text[16];
        unsigned before = number_of(kvs[i], "n");
        snprintf(text, sizeof text, "%u", before == UINT32_MAX ? 1 : before + 1);
        if (put(kvs[i], "n", kedge_view_str(text)) != KEDGE_OK || write(out, &i, 1) != 1) {
            _exit(1);
        }
    }
}

START_TEST(a_kill_loses_nothing)
{
    unsigned said[STORES] = {0};
    begin_stores(1);
    for (unsigned i = 0; i < STORES; i++) {
        kedge_kv_close(kvs[i]);
        kvs[i] = NULL;
    }
    for (unsigned k = 0; k < EFFORT(KILLS, 3); k++) {
        int ends[2];
        uint8_t i;
        ck_assert_int_eq(pipe(ends), 0);
        pid_t pid = fork();
        if (pid == 0) {
            close(ends[0]);
            write_until_killed(ends[1]);
        }
        close(ends[1]);
        for (unsigned n = 0; n < 20 + 3 * k; n++) {
            ck_assert_int_eq(read(ends[0], &i, 1), 1);
            said[i]++;
        }
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
        while (read(ends[0], &i, 1) == 1) {
            said[i]++;
        }
        close(ends[0]);
        for (unsigned s = 0; s < STORES; s++) {
            ck_assert_int_eq(open_store(s, &kvs[s], NULL), KEDGE_OK);
            unsigned have = number_of(kvs[s], "n");
            have = have == UINT32_MAX ? 0 : have;
            ck_assert(have == said[s] || have == said[s] + 1); /* the last one may not have been said */
            said[s] = have;
        }
        for (unsigned s = 0; s < STORES; s++) {
            kedge_kv_close(kvs[s]);
            kvs[s] = NULL;
        }
    }
    end_stores();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store on demand");
    TCase *t = tcase_create("contract");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, more_stores_than_environments);
    tcase_add_test(t, an_open_transaction_keeps_its_environment);
    tcase_add_test(t, the_longest_unused_leaves);
    tcase_add_test(t, nobody_gets_in_while_it_rests);
    tcase_add_test(t, a_file_that_went_is_not_made_anew);
    tcase_add_test(t, maps_grow);
    tcase_add_test(t, a_resting_store_is_cleaned);
    tcase_add_test(t, many_threads_share_few_environments);
    tcase_add_test(t, a_kill_loses_nothing);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
