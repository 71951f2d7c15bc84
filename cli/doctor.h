/* What the checks of kedge doctor share: each says one line. */
#ifndef KEDGE_CLI_DOCTOR_H
#define KEDGE_CLI_DOCTOR_H

#include "cli/cli.h"

enum kedge_doctor_level { KEDGE_DOCTOR_OK, KEDGE_DOCTOR_WARN, KEDGE_DOCTOR_FAIL };

struct kedge_doctor {
    struct kedge_cli *c;
    json_t *checks;
    unsigned warnings, failures;
};

/* "ok    what: detail", and below it how to mend it ("" where there is nothing to mend). */
void kedge_doctor_say(struct kedge_doctor *k, enum kedge_doctor_level level, const char *what,
                      const char *mend, const char *format, ...) KEDGE_PRINTF(5, 6);
/* The error of a library: FAIL with its text, its hint as the way to mend it, or `mend` when it has none. */
void kedge_doctor_fail(struct kedge_doctor *k, const char *what, const char *mend, int err,
                       const struct kedge_diag *d);

/* doctor_machine.c: programs, libraries, processor, data, limits. Forks: before any thread runs. */
void kedge_doctor_machine(struct kedge_doctor *k, const char *dir);
/* doctor_folder.c: a coordinator's state folder or a site's folder. Forks. KEDGE_E_NOT_FOUND without saying
 * anything when it is neither. */
KEDGE_NODISCARD int kedge_doctor_folder(struct kedge_doctor *k, const char *dir);
/* doctor_net.c: TLS on loopback with throw-away keys; the server of a site. They start threads. */
void kedge_doctor_loopback(struct kedge_doctor *k);
void kedge_doctor_site_server(struct kedge_doctor *k, const char *dir);

#endif
