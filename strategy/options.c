#include "strategy/options.h"

#include <math.h>
#include <string.h>

/* The list in options.h is the only one: struct, table and parser follow from it. */
static const struct kedge_strategy_option rows[] = {
#define ROW(name, least, largest, text) \
    {#name, least, largest, text, offsetof(struct kedge_strategy_options, name)},
    KEDGE_STRATEGY_OPTIONS(ROW)
#undef ROW
};

const struct kedge_strategy_option *kedge_strategy_option_at(size_t i)
{
    KEDGE_ASSERT(i < KEDGE_STRATEGY_OPTION_COUNT);
    return &rows[i];
}

const struct kedge_strategy_option *kedge_strategy_option_find(const char *name)
{
    for (size_t i = 0; i < KEDGE_STRATEGY_OPTION_COUNT; i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

int kedge_strategy_option_set(struct kedge_strategy_options *options, const struct kedge_strategy_option *row,
                              double value)
{
    if (!isfinite(value) || value < row->least || value > row->largest) {
        return KEDGE_E_ARG;
    }
    memcpy((char *)options + row->offset, &value, sizeof value);
    return KEDGE_OK;
}

double kedge_strategy_option_get(const struct kedge_strategy_options *options,
                                 const struct kedge_strategy_option *row)
{
    double value;
    memcpy(&value, (const char *)options + row->offset, sizeof value);
    return value;
}
