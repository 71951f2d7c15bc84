/* What sites said of tasks that ended without a result: per job the last word of each site, with its reason,
 * since when, and the text that its owner lets it tell. In memory only: after a restart a site says it again
 * when it is asked again. The reasons decide in the core; here is what people are shown. Texts are for the
 * site's tenant and the operator: nothing of them goes into a statement. On the loop thread. */
#ifndef KEDGE_COORDINATOR_DAEMON_ROUNDS_TROUBLES_H
#define KEDGE_COORDINATOR_DAEMON_ROUNDS_TROUBLES_H

#include "common/wire/messages.h"
#include "coordinator/core/coord.h"
#include "crypto/sign.h"

struct json_t;
struct kedge_host;
struct kedge_job;

/* One row of a job that runs. */
struct kedge_trouble_row {
    uint32_t site;
    enum kedge_trouble why;
    uint32_t round, times;                 /* of the last task; how often in a row */
    uint64_t since_ms, last_ms;            /* unix time of the first and of the last */
    char text[KEDGE_TROUBLE_TEXT_MAX + 1]; /* plain, "": none is told */
};
struct kedge_troubles {
    struct kedge_trouble_row *rows;
    uint32_t count;
    size_t max;
};

/* The site has said so, now. */
void kedge_host_troubled(struct kedge_host *h, uint32_t site, struct kedge_job *job,
                         const struct kedge_msg_task_ended *m);
/* It has sent an update of the job, so there is no trouble any more. */
void kedge_host_trouble_over(struct kedge_host *h, uint32_t site, struct kedge_job *job);
void kedge_troubles_free(struct kedge_troubles *t);
const struct kedge_trouble_row *kedge_troubles_find(const struct kedge_troubles *t, uint32_t site);
/* Sites that have said that they cannot serve the job now. */
uint32_t kedge_host_troubles_unable(const struct kedge_host *h, const struct kedge_job *job);
/* Says in the log why the job halts or fails, and keeps it for job-closed: reasons and how many, no names. */
void kedge_host_troubles_tell(struct kedge_host *h, struct kedge_job *job);
/* For `job show`: whom the open round waits for, since when, and who is in trouble. for_admin: of sites of
 * the tenants whose admin key this is; NULL: of all. with_text: the texts of sites, too. */
void kedge_host_troubles_put(const struct kedge_host *h, const struct kedge_job *job,
                             const struct kedge_public_key *for_admin, bool with_text, struct json_t *o);
/* For `site list`: what it said of jobs that run, a list; the caller's. */
struct json_t *kedge_host_troubles_of(const struct kedge_host *h, uint32_t site, bool with_text);

#endif
