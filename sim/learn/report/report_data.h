/* Where the data of a learning simulation are on this machine. */
#ifndef KEDGE_SIM_LEARN_REPORT_REPORT_DATA_H
#define KEDGE_SIM_LEARN_REPORT_REPORT_DATA_H

#include "common/base/os/file.h"
#include "sim/learn/learn.h"

/* "images" of a spec: a path, or what stands below $KEDGE_DATA or beside the program (../share/kedge/data),
 * such as the name of a data set. Nothing is looked for when the spec needs no files: out is "" then.
 * KEDGE_E_NOT_FOUND says how to get it. */
KEDGE_NODISCARD int kedge_learn_find_images(const struct kedge_learn_spec *spec, char out[KEDGE_PATH_MAX],
                                            struct kedge_diag *reterr);

#endif
