/* Judges an export by its folder, the trust file and two public keys alone. The order of the steps
 * matters, as later ones rely on earlier ones: the manifest says that all files are the exporter's and no
 * other is there; entries give the digests that lines of the lineage are compared with, the releases that
 * models must be among, and the one checkpoint per log that all other checkpoints must agree with. */
#include "chain/export/check.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/export/check_impl.h"
#include "chain/export/folder.h"
#include "chain/log/dsse.h"
#include "chain/log/lines.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "common/base/try.h"
#include "common/json/json.h"
#include "crypto/keyfile.h"
#include "crypto/timestamp.h"

#define TEXT_MAX ((size_t)1 << 30) /* of the lineage, line by line */
#define JSON_MAX ((size_t)KEDGEI_EX_MANIFEST_MAX)

/* ---- envelopes of the exporter ---- */

static int open_loaded(const struct kedgei_ex_check *c, const json_t *o, struct kedge_buf *payload)
{
    struct kedge_buf pae KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_buf raw KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_signature sig;
    kedge_buf_init(&pae, TEXT_MAX);
    kedge_buf_init(&raw, KEDGE_SIGNATURE_LEN);
    const json_t *one = json_array_get(json_object_get(o, "signatures"), 0);
    const char *body = json_string_value(json_object_get(o, "payload"));
    const char *type = json_string_value(json_object_get(o, "payloadType"));
    const char *base64 = json_string_value(json_object_get(one, "sig"));
    if (!body || !type || !base64 || strcmp(type, KEDGE_DSSE_IN_TOTO) != 0) {
        return KEDGE_E_FORMAT;
    }
    KEDGE_TRY(kedge_base64_decode(kedge_view_str(body), false, payload));
    KEDGE_TRY(kedge_base64_decode(kedge_view_str(base64), false, &raw));
    if (raw.len != KEDGE_SIGNATURE_LEN) {
        return KEDGE_E_VERIFY;
    }
    memcpy(sig.b, raw.ptr, sizeof sig.b);
    kedge_dsse_pae(kedge_view_str(type), kedge_buf_view(payload), &pae);
    return pae.err ? pae.err : kedge_verify(kedge_buf_view(&pae), &sig, &c->key);
}

/* The payload of an envelope that the exporter's key alone signed; any size. KEDGE_E_VERIFY. */
static int open_envelope(const struct kedgei_ex_check *c, struct kedge_view text, struct kedge_buf *payload)
{
    json_t *o KEDGE_CLEANUP(json_decrefp) = NULL;
    KEDGE_TRY(kedgei_json_load(text, JSON_MAX, "envelope", &o, NULL));
    return open_loaded(c, o, payload);
}

/* ---- manifest ---- */

static int check_row(const struct kedgei_ex_check *c, const json_t *row)
{
    const char *path = json_string_value(json_object_get(row, "path"));
    const char *hex = json_string_value(json_object_get(row, "sha256"));
    const struct kedge_oms_file *file = path ? kedgei_ex_find(c, path) : NULL;
    struct kedge_hash digest;
    if (!path || !hex || kedge_hash_from_hex(kedge_view_str(hex), &digest) != KEDGE_OK) {
        return kedgei_ex_wrong(c, "manifest.json", "a file without path or sha256");
    }
    if (!file) {
        return kedgei_ex_wrong(c, path, "in the manifest, but not here");
    }
    return kedge_hash_eq(&digest, &file->digest) ? KEDGE_OK
                                                 : kedgei_ex_wrong(c, path, "not what the manifest says");
}

/* What is there, whatever the manifest says: the digest is what counts. */
static uint64_t size_of(const struct kedgei_ex_check *c, const char *path)
{
    char full[KEDGE_PATH_MAX];
    int64_t size = kedge_path_join(full, c->dir, path) == KEDGE_OK ? kedge_file_size(full) : 0;
    return size > 0 ? (uint64_t)size : 0;
}

/* Each row is a file that is here, the paths ascend, so none is named twice, and there are as many files
 * as rows and two more: the manifest itself and its signature. So the two sets are the same. */
static int check_rows(struct kedgei_ex_check *c, const json_t *manifest)
{
    const json_t *files = json_object_get(manifest, "files"), *row;
    const char *before = "";
    size_t i;
    json_array_foreach(files, i, row)
    {
        int err = check_row(c, row);
        const char *path = json_string_value(json_object_get(row, "path"));
        if (err) {
            return err;
        }
        if (strcmp(before, path) >= 0) {
            return kedgei_ex_wrong(c, "manifest.json", "paths are not in ascending order");
        }
        before = path;
        c->sum.bytes += size_of(c, path);
    }
    c->sum.files = i;
    return i + 2 == c->files.count
               ? KEDGE_OK
               : kedgei_ex_wrong(c, "manifest.json", "there are files that it does not name");
}

static int check_manifest(struct kedgei_ex_check *c)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit), envelope KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_buf payload KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_hash digest;
    char hex[KEDGE_HASH_HEX_LEN + 1];
    json_t *manifest = NULL, *statement = NULL;
    kedge_buf_init(&envelope, 0);
    kedge_buf_init(&payload, TEXT_MAX);
    KEDGE_TRY(kedgei_ex_load(c, "manifest.json", JSON_MAX, &text));
    KEDGE_TRY(kedgei_ex_load(c, "manifest.intoto.json", JSON_MAX, &envelope));
    if (open_envelope(c, kedge_buf_view(&envelope), &payload) != KEDGE_OK) {
        return kedgei_ex_wrong(c, "manifest.intoto.json", "not signed by the exporter's key");
    }
    kedge_sha256(kedge_buf_view(&text), &digest);
    kedge_hash_hex(&digest, hex);
    int err = kedgei_json_load(kedge_buf_view(&payload), JSON_MAX, "statement", &statement, c->reterr);
    const json_t *subject = json_array_get(json_object_get(statement, "subject"), 0);
    const char *told = json_string_value(json_object_get(json_object_get(subject, "digest"), "sha256"));
    const char *type = json_string_value(json_object_get(statement, "predicateType"));
    if (!err && (!type || strcmp(type, "https://kedge.dev/export/v1") != 0)) {
        err = kedgei_ex_wrong(c, "manifest.intoto.json", "no statement about an export");
    }
    if (!err && (!told || strcmp(told, hex) != 0)) {
        err = kedgei_ex_wrong(c, "manifest.json", "not what the exporter signed");
    }
    c->sum.attestations += !err;
    if (!err) {
        err = kedgei_json_load(kedge_buf_view(&text), JSON_MAX, "manifest.json", &manifest, c->reterr);
    }
    if (!err) {
        err = check_rows(c, manifest);
    }
    json_decref(statement);
    json_decref(manifest);
    return err;
}

/* ---- lineage and result ---- */

static int compare_hash(const void *a, const void *b)
{
    return kedge_hash_cmp(a, b);
}

static bool is_entry(const struct kedgei_ex_check *c, struct kedge_view line)
{
    struct kedge_hash digest;
    kedge_sha256(line, &digest);
    return c->entry_count
           && bsearch(&digest, c->entries, c->entry_count, sizeof *c->entries, compare_hash) != NULL;
}

/* Every line is the exporter's, or an entry word for word. */
static int check_lines(struct kedgei_ex_check *c, const char *path)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_view line;
    int err = kedgei_ex_load(c, path, TEXT_MAX, &text);
    struct kedge_view rest = kedge_buf_view(&text);
    while (!err && kedgei_take_line(&rest, &line)) {
        struct kedge_buf payload KEDGE_CLEANUP(kedge_buf_deinit);
        kedge_buf_init(&payload, TEXT_MAX);
        if (is_entry(c, line)) {
            continue; /* whose signature was checked there */
        }
        err = open_envelope(c, line, &payload) == KEDGE_OK
                  ? KEDGE_OK
                  : kedgei_ex_wrong(c, path, "a line is neither signed by the exporter's key nor an entry");
        c->sum.attestations += !err;
    }
    return err || rest.len == 0 ? err : kedgei_ex_wrong(c, path, "does not end with a line feed");
}

/* ---- models ---- */

/* A model needs two proofs. Its signature says that the exporter gave it out; that its digest is among
 * the releases of the main chain says that the federation made it. Either alone could be about another
 * file. */
static int check_model(struct kedgei_ex_check *c, const char *signature)
{
    char folder[KEDGE_PATH_MAX], full[KEDGE_PATH_MAX];
    struct kedge_buf bundle KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_oms oms = {.ignore = NULL};
    if (kedge_path_join(full, c->dir, signature) != KEDGE_OK) {
        return kedgei_ex_wrong(c, signature, "path too long");
    }
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(full, '/') - full), full);
    int err = kedgei_ex_load(c, signature, KEDGE_OMS_BUNDLE_MAX, &bundle);
    if (!err) {
        err = kedge_oms_open(kedge_buf_view(&bundle), kedge_buf_view(&c->model_pem), &oms, c->reterr);
    }
    if (err) {
        return kedge_diag_wrap(c->reterr, err, "%s", full);
    }
    err = kedge_oms_check(&oms, folder, full, c->reterr);
    for (size_t i = 0; i < oms.list.count && !err; i++) {
        bool released = false;
        for (size_t k = 0; k < c->release_count; k++) {
            released = released || kedge_hash_eq(&c->releases[k], &oms.list.files[i].digest);
        }
        err = released ? KEDGE_OK
                       : kedgei_ex_wrong(c, signature, "its model is no release of the main chain's entries");
    }
    kedge_oms_deinit(&oms);
    c->sum.models += !err;
    return err;
}

static int check_models(struct kedgei_ex_check *c)
{
    for (size_t i = 0; i < c->files.count; i++) {
        const char *name = c->files.files[i].name;
        char signature[KEDGE_PATH_MAX];
        if (strncmp(name, "models/", 7) != 0) {
            continue;
        }
        snprintf(signature, sizeof signature, "%.*s/model.sig", (int)(strrchr(name, '/') - name), name);
        if (!kedgei_ex_find(c, signature)) {
            KEDGE_TRY(kedgei_ex_wrong(c, name, "a model without model.sig"));
        } else if (strcmp(name, signature) == 0) {
            KEDGE_TRY(check_model(c, name));
        }
    }
    return KEDGE_OK;
}

/* ---- time stamps ---- */

static int check_token(struct kedgei_ex_check *c, const json_t *row, struct kedge_view ca)
{
    const char *token = json_string_value(json_object_get(row, "token"));
    const char *note = json_string_value(json_object_get(row, "checkpoint"));
    struct kedge_buf reply KEDGE_CLEANUP(kedge_buf_deinit), data KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_timestamp stamp;
    kedge_buf_init(&reply, 0);
    kedge_buf_init(&data, 0);
    if (!token || !note || !kedgei_ex_find(c, token) || !kedgei_ex_find(c, note)) {
        return kedgei_ex_wrong(c, "tsa/index.json", "names a file that is not here");
    }
    size_t len = strlen(note);
    if (strncmp(note, "checkpoints/", 12) != 0
        || strcmp(note + len - 5, ".note") != 0) { /* those were judged */
        return kedgei_ex_wrong(c, token, "a time stamp of something that is no checkpoint");
    }
    KEDGE_TRY(kedgei_ex_load(c, token, KEDGE_TSR_MAX, &reply));
    KEDGE_TRY(kedgei_ex_load(c, note, KEDGE_NOTE_MAX, &data));
    int err = kedge_timestamp_verify(kedge_buf_view(&reply), kedge_buf_view(&data), ca, &stamp, c->reterr);
    c->sum.timestamps += !err;
    return err ? kedge_diag_wrap(c->reterr, err, "%s/%s", c->dir, token) : KEDGE_OK;
}

/* Stamps are judged by CA certificates that the caller got another way. Those that the export has in
 * tsa/ca.pem are for people and other programs: who forges an export can put an authority of their own
 * there. Without the caller's, stamps are counted as not judged. */
static int check_timestamps(struct kedgei_ex_check *c)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit), ca KEDGE_CLEANUP(kedge_buf_deinit);
    json_t *rows = NULL;
    size_t i;
    const json_t *row;
    kedge_buf_init(&text, 0);
    kedge_buf_init(&ca, KEDGE_TSA_PEM_MAX);
    if (!kedgei_ex_find(c, "tsa/index.json")) {
        return KEDGE_OK;
    }
    int err = kedgei_ex_load(c, "tsa/index.json", 1 << 20, &text);
    err = err || !c->o->tsa_ca ? err : kedge_file_read(c->o->tsa_ca, &ca, c->reterr);
    if (!err) {
        err = kedgei_json_load(kedge_buf_view(&text), 1 << 20, "tsa/index.json", &rows, c->reterr);
    }
    json_array_foreach(json_object_get(rows, "tokens"), i, row)
    {
        if (!c->o->tsa_ca) {
            c->sum.timestamps_not_judged++;
        } else if (!err) {
            err = check_token(c, row, kedge_buf_view(&ca));
        }
    }
    json_decref(rows);
    return err;
}

/* ---- all ---- */

/* With the folder's own keys the check shows only that the export is of one piece. Who the exporter is,
 * only keys that came another way can say. */
static int read_keys(struct kedgei_ex_check *c)
{
    char own[KEDGE_PATH_MAX], path[KEDGE_PATH_MAX];
    const char *folder = c->o->keys ? c->o->keys : own;
    KEDGE_TRY(kedge_path_join(own, c->dir, "keys"));
    KEDGE_TRY(kedge_path_join(path, folder, "attestations.pub.pem"));
    KEDGE_TRY(kedge_keyfile_read_public(path, &c->key, c->reterr));
    int err = kedge_path_join(path, folder, "models.pub.pem");
    return err ? err : kedge_file_read(path, &c->model_pem, c->reterr);
}

static int check_all(struct kedgei_ex_check *c)
{
    KEDGE_TRY(read_keys(c));
    KEDGE_TRY(kedge_oms_read_up_to(c->dir, NULL, KEDGEI_EX_FILES_MAX, &c->files, c->reterr));
    KEDGE_TRY(check_manifest(c));
    KEDGE_TRY(kedgei_ex_check_entries(c));
    KEDGE_TRY(kedgei_ex_check_notes(c));
    KEDGE_TRY(check_lines(c, "lineage.intoto.jsonl"));
    KEDGE_TRY(check_lines(c, "verification.intoto.json"));
    KEDGE_TRY(check_models(c));
    return check_timestamps(c);
}

int kedge_export_check(const char *dir, const struct kedge_export_check_options *options,
                       struct kedge_export_check *ret, struct kedge_diag *reterr)
{
    struct kedge_diag own = {.text = ""};
    struct kedgei_ex_check c = {.dir = dir, .o = options, .reterr = reterr ? reterr : &own};
    char manifest[KEDGE_PATH_MAX];
    kedge_buf_init(&c.model_pem, KEDGE_EC_PEM_MAX);
    if (kedge_path_join(manifest, dir, "manifest.json") != KEDGE_OK || !kedge_file_exists(manifest)) {
        (void)kedge_diag_set(c.reterr, KEDGE_E_NOT_FOUND, "%s: no export here: expected manifest.json", dir);
        (void)kedge_diag_hint(c.reterr, "name the folder that kedge audit export made");
        return KEDGE_E_NOT_FOUND;
    }
    int err = check_all(&c);
    kedge_oms_list_deinit(&c.files);
    kedge_buf_deinit(&c.model_pem);
    kedge_mem_free(c.entries);
    kedge_mem_free(c.releases);
    kedge_mem_free(c.heads);
    if (err && !c.reterr->text[0]) {
        (void)kedge_diag_set(c.reterr, err, "%s: %s", dir, kedge_strerror(err));
    }
    if (!err) {
        *ret = c.sum;
    }
    return err;
}
