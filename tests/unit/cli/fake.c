#include "tests/unit/cli/fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/log/checkpoint.h"
#include "chain/log/proof.h"
#include "common/base/mem.h"
#include "common/base/os/file.h"
#include "common/net/server.h"
#include "common/wire/messages.h"
#include "tests/unit/cli/support.h"

enum { PAGE = 512 };

static struct kedge_net_server *server;

static json_t *round_row(uint32_t round)
{
    return json_pack("{s:i,s:i,s:i,s:i,s:i,s:s,s:s,s:[]}", "round", (int)round, "selected", 4, "accepted", 4,
                     "refused", 0, "statements", 9, "seconds", "0.5", "accuracy", "0.25", "groups");
}

static json_t *job_of(struct fake *f, const json_t *question)
{
    uint32_t from = (uint32_t)json_integer_value(json_object_get(question, "from_round")), r;
    bool ended = f->asked_until >= 0 && atomic_load(&f->asked) >= f->asked_until;
    json_t *history = json_array();
    atomic_store(&f->last_from, from);
    for (r = from > 1 ? from : 1; r <= f->rounds && json_array_size(history) < PAGE; r++) {
        json_array_append_new(history, round_row(r));
    }
    json_t *o = json_pack("{s:s,s:s,s:i,s:i,s:s,s:b,s:i,s:i,s:i,s:i,s:o}", "job", "long", "state",
                          ended ? f->end_state : "training", "round", (int)f->rounds, "rounds",
                          (int)f->rounds, "spec", "00", "round_open", 1, "sites_online", 4, "selected", 4,
                          "accepted", 2, "refused", 0, "history", history);
    if (r <= f->rounds) {
        json_object_set_new(o, "next_round", json_integer(f->stuck ? from : r));
    }
    return o;
}

/* Jobs in the order of their names; the later the name the earlier they were made. */
static json_t *jobs_of(const struct fake *f, const json_t *question)
{
    const char *from = json_string_value(json_object_get(question, "from"));
    json_t *jobs = json_array(), *o = json_pack("{s:o}", "jobs", jobs);
    char name[32];
    for (uint32_t i = 0; i < f->jobs; i++) {
        snprintf(name, sizeof name, "job-%04u", i);
        if (from && strcmp(name, from) < 0) {
            continue;
        }
        if (json_array_size(jobs) == PAGE) {
            json_object_set_new(o, "next", json_string(f->stuck && from ? from : name));
            break;
        }
        json_array_append_new(jobs, json_pack("{s:s,s:s,s:i,s:i,s:i}", "job", name, "state", "completed",
                                              "round", 1, "rounds", 1, "created_ms", (int)(10000 - i)));
    }
    return o;
}

/* Of a log with this one entry. */
static json_t *receipt_of(const struct fake *f, const char *entry, const char *shown)
{
    static struct kedge_proof proof;
    struct kedge_key_pair stranger;
    struct kedge_hash leaf;
    struct kedge_buf note, text;
    const char *origin = f->receipt == FAKE_SHOWS_OTHER_LOG ? "fake/elsewhere" : f->origin;
    kedge_key_from_seed(&(struct kedge_seed){{9}}, &stranger);
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    kedge_buf_init(&text, KEDGE_PROOF_TEXT_MAX);
    kedge_merkle_leaf(kedge_view_str(entry), &leaf);
    int e = kedge_checkpoint_sign(kedge_view_str(origin), 1, &leaf,
                                  f->receipt == FAKE_SHOWS_OTHER_KEY ? &stranger : &f->log_key, &note);
    proof = (struct kedge_proof){.note = kedge_buf_view(&note)};
    kedge_proof_encode(&proof, &text);
    json_t *o =
        e ? NULL : json_pack("{s:s%,s:s}", "receipt", (const char *)text.ptr, text.len, "entry", shown);
    kedge_buf_deinit(&note);
    kedge_buf_deinit(&text);
    return o;
}

/* NULL: as everything else is answered. */
static json_t *show_receipt(struct fake *f)
{
    const char *mine = f->envelope ? f->envelope : "{}";
    switch ((int)f->receipt) {
    case FAKE_SHOWS_RECEIPT:
    case FAKE_SHOWS_OTHER_KEY:
    case FAKE_SHOWS_OTHER_LOG:
        return receipt_of(f, mine, mine);
    case FAKE_SHOWS_OTHER_ENTRY:
        return receipt_of(f, f->other_entry, f->other_entry);
    case FAKE_SHOWS_WRONG_ENTRY:
        return receipt_of(f, f->other_entry, mine);
    default:
        return NULL;
    }
}

static json_t *answer_of(struct fake *f, const json_t *question)
{
    json_error_t e;
    const char *verb = json_string_value(json_object_get(question, "verb"));
    const char *envelope = json_string_value(json_object_get(question, "envelope"));
    if (envelope) {
        kedge_mem_free(f->envelope);
        f->envelope = kedge_mem_strdup(envelope);
    }
    json_t *shown = verb && strcmp(verb, "ledger.receipt") == 0 ? show_receipt(f) : NULL;
    if (shown) {
        return shown;
    }
    if (f->answer) {
        return json_loads(f->answer, 0, &e);
    }
    return verb && strcmp(verb, "job.list") == 0 ? jobs_of(f, question) : job_of(f, question);
}

static void answer(void *arg, struct kedge_net_request *req)
{
    struct fake *f = arg;
    struct kedge_msg question, reply = {.type = KEDGE_MSG_ADMIN_OK};
    struct kedge_buf frame;
    json_error_t e;
    char *text = NULL;
    kedge_buf_init(&frame, KEDGE_FRAME_MAX);
    int e_code = kedge_msg_decode(kedge_net_request_view(req), &question);
    atomic_fetch_add(&f->asked, 1);
    if (!e_code && question.type == KEDGE_MSG_BLOB_GET && f->blob) {
        reply = (struct kedge_msg){.type = KEDGE_MSG_CHUNK};
        reply.u.chunk.data = kedge_view_str(f->blob);
        reply.u.chunk.total = strlen(f->blob);
    } else if (e_code || question.type != KEDGE_MSG_ADMIN) {
        reply = kedge_msg_of_error(KEDGE_E_FORMAT, 0, "no question of an operator");
    } else if (f->refuse) {
        reply = kedge_msg_of_error(f->refuse, 0, "the coordinator says so");
    } else {
        struct kedge_view json = question.u.admin.json;
        json_t *args = json_loadb((const char *)json.ptr, json.len, 0, &e);
        const char *verb = json_string_value(json_object_get(args, "verb"));
        bool hides = f->receipt == FAKE_SHOWS_ERROR && verb && strcmp(verb, "ledger.receipt") == 0;
        json_t *o = answer_of(f, args);
        text = json_dumps(o, JSON_COMPACT);
        json_decref(args);
        json_decref(o);
        reply.u.admin_ok.json = kedge_view_str(text ? text : "{}");
        if (hides) {
            reply = kedge_msg_of_error(KEDGE_E_NOT_FOUND, 0, "no such entry");
        }
    }
    e_code = kedge_msg_encode(&reply, &frame);
    (void)kedge_net_reply(req, e_code ? kedge_view_str("") : kedge_buf_view(&frame));
    free(text);
    kedge_buf_deinit(&frame);
}

void fake_open(struct fake *f)
{
    char url[256];
    struct kedge_diag d = {.text = ""};
    ck_assert_int_eq(kedge_dir_make(at("state"), 0700, &d), KEDGE_OK);
    snprintf(url, sizeof url, "ipc://%s", at("state/coordinator.ipc"));
    struct kedge_net_server_options options = {.urls = {url}, .contexts = 4, .handler = answer, .arg = f};
    int e = kedge_net_server_open(&options, &server, &d);
    ck_assert_msg(e == KEDGE_OK, "%s: %s", url, d.text);
}

void fake_close(void)
{
    kedge_net_server_close(server);
    server = NULL;
}
