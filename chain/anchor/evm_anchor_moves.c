/* What the parts of the state machine share: what is said, and the ways in which it stops or waits. */
#include <stdarg.h>
#include <stdio.h>

#include "chain/anchor/evm_anchor.h"
#include "chain/anchor/evm_anchor_impl.h"

void kedgei_evm_say(struct kedge_evm_anchor *a, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(a->said, sizeof a->said, format, ap);
    va_end(ap);
}

/* A stop is saved before it is reported: after a restart the machine must stop again, and not go on as if
 * nothing had been found. Only kedge_evm_anchor_adopt takes it back. */
void kedgei_evm_stop(struct kedge_evm_anchor *a, int err, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(a->state.stop_text, sizeof a->state.stop_text, format, ap);
    va_end(ap);
    a->state.stop_err = err;
    a->dirty = true;
    a->stage = KEDGE_EVM_AT_SAVE;
}

/* The newest point that was signed, whatever became of its transaction: the contract takes only last + 1, so
 * the next one counts on from here. */
const struct kedge_evm_point *kedgei_evm_tail(const struct kedge_evm_anchor *a)
{
    return a->state.flight_count > 0 ? &a->state.flights[a->state.flight_count - 1].point : &a->state.last;
}

/* The first flight that is not mined, or flight_count. Flights are in the order of their nonces, and the
 * chain mines an account's transactions in that order, so none after it is mined either. */
uint32_t kedgei_evm_unmined(const struct kedge_evm_anchor *a)
{
    uint32_t i = 0;
    while (i < a->state.flight_count && a->state.flights[i].phase >= KEDGE_EVM_MINED) {
        i++;
    }
    return i;
}

const char *kedge_evm_phase_name(enum kedge_evm_phase phase)
{
    static const char *const names[] = {"planned", "signed", "sent", "mined", "safe", "final"};
    return (unsigned)phase < sizeof names / sizeof names[0] ? names[phase] : "?";
}
