/* Ctrl-C while a command waits: it says how to go on and ends with the shell's code for the signal. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>

#include "cli/cli.h"
#include "common/base/os/clock.h"

enum { SIGNAL_EXIT = 128, NAP_MS = 50, WAIT_MAX_MS = 1000 };

/* All that a signal handler does: the command looks at it where it may end. */
static volatile sig_atomic_t caught;

static void note_signal(int number)
{
    caught = number;
}

/* SA_RESETHAND: the first Ctrl-C asks the command to end in order, the second one ends it as usual, for a
 * command that hangs must stay killable. */
void kedge_cli_catch_interrupt(void)
{
    struct sigaction action = {.sa_handler = note_signal, .sa_flags = (int)(SA_RESTART | SA_RESETHAND)};
    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

bool kedge_cli_interrupted(void)
{
    return caught != 0;
}

/* In naps, because a signal that arrives between the look at `caught` and a long sleep would be noticed only
 * at its end. */
bool kedge_cli_pause(uint32_t ms)
{
    for (uint32_t slept = 0; slept < ms && !caught; slept += NAP_MS) {
        kedge_os_sleep_ms(ms - slept < NAP_MS ? ms - slept : NAP_MS);
    }
    return caught != 0;
}

uint64_t kedge_cli_now_ms(void *arg)
{
    (void)arg;
    return kedge_os_unix_ms();
}

/* At most a second, whatever is asked for: the callers are loops that look at their deadline and at the
 * interrupt after each turn, and the clock may be set meanwhile. */
void kedge_cli_wait_until(void *arg, uint64_t ms)
{
    uint64_t now = kedge_cli_now_ms(arg);
    if (ms > now) {
        (void)kedge_cli_pause(ms - now < WAIT_MAX_MS ? (uint32_t)(ms - now) : WAIT_MAX_MS);
    }
}

/* 128 and the signal's number, as shells tell it. Each command says by the hint how to go on: what was
 * interrupted is never lost without a word. */
int kedge_cli_interrupt_end(struct kedge_cli *c, const char *what, const char *format, ...)
{
    struct kedge_diag d = {.hint = ""};
    va_list ap;
    (void)kedge_diag_set(&d, KEDGE_E_CANCELLED, "%s", what);
    va_start(ap, format);
    vsnprintf(d.hint, sizeof d.hint, format, ap);
    va_end(ap);
    return kedge_cli_fail_as(c, KEDGE_E_CANCELLED, &d, SIGNAL_EXIT + (caught ? (int)caught : SIGINT));
}
