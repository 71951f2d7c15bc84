#include "grouping/halves.h"

#include <math.h>
#include <stdbool.h>

#include "common/base/mem.h"

enum { AXIS_STEPS = 6, MOVES_MOST = 16 };

/* The cosines less the means of their rows and columns: what tells directions apart, without what all have in
 * common. */
static void centre(const double *cosine, const double *weight, size_t n, double *mean, double *out)
{
    double all = 0, of_all = 0;
    for (size_t i = 0; i < n; i++) {
        of_all += weight[i];
    }
    for (size_t i = 0; i < n; i++) {
        mean[i] = 0;
        for (size_t k = 0; k < n; k++) {
            mean[i] += weight[k] * cosine[i * n + k];
        }
        mean[i] /= of_all;
        all += weight[i] * mean[i];
    }
    all /= of_all;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n; k++) {
            out[i * n + k] = ((cosine[i * n + k] - mean[i]) - mean[k]) + all;
        }
    }
}

/* A few steps of the power method, from the row that is the furthest from the mean. Few, because of three
 * kinds that are alike far apart the principal axis is none in particular and may go through the middle of
 * one: an axis that is still near the furthest row does not. False: all rows are the mean. */
static bool find_axis(const double *centred, const double *weight, size_t n, double *axis, double *next)
{
    size_t furthest = 0;
    for (size_t i = 1; i < n; i++) {
        furthest = centred[i * n + i] > centred[furthest * n + furthest] ? i : furthest;
    }
    for (size_t i = 0; i < n; i++) {
        axis[i] = centred[furthest * n + i];
    }
    for (int step = 0; step < AXIS_STEPS; step++) {
        double square = 0;
        for (size_t i = 0; i < n; i++) {
            next[i] = 0;
            for (size_t k = 0; k < n; k++) {
                next[i] += centred[i * n + k] * (weight[k] * axis[k]);
            }
            square += next[i] * next[i];
        }
        if (!(square > 0)) {
            return false;
        }
        const double length = sqrt(square);
        for (size_t i = 0; i < n; i++) {
            axis[i] = next[i] / length;
        }
    }
    return true;
}

/* Sums of the cosines within each part, and of each row to each part. */
static void add_up(const double *cosine, const double *weight, size_t n, const uint32_t *part, double *to,
                   double within[2])
{
    within[0] = within[1] = 0;
    for (size_t i = 0; i < n; i++) {
        to[2 * i] = to[2 * i + 1] = 0;
        for (size_t k = 0; k < n; k++) {
            to[2 * i + part[k]] += weight[k] * cosine[i * n + k];
        }
        within[part[i]] += weight[i] * to[2 * i + part[i]];
    }
}

/* Each goes to the part whose mean direction it is nearer to, all at once, until nobody moves. The cosine to
 * a part's mean is the sum of the cosines to its members, divided by the length of their sum; what that
 * length is of both parts counts. A move that would empty a part is not made. */
static void move(const double *cosine, const double *weight, size_t n, uint32_t *part, double *to)
{
    bool has_moved = true;
    for (int move = 0; move < MOVES_MOST && has_moved; move++) {
        double within[2];
        size_t second = 0;
        has_moved = false;
        add_up(cosine, weight, n, part, to, within);
        if (!(within[0] > 0) || !(within[1] > 0)) {
            return; /* a part without a direction draws nobody */
        }
        const double length[2] = {sqrt(within[0]), sqrt(within[1])};
        for (size_t i = 0; i < n; i++) {
            second += to[2 * i + 1] / length[1] > to[2 * i] / length[0];
        }
        for (size_t i = 0; i < n && second > 0 && second < n; i++) {
            const uint32_t nearer = to[2 * i + 1] / length[1] > to[2 * i] / length[0];
            has_moved = has_moved || nearer != part[i];
            part[i] = nearer;
        }
    }
}

int kedge_halves(const double *cosine, const double *weight, size_t count, uint32_t *part, size_t *ret_second)
{
    double *centred = kedge_mem_new(count * count + 1, sizeof *centred);
    double *rows = kedge_mem_new(2 * count + 1, sizeof *rows);
    if (!centred || !rows) {
        kedge_mem_free(centred);
        kedge_mem_free(rows);
        return KEDGE_E_NOMEM;
    }
    *ret_second = 0;
    for (size_t i = 0; i < count; i++) {
        part[i] = 0;
    }
    if (count > 1) {
        centre(cosine, weight, count, rows, centred);
    }
    if (count > 1 && find_axis(centred, weight, count, rows, rows + count)) {
        for (size_t i = 0; i < count; i++) {
            part[i] = rows[i] < 0;
        }
        move(cosine, weight, count, part, rows);
        const uint32_t first = part[0];
        for (size_t i = 0; i < count; i++) {
            part[i] = part[i] != first;
            *ret_second += part[i];
        }
    }
    kedge_mem_free(centred);
    kedge_mem_free(rows);
    return KEDGE_OK;
}
