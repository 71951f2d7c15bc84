/* Sample keys of a log and its witnesses, as ../shared/vectors/policy has them, and policies over them. */
#ifndef KEDGE_TESTS_UNIT_CHAIN_WITNESSES_H
#define KEDGE_TESTS_UNIT_CHAIN_WITNESSES_H

#include "chain/log/witness_policy.h"

#define WITNESSES_LOG "fl.example.org/tenant-a"

/* The pair from a seed of 32 such bytes. */
struct kedge_key_pair pair_of(uint8_t byte);
/* 0 is the log, seed 00…, type 01; n is witness fl.example.org/wN, seed of bytes 10+n, type 04. */
struct kedge_key_pair pair_of_witness(unsigned n);
struct kedge_vkey vkey_of(unsigned n);
/* "$N" becomes the vkey of witness N, "$0" the log's. Free by kedge_buf_deinit. */
struct kedge_buf expand(const char *template);
/* Parses, and checks that encoding gives a policy that encodes to itself. Free by kedge_witness_policy_free.
 */
struct kedge_witness_policy *policy_of(struct kedge_view text);
struct kedge_witness_policy *policy_from(const char *template);

#endif
