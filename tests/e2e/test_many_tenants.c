/* As many tenants as a coordinator takes, and one more: it is refused before anything of it is made, what is
 * left of one that was refused stops no start, an added tenant takes little memory, a start waits for the
 * locks of a process that is not gone yet, and no tenant is taken whose files could not be opened again. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "chain/state/state.h"
#include "common/base/limits.h"
#include "common/base/os/clock.h"
#include "tests/e2e/hostile.h"
#include "tests/fixtures/effort.h"
#include "tests/unit/base/check.h"

enum {
    SHELL_FILES = 256,
    FEW_FILES = 400,
    COUNTED = 40,         /* tenants over which memory is measured, */
    WARMED = 140,         /* after these: more ledgers than are open at a time */
    TENANT_BYTES = 65536, /* at most, each; 2.4 MB while the heap grew by a list of LMDB's for each */
};

static struct kedge_key_pair key;

static json_t *addition(unsigned number)
{
    char name[16];
    snprintf(name, sizeof name, "t-%03u", number);
    hx_st = (struct kedge_statement){.kind = KEDGE_ST_KEY};
    hx_st.u.key = (struct kedge_st_key){KEDGE_SCOPE_ADMIN, hx_id_of(name), key.public};
    return hx_speak("tenant.add", name, &key);
}

static size_t count_tenants(void)
{
    json_t *o = hx_operate(json_pack("{s:s}", "verb", "tenant.list"));
    size_t count = json_array_size(json_object_get(o, "tenants"));
    json_decref(o);
    return count;
}

static int try_addition(unsigned number)
{
    struct kedge_msg msg = {.type = KEDGE_MSG_ADMIN}, answer;
    json_t *o = addition(number);
    char *text = json_dumps(o, JSON_COMPACT);
    msg.u.admin.json = kedge_view_str(text);
    int err = hx_ask(hx_door, &msg, &answer);
    free(text);
    json_decref(o);
    return err;
}

static void refuse_addition(unsigned number)
{
    char path[KEDGE_PATH_MAX];
    ck_assert_int_eq(try_addition(number), KEDGE_E_FULL);
    ck_assert_int_lt(snprintf(path, sizeof path, "%s/tenants/t-%03u", hx_state(), number), KEDGE_PATH_MAX);
    ck_assert(!kedge_file_exists(path));
    ck_assert_int_lt(snprintf(path, sizeof path, "%s/keys/log-t-%03u.pem", hx_state(), number),
                     KEDGE_PATH_MAX);
    ck_assert(!kedge_file_exists(path));
}

/* A tenant's folder as `tenant add` leaves it, made beside a coordinator that does not run. */
static void leave_folder(unsigned number)
{
    struct kedge_state_log log;
    char name[16];
    snprintf(name, sizeof name, "t-%03u", number);
    struct kedge_id id = hx_id_of(name);
    json_t *o = addition(number);
    ck_assert_int_eq(kedge_state_tenant_create(hx_state(), &id, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_state_log_open(hx_state(), &id, KEDGE_STATE_WRITE, &log, NULL), KEDGE_OK);
    struct kedge_ledger_append item = {.entry =
                                           kedge_view_str(json_string_value(json_object_get(o, "envelope"))),
                                       .idem_key = kedge_view_str("key/admin")};
    ck_assert_int_eq(kedge_ledger_append(log.ledger, &item, 1, NULL, NULL, NULL), KEDGE_OK);
    kedge_state_log_close(&log);
    json_decref(o);
}

static bool log_says(const char *words)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf log;
    kedge_buf_init(&log, 16 << 20);
    ck_assert_int_eq(kedge_path_join(path, hx_state(), "log"), KEDGE_OK);
    ck_assert_int_eq(kedge_file_read(path, &log, NULL), KEDGE_OK);
    kedge_buf_put_u8(&log, 0);
    bool said = strstr((const char *)log.ptr, words) != NULL;
    kedge_buf_deinit(&log);
    return said;
}

static void add(unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        json_decref(hx_operate(addition(i)));
    }
}

/* What of its memory is its own and really there. */
static size_t memory_of_coordinator(void)
{
    char path[64], text[256], *at = text;
    snprintf(path, sizeof path, "/proc/%d/statm", hx_pid());
    FILE *f = fopen(path, "re");
    ck_assert_ptr_nonnull(f);
    ck_assert_ptr_nonnull(fgets(text, sizeof text, f));
    fclose(f);
    (void)strtoul(at, &at, 10); /* all addresses */
    size_t resident = strtoul(at, &at, 10), shared = strtoul(at, &at, 10);
    ck_assert_uint_gt(resident, shared);
    return (resident - shared) * (size_t)sysconf(_SC_PAGESIZE);
}

/* Fewer open files than its ledgers take, where more are to be had: as a shell may start it. */
static void lower_limit(void)
{
    struct rlimit files;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = files.rlim_max < SHELL_FILES ? files.rlim_max : SHELL_FILES;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
}

/* Another statement key; its entry in the main chain. */
static json_int_t rotate(void)
{
    json_t *o = hx_operate(json_pack("{s:s,s:s}", "verb", "role.rotate", "reason", "a test"));
    json_int_t index = json_integer_value(json_object_get(o, "leaf_index"));
    json_decref(o);
    return index;
}

START_TEST(test_one_too_many)
{
    const unsigned max = KEDGE_TENANTS_MAX, last = EFFORT(max, WARMED + COUNTED + 2); /* sanitizers: a few */
    kedge_key_generate(&key);
    hx_start();
    add(0, WARMED);
    size_t before = memory_of_coordinator();
    add(WARMED, WARMED + COUNTED);
    size_t each = (memory_of_coordinator() - before) / COUNTED;
    printf("an added tenant: %zu bytes\n", each);
    if (EFFORT(1, 0)) { /* sanitizers take what they like */
        ck_assert_uint_lt(each, TENANT_BYTES);
    }
    hx_end(true);
    for (unsigned i = WARMED + COUNTED; i + 1 < last; i++) {
        leave_folder(i);
    }
    hx_launch();
    hx_await_address();
    add(last - 1, last);
    ck_assert_uint_eq(count_tenants(), last);
    /* Behind the policy and a checkpoint of each tenant, which are more than one transaction takes. */
    ck_assert_uint_gt(last, KEDGE_APPEND_MAX / 2);
    ck_assert_int_eq(rotate(), 1 + (json_int_t)last);
    ck_assert_int_eq(rotate(), 2 + (json_int_t)last);
    if (last == max) {
        char left[16];
        refuse_addition(max);
        hx_end(true);
        leave_folder(max + 1);
        leave_folder(max + 2);
        lower_limit();
        hx_launch();
        hx_await_address();
        ck_assert_uint_eq(count_tenants(), max);
        snprintf(left, sizeof left, "t-%u", max + 1);
        ck_assert(log_says("tenant left out") && log_says(left));
        refuse_addition(max + 3);
    }
    hx_stop();
}
END_TEST

/* The lock of one tenant's ledger is still held when the start comes to it. */
START_TEST(test_waits_for_locks)
{
    char path[KEDGE_PATH_MAX];
    kedge_key_generate(&key);
    hx_start();
    add(0, 3);
    hx_end(false);
    ck_assert_int_lt(snprintf(path, sizeof path, "%s/tenants/t-001/ledger.lmdb/kedge.lock", hx_state()),
                     KEDGE_PATH_MAX);
    int lock = kedge_file_lock(path, NULL);
    ck_assert_int_ge(lock, 0);
    hx_launch();
    for (int i = 0; i < HX_PATIENCE_MS / 10 && !log_says("\"waiting\""); i++) {
        kedge_os_sleep_ms(10);
    }
    ck_assert(log_says("\"waiting\""));
    close(lock);
    hx_await_address();
    ck_assert_uint_eq(count_tenants(), 3);
    hx_stop();
}
END_TEST

/* The limit of open files takes fewer: the one for whom there is no room is refused, before anything of it
 * is made, and the others can be opened again. */
START_TEST(test_few_files)
{
    const struct rlimit few = {FEW_FILES, FEW_FILES}; /* the coordinator's, too */
    unsigned count = 0;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    kedge_key_generate(&key);
    hx_start();
    while (count < FEW_FILES / 4 && try_addition(count) == KEDGE_OK) {
        count++;
    }
    ck_assert_uint_gt(count, 1);
    refuse_addition(count);
    hx_end(false);
    hx_launch();
    hx_await_address();
    ck_assert_uint_eq(count_tenants(), count);
    ck_assert_int_eq(try_addition(count), KEDGE_OK); /* what was kept for connections is shared out anew */
    hx_stop();
}
END_TEST

int main(void)
{
    const TTest *tests[] = {test_one_too_many, test_waits_for_locks, test_few_files};
    return run_suite("many_tenants", tests, sizeof tests / sizeof tests[0]);
}
