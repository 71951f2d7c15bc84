/* kedge audit export, verify-export, verify-model, timestamp-query: standard provenance files and what goes
 * with them. The writing is chain/export's; here is the asking and the telling. Nothing here talks to a
 * network. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "chain/audit/files/archive.h"
#include "chain/export/check.h"
#include "chain/export/export.h"
#include "chain/export/oms.h"
#include "cli/audit/audit_copy.h"
#include "cli/local.h"
#include "common/base/os/clock.h"
#include "common/base/os/utc.h"
#include "common/base/try.h"
#include "crypto/keyfile.h"
#include "crypto/timestamp.h"

enum { THREADS_MAX = 64, TENANTS_MAX = 256 };

/* All that keeps us from judging is "cannot read"; that something does not verify is an answer. */
static int fail(struct kedge_cli *c, int err, const struct kedge_diag *d)
{
    int code = kedge_exit_code(err);
    if (err == KEDGE_E_VERIFY) {
        return kedge_cli_fail_as(c, err, d, 1);
    }
    return kedge_cli_fail_as(c, err, d, code == 1 || code == 4 ? 3 : code);
}

/* ---- export: the question ---- */

struct question {
    const char *dir, *out, *trust_path, *keys, *time;
    const char *seen[KEDGE_TRUST_SEEN_MAX], *models[KEDGE_EXPORT_MODELS_MAX];
    const char *timestamps[KEDGE_EXPORT_TIMESTAMPS_MAX];
    struct kedge_id tenants[TENANTS_MAX], copied[TENANTS_MAX]; /* copied: whose ledgers a copy holds */
    struct kedge_export_options o;
};

/* All values of an option that may stand several times; false after a usage error. */
static bool take_several(struct kedge_cli *c, const char *name, const char **values, size_t max,
                         size_t *count)
{
    const char *value;
    while ((value = kedge_cli_option(c, name, NULL)) != NULL) {
        if (*count == max) {
            (void)kedge_cli_usage(c, "--%s: at most %zu", name, max);
            return false;
        }
        values[(*count)++] = value;
    }
    return true;
}

static bool take_tenants(struct kedge_cli *c, struct question *q)
{
    const char *names[TENANTS_MAX];
    size_t count = 0;
    if (!take_several(c, "tenant", names, TENANTS_MAX, &count)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (kedge_id_from(kedge_view_str(names[i]), &q->tenants[i]) != KEDGE_OK) {
            (void)kedge_cli_usage(c, "--tenant %s: not a tenant's name", kedge_cli_word(names[i]).s);
            return false;
        }
    }
    q->o.tenants = q->tenants;
    q->o.tenant_count = count;
    q->o.all_tenants = kedge_cli_flag(c, "all-tenants");
    return true;
}

static void show_progress(void *arg, const char *what, uint64_t done, uint64_t total)
{
    kedge_cli_progress(arg, "verifying", done, total, what);
}

/* What is missing is asked for in one message at a time, before a key is made or a folder touched. Trust is
 * not optional here: an export is signed by the exporter, who would vouch for a record that nobody checked.
 */
static bool is_whole(struct kedge_cli *c, const struct question *q)
{
    if (!q->dir) {
        (void)kedge_cli_usage(c, "DIR is missing: the folder with the record, or a tar archive of it");
    } else if (!q->out) {
        (void)kedge_cli_usage(c, "--out FOLDER is missing: what to make; it must not exist");
    } else if (!q->trust_path) {
        (void)kedge_cli_usage(
            c, "--trust FILE is missing: only what verifies is exported (see: kedge audit trust)");
    } else if (!q->keys) {
        (void)kedge_cli_usage(
            c, "--keys FOLDER is missing: the keys that sign the export, made there when absent");
    } else if (q->o.timestamp_count > 0 && !q->o.tsa_ca) {
        (void)kedge_cli_usage(c, "--timestamp needs --tsa-ca FILE: the CA certificates of the time-stamping "
                                 "authority");
    } else {
        return true;
    }
    return false;
}

static bool take_question(struct kedge_cli *c, struct question *q)
{
    uint64_t threads;
    q->out = kedge_cli_option(c, "out", NULL);
    q->trust_path = c->trust;
    q->keys = kedge_cli_option(c, "keys", NULL);
    q->time = kedge_cli_option(c, "time", NULL);
    q->o.tsa_ca = kedge_cli_option(c, "tsa-ca", NULL);
    if (!take_several(c, "seen", q->seen, KEDGE_TRUST_SEEN_MAX, &q->o.seen_count)
        || !take_several(c, "model", q->models, KEDGE_EXPORT_MODELS_MAX, &q->o.model_count)
        || !take_several(c, "timestamp", q->timestamps, KEDGE_EXPORT_TIMESTAMPS_MAX, &q->o.timestamp_count)
        || !take_tenants(c, q) || !kedge_cli_number(c, "threads", 1, THREADS_MAX, 0, &threads)
        || !kedge_cli_no_more(c, 1)) {
        return false;
    }
    if (q->time && !kedge_utc_parse(q->time, &q->o.time_s)) {
        (void)kedge_cli_usage(c, "--time %s: expected such as 2026-11-21T12:34:56Z",
                              kedge_cli_word(q->time).s);
        return false;
    }
    q->dir = kedge_cli_argument(c, 0);
    q->o.seen = q->seen;
    q->o.models = q->models;
    q->o.timestamps = q->timestamps;
    q->o.tool = "kedge 0.1.0";
    q->o.audit = (struct kedge_audit_options){
        .threads = (uint32_t)threads, .progress = show_progress, .progress_arg = c};
    return is_whole(c, q);
}

/* What is stated without --time: the newest time stamp (which is verified later, or nothing is made at all),
 * else the clock. */
static void choose_time(struct question *q)
{
    bool found = false;
    for (size_t i = 0; i < q->o.timestamp_count && !q->time; i++) {
        struct kedge_buf reply KEDGE_CLEANUP(kedge_buf_deinit);
        struct kedge_timestamp t;
        kedge_buf_init(&reply, KEDGE_TSR_MAX);
        if (kedge_file_read(q->timestamps[i], &reply, NULL) == KEDGE_OK
            && kedge_timestamp_parse(kedge_buf_view(&reply), &t) == KEDGE_OK) {
            q->o.time_s = !found || t.time_s > q->o.time_s ? t.time_s : q->o.time_s;
            found = true;
        }
    }
    if (!q->time && !found) {
        q->o.time_s = (int64_t)(kedge_os_unix_ms() / 1000);
    }
}

/* Two keys, because two formats want different curves: attestations are signed with Ed25519, model signatures
 * (OpenSSF) with P-256. Keys that are there are used again, so that all exports of one organisation verify
 * under the same public keys. */
static int read_keys(struct question *q, struct kedge_diag *d)
{
    char statements[KEDGE_PATH_MAX], models[KEDGE_PATH_MAX];
    if (kedge_path_join(statements, q->keys, "attestations.pem") != KEDGE_OK
        || kedge_path_join(models, q->keys, "models.pem") != KEDGE_OK) {
        return kedge_diag_set(d, KEDGE_E_TOO_LONG, "%s: path too long", q->keys);
    }
    int err = kedge_dir_make(q->keys, 0700, d);
    if (err) {
        return err;
    }
    if (kedge_file_exists(statements)) {
        err = kedge_keyfile_read_private(statements, &q->o.key, d);
    } else {
        kedge_key_generate(&q->o.key);
        err = kedge_keyfile_write_private(statements, &q->o.key, d);
    }
    return err ? err : kedge_p256_file(models, true, &q->o.model_key, d);
}

/* A running coordinator goes on writing while its record is exported: the audit then reads with locks, and
 * does not take what is on its way for a fault. */
static void look_for_coordinator(struct question *q)
{
    char state[KEDGE_PATH_MAX];
    bool runs = kedge_cli_coordinator_runs(q->dir);
    if (!runs && kedge_path_join(state, q->dir, "state") == KEDGE_OK) {
        runs = kedge_cli_coordinator_runs(state);
    }
    q->o.audit.beside_coordinator = runs;
    q->o.audit.live = runs;
}

/* ---- export: the answer ---- */

static int tell(struct kedge_cli *c, const struct question *q, const struct kedge_export_summary *s)
{
    kedge_cli_say(c, "%s: %llu files, %.1f MB\n", q->out, (unsigned long long)s->files,
                  (double)s->bytes / 1e6);
    kedge_cli_say(c, "  %u model%s with a signature (model.sig), bom.cdx.json, report.html\n", s->models,
                  s->models == 1 ? "" : "s");
    kedge_cli_say(c, "  %u statements with %u proofs, %u attestations over %u round%s\n", s->statements,
                  s->proofs, s->attestations, s->rounds, s->rounds == 1 ? "" : "s");
    if (s->timestamps > 0) {
        kedge_cli_say(c, "  %u time stamp%s verified\n", s->timestamps, s->timestamps == 1 ? "" : "s");
    }
    if (!q->o.all_tenants && q->o.tenant_count == 0) {
        kedge_cli_say(c, "Tenants' own statements are not in it: --tenant T or --all-tenants adds them.\n");
    }
    kedge_cli_say(c,
                  "Signed with the keys in %s: hand out keys/*.pub.pem over another way than the export.\n",
                  q->keys);
    return kedge_cli_ok(c,
                        json_pack("{s:s,s:I,s:I,s:i,s:i,s:i,s:i,s:i,s:i,s:I}", "out", q->out, "files",
                                  (json_int_t)s->files, "bytes", (json_int_t)s->bytes, "models",
                                  (int)s->models, "rounds", (int)s->rounds, "statements", (int)s->statements,
                                  "proofs", (int)s->proofs, "attestations", (int)s->attestations,
                                  "timestamps", (int)s->timestamps, "time_s", (json_int_t)s->time_s));
}

/* A tenant's copy is exported as what it is: what is withheld from it is not in the export either. */
static void look_for_copy(struct kedge_cli *c, struct question *q, const char *dir)
{
    q->o.audit.tenants = q->copied;
    q->o.audit.tenant_count = kedge_cli_copy_tenants(dir, q->copied, TENANTS_MAX);
    if (q->o.audit.tenant_count > 0) {
        kedge_cli_say(
            c,
            "A copy with the ledger of %s%s: others' statements, and what the coordinator withholds, are "
            "not in the export; verify-report.json says what could not be checked.\n",
            q->copied[0].s, q->o.audit.tenant_count > 1 ? " and others" : "");
    }
}

/* A folder as it is, an archive unpacked for as long as it takes. */
static int export_record(struct kedge_cli *c, struct question *q, struct kedge_export_summary *ret,
                         struct kedge_diag *d)
{
    static struct kedge_unpacked unpacked;
    if (!kedge_archive_is(q->dir)) {
        look_for_coordinator(q);
        if (!q->o.audit.live) {
            look_for_copy(c, q, q->dir);
        }
        return kedge_export(q->dir, q->out, &q->o, ret, d);
    }
    kedge_cli_progress(c, "unpacking", 0, 0, q->dir);
    KEDGE_TRY(kedge_archive_unpack(q->dir, NULL, &unpacked, d));
    look_for_copy(c, q, unpacked.dir);
    int err = kedge_export(unpacked.dir, q->out, &q->o, ret, d);
    int removed = kedge_archive_remove(&unpacked, err ? NULL : d);
    return err ? err : removed;
}

/* Keys are wiped before anything is told, whatever came of it. */
int kedge_cmd_audit_export(struct kedge_cli *c)
{
    static struct question q; /* long lists; a command runs once */
    struct kedge_diag d = {.text = ""};
    struct kedge_trust trust;
    struct kedge_export_summary summary;
    if (!take_question(c, &q)) {
        return 2;
    }
    int err = kedge_trust_read(q.trust_path, &trust, &d);
    if (err) {
        if (!strstr(d.text, q.trust_path)) {
            (void)kedge_diag_wrap(&d, err, "%s", q.trust_path);
        }
        return fail(c, err, &d);
    }
    q.o.trust = &trust;
    choose_time(&q);
    err = read_keys(&q, &d);
    if (!err) {
        err = export_record(c, &q, &summary, &d);
    }
    kedge_cli_progress_end(c);
    kedge_key_wipe(&q.o.key);
    kedge_wipe(&q.o.model_key, sizeof q.o.model_key);
    kedge_trust_deinit(&trust);
    return err ? fail(c, err, &d) : tell(c, &q, &summary);
}

/* ---- verify-export ---- */

/* Keys out of the export itself say nothing about who made it, under every path that names them: so device
 * and inode are compared, not names. */
static bool are_own(const char *folder, const char *keys)
{
    char own[KEDGE_PATH_MAX];
    struct stat a, b;
    return !keys
           || (kedge_path_join(own, folder, "keys") == KEDGE_OK && stat(own, &a) == 0 && stat(keys, &b) == 0
               && a.st_dev == b.st_dev && a.st_ino == b.st_ino);
}

/* The last line always says what no export can show. A reader who sees "Verified" alone would take it for
 * more than it is. */
static int tell_check(struct kedge_cli *c, const char *folder, bool own_keys,
                      const struct kedge_export_check *n)
{
    kedge_cli_say(c, "%llu files as the signed manifest names them, %.1f MB\n", (unsigned long long)n->files,
                  (double)n->bytes / 1e6);
    kedge_cli_say(c, "%u statements in their logs (%u proofs) and signed by keys in force; %u attestations\n",
                  n->statements, n->proofs, n->attestations);
    kedge_cli_say(c, "%u checkpoint%s of one history\n", n->checkpoints, n->checkpoints == 1 ? "" : "s");
    if (n->final_entries > 0) {
        kedge_cli_say(
            c, "releases final: the quorum of witnesses has cosigned the main chain's first %llu entries\n",
            (unsigned long long)n->final_entries);
    }
    kedge_cli_say(c, "%u model%s signed and released; %u time stamp%s\n", n->models,
                  n->models == 1 ? "" : "s", n->timestamps, n->timestamps == 1 ? "" : "s");
    if (n->timestamps_not_judged > 0) {
        kedge_cli_say(c, "%u time stamp%s not judged: --tsa-ca FILE names the authority's CA certificates\n",
                      n->timestamps_not_judged, n->timestamps_not_judged == 1 ? "" : "s");
    }
    if (own_keys) {
        kedge_cli_say(
            c, "The exporter's keys are the export's own: --keys FOLDER compares with those that you have "
               "from elsewhere.\n");
    }
    kedge_cli_say(c, "Verified: what is in %s.\n", folder);
    kedge_cli_say(
        c, "No export can show that nothing was left out of the logs, or that every decision is right: see "
           "kedge audit replay.\n");
    return kedge_cli_ok(
        c, json_pack("{s:s,s:I,s:I,s:i,s:I,s:i,s:i,s:i,s:i,s:i,s:i,s:b}", "export", folder, "files",
                     (json_int_t)n->files, "bytes", (json_int_t)n->bytes, "checkpoints", (int)n->checkpoints,
                     "final_entries", (json_int_t)n->final_entries, "models", (int)n->models, "statements",
                     (int)n->statements, "proofs", (int)n->proofs, "attestations", (int)n->attestations,
                     "timestamps", (int)n->timestamps, "timestamps_not_judged", (int)n->timestamps_not_judged,
                     "own_keys", own_keys));
}

int kedge_cmd_audit_verify_export(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_trust trust;
    struct kedge_export_check check;
    const char *trust_path = c->trust;
    struct kedge_export_check_options o = {.trust = &trust,
                                           .keys = kedge_cli_option(c, "keys", NULL),
                                           .tsa_ca = kedge_cli_option(c, "tsa-ca", NULL)};
    if (!kedge_cli_no_more(c, 1)) {
        return 2;
    }
    const char *folder = kedge_cli_argument(c, 0);
    if (!folder || !trust_path) {
        return kedge_cli_usage(c, "%s is missing",
                               folder ? "--trust FILE (see: kedge audit trust)" : "FOLDER");
    }
    int err = kedge_trust_read(trust_path, &trust, &d);
    if (err) {
        return fail(c, err, &d);
    }
    err = kedge_export_check(folder, &o, &check, &d);
    kedge_trust_deinit(&trust);
    return err ? fail(c, err, &d) : tell_check(c, folder, are_own(folder, o.keys), &check);
}

/* ---- verify-model ---- */

/* The wrap names the file that is to blame: a key that does not fit is the key file's error, everything else
 * the signature's. */
static int check_model(const struct kedge_cli *c, const char *model, const char *signature,
                       struct kedge_oms *ret, struct kedge_diag *d)
{
    struct kedge_buf bundle KEDGE_CLEANUP(kedge_buf_deinit), pem KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&bundle, KEDGE_OMS_BUNDLE_MAX);
    kedge_buf_init(&pem, KEDGE_EC_PEM_MAX);
    KEDGE_TRY(kedge_file_read(c->key, &pem, d));
    KEDGE_TRY(kedge_file_read(signature, &bundle, d));
    int err = kedge_oms_open(kedge_buf_view(&bundle), kedge_buf_view(&pem), ret, d);
    return err ? kedge_diag_wrap(d, err, "%s", err == KEDGE_E_KEY ? c->key : signature)
               : kedge_oms_check(ret, model, signature, d);
}

/* Needs no record: the model's folder, its signature and the signer's key. */
int kedge_cmd_audit_verify_model(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_oms oms = {.ignore = NULL};
    const char *signature = kedge_cli_option(c, "signature", NULL);
    if (!kedge_cli_no_more(c, 1)) {
        return 2;
    }
    const char *model = kedge_cli_argument(c, 0);
    if (!model || !signature || !c->key) {
        return kedge_cli_usage(c, "%s is missing",
                               !model       ? "MODEL"
                               : !signature ? "--signature FILE (model.sig)"
                                            : "--key FILE (the signer's public key)");
    }
    int err = check_model(c, model, signature, &oms, &d);
    if (err) {
        kedge_oms_deinit(&oms);
        return fail(c, err, &d);
    }
    char hex[KEDGE_HASH_HEX_LEN + 1];
    kedge_hash_hex(&oms.root, hex);
    kedge_cli_say(c, "Verified: %s has exactly the %zu file%s that were signed as \"%s\".\n", model,
                  oms.list.count, oms.list.count == 1 ? "" : "s", oms.name);
    json_t *data = json_pack("{s:s,s:s,s:s,s:I}", "model", model, "name", oms.name, "digest", hex, "files",
                             (json_int_t)oms.list.count);
    kedge_oms_deinit(&oms);
    return kedge_cli_ok(c, data);
}

/* ---- timestamp-query ---- */

/* The query is over the signed checkpoint as a file has it, with its cosignatures, because the reply has to
 * be checked against the same bytes. */
static int write_query(const char *path, const char *out, struct kedge_diag *d)
{
    struct kedge_buf note KEDGE_CLEANUP(kedge_buf_deinit), query KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_note parsed;
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    kedge_buf_init(&query, 1024);
    KEDGE_TRY(kedge_file_read(path, &note, d));
    if (kedge_note_parse(kedge_buf_view(&note), &parsed) != KEDGE_OK) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "%s: no signed checkpoint", path);
    }
    KEDGE_TRY(kedge_timestamp_query(kedge_buf_view(&note), NULL, &query));
    return kedge_file_write(out, kedge_buf_view(&query), 0644, d);
}

/* Makes only the query. Who carries it to an authority, and over which network, is the operator's choice; the
 * reply is checked where it is used. */
int kedge_cmd_audit_timestamp_query(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    const char *out = kedge_cli_option(c, "out", NULL);
    if (!kedge_cli_no_more(c, 1)) {
        return 2;
    }
    const char *path = kedge_cli_argument(c, 0);
    if (!path || !out) {
        return kedge_cli_usage(c, "%s is missing", path ? "--out FILE" : "CHECKPOINT");
    }
    int err = write_query(path, out, &d);
    if (err) {
        return fail(c, err, &d);
    }
    kedge_cli_say(
        c,
        "%s: a query over the SHA-256 of %s. Send it to a time-stamping authority and keep the reply:\n"
        "  curl -H \"Content-Type: application/timestamp-query\" --data-binary @%s -o REPLY.tsr URL\n"
        "then: kedge audit export … --seen %s --timestamp REPLY.tsr --tsa-ca CA.pem\n",
        out, path, out, path);
    return kedge_cli_ok(c, json_pack("{s:s,s:s}", "out", out, "checkpoint", path));
}
