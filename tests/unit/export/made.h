/* What the tests of checked exports share: a federation, its export, and an exporter who signs what he likes.
 */
#ifndef KEDGE_TESTS_UNIT_EXPORT_MADE_H
#define KEDGE_TESTS_UNIT_EXPORT_MADE_H

#include <jansson.h>

#include "chain/export/check.h"
#include "chain/export/export.h"
#include "chain/export/internal.h"
#include "chain/export/oms.h"
#include "chain/log/cosignature.h"
#include "chain/log/proof.h"
#include "chain/statement/entry_index.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "crypto/keyfile.h"
#include "tests/fixtures/federation_impl.h"
#include "tests/unit/audit/support.h"

struct made {
    struct kedge_trust trust;
    struct kedge_export_options o;
    struct kedge_export_check_options look;
    struct kedge_export_check sum;
    struct kedge_export_summary made;
    struct kedge_state_log main;
    struct kedge_key_pair witness;
    struct kedge_diag d;
};

static const char witness_name[] = "witness.example";

static inline void prepare(struct made *m)
{
    static const struct kedge_seed seed = {{9}};
    memset(m, 0, sizeof *m);
    make_scratch();
    fx_federation(at("fed"), FX_NONE);
    ck_assert_int_eq(kedge_trust_read(at("fed/trust.json"), &m->trust, &m->d), KEDGE_OK);
    m->o = (struct kedge_export_options){
        .trust = &m->trust, .all_tenants = true, .time_s = 1, .tool = "kedge test", .audit = {.threads = 1}};
    kedge_key_from_seed(&seed, &m->o.key);
    memset(m->o.model_key.secret, 5, sizeof m->o.model_key.secret);
    kedge_key_generate(&m->witness);
    m->look.trust = &m->trust;
}

static inline void make(struct made *m)
{
    m->d.text[0] = '\0';
    ck_assert_msg(kedge_export(at("fed"), at("out"), &m->o, &m->made, &m->d) == KEDGE_OK, "%s", m->d.text);
}

/* The main chain with its key; close_main before the next export. */
static inline void open_main(struct made *m)
{
    ck_assert_int_eq(kedge_state_log_open(at("fed/state"), NULL, KEDGE_STATE_WRITE, &m->main, &m->d),
                     KEDGE_OK);
}

static inline void close_main(struct made *m)
{
    kedge_state_log_close(&m->main);
}

static inline void finish(struct made *m)
{
    kedge_trust_deinit(&m->trust);
    remove_scratch();
}

static inline int look(struct made *m)
{
    m->d.text[0] = '\0';
    int err = kedge_export_check(at("out"), &m->look, &m->sum, &m->d);
    ck_assert_msg(err == KEDGE_OK || m->d.text[0] != '\0', "no word about %s", kedge_err_name(err));
    return err;
}

/* A new manifest over what is there now, signed by the exporter's key. */
static inline void sign_manifest(struct made *m, const char *type)
{
    struct kedge_oms_list list;
    struct kedge_buf text, envelope;
    struct kedge_hash digest;
    json_t *files = json_array();
    kedge_buf_init(&text, 1 << 22);
    kedge_buf_init(&envelope, 1 << 20);
    ck_assert_int_eq(kedge_oms_read(at("out"), NULL, &list, NULL), KEDGE_OK);
    for (size_t i = 0; i < list.count; i++) {
        if (strncmp(list.files[i].name, "manifest.", 9) != 0) {
            json_array_append_new(files, json_pack("{s:s,s:i,s:o}", "path", list.files[i].name, "size", 1,
                                                   "sha256", kedgei_ex_hex(&list.files[i].digest)));
        }
    }
    json_t *manifest = json_pack("{s:o}", "files", files);
    ck_assert_int_eq(kedgei_ex_dump(manifest, &text), KEDGE_OK);
    kedge_sha256(kedge_buf_view(&text), &digest);
    json_t *subject = json_pack("[{s:s,s:o}]", "name", "manifest.json", "digest", kedgei_ex_digest(&digest));
    ck_assert_int_eq(
        kedgei_ex_envelope(kedgei_ex_statement(subject, type, json_object()), &m->o.key, &envelope),
        KEDGE_OK);
    ck_assert_int_eq(kedge_file_write(at("out/manifest.json"), kedge_buf_view(&text), 0600, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_file_write(at("out/manifest.intoto.json"), kedge_buf_view(&envelope), 0600, NULL),
                     KEDGE_OK);
    json_decref(manifest);
    kedge_oms_list_deinit(&list);
    kedge_buf_deinit(&text);
    kedge_buf_deinit(&envelope);
}

static inline void sign_again(struct made *m)
{
    sign_manifest(m, "https://kedge.dev/export/v1");
}

static inline void expect(struct made *m, const char *text)
{
    int err = look(m);
    ck_assert_msg(err == KEDGE_E_VERIFY, "expected \"%s\": %s", text, kedge_err_name(err));
    ck_assert_msg(strstr(m->d.text, text) != NULL, "expected \"%s\": %s", text, m->d.text);
}

static inline void put(const char *name, struct kedge_view bytes)
{
    ck_assert_int_eq(kedge_file_write(at(name), bytes, 0600, NULL), KEDGE_OK);
}

#endif
