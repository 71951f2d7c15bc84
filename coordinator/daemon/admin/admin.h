/* What operators ask for, and devices that want to be enrolled. */
#ifndef KEDGE_COORDINATOR_DAEMON_ADMIN_ADMIN_H
#define KEDGE_COORDINATOR_DAEMON_ADMIN_ADMIN_H

#include "common/base/bytes.h"
#include "common/base/diag.h"
#include "common/net/server.h"
#include "common/wire/messages.h"

struct json_t;
struct kedge_host;
struct kedge_ended_job;
struct kedge_job;
struct kedge_job_record;
struct kedge_job_spec;
struct kedge_waiting_view;

/* ---- answers.c ---- */
/* Answers with {"…"} and steals `data`. */
void kedge_admin_ok(struct kedge_net_request *req, struct json_t *data);
void kedge_admin_error(struct kedge_net_request *req, int err, const struct kedge_diag *d);
/* The one or the other: the error where there is one, else `data`, which is stolen in both cases. */
void kedge_admin_answer(struct kedge_net_request *req, int err, const struct kedge_diag *d,
                        struct json_t *data);
/* The asker is the operator, or a tenant's admin, who is told of own sites only: they may read what sites say
 * of their troubles in words. */
bool kedge_admin_sees_texts(const struct kedge_host *h, const struct kedge_net_request *req);

/* ---- admin.c, and the verbs that it hands on ---- */
/* One request of an operator, who is one: dispatches to its verb, which answers. */
void kedge_host_admin(struct kedge_host *h, struct kedge_net_request *req, struct kedge_view json);
/* The verb of one who may ask it: what kedge_host_admin does after it has looked at roles. */
void kedge_admin_dispatch(struct kedge_host *h, struct kedge_net_request *req, const char *verb,
                          const struct json_t *args);
/* "status" for a tenant's admin: of the coordinator only what everybody who connects must know. */
void kedge_admin_tenant_status(struct kedge_host *h, struct kedge_net_request *req, uint32_t tenant);
/* "trust" for it: of tenants only its own. */
void kedge_admin_tenant_trust(struct kedge_host *h, struct kedge_net_request *req, uint32_t tenant);
/* key.*; false: another verb */
bool kedge_admin_keys(struct kedge_host *h, struct kedge_net_request *req, const char *verb,
                      const struct json_t *args);
/* tenant.*, site.*; job.* */
/* tenant.quota (operators): "tenant", and what changes of "sites", "jobs", "tokens", "statements_per_s",
 * "bytes_per_s", "suspended", "reason". tenant.show: quota and what is used of it. false: another verb. */
bool kedge_admin_quotas(struct kedge_host *h, struct kedge_net_request *req, const char *verb,
                        const struct json_t *args);
void kedge_admin_members(struct kedge_host *h, struct kedge_net_request *req, const char *verb,
                         const struct json_t *args);
void kedge_admin_jobs(struct kedge_host *h, struct kedge_net_request *req, const char *verb,
                      const struct json_t *args);

/* job.list: coordinator/daemon/admin/admin_job_list.c */
void kedge_admin_job_list(struct kedge_host *h, struct kedge_net_request *req, const struct json_t *args);
/* job.show, job.model: coordinator/daemon/admin/admin_job_views.c */
void kedge_admin_job_show(struct kedge_host *h, struct kedge_net_request *req, const struct json_t *args);
void kedge_admin_job_model(struct kedge_host *h, struct kedge_net_request *req, const struct json_t *args);
/* job.show for a tenant's admin, whose tenant is the job's: of sites only the admin's own are told. */
void kedge_admin_job_show_to(struct kedge_host *h, struct kedge_net_request *req, const struct json_t *args,
                             const struct kedge_public_key *for_admin);
/* What a list says of a job in the table. */
struct json_t *kedge_admin_job_summary(struct kedge_host *h, const struct kedge_job *job);
/* What it says of one that waits for a place. */
struct json_t *kedge_admin_waiting_summary(const struct kedge_job_record *record,
                                           const struct kedge_job_spec *spec,
                                           const struct kedge_waiting_view *view);
/* What it says of one that has ended. */
struct json_t *kedge_admin_ended_summary(const struct kedge_ended_job *job);
/* job.events */
void kedge_admin_job_events(struct kedge_host *h, struct kedge_net_request *req, const struct json_t *args);
/* job.spec, job.costs */
void kedge_admin_job_spec(struct kedge_host *h, struct kedge_net_request *req, const struct json_t *args);
void kedge_admin_job_costs(struct kedge_host *h, struct kedge_net_request *req, const struct json_t *args);
/* job.groups */
void kedge_admin_job_groups(struct kedge_host *h, struct kedge_net_request *req, const struct json_t *args);

/* site.token, site.pending, and a device that came with a token */
void kedge_admin_site_token(struct kedge_host *h, struct kedge_net_request *req, const struct json_t *args);
void kedge_admin_site_pending(struct kedge_host *h, struct kedge_net_request *req, const struct json_t *args);
void kedge_host_enroll(struct kedge_host *h, struct kedge_net_request *req,
                       const struct kedge_msg_enroll *msg);

/* event.list, event.own, event.record: coordinator/daemon/events/events_admin.c */
void kedge_admin_events(struct kedge_host *h, struct kedge_net_request *req, const char *verb,
                        const struct json_t *args);

/* Verbs about places in ledgers: ledger.position, ledger.receipt. False: it is none of them. */
bool kedge_admin_ledger(struct kedge_host *h, struct kedge_net_request *req, const char *verb,
                        const struct json_t *args);

#endif
