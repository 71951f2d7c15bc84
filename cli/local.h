/* What commands share that look into folders of this machine without asking a coordinator. */
#ifndef KEDGE_CLI_LOCAL_H
#define KEDGE_CLI_LOCAL_H

#include "chain/log/note.h"
#include "chain/state/state.h"
#include "cli/cli.h"
#include "common/net/client.h"

/* Whether this user may look for names in the folder; what is not there, or is none, is the caller's to say.
 * KEDGE_E_DENIED. */
KEDGE_NODISCARD int kedge_cli_may_look(const char *dir, struct kedge_diag *d);

/* Whether a coordinator has this state folder: it takes the lock of its store first of all and keeps it to
 * its end, while its door opens only when it has read its whole record. False also where the lock is not this
 * user's to look at. */
bool kedge_cli_coordinator_holds(const char *state);
/* True when it does, or one answers on the folder's socket. Asks there in a child process, because threads of
 * the network would forbid the forks that reading a record needs: call before kedge_doctor_hello. */
bool kedge_cli_coordinator_runs(const char *state);

/* Opens the log "main" or a tenant's for reading, beside a running coordinator or as a copy. The caller
 * closes it with kedge_state_log_close. */
KEDGE_NODISCARD int kedge_cli_log_open(const char *state, const char *name, struct kedge_state_log *ret,
                                       struct kedge_diag *d);
/* The state folder of a record: DIR, or what is called "state" in it. KEDGE_E_TOO_LONG. */
KEDGE_NODISCARD int kedge_cli_find_state(const char *dir, char out[KEDGE_PATH_MAX], struct kedge_diag *d);
/* Verifier key of a log when its key file can be read (the operator's machine); false elsewhere. */
bool kedge_cli_log_vkey(const char *state, const struct kedge_state_log *log, struct kedge_vkey *ret);

/* Gathers an answer in a child process, so that a damaged store costs an error and not the program. */
typedef int kedge_cli_gather(void *arg, json_t **ret, struct kedge_diag *d);
KEDGE_NODISCARD int kedge_cli_guarded(kedge_cli_gather *gather, void *arg, json_t **ret,
                                      struct kedge_diag *d);

/* One log entry for people: sets "kind", "who", "what" (and "signer" of a statement) in `row`; with `whole`
 * also its content as "payload" (statement) or "note" (a tenant's checkpoint in the main chain). An entry
 * that is neither gets the kind "unreadable" and the reason. */
KEDGE_NODISCARD int kedge_cli_describe(struct kedge_view entry, bool in_main, bool whole, json_t *row);

/* tls+tcp://HOST:PORT of at most 255 bytes with a port from port_min on. What a host may be is for the
 * program that listens or dials to find out. */
bool kedge_cli_is_address(const char *url, uint64_t port_min);

/* Positional argument i, or NULL. Options are taken out before. */
const char *kedge_cli_argument(const struct kedge_cli *c, int i);
/* False after a usage error: an option that nobody knows, that stands twice or that lacks its value. */
bool kedge_cli_no_options(struct kedge_cli *c);
/* The same, and no more than so many arguments. */
bool kedge_cli_no_more(struct kedge_cli *c, int arguments_max);
/* JSON text of people's files: two spaces, ends in a line feed. Prints to stdout, or writes to path. */
KEDGE_NODISCARD int kedge_cli_put_json(const json_t *o, const char *path, struct kedge_diag *d);

#endif
