/* A log must be able to append, give its root and prove entries and growth without keeping the tree in
 * memory.
 *
 * Appending needs the frontier alone, the roots of the complete subtrees; it is binary counting, where a
 * carry joins two of them. Proofs descend from the root by RFC 6962's splits, in a loop, for depth is
 * bounded by 63, and take what they need by range_root: every range that splitting reaches is a few
 * complete subtrees, and these are what tiles hold. Verification goes upwards with two counters (RFC
 * 9162), without knowing any tree. */
#include "chain/log/merkle.h"

#include <string.h>

#include "common/base/try.h"

/* Leaves and nodes have different first bytes (RFC 6962, section 2.1), so an inner node can never be
 * passed off as an entry. */
void kedge_merkle_leaf(struct kedge_view entry, struct kedge_hash *ret_hash)
{
    static const uint8_t prefix = 0x00;
    kedge_sha256_2(kedge_view_of(&prefix, 1), entry, ret_hash);
}

void kedge_merkle_node(const struct kedge_hash *left, const struct kedge_hash *right,
                       struct kedge_hash *ret_hash)
{
    uint8_t bytes[1 + 2 * KEDGE_HASH_LEN];
    bytes[0] = 0x01;
    memcpy(bytes + 1, left->b, KEDGE_HASH_LEN);
    memcpy(bytes + 1 + KEDGE_HASH_LEN, right->b, KEDGE_HASH_LEN);
    kedge_sha256(kedge_view_of(bytes, sizeof bytes), ret_hash);
}

void kedge_merkle_empty_root(struct kedge_hash *ret_hash)
{
    kedge_sha256(kedge_view_of("", 0), ret_hash);
}

unsigned kedge_frontier_peak_count(const struct kedge_frontier *f)
{
    return (unsigned)__builtin_popcountll(f->size);
}

int kedge_frontier_append(struct kedge_frontier *f, const struct kedge_hash *leaf)
{
    if (f->size >= KEDGE_TREE_SIZE_MAX) {
        return KEDGE_E_FULL;
    }
    /* Binary addition of one: each trailing 1 of the size is a peak of the level that carries. */
    unsigned count = kedge_frontier_peak_count(f);
    struct kedge_hash h = *leaf;
    for (uint64_t s = f->size; s & 1; s >>= 1) {
        KEDGE_ASSERT(count > 0);
        kedge_merkle_node(&f->peaks[--count], &h, &h);
    }
    f->peaks[count] = h;
    f->size++;
    return KEDGE_OK;
}

void kedge_frontier_root(const struct kedge_frontier *f, struct kedge_hash *ret_root)
{
    unsigned count = kedge_frontier_peak_count(f);
    if (count == 0) {
        kedge_merkle_empty_root(ret_root);
        return;
    }
    struct kedge_hash h = f->peaks[count - 1];
    for (unsigned i = count - 1; i > 0; i--) {
        kedge_merkle_node(&f->peaks[i - 1], &h, &h);
    }
    *ret_root = h;
}

void kedge_frontier_encode(const struct kedge_frontier *f, struct kedge_buf *out)
{
    kedge_buf_put_u64(out, f->size);
    kedge_buf_put(out, f->peaks, kedge_frontier_peak_count(f) * sizeof f->peaks[0]);
}

/* The number of peaks follows from the size, so there is exactly one text for a frontier. */
int kedge_frontier_decode(struct kedge_view bytes, struct kedge_frontier *ret_frontier)
{
    struct kedge_reader r = kedge_reader_of(bytes);
    uint64_t size = kedge_read_u64(&r);
    size_t peaks_len = (size_t)__builtin_popcountll(size) * KEDGE_HASH_LEN;
    struct kedge_view peaks = kedge_read_bytes(&r, peaks_len);
    if (kedge_reader_end(&r) != KEDGE_OK || size > KEDGE_TREE_SIZE_MAX) {
        return KEDGE_E_FORMAT;
    }
    memset(ret_frontier, 0, sizeof *ret_frontier);
    ret_frontier->size = size;
    if (peaks_len > 0) {
        memcpy(ret_frontier->peaks, peaks.ptr, peaks_len);
    }
    return KEDGE_OK;
}

/* Largest power of two below n, n >= 2: where RFC 6962 splits. */
static uint64_t split(uint64_t n)
{
    return (uint64_t)1 << (63 - __builtin_clzll(n - 1));
}

/* Root of leaves [begin, end), where begin is a multiple of the largest power of two not above the length
 * (true of every range that splitting reaches): the binary digits of the length are its complete subtrees,
 * folded from the smallest. */
static int range_root(kedge_subtree_fn get, void *arg, uint64_t begin, uint64_t end, struct kedge_hash *ret)
{
    KEDGE_ASSERT(begin < end);
    struct kedge_hash acc;
    bool first = true;
    for (unsigned level = 0; level < 63; level++) {
        uint64_t width = (uint64_t)1 << level;
        if (((end - begin) & width) == 0) {
            continue;
        }
        end -= width;
        KEDGE_ASSERT(end % width == 0);
        struct kedge_hash h;
        KEDGE_TRY(get(arg, level, end >> level, &h));
        if (first) {
            acc = h;
        } else {
            kedge_merkle_node(&h, &acc, &acc);
        }
        first = false;
        if (begin == end) {
            break;
        }
    }
    *ret = acc;
    return KEDGE_OK;
}

int kedge_merkle_root(kedge_subtree_fn get, void *arg, uint64_t size, struct kedge_hash *ret_root)
{
    if (size > KEDGE_TREE_SIZE_MAX) {
        return KEDGE_E_ARG;
    }
    if (size == 0) {
        kedge_merkle_empty_root(ret_root);
        return KEDGE_OK;
    }
    return range_root(get, arg, 0, size, ret_root);
}

static int push_range(kedge_subtree_fn get, void *arg, uint64_t begin, uint64_t end, struct kedge_path *path)
{
    KEDGE_ASSERT(path->count < KEDGE_PROOF_MAX);
    int err = range_root(get, arg, begin, end, &path->hashes[path->count]);
    path->count += err ? 0 : 1;
    return err;
}

/* Descending collects the path from the root; proofs go from the leaf. */
static void put_reversed(const struct kedge_path *from, struct kedge_path *ret_path)
{
    ret_path->count = from->count;
    for (uint32_t i = 0; i < from->count; i++) {
        ret_path->hashes[i] = from->hashes[from->count - 1 - i];
    }
}

/* Each step halves the range at least, so the loop ends after at most 63 steps and the path fits. */
int kedge_inclusion_prove(kedge_subtree_fn get, void *arg, uint64_t index, uint64_t size,
                          struct kedge_path *ret_path)
{
    if (size > KEDGE_TREE_SIZE_MAX || index >= size) {
        return KEDGE_E_ARG;
    }
    struct kedge_path path;
    path.count = 0;
    uint64_t begin = 0;
    uint64_t end = size;
    while (end - begin > 1) {
        uint64_t mid = begin + split(end - begin);
        bool left = index < mid;
        KEDGE_TRY(left ? push_range(get, arg, mid, end, &path) : push_range(get, arg, begin, mid, &path));
        if (left) {
            end = mid;
        } else {
            begin = mid;
        }
    }
    put_reversed(&path, ret_path);
    return KEDGE_OK;
}

/* Descends to where the old tree's right edge meets a split; the siblings on the way are the proof (RFC
 * 6962, section 2.1.2, without its recursion). */
int kedge_consistency_prove(kedge_subtree_fn get, void *arg, uint64_t old_size, uint64_t size,
                            struct kedge_path *ret_path)
{
    if (size > KEDGE_TREE_SIZE_MAX || old_size == 0 || old_size > size) {
        return KEDGE_E_ARG;
    }
    struct kedge_path path;
    path.count = 0;
    uint64_t begin = 0;
    uint64_t end = size;
    while (old_size < end) { /* until the old tree ends where the range does */
        uint64_t mid = begin + split(end - begin);
        bool left = old_size <= mid;
        KEDGE_TRY(left ? push_range(get, arg, mid, end, &path) : push_range(get, arg, begin, mid, &path));
        if (left) {
            end = mid;
        } else {
            begin = mid;
        }
    }
    if (begin > 0) { /* else the range is the old tree, whose root the verifier has */
        KEDGE_TRY(push_range(get, arg, begin, end, &path));
    }
    put_reversed(&path, ret_path);
    return KEDGE_OK;
}

/* After a left sibling: up to the next level at which the node is a right child, or past the root. */
static void shift_while_even(uint64_t *fn, uint64_t *sn)
{
    while ((*fn & 1) == 0 && *fn != 0) {
        *fn >>= 1;
        *sn >>= 1;
    }
}

/* RFC 9162, section 2.1.3.2. A path with a hash too many or too few is refused, so one proof has one
 * length and nothing can be hidden in it. */
int kedge_inclusion_verify(uint64_t index, uint64_t size, const struct kedge_hash *leaf,
                           const struct kedge_hash *path, size_t path_len, const struct kedge_hash *root)
{
    if (size > KEDGE_TREE_SIZE_MAX || index >= size || path_len > KEDGE_PROOF_MAX) {
        return KEDGE_E_VERIFY;
    }
    uint64_t fn = index;
    uint64_t sn = size - 1;
    struct kedge_hash r = *leaf;
    for (size_t i = 0; i < path_len; i++) {
        if (sn == 0) {
            return KEDGE_E_VERIFY;
        }
        if ((fn & 1) != 0 || fn == sn) {
            kedge_merkle_node(&path[i], &r, &r);
            shift_while_even(&fn, &sn);
        } else {
            kedge_merkle_node(&r, &path[i], &r);
        }
        fn >>= 1;
        sn >>= 1;
    }
    return sn == 0 && kedge_hash_eq(&r, root) ? KEDGE_OK : KEDGE_E_VERIFY;
}

/* Folds the path after its first hash into the roots of both trees. RFC 9162, section 2.1.4.2: fr grows
 * into the old root and sr into the new one from the same hashes. Which of them a hash joins follows from
 * the two sizes alone. */
static int fold_consistency(uint64_t old_size, uint64_t size, const struct kedge_hash *first,
                            const struct kedge_hash *rest, size_t rest_len, struct kedge_hash *ret_old_root,
                            struct kedge_hash *ret_root)
{
    uint64_t fn = old_size - 1;
    uint64_t sn = size - 1;
    while ((fn & 1) != 0) {
        fn >>= 1;
        sn >>= 1;
    }
    struct kedge_hash fr = *first;
    struct kedge_hash sr = *first;
    for (size_t i = 0; i < rest_len; i++) {
        if (sn == 0) {
            return KEDGE_E_VERIFY;
        }
        if ((fn & 1) != 0 || fn == sn) {
            kedge_merkle_node(&rest[i], &fr, &fr);
            kedge_merkle_node(&rest[i], &sr, &sr);
            shift_while_even(&fn, &sn);
        } else {
            kedge_merkle_node(&sr, &rest[i], &sr);
        }
        fn >>= 1;
        sn >>= 1;
    }
    if (sn != 0) {
        return KEDGE_E_VERIFY;
    }
    *ret_old_root = fr;
    *ret_root = sr;
    return KEDGE_OK;
}

/* A complete subtree of the larger tree: its root is the proof's first hash, which is left out. */
static bool is_power_of_two(uint64_t size)
{
    return (size & (size - 1)) == 0;
}

/* Where the old size is a power of two its root itself is the first hash, and the proof leaves it out. */
int kedge_consistency_verify(uint64_t old_size, uint64_t size, const struct kedge_hash *old_root,
                             const struct kedge_hash *root, const struct kedge_hash *path, size_t path_len)
{
    if (old_size == 0 || old_size > size || size > KEDGE_TREE_SIZE_MAX || path_len > KEDGE_PROOF_MAX) {
        return KEDGE_E_VERIFY;
    }
    if (old_size == size) {
        return path_len == 0 && kedge_hash_eq(old_root, root) ? KEDGE_OK : KEDGE_E_VERIFY;
    }
    if (path_len == 0) {
        return KEDGE_E_VERIFY;
    }
    bool whole = is_power_of_two(old_size);
    struct kedge_hash fr, sr;
    int err = fold_consistency(old_size, size, whole ? old_root : &path[0], whole ? path : path + 1,
                               whole ? path_len : path_len - 1, &fr, &sr);
    return !err && kedge_hash_eq(&fr, old_root) && kedge_hash_eq(&sr, root) ? KEDGE_OK : KEDGE_E_VERIFY;
}

/* For evidence of a fork: the roots that a path leads to, whether or not they were signed. The first hash
 * must be spelled out here, because the old root is what is in question. */
int kedge_consistency_roots(uint64_t old_size, uint64_t size, const struct kedge_hash *path, size_t path_len,
                            struct kedge_hash *ret_old_root, struct kedge_hash *ret_root)
{
    if (old_size == 0 || old_size >= size || size > KEDGE_TREE_SIZE_MAX || path_len == 0
        || path_len > KEDGE_PROOF_MAX) {
        return KEDGE_E_VERIFY;
    }
    return fold_consistency(old_size, size, &path[0], path + 1, path_len - 1, ret_old_root, ret_root);
}

int kedge_consistency_prove_explicit(kedge_subtree_fn get, void *arg, uint64_t old_size, uint64_t size,
                                     struct kedge_path *ret_path)
{
    struct kedge_path path;
    if (old_size >= size) {
        return KEDGE_E_ARG;
    }
    int err = kedge_consistency_prove(get, arg, old_size, size, &path);
    if (err) {
        return err;
    }
    if (is_power_of_two(old_size)) { /* at most 63 hashes, one a level, follow */
        KEDGE_ASSERT(path.count < KEDGE_PROOF_MAX);
        memmove(&path.hashes[1], &path.hashes[0], path.count * sizeof path.hashes[0]);
        err = get(arg, (unsigned)__builtin_ctzll(old_size), 0, &path.hashes[0]);
        path.count++;
    }
    if (!err) {
        *ret_path = path;
    }
    return err;
}
