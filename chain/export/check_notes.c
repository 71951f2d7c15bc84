/* Checkpoints of an export: each is signed by the trusted key of its log and belongs to the one history under
 * which the log's entries are proved; the trust file's quorum of witnesses has cosigned one that holds every
 * release. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "chain/export/check_impl.h"
#include "chain/log/merkle.h"
#include "chain/log/witness_quorum.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/json/json.h"

enum { CONSISTENCY_MAX = 64 * 1024 };

/* ---- consistency proofs ---- */

struct growth {
    uint64_t from, to;
    struct kedge_hash from_root, to_root;
};

static bool take_hash(const json_t *value, struct kedge_hash *ret)
{
    const char *hex = json_string_value(value);
    return hex && kedge_hash_from_hex(kedge_view_str(hex), ret) == KEDGE_OK;
}

static bool take_size(const json_t *value, uint64_t *ret)
{
    *ret = json_is_integer(value) && json_integer_value(value) > 0 ? (uint64_t)json_integer_value(value) : 0;
    return *ret > 0;
}

/* KEDGE_OK when the file's path leads from its one root to its other. */
static int read_growth(const struct kedgei_ex_check *c, const char *path, struct growth *ret)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_hash hashes[KEDGE_PROOF_MAX];
    json_t *o = NULL;
    KEDGE_TRY(kedgei_ex_load(c, path, CONSISTENCY_MAX, &text));
    KEDGE_TRY(kedgei_json_load(kedge_buf_view(&text), CONSISTENCY_MAX, path, &o, c->reterr));
    const json_t *list = json_object_get(o, "path");
    size_t count = json_array_size(list);
    bool good = count <= KEDGE_PROOF_MAX && take_size(json_object_get(o, "from"), &ret->from)
                && take_size(json_object_get(o, "to"), &ret->to)
                && take_hash(json_object_get(o, "from_root"), &ret->from_root)
                && take_hash(json_object_get(o, "to_root"), &ret->to_root);
    for (size_t i = 0; good && i < count; i++) {
        good = take_hash(json_array_get(list, i), &hashes[i]);
    }
    good = good
           && kedge_consistency_verify(ret->from, ret->to, &ret->from_root, &ret->to_root, hashes, count)
                  == KEDGE_OK;
    json_decref(o);
    return good ? KEDGE_OK : kedgei_ex_wrong(c, path, "does not prove that one checkpoint grew into another");
}

/* That `note` and the checkpoint under which the log's entries are proved are of one history. */
static int check_history(const struct kedgei_ex_check *c, const struct kedgei_ex_head *head, const char *path,
                         const struct kedge_checkpoint *note)
{
    const bool older = note->size < head->size;
    struct growth g = {.from = 0};
    char name[KEDGE_PATH_MAX];
    if (note->size == head->size || note->size == 0) {
        return note->size == 0 || kedge_hash_eq(&note->root, &head->root)
                   ? KEDGE_OK
                   : kedgei_ex_wrong(c, path,
                                     "another history than the one that the entries are proved under");
    }
    snprintf(name, sizeof name, "checkpoints/%s-%llu-%llu.consistency.json", head->log,
             (unsigned long long)(older ? note->size : head->size),
             (unsigned long long)(older ? head->size : note->size));
    if (!kedgei_ex_find(c, name)) {
        return kedgei_ex_wrong(c, path, "a checkpoint without the proof that joins it to the entries' own");
    }
    KEDGE_TRY(read_growth(c, name, &g));
    const struct kedge_hash *mine = older ? &g.from_root : &g.to_root;
    const struct kedge_hash *theirs = older ? &g.to_root : &g.from_root;
    return (older ? g.from : g.to) == note->size && (older ? g.to : g.from) == head->size
                   && kedge_hash_eq(mine, &note->root) && kedge_hash_eq(theirs, &head->root)
               ? KEDGE_OK
               : kedgei_ex_wrong(c, path, "another history than the one that the entries are proved under");
}

/* ---- one checkpoint ---- */

static const struct kedge_vkey *find_log(const struct kedgei_ex_check *c, struct kedge_view origin,
                                         const char **ret_name)
{
    const struct kedge_trust *trust = c->o->trust;
    if (kedge_view_eq(origin, kedge_view_str(trust->main_log.name))) {
        *ret_name = "main";
        return &trust->main_log;
    }
    for (uint32_t i = 0; i < trust->tenant_count; i++) {
        if (kedge_view_eq(origin, kedge_view_str(trust->tenants[i].log.name))) {
            *ret_name = trust->tenants[i].tenant.s;
            return &trust->tenants[i].log;
        }
    }
    return NULL;
}

/* NULL for a log of which the export has no entry: its checkpoints are then signed and nothing more, and
 * there is nothing that could hang on them. */
static const struct kedgei_ex_head *find_head(const struct kedgei_ex_check *c, const char *log)
{
    for (size_t i = 0; i < c->head_count; i++) {
        if (strcmp(c->heads[i].log, log) == 0) {
            return &c->heads[i];
        }
    }
    return NULL;
}

/* Raises c->sum.final_entries to the note's size when the quorum cosigned it. */
static int judge_quorum(struct kedgei_ex_check *c, struct kedge_view note)
{
    struct kedge_witness_demand demand = {
        .origin = kedge_view_str(c->o->trust->main_log.name), .logs = &c->o->trust->main_log, .log_count = 1};
    struct kedge_witness_evaluation *e = kedge_mem_new(1, sizeof *e);
    if (!e) {
        return kedge_diag_set(c->reterr, KEDGE_E_NOMEM, "out of memory");
    }
    int err = kedge_witness_policy_evaluate(c->policy, note, &demand, e, NULL);
    if (!err && e->checkpoint.size > c->sum.final_entries) {
        c->sum.final_entries = e->checkpoint.size;
    }
    kedge_mem_free(e);
    return err == KEDGE_E_NOMEM ? kedge_diag_set(c->reterr, err, "out of memory") : KEDGE_OK;
}

static int check_note(struct kedgei_ex_check *c, const char *path)
{
    struct kedge_buf bytes KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_note *note = kedge_mem_new(1, sizeof *note);
    struct kedge_checkpoint checkpoint;
    const char *log = NULL;
    kedge_buf_init(&bytes, 0);
    if (!note) {
        return kedge_diag_set(c->reterr, KEDGE_E_NOMEM, "out of memory");
    }
    int err = kedgei_ex_load(c, path, KEDGE_NOTE_MAX, &bytes);
    if (err) {
        kedge_mem_free(note);
        return err;
    }
    const struct kedge_vkey *key = NULL;
    if (kedge_note_parse(kedge_buf_view(&bytes), note) == KEDGE_OK
        && kedge_checkpoint_parse(note->text, &checkpoint) == KEDGE_OK) {
        key = find_log(c, checkpoint.origin, &log);
    }
    kedge_mem_free(note);
    if (!key
        || kedge_checkpoint_open(kedge_buf_view(&bytes), kedge_view_str(key->name), key, 1, &checkpoint, NULL)
               != KEDGE_OK) {
        return kedgei_ex_wrong(c, path, "no checkpoint that a log key of the trust file signed");
    }
    const struct kedgei_ex_head *head = find_head(c, log);
    err = head ? check_history(c, head, path, &checkpoint) : KEDGE_OK;
    c->sum.checkpoints += !err;
    return err || !c->policy || strcmp(log, "main") != 0 ? err : judge_quorum(c, kedge_buf_view(&bytes));
}

/* ---- all ---- */

static bool ends_with(const char *s, const char *end)
{
    size_t len = strlen(s), end_len = strlen(end);
    return len >= end_len && strcmp(s + len - end_len, end) == 0;
}

/* Every file of the folder must hold, also a consistency proof that no checkpoint here needs: nothing in an
 * export stands there unchecked, where a reader could take it for checked. */
static int check_files(struct kedgei_ex_check *c)
{
    for (size_t i = 0; i < c->files.count; i++) {
        const char *name = c->files.files[i].name;
        struct growth g = {.from = 0};
        if (strncmp(name, "checkpoints/", 12) != 0) {
            continue;
        }
        if (ends_with(name, ".note")) {
            KEDGE_TRY(check_note(c, name));
        } else if (ends_with(name, ".consistency.json")) {
            KEDGE_TRY(read_growth(c, name, &g));
        } else {
            KEDGE_TRY(kedgei_ex_wrong(c, name, "neither a checkpoint nor a consistency proof"));
        }
    }
    return KEDGE_OK;
}

/* A quorum counts for all entries up to the size that it cosigned. It is enough that one checkpoint of
 * the export holds every release; which one does not matter, as all are of one history by then. */
int kedgei_ex_check_notes(struct kedgei_ex_check *c)
{
    struct kedge_witness_policy *policy = NULL;
    const char *text = c->o->trust->witness_policy;
    KEDGE_TRY(text ? kedge_witness_policy_parse(kedge_view_str(text), &policy, c->reterr) : KEDGE_OK);
    c->policy = policy && policy->quorum.kind != KEDGE_QUORUM_NONE ? policy : NULL;
    int err = check_files(c);
    if (!err && c->policy && c->release_count > 0 && c->release_last >= c->sum.final_entries) {
        err = kedge_diag_set(c->reterr, KEDGE_E_VERIFY,
                             "%s: the quorum of witnesses that the trust file demands has cosigned the first "
                             "%llu entries of the main chain, and not the release main[%llu]",
                             c->dir, (unsigned long long)c->sum.final_entries,
                             (unsigned long long)c->release_last);
    }
    c->policy = NULL;
    kedge_witness_policy_free(policy);
    return err;
}
