/* A walk from the root along the nibbles of the key. A node of 17 items branches by the next nibble, and
 * one of two is a stretch without branches or the end. Each node is named by its hash in the one above,
 * so a proof is the list of nodes in the order in which they are needed, and all must be used. A node
 * shorter than a hash stands in its parent itself. Only that a value is there is proven, never that none
 * is. */
#include "chain/anchor/evm_trie.h"

#include <string.h>

#include "chain/anchor/keccak256.h"
#include "chain/anchor/rlp.h"

enum { BRANCH = 17, PAIR = 2, NIBBLES_MAX = 2 * KEDGE_EVM_TRIE_KEY_MAX };

/* Where the walk stands. */
struct walk {
    uint8_t key[NIBBLES_MAX];
    size_t key_len, at; /* nibbles, and how many are used */
    const struct kedge_view *nodes;
    size_t count, used;
    struct kedge_view node; /* list body of the node to look into */
    bool done;
    struct kedge_view value;
};

/* Opens the node that `reference` names: a hash, whose node is the next of the proof, or the node itself. */
static int enter(struct walk *w, const struct kedge_rlp_item *reference)
{
    struct kedge_rlp_item item;
    struct kedge_hash hash;
    if (reference->is_list) {
        w->node = reference->body;
        return reference->whole.len < KEDGE_HASH_LEN ? KEDGE_OK : KEDGE_E_VERIFY;
    }
    if (reference->body.len != KEDGE_HASH_LEN || w->used == w->count) {
        return KEDGE_E_VERIFY;
    }
    struct kedge_view bytes = w->nodes[w->used++];
    kedge_keccak256(bytes, &hash);
    if (memcmp(hash.b, reference->body.ptr, KEDGE_HASH_LEN) != 0 || kedge_rlp_decode(bytes, &item) != KEDGE_OK
        || !item.is_list) {
        return KEDGE_E_VERIFY;
    }
    w->node = item.body;
    return KEDGE_OK;
}

static int finish(struct walk *w, const struct kedge_rlp_item *value)
{
    if (value->is_list || value->body.len == 0) {
        return KEDGE_E_VERIFY;
    }
    w->value = value->body;
    w->done = true;
    return KEDGE_OK;
}

/* A leaf or an extension: [path, value or next]. The path's first nibble is 2 for a leaf, plus 1 when the
 * number of nibbles is odd; the second is 0 then or the first of the path. */
static int follow_path(struct walk *w, const struct kedge_rlp_item items[PAIR])
{
    struct kedge_view path = items[0].body;
    if (items[0].is_list || path.len == 0 || path.ptr[0] >> 4 > 3) {
        return KEDGE_E_VERIFY;
    }
    bool leaf = (path.ptr[0] & 0x20) != 0, odd = (path.ptr[0] & 0x10) != 0;
    size_t len = 2 * (path.len - 1) + (odd ? 1 : 0);
    if ((!odd && (path.ptr[0] & 0x0f) != 0) || len > w->key_len - w->at || (!leaf && len == 0)) {
        return KEDGE_E_VERIFY;
    }
    for (size_t i = 0; i < len; i++) {
        size_t digit = i + (odd ? 1 : 2);
        unsigned nibble = (unsigned)path.ptr[digit / 2] >> (digit % 2 ? 0 : 4) & 15U;
        if (nibble != w->key[w->at + i]) {
            return KEDGE_E_VERIFY;
        }
    }
    w->at += len;
    if (!leaf) {
        return enter(w, &items[1]);
    }
    return w->at == w->key_len ? finish(w, &items[1]) : KEDGE_E_VERIFY;
}

/* A branch has a place for each next nibble and, as its 17th, the value of a key that ends there (Yellow
 * Paper, appendix D). Any other count of items is no node. */
static int look(struct walk *w)
{
    struct kedge_rlp_item items[BRANCH];
    struct kedge_view rest = w->node;
    size_t count = 0;
    while (rest.len > 0) {
        if (count == BRANCH || kedge_rlp_take(&rest, &items[count]) != KEDGE_OK) {
            return KEDGE_E_VERIFY;
        }
        count++;
    }
    if (count == PAIR) {
        return follow_path(w, items);
    }
    if (count != BRANCH) {
        return KEDGE_E_VERIFY;
    }
    return w->at == w->key_len ? finish(w, &items[BRANCH - 1]) : enter(w, &items[w->key[w->at++]]);
}

int kedge_evm_trie_verify(const struct kedge_hash *root, struct kedge_view key,
                          const struct kedge_view *nodes, size_t count, struct kedge_view *ret_value)
{
    struct walk w = {.nodes = nodes, .count = count};
    struct kedge_rlp_item start = {.body = kedge_view_of(root->b, sizeof root->b)};
    if (key.len > KEDGE_EVM_TRIE_KEY_MAX || count > KEDGE_EVM_TRIE_NODES_MAX) {
        return KEDGE_E_VERIFY;
    }
    for (size_t i = 0; i < key.len; i++) {
        w.key[w.key_len++] = key.ptr[i] >> 4;
        w.key[w.key_len++] = key.ptr[i] & 15U;
    }
    int err = enter(&w, &start);
    for (size_t turn = 0; !err && !w.done && turn <= NIBBLES_MAX;
         turn++) { /* each turn uses a nibble or ends */
        err = look(&w);
    }
    if (err || !w.done || w.used != w.count) {
        return KEDGE_E_VERIFY;
    }
    *ret_value = w.value;
    return KEDGE_OK;
}
