/* Whole exports of a small federation: what is in them, what is not, and what is refused. */
#include <dirent.h>
#include <sys/stat.h>

#include "chain/anchor/evm_evidence.h"
#include "chain/export/export.h"
#include "chain/export/internal.h"
#include "chain/export/oms.h"
#include "chain/log/dsse.h"
#include "chain/log/proof.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "tests/fixtures/federation_impl.h"
#include "tests/unit/audit/support.h"

/* ---- one export ---- */

struct made {
    struct kedge_trust trust;
    struct kedge_export_options o;
    struct kedge_export_summary sum;
    struct kedge_diag d;
    struct kedge_buf pem; /* of the model key */
};

static void prepare(struct made *m)
{
    static const struct kedge_seed seed = {{9}};
    memset(m, 0, sizeof *m);
    ck_assert_int_eq(kedge_trust_read(at("fed/trust.json"), &m->trust, &m->d), KEDGE_OK);
    m->o = (struct kedge_export_options){
        .trust = &m->trust, .time_s = 1767323045, .tool = "kedge test", .audit = {.threads = 1}};
    kedge_key_from_seed(&seed, &m->o.key);
    memset(m->o.model_key.secret, 5, sizeof m->o.model_key.secret);
    kedge_buf_init(&m->pem, KEDGE_EC_PEM_MAX);
    ck_assert_int_eq(kedge_p256_put_public(&m->pem, &m->o.model_key), KEDGE_OK);
}

static void finish(struct made *m)
{
    kedge_trust_deinit(&m->trust);
    kedge_buf_deinit(&m->pem);
}

static int export_to(struct made *m, const char *name)
{
    m->d.text[0] = '\0';
    return kedge_export(at("fed"), at(name), &m->o, &m->sum, &m->d);
}

#define EXPORT_OK(m, name) ck_assert_msg(export_to((m), (name)) == KEDGE_OK, "%s", (m)->d.text)

static struct kedge_buf content(const char *folder, const char *name)
{
    struct kedge_buf b;
    struct kedge_diag d = {.text = ""};
    char path[KEDGE_PATH_MAX];
    kedge_buf_init(&b, 64 << 20);
    snprintf(path, sizeof path, "%s/%s", at(folder), name);
    ck_assert_msg(kedge_file_read(path, &b, &d) == KEDGE_OK, "%s", d.text);
    return b;
}

static bool holds(const struct kedge_buf *b, const char *text)
{
    return memmem(b->ptr, b->len, text, strlen(text)) != NULL;
}

/* visit(path relative to the folder) for every file, folder by folder. */
typedef void visit_file(void *arg, const char *folder, const char *name);
static size_t each_file(const char *folder, visit_file *visit, void *arg)
{
    static const char *const places[] = {"", "checkpoints", "entries", "keys", "proofs", "tsa"};
    size_t count = 0;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char path[KEDGE_PATH_MAX], name[KEDGE_PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", at(folder), places[i]);
        DIR *dir = opendir(path);
        const struct dirent *e;
        while (dir && (e = readdir(dir)) != NULL) {
            if (e->d_type == DT_REG) {
                snprintf(name, sizeof name, "%s%s%s", places[i], places[i][0] ? "/" : "", e->d_name);
                visit(arg, folder, name);
                count++;
            }
        }
        if (dir) {
            closedir(dir);
        }
    }
    return count;
}

/* ---- what is in it ---- */

static void check_proof(void *arg, const char *folder, const char *name)
{
    struct made *m = arg;
    const struct kedge_trust_tenant *t = NULL;
    if (strncmp(name, "proofs/", 7) != 0) {
        return;
    }
    for (uint32_t i = 0; i < m->trust.tenant_count; i++) {
        size_t len = strlen(m->trust.tenants[i].tenant.s);
        if (strncmp(name + 7, m->trust.tenants[i].tenant.s, len) == 0 && name[7 + len] == '-') {
            t = &m->trust.tenants[i];
        }
    }
    struct kedge_buf text = content(folder, name), entry;
    char path[KEDGE_PATH_MAX];
    int len = (int)(strrchr(name, '.') - (name + 7));
    snprintf(path, sizeof path, "entries/%.*s.json", len, name + 7);
    char full[2 * KEDGE_PATH_MAX];
    snprintf(full, sizeof full, "%s/%s", at(folder), path);
    if (!kedge_file_exists(full)) {
        snprintf(path, sizeof path, "entries/%.*s.bin", len, name + 7);
    }
    entry = content(folder, path);
    struct kedge_proof proof;
    struct kedge_hash leaf;
    kedge_merkle_leaf(kedge_buf_view(&entry), &leaf);
    ck_assert_int_eq(kedge_proof_decode(kedge_buf_view(&text), &proof), KEDGE_OK);
    ck_assert_msg(
        kedge_proof_verify(&proof, &leaf, kedge_view_of(NULL, 0), t ? &t->log : &m->trust.main_log, 1, NULL)
            == KEDGE_OK,
        "%s", name);
    kedge_buf_deinit(&text);
    kedge_buf_deinit(&entry);
}

static void check_model(const struct made *m, const char *folder, const char *model)
{
    char path[KEDGE_PATH_MAX], signature[KEDGE_PATH_MAX + 16];
    struct kedge_diag d = {.text = ""};
    struct kedge_oms oms;
    snprintf(path, sizeof path, "%s/models/%s", at(folder), model);
    snprintf(signature, sizeof signature, "models/%s/model.sig", model);
    struct kedge_buf bundle = content(folder, signature);
    snprintf(signature, sizeof signature, "%s/model.sig", path);
    ck_assert_msg(kedge_oms_open(kedge_buf_view(&bundle), kedge_buf_view(&m->pem), &oms, &d) == KEDGE_OK,
                  "%s", d.text);
    ck_assert_str_eq(oms.name, model);
    ck_assert_msg(kedge_oms_check(&oms, path, signature, &d) == KEDGE_OK, "%s", d.text);
    kedge_oms_deinit(&oms);
    kedge_buf_deinit(&bundle);
}

START_TEST(an_export_is_whole_and_the_same_twice)
{
    struct made m;
    make_scratch();
    fx_federation(at("fed"), FX_NONE);
    prepare(&m);
    m.o.all_tenants = true;
    EXPORT_OK(&m, "one");
    ck_assert_uint_ge(m.sum.models, 2);
    ck_assert_uint_gt(m.sum.attestations, m.sum.rounds);
    ck_assert_uint_ge(m.sum.proofs, m.sum.statements);
    ck_assert_uint_gt(each_file("one", check_proof, &m), 20);
    EXPORT_OK(&m, "two");
    struct kedge_buf a = content("one", "manifest.json"), b = content("two", "manifest.json");
    ck_assert(kedge_view_eq(kedge_buf_view(&a), kedge_buf_view(&b)));
    ck_assert(holds(&a, "2026-01-02T03:04:05Z"));
    m.o.time_s++;
    EXPORT_OK(&m, "three");
    struct kedge_buf c = content("three", "manifest.json");
    ck_assert(!kedge_view_eq(kedge_buf_view(&a), kedge_buf_view(&c)));
    DIR *dir = opendir(at("one/models"));
    const struct dirent *e;
    ck_assert_ptr_nonnull(dir);
    while ((e = readdir(dir)) != NULL) {
        if (e->d_name[0] != '.') {
            check_model(&m, "one", e->d_name);
        }
    }
    closedir(dir);
    kedge_buf_deinit(&a);
    kedge_buf_deinit(&b);
    kedge_buf_deinit(&c);
    finish(&m);
    remove_scratch();
}
END_TEST

/* ---- what is not in it ---- */

struct search {
    const char *const *words;
    bool found_one; /* the words that must be found somewhere */
};

static void decode_payloads(struct kedge_buf *b)
{
    static const char mark[] = "\"payload\":\"";
    struct kedge_buf plain;
    kedge_buf_init(&plain, 64 << 20);
    const uint8_t *p = b->ptr, *end = b->ptr + b->len;
    while ((p = memmem(p, (size_t)(end - p), mark, sizeof mark - 1)) != NULL) {
        p += sizeof mark - 1;
        const uint8_t *quote = memchr(p, '"', (size_t)(end - p));
        ck_assert_ptr_nonnull(quote);
        ck_assert_int_eq(kedge_base64_decode(kedge_view_of(p, (size_t)(quote - p)), false, &plain), KEDGE_OK);
    }
    kedge_buf_put(b, plain.ptr, plain.len);
    kedge_buf_deinit(&plain);
}

static void search_file(void *arg, const char *folder, const char *name)
{
    struct search *s = arg;
    struct kedge_buf b = content(folder, name);
    decode_payloads(&b);
    kedge_buf_put_str(&b, name);
    for (const char *const *w = s->words; *w; w++) {
        s->found_one = s->found_one || holds(&b, *w);
    }
    kedge_buf_deinit(&b);
}

START_TEST(what_is_not_permitted_is_not_in_it)
{
    static const char *const of_a[] = {"org-a", NULL}, *const of_b[] = {"org-b", NULL};
    static struct kedge_id tenant;
    struct made m;
    make_scratch();
    fx_federation(at("fed"), FX_NONE);
    prepare(&m);
    ck_assert_int_eq(kedge_id_from(kedge_view_str("org-b"), &tenant), KEDGE_OK);
    EXPORT_OK(&m, "public");
    m.o.tenants = &tenant;
    m.o.tenant_count = 1;
    EXPORT_OK(&m, "for-b");
    struct search a = {of_a, false}, b = {of_b, false}, none_b = {of_b, false};
    each_file("for-b", search_file, &a);
    ck_assert_msg(!a.found_one, "an export for org-b names org-a");
    each_file("for-b", search_file, &b);
    ck_assert_msg(b.found_one, "an export for org-b does not name it: this search finds nothing");
    each_file("public", search_file, &none_b);
    each_file("public", search_file, &a);
    ck_assert(!none_b.found_one && !a.found_one);
    finish(&m);
    remove_scratch();
}
END_TEST

/* ---- what is refused ---- */

static void nothing_at(const char *name)
{
    struct stat st;
    char left[KEDGE_PATH_MAX];
    ck_assert_int_ne(lstat(at(name), &st), 0);
    DIR *dir = opendir(scratch); /* nor a temporary folder beside it */
    const struct dirent *e;
    ck_assert_ptr_nonnull(dir);
    snprintf(left, sizeof left, "%s.", name);
    while ((e = readdir(dir)) != NULL) {
        ck_assert_msg(strncmp(e->d_name, left, strlen(left)) != 0, "%s is left", e->d_name);
    }
    closedir(dir);
}

START_TEST(a_record_that_does_not_verify_is_not_exported)
{
    static const enum fx_twist twists[] = {FX_RELEASE, FX_GHOST_FORGED, FX_GARBAGE};
    for (size_t i = 0; i < sizeof twists / sizeof twists[0]; i++) {
        struct made m;
        make_scratch();
        fx_federation(at("fed"), twists[i]);
        prepare(&m);
        ck_assert_int_eq(export_to(&m, "out"), KEDGE_E_VERIFY);
        ck_assert_ptr_nonnull(strstr(m.d.text, "does not verify"));
        nothing_at("out");
        finish(&m);
        remove_scratch();
    }
}
END_TEST

START_TEST(nothing_is_written_over_and_nothing_is_left)
{
    static struct kedge_id stranger;
    struct made m;
    const char *models[1];
    make_scratch();
    fx_federation(at("fed"), FX_NONE);
    prepare(&m);
    ck_assert_int_eq(mkdir(at("there"), 0700), 0);
    ck_assert_int_eq(export_to(&m, "there"), KEDGE_E_EXISTS);
    ck_assert_int_eq(symlink("nowhere", at("link")), 0);
    ck_assert_int_eq(export_to(&m, "link"), KEDGE_E_EXISTS);
    ck_assert_int_eq(export_to(&m, "no/such/folder"), KEDGE_E_NOT_FOUND);
    ck_assert_int_eq(kedge_id_from(kedge_view_str("org-z"), &stranger), KEDGE_OK);
    m.o.tenants = &stranger;
    m.o.tenant_count = 1;
    ck_assert_int_eq(export_to(&m, "out"), KEDGE_E_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(m.d.text, "org-z"));
    m.o.tenant_count = 0;
    models[0] = at("fed/trust.json"); /* no model at all */
    m.o.models = models;
    m.o.model_count = 1;
    ck_assert_int_eq(export_to(&m, "out"), KEDGE_E_VERIFY);
    ck_assert_ptr_nonnull(strstr(m.d.text, "no release"));
    nothing_at("out");
    finish(&m);
    remove_scratch();
}
END_TEST

START_TEST(one_model_can_be_chosen)
{
    struct made m;
    char path[KEDGE_PATH_MAX] = "";
    const char *models[1] = {path};
    make_scratch();
    fx_federation(at("fed"), FX_NONE);
    prepare(&m);
    DIR *dir = opendir(at("fed/models"));
    const struct dirent *e;
    while (dir && (e = readdir(dir)) != NULL) {
        if (e->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%s", at("fed/models"), e->d_name);
        }
    }
    closedir(dir);
    m.o.models = models;
    m.o.model_count = 1;
    EXPORT_OK(&m, "out");
    ck_assert_uint_eq(m.sum.models, 1);
    finish(&m);
    remove_scratch();
}
END_TEST

/* ---- keys ---- */

/* A second admin key of org-a, signed by the first and by itself, its revocation by itself, and the
 * checkpoint that puts it into the main chain. */
static void add_admin(void)
{
    static struct kedge_statement st;
    struct kedge_state_log log, main;
    struct kedge_key_pair first, second;
    struct kedge_buf one, both, idem, note, entry;
    const uint8_t salt[KEDGE_SALT_LEN] = {0x99};
    struct kedge_id tenant = fx_id_of("org-a");
    char key[KEDGE_IDEM_KEY_MAX + 1], hex[2 * KEDGE_KEY_LEN + 1];
    uint64_t size;
    struct kedge_buf *buffers[] = {&one, &both, &idem, &note, &entry};
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++) {
        kedge_buf_init(buffers[i], KEDGE_ENTRY_MAX);
    }
    fx_key_of("org-a", &first);
    MUST(kedge_state_log_open(at("fed/state"), &tenant, KEDGE_STATE_WRITE, &log, NULL));
    MUST(kedge_state_log_open(at("fed/state"), NULL, KEDGE_STATE_WRITE, &main, NULL));
    fx_key_of("second", &second);
    st.kind = KEDGE_ST_KEY_ADDED;
    st.u.key_added = (struct kedge_st_key_added){tenant, KEDGE_ROLE_ADMIN, second.public};
    fx_position(&log, &st);
    MUST(kedge_statement_sign(&st, &first, &one, NULL));
    MUST(kedge_statement_cosign(kedge_buf_view(&one), &second, &both, NULL));
    kedge_hex_encode(second.public.b, KEDGE_KEY_LEN, hex);
    kedge_buf_printf(&idem, "key-added/%s%c", hex, 0);
    fx_append_bytes(&log, kedge_buf_view(&both), (const char *)idem.ptr);
    st.kind = KEDGE_ST_KEY_REVOKED;
    st.u.key_revoked = (struct kedge_st_key_revoked){tenant, KEDGE_ROLE_ADMIN, second.public, "lost"};
    kedge_buf_clear(&one);
    kedge_buf_clear(&idem);
    st.at.before = 0;
    fx_position(&log, &st);
    MUST(kedge_statement_sign(&st, &second, &one, NULL));
    kedge_buf_printf(&idem, "key-revoked/%s%c", hex, 0);
    fx_append_bytes(&log, kedge_buf_view(&one), (const char *)idem.ptr);
    MUST(kedge_ledger_flush(log.ledger, NULL));
    MUST(kedge_ledger_checkpoint(log.ledger, &note, &size));
    MUST(kedge_main_entry_encode(salt, kedge_buf_view(&note), &entry));
    snprintf(key, sizeof key, "checkpoint/org-a/%020llu", (unsigned long long)size);
    fx_append_bytes(&main, kedge_buf_view(&entry), key);
    kedge_state_log_close(&log);
    kedge_state_log_close(&main);
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++) {
        kedge_buf_deinit(buffers[i]);
    }
}

START_TEST(keys_have_their_history)
{
    struct made m;
    struct kedge_key_pair second;
    char hex[2 * KEDGE_KEY_LEN + 1];
    make_scratch();
    fx_federation(at("fed"), FX_NONE);
    add_admin();
    prepare(&m);
    m.o.all_tenants = true;
    EXPORT_OK(&m, "out");
    struct kedge_buf keys = content("out", "keys.jsonl");
    fx_key_of("second", &second);
    kedge_hex_encode(second.public.b, KEDGE_KEY_LEN, hex);
    ck_assert(holds(&keys, hex));
    ck_assert(holds(&keys, "\"role\":\"admin key\""));
    ck_assert(holds(&keys, "\"revoked\":true"));
    ck_assert(holds(&keys, "\"valid_until\":"));
    ck_assert_uint_gt(each_file("out", check_proof, &m), 20);
    kedge_buf_deinit(&keys);
    finish(&m);
    remove_scratch();
}
END_TEST

/* ---- anchors and cosigned checkpoints ---- */

/* Evidence that the first `size` entries of the main chain were anchored, signed by a key of its own. */
static void anchor(uint64_t size, bool other_root)
{
    struct kedge_state_log log;
    struct kedge_evm_evidence *e = kedge_mem_new(1, sizeof *e);
    struct kedge_secp_secret key;
    struct kedge_secp_public public;
    struct kedge_buf raw, text, note;
    uint8_t call[KEDGE_EVM_ANCHOR_CALL_LEN];
    kedge_buf_init(&raw, KEDGE_EVM_RAW_MAX);
    kedge_buf_init(&text, KEDGE_EVM_EVIDENCE_MAX);
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    ck_assert_int_eq(kedge_state_log_open(at("fed/state"), NULL, KEDGE_STATE_WRITE, &log, NULL), KEDGE_OK);
    *e = (struct kedge_evm_evidence){.chain_id = 5, .block = 77, .contract = {{8}}, .finality = "final"};
    e->point = (struct kedge_evm_point){.seq = 1, .size = size};
    snprintf(e->origin, sizeof e->origin, "%s", log.origin);
    kedge_evm_namespace(kedge_view_str(e->origin), &e->point.ns);
    ck_assert_int_eq(kedge_ledger_root(log.ledger, size, &e->point.root), KEDGE_OK);
    ck_assert_int_eq(kedge_checkpoint_sign(kedge_view_str(log.origin), size, &e->point.root, &log.key, &note),
                     KEDGE_OK);
    e->point.root.b[0] = (uint8_t)(e->point.root.b[0] ^ other_root);
    e->checkpoint = kedge_buf_view(&note);
    memset(key.b, 0x46, sizeof key.b);
    ck_assert_int_eq(kedge_secp_public_of(&key, &public), KEDGE_OK);
    kedge_evm_address_of_key(&public, &e->sender);
    kedge_evm_anchor_call(&e->point, call);
    struct kedge_evm_tx tx = {.kind = KEDGE_EVM_EIP1559,
                              .chain_id = 5,
                              .gas = 120000,
                              .max_fee = 9,
                              .to = e->contract,
                              .data = kedge_view_of(call, sizeof call)};
    ck_assert_int_eq(kedge_evm_tx_sign(&tx, &key, &raw, &e->tx_hash), KEDGE_OK);
    e->raw = kedge_buf_view(&raw);
    ck_assert_int_eq(kedge_evm_evidence_write(e, &text), KEDGE_OK);
    ck_assert_int_eq(kedge_dir_make(at("fed/state/anchors/evm"), 0700, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_file_write(at("fed/state/anchors/evm/1.json"), kedge_buf_view(&text), 0600, NULL),
                     KEDGE_OK);
    ck_assert_int_eq(kedge_file_write(at("fed/state/main/cosigned.note"), kedge_buf_view(&note), 0600, NULL),
                     KEDGE_OK);
    kedge_state_log_close(&log);
    kedge_buf_deinit(&raw);
    kedge_buf_deinit(&text);
    kedge_buf_deinit(&note);
    kedge_mem_free(e);
}

START_TEST(anchors_and_cosigned_checkpoints_go_along)
{
    struct made m;
    make_scratch();
    fx_federation(at("fed"), FX_NONE);
    anchor(7, false);
    prepare(&m);
    EXPORT_OK(&m, "out");
    struct kedge_buf manifest = content("out", "manifest.json");
    ck_assert(holds(&manifest, "\"anchors/evm-00000001.json\""));
    ck_assert(holds(&manifest, "\"checkpoints/main-7-anchored.note\""));
    ck_assert(holds(&manifest, "\"checkpoints/main-7-cosigned.note\""));
    ck_assert(holds(&manifest, "\"checkpoints/main-7-"));
    ck_assert(holds(&manifest, ".consistency.json\""));
    kedge_buf_deinit(&manifest);
    anchor(7, true);
    ck_assert_int_eq(export_to(&m, "forked"), KEDGE_E_VERIFY);
    ck_assert_msg(strstr(m.d.text, "anchors/evm/1.json") != NULL, "%s", m.d.text);
    nothing_at("forked");
    ck_assert_int_eq(kedge_file_write(at("fed/state/anchors/evm/1.json"), kedge_view_str("{}"), 0600, NULL),
                     KEDGE_OK);
    ck_assert_int_ne(export_to(&m, "broken"), KEDGE_OK);
    nothing_at("broken");
    finish(&m);
    remove_scratch();
}
END_TEST

START_TEST(proofs_carry_cosignatures_of_the_newest_checkpoint)
{
    struct made m;
    struct kedge_state_log log;
    struct kedge_buf note;
    const uint8_t zero[4 + 8 + 64] = {1};
    make_scratch();
    fx_federation(at("fed"), FX_NONE);
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    MUST(kedge_state_log_open(at("fed/state"), NULL, KEDGE_STATE_COPY, &log, NULL));
    MUST(kedge_ledger_checkpoint(log.ledger, &note, NULL));
    kedge_state_log_close(&log);
    kedge_buf_put_str(&note, "\xe2\x80\x94 example.org/witness ");
    kedge_base64_put(&note, kedge_view_of(zero, sizeof zero));
    kedge_buf_put_str(&note, "\n");
    MUST(kedge_file_write(at("fed/state/main/cosigned.note"), kedge_buf_view(&note), 0600, NULL));
    prepare(&m);
    EXPORT_OK(&m, "out");
    struct kedge_buf proof = content("out", "proofs/main-00000000.tlog-proof");
    ck_assert(holds(&proof, "example.org/witness"));
    ck_assert_uint_gt(each_file("out", check_proof, &m), 20);
    kedge_buf_deinit(&proof);
    kedge_buf_deinit(&note);
    finish(&m);
    remove_scratch();
}
END_TEST

START_TEST(a_long_job_is_drawn_in_bounds)
{
    struct made m;
    make_scratch();
    fx_large(at("fed"), 2, 30);
    prepare(&m);
    EXPORT_OK(&m, "out");
    struct kedge_buf page = content("out", "report.html");
    ck_assert(holds(&page, "… 18 more rounds …"));
    ck_assert(holds(&page, "(name withheld)"));
    kedge_buf_deinit(&page);
    finish(&m);
    remove_scratch();
}
END_TEST

/* ---- text ---- */

START_TEST(what_others_wrote_is_escaped)
{
    static const struct {
        const char *text, *html;
    } rows[] = {
        {"", ""},
        {"org-a", "org-a"},
        {"<script>alert(\"1\")</script>", "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;"},
        {"a&b'c", "a&amp;b&#39;c"},
        {"\x01\x7f\n", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xc2\x85", "\xef\xbf\xbd"},             /* a control character of two bytes */
        {"\xff\xc3", "\xef\xbf\xbd\xef\xbf\xbd"}, /* no UTF-8, and the beginning of a character */
        {"\xc3\xa9 \xf0\x9f\x9a\x80", "\xc3\xa9 \xf0\x9f\x9a\x80"},
        {"\xc0\xbc", "\xef\xbf\xbd\xef\xbf\xbd"}, /* an overlong '<' */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct kedge_buf out;
        kedge_buf_init(&out, 1024);
        kedgei_ex_html(&out, rows[i].text);
        kedge_buf_put_u8(&out, 0);
        ck_assert_str_eq((const char *)out.ptr, rows[i].html);
        kedge_buf_deinit(&out);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("export");
    TCase *t = tcase_create("record");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, an_export_is_whole_and_the_same_twice);
    tcase_add_test(t, what_is_not_permitted_is_not_in_it);
    tcase_add_test(t, a_record_that_does_not_verify_is_not_exported);
    tcase_add_test(t, nothing_is_written_over_and_nothing_is_left);
    tcase_add_test(t, one_model_can_be_chosen);
    tcase_add_test(t, keys_have_their_history);
    tcase_add_test(t, anchors_and_cosigned_checkpoints_go_along);
    tcase_add_test(t, proofs_carry_cosignatures_of_the_newest_checkpoint);
    tcase_add_test(t, a_long_job_is_drawn_in_bounds);
    tcase_add_test(t, what_others_wrote_is_escaped);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? 0 : 1;
}
