/* Whether a quorum is met, and whether meeting it means anything. Groups are trees whose members come
 * first: one pass upwards computes anything of them, one pass downwards finds what the quorum stands on.
 *
 * A quorum of k among n witnesses tolerates n - k that are away. It is called safe if two sets that
 * satisfy it have an honest witness in common even when n - k are dishonest: two sets share at least 2k -
 * n, so 3k must be above 2n. k is the fewest that satisfy the quorum, the cheapest members of each group;
 * with groups inside groups the demand is stricter than it must be. */
#include "chain/log/witness_quorum.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"

/* Which groups hold, given which witnesses do. */
static void raise_groups(const struct kedge_witness_policy *p, const bool *cosigned, bool *ret_groups)
{
    for (uint32_t i = 0; i < p->group_count; i++) {
        uint32_t held = 0;
        for (uint32_t j = 0; j < p->groups[i].member_count; j++) {
            struct kedge_witness_ref m = p->members[p->groups[i].first_member + j];
            held += (m.kind == KEDGE_QUORUM_WITNESS ? cosigned[m.index] : ret_groups[m.index]) ? 1 : 0;
        }
        ret_groups[i] = held >= p->groups[i].threshold;
    }
}

bool kedge_witness_quorum_is_met(const struct kedge_witness_policy *policy, const bool *cosigned)
{
    bool groups[KEDGE_WITNESS_GROUPS_MAX];
    raise_groups(policy, cosigned, groups);
    switch (policy->quorum.kind) {
    case KEDGE_QUORUM_NONE:
        return true;
    case KEDGE_QUORUM_WITNESS:
        return cosigned[policy->quorum.index];
    case KEDGE_QUORUM_GROUP:
        return groups[policy->quorum.index];
    }
    return false;
}

/* The keys that a note is checked with: logs first, then the supported witnesses. */
struct known {
    size_t log_count, count;
    struct kedge_vkey keys[KEDGE_KNOWN_LOGS_MAX + KEDGE_WITNESSES_MAX];
    struct kedge_note_verdict verdicts[KEDGE_KNOWN_LOGS_MAX + KEDGE_WITNESSES_MAX];
};

/* A key that is a log's and a witness's would let a log vouch for itself: each key has one role. */
static int collect_keys(const struct kedge_witness_policy *p, const struct kedge_witness_demand *demand,
                        struct known *ret)
{
    bool own = demand->log_count > 0;
    ret->log_count = own ? demand->log_count : p->log_count;
    if (ret->log_count > KEDGE_KNOWN_LOGS_MAX || (own && !demand->origin.ptr)) {
        return KEDGE_E_ARG;
    }
    for (size_t i = 0; i < ret->log_count; i++) {
        ret->keys[i] = own ? demand->logs[i] : p->logs[i].vkey;
        if (ret->keys[i].type != KEDGE_KEY_ED25519) {
            return KEDGE_E_ARG;
        }
    }
    ret->count = ret->log_count;
    for (uint32_t i = 0; i < p->witness_count; i++) {
        if (!p->witnesses[i].is_supported) {
            continue;
        }
        for (size_t j = 0; j < ret->log_count; j++) { /* one key, one role */
            if (kedge_public_key_eq(&ret->keys[j].key, &p->witnesses[i].vkey.key)) {
                return KEDGE_E_ARG;
            }
        }
        ret->keys[ret->count++] = p->witnesses[i].vkey;
    }
    return KEDGE_OK;
}

/* That a log of this very origin signed: a key named like the origin, or one given for it. In a policy
 * with several logs, one log's key must not vouch for another one's checkpoint. */
static bool is_signed_by_log(const struct known *known, const struct kedge_witness_demand *demand,
                             struct kedge_view origin)
{
    for (size_t i = 0; i < known->log_count; i++) {
        if (known->verdicts[i].verified
            && (demand->log_count > 0 || kedge_view_eq(kedge_view_str(known->keys[i].name), origin))) {
            return true;
        }
    }
    return false;
}

/* A cosignature holds for a time; who demands a fresh one, or one from before some date, says so in
 * the demand. */
static enum kedge_witness_state state_of(const struct kedge_note_verdict *verdict,
                                         const struct kedge_witness_demand *demand)
{
    if (!verdict->verified) {
        return KEDGE_WITNESS_ABSENT;
    }
    if (verdict->time_s < demand->time_min_s) {
        return KEDGE_WITNESS_TOO_EARLY;
    }
    if (demand->time_max_s > 0 && verdict->time_s > demand->time_max_s) {
        return KEDGE_WITNESS_TOO_LATE;
    }
    return KEDGE_WITNESS_COSIGNED;
}

/* `at` runs over the supported witnesses only, in the order in which collect_keys put them. */
static void count_witnesses(const struct kedge_witness_policy *p, const struct known *known,
                            const struct kedge_witness_demand *demand, struct kedge_witness_evaluation *e)
{
    bool cosigned[KEDGE_WITNESSES_MAX] = {false};
    size_t at = known->log_count;
    e->cosigned_count = 0;
    for (uint32_t i = 0; i < p->witness_count; i++) {
        e->states[i] = KEDGE_WITNESS_UNSUPPORTED;
        e->times_s[i] = 0;
        if (p->witnesses[i].is_supported) {
            e->states[i] = state_of(&known->verdicts[at], demand);
            e->times_s[i] = known->verdicts[at].time_s;
            at++;
        }
        cosigned[i] = e->states[i] == KEDGE_WITNESS_COSIGNED;
        e->cosigned_count += cosigned[i] ? 1 : 0;
    }
    e->quorum_met = kedge_witness_quorum_is_met(p, cosigned);
}

/* The names of witnesses in a state, "W1, W2", as many as fit; "nobody" when there are none. */
static const char *list_witnesses(const struct kedge_witness_policy *p,
                                  const struct kedge_witness_evaluation *e, enum kedge_witness_state state,
                                  char *out, size_t out_len)
{
    char shown[KEDGE_WITNESS_SHOWN_MAX];
    size_t n = 0;
    snprintf(out, out_len, "nobody");
    for (uint32_t i = 0; i < p->witness_count; i++) {
        if (e->states[i] != state) {
            continue;
        }
        kedge_witness_name_show(p->witnesses[i].name, shown);
        if (n + strlen(shown) + sizeof ", \xe2\x80\xa6" > out_len) {
            snprintf(out + n, out_len - n, ", \xe2\x80\xa6");
            break;
        }
        n += (size_t)snprintf(out + n, out_len - n, "%s%s", n ? ", " : "", shown);
    }
    return out;
}

static int deny(const struct kedge_witness_policy *p, const struct kedge_witness_evaluation *e,
                struct kedge_diag *reterr)
{
    char quorum[KEDGE_WITNESS_SHOWN_MAX], cosigned[512], absent[512];
    kedge_witness_name_show(kedge_witness_ref_name(p, p->quorum), quorum);
    int err = kedge_diag_set(reterr, KEDGE_E_DENIED,
                             "the quorum \"%s\" is not met at size %" PRIu64 ": %" PRIu32 " of %" PRIu32
                             " witnesses cosigned (%s)",
                             quorum, e->checkpoint.size, e->cosigned_count, p->witness_count,
                             list_witnesses(p, e, KEDGE_WITNESS_COSIGNED, cosigned, sizeof cosigned));
    kedge_diag_hint(reterr, "absent: %s; ask them for their cosignatures, or wait for them",
                    list_witnesses(p, e, KEDGE_WITNESS_ABSENT, absent, sizeof absent));
    return err;
}

/* First the note, then who signed it: a quorum of witnesses over something that the log did not sign proves
 * nothing. */
static int evaluate(const struct kedge_witness_policy *p, struct kedge_view bytes,
                    const struct kedge_witness_demand *demand, struct known *known,
                    struct kedge_witness_evaluation *e, struct kedge_diag *reterr)
{
    struct kedge_note note;
    struct kedge_checkpoint c;
    int err = collect_keys(p, demand, known);
    if (err) {
        return kedge_diag_set(reterr, err, "the log's keys are not usable together with the policy");
    }
    err = kedge_note_parse(bytes, &note);
    if (!err) {
        err = kedge_checkpoint_parse(note.text, &c);
    }
    if (err) {
        return kedge_diag_set(reterr, err, "not a signed checkpoint: %s", kedge_strerror(err));
    }
    if (demand->origin.ptr && !kedge_view_eq(c.origin, demand->origin)) {
        char got[KEDGE_WITNESS_SHOWN_MAX], want[KEDGE_WITNESS_SHOWN_MAX];
        return kedge_diag_set(reterr, KEDGE_E_VERIFY, "checkpoint of \"%s\", expected \"%s\"",
                              kedge_witness_name_show(c.origin, got),
                              kedge_witness_name_show(demand->origin, want));
    }
    err = kedge_note_verify(&note, known->keys, known->count, known->verdicts, NULL);
    if (err == KEDGE_E_VERIFY || (!err && !is_signed_by_log(known, demand, c.origin))) {
        char origin[KEDGE_WITNESS_SHOWN_MAX];
        kedge_witness_name_show(c.origin, origin);
        return kedge_diag_set(reterr, KEDGE_E_VERIFY,
                              "checkpoint of \"%s\" has no signature of a known key of that log, or one of a "
                              "known key that fails",
                              origin);
    }
    if (err) {
        return kedge_diag_set(reterr, err, "the checkpoint's keys: %s", kedge_strerror(err));
    }
    e->checkpoint = c;
    count_witnesses(p, known, demand, e);
    return e->quorum_met ? KEDGE_OK : deny(p, e, reterr);
}

int kedge_witness_policy_evaluate(const struct kedge_witness_policy *policy, struct kedge_view note,
                                  const struct kedge_witness_demand *demand,
                                  struct kedge_witness_evaluation *ret_evaluation, struct kedge_diag *reterr)
{
    struct known *known KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *known);
    if (!known) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "%s", kedge_strerror(KEDGE_E_NOMEM));
    }
    return evaluate(policy, note, demand, known, ret_evaluation, reterr);
}

/* What the quorum stands on. */
struct below {
    bool groups[KEDGE_WITNESS_GROUPS_MAX];
    bool witnesses[KEDGE_WITNESSES_MAX];
    uint32_t witness_count;
};

/* Only what the quorum rests on counts as n: a witness outside of it may be away without any effect. */
static void find_below(const struct kedge_witness_policy *p, struct below *ret)
{
    memset(ret, 0, sizeof *ret);
    if (p->quorum.kind == KEDGE_QUORUM_WITNESS) {
        ret->witnesses[p->quorum.index] = true;
    } else if (p->quorum.kind == KEDGE_QUORUM_GROUP) {
        ret->groups[p->quorum.index] = true;
    }
    for (uint32_t i = p->group_count; i > 0; i--) { /* members come first: downwards meets each in time */
        const struct kedge_witness_group *g = &p->groups[i - 1];
        for (uint32_t j = 0; ret->groups[i - 1] && j < g->member_count; j++) {
            struct kedge_witness_ref m = p->members[g->first_member + j];
            *(m.kind == KEDGE_QUORUM_WITNESS ? &ret->witnesses[m.index] : &ret->groups[m.index]) = true;
        }
    }
    for (uint32_t i = 0; i < p->witness_count; i++) {
        ret->witness_count += ret->witnesses[i] ? 1 : 0;
    }
}

/* Sum of the `take` smallest of `count` costs, which are sorted in place. */
static uint32_t sum_smallest(uint32_t *costs, uint32_t count, uint32_t take)
{
    uint32_t sum = 0;
    KEDGE_ASSERT(take <= count);
    for (uint32_t i = 1; i < count; i++) {
        uint32_t v = costs[i];
        uint32_t j = i;
        for (; j > 0 && costs[j - 1] > v; j--) {
            costs[j] = costs[j - 1];
        }
        costs[j] = v;
    }
    for (uint32_t i = 0; i < take; i++) {
        sum += costs[i];
    }
    return sum;
}

/* The fewest witnesses that satisfy the quorum: in trees, the cheapest members of each group. Groups come
 * after their members, so each cost is known when it is asked for. It is exact because no witness is in
 * two groups. */
static uint32_t smallest_quorum(const struct kedge_witness_policy *p)
{
    uint32_t cost[KEDGE_WITNESS_GROUPS_MAX] = {0};
    for (uint32_t i = 0; i < p->group_count; i++) {
        uint32_t costs[KEDGE_WITNESS_MEMBERS_MAX] = {0};
        for (uint32_t j = 0; j < p->groups[i].member_count; j++) {
            struct kedge_witness_ref m = p->members[p->groups[i].first_member + j];
            costs[j] = m.kind == KEDGE_QUORUM_WITNESS ? 1 : cost[m.index];
        }
        cost[i] = sum_smallest(costs, p->groups[i].member_count, p->groups[i].threshold);
    }
    switch (p->quorum.kind) {
    case KEDGE_QUORUM_NONE:
        return 0;
    case KEDGE_QUORUM_WITNESS:
        return 1;
    case KEDGE_QUORUM_GROUP:
        return cost[p->quorum.index];
    }
    return 0;
}

static void say_safety(struct kedge_quorum_safety *s)
{
    if (s->n == 0) {
        snprintf(s->text, sizeof s->text,
                 "unsafe: the quorum is none, so nobody but the log vouches for its history");
    } else if (!s->is_reachable) {
        snprintf(s->text, sizeof s->text,
                 "out of reach: the quorum needs witnesses whose keys (ML-DSA-44, type 06) this program "
                 "cannot check");
    } else if (!s->is_safe) {
        snprintf(s->text, sizeof s->text,
                 "unsafe: %" PRIu32 " of %" PRIu32 " witnesses can satisfy the quorum, %" PRIu32
                 " are needed (1 + floor(2n/3)): as it is, the %" PRIu32
                 " that may be away would, if dishonest, let the log show two histories%s",
                 s->k, s->n, s->needed, s->n - s->k,
                 s->is_nested ? " (counted cautiously: groups are inside groups)" : "");
    } else {
        snprintf(s->text, sizeof s->text,
                 "safe: at least %" PRIu32 " of %" PRIu32 " witnesses satisfy the quorum, %" PRIu32
                 " are needed (1 + floor(2n/3)): the %" PRIu32
                 " that may be away could not, if dishonest, let the log show two histories",
                 s->k, s->n, s->needed, s->n - s->k);
    }
}

/* A quorum that needs witnesses this program cannot check is called out of reach: it would be "safe" and
 * never met. */
void kedge_witness_quorum_safety(const struct kedge_witness_policy *policy,
                                 struct kedge_quorum_safety *ret_safety)
{
    struct below below;
    bool supported[KEDGE_WITNESSES_MAX] = {false};
    find_below(policy, &below);
    for (uint32_t i = 0; i < policy->witness_count; i++) {
        supported[i] = policy->witnesses[i].is_supported;
    }
    memset(ret_safety, 0, sizeof *ret_safety);
    ret_safety->n = below.witness_count;
    for (uint32_t i = 0; i < policy->group_count; i++) {
        ret_safety->is_nested = ret_safety->is_nested || (below.groups[i] && policy->quorum.index != i);
    }
    ret_safety->k = smallest_quorum(policy);
    ret_safety->needed = 1 + 2 * below.witness_count / 3;
    ret_safety->is_safe = ret_safety->k >= ret_safety->needed;
    ret_safety->is_reachable = kedge_witness_quorum_is_met(policy, supported);
    say_safety(ret_safety);
}

int kedge_witness_policy_require_safe(const struct kedge_witness_policy *policy, bool strict,
                                      struct kedge_quorum_safety *ret_safety, struct kedge_diag *reterr)
{
    struct kedge_quorum_safety s;
    kedge_witness_quorum_safety(policy, &s);
    if (ret_safety) {
        *ret_safety = s;
    }
    if (!strict || (s.is_safe && s.is_reachable)) {
        return KEDGE_OK;
    }
    int err = kedge_diag_set(reterr, KEDGE_E_DENIED, "the witness policy's quorum is %s", s.text);
    kedge_diag_hint(reterr, "demand more witnesses in the quorum, or do not ask for a strict policy");
    return err;
}

static void put_shown(struct kedge_buf *out, struct kedge_view name)
{
    char shown[KEDGE_WITNESS_SHOWN_MAX];
    kedge_buf_put_str(out, kedge_witness_name_show(name, shown));
}

static void describe_group(const struct kedge_witness_policy *p, const struct kedge_witness_group *g,
                           struct kedge_buf *out)
{
    kedge_buf_put_str(out, "  ");
    put_shown(out, g->name);
    kedge_buf_printf(out, ": %" PRIu32 " of ", g->threshold);
    for (uint32_t j = 0; j < g->member_count; j++) {
        kedge_buf_put_str(out, j ? ", " : "");
        put_shown(out, kedge_witness_ref_name(p, p->members[g->first_member + j]));
    }
    kedge_buf_put_u8(out, '\n');
}

static void describe_parties(const struct kedge_witness_policy *p, const struct below *below,
                             struct kedge_buf *out)
{
    kedge_buf_printf(out, "logs: %" PRIu32 "\n", p->log_count);
    for (uint32_t i = 0; i < p->log_count; i++) {
        kedge_buf_put_str(out, "  ");
        put_shown(out, kedge_view_str(p->logs[i].vkey.name));
        kedge_buf_put_str(out, p->logs[i].url.len ? " at " : "");
        put_shown(out, p->logs[i].url);
        kedge_buf_put_u8(out, '\n');
    }
    kedge_buf_printf(out, "witnesses: %" PRIu32 ", %" PRIu32 " of them in the quorum\n", p->witness_count,
                     below->witness_count);
    for (uint32_t i = 0; i < p->witness_count; i++) {
        const struct kedge_witness *w = &p->witnesses[i];
        kedge_buf_put_str(out, "  ");
        put_shown(out, w->name);
        kedge_buf_put_str(out, w->url.len ? " at " : "");
        put_shown(out, w->url);
        kedge_buf_put_str(out, below->witnesses[i] ? "" : ", outside the quorum: its word changes nothing");
        kedge_buf_put_str(out, w->is_supported ? "" : ", ML-DSA-44 key: never counted by this program");
        kedge_buf_put_u8(out, '\n');
    }
}

void kedge_witness_policy_describe(const struct kedge_witness_policy *policy, struct kedge_buf *out)
{
    struct below below;
    struct kedge_quorum_safety s;
    find_below(policy, &below);
    kedge_witness_quorum_safety(policy, &s);
    describe_parties(policy, &below, out);
    kedge_buf_put_str(out, "quorum: ");
    put_shown(out, kedge_witness_ref_name(policy, policy->quorum));
    kedge_buf_put_u8(out, '\n');
    for (uint32_t i = policy->group_count; i > 0; i--) {
        if (below.groups[i - 1]) {
            describe_group(policy, &policy->groups[i - 1], out);
        }
    }
    for (uint32_t i = 0; i < policy->group_count; i++) {
        if (!below.groups[i]) {
            kedge_buf_put_str(out, "  ");
            put_shown(out, policy->groups[i].name);
            kedge_buf_put_str(out, ": not used by the quorum\n");
        }
    }
    kedge_buf_printf(out, "%s\n", s.text);
    if (s.n > 0 && s.k == s.n) {
        kedge_buf_put_str(out, "note: every witness must answer, one that is away holds everything up\n");
    }
}
