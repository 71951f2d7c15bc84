/* Profiles: how to reach a coordinator elsewhere, kept by `kedge login`, so that later commands need no
 * flags.
 *
 * A folder for each in $KEDGE_CONFIG, else $XDG_CONFIG_HOME/kedge, else ~/.config/kedge: profiles/NAME with
 * profile.json (0600: address, the coordinator's pinned key, the path of one's own key, never the key) and
 * trust.json (the keys of the logs, as they were at login or as --trust named them). */
#ifndef KEDGE_CLI_LOGIN_PROFILE_H
#define KEDGE_CLI_LOGIN_PROFILE_H

#include "cli/cli.h"

struct kedge_profile {
    struct kedge_id name;
    char connect[512];                      /* tls+tcp://HOST:PORT */
    char server_key[2 * KEDGE_KEY_LEN + 1]; /* hex */
    char key[KEDGE_PATH_MAX];               /* absolute */
    char trust[KEDGE_PATH_MAX];             /* absolute */
    bool is_tenants;                        /* the key is a tenant's admin's, and signs as such, too */
};

/* The folder of that profile, whether it is there or not. KEDGE_E_USAGE: nothing says where profiles are. */
KEDGE_NODISCARD int kedge_profile_folder(const struct kedge_id *name, char ret[KEDGE_PATH_MAX],
                                         struct kedge_diag *d);
/* KEDGE_E_NOT_FOUND: there is none; KEDGE_E_FORMAT and a text that names file and field. */
KEDGE_NODISCARD int kedge_profile_read(const struct kedge_id *name, struct kedge_profile *ret,
                                       struct kedge_diag *d);
/* Durably; the former one of this name is replaced. */
KEDGE_NODISCARD int kedge_profile_write(const struct kedge_profile *profile, struct kedge_diag *d);
/* From now on the profile in use has this key, a path. Nothing where no profile is in use. */
KEDGE_NODISCARD int kedge_profile_use_key(const struct kedge_cli *c, const char *path, struct kedge_diag *d);
/* Takes --profile and $KEDGE_PROFILE, after the other common options: where nothing else says which
 * coordinator is meant (--state, $KEDGE_STATE, --connect, a folder kedge-state in this place), that profile
 * does, or else the one named "default", if it is there. What the command line says comes before what the
 * profile says. One that cannot be read is told when the coordinator is asked. False after a usage error. */
bool kedge_profile_apply(struct kedge_cli *c, bool state_is_named);

#endif
