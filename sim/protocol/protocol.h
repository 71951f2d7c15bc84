/* A learning simulation through the protocol: the coordinator's and the sites' own state machines under
 * virtual time (sim/), sites that train by the engine of kedge-train, rounds closed by the functions that
 * close those of jobs (round). What a job of the same spec, data and seed makes for real, this makes,
 * bit for bit: selection, groups, models. Device classes say how long work and transfers take; faults of the
 * protocol's world come when asked for. */
#ifndef KEDGE_SIM_PROTOCOL_PROTOCOL_H
#define KEDGE_SIM_PROTOCOL_PROTOCOL_H

#include "sim/learn/learn.h"

/* As kedge_learn_run, for every spec: the engine's own loop, the loop that draws as jobs do, or the protocol.
 * Where a spec goes through the protocol and host->scratch is a folder, job.json (the job that was simulated)
 * and record.jsonl (a line per closed round: kind, SHA-256 of models and directions, the group of every site)
 * are written there. KEDGE_E_FORMAT: the spec asks for something that no job does, which is named.
 * KEDGE_E_STATE: the job failed, or a rule of the protocol was broken. */
KEDGE_NODISCARD int kedge_protocol_run(const struct kedge_learn_spec *spec,
                                       const struct kedge_learn_host *host, struct kedge_diag *reterr);

/* The job that the spec stands for and its data, to be run for real: dir/job.json, and for every site
 * dir/sites/TENANT/SITE/train.npz, test.npz and data.json, the binding for "data" of its policy.json;
 * dir/sites.csv says which site is which client. dir is made. */
KEDGE_NODISCARD int kedge_protocol_export(const struct kedge_learn_spec *spec, const char *dir,
                                          uint32_t *ret_sites, struct kedge_diag *reterr);
/* Appends the job that the spec stands for, every key written out. */
KEDGE_NODISCARD int kedge_protocol_job(const struct kedge_learn_spec *spec, struct kedge_buf *ret,
                                       struct kedge_diag *reterr);

#endif
