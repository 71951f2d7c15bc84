/* The long run for up to four devices, exactly: what the best way to play is worth, what a price is
 * worth, and which price is best. It is a Markov decision process whose state is the charge of all
 * devices; shares are drawn anew in each round.
 *
 * The sizes are small by design (256 states of each kind), so plain tables and repeated sweeps are
 * enough. */
#include <math.h>
#include <string.h>

#include "common/base/mem.h"
#include "coordinator/plan/impl.h"

enum { SWEEPS_MAX = 100000, PRICES = 64, CLOSER_PRICES = 16, CLOSER = 2, LEVELS = KEDGE_PLAN_LEVELS_MAX + 1 };

/* Charges, shares and energies of all devices are numbers whose digits are the devices'. What a round can
 * give is told by shares and energies alone; charge only forbids. */
struct program {
    const struct kedge_plan_setting *setting;
    uint32_t devices, charges, shares, energies;
    struct kedge_plan_value
        *best;     /* [shares][energies]: best data for it; reward -INFINITY where there is none */
    int32_t *left; /* [charges][energies]: the charge behind it, -1 without so much */
    double arrivals[LEVELS][LEVELS];
    double *worth, *scratch; /* [charges] */
    double rate_reward;
};

static uint32_t digit(uint32_t number, uint32_t base, uint32_t place)
{
    for (; place > 0; place--) {
        number /= base;
    }
    return number % base;
}

/* base to the power of devices; 0 when it is more than KEDGE_PLAN_STATES_MAX. */
static uint32_t count_states(uint32_t base, uint32_t devices)
{
    uint32_t count = 1;
    for (uint32_t i = 0; i < devices; i++) {
        count *= base;
        if (count > KEDGE_PLAN_STATES_MAX) {
            return 0;
        }
    }
    return count;
}

/* The most that a round gives when these shares spend these energies. A device that spends no
 * energy can only rest; one that spends some must find an amount of data that its share can train.
 * If one device has no way the combination is impossible, and its reward is minus infinity, which
 * no choice takes. */
static struct kedge_plan_value best_round(const struct program *p, uint32_t shares, uint32_t energies)
{
    const struct kedge_plan_setting *s = p->setting;
    struct kedgei_plan_option options[KEDGE_PLAN_EXACT_MAX * KEDGE_PLAN_LEVELS_MAX];
    double best[KEDGE_PLAN_EXACT_MAX];
    size_t picked[KEDGE_PLAN_EXACT_MAX], count = 0;
    struct kedge_plan_value value = {0};
    for (uint32_t i = 0; i < p->devices; i++) {
        const uint32_t energy = digit(energies, s->energy_levels + 1, i);
        const uint32_t share = digit(shares, s->share_levels + 1, i);
        const size_t before = count;
        if (energy == 0) {
            options[count++] = (struct kedgei_plan_option){.device = i};
        }
        for (uint32_t data = 1; energy > 0 && data <= s->data_levels; data++) {
            const double seconds = kedgei_plan_seconds(s, data, energy, share);
            if (seconds >= 0) {
                options[count++] = (struct kedgei_plan_option){.device = i,
                                                               .gain = s->reward_per_data * data
                                                                       - s->cost_per_energy * energy,
                                                               .seconds = seconds,
                                                               .data = data,
                                                               .energy = energy};
            }
        }
        if (count == before) {
            value.reward = -INFINITY;
            return value;
        }
    }
    value.reward = kedgei_plan_pick(options, count, p->devices, s->cost_per_second, best, picked);
    for (uint32_t i = 0; i < p->devices; i++) {
        const struct kedgei_plan_option *o = &options[picked[i]];
        value.data += o->data;
        value.energy += o->energy;
        value.seconds = fmax(value.seconds, o->seconds);
    }
    return value;
}

static int32_t charge_left(const struct program *p, uint32_t charges, uint32_t energies)
{
    const uint32_t base = p->setting->charge_levels + 1;
    uint32_t left = 0, place = 1;
    for (uint32_t i = 0; i < p->devices; i++, place *= base) {
        const uint32_t charge = digit(charges, base, i),
                       energy = digit(energies, p->setting->energy_levels + 1, i);
        if (energy > charge) {
            return -1;
        }
        left += (charge - energy) * place;
    }
    return (int32_t)left;
}

static void program_deinit(struct program *p)
{
    kedge_mem_free(p->best);
    kedge_mem_free(p->left);
    kedge_mem_free(p->worth);
    kedge_mem_free(p->scratch);
}

/* Everything that does not depend on worths is computed here once: the sweeps that follow only look
 * up. */
static int program_init(const struct kedge_plan_setting *setting, uint32_t devices, struct program *p)
{
    *p = (struct program){.setting = setting, .devices = devices};
    if (devices == 0 || devices > KEDGE_PLAN_EXACT_MAX) {
        return KEDGE_E_ARG;
    }
    p->charges = count_states(setting->charge_levels + 1, devices);
    p->shares = count_states(setting->share_levels + 1, devices);
    p->energies = count_states(setting->energy_levels + 1, devices);
    if (p->charges == 0 || p->shares == 0 || p->energies == 0) {
        return KEDGE_E_ARG;
    }
    p->best = kedge_mem_new((size_t)p->shares * p->energies, sizeof *p->best);
    p->left = kedge_mem_new((size_t)p->charges * p->energies, sizeof *p->left);
    p->worth = kedge_mem_new(p->charges, sizeof *p->worth);
    p->scratch = kedge_mem_new(p->charges, sizeof *p->scratch);
    if (!p->best || !p->left || !p->worth || !p->scratch) {
        return KEDGE_E_NOMEM;
    }
    for (uint32_t e = 0; e < p->energies; e++) {
        for (uint32_t s = 0; s < p->shares; s++) {
            p->best[s * p->energies + e] = best_round(p, s, e);
        }
        for (uint32_t c = 0; c < p->charges; c++) {
            p->left[c * p->energies + e] = charge_left(p, c, e);
        }
    }
    for (uint32_t left = 0; left <= setting->charge_levels; left++) {
        kedgei_plan_arrivals(setting, left, p->arrivals[left]);
    }
    (void)kedge_plan_rate(setting, &p->rate_reward);
    return KEDGE_OK;
}

/* One device's arrivals after the other: worths of charges become worths of what was left before (`forward`
 * false), or probabilities of what was left become those of charges. */
static void pass_arrivals(const struct program *p, double *values, bool forward)
{
    const uint32_t base = p->setting->charge_levels + 1;
    for (uint32_t place = 1; place < p->charges; place *= base) {
        for (uint32_t c = 0; c < p->charges; c++) {
            const uint32_t own = c / place % base, rest = c - own * place;
            double sum = 0;
            for (uint32_t other = 0; other < base; other++) {
                const double chance = forward ? p->arrivals[other][own] : p->arrivals[own][other];
                sum += chance * values[rest + other * place];
            }
            p->scratch[c] = sum;
        }
        memcpy(values, p->scratch, p->charges * sizeof *values);
    }
}

/* The energies that are best here, by the worth of what is left. Resting is always possible. */
static uint32_t choose(const struct program *p, uint32_t charges, uint32_t shares, double *ret_worth)
{
    const int32_t *left = p->left + (size_t)charges * p->energies;
    const struct kedge_plan_value *best = p->best + (size_t)shares * p->energies;
    uint32_t chosen = 0;
    *ret_worth = best[0].reward + p->worth[left[0]];
    for (uint32_t e = 1; e < p->energies; e++) {
        const double worth = left[e] < 0 ? -INFINITY : best[e].reward + p->worth[left[e]];
        if (worth > *ret_worth) {
            *ret_worth = worth;
            chosen = e;
        }
    }
    return chosen;
}

/* Relative value iteration (Puterman, "Markov Decision Processes", 8.5.5). Worths grow by the mean
 * reward with every sweep, so only their differences are kept, or they would grow without bound.
 * The smallest and the largest change of a sweep enclose the mean reward; when they agree their
 * middle is the answer. */
int kedge_plan_optimum(const struct kedge_plan_setting *setting, uint32_t count, double *ret_reward)
{
    struct program p;
    int err = program_init(setting, count, &p);
    double *value = err ? NULL : kedge_mem_new(p.charges, sizeof *value), span = INFINITY, low = 0, high = 0;
    if (!err) {
        err = value ? KEDGE_OK : KEDGE_E_NOMEM;
    }
    for (int sweep = 0; sweep < SWEEPS_MAX && !err && span > 1e-10; sweep++) {
        memcpy(p.worth, value, p.charges * sizeof *value);
        pass_arrivals(&p, p.worth, false);
        low = INFINITY;
        high = -INFINITY;
        for (uint32_t c = 0; c < p.charges; c++) {
            double sum = 0, worth;
            for (uint32_t s = 0; s < p.shares; s++) {
                (void)choose(&p, c, s, &worth);
                sum += worth;
            }
            const double change = sum / p.shares - value[c];
            value[c] += change;
            low = fmin(low, change);
            high = fmax(high, change);
        }
        span = high - low;
        for (uint32_t c = p.charges; c-- > 0;) { /* only differences matter */
            value[c] -= value[0];
        }
    }
    if (!err) {
        err = span > 1e-10 ? KEDGE_E_STATE : KEDGE_OK;
    }
    if (!err) {
        *ret_reward = (low + high) / 2 + p.rate_reward;
    }
    kedge_mem_free(value);
    program_deinit(&p);
    return err;
}

/* chances: a distribution over charges that stays the same from round to round when `moves` decides
 * what is left. Found by repeating the step until nothing changes; a setting for which it does not
 * settle is an error and no wrong number. */
static int settle(struct program *p, const double *moves, double *chances)
{
    double *next = kedge_mem_new(p->charges, sizeof *next), change = INFINITY;
    int err = next ? KEDGE_OK : KEDGE_E_NOMEM;
    for (uint32_t c = 0; c < p->charges; c++) {
        chances[c] = 1.0 / p->charges;
    }
    for (int turn = 0; turn < SWEEPS_MAX && !err && change > 1e-13; turn++) {
        memset(next, 0, p->charges * sizeof *next);
        for (uint32_t c = 0; c < p->charges; c++) {
            for (uint32_t left = 0; left < p->charges; left++) {
                next[left] += chances[c] * moves[(size_t)c * p->charges + left];
            }
        }
        pass_arrivals(p, next, true);
        change = 0;
        for (uint32_t c = 0; c < p->charges; c++) {
            change += fabs(next[c] - chances[c]);
        }
        memcpy(chances, next, p->charges * sizeof *next);
    }
    kedge_mem_free(next);
    return err ? err : change > 1e-13 ? KEDGE_E_STATE : KEDGE_OK;
}

/* moves, chances: scratch of charges squared and of charges. First the plan that follows from the
 * price fixes how charges move, then the distribution that these moves settle in weighs the
 * rewards: so the worth is exact for that plan. */
static int evaluate(struct program *p, double price, double *moves, double *chances,
                    struct kedge_plan_value *ret)
{
    const uint32_t base = p->setting->charge_levels + 1;
    struct kedge_plan_value sum = {.reward = p->rate_reward};
    double worth;
    for (uint32_t c = 0; c < p->charges; c++) {
        p->worth[c] = 0;
        for (uint32_t i = 0; i < p->devices; i++) {
            p->worth[c] += price * kedgei_plan_left(p->setting, digit(c, base, i));
        }
    }
    memset(moves, 0, (size_t)p->charges * p->charges * sizeof *moves);
    for (uint32_t c = 0; c < p->charges; c++) {
        for (uint32_t s = 0; s < p->shares; s++) {
            const uint32_t e = choose(p, c, s, &worth);
            moves[(size_t)c * p->charges + (uint32_t)p->left[(size_t)c * p->energies + e]] += 1.0 / p->shares;
        }
    }
    int err = settle(p, moves, chances);
    for (uint32_t c = 0; c < p->charges && !err; c++) {
        for (uint32_t s = 0; s < p->shares; s++) {
            const struct kedge_plan_value *v = &p->best[(size_t)s * p->energies + choose(p, c, s, &worth)];
            const double chance = chances[c] / p->shares;
            sum.reward += chance * v->reward;
            sum.data += chance * v->data;
            sum.energy += chance * v->energy;
            sum.seconds += chance * v->seconds;
        }
    }
    if (!err) {
        *ret = sum;
    }
    return err;
}

/* The best of evenly spaced prices, then of closer ones around it: worth jumps where a choice changes. */
static int search(struct program *p, double *moves, double *chances, double *ret_price,
                  struct kedge_plan_value *ret)
{
    double middle = p->setting->reward_per_data * p->setting->data_levels / 2, reach = middle, price = 0;
    int err = evaluate(p, 0, moves, chances, ret);
    for (int turn = 0; turn <= CLOSER && !err; turn++) {
        const int count = turn == 0 ? PRICES : CLOSER_PRICES;
        for (int i = 0; i <= count && !err; i++) {
            const double tried = fmax(0, middle - reach + 2 * reach * i / count);
            struct kedge_plan_value value;
            err = evaluate(p, tried, moves, chances, &value);
            if (!err && value.reward > ret->reward + 1e-9) {
                *ret = value;
                price = tried;
            }
        }
        middle = price;
        reach = 2 * reach / count;
    }
    *ret_price = price;
    return err;
}

static int with_scratch(const struct kedge_plan_setting *setting, uint32_t count, bool searched,
                        double *price, struct kedge_plan_value *ret_value)
{
    struct program p;
    int err = program_init(setting, count, &p);
    double *moves = err ? NULL : kedge_mem_new((size_t)p.charges * p.charges, sizeof *moves);
    double *chances = err ? NULL : kedge_mem_new(p.charges, sizeof *chances);
    if (!err) {
        err = moves && chances ? KEDGE_OK : KEDGE_E_NOMEM;
    }
    if (!err) {
        err = searched ? search(&p, moves, chances, price, ret_value)
                       : evaluate(&p, *price, moves, chances, ret_value);
    }
    kedge_mem_free(moves);
    kedge_mem_free(chances);
    program_deinit(&p);
    return err;
}

int kedge_plan_evaluate(const struct kedge_plan_setting *setting, uint32_t count, double price,
                        struct kedge_plan_value *ret_value)
{
    return with_scratch(setting, count, false, &price, ret_value);
}

int kedge_plan_price(const struct kedge_plan_setting *setting, uint32_t count, double *ret_price,
                     struct kedge_plan_value *ret_value)
{
    return with_scratch(setting, count, true, ret_price, ret_value);
}
