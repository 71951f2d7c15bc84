/* Random valid messages for property tests; every field is drawn by its own rule of messages.def. */
#ifndef KEDGE_TESTS_UNIT_WIRE_RANDOM_MSG_H
#define KEDGE_TESTS_UNIT_WIRE_RANDOM_MSG_H

#include "common/base/rng.h"
#include "common/wire/messages.h"

enum { RANDOM_MSG_TYPES = 27 };

/* A message of the type with that index in messages.def. Views point to static storage, valid until the
 * next call. */
struct kedge_msg random_msg(struct kedge_rng *rng, unsigned index);

#endif
