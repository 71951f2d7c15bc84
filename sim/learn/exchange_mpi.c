#include "sim/learn/exchange_mpi.h"

#include <mpi.h>
#include <string.h>

enum { PIECE_MAX = 1 << 30 }; /* MPI counts in int */

static int rank_of, size_of;

/* Row by row: a broadcast by each rank, in pieces that its counts can hold. */
static int allgather(void *arg, const void *mine, uint64_t len, void *ret, uint64_t max, uint64_t *lens)
{
    uint8_t *rows = ret;
    (void)arg;
    if (len > max) {
        return KEDGE_E_TOO_LONG;
    }
    if (len > 0) {
        memmove(rows + (uint64_t)rank_of * max, mine, len); /* it may stand there already */
    }
    if (MPI_Allgather(&len, 1, MPI_UINT64_T, lens, 1, MPI_UINT64_T, MPI_COMM_WORLD) != MPI_SUCCESS) {
        return KEDGE_E_IO;
    }
    for (int r = 0; r < size_of; r++) {
        if (lens[r] > max) {
            return KEDGE_E_TOO_LONG;
        }
        for (uint64_t at = 0; at < lens[r]; at += PIECE_MAX) {
            int piece = lens[r] - at < PIECE_MAX ? (int)(lens[r] - at) : PIECE_MAX;
            if (MPI_Bcast(rows + (uint64_t)r * max + at, piece, MPI_BYTE, r, MPI_COMM_WORLD) != MPI_SUCCESS) {
                return KEDGE_E_IO;
            }
        }
    }
    return KEDGE_OK;
}

int kedge_learn_mpi_begin(int *argc, char ***argv, struct kedge_learn_exchange *ret,
                          struct kedge_diag *reterr)
{
    if (MPI_Init(argc, argv) != MPI_SUCCESS
        || MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN) != MPI_SUCCESS
        || MPI_Comm_rank(MPI_COMM_WORLD, &rank_of) != MPI_SUCCESS
        || MPI_Comm_size(MPI_COMM_WORLD, &size_of) != MPI_SUCCESS) {
        return kedge_diag_set(reterr, KEDGE_E_IO, "MPI does not start; run this by mpirun");
    }
    *ret = (struct kedge_learn_exchange){(uint32_t)rank_of, (uint32_t)size_of, NULL, allgather};
    return KEDGE_OK;
}

void kedge_learn_mpi_end(int code)
{
    if (code) {
        (void)MPI_Abort(MPI_COMM_WORLD, code);
    }
    (void)MPI_Finalize();
}
