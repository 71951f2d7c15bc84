/* Signatures, envelopes, Merkle trees, receipts by chain/, the code that the daemons use: for some seeds,
 * because they cost a thousand times a keyed hash. The schedule of a run does not depend on which is used. */
#ifndef KEDGE_SIM_REAL_H
#define KEDGE_SIM_REAL_H

#include "sim/world.h"

void sim_real_sign_result(struct sim *w, uint32_t site, struct kedge_site_result *result, uint64_t weight);
KEDGE_NODISCARD int sim_real_open_result(struct sim *w, uint32_t site, struct kedge_site_result *result,
                                         uint64_t *weight);
void sim_real_sign_entry(struct sim *w, uint32_t tenant, struct sim_entry *entry);
void sim_real_entry_appended(struct sim *w, uint32_t tenant, const struct sim_entry *entry);
void sim_real_main_appended(struct sim *w, struct sim_main *entry);
uint32_t sim_real_prove_receipt(struct sim *w, uint32_t tenant, uint32_t leaf);
uint32_t sim_real_prove_closed(struct sim *w, uint32_t site, const struct kedge_site_result *result);
bool sim_real_check_proof(struct sim *w, uint32_t site, const struct sim_event *answer,
                          const struct kedge_site_digest *envelope);
void sim_real_check_end(struct sim *w);

#endif
