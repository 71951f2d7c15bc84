/* Jobs whose data have shifted since the site got its group: told in every poll until a pre-training that was
 * done since is acknowledged. What was trained before the shift answers nothing. */
#include <string.h>

#include "client/core/core.h"

static struct kedge_site_shift *find(struct kedge_site *s, const struct kedge_id *job)
{
    for (uint32_t i = 0; i < s->memory.shift_count; i++) {
        if (kedge_id_eq(&s->memory.shifts[i].job, job)) {
            return &s->memory.shifts[i];
        }
    }
    return NULL;
}

static void forget(struct kedge_site *s, uint32_t at)
{
    struct kedge_site_memory *m = &s->memory;
    KEDGE_ASSERT(at < m->shift_count);
    m->shift_count--;
    memmove(m->shifts + at, m->shifts + at + 1, (m->shift_count - at) * sizeof m->shifts[0]);
}

/* A shift has two steps, so that a pre-training that was begun too early does not count. `answered` is set
 * when a pre-training of that job ends (what it trained on are the data after the shift) and the row goes
 * when that result has its receipt; if the result is refused or closed, the row is told again. A shift that
 * is noticed while an answer is under way sets it back: the data have moved once more. Of more than four jobs
 * the oldest row goes: the host notices the shift again with that job's next training. */
void kedgei_site_shifted(struct kedge_site *s, const struct kedge_id *job)
{
    struct kedge_site_memory *m = &s->memory;
    struct kedge_site_shift *shift = find(s, job);
    KEDGE_ASSERT(job->s[0] != '\0');
    if (shift && !shift->answered) {
        return;
    }
    if (shift) {
        shift->answered = false; /* and once more, after the pre-training */
    } else {
        if (m->shift_count == KEDGE_SITE_SHIFTS_MAX) {
            forget(s, 0);
        }
        m->shifts[m->shift_count++] = (struct kedge_site_shift){.job = *job};
    }
    kedgei_site_persist(s);
}

void kedgei_site_shift_tell(struct kedge_site *s, struct kedge_site_effect *poll)
{
    const struct kedge_site_memory *m = &s->memory;
    poll->shifted_count = 0;
    for (uint32_t i = 0; i < m->shift_count; i++) {
        if (!m->shifts[i].answered) {
            poll->shifted[poll->shifted_count++] = m->shifts[i].job;
        }
    }
}

void kedgei_site_shift_answered(struct kedge_site *s, const struct kedge_site_result *result)
{
    struct kedge_site_shift *shift = find(s, &result->job);
    if (shift && result->kind == KEDGE_SITE_PRETRAIN) {
        shift->answered = true;
    }
}

void kedgei_site_shift_settle(struct kedge_site *s, const struct kedge_site_result *result, bool done)
{
    struct kedge_site_shift *shift = find(s, &result->job);
    if (!shift || !shift->answered || result->kind != KEDGE_SITE_PRETRAIN) {
        return;
    }
    if (done && !MUTANT(MUTANT_SITE_SHIFT_FOR_GOOD)) {
        forget(s, (uint32_t)(shift - s->memory.shifts));
    } else {
        shift->answered = false;
    }
}

bool kedgei_site_shifts_are_valid(const struct kedge_site *s)
{
    const struct kedge_site_memory *m = &s->memory;
    for (uint32_t i = 0; i < m->shift_count && i < KEDGE_SITE_SHIFTS_MAX; i++) {
        bool fine = !m->shifts[i].answered;
        for (uint32_t r = 0; r < m->result_count && !fine; r++) {
            fine = m->results[r].kind == KEDGE_SITE_PRETRAIN
                   && kedge_id_eq(&m->results[r].job, &m->shifts[i].job);
        }
        if (!fine || m->shifts[i].job.s[0] == '\0') {
            return false;
        }
    }
    return m->shift_count <= KEDGE_SITE_SHIFTS_MAX;
}
