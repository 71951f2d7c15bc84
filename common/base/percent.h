/* Parts of data in hundredths, rounded alike by all who count them: sites, planner, auditors. */
#ifndef KEDGE_COMMON_BASE_PERCENT_H
#define KEDGE_COMMON_BASE_PERCENT_H

#include <stdint.h>

enum { KEDGE_PERCENT_ALL = 100 };

/* percent hundredths of count, rounded up: not 0 where neither is. percent: at most 100; count: below 2^57.
 */
static inline uint64_t kedge_percent_of(uint64_t count, uint32_t percent)
{
    return (count * percent + KEDGE_PERCENT_ALL - 1) / KEDGE_PERCENT_ALL;
}

#endif
