/* Who speaks for the federation: a script of statements each, in the main chain and in a tenant's ledger, and
 * what the auditor must call it. No job runs. */
#include "chain/statement/entry_index.h"
#include "common/base/mem.h"
#include "tests/fixtures/federation_impl.h"
#include "tests/fixtures/run.h"
#include "tests/unit/audit/support.h"

enum { OPS_MAX = 8 };

enum op_kind {
    END,
    ROTATE, /* the statement key `key` by `new` */
    GRANT,  /* `key` becomes an operator's */
    QUORUM, /* change `number` of the policy to `quorum` */
    CLOSE,  /* another statement of the coordinator, in the main chain */
    ANCHOR, /* a checkpoint of org-a, or with "b" of org-b */
    ASSIGN, /* a statement of the coordinator in org-a's ledger */
    ADD,    /* an admin key of org-a */
    CHANGE, /* org-a's admin key `key` by `new` */
};
enum twist { STRAIGHT, OTHER_CHAIN, TOO_LATE };

/* Keys are named by what they are made from (fx_key_of); "statement" is the first statement key. */
struct op {
    enum op_kind kind;
    const char *by; /* several with a space between */
    const char *key, *new;
    uint32_t number, quorum;
    enum twist twist;
};

#define ONE(what, signers, about)                       \
    {                                                   \
        .kind = (what), .by = (signers), .key = (about) \
    }
#define TWO(what, signers, about, next)                                \
    {                                                                  \
        .kind = (what), .by = (signers), .key = (about), .new = (next) \
    }
#define VOTE(signers, n, q)                                           \
    {                                                                 \
        .kind = QUORUM, .by = (signers), .number = (n), .quorum = (q) \
    }

static const struct script {
    const char *what;
    enum kedge_audit_code code;
    const char *where; /* NULL: nothing is held against signatures, keys and places */
    struct op ops[OPS_MAX];
} scripts[] = {
    {"the old key signs, then both, then the new one",
     KEDGE_AUDIT_KEY,
     NULL,
     {ONE(CLOSE, "statement", "j1"), TWO(ROTATE, "statement k2", "statement", "k2"), ONE(CLOSE, "k2", "j2"),
      ONE(GRANT, "k2", "op"), TWO(ROTATE, "k3 k2", "k2", "k3"), ONE(CLOSE, "k3", "j3")}},
    {"the old key behind its rotation",
     KEDGE_AUDIT_SIGNATURE,
     "main[2]",
     {TWO(ROTATE, "statement k2", "statement", "k2"), ONE(CLOSE, "statement", "j1")}},
    {"the new key before it",
     KEDGE_AUDIT_SIGNATURE,
     "main[1]",
     {ONE(CLOSE, "k2", "j1"), TWO(ROTATE, "statement k2", "statement", "k2")}},
    {"the old key grants a role behind its rotation",
     KEDGE_AUDIT_KEY_REVOKED,
     "main[2]",
     {TWO(ROTATE, "statement k2", "statement", "k2"), ONE(GRANT, "statement", "op")}},
    {"a rotation without the new key",
     KEDGE_AUDIT_SIGNATURE,
     "main[1]",
     {TWO(ROTATE, "statement", "statement", "k2")}},
    {"a rotation without the old key",
     KEDGE_AUDIT_SIGNATURE,
     "main[1]",
     {TWO(ROTATE, "k2", "statement", "k2")}},
    {"a rotation with a stranger's signature",
     KEDGE_AUDIT_SIGNATURE,
     "main[1]",
     {TWO(ROTATE, "statement k2 k3", "statement", "k2")}},
    {"a key rotated twice",
     KEDGE_AUDIT_KEY,
     "main[2]",
     {TWO(ROTATE, "statement k2", "statement", "k2"), TWO(ROTATE, "k2 k3", "statement", "k3")}},
    {"back to a key that went",
     KEDGE_AUDIT_KEY,
     "main[2]",
     {TWO(ROTATE, "statement k2", "statement", "k2"), TWO(ROTATE, "statement k2", "k2", "statement")}},
    {"rotated to an operator's key",
     KEDGE_AUDIT_KEY,
     "main[2]",
     {ONE(GRANT, "statement", "op"), TWO(ROTATE, "statement op", "statement", "op")}},
    {"a rotation for another main chain of that name",
     KEDGE_AUDIT_MISPLACED,
     "main[1]",
     {{.kind = ROTATE, .by = "statement k2", .key = "statement", .new = "k2", .twist = OTHER_CHAIN}}},
    {"a role behind its bound",
     KEDGE_AUDIT_MISPLACED,
     "main[1]",
     {{.kind = GRANT, .by = "statement", .key = "op", .twist = TOO_LATE}}},

    /* the coordinator in a tenant's ledger */
    {"in a ledger the last checkpoint before the rotation divides",
     KEDGE_AUDIT_KEY,
     NULL,
     {ONE(ASSIGN, "statement", "j1"),
      {.kind = ANCHOR},
      TWO(ROTATE, "statement k2", "statement", "k2"),
      ONE(ASSIGN, "k2", "j2"),
      {.kind = ANCHOR},
      TWO(ROTATE, "k2 k3", "k2", "k3"),
      ONE(ASSIGN, "k3", "j3")}},
    {"the old key in a ledger behind that checkpoint",
     KEDGE_AUDIT_SIGNATURE,
     "org-a[2]",
     {ONE(ASSIGN, "statement", "j1"),
      {.kind = ANCHOR},
      TWO(ROTATE, "statement k2", "statement", "k2"),
      ONE(ASSIGN, "statement", "j2")}},
    {"the new key before it",
     KEDGE_AUDIT_SIGNATURE,
     "org-a[1]",
     {ONE(ASSIGN, "k2", "j1"), {.kind = ANCHOR}, TWO(ROTATE, "statement k2", "statement", "k2")}},
    {"no checkpoint before the rotation",
     KEDGE_AUDIT_SIGNATURE,
     "org-a[1]",
     {ONE(ASSIGN, "statement", "j1"), TWO(ROTATE, "statement k2", "statement", "k2"), {.kind = ANCHOR}}},

    /* organisations */
    {"two organisations approve",
     KEDGE_AUDIT_KEY,
     NULL,
     {{.kind = ANCHOR},
      {.kind = ANCHOR, .by = "b"},
      VOTE("statement org-a org-b", 1, 2),
      ONE(GRANT, "statement org-b org-a", "op"),
      TWO(ROTATE, "statement k2 org-a org-b", "statement", "k2"),
      VOTE("k2 org-a org-b", 2, 0),
      ONE(GRANT, "k2", "op2")}},
    {"nobody approves",
     KEDGE_AUDIT_SIGNATURE,
     "main[4]",
     {{.kind = ANCHOR},
      {.kind = ANCHOR, .by = "b"},
      VOTE("statement org-a org-b", 1, 2),
      ONE(GRANT, "statement", "op")}},
    {"one of two approves",
     KEDGE_AUDIT_SIGNATURE,
     "main[4]",
     {{.kind = ANCHOR},
      {.kind = ANCHOR, .by = "b"},
      VOTE("statement org-a org-b", 1, 2),
      ONE(GRANT, "statement org-a", "op")}},
    {"two admins of one organisation",
     KEDGE_AUDIT_SIGNATURE,
     "main[4]",
     {ONE(ADD, "org-a a2", "a2"),
      {.kind = ANCHOR},
      {.kind = ANCHOR, .by = "b"},
      VOTE("statement org-a org-b", 1, 2),
      ONE(GRANT, "statement org-a a2", "op")}},
    {"not without the coordinator",
     KEDGE_AUDIT_SIGNATURE,
     "main[4]",
     {{.kind = ANCHOR},
      {.kind = ANCHOR, .by = "b"},
      VOTE("statement org-a org-b", 1, 2),
      ONE(GRANT, "org-a org-b", "op")}},
    {"an admin whom no checkpoint knows yet",
     KEDGE_AUDIT_SIGNATURE,
     "main[4]",
     {{.kind = ANCHOR},
      {.kind = ANCHOR, .by = "b"},
      VOTE("statement org-a org-b", 1, 2),
      ONE(ADD, "org-a a2", "a2"),
      ONE(GRANT, "statement a2 org-b", "op")}},
    {"an admin that went with what a checkpoint covers",
     KEDGE_AUDIT_KEY_REVOKED,
     "main[5]",
     {{.kind = ANCHOR},
      {.kind = ANCHOR, .by = "b"},
      VOTE("statement org-a org-b", 1, 2),
      TWO(CHANGE, "org-a a2", "org-a", "a2"),
      {.kind = ANCHOR},
      ONE(GRANT, "statement org-a org-b", "op")}},
    {"an admin that went behind it",
     KEDGE_AUDIT_KEY,
     NULL,
     {{.kind = ANCHOR},
      {.kind = ANCHOR, .by = "b"},
      VOTE("statement org-a org-b", 1, 2),
      TWO(CHANGE, "org-a a2", "org-a", "a2"),
      ONE(GRANT, "statement org-a org-b", "op")}},
    {"a stranger among those who approve",
     KEDGE_AUDIT_SIGNATURE,
     "main[3]",
     {{.kind = ANCHOR}, {.kind = ANCHOR, .by = "b"}, ONE(GRANT, "statement k7", "op")}},
    {"a quorum that not all of it approve",
     KEDGE_AUDIT_SIGNATURE,
     "main[3]",
     {{.kind = ANCHOR}, {.kind = ANCHOR, .by = "b"}, VOTE("statement org-a", 1, 2)}},
    {"a quorum that is lowered by fewer",
     KEDGE_AUDIT_SIGNATURE,
     "main[4]",
     {{.kind = ANCHOR},
      {.kind = ANCHOR, .by = "b"},
      VOTE("statement org-a org-b", 1, 2),
      VOTE("statement org-b", 2, 0)}},
    {"a change of the policy out of turn", KEDGE_AUDIT_MISPLACED, "main[1]", {VOTE("statement", 2, 0)}},
};

static struct kedge_key_pair pair_of(const struct fx *x, const char *name)
{
    struct kedge_key_pair pair = x->statement_key;
    if (strcmp(name, "statement") != 0) {
        fx_key_of(name, &pair);
    }
    return pair;
}

static struct kedge_st_main_bound bound_of(const struct fx *x, enum twist twist)
{
    struct kedge_st_main_bound of = fx_bound(x);
    if (twist == OTHER_CHAIN) {
        of.main_log_key = pair_of(x, "elsewhere").public;
    } else if (twist == TOO_LATE) {
        of.before = 1;
    }
    return of;
}

static void fill(const struct fx *x, const struct op *op, struct kedge_statement *st)
{
    struct kedge_id tenant = fx_id_of("org-a");
    struct kedge_st_main_bound of = bound_of(x, op->twist);
    struct kedge_public_key key = pair_of(x, op->key ? op->key : "none").public;
    struct kedge_public_key next = pair_of(x, op->new ? op->new : "none").public;
    memset(st, 0, sizeof *st);
    switch (op->kind) {
    case ROTATE:
        st->kind = KEDGE_ST_STATEMENT_KEY_ROTATED;
        st->u.statement_key_rotated = (struct kedge_st_statement_key_rotated){of, key, next, ""};
        break;
    case GRANT:
        st->kind = KEDGE_ST_ROLE_GRANTED;
        st->u.role_granted = (struct kedge_st_role_granted){of, KEDGE_CHAIN_OPERATOR, fx_id_of("ops"), key};
        break;
    case QUORUM:
        st->kind = KEDGE_ST_POLICY_CHANGED;
        st->u.policy_changed = (struct kedge_st_policy_changed){of, op->number, op->quorum};
        break;
    case CLOSE:
        st->kind = KEDGE_ST_JOB_CLOSED;
        st->u.job_closed = (struct kedge_st_job_closed){.job = fx_id_of(op->key)};
        break;
    case ASSIGN:
        st->kind = KEDGE_ST_GROUP_ASSIGNED;
        st->u.group_assigned = (struct kedge_st_group_assigned){
            .tenant = tenant, .site = fx_id_of("s1"), .job = fx_id_of(op->key)};
        break;
    case ADD:
        st->kind = KEDGE_ST_KEY_ADDED;
        st->u.key_added = (struct kedge_st_key_added){tenant, KEDGE_ROLE_ADMIN, key};
        break;
    case CHANGE:
        st->kind = KEDGE_ST_KEY_ROTATED;
        st->u.key_rotated = (struct kedge_st_key_rotated){.tenant = tenant, .old_key = key, .new_key = next};
        break;
    case END:
    case ANCHOR:
        break;
    }
}

/* As no coordinator would take it. */
static void append(struct fx *x, const struct op *op)
{
    static struct kedge_statement st;
    bool in_ledger = op->kind == ASSIGN || op->kind == ADD || op->kind == CHANGE;
    struct kedge_buf idem, envelope, more;
    char by[64], *rest = by;
    fill(x, op, &st);
    fx_position(&x->log[0], &st);
    kedge_buf_init(&idem, KEDGE_IDEM_KEY_MAX);
    kedge_buf_init(&envelope, KEDGE_ENTRY_MAX);
    snprintf(by, sizeof by, "%s", op->by);
    for (char *name = strtok_r(by, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
        struct kedge_key_pair pair = pair_of(x, name);
        kedge_buf_init(&more, KEDGE_ENTRY_MAX);
        ck_assert_int_eq(envelope.len ? kedge_statement_cosign(kedge_buf_view(&envelope), &pair, &more, NULL)
                                      : kedge_statement_sign(&st, &pair, &more, NULL),
                         KEDGE_OK);
        kedge_buf_deinit(&envelope);
        envelope = more;
    }
    struct kedge_state_log *log = in_ledger ? &x->log[0] : &x->main;
    uint64_t index;
    kedge_statement_key(st.kind, &st.u, &idem);
    if (kedge_ledger_find(log->ledger, kedge_buf_view(&idem), &index) == KEDGE_OK) {
        kedge_buf_put_str(&idem, "/again");
    }
    kedge_buf_put_u8(&idem, 0);
    fx_append_bytes(log, kedge_buf_view(&envelope), (const char *)idem.ptr);
    kedge_buf_deinit(&idem);
    kedge_buf_deinit(&envelope);
}

static void write_script(const char *dir, const struct script *s)
{
    struct fx *x = kedge_mem_new(1, sizeof *x);
    ck_assert_ptr_nonnull(x);
    snprintf(x->dir, sizeof x->dir, "%s", dir);
    fx_make_state(x);
    for (int i = 0; i < OPS_MAX && s->ops[i].kind != END; i++) {
        if (s->ops[i].kind == ANCHOR) {
            fx_add_checkpoint(x, s->ops[i].by ? 1 : 0);
        } else {
            append(x, &s->ops[i]);
        }
    }
    fx_close_logs(x);
    kedge_mem_free(x);
}

static bool is_ours(const struct kedge_audit_finding *f)
{
    return f->severity == KEDGE_AUDIT_ERROR
           && (f->code == KEDGE_AUDIT_KEY || f->code == KEDGE_AUDIT_KEY_REVOKED
               || f->code == KEDGE_AUDIT_SIGNATURE || f->code == KEDGE_AUDIT_MISPLACED);
}

START_TEST(test_script)
{
    const struct script *s = &scripts[_i];
    struct kedge_audit_options options = {.threads = 1};
    bool found = !s->where;
    make_scratch();
    write_script(at("fx"), s);
    struct kedge_audit_report r = run(at("fx"), at("fx/trust.json"), NULL, false, options);
    for (uint32_t i = 0; i < r.finding_count; i++) {
        bool named = s->where && r.findings[i].code == s->code && strcmp(r.findings[i].where, s->where) == 0;
        found = found || named;
        if (is_ours(&r.findings[i]) && !named) {
            print_findings(&r);
            ck_abort_msg("%s: something else is held against it", s->what);
        }
    }
    if (!found) {
        print_findings(&r);
    }
    ck_assert_msg(found, "%s", s->what);
    kedge_audit_report_deinit(&r);
    remove_scratch();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("audit-authority");
    TCase *t = tcase_create("authority");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, test_script, 0, (int)(sizeof scripts / sizeof scripts[0]));
    suite_add_tcase(s, t);
    return run_suite(s);
}
