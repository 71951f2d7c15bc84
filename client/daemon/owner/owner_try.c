/* kedge-client doctor --try-trainers: does each command that the owner has bound start in its sandbox, and
 * does it speak the trainer's contract? It is told hello (docs/modules/train.md), which touches no data: a
 * trainer that does not know the word answers by an error, and that is an answer. */
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/daemon/owner/owner.h"
#include "client/daemon/trainer/trainer.h"
#include "common/base/mem.h"
#include "common/base/os/log.h"
#include "common/json/json.h"

enum { SHOWN = 100 };

/* Printable ASCII of a text, at most SHOWN of it. */
static void show(const char *text, size_t len, char out[SHOWN + 1])
{
    size_t n = len < SHOWN ? len : SHOWN;
    for (size_t i = 0; i < n; i++) {
        out[i] = text[i] >= 0x20 && text[i] < 0x7f ? text[i] : '?';
    }
    out[n] = '\0';
}

static void show_member(const json_t *o, const char *key, char out[SHOWN + 1])
{
    const char *text = json_string_value(json_object_get(o, key));
    show(text ? text : "", text ? strlen(text) : 0, out);
}

static void say_strange(struct kedge_doctor *k, const char *what, const struct kedge_buf *line,
                        const char *expected)
{
    char begin[SHOWN + 1];
    show((const char *)line->ptr, line->len, begin);
    kedge_doctor_say(k, KEDGE_DOCTOR_FAIL, what,
                     "what it prints goes to standard error, answers alone to standard output: see the "
                     "trainer's contract, docs/modules/train.md",
                     "said %s: expected %s", begin, expected);
}

/* An answer of any kind, as long as it is one. */
static void judge(struct kedge_doctor *k, const char *what, const struct kedge_buf *line, bool more,
                  const char *lacks)
{
    struct kedge_diag d = {.text = ""};
    char engine[SHOWN + 1], message[SHOWN + 1], id[SHOWN + 1], status[SHOWN + 1], code[SHOWN + 1];
    json_t *o = NULL;
    int err = kedgei_json_load(kedge_buf_view(line), KEDGE_METRICS_LINE_MAX, "answer", &o, &d);
    show_member(o, "id", id);
    show_member(o, "status", status);
    show_member(o, "engine", engine);
    show_member(o, "message", message);
    show_member(o, "code", code);
    bool ok = strcmp(status, "ok") == 0, refused = strcmp(status, "error") == 0;
    if (err || !json_is_object(o)) {
        say_strange(k, what, line, "one line of JSON");
    } else if (strcmp(id, "hello") != 0) {
        say_strange(k, what, line, "\"id\":\"hello\", that of the request");
    } else if (!ok && !refused) {
        say_strange(k, what, line, "\"status\":\"ok\" or \"error\"");
    } else if (more) {
        say_strange(k, what, line, "one line for one request, and nothing behind it");
    } else if (refused && code[0] && strcmp(code, "request") != 0) {
        kedge_doctor_say(k, KEDGE_DOCTOR_WARN, what, "look for it in the trainer", "it answers: %s: %s", code,
                         message);
    } else {
        kedge_doctor_say(k, lacks[0] ? KEDGE_DOCTOR_WARN : KEDGE_DOCTOR_OK, what,
                         lacks[0] ? "let the kernel permit user namespaces, or trust the trainer as yourself"
                                  : "",
                         "starts and answers%s%s%s%s", ok && engine[0] ? ": " : "", ok ? engine : "",
                         lacks[0] ? "; " : "", lacks);
    }
    json_decref(o);
}

/* Why a command could not even be run. */
static const char *mend_of(const struct kedge_client_work *w, const struct kedge_trainer_terms *t, int err,
                           char out[KEDGE_PATH_MAX + 128])
{
    uint64_t memory = t && t->memory_max ? t->memory_max : w->policy->memory_max;
    const char *program = t ? t->command[0] : w->policy->trainer[0];
    if (err == KEDGE_E_TIMEOUT) {
        return "start it by hand and look at what takes so long, or try with more --seconds";
    }
    if ((err == KEDGE_E_TRAINER || err == KEDGE_E_NOMEM) && memory > 0) {
        snprintf(out, KEDGE_PATH_MAX + 128,
                 "start it by hand; if that goes well, %llu bytes of address space (memory_max) may be too "
                 "few for it",
                 (unsigned long long)memory);
        return out;
    }
    if (err == KEDGE_E_TRAINER) {
        return "start it by hand with the same words and look at what it says";
    }
    if (strchr(program, '/') && access(program, F_OK) == 0 && access(program, X_OK) != 0) {
        snprintf(out, KEDGE_PATH_MAX + 128, "chmod +x %.*s, or let an interpreter begin the command",
                 KEDGE_PATH_MAX, program);
        return out;
    }
    if (strchr(program, '/') && access(program, F_OK) == 0) {
        return "the interpreter that its first line names is not there; or it is a program for another "
               "processor";
    }
    return "correct its \"command\" in policy.json, best with absolute paths";
}

static void try_one(struct kedge_doctor *k, struct kedge_client_work *w, const struct kedge_trainer_terms *t,
                    uint32_t seconds)
{
    struct kedge_diag d = {.text = "", .hint = ""};
    struct kedge_buf line;
    char what[96], lacks[KEDGE_TRAINER_LACKS_LEN], mend[KEDGE_PATH_MAX + 128];
    bool more = false;
    uint64_t own = t ? t->seconds_max : 0;
    own = own ? own : w->policy->train_seconds_max;
    snprintf(what, sizeof what, "trainer %s", t ? t->name.s : "(built-in, or \"trainer\")");
    kedge_buf_init(&line, KEDGE_METRICS_LINE_MAX);
    int err = kedge_client_trainer_hello(w, t, own > 0 && own < seconds ? (uint32_t)own : seconds, &line,
                                         &more, lacks, &d);
    if (err) {
        kedge_doctor_fail(k, what, mend_of(w, t, err, mend), err, &d);
    } else {
        judge(k, what, &line, more, lacks);
    }
    kedge_buf_deinit(&line);
}

/* What a trainer leaves in its folder belongs to who ran it: then the daemon could not use it. */
static bool is_mine(struct kedge_doctor *k, const char *dir)
{
    struct stat st;
    if (stat(dir, &st) == 0 && st.st_uid == geteuid()) {
        return true;
    }
    kedge_doctor_say(k, KEDGE_DOCTOR_WARN, "trainers",
                     "run it as the user whose site it is: runuser -u USER -- kedge-client doctor …",
                     "not tried: %s belongs to another user", dir);
    return false;
}

void kedgei_owner_try_trainers(struct kedge_doctor *k, const char *dir, uint32_t seconds)
{
    struct kedge_diag d = {.text = "", .hint = ""};
    json_t *shown = NULL;
    struct kedge_site_host *h = kedge_mem_new(1, sizeof *h);
    int err = h ? kedge_path_real(dir, h->dir, &d) : kedge_diag_set(&d, KEDGE_E_NOMEM, "out of memory");
    if (err) {
        kedge_doctor_fail(k, "trainers", "nothing was tried", err, &d);
    }
    if (err || !is_mine(k, h->dir)) {
        kedge_mem_free(h);
        return;
    }
    signal(SIGPIPE, SIG_IGN);
    kedge_log_init("kedge-client", KEDGE_LOG_ERROR); /* its lines are the daemon's */
    struct kedge_client_work *w = &h->works[0];      /* as the first task's */
    w->h = h;
    kedge_buf_init(&w->trainer.line, KEDGE_METRICS_LINE_MAX);
    w->trainer.process = (struct kedge_process){.in_fd = -1, .out_fd = -1, .err_fd = -1};
    err = kedge_client_read_policy(h, &w->policy, &shown, &d);
    if (err) {
        kedge_doctor_fail(k, "policy", "correct policy.json; nothing was tried", err, &d);
    } else {
        try_one(k, w, NULL, seconds);
        for (uint32_t i = 0; i < w->policy->trainers.count; i++) {
            try_one(k, w, &w->policy->trainers.list[i], seconds);
        }
        kedge_client_policy_let_go(w->policy);
        json_decref(shown);
    }
    kedge_buf_deinit(&w->trainer.line);
    kedge_mem_free(h);
}
