/* Evidence of anchors on an Ethereum-compatible chain, as the process that anchors left it: each file is
 * checked against itself and against the main chain before it is taken along. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/anchor/evm_evidence.h"
#include "chain/export/work.h"
#include "common/base/mem.h"

enum { ANCHORS_MAX = 65536 };

/* "SEQ.json" */
static bool take_number(const char *name, uint64_t *ret)
{
    size_t len = strlen(name);
    return len > 5 && strcmp(name + len - 5, ".json") == 0
           && kedge_decimal_decode(kedge_view_of(name, len - 5), UINT64_MAX, ret) == KEDGE_OK;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Numbers of the evidence files in the folder, ascending; none when there is no such folder. */
static int list_numbers(const char *folder, uint64_t **ret, size_t *ret_count, struct kedge_diag *reterr)
{
    DIR *dir = opendir(folder);
    size_t count = 0, cap = 0;
    uint64_t *numbers = NULL;
    int err = dir || errno == ENOENT ? KEDGE_OK : kedge_errno(errno);
    const struct dirent *e;
    uint64_t number;
    while (dir && !err && (e = readdir(dir)) != NULL) {
        if (!take_number(e->d_name, &number)) {
            continue;
        }
        if (count == cap) {
            cap = cap ? 2 * cap : 64;
            uint64_t *more = cap <= ANCHORS_MAX ? kedge_mem_resize(numbers, cap, sizeof *more) : NULL;
            if (!more) {
                err = cap <= ANCHORS_MAX ? KEDGE_E_NOMEM : KEDGE_E_FULL;
                break;
            }
            numbers = more;
        }
        numbers[count++] = number;
    }
    if (dir) {
        closedir(dir);
    }
    if (err) {
        kedge_mem_free(numbers);
        return kedge_diag_set(reterr, err, "%s: %s", folder, kedge_strerror(err));
    }
    if (count > 1) {
        qsort(numbers, count, sizeof *numbers, compare);
    }
    *ret = numbers;
    *ret_count = count;
    return KEDGE_OK;
}

static int put_anchor(struct kedgei_ex_work *w, const char *folder, uint64_t number,
                      struct kedge_evm_evidence *e)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_hash root;
    char path[KEDGE_PATH_MAX + 32];
    kedge_buf_init(&text, KEDGE_EVM_EVIDENCE_MAX);
    snprintf(path, sizeof path, "%s/%llu.json", folder, (unsigned long long)number);
    int err = kedge_file_read(path, &text, w->reterr);
    if (err) {
        return err;
    }
    err = kedge_evm_evidence_read(kedge_buf_view(&text), e, w->reterr);
    if (!err) {
        err = kedge_ledger_root(w->r.main.log.ledger, e->point.size, &root);
        err = err ? kedge_diag_set(w->reterr, KEDGE_E_VERIFY,
                                   "is about %llu entries, which this main chain has not",
                                   (unsigned long long)e->point.size)
                  : kedge_evm_evidence_is_about(e, kedge_view_str(w->r.main.log.origin), e->point.size, &root,
                                                w->reterr);
    }
    if (err) {
        return kedge_diag_wrap(w->reterr, err, "%s", path);
    }
    w->anchors++;
    err = kedgei_ex_put(&w->f, kedge_buf_view(&text), w->reterr, "anchors/evm-%08llu.json",
                        (unsigned long long)number);
    return err || e->checkpoint.len == 0 ? err : kedgei_ex_main_note(w, e->checkpoint, "anchored");
}

int kedgei_ex_anchors(struct kedgei_ex_work *w)
{
    char folder[KEDGE_PATH_MAX];
    uint64_t *numbers = NULL;
    size_t count = 0;
    int err = kedge_state_path(folder, w->reterr, w->r.state, "anchors/evm");
    err = err ? err : list_numbers(folder, &numbers, &count, w->reterr);
    struct kedge_evm_evidence *e = kedge_mem_new(1, sizeof *e);
    if (!err && !e) {
        err = kedge_diag_set(w->reterr, KEDGE_E_NOMEM, "out of memory");
    }
    for (size_t i = 0; i < count && !err; i++) {
        memset(e, 0, sizeof *e);
        err = put_anchor(w, folder, numbers[i], e);
        kedge_evm_evidence_deinit(e);
    }
    kedge_mem_free(e);
    kedge_mem_free(numbers);
    return err;
}
