/* What is counted for each known key: its connections, the bytes that it holds, how often it asks
 * and dials. A party that is idle and whose buckets are full again is what a new one would be, so
 * it is forgotten. */
#include "common/net/admission/parties.h"

#include <string.h>

#include "common/base/mem.h"

/* Known keys are drawn by honest machines or listed by the application one by one: nobody fills a chain. */
static unsigned chain_of(const struct kedge_public_key *key)
{
    uint32_t v;
    memcpy(&v, key->b, sizeof v);
    return v % KEDGEI_PARTY_CHAINS;
}

struct kedgei_party *kedgei_parties_find(struct kedgei_parties *all, const struct kedge_public_key *key)
{
    struct kedgei_party **chain = &all->chains[chain_of(key)];
    for (struct kedgei_party *p = *chain; p; p = p->next) {
        if (kedge_public_key_eq(&p->key, key)) {
            return p;
        }
    }
    struct kedgei_party *p = kedge_mem_new(1, sizeof *p);
    if (p) {
        *p = (struct kedgei_party){.key = *key, .next = *chain};
        *chain = p;
        all->count++;
    }
    return p;
}

void kedgei_parties_sweep(struct kedgei_parties *all, uint64_t now_ns)
{
    for (unsigned i = 0; all->count > 0 && i < KEDGEI_PARTY_CHAINS; i++) {
        for (struct kedgei_party **at = &all->chains[i]; *at;) {
            struct kedgei_party *p = *at;
            if (p->connections == 0 && kedge_bucket_is_full(&p->requests, now_ns)
                && kedge_bucket_is_full(&p->arrivals, now_ns)) {
                *at = p->next;
                all->count--;
                kedge_mem_free(p);
            } else {
                at = &p->next;
            }
        }
    }
}
