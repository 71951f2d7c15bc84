/* SCAFFOLD: gradient − c_k + c. The change of c_k travels with the update; scaffold.c has the server's part.
 */
#include "strategy/local.h"

const struct kedge_local kedge_local_scaffold = {.name = "scaffold", .variate = "control", .kept = "control"};
