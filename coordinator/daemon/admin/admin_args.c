/* Reads what operators and tenants ask, from JSON into plain values. Pure and fuzzed: everything
 * that follows can rely on names being names, numbers in range and texts printable. Texts are
 * refused with characters that nobody sees, because they come back in logs and lists, where they
 * could forge lines. */
#include "coordinator/daemon/admin/admin_args.h"

#include <jansson.h>
#include <string.h>

#include "chain/log/dsse.h"
#include "chain/log/merkle.h"
#include "chain/statement/statement_position.h"
#include "chain/store/ledger.h"
#include "common/base/limits.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "common/base/try.h"
#include "common/json/json.h"
#include "common/wire/token.h"
#include "coordinator/core/coord.h"

int kedge_admin_open(struct kedge_view text, json_t **ret_args, const char **ret_verb,
                     struct kedge_diag *reterr)
{
    json_t *o = NULL;
    int err = kedgei_json_load(text, KEDGE_ADMIN_REQUEST_MAX, "request", &o, reterr);
    const char *verb = json_string_value(json_object_get(o, "verb"));
    if (!err && !verb) {
        err = kedge_diag_set(reterr, KEDGE_E_FORMAT, "expected a JSON object with a \"verb\"");
    }
    if (err) {
        json_decref(o);
        return err;
    }
    *ret_args = o;
    *ret_verb = verb;
    return KEDGE_OK;
}

static int get_id(const json_t *args, const char *key, struct kedge_id *ret, struct kedge_diag *d)
{
    const char *s = json_string_value(json_object_get(args, key));
    return s && kedge_id_from(kedge_view_str(s), ret) == KEDGE_OK
               ? KEDGE_OK
               : kedge_diag_set(d, KEDGE_E_FORMAT, "\"%s\": expected a name of a-z, 0-9, '.', '_', '-'", key);
}

/* A text, or nothing at all. */
static int get_text(const json_t *args, const char *key, const char **ret, struct kedge_diag *d)
{
    const json_t *v = json_object_get(args, key);
    if (v && !json_is_string(v)) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "\"%s\": expected a text", key);
    }
    *ret = json_string_value(v);
    bool is_spec = strcmp(key, "spec") == 0; /* a file of JSON, which job/job_spec.h checks */
    if (v && !is_spec && !kedge_text_is_plain(kedge_view_of(*ret, json_string_length(v)))) {
        return kedge_diag_set(
            d, KEDGE_E_FORMAT,
            "\"%s\": expected a text without control characters and characters that nobody sees", key);
    }
    return KEDGE_OK;
}

int kedge_admin_submit_args(const json_t *args, struct kedge_admin_submit *ret, struct kedge_diag *reterr)
{
    struct kedge_admin_submit a = {.spec = NULL};
    KEDGE_TRY(get_text(args, "spec", &a.spec, reterr));
    KEDGE_TRY(get_text(args, "token", &a.token, reterr));
    KEDGE_TRY(get_text(args, "initial", &a.initial, reterr));
    if (!a.spec || (a.token && (!a.token[0] || strlen(a.token) > KEDGE_ADMIN_TOKEN_MAX))) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "expected \"spec\" (text) and a \"token\" of at most %d characters",
                              KEDGE_ADMIN_TOKEN_MAX);
    }
    *ret = a;
    return KEDGE_OK;
}

int kedge_admin_token_args(const json_t *args, struct kedge_admin_token *ret, struct kedge_diag *reterr)
{
    struct kedge_admin_token a = {.address = NULL};
    json_int_t ttl = json_integer_value(json_object_get(args, "ttl_s"));
    KEDGE_TRY(get_id(args, "tenant", &a.tenant, reterr));
    KEDGE_TRY(get_id(args, "site", &a.site, reterr));
    KEDGE_TRY(get_text(args, "address", &a.address, reterr));
    if (a.address && (!a.address[0] || strlen(a.address) > KEDGE_TOKEN_ADDRESS_MAX)) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"address\": expected 1 to %d characters",
                              KEDGE_TOKEN_ADDRESS_MAX);
    }
    if (ttl < 1 || ttl > KEDGE_ADMIN_TTL_MAX_S) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"ttl_s\": expected 1 to %d seconds",
                              KEDGE_ADMIN_TTL_MAX_S);
    }
    a.ttl_s = (uint32_t)ttl;
    *ret = a;
    return KEDGE_OK;
}

int kedge_admin_signed_args(const json_t *args, struct kedge_admin_signed *ret, struct kedge_diag *reterr)
{
    struct kedge_admin_signed a;
    KEDGE_TRY(get_id(args, "tenant", &a.tenant, reterr));
    KEDGE_TRY(kedge_admin_envelope_args(args, &a.envelope, reterr));
    *ret = a;
    return KEDGE_OK;
}

static int root_of_none(void *arg, uint64_t size, struct kedge_hash *ret)
{
    (void)arg;
    KEDGE_ASSERT(size == 0); /* the judge asks for what the ledger has */
    kedge_merkle_empty_root(ret);
    return KEDGE_OK;
}

/* The first entry of a ledger that does not exist yet. */
static int check_first(const struct kedge_statement *st, const struct kedge_public_key *main_log_key,
                       struct kedge_diag *d)
{
    struct kedge_position_ledger none = {.main_log_key = main_log_key, .root = root_of_none};
    struct kedge_keybook book;
    kedge_keybook_init(&book, &st->u.key.tenant);
    return kedge_position_judge(&book, st, &none, d);
}

static int check_envelope(const struct kedge_admin_signed *a, const struct kedge_public_key *main_log_key,
                          struct kedge_diag *reterr)
{
    struct kedge_statement *st KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *st);
    struct kedge_buf payload KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_dsse_entry dsse;
    kedge_buf_init(&payload, KEDGE_ENTRY_MAX);
    KEDGE_TRY(st ? kedge_dsse_decode(a->envelope, &payload, &dsse) : KEDGE_E_NOMEM);
    KEDGE_TRY(kedge_statement_decode(kedge_buf_view(&payload), st, reterr));
    if (st->kind != KEDGE_ST_KEY || st->u.key.scope != KEDGE_SCOPE_ADMIN
        || !kedge_id_eq(&st->u.key.tenant, &a->tenant)) {
        return KEDGE_E_FORMAT;
    }
    KEDGE_TRY(kedge_dsse_entry_verify(&dsse, kedge_buf_view(&payload), &st->u.key.public_key));
    return check_first(st, main_log_key, reterr);
}

/* A tenant's first statement is judged without a ledger, for there is none yet: it must be an
 * admin's key, signed by itself, and made for the empty ledger of this deployment. So nobody can
 * add a tenant in another's name with an envelope from elsewhere. */
int kedge_admin_check_key(const struct kedge_admin_signed *a, const struct kedge_public_key *main_log_key,
                          struct kedge_diag *reterr)
{
    int err = check_envelope(a, main_log_key, reterr);
    if (!err || err == KEDGE_E_POSITION) {
        return err;
    }
    if (err == KEDGE_E_NOMEM) {
        return kedge_diag_set(reterr, err, "%s", kedge_strerror(err));
    }
    return kedge_diag_set(reterr, KEDGE_E_DENIED,
                          "\"envelope\": expected the admin's key of tenant %s, signed by itself",
                          a->tenant.s);
}

int kedge_admin_filter_args(const json_t *args, struct kedge_admin_filter *ret, struct kedge_diag *reterr)
{
    struct kedge_admin_filter a = {.tenant = NULL};
    KEDGE_TRY(get_text(args, "tenant", &a.tenant, reterr));
    KEDGE_TRY(get_text(args, "site", &a.site, reterr));
    *ret = a;
    return KEDGE_OK;
}

int kedge_admin_reader_args(const json_t *args, struct kedge_admin_reader *ret, struct kedge_diag *reterr)
{
    struct kedge_admin_reader a = {.auditor = false};
    const json_t *auditor = json_object_get(args, "auditor");
    json_int_t ttl = json_integer_value(json_object_get(args, "ttl_s"));
    int err = json_object_get(args, "name") ? get_id(args, "name", &a.name, reterr) : KEDGE_OK;
    if (!err && auditor && !json_is_boolean(auditor)) {
        err = kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"auditor\": expected true or false");
    }
    a.auditor = json_is_true(auditor);
    if (!err && a.auditor == (json_object_get(args, "tenant") != NULL)) {
        err = kedge_diag_set(reterr, KEDGE_E_FORMAT, "expected either \"tenant\" or \"auditor\": true");
    }
    if (!err && !a.auditor) {
        err = get_id(args, "tenant", &a.tenant, reterr);
    }
    if (!err && (ttl < 1 || ttl > KEDGE_ADMIN_READER_TTL_MAX_S)) {
        err = kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"ttl_s\": expected 1 to %d seconds",
                             KEDGE_ADMIN_READER_TTL_MAX_S);
    }
    if (!err) {
        a.ttl_s = (uint32_t)ttl;
        *ret = a;
    }
    return err;
}

int kedge_admin_reader_name(const json_t *args, struct kedge_id *ret, struct kedge_diag *reterr)
{
    return get_id(args, "name", ret, reterr);
}

static int get_key(const json_t *args, struct kedge_public_key *ret, struct kedge_diag *d)
{
    const char *hex = json_string_value(json_object_get(args, "key"));
    return hex && kedge_hex_decode(kedge_view_str(hex), ret->b, KEDGE_KEY_LEN) == KEDGE_OK
                   && kedge_public_key_is_valid(ret)
               ? KEDGE_OK
               : kedge_diag_set(d, KEDGE_E_FORMAT, "\"key\": expected a public key, 64 hex digits");
}

int kedge_admin_viewer_tenant(const json_t *args, struct kedge_id *ret, struct kedge_diag *reterr)
{
    return get_id(args, "tenant", ret, reterr);
}

int kedge_admin_viewer_args(const json_t *args, bool add, struct kedge_admin_viewer *ret,
                            struct kedge_diag *reterr)
{
    struct kedge_admin_viewer a = {.name = {.s = ""}};
    KEDGE_TRY(get_id(args, "tenant", &a.tenant, reterr));
    KEDGE_TRY(get_id(args, "name", &a.name, reterr));
    KEDGE_TRY(add ? get_key(args, &a.key, reterr) : KEDGE_OK);
    *ret = a;
    return KEDGE_OK;
}

/* true, false, or nothing at all: false. */
static int get_flag(const json_t *args, const char *key, bool *ret, struct kedge_diag *d)
{
    const json_t *v = json_object_get(args, key);
    *ret = json_is_true(v);
    return !v || json_is_boolean(v)
               ? KEDGE_OK
               : kedge_diag_set(d, KEDGE_E_FORMAT, "\"%s\": expected true or false", key);
}

static int check_reason(const char *reason, struct kedge_diag *d)
{
    return !reason || strlen(reason) <= KEDGE_ST_REASON_MAX
               ? KEDGE_OK
               : kedge_diag_set(d, KEDGE_E_FORMAT, "\"reason\": expected at most %d bytes",
                                KEDGE_ST_REASON_MAX);
}

int kedge_admin_role_args(const json_t *args, bool grant, struct kedge_admin_role *ret,
                          struct kedge_diag *reterr)
{
    struct kedge_admin_role a = {.reason = NULL};
    const char *role = json_string_value(json_object_get(args, "role"));
    KEDGE_TRY(grant ? get_id(args, "name", &a.name, reterr) : get_text(args, "reason", &a.reason, reterr));
    if (grant && (!role || (strcmp(role, "auditor") != 0 && strcmp(role, "operator") != 0))) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"role\": expected operator or auditor");
    }
    KEDGE_TRY(check_reason(a.reason, reterr));
    KEDGE_TRY(get_flag(args, "propose", &a.propose, reterr));
    KEDGE_TRY(get_key(args, &a.key, reterr));
    a.auditor = grant && role && strcmp(role, "auditor") == 0;
    *ret = a;
    return KEDGE_OK;
}

int kedge_admin_quorum_args(const json_t *args, struct kedge_admin_quorum *ret, struct kedge_diag *reterr)
{
    struct kedge_admin_quorum a = {.quorum = 0};
    const json_t *v = json_object_get(args, "quorum");
    json_int_t n = json_integer_value(v);
    int err = get_flag(args, "propose", &a.propose, reterr);
    if (!err && (!json_is_integer(v) || n < 0 || n > KEDGE_ST_QUORUM_MAX)) {
        err = kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"quorum\": expected 0 to %d organisations",
                             KEDGE_ST_QUORUM_MAX);
    }
    if (!err) {
        a.quorum = (uint32_t)n;
        *ret = a;
    }
    return err;
}

int kedge_admin_rotate_args(const json_t *args, struct kedge_admin_rotate *ret, struct kedge_diag *reterr)
{
    struct kedge_admin_rotate a = {.reason = NULL};
    KEDGE_TRY(get_text(args, "reason", &a.reason, reterr));
    KEDGE_TRY(check_reason(a.reason, reterr));
    KEDGE_TRY(get_flag(args, "propose", &a.propose, reterr));
    *ret = a;
    return KEDGE_OK;
}

int kedge_admin_envelope_args(const json_t *args, struct kedge_view *ret, struct kedge_diag *reterr)
{
    const json_t *v = json_object_get(args, "envelope");
    size_t len = json_string_length(v);
    if (len == 0 || len > KEDGE_ENTRY_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "\"envelope\": expected a signed statement of at most %d bytes",
                              KEDGE_ENTRY_MAX);
    }
    *ret = kedge_view_of(json_string_value(v), len);
    return KEDGE_OK;
}

int kedge_admin_updates_args(const json_t *args, struct kedge_admin_updates *ret, struct kedge_diag *reterr)
{
    struct kedge_admin_updates a = {.from = 0};
    const json_t *from = json_object_get(args, "from");
    int err = get_id(args, "tenant", &a.tenant, reterr);
    if (!err && from && (!json_is_integer(from) || json_integer_value(from) < 0)) {
        err = kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"from\": expected the index of an entry");
    }
    if (!err) {
        a.from = (uint64_t)json_integer_value(from);
        *ret = a;
    }
    return err;
}

int kedge_admin_receipt_args(const json_t *args, struct kedge_admin_receipt *ret, struct kedge_diag *reterr)
{
    struct kedge_admin_receipt a = {.key = NULL};
    const json_t *index = json_object_get(args, "index");
    KEDGE_TRY(get_id(args, "log", &a.log, reterr));
    KEDGE_TRY(get_text(args, "key", &a.key, reterr));
    if (a.key && (!a.key[0] || strlen(a.key) > KEDGE_IDEM_KEY_MAX)) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"key\": expected 1 to %d characters",
                              KEDGE_IDEM_KEY_MAX);
    }
    if (!a.key == !index || (index && (!json_is_integer(index) || json_integer_value(index) < 0))) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "expected either \"index\", a number from 0, or \"key\"");
    }
    a.index = (uint64_t)json_integer_value(index);
    a.is_main = strcmp(a.log.s, "main") == 0;
    *ret = a;
    return KEDGE_OK;
}

/* A number in its range, or the fallback where there is none. */
static int get_count(const json_t *args, const char *key, uint32_t least, uint32_t most, uint32_t fallback,
                     uint32_t *ret, struct kedge_diag *d)
{
    const json_t *v = json_object_get(args, key);
    const json_int_t n = v ? json_integer_value(v) : fallback;
    if ((v && !json_is_integer(v)) || n < least || n > most) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "\"%s\": expected a number from %u to %u", key,
                              (unsigned)least, (unsigned)most);
    }
    *ret = (uint32_t)n;
    return KEDGE_OK;
}

static int get_states(const json_t *args, uint32_t *ret, struct kedge_diag *d)
{
    const json_t *v = json_object_get(args, "state");
    const char *word = json_string_value(v);
    const uint32_t ended = 1u << KEDGE_JOB_COMPLETED | 1u << KEDGE_JOB_FAILED | 1u << KEDGE_JOB_CANCELLED;
    const bool is_ended = word && strcmp(word, "ended") == 0;
    *ret = v ? is_ended ? ended : 0 : UINT32_MAX;
    if (word && strcmp(word, "active") == 0) {
        *ret = ~ended;
    }
    for (uint32_t s = 0; word && s <= KEDGE_JOB_CANCELLED; s++) {
        *ret |= strcmp(word, kedge_job_state_name((enum kedge_job_state)s)) == 0 ? 1u << s : 0;
    }
    return *ret ? KEDGE_OK
                : kedge_diag_set(d, KEDGE_E_FORMAT, "\"state\": expected active, ended or a job's state");
}

/* A name in which nothing has to follow: every beginning of a name is one. */
static int get_optional_id(const json_t *args, const char *key, struct kedge_id *ret, struct kedge_diag *d)
{
    *ret = (struct kedge_id){.s = ""};
    return json_object_get(args, key) ? get_id(args, key, ret, d) : KEDGE_OK;
}

int kedge_admin_list_args(const json_t *args, struct kedge_admin_list *ret, struct kedge_diag *reterr)
{
    struct kedge_admin_list a;
    const json_t *since = json_object_get(args, "since_ms");
    a.after = json_object_get(args, "after") != NULL;
    if (a.after && json_object_get(args, "from")) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"from\" and \"after\" exclude each other");
    }
    if (since && (!json_is_integer(since) || json_integer_value(since) < 0)) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"since_ms\": expected a time in ms since 1970");
    }
    a.since_ms = (uint64_t)json_integer_value(since);
    KEDGE_TRY(get_optional_id(args, a.after ? "after" : "from", &a.from, reterr));
    KEDGE_TRY(get_optional_id(args, "prefix", &a.prefix, reterr));
    KEDGE_TRY(get_optional_id(args, "tenant", &a.tenant, reterr));
    KEDGE_TRY(get_states(args, &a.states, reterr));
    KEDGE_TRY(get_count(args, "limit", 1, KEDGE_ADMIN_LIST_MAX, KEDGE_ADMIN_LIST_MAX, &a.limit, reterr));
    *ret = a;
    return KEDGE_OK;
}

int kedge_admin_events_args(const json_t *args, struct kedge_admin_events *ret, struct kedge_diag *reterr)
{
    struct kedge_admin_events a;
    KEDGE_TRY(get_id(args, "job", &a.job, reterr));
    KEDGE_TRY(get_count(args, "from", 0, UINT32_MAX - 1, 0, &a.from, reterr));
    KEDGE_TRY(get_count(args, "limit", 1, KEDGE_ADMIN_EVENTS_MAX, KEDGE_ADMIN_EVENTS_MAX, &a.limit, reterr));
    *ret = a;
    return KEDGE_OK;
}

int kedge_admin_from_round(const json_t *args, uint32_t *ret, struct kedge_diag *reterr)
{
    const json_t *v = json_object_get(args, "from_round");
    json_int_t n = json_integer_value(v);
    if (v && (!json_is_integer(v) || n < 0 || n > UINT32_MAX)) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"from_round\": expected a round's number");
    }
    *ret = (uint32_t)n;
    return KEDGE_OK;
}
