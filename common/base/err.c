/* The table of errors (err.def) as data. The class of an error decides what is done with it (tried
 * again, refused, the end of the process) and with which exit code a program ends; the name is what
 * other programs and the record see, so names never change their meaning. */
#include "common/base/err.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct err_row {
    int value;
    enum kedge_err_class class;
    const char *name;
    const char *text;
};

static const struct err_row rows[] = {
    {KEDGE_OK, KEDGE_CLASS_OK, "KEDGE_E_OK", "done"},
#define KEDGE_ERR(name, value, class, text) {name, KEDGE_CLASS_##class, #name, text},
#include "common/base/err.def"
#undef KEDGE_ERR
};

enum { PREFIX_LEN = sizeof "KEDGE_E_" - 1 };

static const struct err_row *row_find(int err)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].value == err) {
            return &rows[i];
        }
    }
    return NULL;
}

const char *kedge_strerror(int err)
{
    const struct err_row *row = row_find(err);
    return row ? row->text : "unknown error";
}

const char *kedge_err_name(int err)
{
    const struct err_row *row = row_find(err);
    return row ? row->name : "KEDGE_E_?";
}

const char *kedge_err_code(int err)
{
    return kedge_err_name(err) + PREFIX_LEN;
}

int kedge_err_find(const char *code)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].name + PREFIX_LEN, code) == 0) {
            return rows[i].value;
        }
    }
    return KEDGE_E_UNKNOWN;
}

enum kedge_err_class kedge_err_class(int err)
{
    const struct err_row *row = row_find(err);
    return row ? row->class : KEDGE_CLASS_BUG;
}

/* A few errors have codes of their own, which the class would not give; all others go by class. */
int kedge_exit_code(int err)
{
    switch (err) {
    case KEDGE_E_USAGE:
    case KEDGE_E_ARG:
        return 2;
    case KEDGE_E_NOT_FOUND:
    case KEDGE_E_IO:
        return 3;
    case KEDGE_E_DENIED:
        return 4;
    default:
        break;
    }
    switch (kedge_err_class(err)) {
    case KEDGE_CLASS_OK:
        return 0;
    case KEDGE_CLASS_REJECT:
        return 1;
    case KEDGE_CLASS_RETRY:
    case KEDGE_CLASS_FULL:
    case KEDGE_CLASS_UNKNOWN:
        return 3;
    case KEDGE_CLASS_CORRUPT:
        return 5;
    case KEDGE_CLASS_BUG:
        break;
    }
    return 70;
}

_Noreturn void kedge_assert_failed(const char *cond, const char *file, int line)
{
    fprintf(stderr, "kedge: assertion failed: %s at %s:%d\n", cond, file, line);
    abort();
}
