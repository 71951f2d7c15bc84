/* Reads c2sp.org/tlog-policy in one pass over the lines. References go backwards only and nothing is a
 * member twice, so evaluation needs no recursion and no search for circles.
 *
 * No public key may occur twice, under any name or type: a party with two names would count twice in a
 * quorum, and a log that is its own witness would vouch for itself. Unsupported keys are kept and never
 * counted, so that a policy may name witnesses of the future without becoming weaker. */
#include "chain/log/witness_policy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "chain/log/lines.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "common/base/try.h"

enum {
    KEY_TYPE_MLDSA44 = 6,
    MLDSA44_KEY_LEN = 1312,             /* FIPS 204, ML-DSA-44 public key */
    KEY_BLOB_MAX = 1 + MLDSA44_KEY_LEN, /* type ‖ key */
};

struct parser {
    struct kedge_witness_policy *policy;
    struct kedge_diag *diag;
    uint64_t line_number;
    bool has_quorum;
    bool witness_is_member[KEDGE_WITNESSES_MAX];
    bool group_is_member[KEDGE_WITNESS_GROUPS_MAX];
    /* SHA-256 of each public key without its type: one key, one role. Logs first. */
    uint32_t key_count;
    struct kedge_hash keys[KEDGE_KNOWN_LOGS_MAX + KEDGE_WITNESSES_MAX];
    bool key_is_log[KEDGE_KNOWN_LOGS_MAX + KEDGE_WITNESSES_MAX];
};

/* A key as its text states it, before anything is known of its type. */
struct raw_key {
    struct kedge_view name;
    uint8_t id[KEDGE_KEY_ID_LEN];
    size_t blob_len;
    uint8_t blob[KEY_BLOB_MAX];
};

#define fail(parser, err, format, ...) \
    kedge_diag_set((parser)->diag, (err), "line %" PRIu64 ": " format, (parser)->line_number, __VA_ARGS__)

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t';
}

/* The next item of a line; false at its end. */
static bool take_item(struct kedge_view *rest, struct kedge_view *ret_item)
{
    size_t begin = 0;
    while (begin < rest->len && is_blank(rest->ptr[begin])) {
        begin++;
    }
    size_t end = begin;
    while (end < rest->len && !is_blank(rest->ptr[end])) {
        end++;
    }
    if (begin == end) {
        return false;
    }
    *ret_item = kedge_view_of(rest->ptr + begin, end - begin);
    *rest = kedge_view_of(rest->ptr + end, rest->len - end);
    return true;
}

/* Names come from others' files. They are cut between characters, and control characters become visible, so
 * that a message cannot be made to say something else. */
const char *kedge_witness_name_show(struct kedge_view name, char out[KEDGE_WITNESS_SHOWN_MAX])
{
    enum { SHOWN = 64 };
    size_t n = 0;
    bool cut = name.len > SHOWN;
    bool plain = kedge_utf8_is_valid(name);
    size_t len = cut ? SHOWN : name.len;
    while (cut && plain && len > 0 && (name.ptr[len] & 0xc0) == 0x80) {
        len--; /* between characters */
    }
    for (size_t i = 0; i < len;) {
        char shown[KEDGE_CHAR_SHOWN_MAX];
        size_t shown_len;
        i += kedge_char_show(kedge_view_of(name.ptr + i, len - i), shown, &shown_len);
        if (shown[0] == '\n' || shown[0] == '\t') { /* a name is on one line */
            shown[0] = ' ';
        }
        memcpy(out + n, shown, shown_len);
        n += shown_len;
    }
    snprintf(out + n, KEDGE_WITNESS_SHOWN_MAX - n, "%s", cut ? "\xe2\x80\xa6" : "");
    return out;
}

static bool is_name(struct kedge_view v, const char *text)
{
    return kedge_view_eq(v, kedge_view_str(text));
}

static bool find(const struct kedge_witness_policy *p, struct kedge_view name, struct kedge_witness_ref *ret)
{
    for (uint32_t i = 0; i < p->witness_count; i++) {
        if (kedge_view_eq(p->witnesses[i].name, name)) {
            *ret = (struct kedge_witness_ref){KEDGE_QUORUM_WITNESS, i};
            return true;
        }
    }
    for (uint32_t i = 0; i < p->group_count; i++) {
        if (kedge_view_eq(p->groups[i].name, name)) {
            *ret = (struct kedge_witness_ref){KEDGE_QUORUM_GROUP, i};
            return true;
        }
    }
    return false;
}

struct kedge_view kedge_witness_ref_name(const struct kedge_witness_policy *policy,
                                         struct kedge_witness_ref ref)
{
    switch (ref.kind) {
    case KEDGE_QUORUM_NONE:
        break;
    case KEDGE_QUORUM_WITNESS:
        return policy->witnesses[ref.index].name;
    case KEDGE_QUORUM_GROUP:
        return policy->groups[ref.index].name;
    }
    return kedge_view_str("none");
}

/* NAME+HHHHHHHH+BASE64 with an ID that fits; what the bytes are is for the caller to say. The key id is
 * computed again from name and key: a typing mistake in either is found when the policy is read, and not
 * when a cosignature is missed. */
static int read_key(struct parser *ps, struct kedge_view text, struct raw_key *ret)
{
    struct kedge_view rest = text, hex;
    if (!kedgei_cut(&rest, '+', &ret->name) || !kedgei_cut(&rest, '+', &hex)
        || !kedge_key_name_is_valid(ret->name)
        || kedge_hex_decode(hex, ret->id, sizeof ret->id) != KEDGE_OK) {
        return fail(ps, KEDGE_E_FORMAT, "malformed key, expected %s", "NAME+HHHHHHHH+BASE64");
    }
    struct kedge_buf blob KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&blob, KEY_BLOB_MAX);
    int err = kedge_base64_decode(rest, false, &blob);
    if (err == KEDGE_E_NOMEM) {
        return fail(ps, err, "%s", kedge_strerror(err));
    }
    if (err || blob.len < 2) {
        return fail(ps, KEDGE_E_FORMAT, "key is not the base64 of a type and %s", "a public key");
    }
    ret->blob_len = blob.len;
    memcpy(ret->blob, blob.ptr, blob.len);
    struct kedge_buf named KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&named, KEDGE_KEY_NAME_MAX + 1);
    kedge_buf_put(&named, ret->name.ptr, ret->name.len);
    kedge_buf_put_u8(&named, '\n');
    if (named.err) {
        return fail(ps, named.err, "%s", kedge_strerror(named.err));
    }
    struct kedge_hash h;
    kedge_sha256_2(kedge_buf_view(&named), kedge_buf_view(&blob), &h);
    if (memcmp(h.b, ret->id, sizeof ret->id) != 0) {
        char hexes[2 * KEDGE_KEY_ID_LEN + 1];
        kedge_hex_encode(h.b, KEDGE_KEY_ID_LEN, hexes);
        return fail(ps, KEDGE_E_FORMAT, "key ID does not fit the name and key, which give %s", hexes);
    }
    return KEDGE_OK;
}

static int check_key(struct parser *ps, const struct raw_key *raw, enum kedge_key_type want,
                     struct kedge_vkey *ret_vkey)
{
    if (raw->blob[0] != want) {
        return fail(ps, KEDGE_E_FORMAT, "key of type %02x, expected %s", raw->blob[0],
                    want == KEDGE_KEY_ED25519 ? "01 (a log's Ed25519 key)" : "04 (a witness's) or 06");
    }
    struct kedge_public_key key;
    if (raw->blob_len != 1 + sizeof key.b) {
        return fail(ps, KEDGE_E_FORMAT, "key of %zu bytes, expected %zu", raw->blob_len - 1, sizeof key.b);
    }
    memcpy(key.b, raw->blob + 1, sizeof key.b);
    int err = kedge_vkey_make(raw->name, want, &key, ret_vkey);
    return err ? fail(ps, KEDGE_E_FORMAT, "%s: not a point of Ed25519's prime-order group",
                      kedge_strerror(err))
               : KEDGE_OK;
}

/* Remembers a public key and refuses it when it is there already, under any name or type. By the hash of
 * the bare key, because the same key under another type or name would be another vkey. */
static int claim_key(struct parser *ps, const struct raw_key *raw, bool is_log)
{
    struct kedge_hash h;
    kedge_sha256(kedge_view_of(raw->blob + 1, raw->blob_len - 1), &h);
    for (uint32_t i = 0; i < ps->key_count; i++) {
        if (kedge_hash_eq(&ps->keys[i], &h)) {
            return ps->key_is_log[i] == is_log ? fail(
                       ps, KEDGE_E_FORMAT, "the same public key as another %s's", is_log ? "log" : "witness")
                                               : fail(ps, KEDGE_E_FORMAT, "%s: a key serves one role",
                                                      "the same public key as a log and as a witness");
        }
    }
    ps->keys[ps->key_count] = h;
    ps->key_is_log[ps->key_count] = is_log;
    ps->key_count++;
    return KEDGE_OK;
}

/* The optional URL and then nothing. */
static int take_url(struct parser *ps, struct kedge_view *rest, struct kedge_view *ret_url)
{
    struct kedge_view item;
    *ret_url = kedge_view_of("", 0);
    if (take_item(rest, ret_url) && take_item(rest, &item)) {
        return fail(ps, KEDGE_E_FORMAT, "%s, expected at most a URL (a comment has a line of its own)",
                    "text after the key");
    }
    return ret_url->len <= KEDGE_WITNESS_URL_MAX
               ? KEDGE_OK
               : fail(ps, KEDGE_E_TOO_LONG, "URL above %d bytes", KEDGE_WITNESS_URL_MAX);
}

static int parse_log(struct parser *ps, struct kedge_view rest)
{
    struct kedge_witness_policy *p = ps->policy;
    if (p->log_count == KEDGE_KNOWN_LOGS_MAX) {
        return fail(ps, KEDGE_E_TOO_LONG, "more than %d logs", KEDGE_KNOWN_LOGS_MAX);
    }
    struct kedge_known_log *log = &p->logs[p->log_count];
    struct raw_key raw;
    if (!take_item(&rest, &log->vkey_text)) {
        return fail(ps, KEDGE_E_FORMAT, "expected %s", "log KEY [URL]");
    }
    KEDGE_TRY(read_key(ps, log->vkey_text, &raw));
    KEDGE_TRY(check_key(ps, &raw, KEDGE_KEY_ED25519, &log->vkey));
    KEDGE_TRY(take_url(ps, &rest, &log->url));
    KEDGE_TRY(claim_key(ps, &raw, true));
    p->log_count++;
    return KEDGE_OK;
}

/* A name for something new. */
static int take_new_name(struct parser *ps, struct kedge_view *rest, const char *usage,
                         struct kedge_view *ret_name)
{
    char shown[KEDGE_WITNESS_SHOWN_MAX];
    struct kedge_witness_ref ref;
    if (!take_item(rest, ret_name)) {
        return fail(ps, KEDGE_E_FORMAT, "expected %s", usage);
    }
    if (ret_name->len > KEDGE_WITNESS_NAME_MAX) {
        return fail(ps, KEDGE_E_TOO_LONG, "name above %d bytes", KEDGE_WITNESS_NAME_MAX);
    }
    if (is_name(*ret_name, "none")) {
        return fail(ps, KEDGE_E_FORMAT, "the name \"%s\" is taken: it stands for no quorum", "none");
    }
    if (find(ps->policy, *ret_name, &ref)) {
        return fail(ps, KEDGE_E_FORMAT, "the name \"%s\" is used twice",
                    kedge_witness_name_show(*ret_name, shown));
    }
    return KEDGE_OK;
}

/* A key of a type that cannot be checked here is kept, so that the file stays readable, and never counts
 * as having cosigned. */
static int parse_witness(struct parser *ps, struct kedge_view rest)
{
    static const char usage[] = "witness NAME KEY [URL]";
    struct kedge_witness_policy *p = ps->policy;
    if (p->witness_count == KEDGE_WITNESSES_MAX) {
        return fail(ps, KEDGE_E_TOO_LONG, "more than %d witnesses", KEDGE_WITNESSES_MAX);
    }
    struct kedge_witness *w = &p->witnesses[p->witness_count];
    struct raw_key raw;
    KEDGE_TRY(take_new_name(ps, &rest, usage, &w->name));
    if (!take_item(&rest, &w->vkey_text)) {
        return fail(ps, KEDGE_E_FORMAT, "expected %s", usage);
    }
    KEDGE_TRY(read_key(ps, w->vkey_text, &raw));
    w->is_supported = raw.blob[0] != KEY_TYPE_MLDSA44;
    if (w->is_supported) {
        KEDGE_TRY(check_key(ps, &raw, KEDGE_KEY_COSIGNATURE, &w->vkey));
    } else if (raw.blob_len != KEY_BLOB_MAX) {
        return fail(ps, KEDGE_E_FORMAT, "ML-DSA-44 key of %zu bytes, expected %d", raw.blob_len - 1,
                    MLDSA44_KEY_LEN);
    }
    KEDGE_TRY(take_url(ps, &rest, &w->url));
    KEDGE_TRY(claim_key(ps, &raw, false));
    p->witness_count++;
    return KEDGE_OK;
}

static int parse_member(struct parser *ps, struct kedge_view item)
{
    struct kedge_witness_policy *p = ps->policy;
    char shown[KEDGE_WITNESS_SHOWN_MAX];
    struct kedge_witness_ref ref;
    kedge_witness_name_show(item, shown);
    if (is_name(item, "none")) {
        return fail(ps, KEDGE_E_FORMAT, "\"%s\" cannot be a member of a group", "none");
    }
    if (!find(p, item, &ref)) {
        return fail(ps, KEDGE_E_FORMAT, "\"%s\" is not the name of a witness or group of the lines above",
                    shown);
    }
    bool *taken = ref.kind == KEDGE_QUORUM_WITNESS ? &ps->witness_is_member[ref.index]
                                                   : &ps->group_is_member[ref.index];
    if (*taken) {
        return fail(ps, KEDGE_E_FORMAT, "\"%s\" is a member already, each name may be one once", shown);
    }
    *taken = true;
    KEDGE_ASSERT(p->member_count < KEDGE_WITNESS_MEMBERS_MAX); /* each name once */
    p->members[p->member_count++] = ref;
    return KEDGE_OK;
}

/* Each witness and each group is a member of one group at most: counted twice, one witness could make a
 * quorum alone. */
static int parse_group(struct parser *ps, struct kedge_view rest)
{
    static const char usage[] = "group NAME all|any|K MEMBER…";
    struct kedge_witness_policy *p = ps->policy;
    if (p->group_count == KEDGE_WITNESS_GROUPS_MAX) {
        return fail(ps, KEDGE_E_TOO_LONG, "more than %d groups", KEDGE_WITNESS_GROUPS_MAX);
    }
    struct kedge_witness_group group = {.first_member = p->member_count};
    struct kedge_view rule, item;
    int err = take_new_name(ps, &rest, usage, &group.name);
    if (!err && !take_item(&rest, &rule)) {
        err = fail(ps, KEDGE_E_FORMAT, "expected %s", usage);
    }
    while (!err && take_item(&rest, &item)) {
        err = parse_member(ps, item);
        group.member_count++;
    }
    if (err) {
        return err;
    }
    if (group.member_count == 0) {
        return fail(ps, KEDGE_E_FORMAT, "group without members, expected %s", usage);
    }
    uint64_t threshold = 1;
    if (is_name(rule, "all")) {
        threshold = group.member_count;
    } else if (!is_name(rule, "any")
               && (kedge_decimal_decode(rule, group.member_count, &threshold) != KEDGE_OK
                   || threshold == 0)) {
        return fail(ps, KEDGE_E_FORMAT, "threshold must be all, any or a number from 1 to %u",
                    (unsigned)group.member_count);
    }
    group.threshold = (uint32_t)threshold;
    p->groups[p->group_count++] = group;
    return KEDGE_OK;
}

static int parse_quorum(struct parser *ps, struct kedge_view rest)
{
    char shown[KEDGE_WITNESS_SHOWN_MAX];
    struct kedge_view name, item;
    if (ps->has_quorum) {
        return fail(ps, KEDGE_E_FORMAT, "a second quorum line, expected %s", "one");
    }
    if (!take_item(&rest, &name) || take_item(&rest, &item)) {
        return fail(ps, KEDGE_E_FORMAT, "expected %s", "quorum NAME, or quorum none");
    }
    ps->has_quorum = true;
    ps->policy->quorum = (struct kedge_witness_ref){KEDGE_QUORUM_NONE, 0};
    if (!is_name(name, "none") && !find(ps->policy, name, &ps->policy->quorum)) {
        return fail(ps, KEDGE_E_FORMAT, "\"%s\" is not the name of a witness or group of the lines above",
                    kedge_witness_name_show(name, shown));
    }
    return KEDGE_OK;
}

/* One statement of the policy. Control characters are refused, since names are shown to people; a line
 * names only what lines above it defined, so groups cannot contain themselves. */
static int parse_line(struct parser *ps, struct kedge_view line)
{
    static const struct {
        const char *keyword;
        int (*parse)(struct parser *ps, struct kedge_view rest);
    } kinds[] = {
        {"log", parse_log}, {"witness", parse_witness}, {"group", parse_group}, {"quorum", parse_quorum}};
    char shown[KEDGE_WITNESS_SHOWN_MAX];
    struct kedge_view keyword;
    for (size_t i = 0; i < line.len; i++) {
        uint8_t c = line.ptr[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f) {
            return fail(ps, KEDGE_E_FORMAT, "control character %02x, expected text%s", c,
                        c == '\r' ? " with lines that end in LF alone" : "");
        }
    }
    if (!take_item(&line, &keyword) || keyword.ptr[0] == '#') {
        return KEDGE_OK;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (is_name(keyword, kinds[i].keyword)) {
            return kinds[i].parse(ps, line);
        }
    }
    return fail(ps, KEDGE_E_FORMAT, "unknown keyword \"%s\", expected log, witness, group or quorum",
                kedge_witness_name_show(keyword, shown));
}

/* The file must end with LF and must have a quorum line: a policy that was cut off while it was copied
 * could otherwise demand less. */
static int parse_lines(struct parser *ps)
{
    struct kedge_view rest = kedge_buf_view(&ps->policy->text), line;
    int err = KEDGE_OK;
    while (!err && kedgei_take_line(&rest, &line)) {
        ps->line_number++;
        err = parse_line(ps, line);
    }
    if (err) {
        return err;
    }
    ps->line_number++;
    if (rest.len > 0) {
        return fail(ps, KEDGE_E_FORMAT, "%s, expected LF after the last line", "no line end");
    }
    return ps->has_quorum ? KEDGE_OK
                          : kedge_diag_set(ps->diag, KEDGE_E_FORMAT,
                                           "no quorum line, expected \"quorum NAME\" or \"quorum none\"");
}

int kedge_witness_policy_parse(struct kedge_view text, struct kedge_witness_policy **ret_policy,
                               struct kedge_diag *reterr)
{
    if (text.len > KEDGE_WITNESS_POLICY_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_TOO_LONG, "%zu bytes, expected at most %d", text.len,
                              KEDGE_WITNESS_POLICY_MAX);
    }
    struct kedge_witness_policy *policy = kedge_mem_new(1, sizeof *policy);
    struct parser *ps = kedge_mem_new(1, sizeof *ps);
    int err = policy && ps ? KEDGE_OK : KEDGE_E_NOMEM;
    if (!err) {
        kedge_buf_init(&policy->text, KEDGE_WITNESS_POLICY_MAX);
        kedge_buf_put(&policy->text, text.ptr, text.len);
        err = policy->text.err;
    }
    if (err) {
        kedge_diag_set(reterr, err, "%s", kedge_strerror(err));
    } else {
        ps->policy = policy;
        ps->diag = reterr;
        err = parse_lines(ps);
    }
    kedge_mem_free(ps);
    if (err) {
        kedge_witness_policy_free(policy);
        return err;
    }
    *ret_policy = policy;
    return KEDGE_OK;
}

void kedge_witness_policy_free(struct kedge_witness_policy *policy)
{
    if (policy) {
        kedge_buf_deinit(&policy->text);
        kedge_mem_free(policy);
    }
}

static void put_item(struct kedge_buf *out, struct kedge_view item)
{
    if (item.len > 0) {
        kedge_buf_put_u8(out, ' ');
        kedge_buf_put(out, item.ptr, item.len);
    }
}

/* Logs, witnesses, groups, quorum, each in the order in which it was read, so references still go
 * backwards. */
void kedge_witness_policy_encode(const struct kedge_witness_policy *policy, struct kedge_buf *out)
{
    for (uint32_t i = 0; i < policy->log_count; i++) {
        kedge_buf_put_str(out, "log");
        put_item(out, policy->logs[i].vkey_text);
        put_item(out, policy->logs[i].url);
        kedge_buf_put_u8(out, '\n');
    }
    for (uint32_t i = 0; i < policy->witness_count; i++) {
        kedge_buf_put_str(out, "witness");
        put_item(out, policy->witnesses[i].name);
        put_item(out, policy->witnesses[i].vkey_text);
        put_item(out, policy->witnesses[i].url);
        kedge_buf_put_u8(out, '\n');
    }
    for (uint32_t i = 0; i < policy->group_count; i++) {
        const struct kedge_witness_group *g = &policy->groups[i];
        kedge_buf_put_str(out, "group");
        put_item(out, g->name);
        kedge_buf_printf(out, " %" PRIu32, g->threshold);
        for (uint32_t j = 0; j < g->member_count; j++) {
            put_item(out, kedge_witness_ref_name(policy, policy->members[g->first_member + j]));
        }
        kedge_buf_put_u8(out, '\n');
    }
    kedge_buf_put_str(out, "quorum");
    put_item(out, kedge_witness_ref_name(policy, policy->quorum));
    kedge_buf_put_u8(out, '\n');
}
