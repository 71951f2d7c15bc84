/* The files of an export under check: found by name, loaded, and what is said where one is wrong. */
#include <string.h>

#include "chain/export/check.h"
#include "chain/export/check_impl.h"

static int compare_name(const void *name, const void *file)
{
    return strcmp(name, ((const struct kedge_oms_file *)file)->name);
}

const struct kedge_oms_file *kedgei_ex_find(const struct kedgei_ex_check *c, const char *path)
{
    return c->files.count
               ? bsearch(path, c->files.files, c->files.count, sizeof *c->files.files, compare_name)
               : NULL;
}

int kedgei_ex_load(const struct kedgei_ex_check *c, const char *path, size_t max, struct kedge_buf *ret)
{
    char full[KEDGE_PATH_MAX];
    kedge_buf_init(ret, max);
    int err = kedge_path_join(full, c->dir, path);
    return err ? kedge_diag_set(c->reterr, err, "%s: path too long", c->dir)
               : kedge_file_read(full, ret, c->reterr);
}

int kedgei_ex_wrong(const struct kedgei_ex_check *c, const char *path, const char *text)
{
    return kedge_diag_set(c->reterr, KEDGE_E_VERIFY, "%s/%s: %s", c->dir, path, text);
}
