/* Closing a round of a job whose groups are cut when their updates pull apart (CFL): which updates' sites go
 * on as a group of their own. The lists say who; both parts begin with the model of the whole group. */
#include "chain/compute/split.h"

#include <string.h>

#include "common/base/mem.h"
#include "coordinator/daemon/close.h"
#include "coordinator/daemon/host.h"

static void cut(struct close_work *w, const uint32_t *place, const uint32_t *part, size_t count,
                uint32_t from)
{
    struct kedge_round_result *r = w->result;
    const uint32_t to = r->groups++;
    r->before[to] = r->before[from];
    r->aggregate[to] = r->aggregate[from];
    r->stepped[to] = r->stepped[from];
    r->after[to] = r->after[from];
    r->state_before[to] = r->state_before[from];
    r->state_after[to] = r->state_after[from];
    r->split_of[to] = from + 1;
    for (size_t i = 0; i < count; i++) {
        struct close_input *in = &w->inputs[place[i]];
        if (part[i] == 1) {
            in->to = to;
            r->assigned_sites[r->assigned_count] = in->site;
            r->assigned_groups[r->assigned_count++] = to;
        }
    }
}

static int split(struct close_work *w, uint32_t most)
{
    struct kedge_round_result *r = w->result;
    const uint32_t groups = r->groups;
    struct kedge_blob_at *files = kedge_mem_new(w->input_count + 1, sizeof *files);
    uint32_t *place = kedge_mem_new(w->input_count + 1, sizeof *place),
             *part = kedge_mem_new(w->input_count + 1, sizeof *part);
    r->assigned_sites = kedge_mem_new(w->input_count + 1, sizeof *r->assigned_sites);
    r->assigned_groups = kedge_mem_new(w->input_count + 1, sizeof *r->assigned_groups);
    bool has_memory = files && place && part && r->assigned_sites && r->assigned_groups;
    int err = has_memory ? KEDGE_OK : KEDGE_E_NOMEM;
    for (uint32_t g = 0; g < groups && r->groups < most && !err; g++) {
        size_t n = 0;
        bool is_cut = false;
        for (size_t i = 0; i < w->input_count; i++) {
            if (!w->inputs[i].left_out && w->inputs[i].group == g) {
                place[n] = (uint32_t)i;
                files[n++] = w->inputs[i].file;
            }
        }
        err = kedge_compute_split(&w->job->layout, &w->job->spec, files, n, part, &is_cut, &w->models.diag);
        if (!err && is_cut) {
            cut(w, place, part, n, g);
        }
    }
    kedge_mem_free(files);
    kedge_mem_free(place);
    kedge_mem_free(part);
    return err;
}

int kedgei_close_split(struct close_work *w)
{
    bool open = kedge_compute_split_is_open(&w->job->spec, w->result->round);
    return open ? split(w, kedge_job_spec_groups_most(&w->job->spec)) : KEDGE_OK;
}

void kedgei_close_note_moved(struct kedge_job *job, const struct close_work *w)
{
    for (size_t i = 0; i < w->input_count; i++) {
        if (w->inputs[i].to > 0) {
            memcpy(job->pretrain[w->inputs[i].site].b, w->inputs[i].in.update.b, KEDGE_HASH_LEN);
        }
    }
}
