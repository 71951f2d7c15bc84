/* Anchors are files that are named by a number: the anchor's own for the EVM, the size of the checkpoint
 * for a time stamp. The folder is the list, so a program that is killed between writing an anchor and
 * noting it has nothing to note. Other names in the folder are passed over. */
#include "chain/state/anchors.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "chain/state/state.h"
#include "common/base/mem.h"

static bool take_number(const char *name, const char *suffix, uint64_t *ret)
{
    size_t len = strlen(name), end = strlen(suffix);
    return len > end && strcmp(name + len - end, suffix) == 0
           && kedge_decimal_decode(kedge_view_of(name, len - end), UINT64_MAX, ret) == KEDGE_OK;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static int gather(DIR *dir, const char *suffix, uint64_t **ret, size_t *ret_count)
{
    size_t count = 0, cap = 0;
    uint64_t *numbers = NULL, number;
    const struct dirent *e;
    int err = KEDGE_OK;
    while (!err && (e = readdir(dir)) != NULL) {
        if (!take_number(e->d_name, suffix, &number)) {
            continue;
        }
        if (count == KEDGE_ANCHORS_MAX) {
            err = KEDGE_E_FULL;
        } else if (!kedge_mem_grow(&numbers, &cap, count, 64, sizeof *numbers)) {
            err = KEDGE_E_NOMEM;
        } else {
            numbers[count++] = number;
        }
    }
    *ret = numbers;
    *ret_count = count;
    return err;
}

int kedge_anchor_list(const char *state, const struct kedge_anchor_kind *kind, uint64_t **ret_numbers,
                      size_t *ret_count, struct kedge_diag *reterr)
{
    char folder[KEDGE_PATH_MAX];
    uint64_t *numbers = NULL;
    size_t count = 0;
    int err = kedge_state_path(folder, reterr, state, "anchors/%s", kind->name);
    if (err) {
        return err;
    }
    DIR *dir = opendir(folder);
    if (!dir && errno != ENOENT) {
        return kedge_diag_set(reterr, kedge_errno(errno), "%s: cannot be listed", folder);
    }
    if (dir) {
        err = gather(dir, kind->suffix, &numbers, &count);
        closedir(dir);
    }
    if (err) {
        kedge_mem_free(numbers);
        return kedge_diag_set(reterr, err, "%s: %s", folder,
                              err == KEDGE_E_FULL ? "more than 65536 anchors" : kedge_strerror(err));
    }
    if (count > 1) {
        qsort(numbers, count, sizeof *numbers, compare);
    }
    *ret_numbers = numbers;
    *ret_count = count;
    return KEDGE_OK;
}
