/* Closing a round of a job whose groups are cut when their updates pull apart (CFL): which updates' sites go
 * on as a group of their own. The lists say who; both parts begin with the model of the whole group. */
#include "round/split.h"

#include "common/base/mem.h"
#include "round/close/impl.h"

static void cut(struct kedge_close *c, const uint32_t *place, const uint32_t *part, size_t count,
                uint32_t from)
{
    struct kedge_round_result *r = c->result;
    const uint32_t to = r->groups++;
    r->before[to] = r->before[from];
    r->aggregate[to] = r->aggregate[from];
    r->stepped[to] = r->stepped[from];
    r->after[to] = r->after[from];
    r->state_before[to] = r->state_before[from];
    r->state_after[to] = r->state_after[from];
    r->split_of[to] = from + 1;
    for (size_t i = 0; i < count; i++) {
        struct kedge_close_input *in = &c->inputs[place[i]];
        if (part[i] == 1) {
            in->to = to;
            kedgei_close_assign(r, in->site, to);
        }
    }
}

static int split(struct kedge_close *c, uint32_t most)
{
    struct kedge_round_result *r = c->result;
    const uint32_t groups = r->groups;
    struct kedge_blob_at *files = kedge_mem_new(c->input_count + 1, sizeof *files);
    uint32_t *place = kedge_mem_new(c->input_count + 1, sizeof *place),
             *part = kedge_mem_new(c->input_count + 1, sizeof *part);
    int err = files && place && part ? kedgei_close_assignments(r, c->input_count) : KEDGE_E_NOMEM;
    for (uint32_t g = 0; g < groups && r->groups < most && !err; g++) {
        size_t n = 0;
        bool is_cut = false;
        for (size_t i = 0; i < c->input_count; i++) {
            if (!c->inputs[i].left_out && c->inputs[i].group == g) {
                place[n] = (uint32_t)i;
                files[n++] = c->inputs[i].file;
            }
        }
        err = kedge_compute_split(c->layout, c->spec, files, n, part, &is_cut, c->d);
        if (!err && is_cut) {
            cut(c, place, part, n, g);
        }
    }
    kedge_mem_free(files);
    kedge_mem_free(place);
    kedge_mem_free(part);
    return err;
}

int kedgei_close_split(struct kedge_close *c)
{
    bool open = kedge_compute_split_is_open(c->spec, c->result->round);
    return open ? split(c, kedge_job_spec_groups_most(c->spec)) : KEDGE_OK;
}
