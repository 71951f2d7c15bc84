/* A coordinator that answers what a test wants, at the door of scratch/state: for what a real one would take
 * long to reach. */
#ifndef KEDGE_TESTS_UNIT_CLI_FAKE_H
#define KEDGE_TESTS_UNIT_CLI_FAKE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "crypto/sign.h"

/* What it shows when it is asked for the receipt of an entry. */
enum fake_receipt {
    FAKE_SHOWS_ANSWER,      /* what it answers to everything: no receipt */
    FAKE_SHOWS_RECEIPT,     /* of the envelope that it got last */
    FAKE_SHOWS_OTHER_KEY,   /* the same, signed by a key that nobody knows */
    FAKE_SHOWS_OTHER_LOG,   /* the same, as an entry of another log of the same key */
    FAKE_SHOWS_OTHER_ENTRY, /* a good receipt of another entry */
    FAKE_SHOWS_WRONG_ENTRY, /* a receipt of another entry beside the right one */
    FAKE_SHOWS_ERROR,
};

struct fake {
    uint32_t rounds;       /* of the job "long", all closed */
    const char *end_state; /* its state once it was asked for `asked_until` times; "training" before */
    int asked_until;       /* negative: never */
    uint32_t jobs;         /* that the list has */
    bool stuck;            /* every page of rounds or jobs says to go on where it began */
    int refuse;            /* a kedge_err: every question is answered with it */
    const char *answer;    /* JSON for every question instead of the job; NULL: the job */
    enum fake_receipt receipt;
    struct kedge_key_pair log_key; /* signs receipts */
    const char *origin;            /* of the log that they are of */
    char *envelope;                /* the last one that came; freed by fake_close */
    const char *other_entry;       /* FAKE_SHOWS_OTHER_ENTRY */
    const char *blob;              /* the content of whatever blob is asked for; NULL: there are none */
    atomic_int asked;              /* questions so far */
    atomic_uint last_from;         /* "from_round" of the last one */
};

/* Opens the door; `f` must live until fake_close. */
void fake_open(struct fake *f);
void fake_close(void);

#endif
