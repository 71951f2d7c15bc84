/* What the kedge program tells about itself: commands, their arguments, and what somebody may have meant. */
#ifndef KEDGE_CLI_HELP_H
#define KEDGE_CLI_HELP_H

#include <stddef.h>

#include "cli/cli.h"

/* ---- commands.c ---- */
extern const struct kedge_command kedge_commands[];
extern const size_t kedge_command_count;

/* ---- help.c ---- */
/* All commands, or those of one noun (NULL: all), on stdout and exit code 0, in JSON as data. */
int kedge_cli_help(struct kedge_cli *c, const char *noun);
/* The usage of one command, likewise. */
int kedge_cli_command_help(struct kedge_cli *c, const struct kedge_command *command);
/* No command was named, or only a noun: lists on stderr what could be, and is a usage error. */
int kedge_cli_nothing(struct kedge_cli *c, const char *noun);
/* No such command: says what comes near. */
int kedge_cli_unknown(struct kedge_cli *c);

bool kedge_cli_is_noun(const char *word);
const struct kedge_command *kedge_cli_find(const char *noun, const char *verb);

#endif
