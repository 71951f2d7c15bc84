/* A real coordinator with two tenants and an open round, and the means to ask it for what it must refuse.
 * KEDGE_COORDINATOR is the program's path, given by the build. Failures are Check's. */
#ifndef KEDGE_TESTS_E2E_HOSTILE_H
#define KEDGE_TESTS_E2E_HOSTILE_H

#include <jansson.h>

#include "chain/statement/statement.h"
#include "chain/store/kv/kv.h"
#include "common/net/client.h"
#include "common/wire/messages.h"

enum { HX_PATIENCE_MS = 30000, HX_MEMBERS = 2 };

struct hx_peer {
    const char *tenant, *site;
    struct kedge_key_pair tls, statement;
    struct kedge_net_client *net;
};
/* Entries of all ledgers. */
struct hx_sizes {
    json_int_t main, tenants[HX_MEMBERS];
};

extern const char HX_SPEC[];             /* of job "hostile", which both tenants join */
extern struct kedge_net_client *hx_door; /* the operator's */
extern char hx_address[];                /* tls+tcp://127.0.0.1:PORT */
extern struct kedge_key_pair hx_admins[HX_MEMBERS];
/* org-a/site-1 and org-b/site-1 are honest members, org-a/site-2 is to be revoked, org-a/site-3 is not signed
 * in, and nobody knows the stranger. */
extern struct hx_peer hx_alice, hx_gone, hx_waiting, hx_bob, hx_stranger;
extern struct kedge_msg_task hx_task;            /* what hx_alice was asked to do */
extern struct kedge_hash hx_spec, hx_other_spec; /* job "other" is org-b's alone, and nobody has joined it */
extern struct kedge_statement hx_st;             /* the one being made: too large for a stack */
extern unsigned hx_refusals;                     /* counted by hx_check_unchanged */

void hx_start(void);
void hx_stop(void); /* asks the coordinator to end, and checks that it ends well */
void hx_kill(void); /* kill -9 and a new start, at another address: from here on only the operator may ask */
/* An end, asked for (which must be a good one) or by kill -9, and a new start, at whose address all peers
 * dial again. */
void hx_restart(bool is_polite);
/* The parts of it: an end, a start, and the wait until it has an address. */
void hx_end(bool is_polite);
void hx_launch(void);
int hx_await_end(void); /* its exit code */
void hx_await_address(void);
const char *hx_state(void); /* the state folder */
int hx_pid(void);
/* Files that uploads have left in the tenant's staging. */
size_t hx_count_staged(const char *tenant);
/* Records in a table of coordinator.lmdb. */
uint64_t hx_count_records(enum kedge_kv_table table);
/* kill -9 and a start with another record in the place of this one. */
void hx_replace(enum kedge_kv_table table, const char *key, struct kedge_view value);
/* kill -9 and a start with another record in the place of this one, which must end with exit code 5 and say
 * so; then a start with what was there. */
void hx_damage(enum kedge_kv_table table, const char *key, struct kedge_view value, const char *said);
void hx_found(void);      /* tenants and sites; every token and signature is tried wrongly first */
void hx_open_round(void); /* both jobs, and round 1 of "hostile" with hx_alice's task */
void hx_next_task(void);  /* hx_alice's next one */

struct kedge_id hx_id_of(const char *s);
/* Sends one request: KEDGE_OK and what came back, valid until the next request, or the code of what went
 * wrong here or there. */
int hx_ask(struct kedge_net_client *net, const struct kedge_msg *msg, struct kedge_msg *ret);
int hx_ask_bytes(struct kedge_net_client *net, struct kedge_view frame, struct kedge_msg *ret);
/* The operator's request (taken over) that must go well; the caller frees the answer. */
json_t *hx_operate(json_t *request);
/* Gives hx_st its place in the tenant's ledger, as the coordinator tells it. */
void hx_place(const char *tenant);
/* The request of an admin: hx_st, placed and signed. */
json_t *hx_speak(const char *verb, const char *tenant, const struct kedge_key_pair *key);
void hx_enrolled_statement(const struct hx_peer *p); /* into hx_st */

/* Whether the coordinator's log has these words. */
bool hx_log_says(const char *words);
unsigned hx_log_count(const char *words);

struct hx_sizes hx_measure(void);
void hx_check_unchanged(const struct hx_sizes *before, const char *what);
/* The request must be answered by this very code, and no ledger may grow. */
void hx_refuse(struct kedge_net_client *net, const struct kedge_msg *msg, int expected, const char *what);
void hx_refuse_bytes(struct kedge_net_client *net, struct kedge_view frame, int expected, const char *what);
void hx_refuse_text(struct kedge_net_client *net, const char *json, int expected);
void hx_refuse_speech(const char *verb, const char *tenant, const struct kedge_key_pair *key, int expected);

#endif
