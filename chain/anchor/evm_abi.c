/* Only the few forms that Kedge's own contract needs, and each read strictly: the answer has exactly the
 * right length, and a word that holds a number or an address has zeros in front of it. A node that
 * answers with anything else is answering about another contract. */
#include "chain/anchor/evm_abi.h"

#include <string.h>

#include "chain/anchor/keccak256.h"

/* First bytes of keccak of the signatures named in the header. */
static const uint8_t anchor_selector[4] = {0x42, 0x7d, 0xc9, 0x20};
static const uint8_t heads_selector[4] = {0xe3, 0xb3, 0x35, 0x94};
static const struct kedge_hash anchored_topic = {
    {0xf2, 0xdc, 0x27, 0xbb, 0xa3, 0x7c, 0xc6, 0x5c, 0x51, 0xa4, 0x0f, 0xc6, 0xbc, 0x7e, 0x37, 0x11,
     0x1b, 0x37, 0x5b, 0xda, 0xbc, 0x83, 0xb6, 0xaf, 0x25, 0x02, 0x01, 0xf5, 0xc7, 0x5d, 0x7b, 0xd7}};

bool kedge_evm_point_eq(const struct kedge_evm_point *a, const struct kedge_evm_point *b)
{
    return a->seq == b->seq && a->size == b->size && kedge_hash_eq(&a->ns, &b->ns)
           && kedge_hash_eq(&a->root, &b->root);
}

/* The hash of the log's name, since the contract's names have 32 bytes and an origin may be longer. Anybody
 * can compute it, so an auditor finds a log's anchors without asking who made them. */
void kedge_evm_namespace(struct kedge_view origin, struct kedge_hash *ret)
{
    kedge_sha256(origin, ret);
}

/* ---- words ---- */

static void put_u64(uint8_t word[KEDGE_EVM_WORD], uint64_t v)
{
    memset(word, 0, KEDGE_EVM_WORD - 8);
    kedge_store_be64(word + KEDGE_EVM_WORD - 8, v);
}

static void put_address(uint8_t word[KEDGE_EVM_WORD], const struct kedge_evm_address *a)
{
    memset(word, 0, KEDGE_EVM_WORD - sizeof a->b);
    memcpy(word + (KEDGE_EVM_WORD - sizeof a->b), a->b, sizeof a->b);
}

static bool begins_with_zeros(const uint8_t *word, size_t count)
{
    uint8_t any = 0;
    for (size_t i = 0; i < count; i++) {
        any |= word[i];
    }
    return any == 0;
}

static int get_u64(const uint8_t word[KEDGE_EVM_WORD], uint64_t *ret)
{
    if (!begins_with_zeros(word, KEDGE_EVM_WORD - 8)) {
        return KEDGE_E_FORMAT;
    }
    *ret = kedge_load_be64(word + KEDGE_EVM_WORD - 8);
    return KEDGE_OK;
}

static void get_hash(const uint8_t word[KEDGE_EVM_WORD], struct kedge_hash *ret)
{
    memcpy(ret->b, word, KEDGE_EVM_WORD);
}

/* ---- anchor ---- */

void kedge_evm_anchor_call(const struct kedge_evm_point *p, uint8_t out[KEDGE_EVM_ANCHOR_CALL_LEN])
{
    uint8_t *words = out + sizeof anchor_selector;
    memcpy(out, anchor_selector, sizeof anchor_selector);
    memcpy(words, p->ns.b, KEDGE_EVM_WORD);
    put_u64(words + KEDGE_EVM_WORD, p->seq);
    put_u64(words + (size_t)2 * KEDGE_EVM_WORD, p->size);
    memcpy(words + (size_t)3 * KEDGE_EVM_WORD, p->root.b, KEDGE_EVM_WORD);
}

int kedge_evm_anchor_call_decode(struct kedge_view data, struct kedge_evm_point *ret)
{
    struct kedge_evm_point p;
    if (data.len != KEDGE_EVM_ANCHOR_CALL_LEN
        || memcmp(data.ptr, anchor_selector, sizeof anchor_selector) != 0) {
        return KEDGE_E_FORMAT;
    }
    const uint8_t *words = data.ptr + sizeof anchor_selector;
    get_hash(words, &p.ns);
    get_hash(words + (size_t)3 * KEDGE_EVM_WORD, &p.root);
    if (get_u64(words + KEDGE_EVM_WORD, &p.seq) != KEDGE_OK
        || get_u64(words + (size_t)2 * KEDGE_EVM_WORD, &p.size) != KEDGE_OK) {
        return KEDGE_E_FORMAT;
    }
    *ret = p;
    return KEDGE_OK;
}

/* ---- heads ---- */

void kedge_evm_heads_call(const struct kedge_evm_address *sender, const struct kedge_hash *ns,
                          uint8_t out[KEDGE_EVM_HEADS_CALL_LEN])
{
    uint8_t *words = out + sizeof heads_selector;
    memcpy(out, heads_selector, sizeof heads_selector);
    put_address(words, sender);
    memcpy(words + KEDGE_EVM_WORD, ns->b, KEDGE_EVM_WORD);
}

int kedge_evm_heads_decode(struct kedge_view answer, struct kedge_evm_head *ret)
{
    struct kedge_evm_head h;
    if (answer.len != (size_t)4 * KEDGE_EVM_WORD || get_u64(answer.ptr, &h.seq) != KEDGE_OK
        || get_u64(answer.ptr + KEDGE_EVM_WORD, &h.size) != KEDGE_OK
        || get_u64(answer.ptr + (size_t)2 * KEDGE_EVM_WORD, &h.block) != KEDGE_OK) {
        return KEDGE_E_FORMAT;
    }
    get_hash(answer.ptr + (size_t)3 * KEDGE_EVM_WORD, &h.root);
    *ret = h;
    return KEDGE_OK;
}

/* Topic 0 of an event is the hash of its signature; its indexed members are topics 1 to 3 (sender, namespace,
 * seq), and the others stand in the data, in their order (Solidity's ABI, "Events"). */
int kedge_evm_anchored_decode(const struct kedge_evm_log *log, struct kedge_evm_anchored *ret)
{
    struct kedge_evm_anchored a;
    if (log->topic_count != 4 || !kedge_hash_eq(&log->topics[0], &anchored_topic)
        || log->data.len != (size_t)3 * KEDGE_EVM_WORD
        || !begins_with_zeros(log->topics[1].b, KEDGE_EVM_WORD - sizeof a.who.b)
        || get_u64(log->topics[3].b, &a.point.seq) != KEDGE_OK
        || get_u64(log->data.ptr, &a.point.size) != KEDGE_OK) {
        return KEDGE_E_FORMAT;
    }
    memcpy(a.who.b, log->topics[1].b + (KEDGE_EVM_WORD - sizeof a.who.b), sizeof a.who.b);
    a.point.ns = log->topics[2];
    get_hash(log->data.ptr + KEDGE_EVM_WORD, &a.point.root);
    get_hash(log->data.ptr + (size_t)2 * KEDGE_EVM_WORD, &a.previous);
    *ret = a;
    return KEDGE_OK;
}

/* ---- storage ---- */

/* Where the contract keeps a head, by Solidity's storage layout: the value of key k in a mapping at slot
 * p is at keccak(k ‖ p), applied twice for the nested mapping heads[sender][namespace]. The struct takes
 * two slots: the three numbers packed into the first, with the first member in the lowest bytes, and the
 * root in the next one. */
void kedge_evm_head_slots(const struct kedge_evm_address *sender, const struct kedge_hash *ns,
                          struct kedge_hash *ret_packed, struct kedge_hash *ret_root)
{
    uint8_t words[2 * KEDGE_EVM_WORD];
    struct kedge_hash inner;
    put_address(words, sender);
    put_u64(words + KEDGE_EVM_WORD, 0); /* `heads` is the first and only state variable */
    kedge_keccak256(kedge_view_of(words, sizeof words), &inner);
    memcpy(words, ns->b, KEDGE_EVM_WORD);
    memcpy(words + KEDGE_EVM_WORD, inner.b, KEDGE_EVM_WORD);
    kedge_keccak256(kedge_view_of(words, sizeof words), ret_packed);
    *ret_root = *ret_packed;
    for (size_t i = KEDGE_EVM_WORD; i > 0; i--) { /* + 1 */
        if (++ret_root->b[i - 1] != 0) {
            break;
        }
    }
}

/* The first word, from its high bytes down: 8 that no member uses, then block, size and seq. A contract with
 * other members would have something in those 8. */
int kedge_evm_head_from_words(const struct kedge_hash *packed, const struct kedge_hash *root,
                              struct kedge_evm_head *ret)
{
    if (!begins_with_zeros(packed->b, 8)) {
        return KEDGE_E_FORMAT;
    }
    ret->block = kedge_load_be64(packed->b + 8);
    ret->size = kedge_load_be64(packed->b + 16);
    ret->seq = kedge_load_be64(packed->b + 24);
    ret->root = *root;
    return KEDGE_OK;
}
