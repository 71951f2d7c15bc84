/* Which private keys a command used. Who has several, or whose key is not enrolled, sees at once in the error
 * which one it was. Any command: key files are noted where options are read (arguments.c). */
#ifndef KEDGE_CLI_KEYS_USED_H
#define KEDGE_CLI_KEYS_USED_H

#include "cli/cli.h"

/* An option that was given, if its value is a file with a private key that is used. */
void kedge_cli_note_key(struct kedge_cli *c, const char *option, const char *value);
/* A key's file that the command found itself, in the folder that this option names. Both texts are kept as
 * they are, so they must last as long as c. */
void kedge_cli_note_key_file(struct kedge_cli *c, const char *option, const char *file);
/* Of an error that may be about them: a list of {"option", "file", "public"}, which is the caller's; NULL:
 * there is nothing to say. "public" is missing where the file cannot be read. */
json_t *kedge_cli_keys_used(const struct kedge_cli *c, int err);

#endif
