/* The one place that knows under which keys statements are stored and which blobs they reference: who
 * writes a log, who audits it and who builds it anew must agree.
 *
 * A key says what there may be only one of: an update of a site in a round, a close of a round. A
 * statement that is sent again after a lost answer meets its own key and gets its entry instead of a
 * second one; a different statement under the same key is refused. Round numbers have leading zeros, so
 * that keys sort as rounds do. */
#include "chain/statement/entry_index.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "chain/log/checkpoint.h"
#include "common/base/planted.h"

/* A planted bug that the simulator must find, as those of coordinator/core/core.h. */
enum { MUTANT_ONE_KEY_A_ROUND = 101 }; /* a move of a site and the close of its round share a key */

/* ---- idempotency keys ---- */

static const char *train_kind_name(enum kedge_train_kind kind)
{
    return kind == KEDGE_TRAIN_PRETRAIN ? "pretrain" : "train";
}

static void put_key_change(enum kedge_statement_kind kind, const void *body, struct kedge_buf *out)
{
    char hex[2 * KEDGE_KEY_LEN + 1];
    const struct kedge_public_key *key = &((const struct kedge_st_key_added *)body)->public_key;
    if (kind == KEDGE_ST_KEY_ROTATED) {
        key = &((const struct kedge_st_key_rotated *)body)->old_key;
    } else if (kind == KEDGE_ST_KEY_REVOKED) {
        key = &((const struct kedge_st_key_revoked *)body)->public_key;
    } else if (kind == KEDGE_ST_ROLE_GRANTED) {
        key = &((const struct kedge_st_role_granted *)body)->public_key;
    } else if (kind == KEDGE_ST_ROLE_REVOKED) {
        key = &((const struct kedge_st_role_revoked *)body)->public_key;
    } else if (kind == KEDGE_ST_STATEMENT_KEY_ROTATED) {
        key = &((const struct kedge_st_statement_key_rotated *)body)->old_key;
    } else if (kind == KEDGE_ST_KEY_RECOVERED) {
        key = &((const struct kedge_st_key_recovered *)body)->public_key;
    }
    kedge_hex_encode(key->b, sizeof key->b, hex);
    kedge_buf_printf(out, "%s/%s", kedge_statement_kind_name(kind), hex);
}

/* Statements about keys and their holders; false: of another family. */
static bool put_member_key(enum kedge_statement_kind kind, const void *body, struct kedge_buf *out)
{
    switch ((int)kind) {
    case KEDGE_ST_KEY:
        kedge_buf_put_str(out, "key/admin");
        break;
    case KEDGE_ST_ROLE_GRANTED:
    case KEDGE_ST_ROLE_REVOKED:
    case KEDGE_ST_STATEMENT_KEY_ROTATED:
    case KEDGE_ST_KEY_ADDED:
    case KEDGE_ST_KEY_ROTATED:
    case KEDGE_ST_KEY_REVOKED:
    case KEDGE_ST_KEY_RECOVERED:
        put_key_change(kind, body, out);
        break;
    case KEDGE_ST_SITE_ENROLLED:
        kedge_buf_printf(out, "site-enrolled/%s", ((const struct kedge_st_site_enrolled *)body)->site.s);
        break;
    case KEDGE_ST_SITE_REVOKED:
        kedge_buf_printf(out, "site-revoked/%s", ((const struct kedge_st_site_revoked *)body)->site.s);
        break;
    case KEDGE_ST_WITNESS_ENROLLED:
        kedge_buf_printf(out, "witness-enrolled/%s",
                         ((const struct kedge_st_witness_enrolled *)body)->witness.s);
        break;
    case KEDGE_ST_WITNESS_REVOKED:
        kedge_buf_printf(out, "witness-revoked/%s",
                         ((const struct kedge_st_witness_revoked *)body)->witness.s);
        break;
    default:
        return false;
    }
    return true;
}

/* A site has one first group. Later it can be given two in one round: one while the round is open (it moved,
 * or its last model is nearest to another one), one by the round's close. */
static void put_assigned_key(const struct kedge_st_group_assigned *g, struct kedge_buf *out)
{
    bool by_close =
        g->how == KEDGE_GROUP_RECLUSTER || g->how == KEDGE_GROUP_SPLIT || g->how == KEDGE_GROUP_MERGE;
    kedge_buf_printf(out, "group-assigned/%s/%s", g->job.s, g->site.s);
    if (g->how > KEDGE_GROUP_NEWCOMER) {
        kedge_buf_printf(out, by_close && !MUTANT(MUTANT_ONE_KEY_A_ROUND) ? "/%08u/close" : "/%08u",
                         g->round);
    }
}

/* Of the main chain's statements about rounds and what comes of them; false: it is another kind. */
static bool put_round_key(enum kedge_statement_kind kind, const void *body, struct kedge_buf *out)
{
    const struct kedge_st_aggregate *agg = body;
    const struct kedge_st_release *release = body;
    switch ((int)kind) {
    case KEDGE_ST_ROUND_OPENED: {
        const struct kedge_st_round_opened *r = body;
        kedge_buf_printf(out, "round-opened/%s/%08u", r->job.s, r->round);
        if (r->draw > 0) {
            kedge_buf_printf(out, "/%02u", r->draw);
        }
        break;
    }
    case KEDGE_ST_AGGREGATE:
        kedge_buf_printf(out, "aggregate/%s/%08u/%02u", agg->job.s, agg->round, agg->group);
        break;
    case KEDGE_ST_STEP: {
        const struct kedge_st_step *s = body;
        kedge_buf_printf(out, "step/%s/%08u", s->job.s, s->round);
        break;
    }
    case KEDGE_ST_ROUND_TESTED: {
        const struct kedge_st_round_tested *t = body;
        kedge_buf_printf(out, "round-tested/%s/%08u", t->job.s, t->round);
        break;
    }
    case KEDGE_ST_RELEASE:
        kedge_buf_printf(out, "release/%s/%02u", release->job.s, release->group);
        if (release->tier > 0) {
            kedge_buf_printf(out, "/%u/%08u", release->tier, release->round);
        }
        break;
    default:
        return false;
    }
    return true;
}

static void put_quota_key(const struct kedge_st_quota_set *q, struct kedge_buf *out)
{
    char hex[KEDGE_HASH_HEX_LEN + 1];
    kedge_hash_hex(&q->id, hex);
    kedge_buf_printf(out, "quota-set/%s/%08" PRIu64, hex, q->number);
}

void kedge_statement_key(enum kedge_statement_kind kind, const void *body, struct kedge_buf *out)
{
    const struct kedge_st_update *u = body;
    const struct kedge_st_evaluation *e = body;
    const struct kedge_st_group_assigned *g = body;
    if (put_member_key(kind, body, out) || put_round_key(kind, body, out)) {
        return;
    }
    switch ((int)kind) {
    case KEDGE_ST_JOB_JOINED:
        kedge_buf_printf(out, "job-joined/%s", ((const struct kedge_st_job_joined *)body)->job.s);
        break;
    case KEDGE_ST_JOB_LEFT:
        kedge_buf_printf(out, "job-left/%s", ((const struct kedge_st_job_left *)body)->job.s);
        break;
    case KEDGE_ST_UPDATE:
        kedge_buf_printf(out, "update/%s/%08u/%s/%s", u->job.s, u->round, train_kind_name(u->update_kind),
                         u->site.s);
        break;
    case KEDGE_ST_EVALUATION:
        kedge_buf_printf(out, "evaluation/%s/%08u/%s", e->job.s, e->round, e->site.s);
        break;
    case KEDGE_ST_GROUP_ASSIGNED:
        put_assigned_key(g, out);
        break;
    case KEDGE_ST_ERASED: {
        char hex[KEDGE_HASH_HEX_LEN + 1];
        kedge_hash_hex(&((const struct kedge_st_erased *)body)->update, hex);
        kedge_buf_printf(out, "erased/%s", hex);
        break;
    }
    case KEDGE_ST_CONTACT: {
        char hex[KEDGE_HASH_HEX_LEN + 1];
        kedge_hash_hex(&((const struct kedge_st_contact *)body)->commitment, hex);
        kedge_buf_printf(out, "contact/%s", hex);
        break;
    }
    case KEDGE_ST_SITE_LABELS: {
        const struct kedge_st_site_labels *l = body;
        kedge_buf_printf(out, "site-labels/%s/%08u", l->site.s, l->number);
        break;
    }
    case KEDGE_ST_QUOTA_SET:
        put_quota_key(body, out);
        break;
    case KEDGE_ST_POLICY:
        kedge_buf_put_str(out, "policy");
        break;
    case KEDGE_ST_POLICY_CHANGED:
        kedge_buf_printf(out, "policy-changed/%020" PRIu64,
                         ((const struct kedge_st_policy_changed *)body)->number);
        break;
    case KEDGE_ST_JOB_ADMITTED:
        kedge_buf_printf(out, "job-admitted/%s", ((const struct kedge_st_job_admission *)body)->job.s);
        break;
    case KEDGE_ST_JOB_REFUSED: { /* a name may be refused many times */
        const struct kedge_st_job_admission *a = body;
        kedge_buf_printf(out, "job-refused/%s/%020" PRIu64, a->job.s, a->main_size);
        break;
    }
    case KEDGE_ST_JOB_OPENED:
        kedge_buf_printf(out, "job-opened/%s", ((const struct kedge_st_job_opened *)body)->job.s);
        break;
    case KEDGE_ST_JOB_CLOSED:
        kedge_buf_printf(out, "job-closed/%s", ((const struct kedge_st_job_closed *)body)->job.s);
        break;
    default:
        break;
    }
}

void kedge_checkpoint_key(const struct kedge_id *tenant, uint64_t size, struct kedge_buf *out)
{
    kedge_buf_printf(out, "checkpoint/%s/%020" PRIu64, tenant->s, size);
}

/* ---- references ---- */

static_assert((int)KEDGE_ENTRY_REFS_MAX >= (int)KEDGE_STEP_GROUP_REFS * (int)KEDGE_GROUPS_MAX
                  && (int)KEDGE_ENTRY_REFS_MAX >= (int)KEDGE_ST_TENANTS_MAX
                  && (int)KEDGE_ENTRY_REFS_MAX >= 3 + (int)KEDGE_GROUPS_MAX - 1,
              "all that a statement references");

struct refs {
    struct kedge_hash *at;
    size_t count;
};

/* A digest of zeros is none. */
static void add_ref(struct refs *r, const struct kedge_hash *digest)
{
    if (!kedge_hash_is_zero(digest)) {
        KEDGE_ASSERT(r->count < KEDGE_ENTRY_REFS_MAX);
        r->at[r->count++] = *digest;
    }
}

static void add_opened_refs(const struct kedge_st_job_opened *o, struct refs *r)
{
    add_ref(r, &o->initial_model);
    add_ref(r, &o->base_model);
    for (uint32_t i = 0; i < o->first_model_count; i++) {
        add_ref(r, &o->first_models[i].model);
    }
}

/* Every file that the next round or an audit needs and that no other entry names first. `before`,
 * `state_before` and `made` are those of an earlier step. */
static void add_step_refs(const struct kedge_st_step *step, struct refs *r)
{
    for (uint32_t g = 0; g < step->group_count; g++) {
        const struct kedge_st_step_group *row = &step->groups[g];
        const struct kedge_hash *const digests[] = {&row->aggregate,   &row->after,     &row->stepped,
                                                    &row->state_after, &row->direction, &row->whole,
                                                    &row->trial};
        static_assert(sizeof digests / sizeof digests[0] == KEDGE_STEP_GROUP_REFS,
                      "as the bound counts them");
        for (size_t i = 0; i < KEDGE_STEP_GROUP_REFS; i++) {
            add_ref(r, digests[i]);
        }
    }
}

size_t kedge_statement_refs(const struct kedge_statement *st, struct kedge_hash ret[KEDGE_ENTRY_REFS_MAX])
{
    const struct kedge_st_round_opened *opened = &st->u.round_opened;
    const struct kedge_st_aggregate *aggregate = &st->u.aggregate;
    struct refs r = {.at = ret};
    switch ((int)st->kind) {
    case KEDGE_ST_UPDATE:
    case KEDGE_ST_RELEASE:
    case KEDGE_ST_JOB_ADMITTED:
    case KEDGE_ST_JOB_REFUSED:
        add_ref(&r, &st->subject);
        break;
    case KEDGE_ST_GROUP_ASSIGNED:
        add_ref(&r, &st->u.group_assigned.update);
        break;
    case KEDGE_ST_JOB_OPENED:
        add_ref(&r, &st->subject);
        add_opened_refs(&st->u.job_opened, &r);
        break;
    case KEDGE_ST_ROUND_OPENED:
        for (uint32_t i = 0; i < opened->tenant_count; i++) {
            add_ref(&r, &opened->tenants[i].list);
        }
        break;
    case KEDGE_ST_AGGREGATE:
        for (uint32_t i = 0; i < aggregate->tenant_count; i++) {
            add_ref(&r, &aggregate->tenants[i].list);
        }
        break;
    case KEDGE_ST_STEP:
        add_step_refs(&st->u.step, &r);
        break;
    default:
        break;
    }
    return r.count;
}

/* ---- entries ---- */

static int index_checkpoint(const char *deployment, struct kedge_view bytes, struct kedge_buf *ret_key)
{
    struct kedge_note note;
    struct kedge_checkpoint c;
    struct kedge_id tenant;
    size_t len = strlen(deployment);
    if (kedge_note_parse(bytes, &note) != KEDGE_OK || kedge_checkpoint_parse(note.text, &c) != KEDGE_OK
        || c.origin.len <= len + 1 || memcmp(c.origin.ptr, deployment, len) != 0 || c.origin.ptr[len] != '/'
        || kedge_id_from(kedge_view_of(c.origin.ptr + len + 1, c.origin.len - len - 1), &tenant)) {
        return KEDGE_E_FORMAT;
    }
    kedge_checkpoint_key(&tenant, c.size, ret_key);
    return ret_key->err;
}

int kedge_entry_index(struct kedge_view entry, const char *deployment, bool in_main,
                      struct kedge_buf *ret_key, struct kedge_hash ret_refs[KEDGE_ENTRY_REFS_MAX],
                      size_t *ret_count)
{
    struct kedge_main_entry row = {.body = entry};
    struct kedge_signed_statement signed_by;
    struct kedge_statement st;
    *ret_count = 0;
    int err = in_main ? kedge_main_entry_decode(entry, &row) : KEDGE_OK;
    if (!err && in_main && row.kind == KEDGE_MAIN_CHECKPOINT) {
        return index_checkpoint(deployment, row.body, ret_key);
    }
    if (err) {
        return err;
    }
    err = kedge_statement_read(row.body, &st, &signed_by, NULL);
    kedge_buf_deinit(&signed_by.payload);
    if (!err) {
        kedge_statement_key(st.kind, &st.u, ret_key);
        *ret_count = kedge_statement_refs(&st, ret_refs);
    }
    return err ? err : ret_key->err;
}
