#include "common/base/trouble.h"

#include <stddef.h>

#include "common/base/err.h"

static const struct {
    const char *name, *text;
} rows[KEDGE_TROUBLE_COUNT] = {
    [KEDGE_TROUBLE_NONE] = {"none", "no trouble"},
    [KEDGE_TROUBLE_DATA_MISSING] = {"data-missing", "the job's data are not bound or not there"},
    [KEDGE_TROUBLE_DATA_BAD] = {"data-bad", "the data cannot be read"},
    [KEDGE_TROUBLE_DATA_SHAPE] = {"data-shape", "the data do not fit the job's model"},
    [KEDGE_TROUBLE_DIVERGED] = {"diverged", "training gave NaN, infinity or a value beyond the bound"},
    [KEDGE_TROUBLE_TRAINER_FAILED] =
        {"trainer-failed", "the trainer ended, did not answer, or did what the job does not allow"},
    [KEDGE_TROUBLE_TRAINER_REFUSED] = {"trainer-refused", "the trainer answered with an error"},
    [KEDGE_TROUBLE_DISK] = {"disk", "the disk is full or read-only"},
    [KEDGE_TROUBLE_MEMORY] = {"memory", "not enough memory"},
    [KEDGE_TROUBLE_ENERGY] = {"energy", "the site rests to save energy"},
    [KEDGE_TROUBLE_POLICY] = {"policy-refused", "the owner's policy does not allow it"},
    [KEDGE_TROUBLE_OTHER] = {"other", "the site's own log says what"},
};

const char *kedge_trouble_name(enum kedge_trouble trouble)
{
    return (size_t)trouble < KEDGE_TROUBLE_COUNT ? rows[trouble].name : "unknown";
}

const char *kedge_trouble_text(enum kedge_trouble trouble)
{
    return (size_t)trouble < KEDGE_TROUBLE_COUNT ? rows[trouble].text : "unknown";
}

/* From the site's own errors to the few reasons that it tells others. What does not fit any reason
 * is "other": the site's log has the details, and they stay there. */
enum kedge_trouble kedge_trouble_of(int err)
{
    switch (err) {
    case KEDGE_OK:
        return KEDGE_TROUBLE_NONE;
    case KEDGE_E_SHAPE:
        return KEDGE_TROUBLE_DATA_SHAPE;
    case KEDGE_E_BOUND:
    case KEDGE_E_NOT_FINITE:
    case KEDGE_E_OVERFLOW:
        return KEDGE_TROUBLE_DIVERGED;
    case KEDGE_E_TRAINER:
    case KEDGE_E_DEVICE:
        return KEDGE_TROUBLE_TRAINER_FAILED;
    case KEDGE_E_DISK_FULL:
        return KEDGE_TROUBLE_DISK;
    case KEDGE_E_NOMEM:
        return KEDGE_TROUBLE_MEMORY;
    case KEDGE_E_DENIED:
        return KEDGE_TROUBLE_POLICY;
    default:
        return KEDGE_TROUBLE_OTHER;
    }
}
