/* Openings of contacts (chain/statement/contact.h) as the command line names them. */
#ifndef KEDGE_CLI_SITES_CONTACT_H
#define KEDGE_CLI_SITES_CONTACT_H

#include "chain/statement/contact.h"
#include "cli/cli.h"

enum { KEDGE_CLI_CONTACTS_MAX = 64 };

struct kedge_cli_contacts {
    struct kedge_contact items[KEDGE_CLI_CONTACTS_MAX];
    size_t count;
};

/* All --contact OPENING of the command. False after a usage error. */
bool kedge_cli_contacts_take(struct kedge_cli *c, struct kedge_cli_contacts *ret);

#endif
