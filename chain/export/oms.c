#include "chain/export/oms.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "chain/export/internal.h"
#include "chain/log/dsse.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "common/base/try.h"
#include "common/json/json.h"

static const char media_type[] = "application/vnd.dev.sigstore.bundle.v0.3+json";
static const char predicate_type[] = "https://model_signing/signature/v1.0";
static const char statement_type[] = "https://in-toto.io/Statement/v1";

/* ---- writing ---- */

static json_t *serialization(const struct kedge_oms_ignore *ignore)
{
    json_t *paths = json_array();
    for (size_t i = 0; ignore && i < ignore->count; i++) {
        json_array_append_new(paths, json_string(ignore->paths[i]));
    }
    json_t *o = json_pack("{s:s,s:s,s:b}", "method", "files", "hash_type", "sha256", "allow_symlinks",
                          ignore && ignore->allow_symlinks);
    if (json_array_size(paths) > 0) {
        json_object_set(o, "ignore_paths", paths);
    }
    json_decref(paths);
    return o;
}

static json_t *statement_of(const char *name, const struct kedge_oms_list *list,
                            const struct kedge_oms_ignore *ignore)
{
    struct kedge_hash root;
    json_t *resources = json_array();
    for (size_t i = 0; i < list->count; i++) {
        json_array_append_new(resources,
                              json_pack("{s:s,s:o,s:s}", "name", list->files[i].name, "digest",
                                        kedgei_ex_hex(&list->files[i].digest), "algorithm", "sha256"));
    }
    kedge_oms_root(list, &root);
    json_t *subject = json_pack("[{s:s,s:o}]", "name", name, "digest", kedgei_ex_digest(&root));
    json_t *predicate =
        json_pack("{s:o,s:o}", "resources", resources, "serialization", serialization(ignore));
    return kedgei_ex_statement(subject, predicate_type, predicate);
}

static int hint_of(const struct kedge_p256_key *key, char out[KEDGE_HASH_HEX_LEN + 1])
{
    struct kedge_buf pem KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_hash hint;
    kedge_buf_init(&pem, KEDGE_EC_PEM_MAX);
    KEDGE_TRY(kedge_p256_put_public(&pem, key));
    KEDGE_TRY(kedge_ec_hint(kedge_buf_view(&pem), &hint));
    kedge_hash_hex(&hint, out);
    return KEDGE_OK;
}

int kedge_oms_sign(const char *name, const struct kedge_oms_list *list, const struct kedge_oms_ignore *ignore,
                   const struct kedge_p256_key *key, struct kedge_buf *ret_bundle)
{
    struct kedge_buf payload KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_buf pae KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_buf sig KEDGE_CLEANUP(kedge_buf_deinit);
    char hint[KEDGE_HASH_HEX_LEN + 1];
    kedge_buf_init(&payload, KEDGE_OMS_BUNDLE_MAX);
    kedge_buf_init(&pae, KEDGE_OMS_BUNDLE_MAX + 128);
    kedge_buf_init(&sig, KEDGE_EC_SIGNATURE_MAX);
    if (list->count == 0 || name[0] == '\0' || !kedge_utf8_is_valid(kedge_view_str(name))) {
        return KEDGE_E_ARG;
    }
    json_t *statement = statement_of(name, list, ignore);
    int err = statement ? kedgei_ex_dump(statement, &payload) : KEDGE_E_ARG;
    json_decref(statement);
    if (err) {
        return err;
    }
    err = hint_of(key, hint);
    if (!err) {
        kedge_dsse_pae(kedge_view_str(KEDGE_DSSE_IN_TOTO), kedge_buf_view(&payload), &pae);
        err = pae.err ? pae.err : kedge_p256_sign(kedge_buf_view(&pae), key, &sig);
    }
    if (err) {
        return err;
    }
    kedge_buf_printf(ret_bundle,
                     "{\"mediaType\":\"%s\",\"verificationMaterial\":{\"publicKey\":{\"hint\":\"%s\"},"
                     "\"tlogEntries\":[]},\"dsseEnvelope\":{\"payload\":\"",
                     media_type, hint);
    kedge_base64_put(ret_bundle, kedge_buf_view(&payload));
    kedge_buf_printf(ret_bundle, "\",\"payloadType\":\"%s\",\"signatures\":[{\"sig\":\"", KEDGE_DSSE_IN_TOTO);
    kedge_base64_put(ret_bundle, kedge_buf_view(&sig));
    kedge_buf_put_str(ret_bundle, "\",\"keyid\":\"\"}]}}");
    return ret_bundle->err;
}

/* ---- reading ---- */

static int refuse(struct kedge_diag *reterr, const char *what)
{
    return kedge_diag_set(reterr, KEDGE_E_FORMAT, "%s", what);
}

static const char *text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

/* That o has no member but these: what nobody signed shall at least be what everybody expects. */
static bool has_only(const json_t *o, const char *const *names)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)o, key, value)
    {
        size_t i = 0;
        while (names[i] && strcmp(names[i], key) != 0) {
            i++;
        }
        if (!names[i]) {
            return false;
        }
    }
    return true;
}

/* The hint, when there is one, must be that of the key. */
static int check_material(const json_t *root, struct kedge_view public_pem, struct kedge_diag *reterr)
{
    const json_t *material = json_object_get(root, "verificationMaterial");
    const json_t *key = json_object_get(material, "publicKey");
    struct kedge_hash hint;
    char hex[KEDGE_HASH_HEX_LEN + 1];
    if (json_object_size(root) != 3 || !json_is_object(material)) {
        return refuse(reterr, "expected mediaType, verificationMaterial and dsseEnvelope, and nothing else");
    }
    if (strcmp(text_of(root, "mediaType"), media_type) != 0) {
        return refuse(reterr, "mediaType: expected a Sigstore bundle, version 0.3");
    }
    if (json_object_get(material, "certificate") || json_object_get(material, "x509CertificateChain")) {
        return refuse(reterr, "signed with a certificate: only signatures by a public key are read here");
    }
    static const char *const members[] = {"publicKey", "tlogEntries", "timestampVerificationData", NULL};
    static const char *const key_members[] = {"hint", "rawBytes", "keyDetails", "validFor", NULL};
    if (!json_is_object(key) || !has_only(material, members) || !has_only(key, key_members)) {
        return refuse(reterr,
                      "verificationMaterial: publicKey is missing, or there is more than it should have");
    }
    int err = kedge_ec_hint(public_pem, &hint);
    if (err) {
        (void)kedge_diag_set(reterr, err, "expected one public key on P-256, P-384 or P-521 (SPKI PEM)");
        (void)kedge_diag_hint(reterr,
                              "name the signer's public key, such as keys/models.pub.pem of an export");
        return err;
    }
    const json_t *told = json_object_get(key, "hint");
    kedge_hash_hex(&hint, hex);
    if (told && (!json_is_string(told) || strcmp(json_string_value(told), hex) != 0)) {
        return kedge_diag_set(reterr, KEDGE_E_VERIFY, "signed by another key: its hint is not that of yours");
    }
    if (!told && !json_is_string(json_object_get(key, "rawBytes"))) {
        return refuse(reterr, "verificationMaterial: publicKey has neither hint nor rawBytes");
    }
    return KEDGE_OK;
}

/* The payload whose signature holds. */
static int check_envelope(const json_t *envelope, struct kedge_view public_pem, struct kedge_buf *payload,
                          struct kedge_diag *reterr)
{
    const json_t *signatures = json_object_get(envelope, "signatures");
    const json_t *one = json_array_get(signatures, 0), *keyid = json_object_get(one, "keyid");
    struct kedge_buf pae KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_buf sig KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&pae, KEDGE_OMS_BUNDLE_MAX + 128);
    kedge_buf_init(&sig, KEDGE_EC_SIGNATURE_MAX);
    if (strcmp(text_of(envelope, "payloadType"), KEDGE_DSSE_IN_TOTO) != 0) {
        return refuse(reterr, "dsseEnvelope: payloadType is not that of an in-toto statement");
    }
    static const char *const members[] = {"payload", "payloadType", "signatures", NULL};
    static const char *const signature_members[] = {"sig", "keyid", NULL};
    if (!has_only(envelope, members) || !has_only(one, signature_members)) {
        return refuse(reterr, "dsseEnvelope: there is more in it than an envelope has");
    }
    if (json_array_size(signatures) != 1) {
        return refuse(reterr, "dsseEnvelope: expected exactly one signature");
    }
    if (keyid && !json_is_null(keyid) && (!json_is_string(keyid) || json_string_value(keyid)[0])) {
        return refuse(reterr, "dsseEnvelope: expected an empty keyid");
    }
    if (kedge_base64_decode(kedge_view_str(text_of(envelope, "payload")), false, payload) != KEDGE_OK
        || kedge_base64_decode(kedge_view_str(text_of(one, "sig")), false, &sig) != KEDGE_OK
        || payload->len == 0) {
        return refuse(reterr, "dsseEnvelope: payload or sig is not base64, or too long");
    }
    kedge_dsse_pae(kedge_view_str(KEDGE_DSSE_IN_TOTO), kedge_buf_view(payload), &pae);
    int err = pae.err ? pae.err : kedge_ec_verify(kedge_buf_view(&pae), kedge_buf_view(&sig), public_pem);
    return err ? kedge_diag_set(reterr, err, "the signature does not verify with this key") : KEDGE_OK;
}

/* Relative, no empty, "." or ".." part; "." alone is a model of one file. A signature may come from anybody,
 * and a name with ".." would have files outside the model's folder judged, or ignored. */
static bool is_relative(const char *name)
{
    if (strcmp(name, ".") == 0) {
        return true;
    }
    const char *at = name;
    while (true) {
        size_t len = strcspn(at, "/");
        if (len == 0 || (len == 1 && at[0] == '.') || (len == 2 && at[0] == '.' && at[1] == '.')) {
            return false;
        }
        if (at[len] == '\0') {
            return true;
        }
        at += len + 1;
    }
}

/* Names must ascend, which also says that none is there twice: the list is later compared with the folder's
 * in one walk over both (compare_lists in oms_files.c). */
static int read_resources(const json_t *resources, struct kedge_oms *oms, struct kedge_diag *reterr)
{
    size_t count = json_array_size(resources);
    if (count == 0 || count > KEDGE_OMS_FILES_MAX) {
        return refuse(reterr, "resources: expected 1 to 100,000 files");
    }
    oms->list.files = kedge_mem_new(count, sizeof *oms->list.files);
    if (!oms->list.files) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *r = json_array_get(resources, i);
        struct kedge_oms_file *f = &oms->list.files[i];
        const char *name = text_of(r, "name");
        if (strcmp(text_of(r, "algorithm"), "sha256") != 0) {
            return refuse(reterr, "resources: only files hashed with sha256 are read here");
        }
        if (!is_relative(name) || kedge_hash_from_hex(kedge_view_str(text_of(r, "digest")), &f->digest)) {
            return refuse(reterr, "resources: a name is no relative path, or a digest is not 64 hex digits");
        }
        if (i > 0 && strcmp(oms->list.files[i - 1].name, name) >= 0) {
            return refuse(reterr, "resources: names are not in ascending order");
        }
        f->name = kedge_mem_strdup(name);
        if (!f->name) {
            return kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory");
        }
        oms->list.count++;
    }
    return KEDGE_OK;
}

static int read_serialization(const json_t *s, struct kedge_oms *oms, struct kedge_diag *reterr)
{
    const json_t *ignore = json_object_get(s, "ignore_paths"), *links = json_object_get(s, "allow_symlinks");
    if (strcmp(text_of(s, "method"), "files") != 0 || strcmp(text_of(s, "hash_type"), "sha256") != 0) {
        return refuse(reterr, "serialization: only method \"files\" with hash_type \"sha256\" is read here");
    }
    if ((links && !json_is_boolean(links)) || (ignore && !json_is_array(ignore))
        || json_array_size(ignore) > KEDGE_OMS_IGNORE_MAX) {
        return refuse(reterr,
                      "serialization: allow_symlinks or ignore_paths has a wrong type or is too long");
    }
    oms->allow_symlinks = json_is_true(links);
    size_t count = json_array_size(ignore);
    oms->ignore = kedge_mem_new(count + 1, sizeof *oms->ignore);
    for (size_t i = 0; oms->ignore && i < count; i++) {
        const char *path = json_string_value(json_array_get(ignore, i));
        if (!path || !is_relative(path) || strcmp(path, ".") == 0) {
            return refuse(reterr, "serialization: ignore_paths: expected relative paths");
        }
        oms->ignore[i] = kedge_mem_strdup(path);
        if (!oms->ignore[i]) {
            break;
        }
        oms->ignore_count++;
    }
    return oms->ignore_count == count && oms->ignore ? KEDGE_OK
                                                     : kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory");
}

static int read_statement(const json_t *o, struct kedge_oms *oms, struct kedge_diag *reterr)
{
    const json_t *subjects = json_object_get(o, "subject"), *subject = json_array_get(subjects, 0);
    const json_t *predicate = json_object_get(o, "predicate");
    struct kedge_hash root;
    if (strcmp(text_of(o, "_type"), statement_type) != 0
        || strcmp(text_of(o, "predicateType"), predicate_type) != 0) {
        return refuse(reterr, "the statement is no model signature, version 1.0");
    }
    if (json_array_size(subjects) != 1 || text_of(subject, "name")[0] == '\0'
        || kedge_hash_from_hex(kedge_view_str(text_of(json_object_get(subject, "digest"), "sha256")),
                               &oms->root)
               != KEDGE_OK) {
        return refuse(reterr, "subject: expected one, with a name and the sha256 of the model");
    }
    if (json_object_size(predicate) != 2) {
        return refuse(reterr, "predicate: expected resources and serialization, and nothing else");
    }
    snprintf(oms->name, sizeof oms->name, "%s", text_of(subject, "name"));
    KEDGE_TRY(read_serialization(json_object_get(predicate, "serialization"), oms, reterr));
    KEDGE_TRY(read_resources(json_object_get(predicate, "resources"), oms, reterr));
    kedge_oms_root(&oms->list, &root);
    return kedge_hash_eq(&root, &oms->root)
               ? KEDGE_OK
               : kedge_diag_set(reterr, KEDGE_E_VERIFY, "subject: its digest is not that of the resources");
}

static int open_root(const json_t *root, struct kedge_view public_pem, struct kedge_oms *io,
                     struct kedge_diag *reterr)
{
    struct kedge_buf payload KEDGE_CLEANUP(kedge_buf_deinit);
    json_t *statement KEDGE_CLEANUP(json_decrefp) = NULL;
    kedge_buf_init(&payload, KEDGE_OMS_BUNDLE_MAX);
    KEDGE_TRY(check_material(root, public_pem, reterr));
    KEDGE_TRY(check_envelope(json_object_get(root, "dsseEnvelope"), public_pem, &payload, reterr));
    KEDGE_TRY(
        kedgei_json_load(kedge_buf_view(&payload), KEDGE_OMS_BUNDLE_MAX, "statement", &statement, reterr));
    return read_statement(statement, io, reterr);
}

int kedge_oms_open(struct kedge_view bundle, struct kedge_view public_pem, struct kedge_oms *ret,
                   struct kedge_diag *reterr)
{
    struct kedge_oms oms = {.ignore = NULL};
    json_t *root = NULL;
    KEDGE_TRY(kedgei_json_load(bundle, KEDGE_OMS_BUNDLE_MAX, "model signature", &root, reterr));
    int err = open_root(root, public_pem, &oms, reterr);
    json_decref(root);
    if (err) {
        kedge_oms_deinit(&oms);
        return err;
    }
    *ret = oms;
    return KEDGE_OK;
}

void kedge_oms_deinit(struct kedge_oms *oms)
{
    for (size_t i = 0; i < oms->ignore_count; i++) {
        kedge_mem_free(oms->ignore[i]);
    }
    kedge_mem_free(oms->ignore);
    kedge_oms_list_deinit(&oms->list);
    memset(oms, 0, sizeof *oms);
}
