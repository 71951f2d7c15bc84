/* What is wrong with a site, its folder and its device, and how to mend it: `kedge-client doctor` and `kedge
 * doctor` say the same lines. Each check says one or more. */
#ifndef KEDGE_CLIENT_DOCTOR_DOCTOR_H
#define KEDGE_CLIENT_DOCTOR_DOCTOR_H

#include <stdbool.h>

#include "common/base/settings.h"
#include "common/json/json.h"
#include "common/net/client.h"
#include "common/tensor/dataset.h"

enum { KEDGE_DOCTOR_VERSION_LEN = 64 };

enum kedge_doctor_level { KEDGE_DOCTOR_OK, KEDGE_DOCTOR_WARN, KEDGE_DOCTOR_FAIL };

struct kedge_doctor {
    /* Takes what is said: "" as mend where there is nothing to mend. */
    void (*line)(void *arg, enum kedge_doctor_level level, const char *what, const char *detail,
                 const char *mend);
    void *arg;
    unsigned warnings, failures; /* so far */
};

void kedge_doctor_say(struct kedge_doctor *k, enum kedge_doctor_level level, const char *what,
                      const char *mend, const char *format, ...) KEDGE_PRINTF(5, 6);
/* The error of a library: FAIL with its text, its hint as the way to mend it, or `mend` when it has none. */
void kedge_doctor_fail(struct kedge_doctor *k, const char *what, const char *mend, int err,
                       const struct kedge_diag *d);

/* files.c. The private keys in folder/keys, of which `wanted` must be there. */
void kedge_doctor_keys(struct kedge_doctor *k, const char *folder, const char *const *wanted, size_t count);
/* The object in folder/name with the keys of the table only; the caller's, or NULL after saying what is
 * wrong. */
struct json_t *kedge_doctor_settings(struct kedge_doctor *k, const char *folder, const char *name,
                                     const struct kedge_setting *table);

/* machine.c. Forks: before any thread runs. What "PROGRAM OPTION" prints within so long, cut to size; false
 * when it does not run or prints nothing. */
bool kedge_doctor_ask(const char *program, const char *option, uint32_t timeout_ms, char *out, size_t size);
/* What "PROGRAM --version" prints, without its line feed. */
bool kedge_doctor_ask_version(const char *program, char out[KEDGE_DOCTOR_VERSION_LEN]);
/* A program of this version is in the folder `own` or in PATH. */
void kedge_doctor_program(struct kedge_doctor *k, const char *own, const char *name, const char *version);
void kedge_doctor_crypto(struct kedge_doctor *k);
void kedge_doctor_processor(struct kedge_doctor *k);
void kedge_doctor_limits(struct kedge_doctor *k, const char *dir);

/* device.c. Forks, likewise. Whether the built-in trainer has what it needs of CUDA, in two lines; worse than
 * OK only where the site's policy, an object as policy.json has it, asks for a device. */
void kedge_doctor_device(struct kedge_doctor *k, const struct json_t *policy);

/* policy.c. Forks, likewise, where root asks about another user's site. */
void kedge_doctor_policy(struct kedge_doctor *k, const char *site);
/* A data binding of policy.json, as kedge-train reads it. KEDGE_E_FORMAT … name what is wrong. */
KEDGE_NODISCARD int kedge_doctor_binding(const struct json_t *v, struct kedge_data_binding *ret,
                                         struct kedge_diag *d);
/* Root becomes the user to whom the site's folder belongs, for good: what is tried then is tried as
 * kedge-client would. Anybody else stays who they are. KEDGE_E_DENIED. */
KEDGE_NODISCARD int kedge_doctor_become_owner(const char *site);
/* site.c: the folder of a site. */
void kedge_doctor_site(struct kedge_doctor *k, const char *site);
/* server.c. Says HELLO to a coordinator; any proper message is an answer. Starts threads that stay. */
KEDGE_NODISCARD int kedge_doctor_hello(const struct kedge_net_client_options *options, uint32_t timeout_ms,
                                       struct kedge_diag *d);
/* The coordinator that a site is enrolled at: does it answer, and does it hold the key that site.json pins?
 */
void kedge_doctor_site_server(struct kedge_doctor *k, const char *dir);

#endif
