/* Idea: the rounds in memory are the truth of a run, state.bin is their copy together with the engine's
 * state. A resumed run writes its files from that copy first, so that they hold no round twice and none that
 * is not in it. */
#include "sim/learn/report/report_run.h"

#include <string.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/try.h"
#include "sim/learn/exchange_process.h"
#include "sim/learn/report/report_folder.h"
#include "sim/learn/spec/spec_json.h"

enum { PIECE = 1 << 20, SPEC_TEXT_MAX = 1 << 20, NS_PER_MS = 1000000 };

struct run {
    const struct kedge_learn_task *task;
    const struct kedge_learn_exchange *exchange;
    struct kedgei_folder folder;
    struct kedge_learn_result result;
    uint32_t room; /* of result.rounds */
    struct kedge_buf loaded;
    struct kedge_view state; /* the engine's, within `loaded` */
    uint64_t begin_ns, saved_ns, spent_before_ms;
    bool is_first, stopped;
    int err; /* of what the engine's callbacks met */
    struct kedge_diag *d;
};

int kedge_learn_spec_digest(const struct kedge_learn_spec *spec, struct kedge_hash *ret)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, SPEC_TEXT_MAX);
    kedge_learn_spec_put(spec, &text);
    KEDGE_TRY(text.err);
    kedge_sha256(kedge_buf_view(&text), ret);
    return KEDGE_OK;
}

void kedge_learn_result_deinit(struct kedge_learn_result *r)
{
    kedge_mem_free(r->rounds);
    *r = (struct kedge_learn_result){.count = 0};
}

/* ---- what the engine calls ---- */

static uint64_t spent_ms(const struct run *r)
{
    return r->spent_before_ms + (kedge_os_now_ns() - r->begin_ns) / NS_PER_MS;
}

static int keep_round(struct run *r, const struct kedge_learn_round *round)
{
    if (r->result.count == r->room) {
        uint32_t room = r->room ? 2 * r->room : 256;
        struct kedge_learn_round *more = kedge_mem_resize(r->result.rounds, room, sizeof *more);
        if (!more) {
            return kedge_diag_set(r->d, KEDGE_E_NOMEM, "out of memory");
        }
        r->result.rounds = more;
        r->room = room;
    }
    r->result.rounds[r->result.count++] = *round;
    return r->task->out ? kedgei_folder_add(&r->folder, round, r->d) : KEDGE_OK;
}

/* All ranks go on, or none: rank 0 alone was asked. */
static bool agree(struct run *r, bool go_on)
{
    uint8_t mine = go_on, all[KEDGE_LEARN_PROCESSES_MAX];
    uint64_t lens[KEDGE_LEARN_PROCESSES_MAX];
    if (!r->exchange || r->exchange->size < 2) {
        return go_on;
    }
    int err = r->exchange->allgather(r->exchange->arg, &mine, 1, all, 1, lens);
    r->err = r->err ? r->err : err;
    return !err && all[0] == 1;
}

static bool on_round(void *arg, const struct kedge_learn_round *round)
{
    struct run *r = arg;
    bool go_on = true;
    if (r->is_first) {
        r->err = keep_round(r, round);
        go_on = !r->err && (!r->task->on_round || r->task->on_round(r->task->arg, round, false));
    }
    go_on = agree(r, go_on);
    r->stopped = r->stopped || !go_on;
    return go_on;
}

static int on_look(void *arg, const struct kedge_learn_view *view)
{
    struct run *r = arg;
    r->err =
        r->is_first && r->task->out ? kedgei_folder_look(&r->folder, r->task->spec, view, r->d) : KEDGE_OK;
    return r->err;
}

/* Not after each round but after a span of time: the state of a large simulation is larger than its rounds,
 * and writing it would be most of the work. */
static int on_save(void *arg, uint32_t round, const void *state, uint64_t len)
{
    struct run *r = arg;
    uint64_t now = kedge_os_now_ns();
    (void)round;
    if (!r->is_first || !r->task->out || now - r->saved_ns < (uint64_t)r->task->save_ms * NS_PER_MS) {
        return KEDGE_OK;
    }
    r->saved_ns = now;
    struct kedge_learn_saved s = {.spec = r->result.spec,
                                  .spent_ms = spent_ms(r),
                                  .rounds = r->result.rounds,
                                  .count = r->result.count,
                                  .state = kedge_view_of(state, (size_t)len)};
    r->err = kedgei_folder_save(&r->folder, &s, r->d);
    return r->err;
}

/* ---- before ---- */

/* The spec's digest decides. Rounds of one spec continued by another would be a result that no file
 * describes. */
static int load(struct run *r)
{
    struct kedge_learn_saved s;
    int err = kedgei_folder_load(&r->folder, &r->loaded, &s, r->d);
    if (err) {
        return err == KEDGE_E_NOT_FOUND ? KEDGE_OK : err;
    }
    if (!kedge_hash_eq(&s.spec, &r->result.spec)) {
        kedge_mem_free(s.rounds);
        (void)kedge_diag_set(r->d, KEDGE_E_STATE, "%s: holds the results of another spec", r->folder.dir);
        (void)kedge_diag_hint(r->d, "spec.json in it is the one; name another folder for this one");
        return KEDGE_E_STATE;
    }
    r->result.rounds = s.rounds;
    r->room = r->result.count = r->result.resumed = s.count;
    r->result.complete = r->result.was_complete = s.complete;
    r->spent_before_ms = s.spent_ms;
    r->state = s.state;
    return KEDGE_OK;
}

static int put_spec(struct run *r)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, SPEC_TEXT_MAX);
    kedge_learn_spec_put(r->task->spec, &text);
    kedge_buf_put_str(&text, "\n");
    return text.err ? text.err : kedgei_folder_put(&r->folder, "spec.json", kedge_buf_view(&text), r->d);
}

static int open_folder(struct run *r)
{
    const struct kedge_learn_task *t = r->task;
    if (!t->out) {
        return KEDGE_OK;
    }
    KEDGE_TRY(kedgei_folder_open(t->out, &r->folder, r->d));
    if (!t->resume && kedgei_folder_is_used(&r->folder)) {
        (void)kedge_diag_set(r->d, KEDGE_E_EXISTS, "%s: holds results already", t->out);
        (void)kedge_diag_hint(r->d, "--resume goes on with them; or name another folder");
        return KEDGE_E_EXISTS;
    }
    KEDGE_TRY(t->resume ? load(r) : KEDGE_OK);
    KEDGE_TRY(put_spec(r));
    return kedgei_folder_begin(&r->folder, r->result.rounds, r->result.count, r->d);
}

/* Rank 0's bytes to all: length, then pieces. With one process nothing happens. */
static int share(struct run *r, struct kedge_view *bytes, struct kedge_buf *copy)
{
    const struct kedge_learn_exchange *x = r->exchange;
    uint8_t head[8];
    uint64_t lens[KEDGE_LEARN_PROCESSES_MAX];
    if (!x || x->size < 2) {
        return KEDGE_OK;
    }
    uint8_t *rows = kedge_mem_new(x->size, PIECE);
    if (!rows) {
        return kedge_diag_set(r->d, KEDGE_E_NOMEM, "out of memory");
    }
    kedge_store_be64(head, bytes->len);
    int err = x->allgather(x->arg, head, sizeof head, rows, sizeof head, lens);
    uint64_t len = err ? 0 : kedge_load_be64(rows);
    for (uint64_t at = 0; at < len && !err; at += PIECE) {
        uint64_t piece = len - at < PIECE ? len - at : PIECE;
        err = x->allgather(x->arg, x->rank == 0 ? bytes->ptr + at : head, x->rank == 0 ? piece : 0, rows,
                           PIECE, lens);
        if (!err && x->rank != 0) {
            kedge_buf_put(copy, rows, (size_t)piece);
        }
    }
    kedge_mem_free(rows);
    if (!err) {
        err = copy->err;
    }
    if (!err && x->rank != 0) {
        *bytes = kedge_buf_view(copy);
    }
    return err ? kedge_diag_set(r->d, err, "another process of this simulation is gone") : KEDGE_OK;
}

/* ---- the run ---- */

static void on_say(void *arg, const char *line)
{
    const struct run *r = arg;
    if (r->is_first && r->task->say) {
        r->task->say(r->task->say_arg, line);
    }
}

/* An error of our own callbacks comes first: the engine only knows that it was told to stop. */
static int engine(struct run *r)
{
    const struct kedge_learn_task *t = r->task;
    struct kedge_learn_spec spec = *t->spec;
    if (t->images) {
        size_t len = strlen(t->images);
        if (len >= sizeof spec.images) {
            return kedge_diag_set(r->d, KEDGE_E_TOO_LONG, "\"images\": the path is too long");
        }
        memcpy(spec.images, t->images, len + 1);
    }
    struct kedge_learn_host host = {.scratch = t->out,
                                    .threads = t->threads,
                                    .exchange = r->exchange,
                                    .on_round = on_round,
                                    .look = on_look,
                                    .save = on_save,
                                    .say = on_say,
                                    .save_every = t->out ? t->save_every : 0,
                                    .arg = r,
                                    .resume = r->state.len ? r->state.ptr : NULL,
                                    .resume_len = r->state.len};
    int err = (t->run ? t->run : kedge_learn_run)(&spec, &host, r->d);
    return r->err ? r->err : err;
}

/* With processes of this machine: each is a copy of this one, with the state that was loaded. */
static int engine_of_many(struct run *r)
{
    struct kedge_learn_processes *p;
    KEDGE_TRY(kedge_learn_processes_start(r->task->processes, &p, r->d));
    r->exchange = kedge_learn_processes_exchange(p);
    r->is_first = r->exchange->rank == 0;
    if (!r->is_first) {
        kedgei_folder_close(&r->folder); /* its lock goes with the first process, not with the last */
    }
    int err = engine(r);
    kedge_learn_processes_end(p, err);
    r->exchange = NULL;
    return err;
}

/* All processes learn from rank 0 whether there is anything left to do, and from which state: its folder is
 * the only one that counts, and a rank that decided by itself would wait for the others in vain. */
static int run_all(struct run *r)
{
    struct kedge_buf copy KEDGE_CLEANUP(kedge_buf_deinit);
    uint8_t done = r->result.complete;
    struct kedge_view flag = kedge_view_of(&done, 1);
    kedge_buf_init(&copy, SIZE_MAX);
    if (r->task->processes > 1 && !r->exchange) {
        return r->result.complete ? KEDGE_OK : engine_of_many(r);
    }
    KEDGE_TRY(share(r, &flag, &copy));
    bool complete = flag.ptr[0];
    kedge_buf_clear(&copy);
    KEDGE_TRY(share(r, &r->state, &copy));
    return complete ? KEDGE_OK : engine(r);
}

/* What needs no reader of Kedge's own: one line that a script or a table can take. */
static int put_summary(struct run *r)
{
    char hex[KEDGE_HASH_HEX_LEN + 1];
    struct kedge_buf text;
    kedge_buf_init(&text, 1 << 16);
    kedge_hash_hex(&r->result.spec, hex);
    kedge_buf_printf(&text,
                     "{\"schema_version\":1,\"name\":\"%s\",\"strategy\":\"%s\",\"spec_sha256\":\"%s\",",
                     r->task->spec->job.name.s, r->task->spec->job.strategy->name, hex);
    kedge_learn_put_summary(&r->result.summary, &text);
    kedge_buf_printf(&text, ",\"seconds\":");
    kedge_learn_put_real(&text, (double)r->result.spent_ms / 1000);
    kedge_buf_put_str(&text, "}\n");
    int err =
        text.err ? text.err : kedgei_folder_put(&r->folder, "summary.json", kedge_buf_view(&text), r->d);
    kedge_buf_deinit(&text);
    return err;
}

/* Of one process alone: the others have the same rounds and no folder. A run that was stopped has no summary
 * file, so that nobody takes a part for the result. */
static int finish(struct run *r)
{
    struct kedge_learn_result *res = &r->result;
    if (!r->is_first) {
        return KEDGE_OK;
    }
    if (!res->was_complete) {
        res->complete = !r->stopped;
        res->spent_ms = spent_ms(r);
    } else {
        res->spent_ms = r->spent_before_ms;
    }
    kedge_learn_summarise(res->rounds, res->count, &res->summary);
    if (!r->task->out || !res->complete) {
        return KEDGE_OK;
    }
    struct kedge_learn_saved s = {.spec = res->spec,
                                  .complete = true,
                                  .spent_ms = res->spent_ms,
                                  .rounds = res->rounds,
                                  .count = res->count};
    int err = put_summary(r);
    return err || res->was_complete ? err : kedgei_folder_save(&r->folder, &s, r->d);
}

static int run_whole(struct run *r)
{
    const struct kedge_learn_task *task = r->task;
    KEDGE_TRY(kedge_learn_spec_check(task->spec, r->d));
    KEDGE_TRY(kedge_learn_spec_digest(task->spec, &r->result.spec));
    KEDGE_TRY(r->is_first ? open_folder(r) : KEDGE_OK);
    for (uint32_t i = 0; task->on_round && i < r->result.count; i++) {
        (void)task->on_round(task->arg, &r->result.rounds[i], true);
    }
    KEDGE_TRY(run_all(r));
    return finish(r);
}

/* On an error nothing is given back, also rounds that were computed: with a folder they are in it, and
 * --resume goes on from them. */
int kedge_learn_report_run(const struct kedge_learn_task *task, struct kedge_learn_result *ret,
                           struct kedge_diag *reterr)
{
    struct run r = {.task = task,
                    .exchange = task->exchange,
                    .folder = {NULL, -1, -1, -1, -1},
                    .is_first = !task->exchange || task->exchange->rank == 0,
                    .begin_ns = kedge_os_now_ns(),
                    .d = reterr};
    r.saved_ns = r.begin_ns;
    kedge_buf_init(&r.loaded, SIZE_MAX);
    int err = run_whole(&r);
    kedgei_folder_close(&r.folder);
    kedge_buf_deinit(&r.loaded);
    if (err) {
        kedge_mem_free(r.result.rounds);
        return err;
    }
    *ret = r.result;
    return KEDGE_OK;
}
