/* "trainers" in policy.json: the owner's own trainers by the names that jobs use, each with its command and
 * what it may take. A job names a trainer; a command comes from nobody but the owner. Pure. */
#ifndef KEDGE_CLIENT_DAEMON_TRAINER_TRAINERS_H
#define KEDGE_CLIENT_DAEMON_TRAINER_TRAINERS_H

#include "common/base/bytes.h"
#include "common/base/diag.h"
#include "common/base/text.h"

enum { KEDGE_TRAINERS_MAX = 16, KEDGE_TRAINER_ARGS_MAX = 32, KEDGE_TRAINER_ENV_MAX = 32 };

struct json_t;

struct kedge_trainer_terms {
    struct kedge_id name;
    char *command[KEDGE_TRAINER_ARGS_MAX + 1];    /* ends with NULL; owned */
    char *environment[KEDGE_TRAINER_ENV_MAX + 1]; /* "NAME=value", ends with NULL; owned */
    uint64_t seconds_max;                         /* of one task; 0: the policy's train_seconds_max */
    uint64_t memory_max;                          /* bytes of address space; 0: the policy's memory_max */
    uint64_t cpu_seconds_max;                     /* of the process, 0: none */
    uint64_t file_bytes_max;                      /* of the longest file that it writes, 0: none */
    uint64_t files_max;                           /* open files */
    uint64_t processes_max;                       /* processes and threads at once, 0: no bound */
    bool network;                                 /* may it use the network? */
    bool gpu;                                     /* does it use the GPU? Then it counts for gpu_at_once */
    bool sandbox_required; /* is it not started where the kernel permits no namespaces? */
};

struct kedge_trainers {
    uint32_t count;
    struct kedge_trainer_terms *list; /* owned */
};

/* v: the value of "trainers", NULL for none; where: begins the messages. KEDGE_E_FORMAT names the trainer and
 * the key, KEDGE_E_NOMEM. Free with kedge_trainers_deinit. */
KEDGE_NODISCARD int kedge_trainers_parse(const struct json_t *v, const char *where,
                                         struct kedge_trainers *ret, struct kedge_diag *reterr);
void kedge_trainers_deinit(struct kedge_trainers *t);
/* NULL: the owner has bound none to that name. */
const struct kedge_trainer_terms *kedge_trainers_find(const struct kedge_trainers *t,
                                                      const struct kedge_id *name);

#endif
