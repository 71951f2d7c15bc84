/* kedge ledger fsck: every live bit of a state folder's logs is looked at. What LMDB reads is read in a child
 * process, for a damaged file can crash it; blobs are hashed here. Nothing is written. */
#include "chain/store/fsck.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "chain/store/blob/guard.h"
#include "cli/ledger/fsck_gaps.h"
#include "cli/local.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "crypto/keyfile.h"

enum {
    REFS_MAX = 1 << 30,
    ANSWER_MAX = 1 << 30,
    FINDINGS_MAX = 1000, /* told of one log */
    TIMEOUT_LEAST_MS = 60000,
    BYTES_PER_MS = 2 << 10,
};

/* Shared with the child: how far it is. */
struct meter {
    const char *what; /* a literal: the child is a fork */
    uint64_t done, total;
};

struct task {
    const char *name;                  /* of the log, for people */
    bool is_ledger;                    /* else any store */
    char folder[KEDGE_PATH_MAX];       /* with blobs/; empty: none */
    char store[KEDGE_PATH_MAX];        /* with data.mdb */
    char mark[KEDGE_PATH_MAX];         /* empty: none */
    char origin[KEDGE_ORIGIN_MAX + 1]; /* empty: as stored */
    bool has_key;
    struct kedge_public_key key;
};

struct fsck {
    struct kedge_cli *c;
    char state[KEDGE_PATH_MAX]; /* empty: a log's folder by itself */
    bool beside;
    struct meter *meter;
    struct task *tasks;
    size_t task_count;
    struct kedge_buf main_refs;
    bool main_is_known;
    uint64_t severities[3];
    json_t *logs;
};

/* What one look gathers. */
struct look {
    struct fsck *s;
    const struct task *task;
    json_t *findings;
    uint64_t told, kept_back;
};

/* ---- findings ---- */

/* Runs in the child for what is in a store, and here for blobs. Beyond FINDINGS_MAX they are only counted: a
 * wholly damaged file would have one for each page. */
static void take_finding(void *arg, const struct kedge_fsck_finding *f)
{
    static const char *const severities[] = {"note", "stray", "damage"};
    struct look *l = arg;
    if (l->told++ >= FINDINGS_MAX) {
        l->kept_back++;
        return;
    }
    json_t *row = json_pack("{s:s,s:s,s:s,s:s,s:s}", "severity", severities[f->severity], "part", f->part,
                            "where", f->where, "text", f->text, "mend", f->mend);
    if (f->has_index) {
        json_object_set_new(row, "index", json_integer((json_int_t)f->index));
    }
    json_array_append_new(l->findings, row);
}

static void take_progress(void *arg, const char *what, uint64_t done, uint64_t total)
{
    struct look *l = arg;
    *l->s->meter = (struct meter){what, done, total};
}

/* The child cannot draw, for its terminal is the parent's: it writes into shared memory how far it is, and
 * the parent draws while it waits. */
static void draw(void *arg)
{
    const struct fsck *s = arg;
    const struct meter *m = s->meter;
    kedge_cli_progress(s->c, "checking", m->done, m->total, m->what ? m->what : "");
}

static void draw_blobs(void *arg, const char *what, uint64_t done, uint64_t total)
{
    const struct look *l = arg;
    kedge_cli_progress(l->s->c, "checking", done, total, what);
}

static json_t *counts_json(const struct kedge_fsck_counts *n)
{
    return json_pack("{s:I,s:I,s:I}", "entries", (json_int_t)n->entries, "checkpoints", (json_int_t)n->heads,
                     "records", (json_int_t)n->records);
}

/* ---- the child: be32 length of the references, these, JSON ---- */

static int append_text(const char *text, size_t len, void *arg)
{
    kedge_buf_put(arg, text, len);
    return ((struct kedge_buf *)arg)->err ? -1 : 0;
}

/* The references are binary and many, findings are few and need names: so the answer is a length, the
 * digests, and then JSON. */
static int look_in_child(void *arg, struct kedge_buf *ret_out, struct kedge_diag *reterr)
{
    struct look *l = arg;
    const struct task *t = l->task;
    struct kedge_fsck f = {l->s->beside, take_finding, take_progress, l};
    struct kedge_fsck_counts counts = {0};
    struct kedge_buf refs;
    kedge_buf_init(&refs, REFS_MAX);
    l->findings = json_array();
    int err;
    if (t->is_ledger) {
        struct kedge_fsck_ledger ledger = {.dir = t->store,
                                           .mark = t->mark[0] ? t->mark : NULL,
                                           .origin = t->origin[0] ? t->origin : NULL,
                                           .key = t->has_key ? &t->key : NULL,
                                           .gone = "erased/"};
        err = kedge_fsck_ledger(&f, &ledger, &refs, &counts, reterr);
    } else {
        err = kedge_fsck_store(&f, t->store, &counts, reterr);
    }
    kedge_buf_put_u32(ret_out, (uint32_t)refs.len);
    kedge_buf_put(ret_out, refs.ptr, refs.len);
    json_t *answer = counts_json(&counts);
    json_object_set_new(answer, "findings", l->findings);
    json_object_set_new(answer, "kept_back", json_integer((json_int_t)l->kept_back));
    if (!err && json_dump_callback(answer, append_text, ret_out, JSON_COMPACT) != 0) {
        err = kedge_diag_set(reterr, KEDGE_E_NOMEM, "the answer does not fit");
    }
    json_decref(answer);
    kedge_buf_deinit(&refs);
    return err;
}

/* ---- the parent ---- */

static uint32_t timeout_ms(const struct task *t)
{
    char path[KEDGE_PATH_MAX];
    int64_t size = kedge_path_join(path, t->store, "data.mdb") == KEDGE_OK ? kedge_file_size(path) : 0;
    int64_t ms = TIMEOUT_LEAST_MS + (size > 0 ? size / BYTES_PER_MS : 0);
    return ms < INT32_MAX ? (uint32_t)ms : 0;
}

/* Refs and findings of one store. A child that died is a finding, too: the file made its reader crash or
 * never end, which is what somebody who runs fsck wants to know. The time that it may take grows with the
 * file. */
static int look_at_store(struct look *l, struct kedge_buf *ret_refs, json_t **ret, struct kedge_diag *d)
{
    struct kedge_buf out;
    json_error_t at;
    kedge_buf_init(&out, ANSWER_MAX);
    *l->s->meter = (struct meter){NULL, 0, 0};
    int err = kedge_store_guarded_watched(look_in_child, l, timeout_ms(l->task), draw, l->s, &out, d);
    bool is_gone = err == KEDGE_E_NOT_FOUND && l->s->state[0]; /* of a folder that must have it */
    if (err == KEDGE_E_CORRUPT || is_gone) {
        struct kedge_fsck_finding crash = {
            .severity = KEDGE_FSCK_DAMAGE,
            .part = "file",
            .where = l->task->store,
            .text = is_gone ? "there is no store here"
                            : "the file is so damaged that what reads it crashes or does not come to an end",
            .mend = l->task->is_ledger
                        ? "keep this folder as it is; kedge ledger repair builds the ledger anew"
                        : "keep this folder as it is and restore the store from a backup"};
        l->findings = json_array();
        take_finding(l, &crash);
        *ret = json_pack("{s:o}", "findings", l->findings);
        err = KEDGE_OK;
    } else if (!err) {
        struct kedge_reader r = kedge_reader_of(kedge_buf_view(&out));
        struct kedge_view refs = kedge_read_bytes(&r, kedge_read_u32(&r));
        kedge_buf_put(ret_refs, refs.ptr, refs.len);
        *ret = json_loadb((const char *)r.rest.ptr, r.rest.len, 0, &at);
        err = *ret && !ret_refs->err ? KEDGE_OK : kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory");
        l->findings = json_object_get(*ret, "findings");
        l->kept_back = (uint64_t)kedge_cli_int(*ret, "kept_back");
        l->told = json_array_size(l->findings) + l->kept_back;
    }
    kedge_buf_deinit(&out);
    return err;
}

static bool has(const char *dir, const char *name)
{
    char path[KEDGE_PATH_MAX];
    return kedge_path_join(path, dir, name) == KEDGE_OK && kedge_file_exists(path);
}

/* The main chain names models of its own and lists of inputs that lie at the tenants. A blob that nothing
 * names is a stray only if everything was read that could name it: if the main chain could not be read, or
 * this log has findings, strays are not reported, or fsck would advise people to remove what a damaged entry
 * names. */
static int look_at_blobs(struct look *l, struct kedge_view refs, json_t *row, struct kedge_diag *d)
{
    struct fsck *s = l->s;
    bool is_main = l->task == &s->tasks[0] && s->state[0];
    const char **folders = kedge_mem_new(s->task_count + 1, sizeof *folders);
    struct kedge_fsck f = {s->beside, take_finding, draw_blobs, l};
    struct kedge_fsck_counts counts = {0};
    if (!folders) {
        return kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory");
    }
    char keys[KEDGE_PATH_MAX];
    struct kedge_fsck_blobs blobs = {.dir = l->task->folder,
                                     .keys_dir =
                                         kedge_state_blob_keys_beside(l->task->folder, keys) ? keys : NULL,
                                     .keys_belong_here = s->state[0] && has(s->state, "keys/statement.pem"),
                                     .refs = refs,
                                     .also = is_main ? kedge_view_of(NULL, 0) : kedge_buf_view(&s->main_refs),
                                     .elsewhere = folders,
                                     .strays_are_fine = !s->main_is_known || l->told > 0};
    for (size_t i = 1; is_main && i < s->task_count; i++) {
        if (s->tasks[i].folder[0]) {
            folders[blobs.elsewhere_count++] = s->tasks[i].folder;
        }
    }
    int err = kedge_fsck_blobs(&f, &blobs, &counts, d);
    kedge_mem_free(folders);
    json_object_set_new(row, "blobs", json_integer((json_int_t)counts.blobs));
    json_object_set_new(row, "blob_bytes", json_integer((json_int_t)counts.blob_bytes));
    return err;
}

/* Also counts: the exit code follows from the worst severity of all logs together. */
static void say(struct fsck *s, const json_t *row, const struct look *l)
{
    static const char *const names[] = {"note: ", "stray: ", ""};
    size_t i;
    json_t *f;
    kedge_cli_progress_end(s->c);
    if (l->task->is_ledger) {
        kedge_cli_say(s->c, "%s: %lld entries, %lld checkpoints, %lld blobs of %.1f MB\n", l->task->name,
                      (long long)kedge_cli_int(row, "entries"), (long long)kedge_cli_int(row, "checkpoints"),
                      (long long)kedge_cli_int(row, "blobs"), (double)kedge_cli_int(row, "blob_bytes") / 1e6);
    } else {
        kedge_cli_say(s->c, "%s: %lld records\n", l->task->name, (long long)kedge_cli_int(row, "records"));
    }
    json_array_foreach(l->findings, i, f)
    {
        const char *severity = kedge_cli_text(f, "severity");
        unsigned level = severity[0] == 'd'   ? KEDGE_FSCK_DAMAGE
                         : severity[0] == 's' ? KEDGE_FSCK_STRAY
                                              : KEDGE_FSCK_NOTE;
        char index[40] = "";
        s->severities[level]++;
        if (json_object_get(f, "index")) {
            snprintf(index, sizeof index, " %lld", (long long)kedge_cli_int(f, "index"));
        }
        kedge_cli_say(s->c, "  %s%s: %s%s: %s\n    %s\n", names[level], kedge_cli_text(f, "where"),
                      kedge_cli_text(f, "part"), index, kedge_cli_text(f, "text"), kedge_cli_text(f, "mend"));
    }
    s->severities[KEDGE_FSCK_DAMAGE] += l->kept_back;
    if (l->kept_back > 0) {
        kedge_cli_say(s->c, "  … and %llu more\n", (unsigned long long)l->kept_back);
    }
}

static int look_at(struct fsck *s, const struct task *t, struct kedge_diag *d)
{
    struct look l = {.s = s, .task = t};
    struct kedge_buf refs;
    json_t *row = NULL;
    kedge_buf_init(&refs, REFS_MAX);
    int err = look_at_store(&l, &refs, &row, d);
    if (!err && t->folder[0]) {
        err = look_at_blobs(&l, kedge_buf_view(&refs), row, d);
    }
    kedge_buf_deinit(&refs);
    if (err) {
        json_decref(row);
        return err;
    }
    say(s, row, &l);
    json_object_set_new(row, "log", json_string(t->name));
    json_object_set_new(row, "kept_back", json_integer((json_int_t)l.kept_back));
    json_array_append_new(s->logs, row);
    return KEDGE_OK;
}

/* ---- what there is ---- */

/* A key that cannot be read is no finding, for copies have none: the log is then held to the key that is
 * stored in it. */
static int add_log(struct fsck *s, const char *name, const char *folder, const char *deployment,
                   struct kedge_diag *d)
{
    struct task *t = &s->tasks[s->task_count++];
    struct kedge_key_pair pair;
    char key[KEDGE_PATH_MAX];
    *t = (struct task){.name = name, .is_ledger = true};
    KEDGE_TRY(kedge_state_path(t->folder, d, s->state, "%s", folder));
    KEDGE_TRY(kedge_state_path(t->store, d, s->state, "%s/ledger.lmdb", folder));
    KEDGE_TRY(kedge_state_path(t->mark, d, s->state, "high-water/%s", name));
    KEDGE_TRY(kedge_state_path(key, d, s->state, "keys/log-%s.pem", name));
    snprintf(t->origin, sizeof t->origin, "%s/%s", deployment, name);
    t->has_key = kedge_keyfile_read_private(key, &pair, NULL) == KEDGE_OK;
    if (t->has_key) {
        t->key = pair.public;
        kedge_key_wipe(&pair);
    }
    return KEDGE_OK;
}

/* coordinator.lmdb is counted in only if it is there: a state folder that was never started has none. */
static int find_state(struct fsck *s, struct kedge_id **ret_ids, struct kedge_diag *d)
{
    char deployment[KEDGE_DEPLOYMENT_MAX + 1], folder[KEDGE_ID_MAX + 16];
    size_t count = 0;
    KEDGE_TRY(kedge_state_deployment(s->state, deployment, d));
    KEDGE_TRY(kedge_state_tenants(s->state, ret_ids, &count, d));
    s->tasks = kedge_mem_new(count + 2, sizeof *s->tasks);
    KEDGE_TRY(s->tasks ? add_log(s, "main", "main", deployment, d)
                       : kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory"));
    for (size_t i = 0; i < count; i++) {
        snprintf(folder, sizeof folder, "tenants/%s", (*ret_ids)[i].s);
        KEDGE_TRY(add_log(s, (*ret_ids)[i].s, folder, deployment, d));
    }
    struct task *t = &s->tasks[s->task_count++];
    *t = (struct task){.name = "coordinator"};
    KEDGE_TRY(kedge_state_path(t->store, d, s->state, "coordinator.lmdb"));
    s->task_count -= !kedge_file_exists(t->store); /* a state folder that was never started */
    s->beside = kedge_cli_coordinator_runs(s->state);
    return KEDGE_OK;
}

/* DIR/name, or DIR itself for an empty name. */
static int name_folder(char out[KEDGE_PATH_MAX], const char *dir, const char *name, struct kedge_diag *d)
{
    int n = name[0] ? 0 : snprintf(out, KEDGE_PATH_MAX, "%s", dir);
    int err = name[0] ? kedge_path_join(out, dir, name) : n < KEDGE_PATH_MAX ? KEDGE_OK : KEDGE_E_TOO_LONG;
    return err ? kedge_diag_set(d, err, "%.60s…: path too long", dir) : KEDGE_OK;
}

/* A state folder, a folder with one in it, a log's folder, or a store's. */
static int find_tasks(struct fsck *s, const char *dir, struct kedge_id **ret_ids, struct kedge_diag *d)
{
    int denied = kedge_cli_may_look(dir, d);
    if (denied) {
        return denied;
    }
    if (has(dir, "config.json") || has(dir, "state/config.json")) {
        int err = name_folder(s->state, dir, has(dir, "config.json") ? "" : "state", d);
        return err ? err : find_state(s, ret_ids, d);
    }
    bool is_log = has(dir, "ledger.lmdb/data.mdb");
    if (!is_log && !has(dir, "data.mdb")) {
        (void)kedge_diag_set(d, KEDGE_E_NOT_FOUND, "%s: there is neither a state folder nor a log here",
                             kedge_cli_word(dir).s);
        (void)kedge_diag_hint(d, "name a coordinator's state folder, or a folder with ledger.lmdb in it");
        return KEDGE_E_NOT_FOUND;
    }
    s->tasks = kedge_mem_new(1, sizeof *s->tasks);
    if (!s->tasks) {
        return kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory");
    }
    struct task *t = &s->tasks[s->task_count++];
    *t = (struct task){.name = dir, .is_ledger = true};
    int err = name_folder(t->store, dir, is_log ? "ledger.lmdb" : "", d);
    return err || !is_log || !has(dir, "blobs") ? err : name_folder(t->folder, dir, "", d);
}

/* ---- the command ---- */

static bool is_wanted(const struct kedge_cli *c, const struct task *t)
{
    bool wanted = !kedge_cli_argument(c, 1);
    for (int i = 1; kedge_cli_argument(c, i); i++) {
        wanted = wanted || strcmp(kedge_cli_argument(c, i), t->name) == 0;
    }
    return wanted;
}

/* A name that no log has is an error and not an empty answer: "nothing found" would be read as "nothing
 * damaged". */
static const char *first_unknown(const struct kedge_cli *c, const struct fsck *s)
{
    for (int i = 1; kedge_cli_argument(c, i); i++) {
        bool known = false;
        for (size_t t = 0; t < s->task_count; t++) {
            known = known || strcmp(kedge_cli_argument(c, i), s->tasks[t].name) == 0;
        }
        if (!known) {
            return kedge_cli_argument(c, i);
        }
    }
    return NULL;
}

/* ---- what there is no more ---- */

/* A gap has no store to look at, so it becomes a log with one finding and no counts, told as the others are.
 */
static void tell_gap(void *arg, const struct kedge_fsck_gap *gap)
{
    struct fsck *s = arg;
    struct task t = {.name = gap->log, .is_ledger = true};
    struct look l = {.s = s, .task = &t, .findings = json_array()};
    struct kedge_fsck_finding f = {.severity = gap->is_damage ? KEDGE_FSCK_DAMAGE : KEDGE_FSCK_STRAY,
                                   .part = "file",
                                   .where = gap->where,
                                   .text = gap->text,
                                   .mend = gap->mend};
    json_t *row =
        json_pack("{s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:o}", "log", gap->log, "entries", 0, "checkpoints", 0,
                  "records", 0, "blobs", 0, "blob_bytes", 0, "kept_back", 0, "findings", l.findings);
    if (is_wanted(s->c, &t)) {
        take_finding(&l, &f);
        say(s, row, &l);
        json_array_append(s->logs, row);
    }
    json_decref(row);
}

static int look_at_all(struct fsck *s, struct kedge_diag *d)
{
    int err = KEDGE_OK;
    if (s->state[0]) { /* what the main chain names, before any tenant's blobs are looked at */
        struct look l = {.s = s, .task = &s->tasks[0]};
        json_t *ignored = NULL;
        err = look_at_store(&l, &s->main_refs, &ignored, d);
        s->main_is_known = !err && json_array_size(l.findings) == 0;
        json_decref(ignored);
    }
    for (size_t i = 0; i < s->task_count && !err; i++) {
        err = is_wanted(s->c, &s->tasks[i]) ? look_at(s, &s->tasks[i], d) : KEDGE_OK;
    }
    return err || !s->state[0] ? err : kedge_fsck_gaps(s->state, tell_gap, s, d);
}

/* 5 for damage, 1 for strays only: blobs that nothing names cost room and lose nothing. */
static int answer(struct fsck *s)
{
    uint64_t damages = s->severities[KEDGE_FSCK_DAMAGE], strays = s->severities[KEDGE_FSCK_STRAY];
    const char *verdict = damages > 0 ? "damaged" : strays > 0 ? "strays" : "clean";
    if (damages > 0) {
        kedge_cli_say(s->c, "DAMAGED: %llu finding%s; stop the coordinator and change nothing by hand\n",
                      (unsigned long long)damages, damages == 1 ? "" : "s");
    } else {
        kedge_cli_say(s->c, "%s\n", strays > 0 ? "No record is damaged, but there are strays" : "No damage");
    }
    json_t *data = json_pack("{s:s,s:b,s:I,s:I,s:I,s:O}", "verdict", verdict, "beside_coordinator", s->beside,
                             "damages", (json_int_t)damages, "strays", (json_int_t)strays, "notes",
                             (json_int_t)s->severities[KEDGE_FSCK_NOTE], "logs", s->logs);
    return kedge_cli_answer(s->c, data, damages > 0 ? 5 : strays > 0 ? 1 : 0);
}

/* The meter is shared memory: what reads a store runs in a child, because a damaged one may end it. */
int kedge_cmd_ledger_fsck(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct fsck s = {.c = c};
    struct kedge_id *ids = NULL;
    if (!kedge_cli_no_options(c)) {
        return 2;
    }
    const char *dir = kedge_cli_argument(c, 0);
    dir = dir ? dir : c->state;
    s.meter = mmap(NULL, sizeof *s.meter, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s.meter == MAP_FAILED) {
        return kedge_cli_fail(c, KEDGE_E_NOMEM, NULL);
    }
    kedge_buf_init(&s.main_refs, REFS_MAX);
    s.logs = json_array();
    int err = find_tasks(&s, dir, &ids, &d);
    const char *unknown = err ? NULL : first_unknown(c, &s);
    if (unknown) {
        err = kedge_diag_set(&d, KEDGE_E_NOT_FOUND, "%s: there is no log \"%s\" here", dir,
                             kedge_cli_word(unknown).s);
    }
    if (!err) {
        err = look_at_all(&s, &d);
    }
    kedge_cli_progress_end(c);
    int code = err ? kedge_cli_fail(c, err, &d) : answer(&s);
    json_decref(s.logs);
    kedge_buf_deinit(&s.main_refs);
    kedge_mem_free(s.tasks);
    kedge_mem_free(ids);
    munmap(s.meter, sizeof *s.meter);
    return code;
}
