/* Elastic jobs: their rounds take sites that have nothing to do for other jobs, as many as there are.
 *
 * A round of another job keeps those of its sites from which it still awaits an update. A job that waits for
 * them loses the time, while other sites stand idle: of two jobs that want four of six sites each, one would
 * wait for the other. An elastic job opens with the two that are left, and takes more as soon as there are
 * more. What it needs at least it gets all at once or not at all; while it waits it holds nobody, so no two
 * jobs can wait for each other.
 *
 * A site that takes several tasks at a time is never busy, and a job that an operator halts keeps none busy:
 * nobody is given its tasks, for as long as the operator likes. Who is free is asked in eligible.c; here is
 * what changes it. */
#include "coordinator/core/core.h"

void kedgei_free_changed(struct kedge_coord *c, uint32_t job, uint32_t site)
{
    for (uint32_t i = 0; i < c->limits.jobs_max && c->elastic_count > 0; i++) {
        struct job *o = &c->jobs[i];
        if (o->used && o->params.elastic && i != job) {
            kedgei_eligible_update(c, o, site);
            o->dirty = o->dirty || o->lacks_free;
        }
    }
}

void kedgei_free_begin(struct kedge_coord *c, uint32_t job)
{
    c->elastic_count += c->jobs[job].params.elastic;
}

void kedgei_free_all(struct kedge_coord *c)
{
    for (uint32_t i = 0; i < c->limits.jobs_max && c->elastic_count > 0; i++) {
        struct job *o = &c->jobs[i];
        if (o->used && o->params.elastic) {
            o->eligible_stale = o->dirty = true;
        }
    }
}

void kedgei_free_end(struct kedge_coord *c, uint32_t job)
{
    c->elastic_count -= c->jobs[job].params.elastic;
    kedgei_free_all(c);
}
