/* One statement of each kind with fixed values, and the keys that sign in tests. */
#ifndef KEDGE_TESTS_UNIT_CHAIN_SAMPLES_H
#define KEDGE_TESTS_UNIT_CHAIN_SAMPLES_H

#include "chain/statement/statement.h"

/* Key pair of the seed that is 32 times `byte`: public test keys. */
struct kedge_key_pair sample_pair(uint8_t byte);
struct kedge_hash sample_hash(uint8_t byte); /* 32 times `byte` */
struct kedge_id sample_id(const char *text);
/* Fills st, all of it; subjects that the kind derives are derived. */
struct kedge_st_position sample_position(void);
void sample_statement(enum kedge_statement_kind kind, struct kedge_statement *st);

#endif
