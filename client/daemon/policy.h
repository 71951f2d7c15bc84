/* SITE/policy.json, the owner's policy: which jobs, with which data, trained by what. Strict JSON; unknown
 * keys are errors. Pure. */
#ifndef KEDGE_CLIENT_DAEMON_POLICY_H
#define KEDGE_CLIENT_DAEMON_POLICY_H

#include "client/daemon/admission.h"
#include "client/daemon/energy/policy_energy.h"
#include "client/daemon/idle.h"
#include "client/daemon/trainer/trainers.h"
#include "common/base/bytes.h"
#include "common/base/diag.h"
#include "common/base/text.h"
#include "job/job_spec.h"

enum { KEDGE_POLICY_FILE_MAX = 65536, KEDGE_POLICY_JOBS_MAX = 64, KEDGE_POLICY_PROXY_MAX = 255 };

struct json_t;

/* AUTO says no more than CUDA does: a device where there is one, else the processor. */
enum kedge_policy_device { KEDGE_POLICY_CPU, KEDGE_POLICY_CUDA, KEDGE_POLICY_AUTO };

struct kedge_site_policy {
    bool allow_all;
    bool tells_reasons; /* the coordinator hears in words why a task ended without a result */
    bool insecure;      /* permits plain tcp:// to loopback */
    uint32_t job_count;
    struct kedge_id jobs[KEDGE_POLICY_JOBS_MAX];
    struct json_t *data;                       /* name → binding; NULL: none */
    char *trainer[KEDGE_TRAINER_ARGS_MAX + 1]; /* ends with NULL; empty: the built-in one */
    struct kedge_trainers trainers;            /* the owner's own, for jobs with an external model */
    uint64_t model_bytes_max;                  /* the longest model and update that this site handles */
    struct kedge_energy_policy energy;
    char proxy[KEDGE_POLICY_PROXY_MAX + 1];            /* http://HOST:PORT or relay://HOST:PORT; "": none */
    char proxy_login_file[KEDGE_POLICY_PROXY_MAX + 1]; /* beside policy.json unless absolute; "": none */
    struct kedge_idle_rules idle;
    enum kedge_policy_device device;    /* of the built-in trainer */
    enum kedge_precision precision;     /* how far its device may round; jobs may want less rounding */
    uint32_t jobs_at_once, gpu_at_once; /* trainings; and of them so many on the GPU */
    uint32_t threads;                   /* of all trainings together */
    uint32_t train_seconds_max;
    uint32_t trainer_idle_seconds; /* a trainer is kept so long for the next task */
    uint32_t stop_seconds;         /* asked to end, a training may still take so long */
    uint64_t memory_max;           /* of one trainer, 0: no limit */
    uint64_t memory_all;           /* of all trainers together, 0: no limit */
    uint64_t witness_age_max_s; /* of the cosignatures that the trust file's witness policy demands; 0: any */
};

/* `where` begins the messages: the file's path. KEDGE_E_FORMAT names the key, KEDGE_E_TOO_LONG,
 * KEDGE_E_NOMEM. Free with kedge_policy_deinit. */
KEDGE_NODISCARD int kedge_policy_parse(struct kedge_view text, const char *where,
                                       struct kedge_site_policy *ret, struct kedge_diag *reterr);
/* What trainings share, and the part of one of them: threads, and bytes of address space of its trainer,
 * which has a limit of its own or 0; 0: no limit. */
struct kedge_admission_limits kedge_policy_limits(const struct kedge_site_policy *p);
uint32_t kedge_policy_threads(const struct kedge_site_policy *p);
uint64_t kedge_policy_memory(const struct kedge_site_policy *p, uint64_t own_max);
void kedge_policy_deinit(struct kedge_site_policy *p);
/* What a trainer is told of the job's data: the owner's binding, with the spec's "classes" where it has none,
 * and the spec's "standardize". learnt: of a job that learns its classes the names
 * (common/tensor/class_names.h); none before: then it is told to find them. The caller owns *ret
 * (json_decref). KEDGE_E_DENIED: no such data, another number of classes, or the owner does not let a job
 * learn them. */
KEDGE_NODISCARD int kedge_policy_binding(const struct kedge_site_policy *p, const struct kedge_job_spec *spec,
                                         const char *learnt, struct json_t **ret, struct kedge_diag *reterr);

/* What a request to the built-in trainer says of a job: "cpu", "cuda" or "auto"; the precision that rounds
 * least of what owner and job permit. */
const char *kedge_policy_device_name(enum kedge_policy_device device);
enum kedge_precision kedge_policy_precision(const struct kedge_site_policy *p, enum kedge_precision job);

#endif
