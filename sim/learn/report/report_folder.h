/* The files of a run's folder. Inside of sim/learn; report_run.h says what they are. */
#ifndef KEDGE_SIM_LEARN_REPORT_REPORT_FOLDER_H
#define KEDGE_SIM_LEARN_REPORT_REPORT_FOLDER_H

#include "sim/learn/report/report.h"

struct kedgei_folder {
    const char *dir;
    int lock, jsonl, csv, sites; /* descriptors, −1: not open */
};

/* Makes the folder and takes its lock. */
KEDGE_NODISCARD int kedgei_folder_open(const char *dir, struct kedgei_folder *ret, struct kedge_diag *d);
void kedgei_folder_close(struct kedgei_folder *f);
/* state.bin into *bytes (kept alive by the caller) and *ret. KEDGE_E_NOT_FOUND when there is none. */
KEDGE_NODISCARD int kedgei_folder_load(const struct kedgei_folder *f, struct kedge_buf *bytes,
                                       struct kedge_learn_saved *ret, struct kedge_diag *d);
/* True when there is anything that a run would write over. */
bool kedgei_folder_is_used(const struct kedgei_folder *f);
/* Begins rounds.jsonl and rounds.csv with the rounds that there are. */
KEDGE_NODISCARD int kedgei_folder_begin(struct kedgei_folder *f, const struct kedge_learn_round *rounds,
                                        uint32_t count, struct kedge_diag *d);
KEDGE_NODISCARD int kedgei_folder_add(const struct kedgei_folder *f, const struct kedge_learn_round *round,
                                      struct kedge_diag *d);
/* Of each site: sites.csv with the first view of a run, then a line of sites.jsonl; with the last round
 * models/group-N.safetensors. */
KEDGE_NODISCARD int kedgei_folder_look(struct kedgei_folder *f, const struct kedge_learn_spec *spec,
                                       const struct kedge_learn_view *view, struct kedge_diag *d);
/* The files durable, then state.bin. */
KEDGE_NODISCARD int kedgei_folder_save(const struct kedgei_folder *f, const struct kedge_learn_saved *s,
                                       struct kedge_diag *d);
KEDGE_NODISCARD int kedgei_folder_put(const struct kedgei_folder *f, const char *name,
                                      struct kedge_view content, struct kedge_diag *d);

#endif
