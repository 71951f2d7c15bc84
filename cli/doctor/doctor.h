/* The parts of kedge doctor that are not a site's (client/doctor). */
#ifndef KEDGE_CLI_DOCTOR_DOCTOR_H
#define KEDGE_CLI_DOCTOR_DOCTOR_H

#include "cli/cli.h"
#include "client/doctor/doctor.h"

/* doctor_machine.c: programs, libraries, processor, data, limits. Forks: before any thread runs. */
void kedge_doctor_machine(struct kedge_doctor *k, const char *dir);
/* doctor_folder.c: a coordinator's state folder or a site's folder. Forks. KEDGE_E_NOT_FOUND without saying
 * anything when it is neither. */
KEDGE_NODISCARD int kedge_doctor_folder(struct kedge_doctor *k, const char *dir);
/* doctor_net.c: TLS on loopback with throw-away keys. Starts threads. */
void kedge_doctor_loopback(struct kedge_doctor *k);

#endif
