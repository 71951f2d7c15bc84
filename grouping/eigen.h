/* Eigenvalues and vectors of a small symmetric matrix by cyclic Jacobi rotations, binary64 with + - * /
 * sqrt only, in one fixed order, so that a stranger's replay gives the same bits. Golub & Van Loan,
 * Matrix Computations, §8.5. Pure. */
#ifndef KEDGE_GROUPING_EIGEN_H
#define KEDGE_GROUPING_EIGEN_H

#include <stddef.h>

#include "common/base/err.h"

enum { KEDGE_EIGEN_SWEEPS_MAX = 40 }; /* convergence is quadratic: 6 … 12 sweeps in practice */

/* matrix: n * n, row by row; its upper triangle is read, the whole of it is destroyed. values[n],
 * descending, ties in the order of the diagonal that carried them. vectors[n * n]: row k is the unit
 * vector of values[k], its entry of largest magnitude (the first such) positive. KEDGE_E_NOT_FINITE: a
 * sum of squares is not finite (outputs not written); KEDGE_E_BUG: not converged after
 * KEDGE_EIGEN_SWEEPS_MAX sweeps; KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_eigen_symmetric(double *matrix, size_t n, double *values, double *vectors);

#endif
