/* policy.json: "energy", what the owner says about meters, batches, power and budgets. Pure. */
#ifndef KEDGE_CLIENT_DAEMON_ENERGY_POLICY_ENERGY_H
#define KEDGE_CLIENT_DAEMON_ENERGY_POLICY_ENERGY_H

#include "client/energy/budget.h"
#include "client/energy/profile.h"
#include "common/base/diag.h"

enum { KEDGE_POLICY_ROOT_MAX = 255, KEDGE_POLICY_UUID_MAX = 95 };

/* What the client may change to save energy. */
enum kedge_policy_power { KEDGE_POWER_NONE, KEDGE_POWER_THREADS, KEDGE_POWER_CPU, KEDGE_POWER_GPU };

struct kedge_energy_policy {
    bool meters;                          /* false: nothing is read */
    char root[KEDGE_POLICY_ROOT_MAX + 1]; /* of the kernel's files: "/" */
    char nvml[KEDGE_POLICY_ROOT_MAX + 1]; /* library, "" none */
    char gpu[KEDGE_POLICY_UUID_MAX + 1];  /* UUID of the one that trains, "": all count */
    bool tells_battery; /* the coordinator is told whether it is low, enough or on mains; nothing else */
    bool share;         /* the trainer's share of what is above idle; else the whole device */
    bool batch_fixed;   /* no choice of batches, whatever jobs allow */
    enum kedge_policy_power power;
    enum kedge_profile_rule power_rule;
    double slowdown, power_least; /* watts or threads, 0: as low as the device goes */
    double idle_w, max_w;         /* the model's; 0: not given */
    double eta, explore;
    struct kedge_budget_rules rules;
};

struct json_t;
/* v NULL: the defaults. `where` begins the messages. KEDGE_E_FORMAT names the key. */
KEDGE_NODISCARD int kedge_policy_energy_read(const struct json_t *v, const char *where,
                                             struct kedge_energy_policy *ret, struct kedge_diag *reterr);

#endif
