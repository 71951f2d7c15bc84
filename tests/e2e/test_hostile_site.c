/* A real coordinator before sites that lie, break off and pretend: every refusal has its code, and nothing
 * that was refused leaves a trace in any ledger. */
#include <check.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "chain/log/checkpoint.h"
#include "chain/log/merkle.h"
#include "chain/log/note.h"
#include "chain/state/refused.h"
#include "chain/state/state.h"
#include "common/base/os/clock.h"
#include "common/base/os/kept.h"
#include "tests/e2e/hostile.h"
#include "tests/e2e/hostile_upload.h"
#include "tests/unit/base/check.h"
#include "tests/unit/net/raw.h"

static struct kedge_msg hx_refusal; /* the newest */
static struct kedge_public_key coordinator_key;

enum { CHUNK = 65536, LIMIT = 64 << 20, HELD_MS = 20000 };

/* ---- updates ---- */

/* What an honest site would sign about this file; the test spoils it in `st`. */
static struct kedge_st_update *tell(const struct hx_file *f)
{
    hx_st = (struct kedge_statement){.kind = KEDGE_ST_UPDATE, .subject = f->digest};
    struct kedge_st_update *u = &hx_st.u.update;
    u->tenant = hx_id_of(hx_alice.tenant);
    u->site = hx_id_of(hx_alice.site);
    u->job = hx_task.job;
    u->round = hx_task.round;
    u->group = hx_task.group;
    u->update_kind = KEDGE_TRAIN_TRAIN;
    memcpy(u->base.b, hx_task.base, sizeof u->base.b);
    u->samples = u->steps = u->batch = 10;
    u->learning_rate = 0.01;
    u->energy_quality = KEDGE_ENERGY_UNKNOWN;
    u->seconds = 1;
    snprintf(u->engine, sizeof u->engine, "test");
    return u;
}

/* SUBMIT of `st` into a frame; the envelope is what the frame ends with. */
static struct kedge_view frame_of(const struct kedge_key_pair *key, struct kedge_buf *envelope,
                                  struct kedge_buf *frame)
{
    struct kedge_msg msg = {.type = KEDGE_MSG_SUBMIT};
    kedge_buf_init(envelope, KEDGE_ENTRY_MAX);
    kedge_buf_init(frame, KEDGE_FRAME_MAX);
    ck_assert_int_eq(kedge_statement_sign(&hx_st, key, envelope, NULL), KEDGE_OK);
    msg.u.submit.envelope = kedge_buf_view(envelope);
    ck_assert_int_eq(kedge_msg_encode(&msg, frame), KEDGE_OK);
    return kedge_buf_view(frame);
}

static void refuse_told(const struct kedge_key_pair *key, int expected, const char *what)
{
    struct kedge_buf envelope, frame;
    hx_refuse_bytes(hx_alice.net, frame_of(key, &envelope, &frame), expected, what);
    kedge_buf_deinit(&envelope);
    kedge_buf_deinit(&frame);
}

/* The newest answer is the coordinator's signed refusal of this very envelope, and the coordinator keeps it
 * with the envelope and, where it came, the file. */
static void check_refusal(struct kedge_view envelope, const char *code, bool listed,
                          const struct hx_file *file)
{
    static struct kedge_statement st;
    static const char *const kinds[] = {KEDGE_REFUSED_REFUSAL, KEDGE_REFUSED_ENVELOPE, KEDGE_REFUSED_UPDATE};
    struct kedge_hash hash;
    char dir[KEDGE_PATH_MAX], path[KEDGE_PATH_MAX];
    struct kedge_id site = hx_id_of(hx_alice.site);
    struct kedge_buf kept;
    kedge_sha256(envelope, &hash);
    ck_assert_int_eq(hx_refusal.type, KEDGE_MSG_REFUSED);
    ck_assert_int_eq(kedge_statement_open(hx_refusal.u.refused.envelope, &coordinator_key, &st, NULL),
                     KEDGE_OK);
    ck_assert(st.kind == KEDGE_ST_REFUSED && kedge_hash_eq(&st.subject, &hash));
    ck_assert_str_eq(st.u.refused.code, code);
    ck_assert_str_eq(st.u.refused.site.s, hx_alice.site);
    ck_assert_uint_eq(st.u.refused.listed, listed);
    ck_assert_uint_gt(st.u.refused.kept_until_s, kedge_os_unix_ms() / 1000 + 29 * 86400);
    ck_assert_int_eq(kedge_state_path(dir, NULL, hx_state(), "tenants/org-a/" KEDGE_REFUSED_DIR), KEDGE_OK);
    for (int i = 0; i < (file ? 3 : 2); i++) {
        const uint8_t *about = i == 2 ? file->digest.b : hash.b;
        ck_assert_int_eq(kedge_kept_path(path, dir, &site, about, kinds[i]), KEDGE_OK);
        ck_assert_msg(kedge_file_exists(path), "%s is not kept", path);
    }
    ck_assert_int_eq(kedge_kept_path(path, dir, &site, hash.b, KEDGE_REFUSED_ENVELOPE), KEDGE_OK);
    kedge_buf_init(&kept, KEDGE_ENTRY_MAX);
    ck_assert_int_eq(kedge_file_read(path, &kept, NULL), KEDGE_OK);
    ck_assert_uint_eq(kept.len, envelope.len);
    ck_assert_mem_eq(kept.ptr, envelope.ptr, envelope.len);
    kedge_buf_deinit(&kept);
}

static void refuse_signed(const char *what, int expected, bool listed, const struct hx_file *file)
{
    struct kedge_buf envelope, frame;
    struct kedge_view bytes = frame_of(&hx_alice.statement, &envelope, &frame);
    for (int i = 0; i < 2; i++) { /* the second time it is known, and the answer is the same */
        struct hx_sizes before = hx_measure();
        int err = hx_ask_bytes(hx_alice.net, bytes, &hx_refusal);
        ck_assert_msg(err == expected, "%s: %s", what, kedge_strerror(err));
        check_refusal(kedge_buf_view(&envelope), kedge_err_code(expected), listed, file);
        hx_check_unchanged(&before, what);
    }
    kedge_buf_deinit(&envelope);
    kedge_buf_deinit(&frame);
}

static void refuse_file(const char *name, uint64_t rows, uint64_t columns, enum kedge_dtype dtype,
                        int32_t value, int expected)
{
    struct hx_file f;
    hx_make_file(name, rows, columns, dtype, value, &f);
    hx_upload(&f);
    tell(&f);
    struct kedge_buf envelope, frame;
    struct hx_sizes before = hx_measure();
    struct kedge_view bytes = frame_of(&hx_alice.statement, &envelope, &frame);
    ck_assert_int_eq(hx_ask_bytes(hx_alice.net, bytes, &hx_refusal), expected);
    check_refusal(kedge_buf_view(&envelope), kedge_err_code(expected), true, &f);
    hx_check_unchanged(&before, "file that the job does not want");
    kedge_buf_deinit(&envelope);
    kedge_buf_deinit(&frame);
    refuse_told(&hx_alice.statement, KEDGE_E_BLOB_MISSING, "file that was refused once");
}

/* ---- the attacks ---- */

static unsigned port_of_coordinator(void)
{
    const char *port = strrchr(hx_address, ':');
    uint64_t number = 0;
    ck_assert_ptr_nonnull(port);
    ck_assert_int_eq(kedge_decimal_decode(kedge_view_str(port + 1), UINT16_MAX, &number), KEDGE_OK);
    return (unsigned)number;
}

static void try_strangers(void)
{
    struct kedge_msg msg = {.type = KEDGE_MSG_POLL};
    hx_refuse(hx_stranger.net, &msg, KEDGE_E_NOT_ENROLLED, "unknown key");
    hx_refuse(hx_waiting.net, &msg, KEDGE_E_NOT_ENROLLED, "site that nobody enrolled");
    hx_refuse(hx_door, &msg, KEDGE_E_DENIED, "site without TLS");
    msg.type = KEDGE_MSG_ENROLL;
    msg.u.enroll = (struct kedge_msg_enroll){.tenant = hx_id_of("org-a"), .site = hx_id_of("site-9")};
    memcpy(msg.u.enroll.statement_key, hx_stranger.statement.public.b, KEDGE_KEY_LEN);
    hx_refuse(hx_stranger.net, &msg, KEDGE_E_TOKEN, "token that nobody gave");
    struct hx_peer thief = hx_alice; /* a signed-in site's TLS key under another name */
    thief.site = "site-8";
    hx_enrolled_statement(&thief);
    hx_refuse_speech("site.enroll", "org-a", &hx_admins[0], KEDGE_E_KEY);
}

/* A bare TLS session of a signed-in site, which does not dial again. */
struct held {
    atomic_bool is_greeted, has_ended;
    bool survived;
};

static void *hold_connection(void *arg)
{
    struct held *held = arg;
    held->survived = raw_hold(port_of_coordinator(), &hx_gone.tls, HELD_MS, &held->is_greeted);
    atomic_store(&held->has_ended, true);
    return NULL;
}

static void try_revoked(void)
{
    struct kedge_msg msg = {.type = KEDGE_MSG_POLL}, answer;
    ck_assert_int_eq(hx_ask(hx_gone.net, &msg, &answer), KEDGE_OK);
    hx_st = (struct kedge_statement){.kind = KEDGE_ST_SITE_REVOKED};
    hx_st.u.site_revoked = (struct kedge_st_site_revoked){.tenant = hx_id_of(hx_gone.tenant),
                                                          .site = hx_id_of(hx_gone.site),
                                                          .statement_key = hx_gone.statement.public};
    snprintf(hx_st.u.site_revoked.reason, sizeof hx_st.u.site_revoked.reason, "lost");
    hx_refuse_speech("site.revoke", "org-b", &hx_admins[1], KEDGE_E_DENIED);
    hx_refuse_speech("site.revoke", "org-a", &hx_admins[1], KEDGE_E_DENIED);
    struct held held = {.survived = true};
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, hold_connection, &held), 0);
    /* Only one that was let in before is cut by what follows; a later one would be a stranger's, which the
     * coordinator closes by itself after a while. */
    for (int i = 0; i < HX_PATIENCE_MS / 10 && !atomic_load(&held.is_greeted); i++) {
        kedge_os_sleep_ms(10);
    }
    ck_assert(atomic_load(&held.is_greeted) && !atomic_load(&held.has_ended));
    json_decref(hx_operate(hx_speak("site.revoke", hx_gone.tenant, &hx_admins[0])));
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_msg(!held.survived, "a revoked site keeps its connection");
    (void)hx_ask(hx_gone.net, &msg, &answer); /* its connection was cut, which it may learn only now */
    hx_refuse(hx_gone.net, &msg, KEDGE_E_REVOKED, "revoked site");
    hx_enrolled_statement(&hx_gone);
    msg.type = KEDGE_MSG_ENROLL;
    msg.u.enroll = (struct kedge_msg_enroll){.tenant = hx_id_of("org-a"), .site = hx_id_of("site-2")};
    hx_refuse(hx_gone.net, &msg, KEDGE_E_REVOKED, "revoked site that enrols again");
}

static void try_frames(void)
{
    static const uint8_t unknown[] = {1, 0x77}, cut[] = {1, KEDGE_MSG_POLL, 0, 0},
                         old[] = {9, KEDGE_MSG_POLL}, none[] = {1},
                         long_id[] = {1, KEDGE_MSG_BLOB_GET, 255, 'x'};
    static const char *const no_json[] = {
        "", "{", "[]", "7", "{\"verb\":7}", "{\"verb\":\"a\",\"verb\":\"b\"}"};
    struct kedge_msg msg = {.type = KEDGE_MSG_RECEIPT};
    hx_refuse_bytes(hx_alice.net, kedge_view_of(unknown, sizeof unknown), KEDGE_E_FORMAT, "unknown type");
    hx_refuse_bytes(hx_alice.net, kedge_view_of(cut, sizeof cut), KEDGE_E_FORMAT, "cut frame");
    hx_refuse_bytes(hx_alice.net, kedge_view_of(none, sizeof none), KEDGE_E_FORMAT, "frame without a type");
    hx_refuse_bytes(hx_alice.net, kedge_view_of(long_id, sizeof long_id), KEDGE_E_FORMAT,
                    "name beyond the frame");
    hx_refuse_bytes(hx_alice.net, kedge_view_of(old, sizeof old), KEDGE_E_VERSION, "another version");
    msg.u.receipt.log = hx_id_of("org-a");
    hx_refuse(hx_alice.net, &msg, KEDGE_E_DENIED, "a reply as a request");
    for (size_t i = 0; i < sizeof no_json / sizeof no_json[0]; i++) {
        hx_refuse_text(hx_door, no_json[i], KEDGE_E_FORMAT);
    }
    hx_refuse_text(hx_door, "{\"verb\":\"no.such\"}", KEDGE_E_NOT_FOUND);
    hx_refuse_text(hx_door, "{\"verb\":\"job.no-such\"}", KEDGE_E_NOT_FOUND);
    /* a quotation that is cut inside of a character must still be an answer */
    hx_refuse_text(hx_door, "{\"verb\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\xc3\xa9\"}",
                   KEDGE_E_NOT_FOUND);
    hx_refuse_text(hx_door, "{\"verb\":\"job.xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\xc3\xa9\"}",
                   KEDGE_E_NOT_FOUND);
    hx_refuse_text(hx_alice.net, "{\"verb\":\"job.cancel\",\"job\":\"hostile\"}", KEDGE_E_DENIED);
    hx_refuse_text(hx_stranger.net, "{\"verb\":\"status\"}", KEDGE_E_DENIED);
}

/* Bytes that are no TLS at all: the connection ends, the coordinator does not. */
static void try_garbage(void)
{
    static const char *const noise[] = {"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\xff\xff garbage garbage",
                                        "\x00SP\x00\x00\x30\x00\x00\x00\x00\x00\x00"};
    for (size_t i = 0; i < sizeof noise / sizeof noise[0]; i++) {
        struct hx_sizes before = hx_measure();
        char bytes[256];
        int fd = raw_connect(port_of_coordinator());
        memset(bytes, 0xa5, sizeof bytes);
        memcpy(bytes, noise[i], 12);
        ck_assert_int_eq(send(fd, bytes, sizeof bytes, MSG_NOSIGNAL), (ssize_t)sizeof bytes);
        shutdown(fd, SHUT_WR);
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ssize_t n = 1;
        for (int k = 0; k < 8 && n > 0; k++) { /* an alert may come first */
            ck_assert_int_eq(poll(&p, 1, HX_PATIENCE_MS), 1);
            n = recv(fd, bytes, sizeof bytes, 0);
        }
        ck_assert_int_le(n, 0);
        close(fd);
        hx_check_unchanged(&before, "garbage");
    }
}

static void try_blobs(const struct hx_file *good)
{
    struct kedge_msg get = {.type = KEDGE_MSG_BLOB_GET}, answer;
    struct kedge_msg_blob_get *g = &get.u.blob_get;
    *g = (struct kedge_msg_blob_get){.job = hx_task.job, .offset = 0, .max = CHUNK};
    memcpy(g->digest, hx_spec.b, sizeof g->digest);
    ck_assert_int_eq(hx_ask(hx_alice.net, &get, &answer), KEDGE_OK);
    ck_assert_uint_eq(answer.u.chunk.data.len, strlen(HX_SPEC));
    memcpy(g->digest, hx_other_spec.b, sizeof g->digest); /* it is there, but not for this site */
    hx_refuse(hx_alice.net, &get, KEDGE_E_NOT_FOUND, "blob of another job");
    g->job = hx_id_of("other");
    hx_refuse(hx_alice.net, &get, KEDGE_E_NOT_FOUND, "blob of another tenant's job");
    g->job = hx_task.job;
    memcpy(g->digest, good->digest.b, sizeof g->digest);
    hx_refuse(hx_bob.net, &get, KEDGE_E_NOT_FOUND, "another tenant's update");

    struct kedge_msg put = hx_put_of(good, 0, good->len);
    struct kedge_msg_blob_put *p = &put.u.blob_put;
    p->total++;
    hx_refuse(hx_alice.net, &put, KEDGE_E_BLOB_SIZE, "upload of a wrong size");
    p->total = UINT64_MAX;
    hx_refuse(hx_alice.net, &put, KEDGE_E_BLOB_SIZE, "upload without end");
    p->total = good->len;
    p->round++;
    hx_refuse(hx_alice.net, &put, KEDGE_E_ROUND_STALE, "upload for a later round");
    p->round -= 2;
    hx_refuse(hx_alice.net, &put, KEDGE_E_ROUND_CLOSED, "upload for an earlier round");
    p->round = hx_task.round;
    p->job = hx_id_of("no-such");
    hx_refuse(hx_alice.net, &put, KEDGE_E_NO_JOB, "upload for no job");
    p->job = hx_id_of("other");
    hx_refuse(hx_alice.net, &put, KEDGE_E_NOT_JOINED, "upload for another tenant's job");
    p->job = hx_task.job;
    p->digest[0] ^= 1;
    hx_refuse(hx_alice.net, &put, KEDGE_E_BLOB_DIGEST, "upload under a wrong digest");
    p->digest[0] ^= 1;
    hx_refuse_longer(good);
    put = hx_put_of(good, 0, 100); /* breaks off: what is here is told, and is no update */
    ck_assert_int_eq(hx_ask(hx_alice.net, &put, &answer), KEDGE_OK);
    ck_assert(answer.u.put_ok.next_offset == 100 && answer.u.put_ok.complete == 0);
    put = hx_put_of(good, 7, 100);
    ck_assert_int_eq(hx_ask(hx_alice.net, &put, &answer), KEDGE_OK);
    ck_assert(answer.u.put_ok.next_offset == 100 && answer.u.put_ok.complete == 0);
    tell(good);
    refuse_told(&hx_alice.statement, KEDGE_E_BLOB_MISSING, "half an upload");
    put = hx_put_of(good, 100, good->len - 100); /* which goes on where it was */
    ck_assert_int_eq(hx_ask(hx_alice.net, &put, &answer), KEDGE_OK);
    ck_assert(answer.u.put_ok.next_offset == good->len && answer.u.put_ok.complete == 1);
}

static void try_statements(const struct hx_file *good)
{
    struct kedge_key_pair wrong;
    kedge_key_generate(&wrong);
    tell(good);
    refuse_told(&hx_alice.statement, KEDGE_E_BLOB_MISSING, "update before its upload");
    refuse_told(&wrong, KEDGE_E_VERIFY, "statement signed by nobody");
    refuse_told(&hx_bob.statement, KEDGE_E_VERIFY, "statement signed by another tenant's site");
    tell(good)->tenant = hx_id_of("org-b");
    refuse_told(&hx_alice.statement, KEDGE_E_DENIED, "another tenant's name");
    tell(good)->site = hx_id_of("site-2");
    refuse_told(&hx_alice.statement, KEDGE_E_DENIED, "another site's name");
    tell(good)->job = hx_id_of("no-such");
    refuse_signed("no such job", KEDGE_E_NO_JOB, false, NULL);
    tell(good)->job = hx_id_of("other");
    refuse_told(&hx_alice.statement, KEDGE_E_NOT_JOINED, "another tenant's job");
    tell(good)->round++;
    refuse_told(&hx_alice.statement, KEDGE_E_ROUND_STALE, "later round");
    tell(good)->group++;
    refuse_told(&hx_alice.statement, KEDGE_E_WRONG_GROUP, "another group");
    tell(good)->base.b[0] ^= 1;
    refuse_signed("another base", KEDGE_E_WRONG_BASE, true, NULL);
    tell(good)->samples = KEDGE_ST_COUNT_MAX;
    refuse_told(&hx_alice.statement, KEDGE_E_WEIGHT, "more samples than a job takes");
    memcpy(tell(good)->classes, "a\0b\0", 5);
    refuse_told(&hx_alice.statement, KEDGE_E_WEIGHT, "names of classes for which nobody asked");
    tell(good)->update_kind = KEDGE_TRAIN_PRETRAIN;
    refuse_told(&hx_alice.statement, KEDGE_E_ARG, "a pre-training that nobody asked for");
    hx_st = (struct kedge_statement){.kind = KEDGE_ST_JOB_JOINED, .subject = hx_spec};
    hx_st.u.job_joined = (struct kedge_st_job_joined){hx_id_of("org-a"), hx_id_of("hostile")};
    hx_place("org-a");
    refuse_told(&hx_alice.statement, KEDGE_E_DENIED, "an admin's words from a site");
    struct kedge_msg msg = {.type = KEDGE_MSG_SUBMIT};
    msg.u.submit.envelope = kedge_view_str("{\"payload\":\"\"}");
    hx_refuse(hx_alice.net, &msg, KEDGE_E_FORMAT, "no envelope");
}

/* An earlier round is told to be closed, signed by the coordinator, about this very envelope. */
static void try_closed(const struct hx_file *good)
{
    struct kedge_buf envelope, frame;
    struct kedge_msg answer;
    struct kedge_hash hash;
    struct hx_sizes before = hx_measure();
    tell(good)->round--;
    ck_assert_int_eq(hx_ask_bytes(hx_alice.net, frame_of(&hx_alice.statement, &envelope, &frame), &answer),
                     KEDGE_OK);
    ck_assert_int_eq(answer.type, KEDGE_MSG_CLOSED);
    ck_assert_int_eq(kedge_statement_open(answer.u.closed.envelope, &coordinator_key, &hx_st, NULL),
                     KEDGE_OK);
    kedge_sha256(kedge_buf_view(&envelope), &hash);
    ck_assert(hx_st.kind == KEDGE_ST_CLOSED && kedge_hash_eq(&hx_st.subject, &hash));
    hx_check_unchanged(&before, "earlier round");
    kedge_buf_deinit(&envelope);
    kedge_buf_deinit(&frame);
}

static void check_receipt(const struct kedge_msg *answer, struct kedge_view envelope,
                          const struct kedge_vkey *log)
{
    static struct kedge_note note;
    const struct kedge_msg_receipt *r = &answer->u.receipt;
    struct kedge_hash leaf, path[KEDGE_PROOF_MAX];
    struct kedge_checkpoint cp;
    ck_assert_int_eq(answer->type, KEDGE_MSG_RECEIPT);
    ck_assert_str_eq(r->log.s, "org-a");
    kedge_merkle_leaf(envelope, &leaf);
    ck_assert_mem_eq(leaf.b, r->leaf_hash, sizeof leaf.b);
    ck_assert_int_eq(kedge_note_parse(r->checkpoint, &note), KEDGE_OK);
    ck_assert_int_eq(kedge_note_verify(&note, log, 1, NULL, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_checkpoint_parse(note.text, &cp), KEDGE_OK);
    if (r->proof.len > 0) {
        memcpy(path, r->proof.ptr, r->proof.len);
    }
    ck_assert_int_eq(
        kedge_inclusion_verify(r->leaf_index, cp.size, &leaf, path, r->proof.len / sizeof path[0], &cp.root),
        KEDGE_OK);
}

/* After all that was refused the honest update is taken, once. */
static void try_good(const struct hx_file *good, const struct kedge_vkey *log)
{
    struct kedge_buf envelope, frame;
    struct kedge_msg answer;
    struct hx_sizes before = hx_measure();
    hx_upload(good);
    tell(good);
    struct kedge_view bytes = frame_of(&hx_alice.statement, &envelope, &frame);
    ck_assert_int_eq(hx_ask_bytes(hx_alice.net, bytes, &answer), KEDGE_OK);
    check_receipt(&answer, kedge_buf_view(&envelope), log);
    uint64_t leaf = answer.u.receipt.leaf_index;
    before.tenants[0]++;
    hx_check_unchanged(&before, "one update, one entry");
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(hx_ask_bytes(hx_alice.net, bytes, &answer), KEDGE_OK);
        check_receipt(&answer, kedge_buf_view(&envelope), log);
        ck_assert_uint_eq(answer.u.receipt.leaf_index, leaf);
    }
    hx_check_unchanged(&before, "the same update again");
    kedge_buf_deinit(&envelope);
    kedge_buf_deinit(&frame);
    tell(good)->samples = 11;
    refuse_told(&hx_alice.statement, KEDGE_E_DUPLICATE, "another update for the same round");
}

/* The key that the coordinator signs with; the answer of "trust" is the caller's. */
static json_t *learn_key(void)
{
    json_t *o = hx_operate(json_pack("{s:s}", "verb", "trust"));
    const char *key = json_string_value(json_object_get(o, "statement_key"));
    ck_assert_int_eq(kedge_hex_decode(kedge_view_str(key), coordinator_key.b, KEDGE_KEY_LEN), KEDGE_OK);
    return o;
}

START_TEST(test_hostile_sites)
{
    struct hx_file good;
    struct kedge_vkey log;
    hx_start();
    hx_found();
    json_t *o = learn_key();
    const char *key =
        json_string_value(json_object_get(json_array_get(json_object_get(o, "tenants"), 0), "log"));
    ck_assert_int_eq(kedge_vkey_decode(kedge_view_str(key), &log), KEDGE_OK);
    json_decref(o);
    try_strangers();
    try_revoked();
    hx_open_round();
    try_frames();
    try_garbage();
    hx_make_file("0.weight", 2, 8, KEDGE_DTYPE_I32, 1, &good);
    ck_assert_uint_eq(good.len, hx_task.update_len);
    try_statements(&good);
    hx_try_offsets();
    tell(&good);
    hx_try_texts();
    try_closed(&good);
    try_blobs(&good);
    hx_try_packed();
    hx_try_since(&good, NULL);
    const uint64_t begin = kedge_os_now_ns();
    refuse_file("1.weight", 2, 8, KEDGE_DTYPE_I32, 1, KEDGE_E_SHAPE);
    refuse_file("0.weight", 8, 2, KEDGE_DTYPE_I32, 1, KEDGE_E_SHAPE);
    refuse_file("0.weight", 2, 8, KEDGE_DTYPE_F32, 1, KEDGE_E_SHAPE);
    refuse_file("0.weight", 2, 8, KEDGE_DTYPE_I32, LIMIT + 1, KEDGE_E_BOUND);
    refuse_file("0.weight", 2, 8, KEDGE_DTYPE_I32, INT32_MIN, KEDGE_E_BOUND);
    const unsigned said = hx_log_count("\"update refused\""); /* at most once a second, of one site */
    ck_assert_uint_ge(said, 1);
    ck_assert_uint_le(said, 1 + (kedge_os_now_ns() - begin) / 1000000000u);
    try_good(&good, &log);
    hx_stop();
    ck_assert_uint_ge(hx_refusals, 104);
}
END_TEST

/* "refused" of job "hostile", as the operator is told. */
static json_int_t count_refused(void)
{
    json_t *o = hx_operate(json_pack("{s:s,s:s}", "verb", "job.show", "job", "hostile"));
    json_int_t n = json_integer_value(json_object_get(o, "refused"));
    json_decref(o);
    return n;
}

static void cancel_job(void)
{
    const char *state = "";
    json_decref(hx_operate(json_pack("{s:s,s:s}", "verb", "job.cancel", "job", "hostile")));
    json_t *o = NULL;
    for (int i = 0; i < HX_PATIENCE_MS / 10 && strcmp(state, "cancelled") != 0; i++) {
        json_decref(o);
        kedge_os_sleep_ms(10);
        o = hx_operate(json_pack("{s:s,s:s}", "verb", "job.show", "job", "hostile"));
        state = json_string_value(json_object_get(o, "state"));
    }
    ck_assert_str_eq(state, "cancelled");
    json_decref(o);
}

/* What an open round turned away is in its record even when the coordinator dies before the round closes;
 * once the job has ended nothing of it is kept. */
START_TEST(test_refusal_survives_kill)
{
    static const uint8_t zeros[76];
    const char key[] = "hostile/00000001/org-a/site-1/2";
    hx_start();
    hx_found();
    json_decref(learn_key());
    hx_open_round();
    ck_assert_int_eq(count_refused(), 0);
    refuse_file("0.weight", 2, 8, KEDGE_DTYPE_I32, LIMIT + 1, KEDGE_E_BOUND);
    ck_assert_int_eq(count_refused(), 1);
    for (int i = 0; i < 2; i++) {
        hx_kill();
        ck_assert_int_eq(count_refused(), 1);
    }
    hx_damage(KEDGE_KV_ROUND, key, kedge_view_of(zeros, sizeof zeros),
              "coordinator.lmdb: table round, key \\\"hostile/00000001/org-a/site-1/2\\\": damaged record");
    hx_damage(
        KEDGE_KV_JOB, "hostile", kedge_view_str("{\"job\":\"hostile\",\"state\":99}"),
        "coordinator.lmdb: table job, key \\\"hostile\\\": damaged record: \\\"state\\\" has no right value");
    ck_assert_int_eq(count_refused(), 1);
    ck_assert_uint_eq(hx_count_records(KEDGE_KV_ROUND), 1);
    cancel_job();
    ck_assert_uint_eq(hx_count_records(KEDGE_KV_ROUND), 0);
    hx_stop();
}
END_TEST

/* A damaged token stops nothing but the list that it stands in, which names it: who asks for one site, or
 * comes with a token of his own, does not meet it. */
START_TEST(test_damaged_token)
{
    const char key[] = "0123456789abcdef0123456789abcdef"; /* any digest */
    const char torn[] = "{\"tenant\":\"org-a\",\"site\":\"site-9\",\"expiry_s\":-1}";
    hx_start();
    hx_found();
    json_decref(hx_operate(json_pack("{s:s}", "verb", "site.pending")));
    hx_replace(KEDGE_KV_TOKEN, key, kedge_view_of(torn, strlen(torn)));
    json_decref(hx_operate(json_pack("{s:s}", "verb", "status")));
    hx_refuse_text(hx_door, "{\"verb\":\"site.pending\"}", KEDGE_E_CORRUPT);
    json_t *found = hx_operate(json_pack("{s:s,s:s,s:s}", "verb", "site.pending", "tenant", hx_waiting.tenant,
                                         "site", hx_waiting.site));
    ck_assert_uint_eq(json_array_size(json_object_get(found, "sites")), 1);
    json_decref(found);
    hx_replace(KEDGE_KV_TOKEN, key, kedge_view_of(NULL, 0));
    json_decref(hx_operate(json_pack("{s:s}", "verb", "site.pending")));
    hx_stop();
}
END_TEST

static void submit_for(const struct hx_peer *p, const struct hx_file *f)
{
    struct kedge_buf envelope, frame;
    struct kedge_msg put = hx_put_of(f, 0, f->len), answer;
    ck_assert_int_eq(hx_ask(p->net, &put, &answer), KEDGE_OK);
    struct kedge_st_update *u = tell(f);
    u->tenant = hx_id_of(p->tenant);
    u->site = hx_id_of(p->site);
    ck_assert_int_eq(hx_ask_bytes(p->net, frame_of(&p->statement, &envelope, &frame), &answer), KEDGE_OK);
    ck_assert_int_eq(answer.type, KEDGE_MSG_RECEIPT);
    kedge_buf_deinit(&envelope);
    kedge_buf_deinit(&frame);
}

/* A model as the difference to the one before it, and to no other. */
START_TEST(test_since)
{
    static struct hx_file f;
    uint8_t before[KEDGE_WIRE_HASH];
    hx_start();
    hx_found();
    hx_open_round();
    hx_make_mild_file(&f);
    memcpy(before, hx_task.base, sizeof before);
    submit_for(&hx_alice, &f);
    submit_for(&hx_bob, &f);
    hx_next_task();
    ck_assert_uint_eq(hx_task.round, 2);
    ck_assert(memcmp(before, hx_task.base, sizeof before) != 0);
    hx_try_since(&f, before);
    hx_stop();
}
END_TEST

int main(void)
{
    const TTest *tests[] = {test_hostile_sites, test_refusal_survives_kill, test_damaged_token, test_since};
    return run_suite("hostile_site", tests, sizeof tests / sizeof tests[0]);
}
