/* What `kedge anchor` does with one kind of anchor: an object for each row of chain/anchor/kinds.def. */
#ifndef KEDGE_CLI_ANCHOR_ANCHOR_H
#define KEDGE_CLI_ANCHOR_ANCHOR_H

#include "cli/cli.h"

/* One `kedge anchor run`: when it ends. */
struct kedge_cli_anchor_run {
    struct kedge_cli *c;
    const char *value; /* of the kind's run_option */
    bool once, timed_out;
    uint64_t seconds, deadline_ms; /* --timeout; 0 and UINT64_MAX: none */
};

/* One file of `kedge anchor verify`; the options' values are NULL where they are not given. */
struct kedge_cli_anchor_file {
    const char *path, *checkpoint, *log, *trusted;
    struct kedge_view bytes;
};

struct kedge_cli_anchor_kind {
    const char *run_option; /* `kedge anchor run --RUN_OPTION VALUE` makes this kind; NULL: run without any */
    const char *verify_option; /* whose word counts, for verify; NULL: it takes none */
    int (*run)(struct kedge_cli_anchor_run *run);
    /* Says how far it is and puts that into the answer. May set the exit code. KEDGE_E_NOT_FOUND: this kind
     * is not in use here, and the diagnostic says what is missing. */
    int (*status)(struct kedge_cli *c, json_t *io, int *io_code, struct kedge_diag *d);
    bool (*is_evidence)(struct kedge_view bytes); /* NULL: what no other kind takes */
    int (*verify)(struct kedge_cli *c, const struct kedge_cli_anchor_file *file);
};

#define KEDGE_ANCHOR_KIND(name) extern const struct kedge_cli_anchor_kind kedge_cli_anchor_##name;
#include "chain/anchor/kinds.def"
#undef KEDGE_ANCHOR_KIND

/* For the processes' hooks. False: end, because it is settled, late or interrupted. */
bool kedge_cli_anchor_goes_on(struct kedge_cli_anchor_run *run, bool is_settled);

/* `kedge anchor verify` of the evidence of a transaction: anchor_evm_verify.c */
int kedge_cli_evidence_verify(struct kedge_cli *c, const struct kedge_cli_anchor_file *file);

#endif
