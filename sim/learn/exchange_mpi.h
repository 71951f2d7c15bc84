/* A learning simulation over several machines by MPI: the exchange of kedge-sim-mpi. Built where OpenMPI is.
 */
#ifndef KEDGE_SIM_LEARN_EXCHANGE_MPI_H
#define KEDGE_SIM_LEARN_EXCHANGE_MPI_H

#include "sim/learn/learn.h"

/* Takes MPI's own arguments out of argv; the exchange belongs to MPI until kedge_learn_mpi_end. */
KEDGE_NODISCARD int kedge_learn_mpi_begin(int *argc, char ***argv, struct kedge_learn_exchange *ret,
                                          struct kedge_diag *reterr);
/* Together with all others when the exit code is 0; else ends every process with it, for the others may be
 * waiting. */
void kedge_learn_mpi_end(int code);

#endif
