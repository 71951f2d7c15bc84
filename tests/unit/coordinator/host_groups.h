/* What tests of groups do to a coordinator of HOST_GROUP_SITES sites of one tenant. */
#ifndef KEDGE_TESTS_UNIT_COORDINATOR_HOST_GROUPS_H
#define KEDGE_TESTS_UNIT_COORDINATOR_HOST_GROUPS_H

#include "tests/unit/coordinator/host.h"

enum { HOST_GROUP_SITES = 3, HOST_GROUP_NONE = -1 };

void host_load_job(struct host *h, uint32_t models);
void host_load_closed(struct host *h, uint32_t round, enum kedge_task_kind kind, uint32_t models,
                      bool regroup);
void host_load_open(struct host *h, uint32_t round, enum kedge_task_kind kind);
void host_load_group(struct host *h, uint32_t site, uint32_t round, uint32_t group, bool durable);
void host_load_accepted(struct host *h, uint32_t site, enum kedge_task_kind kind, uint32_t group,
                        uint8_t number);
void host_poll_shifted(struct host *h, uint32_t site, uint32_t request);
void host_assigned(struct host *h, uint32_t site, uint32_t group, int err);
void host_stated(struct host *h, uint32_t site, int err);
/* ROUND_COMPUTED with models first, first + 1 …; groups[site], HOST_GROUP_NONE: not listed. */
void host_closes(struct host *h, uint32_t round, uint32_t models, uint8_t first,
                 const int groups[HOST_GROUP_SITES], bool regroup);
bool host_may_read(const struct host *h, uint32_t site, uint8_t model);
void host_train_all(struct host *h, uint32_t round, const uint32_t groups[HOST_GROUP_SITES],
                    const uint8_t bases[HOST_GROUP_SITES], uint8_t number);

#endif
