/* The trainer process. A job's external model is trained by the command that the owner has bound to its
 * trainer's name, in a sandbox; all other models by the built-in trainer, or what the owner has put in its
 * place.
 *
 * It is a process and not a library because it may crash, hang, leak or be written in any language, and none
 * of this may take the daemon with it. The talk is one line of JSON each way (docs/modules/train.md). A
 * process is kept between tasks, since starting one may take seconds; it is stopped as soon as it is out of
 * step (a time-out, a line too many, an answer to another request), for then nothing says which request its
 * next line answers. */
#include "client/daemon/trainer/trainer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/daemon/energy/energy.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/log.h"
#include "common/base/try.h"

enum { POLL_MS = 50, STOP_MS = 500, SHOWN = 80, OWN_VARIABLES = 8, VARIABLE_MAX = KEDGE_PATH_MAX + 32 };

json_t *kedge_client_model_json(const struct kedge_job_spec *spec)
{
    json_error_t at;
    if (spec->is_external) {
        return json_pack("{s:s,s:o}", "external", spec->external.trainer.s, "settings",
                         json_loads(spec->external.settings, 0, &at));
    }
    struct kedge_buf model;
    kedge_buf_init(&model, KEDGE_METRICS_LINE_MAX);
    kedge_model_put_json(&spec->model, &model);
    json_t *o = json_loadb((const char *)model.ptr, model.len, 0, &at);
    kedge_buf_deinit(&model);
    return o;
}

void kedge_client_trainer_stop(struct kedge_client_work *w)
{
    kedge_process_stop(&w->trainer.process, SIGTERM, STOP_MS);
    kedge_buf_clear(&w->trainer.line);
    atomic_store(&w->trainer_pid, 0);
}

/* ---- starting ---- */

struct environment {
    char own[OWN_VARIABLES][VARIABLE_MAX];
    const char *list[OWN_VARIABLES + KEDGE_TRAINER_ENV_MAX + 1];
};

/* Nothing of this process's: its variables may hold secrets. What the owner gives comes first, so that it
 * counts. */
static void put_environment(const struct kedge_client_work *w, const struct kedge_trainer_terms *t,
                            const char *folder, struct environment *ret)
{
    char own[KEDGE_PATH_MAX] = "";
    size_t n = 0, k = 0;
    for (; t->environment[n]; n++) {
        ret->list[n] = t->environment[n];
    }
    if (kedge_process_own_dir(own, sizeof own) != KEDGE_OK) {
        own[0] = '\0';
    }
    snprintf(ret->own[k++], VARIABLE_MAX, "PATH=/usr/local/bin:/usr/bin:/bin");
    snprintf(ret->own[k++], VARIABLE_MAX, "HOME=%s", folder);
    snprintf(ret->own[k++], VARIABLE_MAX, "TMPDIR=%s", folder);
    snprintf(ret->own[k++], VARIABLE_MAX, "LANG=C.UTF-8");
    snprintf(ret->own[k++], VARIABLE_MAX, "OMP_NUM_THREADS=%u", kedge_policy_threads(w->policy));
    snprintf(ret->own[k++], VARIABLE_MAX, "OPENBLAS_NUM_THREADS=%u", kedge_policy_threads(w->policy));
    snprintf(ret->own[k++], VARIABLE_MAX, "KEDGE_PROGRAMS=%s", own);
    for (size_t i = 0; i < k; i++) {
        ret->list[n++] = ret->own[i];
    }
    ret->list[n] = NULL;
}

void kedge_client_trainer_lacks(const struct kedge_process *p, char ret[KEDGE_TRAINER_LACKS_LEN])
{
    if (p->confined != KEDGE_CONFINED_NAMESPACES) {
        snprintf(ret, KEDGE_TRAINER_LACKS_LEN,
                 "limits hold, but this kernel permits no user namespaces: it sees the network, other "
                 "processes and the site's keys, and can write to the site's folder%s",
                 p->lacks.unbounded ? ", and processes_max does not hold" : "");
        return;
    }
    snprintf(ret, KEDGE_TRAINER_LACKS_LEN, "%s%s%s",
             p->lacks.sees_others
                 ? "this kernel permits no /proc of its own: it sees the command lines of other processes"
                 : "",
             p->lacks.sees_others && p->lacks.unbounded ? "; " : "",
             p->lacks.unbounded ? "processes_max does not hold on this kernel" : "");
}

/* What a trainer does not see of its site's folder: keys, what the owner has said to others, what belongs to
 * other jobs. The rest it can read, its own program and data perhaps. A new file of the site's folder that
 * others must not read belongs into this list. */
static const char *const hidden[] = {
    "keys", "policy.json", "site.json", "trust.json", "status.json", "seen-main", "refused-main", "memory",
    "kept", "personal",    "energy",    "bases",      "work",        "work-1",    "work-2",       "work-3"};

enum { HIDDEN = sizeof hidden / sizeof hidden[0] };
_Static_assert(KEDGE_SITE_WORKS_MAX == 4, "each of their folders is hidden above");

/* The site's folder and the trainer's in it, without links; and what of the first is hidden: the proxy's
 * password, too, where it is a file of this folder. */
struct place {
    char site[KEDGE_PATH_MAX], own[KEDGE_PATH_MAX];
    const char *hidden[HIDDEN + 2];
};

static int find_place(const struct kedge_client_work *w, const char *folder, struct place *ret,
                      struct kedge_diag *d)
{
    const char *login = w->policy->proxy_login_file;
    KEDGE_TRY(kedge_path_real(w->h->dir, ret->site, d));
    KEDGE_TRY(kedge_path_real(folder, ret->own, d));
    memcpy(ret->hidden, hidden, sizeof hidden);
    ret->hidden[HIDDEN] = login[0] && login[0] != '/' ? login : NULL;
    ret->hidden[HIDDEN + 1] = NULL;
    return KEDGE_OK;
}

static int start_foreign(struct kedge_client_work *w, const struct kedge_trainer_terms *t,
                         struct kedge_diag *d)
{
    char folder[KEDGE_PATH_MAX];
    struct place place;
    KEDGE_TRY(kedge_client_path(w->h, folder, "trainers/%s", t->name.s));
    KEDGE_TRY(kedge_dir_make(folder, 0700, d));
    KEDGE_TRY(find_place(w, folder, &place, d));
    struct environment *environment = kedge_mem_new(1, sizeof *environment);
    KEDGE_TRY_MEM(environment);
    put_environment(w, t, folder, environment);
    struct kedge_sandbox sandbox = {.cpu_seconds_max = t->cpu_seconds_max,
                                    .file_bytes_max = t->file_bytes_max,
                                    .files_max = t->files_max,
                                    .processes_max = t->processes_max,
                                    .network = t->network,
                                    .guarded = place.site,
                                    .own = place.own,
                                    .hidden = place.hidden};
    struct kedge_process_options options = {.argv = (const char *const *)t->command,
                                            .env = environment->list,
                                            .directory = folder,
                                            .pipe_stdin = true,
                                            .pipe_stdout = true,
                                            .pipe_stderr = true,
                                            .die_with_parent = true,
                                            .memory_max = kedge_policy_memory(w->policy, t->memory_max),
                                            .sandbox = &sandbox};
    int err = kedge_process_start(&options, &w->trainer.process, d);
    kedge_mem_free(environment);
    if (err) {
        return kedge_diag_wrap(d, err == KEDGE_E_NOT_FOUND ? KEDGE_E_DENIED : err,
                               "trainer \"%s\" (policy.json: trainers)", t->name.s);
    }
    bool confined = w->trainer.process.confined == KEDGE_CONFINED_NAMESPACES;
    if (!confined && t->sandbox_required) {
        kedge_client_trainer_stop(w);
        err = kedge_diag_set(d, KEDGE_E_DENIED,
                             "trainer \"%s\": this kernel permits no user namespaces, and policy.json says "
                             "sandbox_required",
                             t->name.s);
        (void)kedge_diag_hint(d, "let the kernel permit user namespaces, or take sandbox_required away");
        return err;
    }
    char lacks[KEDGE_TRAINER_LACKS_LEN];
    kedge_client_trainer_lacks(&w->trainer.process, lacks);
    kedge_log(lacks[0] ? KEDGE_LOG_WARN : KEDGE_LOG_INFO, "trainer started", "name=%s%s%s", t->name.s,
              lacks[0] ? ": " : "", lacks);
    return KEDGE_OK;
}

static int start_built_in(struct kedge_client_work *w, struct kedge_diag *d)
{
    struct kedge_process_options options = {.argv = (const char *const *)w->policy->trainer,
                                            .directory = w->h->dir,
                                            .pipe_stdin = true,
                                            .pipe_stdout = true,
                                            .die_with_parent = true,
                                            .memory_max = kedge_policy_memory(w->policy, 0)};
    return kedge_process_start(&options, &w->trainer.process, d);
}

/* A process that runs already is used again only for the same trainer: another job's may have other terms,
 * limits and environment. */
static int trainer_start(struct kedge_client_work *w, const struct kedge_trainer_terms *t,
                         struct kedge_diag *d)
{
    int status;
    static const struct kedge_id built_in = {.s = ""};
    const struct kedge_id *name = t ? &t->name : &built_in;
    bool runs = w->trainer.process.pid != 0 && !kedge_process_poll(&w->trainer.process, &status);
    if (runs && kedge_id_eq(&w->trainer.name, name)) {
        return KEDGE_OK;
    }
    kedge_client_trainer_stop(w);
    w->trainer.name = *name;
    w->trainer.said_len = 0;
    int err = t ? start_foreign(w, t, d) : start_built_in(w, d);
    atomic_store(&w->trainer_pid, (int)w->trainer.process.pid);
    return err;
}

/* ---- asking ---- */

struct asking {
    uint64_t serial, deadline_ns, seconds;
};

/* Its output has ended, so it is ending or has ended; the exit status comes a moment later. It is waited for
 * a little, since "signal 9" tells an owner much more than "no answer". */
static int has_ended(struct kedge_client_work *w, struct kedge_diag *d)
{
    int status = -1;
    char how[48] = "";
    const char *words = kedgei_trainer_last_words(w);
    for (int i = 0; i < 40 && w->trainer.process.pid != 0; i++) {
        if (kedge_process_poll(&w->trainer.process, &status)) {
            snprintf(how, sizeof how, status > 128 ? " (signal %d)" : " (exit status %d)",
                     status > 128 ? status - 128 : status);
            break;
        }
        kedge_os_sleep_ms(5);
    }
    return kedge_diag_set(
        d, KEDGE_E_TRAINER,
        "trainer \"%s\": it ended without an answer%s; it is started again for the next task; it last "
        "said: %.160s",
        kedgei_trainer_name(w), how, words);
}

/* Asked at least every POLL_MS while a trainer works. It is also where energy is read, so that meters that
 * wrap are seen often enough without a thread of their own. */
static int is_over(struct kedge_client_work *w, const struct asking *a, struct kedge_diag *d)
{
    kedge_client_energy_tick(w);
    if (kedge_client_aborted(w, a->serial)) {
        return KEDGE_E_CANCELLED;
    }
    if (kedge_os_now_ns() > a->deadline_ns) {
        return kedge_diag_set(
            d, KEDGE_E_TIMEOUT,
            "trainer \"%s\": no answer within %llu s (policy.json: %s); it is stopped and started again "
            "for the next task; it last said: %.160s",
            kedgei_trainer_name(w), (unsigned long long)a->seconds,
            w->trainer.name.s[0] ? "trainers: seconds_max" : "train_seconds_max",
            kedgei_trainer_last_words(w));
    }
    return KEDGE_OK;
}

/* The trainer may not read: then this waits no longer than for its answer. */
static int send_line(struct kedge_client_work *w, struct kedge_view line, const struct asking *a,
                     struct kedge_diag *d)
{
    int fd = w->trainer.process.in_fd, err = KEDGE_OK;
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    while (line.len > 0 && !err) {
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        (void)poll(&p, 1, POLL_MS);
        (void)kedgei_trainer_hear(w);
        ssize_t n = write(fd, line.ptr, line.len);
        if (n < 0 && errno != EINTR && errno != EAGAIN) {
            return has_ended(w, d);
        }
        line.ptr += n > 0 ? n : 0;
        line.len -= n > 0 ? (size_t)n : 0;
        err = is_over(w, a, d);
    }
    return err;
}

/* Waits for one line; *ret_len is its length without the newline, at the front of trainer.line. The line is
 * bounded by the buffer's limit, the time by is_over; standard error is read meanwhile, or a trainer that
 * prints much would block on a full pipe and never answer. `looked` keeps the search for the newline linear
 * in the length of the answer. */
static int receive_line(struct kedge_client_work *w, const struct asking *a, size_t *ret_len,
                        struct kedge_diag *d)
{
    struct kedge_buf *line = &w->trainer.line;
    size_t looked = 0;
    for (;;) {
        const uint8_t *end = line->len > looked ? memchr(line->ptr + looked, '\n', line->len - looked) : NULL;
        if (end) {
            *ret_len = (size_t)(end - line->ptr);
            return KEDGE_OK;
        }
        looked = line->len;
        KEDGE_TRY(is_over(w, a, d));
        struct pollfd p[2] = {
            {.fd = w->trainer.process.out_fd, .events = POLLIN},
            {.fd = w->trainer.process.confined ? w->trainer.process.err_fd : -1, .events = POLLIN}};
        if (poll(p, 2, POLL_MS) <= 0) {
            continue;
        }
        (void)kedgei_trainer_hear(w);
        if (p[0].revents) {
            uint8_t chunk[4096];
            ssize_t got = read(p[0].fd, chunk, sizeof chunk);
            if (got <= 0) {
                return has_ended(w, d);
            }
            kedge_buf_put(line, chunk, (size_t)got);
            if (line->err) {
                return kedge_diag_set(
                    d, KEDGE_E_TRAINER,
                    "trainer \"%s\": its answer is longer than %d bytes, expected one line of JSON",
                    kedgei_trainer_name(w), KEDGE_METRICS_LINE_MAX);
            }
        }
    }
}

/* How the line begins, for people. */
static void show(struct kedge_view line, char out[SHOWN + 1])
{
    size_t n = line.len < SHOWN ? line.len : SHOWN;
    for (size_t i = 0; i < n; i++) {
        out[i] = line.ptr[i] >= 0x20 && line.ptr[i] < 0x7f ? (char)line.ptr[i] : '?';
    }
    out[n] = '\0';
}

/* Of a trainer of the owner's, an answer must be to this request, and nothing may stand behind it. */
static int read_answer(struct kedge_client_work *w, size_t len, const char *id, bool train, bool test,
                       struct kedge_metrics *m, struct kedge_diag *d)
{
    struct kedge_view line = kedge_view_of(w->trainer.line.ptr, len);
    char begin[SHOWN + 1];
    int err = kedge_metrics_parse(line, train, test, m, d);
    w->trouble = err ? kedge_metrics_trouble(line) : w->trouble;
    if (!w->trainer.name.s[0]) {
        return err;
    }
    show(line, begin);
    if (!err && strcmp(m->id, id) != 0) {
        err = kedge_diag_set(d, KEDGE_E_TRAINER, "its answer is to another request: expected \"id\":\"%s\"",
                             id);
    }
    if (!err && w->trainer.line.len > len + 1) {
        err = kedge_diag_set(d, KEDGE_E_TRAINER, "more than one line: expected one answer to one request");
    }
    return err ? kedge_diag_wrap(d, err, "trainer \"%s\" said %s", kedgei_trainer_name(w), begin) : KEDGE_OK;
}

static const struct kedge_trainer_terms *terms_of(struct kedge_client_work *w)
{
    return w->spec->is_external ? kedge_trainers_find(&w->policy->trainers, &w->spec->external.trainer)
                                : NULL;
}

/* Where the owner lets the built-in trainer train; one that knows nothing of devices is not asked for any. */
static void put_device(const struct kedge_client_work *w, json_t *request)
{
    enum kedge_precision precision = kedge_policy_precision(w->policy, w->spec->precision);
    if (w->policy->device != KEDGE_POLICY_CPU) {
        json_object_set_new(request, "device", json_string(kedge_policy_device_name(w->policy->device)));
        if (precision != KEDGE_PRECISION_F32) {
            json_object_set_new(request, "precision", json_string(kedge_precision_name(precision)));
        }
    }
}

/* One line out, one line back. The process is started here if it is not there yet, or no longer. */
static int exchange(struct kedge_client_work *w, const struct kedge_trainer_terms *terms, const char *text,
                    struct asking *a, size_t *ret_len, struct kedge_diag *d)
{
    KEDGE_TRY(trainer_start(w, terms, d));
    KEDGE_TRY(send_line(w, kedge_view_str(text), a, d));
    KEDGE_TRY(send_line(w, kedge_view_str("\n"), a, d));
    return receive_line(w, a, ret_len, d);
}

/* The id is the daemon's own counter, not the job's name: an answer that was late for one request can then
 * not be taken for the next one's. Of a failed exchange only one kind leaves the process running: the
 * built-in trainer has answered that it cannot, which is an answer in order. */
int kedge_client_ask(struct kedge_client_work *w, uint64_t serial, json_t *request, bool train, bool test,
                     struct kedge_metrics *m, struct kedge_diag *d)
{
    const struct kedge_trainer_terms *terms = terms_of(w);
    if (request && !terms) {
        put_device(w, request);
    }
    struct asking a = {.serial = serial};
    char id[32];
    size_t len = 0;
    a.seconds = terms && terms->seconds_max ? terms->seconds_max : w->policy->train_seconds_max;
    a.deadline_ns = kedge_os_now_ns() + a.seconds * 1000000000u;
    snprintf(id, sizeof id, "%llu", (unsigned long long)++w->trainer.asked);
    int err = request && json_object_set_new(request, "id", json_string(id)) == 0 ? KEDGE_OK : KEDGE_E_NOMEM;
    char *text = err ? NULL : json_dumps(request, JSON_COMPACT);
    json_decref(request);
    w->trainer.said_lines = 0;
    err = text ? exchange(w, terms, text, &a, &len, d) : KEDGE_E_NOMEM;
    free(text);
    bool answered = !err;
    if (answered) {
        err = read_answer(w, len, id, train, test, m, d);
    } else {
        w->trouble = KEDGE_TROUBLE_TRAINER_FAILED;
    }
    if (err && (terms || !answered)) {
        kedge_client_trainer_stop(w); /* a trainer out of step is started afresh */
    }
    kedge_buf_clear(&w->trainer.line);
    w->trainer.used_ns = kedge_os_now_ns();
    return err;
}

/* ---- trying ---- */

int kedge_client_trainer_hello(struct kedge_client_work *w, const struct kedge_trainer_terms *terms,
                               uint32_t seconds, struct kedge_buf *ret_line, bool *ret_more,
                               char lacks[KEDGE_TRAINER_LACKS_LEN], struct kedge_diag *d)
{
    static const char hello[] = "{\"id\":\"hello\",\"op\":\"hello\"}\n";
    struct asking a = {.serial = 1, .seconds = seconds};
    size_t len = 0;
    a.deadline_ns = kedge_os_now_ns() + a.seconds * 1000000000u;
    lacks[0] = '\0';
    int err = trainer_start(w, terms, d);
    if (!err && terms) {
        kedge_client_trainer_lacks(&w->trainer.process, lacks);
    }
    if (!err) {
        err = send_line(w, kedge_view_str(hello), &a, d);
    }
    if (!err) {
        err = receive_line(w, &a, &len, d);
    }
    if (err == KEDGE_E_TIMEOUT) {
        (void)kedge_diag_set(d, err, "no answer within %u s; it last said: %.160s", seconds,
                             kedgei_trainer_last_words(w));
    }
    if (!err) {
        *ret_more = w->trainer.line.len > len + 1;
        kedge_buf_put(ret_line, w->trainer.line.ptr, len);
        err = ret_line->err;
    }
    kedge_client_trainer_stop(w);
    return err;
}
