/* A learning simulation over several processes of this machine: forks that are joined to the first one by a
 * pair of sockets each. What the first gathers it hands to all, in the order of ranks, so every process sees
 * the same bytes. */
#ifndef KEDGE_SIM_LEARN_EXCHANGE_PROCESS_H
#define KEDGE_SIM_LEARN_EXCHANGE_PROCESS_H

#include "sim/learn/learn.h"

enum { KEDGE_LEARN_PROCESSES_MAX = 64 };

struct kedge_learn_processes;

/* Forks size − 1 children, 1 ≤ size ≤ KEDGE_LEARN_PROCESSES_MAX, and returns in all of them: the exchange's
 * rank tells which one this is, 0 the caller itself. Call before the process has threads. Children ignore
 * SIGINT and SIGTERM, which are rank 0's to answer, and die with it. KEDGE_E_NOMEM, KEDGE_E_IO. */
KEDGE_NODISCARD int kedge_learn_processes_start(uint32_t size, struct kedge_learn_processes **ret,
                                                struct kedge_diag *reterr);
const struct kedge_learn_exchange *kedge_learn_processes_exchange(const struct kedge_learn_processes *p);
/* Rank 0: closes the sockets, which ends children that are still at work at their next exchange, waits for
 * them and frees p. Any other rank: ends the process here, with status 0 when err is KEDGE_OK, else 1. */
void kedge_learn_processes_end(struct kedge_learn_processes *p, int err);

#endif
