/* Kinds of anchors: what a party outside saw of the main chain, as it lies in the record. Who audits,
 * explains, exports, packs or tells of anchors loops over the kinds and names none of them: a new kind is a
 * file of its own here, a row of kinds.def, what its trust needs (trust.h), the process that makes it
 * (host/), and what the command line does with it (cli/anchor). Pure. */
#ifndef KEDGE_CHAIN_ANCHOR_KIND_H
#define KEDGE_CHAIN_ANCHOR_KIND_H

#include <jansson.h>

#include "chain/anchor/trust.h"
#include "chain/log/note.h"
#include "common/base/diag.h"

enum {
    KEDGE_ANCHOR_KINDS_MAX = 8,
    KEDGE_ANCHOR_BY_MAX = 96,
    KEDGE_ANCHOR_NAME_MAX = 48,
    KEDGE_ANCHOR_OPTION_MAX = (256 << 10) + 1, /* bytes of a file that an option names */
};

/* What an anchor says, when it holds: the main chain had its first `size` entries, no others, when it was
 * made. */
struct kedge_anchor_claim {
    uint64_t size;
    struct kedge_hash root;
    int64_t time_s;               /* no later than that; 0: not told */
    char by[KEDGE_ANCHOR_BY_MAX]; /* who says so */
    bool trusted;                 /* it is under the trust anchors that were named */
    bool proven;                  /* only that a block is the chain's has to be asked of anybody */
    bool vouched; /* the log's own key, or one that is trusted, says that the main chain has this root */
    uint64_t chain_id, block; /* of a chain: where it stands */
    struct kedge_hash block_hash;
};

/* The file of an anchor, and the checkpoint beside it, which is empty for kinds without. */
struct kedge_anchor_files {
    uint64_t number;
    struct kedge_view anchor, note;
};
/* What the record says of its main chain; vkey NULL: not known. */
struct kedge_anchor_main {
    const char *origin;
    const struct kedge_vkey *vkey;
};

struct kedge_anchor_kind {
    const char *name;        /* STATE/anchors/NAME/NUMBER and one of: */
    const char *suffix;      /* of the anchor */
    const char *note_suffix; /* of the signed checkpoint beside it, which is written first; NULL: none */
    size_t most;             /* bytes of an anchor's file */
    const char *told;        /* in answers */
    const char *plural;      /* "not checked: 7 PLURAL fit the main chain" */
    const char *title;       /* in reports */
    const char *where;  /* "1 anchor of the main chain WHERE"; only of kinds without a note beside them */
    const char *source; /* of a claim that the record is complete */
    const char *who;    /* "complete as of checkpoint 7 of …, WHO: …" */

    /* What it says, checked against itself, number, origin and log key. KEDGE_E_KEY: what was named to trust
     * is not usable; KEDGE_E_NOMEM; anything else: it is none, and the diagnostic says why. */
    int (*claim)(const struct kedge_anchor_files *files, const struct kedge_anchor_main *main,
                 const struct kedge_trust_anchors *trust, struct kedge_anchor_claim *ret,
                 struct kedge_diag *reterr);
    /* The signed checkpoint that the anchor carries, when there is none beside it; NULL: it carries none.
     * *ret is a view of room. Errors as above; the trust anchors do not matter. */
    int (*checkpoint)(const struct kedge_anchor_files *files, struct kedge_buf *room, struct kedge_view *ret,
                      struct kedge_diag *reterr);

    /* ---- whose word counts; without these nobody's does ---- */
    const char *trust_key;    /* in "anchors" of the trust file */
    const char *option;       /* of the command line, without "--" */
    const char *option_usage; /* "--anchor CHAIN:CONTRACT:ACCOUNT" */
    const char *option_form;  /* what it expects, when the text is not right */
    const char *whose;        /* "name WHOSE to have them count" */
    const char *unusable;     /* KEDGE_E_KEY of claim, in words */
    bool option_is_file;      /* the text is the file's content, ended by 0 */
    bool (*is_named)(const struct kedge_trust_anchors *trust);
    int (*trust_read)(const json_t *value, struct kedge_trust_anchors *io, struct kedge_diag *reterr);
    void (*trust_tell)(const struct kedge_trust_anchors *trust, struct kedge_buf *out);
    void (*trust_free)(struct kedge_trust_anchors *io);             /* NULL: it owns nothing there */
    int (*option_take)(char *text, struct kedge_trust_anchors *io); /* text is borrowed; KEDGE_E_FORMAT */
    /* Why one does not count that fits: a note of the audit; NULL: always for the same reason. */
    bool (*is_others)(const struct kedge_anchor_claim *claim, const struct kedge_trust_anchors *trust,
                      struct kedge_diag *ret_why);

    /* ---- telling; when: the time in words; NULL where there is nothing more to say ---- */
    void (*say)(const struct kedge_anchor_claim *claim, const char *when, struct kedge_buf *out);
    void (*from)(const struct kedge_anchor_claim *claim, const char *when, struct kedge_buf *out);
    void (*report)(const struct kedge_anchor_claim *claim, struct kedge_buf *out);
    void (*describe)(const struct kedge_anchor_claim *claim, json_t *io);
    void (*explain)(const json_t *row, const char *aside, struct kedge_buf *out);
};

/* NULL behind the last. */
const struct kedge_anchor_kind *kedge_anchor_kind_at(size_t i);
size_t kedge_anchor_kind_count(void);

/* "anchors/NAME/NUMBER.SUFFIX" below the state folder; the note's, for a kind that has one. */
void kedge_anchor_name(const struct kedge_anchor_kind *kind, uint64_t number,
                       char out[KEDGE_ANCHOR_NAME_MAX]);
void kedge_anchor_note_name(const struct kedge_anchor_kind *kind, uint64_t number,
                            char out[KEDGE_ANCHOR_NAME_MAX]);

/* Frees what trust_read took for any kind. */
void kedge_trust_anchors_deinit(struct kedge_trust_anchors *trust);

/* For their hosts, and for tests. */
#define KEDGE_ANCHOR_KIND(name) extern const struct kedge_anchor_kind kedge_anchor_##name;
#include "chain/anchor/kinds.def"
#undef KEDGE_ANCHOR_KIND

/* "anchors: FIELD: expected …", for those who read trust files. */
KEDGE_NODISCARD int kedgei_trust_bad(struct kedge_diag *d, const char *field, const char *expected);
KEDGE_NODISCARD int kedgei_trust_check_keys(const json_t *object, const char *const *allowed,
                                            const char *what, struct kedge_diag *d);

#endif
