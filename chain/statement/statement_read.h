/* Internal to chain: what the two readers of statements share. statement_scan.c takes Kedge's own spelling by
 * comparing fixed text, without a JSON tree; statement_decode.c takes every spelling and names what is wrong.
 * All that the first takes the second would take, with the same result. */
#ifndef KEDGE_CHAIN_STATEMENT_STATEMENT_READ_H
#define KEDGE_CHAIN_STATEMENT_STATEMENT_READ_H

#include "chain/statement/statement_fields.h"

/* The value of a field that is written as a JSON string; NULL, or what was expected. */
const char *kedgei_get_string(const struct kedgei_field *f, struct kedge_view text, void *p);
/* True when the payload is spelled as kedge_statement_encode spells it and in range, subject and ranges of
 * fields included; then *ret_st is the statement. False says nothing: ask the other reader. */
bool kedgei_statement_scan(struct kedge_view payload, struct kedge_statement *ret_st);

#endif
