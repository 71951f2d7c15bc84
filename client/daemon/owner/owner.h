/* What a site's owner asks of kedge-client beside running it. */
#ifndef KEDGE_CLIENT_DAEMON_OWNER_OWNER_H
#define KEDGE_CLIENT_DAEMON_OWNER_OWNER_H

#include <stdbool.h>
#include <stdio.h>

#include "client/doctor/doctor.h"
#include "common/base/diag.h"

/* `kedge-client status --site DIR [--format json|text]`; argv begins with "status". Prints to stdout; returns
 * the exit code: 0 it runs and works, 1 it does not run, was stopped or refuses, 2 usage, 3 nothing to read.
 */
int kedge_client_status_main(int argc, char **argv);
/* `kedge-client doctor --site DIR [--format json|text] [--try-trainers [--seconds N]]`, likewise; 0 all is
 * well, 1 there is something to mend.
 */
int kedge_client_doctor_main(int argc, char **argv);

/* `kedge-client try-data [NAME…] --site DIR [--format json|text]`, likewise; 0 all of it can be trained on.
 */
int kedge_client_try_data_main(int argc, char **argv);

/* `kedge-client accept-main [FINGERPRINT] --site DIR [--format json|text]`, likewise; 0 the site goes on. */
int kedge_client_accept_main(int argc, char **argv);

struct kedgei_owner_asked {
    const char *dir;
    bool json;
    bool may_name; /* are there names behind the options? They are argv[first_name …], when this returns */
    int first_name;
    bool may_try, try_trainers; /* is --try-trainers among the options? was it given? */
    uint32_t seconds;           /* each of them may take to answer */
};
/* What both read of their command line; may_try is the caller's. False when there is nothing more to do than
 * to end with *ret_code. */
bool kedgei_owner_options(int argc, char **argv, struct kedgei_owner_asked *asked, int *ret_code,
                          int (*usage_of)(FILE *out, int code));

/* owner_energy.c: says what the owner's energy rules come to here and now: meters, budgets, hours, battery.
 */
void kedgei_owner_energy(struct kedge_doctor *k, const char *dir);
/* owner_try.c: says of each trainer of the owner's, and of the built-in one, whether it starts and answers
 * within so many seconds (or its own seconds_max, if that is less). Forks: before any thread runs. */
void kedgei_owner_try_trainers(struct kedge_doctor *k, const char *dir, uint32_t seconds);
struct json_t;
/* status.json of the site; *ret is the caller's. Whether the process that wrote it is there still. */
KEDGE_NODISCARD int kedgei_owner_read_status(const char *dir, struct json_t **ret, struct kedge_diag *d);
bool kedgei_owner_runs(const struct json_t *o);
/* Says an error, with `json` on stdout, too; the exit code. */
int kedgei_owner_fail(bool json, int err, const struct kedge_diag *d);

#endif
