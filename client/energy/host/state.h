/* What of the machine's surroundings decides whether it may train: battery, charger, temperature. */
#ifndef KEDGE_CLIENT_ENERGY_HOST_STATE_H
#define KEDGE_CLIENT_ENERGY_HOST_STATE_H

#include "client/energy/budget.h"
#include "client/energy/host/meters.h"

void kedge_surroundings_see(const struct kedge_meters *m, struct kedge_surroundings *ret);

#endif
