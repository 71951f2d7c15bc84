/* What it may cost. The budget counts, for transactions that are not mined, all that they could cost; for
 * mined ones the same from the hour in which that was seen, for 24 hours. So whatever is mined in any 24
 * hours was counted when the last transaction among it was signed: as spent, as under way, or as the new one.
 * A block that was reorganised away has cost nothing: its transaction counts as under way again. */
#include "chain/anchor/evm_anchor_impl.h"

#include <stdio.h>
#include <string.h>

enum { HOUR_MS = 3600 * 1000 };

/* Sums and products that do not fit count as the largest number, never as what is left after wrapping around:
 * beyond any budget, so the anchor waits. */
static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t multiply(uint64_t a, uint64_t b)
{
    return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

/* 12.5 % more, rounded up: what every client accepts as a replacement (geth wants 10 %). */
static uint64_t evm_bump(uint64_t fee)
{
    return add(fee, fee / 8 + 1);
}

/* The most that the flight can cost: its dearest attempt mined. */
static uint64_t evm_worst(const struct kedge_evm_anchor *a, const struct kedge_evm_flight *f)
{
    uint64_t fee = f->attempt_count > 0 ? f->attempts[f->attempt_count - 1].max_fee : 0;
    return multiply(fee, a->config.gas);
}

uint64_t kedgei_evm_committed(const struct kedge_evm_anchor *a)
{
    uint64_t sum = 0, hour = a->now_ms / HOUR_MS;
    for (size_t i = 0; i < KEDGE_EVM_HOURS; i++) {
        if (a->state.spent[i].hour + 24 >= hour) { /* the hour that the window cuts counts whole */
            sum = add(sum, a->state.spent[i].wei);
        }
    }
    for (uint32_t i = 0; i < a->state.flight_count; i++) {
        if (a->state.flights[i].charged_hour == 0) {
            sum = add(sum, evm_worst(a, &a->state.flights[i]));
        }
    }
    return sum;
}

/* By hours, so that a window of 24 hours needs a fixed room in the state and no list of payments.
 * KEDGE_EVM_HOURS hours have room at once, and the oldest is always out of the window when its place is
 * taken. */
void kedgei_evm_charge(struct kedge_evm_anchor *a, struct kedge_evm_flight *f)
{
    uint64_t hour = a->now_ms / HOUR_MS;
    size_t at = 0;
    for (size_t i = 0; i < KEDGE_EVM_HOURS; i++) { /* this hour's, else the oldest */
        if (a->state.spent[i].hour == hour) {
            at = i;
            break;
        }
        at = a->state.spent[i].hour < a->state.spent[at].hour ? i : at;
    }
    if (a->state.spent[at].hour != hour) {
        a->state.spent[at].hour = hour;
        a->state.spent[at].wei = 0;
    }
    a->state.spent[at].wei = add(a->state.spent[at].wei, evm_worst(a, f));
    f->charged_hour = hour;
}

void kedgei_evm_refund(struct kedge_evm_anchor *a, struct kedge_evm_flight *f)
{
    uint64_t cost = evm_worst(a, f);
    for (size_t i = 0; f->charged_hour != 0 && i < KEDGE_EVM_HOURS; i++) {
        if (a->state.spent[i].hour == f->charged_hour) {
            a->state.spent[i].wei -= cost < a->state.spent[i].wei ? cost : a->state.spent[i].wei;
        }
    }
    f->charged_hour = 0;
}

static bool wait_for(struct kedge_evm_anchor *a, const char *format, uint64_t v, uint64_t limit)
    __attribute__((format(printf, 2, 0)));
static bool wait_for(struct kedge_evm_anchor *a, const char *format, uint64_t v, uint64_t limit)
{
    snprintf(a->waits_for, sizeof a->waits_for, format, (unsigned long long)v, (unsigned long long)limit);
    return false;
}

/* EIP-1559: a block's base fee is burnt and rises by at most an eighth per block, so twice the present
 * one lasts for about six full blocks. A replacement must offer a part more than the last attempt, in
 * both fees, or nodes refuse it. The tip is bounded by the operator's largest fee before anything is
 * added to it, so a node that tells an absurd price only makes the anchor wait. For the budget, a
 * replacement frees what it replaces, for only one of the two can be mined. */
bool kedgei_evm_choose_fees(struct kedge_evm_anchor *a, const struct kedge_evm_answer *market,
                            const struct kedge_evm_flight *old)
{
    const struct kedge_evm_attempt *last = old ? &old->attempts[old->attempt_count - 1] : NULL;
    uint64_t least = last ? evm_bump(last->max_fee) : 1;
    uint64_t tip = market->priority_fee < a->config.max_fee ? market->priority_fee : a->config.max_fee;
    if (last && tip < evm_bump(last->priority_fee)) {
        tip = evm_bump(last->priority_fee);
    }
    uint64_t needed = add(market->base_fee, tip), fee = add(multiply(2, market->base_fee), tip);
    fee = fee < a->config.max_fee ? fee : a->config.max_fee;
    fee = fee < least ? least : fee;
    if (needed > a->config.max_fee || fee > a->config.max_fee || tip > fee) {
        return wait_for(a, "fees: the chain wants %llu wei per gas, the limit is %llu (maxFeePerGas)",
                        needed > fee ? needed : fee, a->config.max_fee);
    }
    uint64_t before = kedgei_evm_committed(a), cost = multiply(fee, a->config.gas);
    uint64_t freed = old && old->charged_hour == 0 ? evm_worst(a, old) : 0;
    if (cost == UINT64_MAX || add(before - freed, cost) > a->config.daily_budget) {
        return wait_for(a,
                        "the budget: this would commit %llu wei in 24 hours, the limit is %llu (dailyBudget)",
                        add(before - freed, cost), a->config.daily_budget);
    }
    a->fee = fee;
    a->priority = tip;
    return true;
}

/* ---- a node's words ---- */

/* JSON-RPC has no codes for why a transaction is refused, only words, which differ from program to program:
 * looked for anywhere in the text, without regard to case. */
static bool says(const char *text, const char *word)
{
    size_t len = strlen(word);
    for (; *text; text++) {
        size_t i = 0;
        while (i < len && text[i]) {
            char c = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] - 'A' + 'a') : text[i];
            if (c != word[i]) {
                break;
            }
            i++;
        }
        if (i == len) {
            return true;
        }
    }
    return false;
}

/* In this order: "replacement transaction underpriced" comes before plain words in it. Words of geth, Erigon,
 * Nethermind, Besu, Reth and anvil. */
static const struct {
    const char *word;
    enum kedge_evm_refusal means;
} words[] = {
    {"already known", KEDGE_EVM_REFUSAL_KNOWN},
    {"known transaction", KEDGE_EVM_REFUSAL_KNOWN},
    {"alreadyknown", KEDGE_EVM_REFUSAL_KNOWN},
    {"already imported", KEDGE_EVM_REFUSAL_KNOWN},
    {"already in pool", KEDGE_EVM_REFUSAL_KNOWN},
    {"nonce too low", KEDGE_EVM_REFUSAL_NONCE_LOW},
    {"nonce_too_low", KEDGE_EVM_REFUSAL_NONCE_LOW},
    {"nonce is too low", KEDGE_EVM_REFUSAL_NONCE_LOW},
    {"oldnonce", KEDGE_EVM_REFUSAL_NONCE_LOW},
    {"chain id", KEDGE_EVM_REFUSAL_CHAIN},
    {"chainid", KEDGE_EVM_REFUSAL_CHAIN},
    {"underpriced", KEDGE_EVM_REFUSAL_UNDERPRICED},
    {"fee too low", KEDGE_EVM_REFUSAL_UNDERPRICED},
    {"feetoolow", KEDGE_EVM_REFUSAL_UNDERPRICED},
    {"less than block base fee", KEDGE_EVM_REFUSAL_UNDERPRICED},
    {"gas price too low", KEDGE_EVM_REFUSAL_UNDERPRICED},
    {"insufficient funds", KEDGE_EVM_REFUSAL_FUNDS},
    {"insufficientfunds", KEDGE_EVM_REFUSAL_FUNDS},
    {"upfront cost", KEDGE_EVM_REFUSAL_FUNDS},
};

enum kedge_evm_refusal kedge_evm_refusal_of(const char *text)
{
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (says(text, words[i].word)) {
            return words[i].means;
        }
    }
    return KEDGE_EVM_REFUSAL_OTHER;
}
