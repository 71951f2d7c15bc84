/* Anchors outside, in a record: which hold, which count, and what the others are called. */
#include <jansson.h>

#include "chain/anchor/evm_evidence.h"
#include "chain/audit/base/shown.h"
#include "chain/audit/explain/explain.h"
#include "chain/log/checkpoint.h"
#include "chain/state/state.h"
#include "common/base/mem.h"
#include "crypto/keyfile.h"
#include "crypto/secp256k1.h"
#include "crypto/timestamp.h"
#include "tests/fixtures/authority.h"
#include "tests/fixtures/trust_file.h"
#include "tests/unit/audit/tampered.h"

enum { START_S = 1767225600, YEAR_S = 31536000, CHAIN_ID = 5 }; /* 2026-01-01 */

struct scene {
    struct fx_authority *authority;
    struct kedge_buf pem; /* its CA, and a NUL */
    char origin[KEDGE_ORIGIN_MAX + 1];
    struct kedge_key_pair log_key;
    uint64_t size; /* of the main chain */
};

static void open_scene(struct scene *s)
{
    struct kedge_state_log main;
    memset(s, 0, sizeof *s);
    copy_base();
    s->authority = fx_authority_open(START_S, START_S + YEAR_S);
    kedge_buf_init(&s->pem, KEDGE_TSA_PEM_MAX);
    fx_authority_pem(s->authority, &s->pem);
    kedge_buf_put_u8(&s->pem, 0);
    ck_assert_int_eq(kedge_keyfile_read_private(at("fx/state/keys/log-main.pem"), &s->log_key, NULL),
                     KEDGE_OK);
    ck_assert_int_eq(kedge_state_log_open(at("fx/state"), NULL, KEDGE_STATE_COPY, &main, NULL), KEDGE_OK);
    s->size = kedge_ledger_size(main.ledger);
    snprintf(s->origin, sizeof s->origin, "%s", main.origin);
    kedge_state_log_close(&main);
    ck_assert_int_eq(kedge_dir_make(at("fx/state/anchors/tsa"), 0700, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_dir_make(at("fx/state/anchors/evm"), 0700, NULL), KEDGE_OK);
}

static void close_scene(struct scene *s)
{
    fx_authority_close(s->authority);
    kedge_buf_deinit(&s->pem);
}

static void root_of(uint64_t size, struct kedge_hash *ret)
{
    struct kedge_state_log main;
    ck_assert_int_eq(kedge_state_log_open(at("fx/state"), NULL, KEDGE_STATE_COPY, &main, NULL), KEDGE_OK);
    if (kedge_ledger_root(main.ledger, size, ret) != KEDGE_OK) {
        memset(ret, 0, sizeof *ret);
    }
    kedge_state_log_close(&main);
}

static void write_file(const char *folder, uint64_t number, const char *suffix, struct kedge_view bytes)
{
    char path[128];
    snprintf(path, sizeof path, "fx/state/anchors/%s/%llu%s", folder, (unsigned long long)number, suffix);
    ck_assert_int_eq(kedge_file_write(at(path), bytes, 0600, NULL), KEDGE_OK);
}

/* A time stamp over the first `size` entries, or over other ones; signed by the log or by somebody else. */
static void stamp(const struct scene *s, uint64_t size, bool other_root, const struct kedge_key_pair *key)
{
    struct kedge_buf note, query, reply;
    struct kedge_hash root;
    root_of(size, &root);
    root.b[3] ^= other_root;
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    kedge_buf_init(&query, 4096);
    kedge_buf_init(&reply, KEDGE_TSR_MAX);
    ck_assert_int_eq(kedge_checkpoint_sign(kedge_view_str(s->origin), size, &root, key, &note), KEDGE_OK);
    ck_assert_int_eq(kedge_timestamp_query(kedge_buf_view(&note), NULL, &query), KEDGE_OK);
    fx_authority_reply(s->authority, kedge_buf_view(&query), START_S + (int64_t)size, &reply);
    write_file("tsa", size, ".note", kedge_buf_view(&note));
    write_file("tsa", size, ".tsr", kedge_buf_view(&reply));
    kedge_buf_deinit(&note);
    kedge_buf_deinit(&query);
    kedge_buf_deinit(&reply);
}

static const struct kedge_evm_address contract = {{8}};

static void account_of(uint8_t secret, struct kedge_secp_secret *ret_key, struct kedge_evm_address *ret)
{
    struct kedge_secp_public public;
    memset(ret_key->b, secret, sizeof ret_key->b);
    ck_assert_int_eq(kedge_secp_public_of(ret_key, &public), KEDGE_OK);
    kedge_evm_address_of_key(&public, ret);
}

/* Evidence of an anchor by the account of `secret`, without a state proof; with_note: with the log's own
 * checkpoint of that root. */
static void anchor(const struct scene *s, uint64_t seq, uint64_t size, bool other_root, uint8_t secret,
                   bool with_note)
{
    struct kedge_evm_evidence *e = kedge_mem_new(1, sizeof *e);
    struct kedge_secp_secret key;
    struct kedge_buf raw, text, note;
    uint8_t call[KEDGE_EVM_ANCHOR_CALL_LEN];
    kedge_buf_init(&raw, KEDGE_EVM_RAW_MAX);
    kedge_buf_init(&text, KEDGE_EVM_EVIDENCE_MAX);
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    *e = (struct kedge_evm_evidence){
        .chain_id = CHAIN_ID, .block = 77, .contract = contract, .finality = "final"};
    e->point = (struct kedge_evm_point){.seq = seq, .size = size};
    snprintf(e->origin, sizeof e->origin, "%s", s->origin);
    kedge_evm_namespace(kedge_view_str(e->origin), &e->point.ns);
    root_of(size, &e->point.root);
    e->point.root.b[0] ^= other_root;
    if (with_note) {
        ck_assert_int_eq(
            kedge_checkpoint_sign(kedge_view_str(s->origin), size, &e->point.root, &s->log_key, &note),
            KEDGE_OK);
        e->checkpoint = kedge_buf_view(&note);
    }
    account_of(secret, &key, &e->sender);
    kedge_evm_anchor_call(&e->point, call);
    struct kedge_evm_tx tx = {.kind = KEDGE_EVM_EIP1559,
                              .chain_id = CHAIN_ID,
                              .gas = 120000,
                              .max_fee = 9,
                              .to = contract,
                              .data = kedge_view_of(call, sizeof call)};
    ck_assert_int_eq(kedge_evm_tx_sign(&tx, &key, &raw, &e->tx_hash), KEDGE_OK);
    e->raw = kedge_buf_view(&raw);
    ck_assert_int_eq(kedge_evm_evidence_write(e, &text), KEDGE_OK);
    write_file("evm", seq, ".json", kedge_buf_view(&text));
    kedge_buf_deinit(&raw);
    kedge_buf_deinit(&text);
    kedge_buf_deinit(&note);
    kedge_mem_free(e);
}

/* Those whom the auditor trusts: the authority, and the account of 0x46…. */
static struct kedge_trust_anchors trusted(const struct scene *s)
{
    struct kedge_secp_secret key;
    struct kedge_trust_anchors t = {
        .has_evm = true, .chain_id = CHAIN_ID, .contract = contract, .tsa_ca = (char *)s->pem.ptr};
    account_of(0x46, &key, &t.account);
    return t;
}

static struct kedge_audit_report audit(const struct kedge_trust_anchors *t)
{
    return run(at("fx"), at("fx/trust.json"), NULL, false, (struct kedge_audit_options){.anchors = t});
}

/* The verdict, and the code of the one finding. */
static void expect_one(const struct kedge_trust_anchors *t, enum kedge_audit_verdict verdict,
                       enum kedge_audit_code code)
{
    struct kedge_audit_report r = audit(t);
    if (r.verdict != verdict || r.finding_count != 1 || r.findings[0].code != code) {
        print_findings(&r);
    }
    ck_assert_int_eq(r.verdict, verdict);
    ck_assert_uint_eq(r.finding_count, 1);
    ck_assert_int_eq(r.findings[0].code, code);
    ck_assert_msg(strncmp(r.findings[0].where, "anchors", 7) == 0, "%s", r.findings[0].where);
    ck_assert_ptr_null(strstr(r.findings[0].text, scratch)); /* nothing of this machine */
    kedge_audit_report_deinit(&r);
}

/* The authority's word shows how far the main chain is complete; an anchor that is in no block does not. */
static void assert_complete_by_stamp(const struct kedge_audit_report *r, const struct scene *s)
{
    struct kedge_audit_claims c;
    size_t found = 0;
    ck_assert_int_eq(kedge_audit_claims(r, &c), KEDGE_OK);
    for (size_t i = 0; i < c.count; i++) {
        if (c.items[i].level == KEDGE_AUDIT_COMPLETE && c.items[i].shown) {
            found++;
            ck_assert_str_eq(c.items[i].source, "time-stamp");
            ck_assert_uint_eq(c.items[i].entries, s->size);
            ck_assert_ptr_nonnull(strstr(c.items[i].from, "CN=test authority"));
        }
    }
    ck_assert_uint_eq(found, 1);
    kedge_audit_claims_deinit(&c);
}

START_TEST(what_holds_is_told)
{
    struct scene s;
    open_scene(&s);
    stamp(&s, 7, false, &s.log_key);
    stamp(&s, s.size, false, &s.log_key);
    anchor(&s, 1, 9, false, 0x46, true);
    struct kedge_trust_anchors t = trusted(&s);
    struct kedge_audit_report r = audit(&t);
    print_findings(&r);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    ck_assert_uint_eq(r.finding_count, 0);
    ck_assert_uint_eq(r.anchor_count, 3);
    ck_assert_uint_eq(r.anchors[0].claim.size, 7);
    ck_assert_int_eq(r.anchors[0].claim.time_s, START_S + 7);
    const struct kedge_audit_anchor *a = kedge_audit_anchor_newest(&r, &kedge_anchor_tsa);
    ck_assert(a && a->claim.trusted && a->claim.size == s.size);
    ck_assert_str_eq(a->claim.by, "CN=test authority");
    a = kedge_audit_anchor_newest(&r, &kedge_anchor_evm);
    ck_assert(a && a->claim.trusted && a->claim.size == 9 && a->claim.block == 77
              && a->claim.chain_id == CHAIN_ID && !a->claim.proven);
    a = kedge_audit_anchor_first(r.anchors, r.anchor_count, &kedge_anchor_tsa, 6);
    ck_assert(a && a->claim.size == 7);
    a = kedge_audit_anchor_first(r.anchors, r.anchor_count, &kedge_anchor_tsa, 7);
    ck_assert(a && a->claim.size == s.size);
    ck_assert_ptr_null(kedge_audit_anchor_first(r.anchors, r.anchor_count, &kedge_anchor_evm, 9));
    assert_complete_by_stamp(&r, &s);
    kedge_audit_report_deinit(&r);
    close_scene(&s);
}
END_TEST

START_TEST(nobody_named_nothing_counts)
{
    struct scene s;
    open_scene(&s);
    stamp(&s, 7, false, &s.log_key);
    anchor(&s, 1, 9, false, 0x46, true);
    struct kedge_audit_report r = audit(NULL);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    ck_assert_uint_eq(r.note_count, 2);
    ck_assert(has_code(&r, KEDGE_AUDIT_NOT_CHECKED));
    ck_assert_uint_eq(r.anchor_count, 2);
    ck_assert(!r.anchors[0].claim.trusted && !r.anchors[1].claim.trusted);
    ck_assert_str_eq(r.anchors[0].claim.by, "");
    kedge_audit_report_deinit(&r);
    close_scene(&s);
}
END_TEST

enum what {
    STAMP_OTHER_ROOT,
    STAMP_OTHER_KEY,
    STAMP_TOO_LARGE,
    STAMP_NO_NOTE,
    STAMP_OTHER_NAME,
    STAMP_GARBAGE,
    STAMP_FLIPPED,
    STAMP_OTHER_CA,
    EVM_OTHER_ROOT,
    EVM_OTHER_ROOT_SIGNED,
    EVM_OTHER_ROOT_STRANGER,
    EVM_TOO_LARGE,
    EVM_TOO_LARGE_STRANGER,
    EVM_OTHER_NAME,
    EVM_GARBAGE,
    EVM_FLIPPED,
    EVM_LARGE,
    WHAT_COUNT
};

/* Changes a byte of a file of `len` bytes from the beginning. */
static void flip(const char *name, long offset)
{
    fx_flip(at(name), offset);
}

static enum kedge_audit_code spoil_evidence(const struct scene *s, enum what what)
{
    switch ((int)what) {
    case EVM_OTHER_ROOT:
        anchor(s, 1, 9, true, 0x46, false);
        return KEDGE_AUDIT_FORK;
    case EVM_OTHER_ROOT_SIGNED: /* by a stranger, but with a checkpoint of the log itself */
        anchor(s, 1, 9, true, 0x47, true);
        return KEDGE_AUDIT_FORK;
    case EVM_OTHER_ROOT_STRANGER: /* anybody can anchor anything under our name */
        anchor(s, 1, 9, true, 0x47, false);
        break;
    case EVM_TOO_LARGE:
        anchor(s, 1, s->size + 1, true, 0x46, false);
        return KEDGE_AUDIT_TRUNCATED;
    case EVM_TOO_LARGE_STRANGER:
        anchor(s, 1, s->size + 1, true, 0x47, false);
        break;
    case EVM_OTHER_NAME:
        anchor(s, 1, 9, false, 0x46, false);
        ck_assert_int_eq(rename(at("fx/state/anchors/evm/1.json"), at("fx/state/anchors/evm/2.json")), 0);
        break;
    case EVM_GARBAGE:
        write_file("evm", 1, ".json", kedge_view_str("{}"));
        break;
    case EVM_FLIPPED:
        anchor(s, 1, 9, false, 0x46, false);
        replace(at("fx/state/anchors/evm/1.json"), "\"seq\": 1,", "\"seq\": 2,");
        break;
    case EVM_LARGE: {
        struct kedge_buf big;
        kedge_buf_init(&big, 2 * KEDGE_EVM_EVIDENCE_MAX);
        while (big.len <= KEDGE_EVM_EVIDENCE_MAX) {
            kedge_buf_put_str(&big, "          ");
        }
        write_file("evm", 1, ".json", kedge_buf_view(&big));
        kedge_buf_deinit(&big);
        break;
    }
    default:
        ck_abort();
    }
    return KEDGE_AUDIT_ANCHOR;
}

static enum kedge_audit_code spoil(struct scene *s, enum what what, struct kedge_trust_anchors *t)
{
    struct kedge_key_pair other;
    kedge_key_generate(&other);
    switch ((int)what) {
    case STAMP_OTHER_ROOT:
        stamp(s, 7, true, &s->log_key);
        return KEDGE_AUDIT_FORK;
    case STAMP_OTHER_KEY:
        stamp(s, 7, true, &other);
        return KEDGE_AUDIT_ANCHOR;
    case STAMP_TOO_LARGE:
        stamp(s, s->size + 1, true, &s->log_key);
        return KEDGE_AUDIT_TRUNCATED;
    case STAMP_NO_NOTE:
        stamp(s, 7, false, &s->log_key);
        ck_assert_int_eq(unlink(at("fx/state/anchors/tsa/7.note")), 0);
        return KEDGE_AUDIT_ANCHOR;
    case STAMP_OTHER_NAME:
        stamp(s, 7, false, &s->log_key);
        ck_assert_int_eq(rename(at("fx/state/anchors/tsa/7.note"), at("fx/state/anchors/tsa/8.note")), 0);
        ck_assert_int_eq(rename(at("fx/state/anchors/tsa/7.tsr"), at("fx/state/anchors/tsa/8.tsr")), 0);
        return KEDGE_AUDIT_ANCHOR;
    case STAMP_GARBAGE:
        stamp(s, 7, false, &s->log_key);
        write_file("tsa", 7, ".tsr", kedge_view_str("0 token"));
        return KEDGE_AUDIT_ANCHOR;
    case STAMP_FLIPPED:
        stamp(s, 7, false, &s->log_key);
        flip("fx/state/anchors/tsa/7.tsr", -9); /* in the signature */
        return KEDGE_AUDIT_ANCHOR;
    case STAMP_OTHER_CA: {
        struct fx_authority *stranger = fx_authority_open(START_S, START_S + YEAR_S);
        stamp(s, 7, false, &s->log_key);
        kedge_buf_clear(&s->pem);
        fx_authority_pem(stranger, &s->pem);
        kedge_buf_put_u8(&s->pem, 0);
        t->tsa_ca = (char *)s->pem.ptr;
        fx_authority_close(stranger);
        return KEDGE_AUDIT_ANCHOR;
    }
    default:
        return spoil_evidence(s, what);
    }
}

START_TEST(what_does_not_hold_is_named)
{
    struct scene s;
    open_scene(&s);
    struct kedge_trust_anchors t = trusted(&s);
    enum kedge_audit_code code = spoil(&s, (enum what)_i, &t);
    expect_one(&t, KEDGE_AUDIT_NO, code);
    close_scene(&s);
}
END_TEST

/* The auditor's own mistake is no finding about the record. */
START_TEST(certificates_that_are_none_are_no_finding)
{
    static char none[] = "-----BEGIN CERTIFICATE-----\nx\n";
    struct scene s;
    struct kedge_trust trust;
    struct kedge_audit_report r;
    struct kedge_diag d = {.text = ""};
    open_scene(&s);
    stamp(&s, 7, false, &s.log_key);
    struct kedge_trust_anchors t = {.tsa_ca = none};
    struct kedge_audit_options o = {.threads = 1, .anchors = &t};
    ck_assert_int_eq(kedge_trust_read(at("fx/trust.json"), &trust, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_audit_verify(at("fx"), &trust, NULL, 0, &o, &r, &d), KEDGE_E_KEY);
    ck_assert_msg(strstr(d.text, "tsa_ca") != NULL, "%s", d.text);
    kedge_trust_deinit(&trust);
    close_scene(&s);
}
END_TEST

START_TEST(a_stranger_does_not_count)
{
    struct scene s;
    open_scene(&s);
    struct kedge_trust_anchors t = trusted(&s);
    anchor(&s, 1, 9, false, 0x47, true);
    expect_one(&t, KEDGE_AUDIT_YES, KEDGE_AUDIT_ANCHOR);
    close_scene(&s);
}
END_TEST

/* Every release before the newest time stamp, or it is said; by the trust file. */
START_TEST(anchors_can_be_demanded)
{
    struct scene s;
    struct kedge_trust trust;
    open_scene(&s);
    ck_assert_int_eq(kedge_trust_read(at("fx/trust.json"), &trust, NULL), KEDGE_OK);
    trust.anchors = trusted(&s);
    trust.anchors.required = true;
    ck_assert_int_eq(fx_trust_write(at("fx/trust.json"), &trust, NULL), KEDGE_OK);
    trust.anchors.tsa_ca = NULL;
    kedge_trust_deinit(&trust);
    expect(NULL, false, KEDGE_AUDIT_NOT_ANCHORED, KEDGE_AUDIT_NO); /* none at all */
    anchor(&s, 1, s.size, false, 0x46, true);                      /* when it was made is not proven */
    expect(NULL, false, KEDGE_AUDIT_NOT_ANCHORED, KEDGE_AUDIT_NO);
    stamp(&s, 7, false, &s.log_key); /* too early */
    expect(NULL, false, KEDGE_AUDIT_NOT_ANCHORED, KEDGE_AUDIT_NO);
    stamp(&s, s.size, false, &s.log_key);
    struct kedge_audit_report r = audit(NULL);
    print_findings(&r);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    ck_assert_uint_eq(r.anchor_count, 3);
    kedge_audit_report_deinit(&r);
    close_scene(&s);
}
END_TEST

/* ---- explain ---- */

static json_t *explain(const struct kedge_trust_anchors *t, const struct kedge_hash *model)
{
    struct kedge_audit_options o = {.threads = 1, .anchors = t};
    struct kedge_audit_report r;
    struct kedge_trust trust;
    struct kedge_diag d = {.text = ""};
    json_t *tree = NULL;
    ck_assert_int_eq(kedge_trust_read(at("fx/trust.json"), &trust, NULL), KEDGE_OK);
    ck_assert_msg(kedge_audit_explain(at("fx"), &trust, NULL, 0, &o, model, &r, &tree, &d) == KEDGE_OK, "%s",
                  d.text);
    ck_assert_ptr_nonnull(tree);
    kedge_audit_report_deinit(&r);
    kedge_trust_deinit(&trust);
    return tree;
}

START_TEST(a_release_tells_its_anchors)
{
    struct scene s;
    struct kedge_map map;
    struct kedge_hash model;
    open_scene(&s);
    ck_assert_int_eq(kedge_map_open(at("fx/models/plain-g0.safetensors"), &map, NULL), KEDGE_OK);
    kedge_sha256(kedge_view_of(map.ptr, map.len), &model);
    kedge_map_close(&map);
    json_t *tree = explain(NULL, &model);
    json_int_t entry = json_integer_value(
        json_object_get(json_object_get(json_object_get(tree, "release"), "source"), "index"));
    ck_assert_uint_eq(json_array_size(json_object_get(tree, "anchors")), 0);
    json_decref(tree);
    struct kedge_trust_anchors t = trusted(&s);
    stamp(&s, (uint64_t)entry, false, &s.log_key); /* ends right before it */
    stamp(&s, (uint64_t)entry + 1, false, &s.log_key);
    stamp(&s, s.size, false, &s.log_key);
    anchor(&s, 1, s.size, false, 0x46, true);
    tree = explain(&t, &model);
    const json_t *anchors = json_object_get(tree, "anchors");
    ck_assert_uint_eq(json_array_size(anchors), 2);
    const json_t *evm = json_array_get(anchors, 0), *tsa = json_array_get(anchors, 1);
    ck_assert_str_eq(json_string_value(json_object_get(evm, "kind")), "evm");
    ck_assert(json_is_null(json_object_get(evm, "time")));
    ck_assert_int_eq(json_integer_value(json_object_get(evm, "block")), 77);
    ck_assert_str_eq(json_string_value(json_object_get(tsa, "kind")), "rfc3161");
    ck_assert_int_eq(json_integer_value(json_object_get(tsa, "entries")), entry + 1);
    ck_assert_str_eq(json_string_value(json_object_get(tsa, "by")), "CN=test authority");
    ck_assert(strncmp(json_string_value(json_object_get(tsa, "time")), "2026-01-01T00:00:", 17) == 0);
    ck_assert(json_is_true(json_object_get(tsa, "trusted")));
    json_decref(tree);
    close_scene(&s);
}
END_TEST

/* ---- the trust file ---- */

START_TEST(whose_anchors_count_is_read_strictly)
{
    static const char *const bad[] = {
        "[]",
        "{\"evn\": {}}",
        "{\"evm\": []}",
        "{\"evm\": {\"chain_id\": 0}}",
        "{\"evm\": {\"chain_id\": 1, \"contract\": \"0x08\"}}",
        ("{\"evm\": {\"chain_id\": 1, \"contract\": \"0x0800000000000000000000000000000000000000\", "
         "\"account\": \"0x0800000000000000000000000000000000000000\", \"x\": 1}}"),
        "{\"tsa_ca\": \"no certificate\"}",
        "{\"tsa_ca\": 7}",
        "{\"required\": 1, \"tsa_ca\": \"-----BEGIN CERTIFICATE-----\"}",
        "{\"required\": true}",
    };
    static const char *const bad_words[] = {
        "",
        "1",
        "1:0x08",
        "0:0x0800000000000000000000000000000000000000:0x0800000000000000000000000000000000000000",
        "1:0x0800000000000000000000000000000000000000:0x08000000000000000000000000000000000000",
        "x:0x0800000000000000000000000000000000000000:0x0800000000000000000000000000000000000000"};
    struct kedge_buf good, text;
    struct kedge_trust trust;
    struct kedge_trust_anchors words = {.required = true};
    struct scene s;
    open_scene(&s);
    kedge_buf_init(&good, KEDGE_TRUST_FILE_MAX);
    kedge_buf_init(&text, KEDGE_TRUST_FILE_MAX);
    ck_assert_int_eq(kedge_file_read(at("fx/trust.json"), &good, NULL), KEDGE_OK);
    while (good.ptr[good.len - 1] != '}') {
        good.len--;
    }
    good.len--;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct kedge_diag d = {.text = ""};
        kedge_buf_clear(&text);
        kedge_buf_put(&text, good.ptr, good.len);
        kedge_buf_printf(&text, ", \"anchors\": %s}", bad[i]);
        ck_assert_msg(kedge_trust_parse(kedge_buf_view(&text), &trust, &d) == KEDGE_E_FORMAT, "%s", bad[i]);
        ck_assert_msg(strstr(d.text, "anchors") != NULL, "%s", d.text);
    }
    for (size_t i = 0; i < sizeof bad_words / sizeof bad_words[0]; i++) {
        ck_assert_msg(kedge_trust_anchor_parse(bad_words[i], &words) == KEDGE_E_FORMAT, "%s", bad_words[i]);
        ck_assert(!words.has_evm);
    }
    ck_assert_int_eq(
        kedge_trust_anchor_parse(
            "5:0x0800000000000000000000000000000000000000:0x0900000000000000000000000000000000000000",
            &words),
        KEDGE_OK);
    ck_assert(words.has_evm && words.chain_id == 5 && words.contract.b[0] == 8 && words.account.b[0] == 9
              && words.required);
    kedge_buf_deinit(&good);
    kedge_buf_deinit(&text);
    close_scene(&s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("audit-anchors");
    TCase *t = tcase_create("anchors");
    tcase_set_timeout(t, 300);
    tcase_add_test(t, what_holds_is_told);
    tcase_add_test(t, nobody_named_nothing_counts);
    tcase_add_loop_test(t, what_does_not_hold_is_named, 0, WHAT_COUNT);
    tcase_add_test(t, certificates_that_are_none_are_no_finding);
    tcase_add_test(t, a_stranger_does_not_count);
    tcase_add_test(t, anchors_can_be_demanded);
    tcase_add_test(t, a_release_tells_its_anchors);
    tcase_add_test(t, whose_anchors_count_is_read_strictly);
    suite_add_tcase(suite, t);
    return run_tampered(suite);
}
