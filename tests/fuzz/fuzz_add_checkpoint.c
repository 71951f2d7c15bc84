/* Requests to a witness: what is accepted comes out again as the same bytes, and whatever is recorded, a 200
 * never lets a log go back. */
#include <string.h>

#include "chain/log/add_checkpoint_client.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Nobody signed this, so an unknown key opens nothing; and the answer has a body only where it should. */
static void try_open(struct kedge_view bytes)
{
    static struct kedge_add_checkpoint r;
    static struct kedge_witnessed_log log;
    struct kedge_witness_decision d = {0};
    struct kedge_buf body KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&body, 64);
    if (!log.origin.ptr) {
        struct kedge_seed seed = {{7}};
        struct kedge_key_pair pair;
        kedge_key_from_seed(&seed, &pair);
        log.origin = kedge_view_str("fl.example.org/tenant-a");
        KEDGE_ASSERT(kedge_vkey_make(log.origin, KEDGE_KEY_ED25519, &pair.public, &log.key) == KEDGE_OK);
    }
    KEDGE_ASSERT(kedge_add_checkpoint_open(bytes, &log, 1, &r, &d.status, &d.reason) == KEDGE_OK);
    KEDGE_ASSERT(d.status == KEDGE_WITNESS_BAD_REQUEST || d.status == KEDGE_WITNESS_NOT_FOUND
                 || d.status == KEDGE_WITNESS_FORBIDDEN);
    kedge_add_checkpoint_reply(&d, kedge_view_str(""), &body);
    KEDGE_ASSERT(body.len == 0);
}

static void try_decide(const struct kedge_add_checkpoint *r, uint64_t recorded_size,
                       const struct kedge_hash *recorded_root)
{
    struct kedge_witness_decision d;
    kedge_add_checkpoint_decide(r, recorded_size, recorded_root, &d);
    if (d.status == KEDGE_WITNESS_OK) {
        KEDGE_ASSERT(r->old_size == recorded_size && r->checkpoint.size >= recorded_size && !d.is_fork);
        KEDGE_ASSERT(r->checkpoint.size > recorded_size || recorded_size == 0
                     || kedge_hash_eq(&r->checkpoint.root, recorded_root));
    }
    if (d.status == KEDGE_WITNESS_CONFLICT) {
        struct kedge_buf body KEDGE_CLEANUP(kedge_buf_deinit);
        uint64_t size = 0;
        kedge_buf_init(&body, 64);
        kedge_add_checkpoint_reply(&d, kedge_view_str(""), &body);
        KEDGE_ASSERT(kedge_add_checkpoint_read_conflict(kedge_buf_view(&body), &size) == KEDGE_OK);
        KEDGE_ASSERT(size == recorded_size);
    }
}

/* As an answer: of a key that nobody has, nothing is a cosignature, and a size is one that was not asked
 * from. */
static void try_judge(struct kedge_view bytes)
{
    static const unsigned statuses[] = {200, 409, 404};
    static const char note[] = "x\n1\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\n\u2014 x AAAAAAA=\n";
    struct kedge_seed seed = {{9}};
    struct kedge_key_pair pair;
    struct kedge_vkey vkey;
    struct kedge_witness_asked asked = {.note = kedge_view_str(note), .size = 1, .witness = &vkey};
    kedge_key_from_seed(&seed, &pair);
    KEDGE_ASSERT(kedge_vkey_make(kedge_view_str("w"), KEDGE_KEY_COSIGNATURE, &pair.public, &vkey)
                 == KEDGE_OK);
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        struct kedge_buf cosigned KEDGE_CLEANUP(kedge_buf_deinit);
        struct kedge_witness_answer a;
        kedge_buf_init(&cosigned, KEDGE_NOTE_MAX);
        if (kedge_add_checkpoint_judge(&asked, statuses[i], bytes, &cosigned, &a) == KEDGE_OK) {
            KEDGE_ASSERT(a.outcome != KEDGE_WITNESS_COSIGNED && cosigned.len == 0 && a.reason[0] != '\0');
            KEDGE_ASSERT(a.outcome == KEDGE_WITNESS_REFUSED || a.size != asked.old_size);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct kedge_add_checkpoint r;
    struct kedge_view bytes = kedge_view_of(data, len);
    uint64_t size;
    if (kedge_add_checkpoint_read_conflict(bytes, &size) == KEDGE_OK) {
        KEDGE_ASSERT(size <= KEDGE_TREE_SIZE_MAX && data[len - 1] == '\n');
    }
    try_judge(bytes);
    try_open(bytes);
    if (kedge_add_checkpoint_parse(bytes, &r) != KEDGE_OK) {
        return 0;
    }
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, KEDGE_ADD_CHECKPOINT_MAX);
    KEDGE_ASSERT(kedge_add_checkpoint_format(r.old_size, r.path.hashes, r.path.count, r.note, &b)
                 == KEDGE_OK);
    KEDGE_ASSERT(kedge_view_eq(kedge_buf_view(&b), bytes));
    struct kedge_hash other = {{len & 0xff}};
    const uint64_t sizes[] = {0, 1, r.old_size, r.checkpoint.size, KEDGE_TREE_SIZE_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        try_decide(&r, sizes[i], &other);
        try_decide(&r, sizes[i], &r.checkpoint.root);
        try_decide(&r, sizes[i], r.path.count ? &r.path.hashes[0] : &other);
    }
    return 0;
}
