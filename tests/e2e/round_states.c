/* What the record of a state folder folds to, up to the opening of every round of every job:
 *
 *      round_states STATE      prints "JOB ROUND DIGEST" (kedge_round_state_digest), a line each
 *
 * A coordinator logs what it had as it opened the round. Exit code 1: what a restart folds is another state.
 */
#include <inttypes.h>
#include <stdio.h>

#include "tests/fixtures/round_states.h"

static void put(void *arg, const struct fx_round_state *s)
{
    char hex[KEDGE_HASH_HEX_LEN + 1];
    bool is_same = kedge_hash_eq(&s->whole, &s->brief);
    *(int *)arg = is_same ? *(int *)arg : 1;
    kedge_hash_hex(&s->whole, hex);
    if (s->round != KEDGE_ROUND_NONE) {
        printf("%s %" PRIu32 " %s\n", s->spec->name.s, s->round, hex);
    }
}

int main(int argc, char **argv)
{
    int code = 0;
    if (argc != 2) {
        fprintf(stderr, "usage: round_states STATE\n");
        return 2;
    }
    fx_round_states(argv[1], put, &code);
    return code;
}
