/* What a tenant holds in its hand when the main chain is anchored: its entry, the path to its own checkpoint,
 * that checkpoint as an entry of the main chain, and the path to the anchored root. For 1, 10, 100 and 1,000
 * tenants over three intervals: how long that is, and that it does not verify with any bit changed. FLIPS=n
 * sets the number of bits (100,000 is the long form), SEED=n replays. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/log/proof.h"
#include "chain/statement/main_entry.h"
#include "chain/store/ledger.h"
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/base/text.h"
#include "tests/fixtures/effort.h"
#include "tests/fixtures/kv.h"

enum { INTERVALS = 3, ENTRIES_MAX = 40, FLIPS = EFFORT(200, 100) };

struct tenant {
    struct kedge_kv *kv;
    struct kedge_ledger *ledger;
    char origin[64];
    uint64_t main_index[INTERVALS], size[INTERVALS];
};

struct world {
    uint32_t tenants;
    struct tenant *of;
    struct kedge_key_pair key; /* of all logs: a key's name is its log's */
    struct kedge_kv *kv;
    struct kedge_ledger *main;
    uint64_t anchored[INTERVALS]; /* sizes of the main chain: one anchor an interval */
    struct kedge_hash roots[INTERVALS];
};

/* All that a verifier gets; it has the anchored size and root, and the tenant's log key. */
struct shown {
    struct kedge_buf entry, main_entry;
    uint64_t index, main_index;
    struct kedge_path path, main_path;
};

static struct kedge_rng rng;

static uint64_t below(uint64_t n)
{
    return kedge_rng_below(&rng, n);
}

static struct kedge_ledger *make_ledger(struct kedge_kv **kv, const char *origin,
                                        const struct kedge_key_pair *key)
{
    struct kedge_ledger_options options = {.origin = origin, .key = key, .create = true};
    struct kedge_ledger *ledger;
    ck_assert_int_eq(kedge_kv_memory_new(kv), KEDGE_OK);
    ck_assert_int_eq(kedge_ledger_open(*kv, &options, &ledger, NULL), KEDGE_OK);
    return ledger;
}

static void put(struct kedge_ledger *ledger, struct kedge_view entry)
{
    const struct kedge_ledger_append item = {.entry = entry};
    ck_assert_int_eq(kedge_ledger_append(ledger, &item, 1, NULL, NULL, NULL), KEDGE_OK);
}

static void add_entries(struct tenant *tenant, unsigned interval)
{
    char text[ENTRIES_MAX][96];
    struct kedge_ledger_append items[ENTRIES_MAX];
    const size_t count = 1 + below(ENTRIES_MAX / INTERVALS);
    for (size_t i = 0; i < count; i++) {
        snprintf(text[i], sizeof text[i], "%s %u %zu", tenant->origin, interval, i);
        items[i] = (struct kedge_ledger_append){.entry = kedge_view_str(text[i])};
    }
    ck_assert_int_eq(kedge_ledger_append(tenant->ledger, items, count, NULL, NULL, NULL), KEDGE_OK);
}

/* As a coordinator at a round's close: the checkpoint of each tenant whose ledger grew, one after the other.
 */
static void pass_interval(struct world *w, unsigned interval)
{
    for (uint32_t t = 0; t < w->tenants; t++) {
        struct tenant *tenant = &w->of[t];
        struct kedge_buf note KEDGE_CLEANUP(kedge_buf_deinit), entry KEDGE_CLEANUP(kedge_buf_deinit);
        uint8_t salt[KEDGE_SALT_LEN];
        kedge_buf_init(&note, KEDGE_NOTE_MAX);
        kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
        add_entries(tenant, interval);
        for (size_t i = 0; i < sizeof salt; i++) {
            salt[i] = (uint8_t)below(256);
        }
        ck_assert_int_eq(kedge_ledger_checkpoint(tenant->ledger, &note, &tenant->size[interval]), KEDGE_OK);
        ck_assert_int_eq(kedge_main_entry_encode(salt, kedge_buf_view(&note), &entry), KEDGE_OK);
        tenant->main_index[interval] = kedge_ledger_size(w->main);
        put(w->main, kedge_buf_view(&entry));
    }
    w->anchored[interval] = kedge_ledger_size(w->main);
    ck_assert_int_eq(kedge_ledger_root(w->main, w->anchored[interval], &w->roots[interval]), KEDGE_OK);
}

static void make_world(struct world *w, uint32_t tenants)
{
    struct kedge_seed seed = {{7}};
    *w = (struct world){.tenants = tenants, .of = kedge_mem_new(tenants, sizeof *w->of)};
    ck_assert_ptr_nonnull(w->of);
    kedge_key_from_seed(&seed, &w->key);
    w->main = make_ledger(&w->kv, "example.org/main", &w->key);
    put(w->main, kedge_view_str("{the policy}"));
    for (uint32_t t = 0; t < tenants; t++) {
        snprintf(w->of[t].origin, sizeof w->of[t].origin, "example.org/t-%u", t);
        w->of[t].ledger = make_ledger(&w->of[t].kv, w->of[t].origin, &w->key);
    }
    for (unsigned i = 0; i < INTERVALS; i++) {
        pass_interval(w, i);
    }
}

static void free_world(struct world *w)
{
    for (uint32_t t = 0; t < w->tenants; t++) {
        kedge_ledger_close(w->of[t].ledger);
        kedge_kv_close(w->of[t].kv);
    }
    kedge_ledger_close(w->main);
    kedge_kv_close(w->kv);
    kedge_mem_free(w->of);
}

/* Of an entry that came in this interval. */
static void show(struct world *w, uint32_t t, unsigned interval, struct shown *s)
{
    const struct tenant *tenant = &w->of[t];
    const uint64_t before = interval > 0 ? tenant->size[interval - 1] : 0, size = tenant->size[interval];
    s->index = before + below(size - before);
    s->main_index = tenant->main_index[interval];
    kedge_buf_clear(&s->entry);
    kedge_buf_clear(&s->main_entry);
    ck_assert_int_eq(kedge_ledger_get(tenant->ledger, s->index, &s->entry), KEDGE_OK);
    ck_assert_int_eq(kedge_ledger_get(w->main, s->main_index, &s->main_entry), KEDGE_OK);
    ck_assert_int_eq(kedge_ledger_inclusion(tenant->ledger, s->index, size, &s->path), KEDGE_OK);
    ck_assert_int_eq(kedge_ledger_inclusion(w->main, s->main_index, w->anchored[interval], &s->main_path),
                     KEDGE_OK);
}

/* From the entry to the anchored root, with the product's own checks. */
static bool verifies(const struct world *w, uint32_t t, unsigned interval, const struct shown *s)
{
    struct kedge_main_entry in;
    struct kedge_vkey key;
    struct kedge_hash leaf, main_leaf;
    const struct kedge_view origin = kedge_view_str(w->of[t].origin);
    ck_assert_int_eq(kedge_vkey_make(origin, KEDGE_KEY_ED25519, &w->key.public, &key), KEDGE_OK);
    kedge_merkle_leaf(kedge_buf_view(&s->entry), &leaf);
    kedge_merkle_leaf(kedge_buf_view(&s->main_entry), &main_leaf);
    if (kedge_main_entry_decode(kedge_buf_view(&s->main_entry), &in) != KEDGE_OK
        || in.kind != KEDGE_MAIN_CHECKPOINT) {
        return false;
    }
    const struct kedge_proof proof = {.index = s->index, .path = s->path, .note = in.body};
    return kedge_proof_verify(&proof, &leaf, origin, &key, 1, NULL) == KEDGE_OK
           && kedge_inclusion_verify(s->main_index, w->anchored[interval], &main_leaf, s->main_path.hashes,
                                     s->main_path.count, &w->roots[interval])
                  == KEDGE_OK;
}

/* ---- how long ---- */

static uint32_t log2_up(uint64_t n)
{
    uint32_t log = 0;
    while ((UINT64_C(1) << log) < n) {
        log++;
    }
    return log;
}

/* Hashes of the path whose leaves all came after `before`: what the tenants of an interval do not share (RFC
 * 6962, section 2.1.1, which leaves the hashes out). */
static uint32_t of_this_interval(uint64_t index, uint64_t before, uint64_t size)
{
    uint64_t begin = 0, end = size;
    uint32_t own = 0;
    while (end - begin > 1) {
        const uint64_t middle = begin + (UINT64_C(1) << (log2_up(end - begin) - 1));
        own += index < middle ? middle >= before : begin >= before;
        *(index < middle ? &end : &begin) = middle;
    }
    return own;
}

static void check_lengths(struct world *w, struct shown *s)
{
    uint32_t longest = 0, longest_own = 0, longest_tenant = 0;
    for (unsigned interval = 0; interval < INTERVALS; interval++) {
        const uint64_t before = interval > 0 ? w->anchored[interval - 1] : 0;
        ck_assert_uint_eq(w->anchored[interval], 1 + (uint64_t)w->tenants * (interval + 1));
        for (uint32_t t = 0; t < w->tenants; t++) {
            show(w, t, interval, s);
            ck_assert(verifies(w, t, interval, s));
            const uint32_t own = of_this_interval(s->main_index, before, w->anchored[interval]);
            ck_assert_uint_le(s->path.count, log2_up(w->of[t].size[interval]));
            ck_assert_uint_le(s->main_path.count, log2_up(w->anchored[interval]));
            ck_assert_uint_le(own, log2_up(w->tenants) + 1);
            longest = s->main_path.count > longest ? (uint32_t)s->main_path.count : longest;
            longest_own = own > longest_own ? own : longest_own;
            longest_tenant = s->path.count > longest_tenant ? (uint32_t)s->path.count : longest_tenant;
        }
    }
    printf("%u tenants: %d anchors for %d intervals, %llu entries of the main chain; of a proof at most %u "
           "hashes in the "
           "tenant's own log, %u in the main chain, %u of these not shared with all (log2: %u)\n",
           w->tenants, INTERVALS, INTERVALS, (unsigned long long)w->anchored[INTERVALS - 1], longest_tenant,
           longest, longest_own, log2_up(w->tenants));
}

/* ---- bits ---- */

/* One of all bits of what is shown, numbers included. */
static void flip(struct shown *s)
{
    struct part {
        uint8_t *ptr;
        size_t len;
    } parts[] = {{s->entry.ptr, s->entry.len},
                 {s->main_entry.ptr, s->main_entry.len},
                 {(uint8_t *)s->path.hashes, s->path.count * sizeof s->path.hashes[0]},
                 {(uint8_t *)s->main_path.hashes, s->main_path.count * sizeof s->main_path.hashes[0]},
                 {(uint8_t *)&s->index, sizeof s->index},
                 {(uint8_t *)&s->main_index, sizeof s->main_index}};
    size_t all = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        all += parts[i].len;
    }
    uint64_t at = below(all);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (at < parts[i].len) {
            parts[i].ptr[at] ^= (uint8_t)(1u << below(8));
            return;
        }
        at -= parts[i].len;
    }
}

static void check_flips(struct world *w, struct shown *s, uint64_t flips)
{
    for (uint64_t i = 0; i < flips; i++) {
        const uint32_t t = (uint32_t)below(w->tenants);
        const unsigned interval = (unsigned)below(INTERVALS);
        show(w, t, interval, s);
        flip(s);
        if (verifies(w, t, interval, s)) {
            ck_abort_msg("%u tenants, flip %llu: a changed bit is not found", w->tenants,
                         (unsigned long long)i);
        }
    }
    printf("%u tenants: %llu changed bits, all found\n", w->tenants, (unsigned long long)flips);
}

static const uint32_t numbers[] = {1, 10, 100, 1000};

START_TEST(a_tenants_proof_is_short_and_every_bit_of_it_counts)
{
    struct world w;
    struct shown s;
    uint64_t seed = 1, flips = FLIPS;
    const char *seed_text = getenv("SEED"), *flips_text = getenv("FLIPS");
    if ((seed_text && kedge_decimal_decode(kedge_view_str(seed_text), UINT64_MAX, &seed) != KEDGE_OK)
        || (flips_text && kedge_decimal_decode(kedge_view_str(flips_text), UINT32_MAX, &flips) != KEDGE_OK)) {
        ck_abort_msg("SEED or FLIPS is not a number");
    }
    ck_assert_int_eq(kedge_crypto_init(), KEDGE_OK);
    kedge_rng_init(&rng, seed, KEDGE_RNG_TEST, 11, 0);
    kedge_buf_init(&s.entry, KEDGE_ENTRY_MAX);
    kedge_buf_init(&s.main_entry, KEDGE_ENTRY_MAX);
    make_world(&w, numbers[_i]);
    check_lengths(&w, &s);
    check_flips(&w, &s, flips);
    free_world(&w);
    kedge_buf_deinit(&s.entry);
    kedge_buf_deinit(&s.main_entry);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tenants' proofs");
    TCase *t = tcase_create("contract");
    tcase_set_timeout(t, 900);
    tcase_add_loop_test(t, a_tenants_proof_is_short_and_every_bit_of_it_counts, 0,
                        sizeof numbers / sizeof numbers[0]);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
