/* A coordinator that answers what a test wants, at the door of scratch/state: for what a real one would take
 * long to reach. */
#ifndef KEDGE_TESTS_UNIT_CLI_FAKE_H
#define KEDGE_TESTS_UNIT_CLI_FAKE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct fake {
    uint32_t rounds;       /* of the job "long", all closed */
    const char *end_state; /* its state once it was asked for `asked_until` times; "training" before */
    int asked_until;       /* negative: never */
    uint32_t jobs;         /* that the list has */
    bool stuck;            /* every page of rounds or jobs says to go on where it began */
    int refuse;            /* a kedge_err: every question is answered with it */
    const char *answer;    /* JSON for every question instead of the job; NULL: the job */
    atomic_int asked;      /* questions so far */
    atomic_uint last_from; /* "from_round" of the last one */
};

/* Opens the door; `f` must live until fake_close. */
void fake_open(struct fake *f);
void fake_close(void);

#endif
