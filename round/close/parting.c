/* Clustered federated learning (CFL): groups are cut when their updates pull apart. Lists say whose sites go
 * on as a group of their own; both parts begin with the model of the whole group. */
#include "common/base/mem.h"
#include "common/base/try.h"
#include "round/close/grouping.h"
#include "round/split.h"

/* The rows of the lists say which updates are in the part that is cut off (`to`), so a party that reads the
 * record needs no vector to know who moved. Sites that sent nothing stay with part 0. */
static void cut(struct kedge_close *c, const uint32_t *place, const uint32_t *part, size_t count,
                uint32_t from)
{
    struct kedge_round_result *r = c->result;
    const uint32_t to = r->groups++;
    kedgei_copy_group(r, from, to);
    r->split_of[to] = from + 1;
    for (size_t i = 0; i < count; i++) {
        struct kedge_close_input *in = &c->inputs[place[i]];
        if (part[i] == 1) {
            in->to = to;
            kedgei_assign(c, in->site, to);
        }
    }
}

/* Groups that this close cuts off are not looked at again: their updates have just been divided. The loop
 * ends by the number of groups at its beginning, and while there is room for another one. */
static int part_groups(struct kedge_close *c, struct kedgei_members *m, uint32_t *place, uint32_t *part)
{
    struct kedge_round_result *r = c->result;
    const uint32_t groups = r->groups, most = kedge_job_spec_groups_most(c->spec);
    for (uint32_t g = 0; g < groups && r->groups < most; g++) {
        bool is_cut = false;
        m->count = 0;
        m->lacks = false;
        for (size_t i = 0; i < c->input_count; i++) {
            if (!c->inputs[i].left_out && c->inputs[i].group == g) {
                m->lacks = m->lacks || c->inputs[i].is_gone;
                place[m->count] = (uint32_t)i;
                m->files[m->count++] = c->inputs[i].file;
            }
        }
        KEDGE_TRY(kedgei_cut_by_lengths(c, g, m, part, &is_cut));
        if (is_cut) {
            cut(c, place, part, m->count, g);
        }
    }
    return KEDGE_OK;
}

static int close_parting(struct kedge_close *c)
{
    struct kedgei_members members;
    if (!kedge_compute_split_is_open(c->spec, c->result->round)) {
        return KEDGE_OK;
    }
    uint32_t *place = kedge_mem_new(c->input_count + 1, sizeof *place),
             *part = kedge_mem_new(c->input_count + 1, sizeof *part);
    int err = kedgei_members_init(&members, c->input_count);
    if (!place || !part) {
        err = KEDGE_E_NOMEM;
    }
    if (!err) {
        err = kedgei_assignments(c, c->input_count);
    }
    if (!err) {
        err = part_groups(c, &members, place, part);
    }
    kedgei_members_deinit(&members);
    kedge_mem_free(place);
    kedge_mem_free(part);
    return err;
}

const struct kedgei_grouping kedgei_parting = {.close = close_parting, .marks_inputs = true};
