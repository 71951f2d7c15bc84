/* Adapters over a frozen base (LoRA): what is shared is trained and travels, all other tensors stay as they
 * are in the model that the spec's "initial_model" names, which each site fetches once. */
#include "strategy/local.h"

const struct kedge_local kedge_local_adapters = {.name = "adapters", .has_base = true};
