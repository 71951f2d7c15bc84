/* What the tests of the kedge program share: a scratch folder, the program itself with its output. */
#ifndef KEDGE_TESTS_UNIT_CLI_SUPPORT_H
#define KEDGE_TESTS_UNIT_CLI_SUPPORT_H

#include <check.h>
#include <jansson.h>

#include "common/base/err.h"
#include "common/base/os/process.h"

enum { OUTPUT_MAX = 1 << 20, LINE_LEN = 4096 };

extern char scratch[128];
extern char out[OUTPUT_MAX + 1];     /* stdout of the last kedge() */
extern char err_out[OUTPUT_MAX + 1]; /* its stderr */

void make_scratch(void);
void remove_scratch(void);
/* scratch/name; one buffer of 64. */
const char *at(const char *name);
void put_file(const char *path, const char *text);
bool has_text(const char *path, const char *text);

extern const char
    *stderr_to; /* a terminal's path: stderr goes there, and err_out stays empty; NULL: caught */

/* Runs "kedge WORDS"; words are separated by one blank, so two in a row make an empty one. Returns the exit
 * code. */
int kedge(const char *format, ...) KEDGE_PRINTF(1, 2);
/* The same in two halves: what happens in between is the test's affair. */
void kedge_begin(struct kedge_process *p, const char *format, ...) KEDGE_PRINTF(2, 3);
int kedge_end(struct kedge_process *p);

/* The one object on stdout; its "data" or "error" (borrowed from *ret_root). */
json_t *data_of(json_t **ret_root);
json_t *error_of(json_t **ret_root);

#endif
