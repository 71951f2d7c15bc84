/* What every argument and option of the kedge program means, for "kedge COMMAND -h". */
#ifndef KEDGE_CLI_MEANINGS_H
#define KEDGE_CLI_MEANINGS_H

#include "cli/cli.h"

enum { KEDGE_CLI_WORD_LEN = 40, KEDGE_CLI_WORDS_MAX = 48 };

/* A word of a usage line: an argument (SPEC.json) or an option (--out) with its value (DIR; empty: a flag).
 */
struct kedge_cli_usage_word {
    char name[KEDGE_CLI_WORD_LEN], value[KEDGE_CLI_WORD_LEN];
};

/* Reads a usage line into its words, each once, in their order. Returns how many, at most
 * KEDGE_CLI_WORDS_MAX. */
size_t kedge_cli_usage_words(const char *usage, struct kedge_cli_usage_word *ret);
/* The meaning of a command's word: its own, else the one that all commands share. NULL: there is none. */
const char *kedge_cli_meaning(const struct kedge_command *command, const char *word);

#endif
