/* The records of coordinator.lmdb. They are the coordinator's own, and are read as strictly as a
 * stranger's: a record that is damaged must stop the start and be named, since a value that is merely
 * wrong (a state, a token) would be acted on. Unknown keys are errors too: they come from a newer program,
 * whose meaning this one would drop when it writes the record again. */
#include "coordinator/daemon/records.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "chain/statement/statement.h"
#include "common/base/try.h"
#include "common/json/json.h"

enum {
    ROUND_DIGITS = 8,
    REFUSAL_LEN = 4 + 2 * KEDGE_HASH_LEN + 8,
    SEQUENCE_DIGITS = 10,
    MOVE_LEN = 8 + 8 + 4 + 3, /* and the actor */
    NAME_MAX = 200,           /* of a key in a message */
};
static const int64_t TIME_MAX = INT64_C(1) << 53;

/* ---- what is wrong, and where ---- */

struct where {
    const char *table;
    struct kedge_view key;
    struct kedge_diag *d;
};

/* A key as people can read it: as it is when it is plain text, else in hex. */
static void name_key(struct kedge_view key, char out[NAME_MAX + 1])
{
    bool plain = key.len <= NAME_MAX;
    for (size_t i = 0; i < key.len && plain; i++) {
        plain = key.ptr[i] > ' ' && key.ptr[i] < 0x7f && key.ptr[i] != '"';
    }
    if (plain) {
        snprintf(out, NAME_MAX + 1, "%.*s", (int)key.len, key.len ? (const char *)key.ptr : "");
    } else {
        kedge_hex_encode(key.ptr, key.len < NAME_MAX / 2 ? key.len : NAME_MAX / 2, out);
    }
}

static int damaged(const struct where *w, const char *expected)
{
    char name[NAME_MAX + 1];
    name_key(w->key, name);
    (void)kedge_diag_set(w->d, KEDGE_E_CORRUPT, "coordinator.lmdb: table %s, key \"%s\": damaged record: %s",
                         w->table, name, expected);
    (void)kedge_diag_hint(w->d,
                          "put coordinator.lmdb back from a copy; ledgers and main chain are not affected");
    return KEDGE_E_CORRUPT;
}

/* ---- JSON ---- */

enum field_type { FIELD_ID, FIELD_KEY, FIELD_HASH, FIELD_HEX_OR_EMPTY, FIELD_INTEGER };

/* A key of a record, and where it goes. */
struct field {
    const char *name;
    void *ret;
    int64_t least, most; /* INTEGER */
    enum field_type type;
    bool optional, found;
};

/* Each type has exactly one spelling: hex in lower case of the exact length, numbers as integers
 * within their range. A value that two readers could understand differently is damage. */
static bool read_field(const json_t *v, struct field *f)
{
    const char *text = json_string_value(v);
    struct kedge_hash hash;
    switch (f->type) {
    case FIELD_ID:
        return text && kedge_id_from(kedge_view_str(text), f->ret) == KEDGE_OK;
    case FIELD_KEY: {
        struct kedge_public_key *key = f->ret;
        return text && kedge_hex_decode(kedge_view_str(text), key->b, sizeof key->b) == KEDGE_OK;
    }
    case FIELD_HASH:
        return text && kedge_hash_from_hex(kedge_view_str(text), f->ret) == KEDGE_OK;
    case FIELD_HEX_OR_EMPTY:
        if (!text || (text[0] && kedge_hash_from_hex(kedge_view_str(text), &hash) != KEDGE_OK)) {
            return false;
        }
        memcpy(f->ret, text, strlen(text) + 1);
        return true;
    case FIELD_INTEGER:
        if (!json_is_integer(v) || json_integer_value(v) < f->least || json_integer_value(v) > f->most) {
            return false;
        }
        *(int64_t *)f->ret = json_integer_value(v);
        return true;
    }
    return false;
}

/* Every key of the object is a field with a right value, and every field that must be there is. */
static int read_fields(const struct where *w, struct kedge_view value, struct field *fields, size_t count)
{
    json_t *root = NULL;
    struct kedge_diag d = {.text = ""};
    char expected[KEDGE_DIAG_TEXT_MAX / 2] = "";
    int err = kedgei_json_load(value, KEDGE_RECORD_MAX, "record", &root, &d);
    if (err) {
        snprintf(expected, sizeof expected, "%.200s", d.text);
        return err == KEDGE_E_NOMEM ? kedge_diag_set(w->d, err, "%s", expected) : damaged(w, expected);
    }
    const char *name;
    json_t *v;
    json_object_foreach(root, name, v)
    {
        size_t i = 0;
        while (i < count && strcmp(fields[i].name, name) != 0) {
            i++;
        }
        if (i == count) {
            snprintf(expected, sizeof expected, "unknown key \"%.60s\"", name);
        } else if (!read_field(v, &fields[i])) {
            snprintf(expected, sizeof expected, "\"%s\" has no right value", fields[i].name);
        } else {
            fields[i].found = true;
        }
    }
    for (size_t i = 0; i < count && !expected[0]; i++) {
        if (!fields[i].found && !fields[i].optional) {
            snprintf(expected, sizeof expected, "\"%s\" is missing", fields[i].name);
        }
    }
    json_decref(root);
    return expected[0] ? damaged(w, expected) : KEDGE_OK;
}

/* ---- tokens ---- */

/* The record of a token has two lives: made (whose it is, until when) and used (which keys came
 * with it). Half of the second, one key without the other, cannot come from this program. */
int kedge_token_record_decode(struct kedge_view key, struct kedge_view value, struct kedge_token_record *ret,
                              struct kedge_diag *reterr)
{
    struct where w = {"token", key, reterr};
    struct kedge_token_record r;
    int64_t expiry = 0;
    memset(&r, 0, sizeof r);
    struct field fields[] = {
        {.name = "tenant", .type = FIELD_ID, .ret = &r.tenant},
        {.name = "site", .type = FIELD_ID, .ret = &r.site},
        {.name = "expiry_s", .type = FIELD_INTEGER, .ret = &expiry, .most = TIME_MAX},
        {.name = "tls_key", .type = FIELD_KEY, .optional = true, .ret = &r.tls_key},
        {.name = "statement_key", .type = FIELD_KEY, .optional = true, .ret = &r.statement_key}};
    if (key.len != KEDGE_HASH_LEN) {
        return damaged(&w, "the key is no digest");
    }
    KEDGE_TRY(read_fields(&w, value, fields, sizeof fields / sizeof fields[0]));
    if (fields[3].found != fields[4].found) {
        KEDGE_TRY(damaged(&w, "\"tls_key\" and \"statement_key\" stand together or not at all"));
    }
    r.expiry_s = (uint64_t)expiry;
    r.used = fields[3].found;
    *ret = r;
    return KEDGE_OK;
}

int kedge_token_record_encode(const struct kedge_token_record *r, struct kedge_buf *out)
{
    char hex[2 * KEDGE_KEY_LEN + 1];
    kedge_buf_printf(out, "{\"tenant\":\"%s\",\"site\":\"%s\",\"expiry_s\":%" PRIu64, r->tenant.s, r->site.s,
                     r->expiry_s);
    if (r->used) {
        kedge_hex_encode(r->tls_key.b, KEDGE_KEY_LEN, hex);
        kedge_buf_printf(out, ",\"tls_key\":\"%s\"", hex);
        kedge_hex_encode(r->statement_key.b, KEDGE_KEY_LEN, hex);
        kedge_buf_printf(out, ",\"statement_key\":\"%s\"", hex);
    }
    kedge_buf_printf(out, "}");
    return out->err;
}

/* ---- readers' tokens ---- */

/* An auditor's token reads every log, a tenant's only its own. So the two forms exclude each other:
 * a damaged record must not turn a tenant's token into an auditor's, which the missing name of a
 * tenant would do by itself. */
int kedge_read_token_record_decode(struct kedge_view key, struct kedge_view value,
                                   struct kedge_read_token_record *ret, struct kedge_diag *reterr)
{
    struct where w = {"state", key, reterr};
    struct kedge_read_token_record r;
    int64_t auditor = 0, created = 0, expiry = 0, revoked = 0;
    memset(&r, 0, sizeof r);
    struct field fields[] = {{.name = "name", .type = FIELD_ID, .ret = &r.name},
                             {.name = "auditor", .type = FIELD_INTEGER, .ret = &auditor, .most = 1},
                             {.name = "tenant", .type = FIELD_ID, .optional = true, .ret = &r.tenant},
                             {.name = "created_s", .type = FIELD_INTEGER, .ret = &created, .most = TIME_MAX},
                             {.name = "expiry_s", .type = FIELD_INTEGER, .ret = &expiry, .most = TIME_MAX},
                             {.name = "revoked_s", .type = FIELD_INTEGER, .ret = &revoked, .most = TIME_MAX}};
    if (key.len != KEDGE_READ_TOKEN_KEY_LEN
        || memcmp(key.ptr, KEDGE_READ_TOKEN_PREFIX, sizeof KEDGE_READ_TOKEN_PREFIX - 1) != 0) {
        return damaged(&w, "the key is not that of a reader's token");
    }
    KEDGE_TRY(read_fields(&w, value, fields, sizeof fields / sizeof fields[0]));
    if ((auditor == 1) == fields[2].found) {
        KEDGE_TRY(damaged(&w, "a token is an auditor's or a tenant's"));
    }
    r.auditor = auditor == 1;
    r.created_s = (uint64_t)created;
    r.expiry_s = (uint64_t)expiry;
    r.revoked_s = (uint64_t)revoked;
    *ret = r;
    return KEDGE_OK;
}

int kedge_read_token_record_encode(const struct kedge_read_token_record *r, struct kedge_buf *out)
{
    kedge_buf_printf(out, "{\"name\":\"%s\",\"auditor\":%d", r->name.s, r->auditor ? 1 : 0);
    if (!r->auditor) {
        kedge_buf_printf(out, ",\"tenant\":\"%s\"", r->tenant.s);
    }
    kedge_buf_printf(out, ",\"created_s\":%" PRIu64 ",\"expiry_s\":%" PRIu64 ",\"revoked_s\":%" PRIu64 "}",
                     r->created_s, r->expiry_s, r->revoked_s);
    return out->err;
}

/* Found by the digest and not by the secret: the time that the search takes tells nothing about a
 * secret, and a stolen database holds none. */
void kedge_read_token_key(const uint8_t secret[KEDGE_HASH_LEN], uint8_t out[KEDGE_READ_TOKEN_KEY_LEN])
{
    struct kedge_hash id;
    kedge_sha256(kedge_view_of(secret, KEDGE_HASH_LEN), &id);
    memcpy(out, KEDGE_READ_TOKEN_PREFIX, sizeof KEDGE_READ_TOKEN_PREFIX - 1);
    memcpy(out + sizeof KEDGE_READ_TOKEN_PREFIX - 1, id.b, KEDGE_HASH_LEN);
}

/* ---- viewers ---- */

/* Tenant and name stand in the key alone, so there cannot be two records of one viewer that disagree. */
static bool read_viewer_key(struct kedge_view key, struct kedge_viewer_record *ret)
{
    const size_t start = sizeof KEDGE_VIEWER_PREFIX - 1;
    if (key.len < start || memcmp(key.ptr, KEDGE_VIEWER_PREFIX, start) != 0) {
        return false;
    }
    const uint8_t *slash = memchr(key.ptr + start, '/', key.len - start);
    if (!slash) {
        return false;
    }
    const size_t tenant_len = (size_t)(slash - key.ptr) - start;
    return kedge_id_from(kedge_view_of(key.ptr + start, tenant_len), &ret->tenant) == KEDGE_OK
           && kedge_id_from(kedge_view_of(slash + 1, key.len - start - tenant_len - 1), &ret->name)
                  == KEDGE_OK;
}

int kedge_viewer_record_decode(struct kedge_view key, struct kedge_view value,
                               struct kedge_viewer_record *ret, struct kedge_diag *reterr)
{
    struct where w = {"state", key, reterr};
    struct kedge_viewer_record r;
    int64_t since = 0;
    memset(&r, 0, sizeof r);
    struct field fields[] = {{.name = "key", .type = FIELD_KEY, .ret = &r.key},
                             {.name = "since_s", .type = FIELD_INTEGER, .ret = &since, .most = TIME_MAX}};
    if (!read_viewer_key(key, &r)) {
        return damaged(&w, "the key is not that of a viewer");
    }
    KEDGE_TRY(read_fields(&w, value, fields, sizeof fields / sizeof fields[0]));
    r.since_s = (uint64_t)since;
    *ret = r;
    return KEDGE_OK;
}

void kedge_viewer_record_key(const struct kedge_id *tenant, const struct kedge_id *name,
                             struct kedge_buf *out)
{
    kedge_buf_printf(out, KEDGE_VIEWER_PREFIX "%s/%s", tenant->s, name->s);
}

int kedge_viewer_record_encode(const struct kedge_viewer_record *r, struct kedge_buf *out_key,
                               struct kedge_buf *out_value)
{
    char hex[2 * KEDGE_KEY_LEN + 1];
    kedge_hex_encode(r->key.b, KEDGE_KEY_LEN, hex);
    kedge_viewer_record_key(&r->tenant, &r->name, out_key);
    kedge_buf_printf(out_value, "{\"key\":\"%s\",\"since_s\":%" PRIu64 "}", hex, r->since_s);
    return out_key->err ? out_key->err : out_value->err;
}

/* ---- sites that were seen ---- */

/* Eight bytes and not JSON: there is one such record for each site, and all that were heard of are
 * rewritten once a minute. */
int kedge_seen_record_decode(struct kedge_view key, struct kedge_view value, struct kedge_seen_record *ret,
                             struct kedge_diag *reterr)
{
    struct where w = {"state", key, reterr};
    if (value.len != 8) {
        return damaged(&w, "expected 8 bytes");
    }
    uint64_t ms = kedge_load_be64(value.ptr);
    if (ms == 0 || ms > (uint64_t)TIME_MAX) {
        return damaged(&w, "expected a time in ms");
    }
    ret->ms = ms;
    return KEDGE_OK;
}

void kedge_seen_record_key(const struct kedge_id *tenant, const struct kedge_id *site, struct kedge_buf *out)
{
    kedge_buf_printf(out, KEDGE_SEEN_PREFIX "%s/%s", tenant->s, site->s);
}

void kedge_seen_record_encode(const struct kedge_id *tenant, const struct kedge_id *site,
                              const struct kedge_seen_record *r, struct kedge_buf *out_key,
                              struct kedge_buf *out_value)
{
    kedge_seen_record_key(tenant, site, out_key);
    kedge_buf_put_u64(out_value, r->ms);
}

/* ---- jobs ---- */

int kedge_job_token_decode(struct kedge_view key, struct kedge_view value, struct kedge_id *ret,
                           struct kedge_diag *reterr)
{
    struct where w = {"state", key, reterr};
    return kedge_id_from(value, ret) == KEDGE_OK ? KEDGE_OK : damaged(&w, "expected the name of a job");
}

void kedge_job_token_key(const char *token_hash, struct kedge_buf *out)
{
    kedge_buf_printf(out, KEDGE_JOB_TOKEN_PREFIX "%s", token_hash);
}

/* The name stands in key and value, so a record under another's key is noticed. A reason is taken
 * only if it is an error that this program knows: it decides what `job show` says and how a restart
 * goes on. */
int kedge_job_record_decode(struct kedge_view key, struct kedge_view value, struct kedge_job_record *ret,
                            struct kedge_diag *reterr)
{
    struct where w = {"job", key, reterr};
    struct kedge_job_record r;
    int64_t state = 0, reason = 0, created = 0;
    memset(&r, 0, sizeof r);
    struct field fields[] = {
        {.name = "job", .type = FIELD_ID, .ret = &r.job},
        {.name = "spec", .type = FIELD_HASH, .ret = &r.spec},
        {.name = "initial_model", .type = FIELD_HASH, .ret = &r.initial_model},
        {.name = "state", .type = FIELD_INTEGER, .ret = &state, .most = KEDGE_JOB_CANCELLED},
        {.name = "reason", .type = FIELD_INTEGER, .ret = &reason, .least = INT16_MIN},
        {.name = "created_ms", .type = FIELD_INTEGER, .ret = &created, .most = TIME_MAX},
        {.name = "token", .type = FIELD_HEX_OR_EMPTY, .ret = r.token}};
    KEDGE_TRY(read_fields(&w, value, fields, sizeof fields / sizeof fields[0]));
    if (!kedge_view_eq(key, kedge_view_str(r.job.s))) {
        KEDGE_TRY(damaged(&w, "\"job\" is another one"));
    }
    if (kedge_err_find(kedge_err_code((int)reason)) != (int)reason) {
        KEDGE_TRY(damaged(&w, "\"reason\" is no error"));
    }
    r.state = (enum kedge_job_state)state;
    r.reason = (int)reason;
    r.created_ms = (uint64_t)created;
    *ret = r;
    return KEDGE_OK;
}

int kedge_job_record_encode(const struct kedge_job_record *r, struct kedge_buf *out)
{
    char spec[KEDGE_HASH_HEX_LEN + 1], initial[KEDGE_HASH_HEX_LEN + 1];
    kedge_hash_hex(&r->spec, spec);
    kedge_hash_hex(&r->initial_model, initial);
    kedge_buf_printf(out,
                     "{\"job\":\"%s\",\"spec\":\"%s\",\"initial_model\":\"%s\",\"state\":%d,\"reason\":%d,"
                     "\"created_ms\":%" PRIu64 ",\"token\":\"%s\"}",
                     r->job.s, spec, initial, (int)r->state, r->reason, r->created_ms, r->token);
    return out->err;
}

/* ---- moves of jobs ---- */

void kedge_job_move_prefix(const struct kedge_id *job, struct kedge_buf *out)
{
    kedge_buf_printf(out, KEDGE_JOB_MOVE_PREFIX "%s/", job->s);
}

void kedge_job_move_key(const struct kedge_id *job, uint32_t sequence, struct kedge_buf *out)
{
    kedge_job_move_prefix(job, out);
    kedge_buf_printf(out, "%010" PRIu32, sequence);
}

void kedge_job_move_encode(const struct kedge_job_move *m, struct kedge_buf *out_key,
                           struct kedge_buf *out_value)
{
    kedge_job_move_key(&m->job, m->sequence, out_key);
    kedge_buf_put_u64(out_value, m->epoch);
    kedge_buf_put_u64(out_value, m->ms);
    kedge_buf_put_u32(out_value, (uint32_t)m->reason);
    kedge_buf_put_u8(out_value, (uint8_t)m->from);
    kedge_buf_put_u8(out_value, (uint8_t)m->to);
    kedge_buf_put_u8(out_value, (uint8_t)m->cause);
    kedge_buf_put(out_value, m->actor, strlen(m->actor));
}

/* The key's job and number; false: it is no move's. */
static bool read_move_key(struct kedge_view key, struct kedge_job_move *ret)
{
    const size_t prefix = sizeof KEDGE_JOB_MOVE_PREFIX - 1;
    if (key.len <= prefix + SEQUENCE_DIGITS + 1 || memcmp(key.ptr, KEDGE_JOB_MOVE_PREFIX, prefix) != 0) {
        return false;
    }
    const size_t slash = key.len - SEQUENCE_DIGITS - 1;
    const struct kedge_view digits = kedge_view_of(key.ptr + slash + 1, SEQUENCE_DIGITS);
    uint64_t sequence = 0;
    for (size_t i = 0; i < digits.len; i++) {
        if (digits.ptr[i] < '0' || digits.ptr[i] > '9') {
            return false;
        }
        sequence = 10 * sequence + (uint64_t)(digits.ptr[i] - '0');
    }
    ret->sequence = (uint32_t)sequence;
    return sequence < UINT32_MAX && key.ptr[slash] == '/'
           && kedge_id_from(kedge_view_of(key.ptr + prefix, slash - prefix), &ret->job) == KEDGE_OK;
}

/* Whether the move was one that a job may make is looked at too: what is told from here is told as a fact. */
int kedge_job_move_decode(struct kedge_view key, struct kedge_view value, struct kedge_job_move *ret,
                          struct kedge_diag *reterr)
{
    struct where w = {"state", key, reterr};
    struct kedge_job_move m;
    memset(&m, 0, sizeof m);
    if (!read_move_key(key, &m)) {
        return damaged(&w, "the key is not " KEDGE_JOB_MOVE_PREFIX "JOB/SEQUENCE");
    }
    if (value.len <= MOVE_LEN || value.len > MOVE_LEN + KEDGE_ACTOR_MAX) {
        return damaged(&w, "it has not its length");
    }
    struct kedge_reader in = kedge_reader_of(value);
    m.epoch = kedge_read_u64(&in);
    m.ms = kedge_read_u64(&in);
    m.reason = (int)(int32_t)kedge_read_u32(&in);
    m.from = (enum kedge_job_state)kedge_read_u8(&in);
    m.to = (enum kedge_job_state)kedge_read_u8(&in);
    const uint8_t cause = kedge_read_u8(&in);
    const struct kedge_view actor = kedge_read_bytes(&in, value.len - MOVE_LEN);
    if (m.epoch < 1 || m.epoch > (uint64_t)TIME_MAX || m.ms > (uint64_t)TIME_MAX) {
        return damaged(&w, "its epoch or its time is out of range");
    }
    if (!kedge_job_state_allows(m.from, m.to) || cause >= KEDGE_CAUSE_COUNT) {
        return damaged(&w, "no job makes such a move");
    }
    if (kedge_err_find(kedge_err_code(m.reason)) != m.reason) {
        return damaged(&w, "its reason is no error");
    }
    if (!kedge_text_is_plain(actor) || memchr(actor.ptr, '\0', actor.len)) {
        return damaged(&w, "its actor is no plain text");
    }
    m.cause = (enum kedge_job_cause)cause;
    memcpy(m.actor, actor.ptr, actor.len);
    *ret = m;
    return KEDGE_OK;
}

int kedge_epoch_decode(struct kedge_view value, uint64_t *ret, struct kedge_diag *reterr)
{
    struct where w = {"state", kedge_view_str(KEDGE_EPOCH_KEY), reterr};
    struct kedge_reader in = kedge_reader_of(value);
    const uint64_t epoch = kedge_read_u64(&in);
    if (kedge_reader_end(&in) != KEDGE_OK || epoch < 1 || epoch >= (uint64_t)TIME_MAX) {
        return damaged(&w, "expected a number of starts");
    }
    *ret = epoch;
    return KEDGE_OK;
}

/* ---- refusals ---- */

/* Keys of refusals are read part by part from the left. The round has a fixed number of digits, so
 * that keys sort by rounds and the refusals of one round are one range: that is how those of
 * earlier rounds are removed together. */
static bool next_part(struct kedge_view *rest, struct kedge_view *ret)
{
    const uint8_t *end = rest->len ? memchr(rest->ptr, '/', rest->len) : NULL;
    if (!end) {
        return false;
    }
    *ret = kedge_view_of(rest->ptr, (size_t)(end - rest->ptr));
    *rest = kedge_view_of(end + 1, rest->len - ret->len - 1);
    return true;
}

static bool next_name(struct kedge_view *rest, struct kedge_id *ret)
{
    struct kedge_view part;
    return next_part(rest, &part) && kedge_id_from(part, ret) == KEDGE_OK;
}

static bool next_round(struct kedge_view *rest, uint32_t *ret)
{
    struct kedge_view part;
    uint32_t round = 0;
    if (!next_part(rest, &part) || part.len != ROUND_DIGITS) {
        return false;
    }
    for (size_t i = 0; i < ROUND_DIGITS; i++) {
        if (part.ptr[i] < '0' || part.ptr[i] > '9') {
            return false;
        }
        round = 10 * round + (uint32_t)(part.ptr[i] - '0');
    }
    *ret = round;
    return round <= KEDGE_ROUNDS_MAX;
}

/* What comes back here is told to the core as part of an open round, so it must be a refusal that
 * the core could have decided: an error of class REJECT, a weight in range, a kind that can be
 * refused. */
int kedge_refusal_record_decode(struct kedge_view key, struct kedge_view value,
                                struct kedge_refusal_record *ret, struct kedge_diag *reterr)
{
    struct where w = {"round", key, reterr};
    struct kedge_refusal_record r;
    struct kedge_view rest = key;
    memset(&r, 0, sizeof r);
    if (key.len > KEDGE_RECORD_KEY_MAX || !next_name(&rest, &r.job) || !next_round(&rest, &r.round)
        || !next_name(&rest, &r.tenant) || !next_name(&rest, &r.site) || rest.len != 1
        || (rest.ptr[0] != '0' + (int)KEDGE_TASK_PRETRAIN && rest.ptr[0] != '0' + (int)KEDGE_TASK_TRAIN)) {
        return damaged(&w, "the key is not JOB/ROUND/TENANT/SITE/KIND");
    }
    if (value.len != REFUSAL_LEN) {
        return damaged(&w, "it has not its length");
    }
    struct kedge_reader in = kedge_reader_of(value);
    r.kind = (enum kedge_task_kind)(rest.ptr[0] - '0');
    r.err = (int)(int32_t)kedge_read_u32(&in);
    memcpy(r.envelope.b, kedge_read_bytes(&in, KEDGE_HASH_LEN).ptr, KEDGE_HASH_LEN);
    memcpy(r.update.b, kedge_read_bytes(&in, KEDGE_HASH_LEN).ptr, KEDGE_HASH_LEN);
    r.weight = kedge_read_u64(&in);
    if (kedge_err_class(r.err) != KEDGE_CLASS_REJECT) {
        return damaged(&w, "its reason is no refusal");
    }
    if (r.weight > KEDGE_ST_COUNT_MAX) {
        return damaged(&w, "its weight is out of range");
    }
    *ret = r;
    return KEDGE_OK;
}

void kedge_refusal_prefix(const struct kedge_id *job, uint32_t round, struct kedge_buf *out)
{
    kedge_buf_printf(out, "%s/", job->s);
    if (round != KEDGE_COORD_NONE) {
        kedge_buf_printf(out, "%08" PRIu32 "/", round);
    }
}

void kedge_refusal_record_encode(const struct kedge_refusal_record *r, struct kedge_buf *out_key,
                                 struct kedge_buf *out_value)
{
    kedge_refusal_prefix(&r->job, r->round, out_key);
    kedge_buf_printf(out_key, "%s/%s/%u", r->tenant.s, r->site.s, (unsigned)r->kind);
    kedge_buf_put_u32(out_value, (uint32_t)r->err);
    kedge_buf_put(out_value, r->envelope.b, KEDGE_HASH_LEN);
    kedge_buf_put(out_value, r->update.b, KEDGE_HASH_LEN);
    kedge_buf_put_u64(out_value, r->weight);
}
