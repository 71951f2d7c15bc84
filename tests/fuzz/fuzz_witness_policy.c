/* Witness policies: accepting means that the plain spelling parses to the same policy and spells itself; the
 * verdicts on quorums agree with what quorums do. */
#include <string.h>

#include "chain/log/witness_quorum.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_structure(const struct kedge_witness_policy *p)
{
    bool taken[2][KEDGE_WITNESSES_MAX] = {{false}};
    for (uint32_t i = 0; i < p->group_count; i++) {
        const struct kedge_witness_group *g = &p->groups[i];
        KEDGE_ASSERT(g->threshold >= 1 && g->threshold <= g->member_count);
        for (uint32_t j = 0; j < g->member_count; j++) {
            struct kedge_witness_ref m = p->members[g->first_member + j];
            bool is_group = m.kind == KEDGE_QUORUM_GROUP;
            KEDGE_ASSERT(m.kind != KEDGE_QUORUM_NONE);
            KEDGE_ASSERT(m.index < (is_group ? i : p->witness_count)); /* backwards only */
            KEDGE_ASSERT(!taken[is_group][m.index]);                   /* once */
            taken[is_group][m.index] = true;
        }
    }
}

static void check_quorum(const struct kedge_witness_policy *p, const uint8_t *data, size_t len)
{
    struct kedge_quorum_safety s;
    bool some[KEDGE_WITNESSES_MAX] = {false}, more[KEDGE_WITNESSES_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->witness_count; i++) {
        some[i] = (data[i % len] >> (i % 7) & 1) != 0;
        more[i] = some[i] || (data[(i + 1) % len] & 1) != 0;
        count += some[i] ? 1 : 0;
    }
    kedge_witness_quorum_safety(p, &s);
    KEDGE_ASSERT(s.k <= s.n && s.n <= p->witness_count && strlen(s.text) > 0);
    KEDGE_ASSERT(s.is_safe == (3 * s.k > 2 * s.n));
    if (kedge_witness_quorum_is_met(p, some)) {
        KEDGE_ASSERT(count >= s.k);                         /* k is the fewest */
        KEDGE_ASSERT(kedge_witness_quorum_is_met(p, more)); /* more never hurts */
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct kedge_witness_policy *p = NULL, *again = NULL;
    struct kedge_diag diag = {0};
    if (kedge_witness_policy_parse(kedge_view_of(data, len), &p, &diag) != KEDGE_OK) {
        KEDGE_ASSERT(p == NULL && diag.text[0] != '\0');
        return 0;
    }
    check_structure(p);
    check_quorum(p, data, len);
    struct kedge_buf a KEDGE_CLEANUP(kedge_buf_deinit), b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&a, 2 * KEDGE_WITNESS_POLICY_MAX);
    kedge_buf_init(&b, 2 * KEDGE_WITNESS_POLICY_MAX);
    kedge_witness_policy_encode(p, &a);
    KEDGE_ASSERT(kedge_witness_policy_parse(kedge_buf_view(&a), &again, NULL) == KEDGE_OK);
    kedge_witness_policy_encode(again, &b);
    KEDGE_ASSERT(kedge_view_eq(kedge_buf_view(&a), kedge_buf_view(&b)));
    KEDGE_ASSERT(again->log_count == p->log_count && again->witness_count == p->witness_count
                 && again->group_count == p->group_count && again->member_count == p->member_count
                 && again->quorum.kind == p->quorum.kind && again->quorum.index == p->quorum.index
                 && memcmp(again->members, p->members, sizeof p->members) == 0);
    kedge_buf_clear(&a);
    a.max = 16 * KEDGE_WITNESS_POLICY_MAX;
    kedge_witness_policy_describe(p, &a);
    KEDGE_ASSERT(a.err == KEDGE_OK && a.len > 0);
    kedge_witness_policy_free(p);
    kedge_witness_policy_free(again);
    return 0;
}
