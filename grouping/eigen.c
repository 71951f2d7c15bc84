/* Jacobi's method (Golub & Van Loan, Matrix Computations, 8.5): slower than others, but each step is a few
 * multiplications in a fixed order, with no library whose rounding an auditor could not repeat. Pairs (p,
 * q) row by row, p < q; a rotation that brings a[p][q] to zero is applied to rows, columns and vectors in
 * index order. Stops when the off-diagonal sum of squares is at most 1e-32 of the whole, checked before
 * each sweep. */
#include "grouping/eigen.h"

#include <math.h>
#include <stdbool.h>

#include "common/base/mem.h"
#include "common/base/try.h"

struct rotation {
    size_t p;
    size_t q;
    double c;
    double s;
    double t; /* s / c, to full precision */
};

static double sum_squares(const double *a, size_t n, bool diagonal)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = diagonal ? i : i + 1; j < n; j++) {
            double square = a[i * n + j] * a[i * n + j];
            sum += j == i ? square : 2.0 * square;
        }
    }
    return sum;
}

/* The smaller of the two angles that annihilate a[p][q] != 0. */
static struct rotation find_rotation(const double *a, size_t n, size_t p, size_t q)
{
    double theta = (a[q * n + q] - a[p * n + p]) / (2.0 * a[p * n + q]);
    double size = fabs(theta) + sqrt(theta * theta + 1.0);
    double t = theta < 0.0 ? -1.0 / size : 1.0 / size;
    double c = 1.0 / sqrt(t * t + 1.0);
    return (struct rotation){.p = p, .q = q, .c = c, .s = t * c, .t = t};
}

static void rotate_row(double *row_p, double *row_q, size_t n, const struct rotation *r)
{
    for (size_t k = 0; k < n; k++) {
        double x = row_p[k];
        double y = row_q[k];
        row_p[k] = r->c * x - r->s * y;
        row_q[k] = r->s * x + r->c * y;
    }
}

static void rotate(double *a, double *v, size_t n, const struct rotation *r)
{
    double *row_p = a + r->p * n;
    double *row_q = a + r->q * n;
    const double app = row_p[r->p];
    const double aqq = row_q[r->q];
    const double apq = row_p[r->q];
    rotate_row(row_p, row_q, n, r);
    row_p[r->p] = app - r->t * apq;
    row_q[r->q] = aqq + r->t * apq;
    row_p[r->q] = 0.0;
    row_q[r->p] = 0.0;
    for (size_t k = 0; k < n; k++) { /* the matrix stays symmetric to the bit */
        a[k * n + r->p] = row_p[k];
        a[k * n + r->q] = row_q[k];
    }
    rotate_row(v + r->p * n, v + r->q * n, n, r);
}

/* Jacobi's sweeps converge quadratically, so the bound on their number is never reached with finite input:
 * reaching it is a bug. */
static int diagonalise(double *a, double *v, size_t n, double total)
{
    const double small = 1e-32 * total;
    for (int sweep = 0; sweep < KEDGE_EIGEN_SWEEPS_MAX; sweep++) {
        if (sum_squares(a, n, false) <= small) {
            return KEDGE_OK;
        }
        for (size_t p = 0; p < n; p++) {
            for (size_t q = p + 1; q < n; q++) {
                if (a[p * n + q] != 0.0) {
                    struct rotation r = find_rotation(a, n, p, q);
                    rotate(a, v, n, &r);
                }
            }
        }
    }
    return KEDGE_E_BUG;
}

/* An eigenvector's sign is arbitrary: it is turned so that its largest component is positive, the first of
 * equals. */
static void write_vector(const double *from, size_t n, double *to)
{
    size_t top = 0;
    for (size_t k = 1; k < n; k++) {
        if (fabs(from[k]) > fabs(from[top])) {
            top = k;
        }
    }
    for (size_t k = 0; k < n; k++) {
        to[k] = from[top] < 0.0 ? -from[k] : from[k];
    }
}

/* Selection sort of the diagonal: the largest left, the first of equals. */
static void write_sorted(double *a, const double *v, size_t n, double *values, double *vectors)
{
    for (size_t i = 0; i < n; i++) {
        size_t best = n;
        for (size_t k = 0; k < n; k++) {
            if (!isnan(a[k * n + k]) && (best == n || a[k * n + k] > a[best * n + best])) {
                best = k;
            }
        }
        KEDGE_ASSERT(best < n);
        values[i] = a[best * n + best];
        write_vector(v + best * n, n, vectors + i * n);
        a[best * n + best] = (double)NAN; /* taken */
    }
}

int kedge_eigen_symmetric(double *matrix, size_t n, double *values, double *vectors)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t j = i + 1; j < n; j++) {
            matrix[j * n + i] = matrix[i * n + j];
        }
    }
    const double total = sum_squares(matrix, n, true);
    if (!isfinite(total)) {
        return KEDGE_E_NOT_FINITE;
    }
    double *v KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(n * n, sizeof *v);
    KEDGE_TRY_MEM(v);
    for (size_t i = 0; i < n; i++) {
        v[i * n + i] = 1.0;
    }
    KEDGE_TRY(diagonalise(matrix, v, n, total));
    write_sorted(matrix, v, n, values, vectors);
    return KEDGE_OK;
}
