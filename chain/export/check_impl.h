/* Internal to the check of exports. */
#ifndef KEDGE_CHAIN_EXPORT_CHECK_IMPL_H
#define KEDGE_CHAIN_EXPORT_CHECK_IMPL_H

#include "chain/export/check.h"
#include "chain/export/internal.h"
#include "chain/export/oms.h"
#include "common/base/os/file.h"

struct json_t;
struct kedge_witness_policy;

/* The one checkpoint of a log under which its entries are proved. */
struct kedgei_ex_head {
    char log[KEDGE_ID_MAX + 1];
    uint64_t size;
    struct kedge_hash root;
};

struct kedgei_ex_check {
    const char *dir;
    const struct kedge_export_check_options *o;
    struct kedge_export_check sum;
    struct kedge_oms_list files; /* that are there, ascending */
    struct kedge_public_key key; /* of the attestations */
    struct kedge_buf model_pem;
    struct kedge_hash *entries; /* digests of the files in entries/, ascending; owned */
    size_t entry_count;
    struct kedge_hash *releases; /* models that the main chain's entries release; owned */
    size_t release_count, release_cap;
    uint64_t release_last;        /* highest index of a release */
    struct kedgei_ex_head *heads; /* of logs with entries; owned */
    size_t head_count;
    const struct kedge_witness_policy *policy; /* of the trust file, when it demands a quorum; while notes are
                                                  checked */
    struct kedge_diag *reterr;
};

/* Appends a file of the export. */
KEDGE_NODISCARD int kedgei_ex_load(const struct kedgei_ex_check *c, const char *path, size_t max,
                                   struct kedge_buf *ret);
const struct kedge_oms_file *kedgei_ex_find(const struct kedgei_ex_check *c, const char *path);
/* Sets the diagnostic "path: text" and returns KEDGE_E_VERIFY. */
int kedgei_ex_wrong(const struct kedgei_ex_check *c, const char *path, const char *text);

/* check_entries.c: entries/ and proofs/; fills entries, releases and heads. */
KEDGE_NODISCARD int kedgei_ex_check_entries(struct kedgei_ex_check *c);
/* check_notes.c: checkpoints/, behind the entries. */
KEDGE_NODISCARD int kedgei_ex_check_notes(struct kedgei_ex_check *c);

#endif
