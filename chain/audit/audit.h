/* The auditor: what a stranger can say about a record, offline, without trust in its keeper.
 * docs/record.md is the contract that it checks, docs/modules/audit.md explains how.
 *
 * DIR is the folder that holds `state` and perhaps `models`, or a coordinator's state folder itself. Nothing
 * is written there. Ledgers are read in a child process, so that a damaged file costs a finding and not the
 * program: call from a program whose threads hold no locks. Call kedge_crypto_init before. The report does
 * not depend on the number of threads. */
#ifndef KEDGE_CHAIN_AUDIT_AUDIT_H
#define KEDGE_CHAIN_AUDIT_AUDIT_H

#include <stdint.h>

#include "chain/anchor/kind.h"
#include "chain/log/dsse.h"
#include "chain/log/note.h"
#include "chain/state/anchors.h"
#include "chain/state/state.h"
#include "chain/statement/contact.h"
#include "chain/statement/statement.h"
#include "common/base/diag.h"

/* ---- trust: what the auditor has from elsewhere ---- */

enum { KEDGE_TRUST_SEEN_MAX = 64, KEDGE_TRUST_FILE_MAX = 1024 * 1024 };

struct kedge_trust_tenant {
    struct kedge_id tenant;
    struct kedge_public_key admin_key;
    struct kedge_vkey log; /* of its ledger's checkpoints */
};

struct kedge_trust {
    char deployment[KEDGE_DEPLOYMENT_MAX + 1];
    struct kedge_public_key statement_key; /* the coordinator's */
    struct kedge_vkey main_log;
    uint32_t tenant_count;
    struct kedge_trust_tenant *tenants; /* owned; ascending by tenant */
    uint32_t seen_count;
    char **seen;          /* owned; signed checkpoint notes */
    char *witness_policy; /* owned; text of chain/log/witness_policy.h: releases must have its quorum; NULL:
                             none */
    struct kedge_trust_anchors anchors;
};

/* Reads the file of docs/record.md "Trust file"; strict, reterr names the field. deinit afterwards. */
KEDGE_NODISCARD int kedge_trust_read(const char *path, struct kedge_trust *ret, struct kedge_diag *reterr);
/* The same from its text; no file is named in reterr. */
KEDGE_NODISCARD int kedge_trust_parse(struct kedge_view text, struct kedge_trust *ret,
                                      struct kedge_diag *reterr);
void kedge_trust_deinit(struct kedge_trust *trust);
/* The tenant's row, or NULL. */
const struct kedge_trust_tenant *kedge_trust_find(const struct kedge_trust *trust,
                                                  const struct kedge_id *tenant);

/* ---- report ---- */

enum kedge_audit_code {
#define KEDGE_AUDIT_CODE(name, text) KEDGE_AUDIT_##name,
#include "chain/audit/base/codes.def"
#undef KEDGE_AUDIT_CODE
    KEDGE_AUDIT_CODE_COUNT,
};
/* "blob-missing", …; static storage. */
const char *kedge_audit_code_name(enum kedge_audit_code code);

enum kedge_audit_severity {
    KEDGE_AUDIT_NOTE,  /* worth knowing; does not change the verdict */
    KEDGE_AUDIT_ERROR, /* the record is not what it claims to be */
};

enum {
    KEDGE_AUDIT_WHERE_MAX = 160,
    KEDGE_AUDIT_TEXT_MAX = 320,
    KEDGE_AUDIT_FINDINGS_MAX = 100,   /* of each severity that a report keeps; all are counted … */
    KEDGE_AUDIT_FINDINGS_OF_CODE = 4, /* … and so many of each code it keeps beyond them */
};

struct kedge_audit_finding {
    enum kedge_audit_severity severity;
    enum kedge_audit_code code;
    char where[KEDGE_AUDIT_WHERE_MAX]; /* "main[12]", "org-a[3]", "tenants/org-a/blobs/ab/cd…", "models/x",
                                          "--seen 1" */
    char text[KEDGE_AUDIT_TEXT_MAX];   /* what is wrong and what was expected */
};

struct kedge_audit_counts {
    uint32_t logs, jobs, jobs_unfinished, sites;
    uint64_t statements[KEDGE_ST_KIND_COUNT];
    uint64_t entries, heads,
        checkpoints; /* entries of all logs; stored heads; tenants' checkpoints in the main chain */
    uint64_t rounds, updates_used, updates_refused;
    uint64_t blobs, blob_bytes;
    uint64_t unanchored; /* entries of tenants' ledgers beyond their last checkpoint in the main chain */
    uint64_t signatures; /* verified */
    uint64_t sealed;     /* updates whose content could not be looked at: encrypted, and no key at hand */
    uint64_t
        final_entries;  /* of the main chain: cosigned by the quorum that the trust file demands, if any */
    uint64_t decisions; /* re-executed by replay */
    uint64_t pruned, rebuilt;  /* intermediate models that are given up; those that replay made again */
    uint64_t decisions_sealed; /* that were not: inputs of theirs are encrypted, and no key is at hand */
    uint64_t decisions_erased; /* that cannot be: inputs of theirs are erased by order of their tenant */
};

/* A log has the first `size` entries that somebody saw elsewhere, and no others in their place. */
enum kedge_audit_source {
    KEDGE_AUDIT_BY_SEEN,       /* a checkpoint of seen_paths */
    KEDGE_AUDIT_BY_TRUST_FILE, /* of the trust file's `seen` */
    KEDGE_AUDIT_BY_WITNESSES,  /* cosigned by the quorum that the trust file demands */
    KEDGE_AUDIT_SOURCE_COUNT,
};
struct kedge_audit_evidence {
    uint32_t log; /* of the report's logs */
    uint64_t size;
    enum kedge_audit_source source;
    char from[KEDGE_AUDIT_WHERE_MAX]; /* the file that says so */
};

/* An anchor outside that holds. */
struct kedge_audit_anchor {
    const struct kedge_anchor_kind *kind;
    uint64_t number; /* of its file */
    struct kedge_anchor_claim claim;
};

enum kedge_audit_verdict {
    KEDGE_AUDIT_NO,              /* at least one error */
    KEDGE_AUDIT_SELF_CONSISTENT, /* no error, but no trust file: proves nothing about who wrote it */
    KEDGE_AUDIT_YES,
};

/* A log as it was found. */
struct kedge_audit_log {
    char name[KEDGE_ID_MAX + 1]; /* "main" or the tenant's */
    char origin[KEDGE_ORIGIN_MAX + 1];
    uint64_t entries, flawed; /* flawed: entries with an error */
    bool has_key; /* log_key: its checkpoints' key, from the trust file, else as it names itself */
    struct kedge_public_key log_key;
    bool has_authority; /* authority: statement key of the main chain, first admin key of a tenant */
    struct kedge_public_key authority;
    uint64_t head_size;                     /* newest stored checkpoint; 0: none */
    struct kedge_hash head_root, head_note; /* root of that size; SHA-256 of the signed note */
};

/* A signed refusal that was shown. */
enum kedge_audit_refusal_verdict {
    KEDGE_AUDIT_REFUSAL_NOT_SIGNED,   /* by no statement key, or by one that was not in force then */
    KEDGE_AUDIT_REFUSAL_CONTRADICTED, /* the record's lists, its main chain or the envelope say otherwise */
    KEDGE_AUDIT_REFUSAL_INVENTED,     /* evidence and record show that the reason is not so */
    KEDGE_AUDIT_REFUSAL_NOT_SHOWN,    /* the coordinator's word: no record decides it, or evidence is gone */
    KEDGE_AUDIT_REFUSAL_CONFIRMED,    /* evidence and record show that the reason is so */
    KEDGE_AUDIT_REFUSAL_COUNT,
};
/* "not-signed", …; static storage. */
const char *kedge_audit_refusal_name(enum kedge_audit_refusal_verdict verdict);
struct kedge_audit_refusal {
    enum kedge_audit_refusal_verdict verdict;
    struct kedge_id tenant, site, job; /* empty: not signed */
    uint32_t round;
    char code[KEDGE_ST_CODE_MAX + 1];
};

struct kedge_audit_report {
    char deployment[KEDGE_DEPLOYMENT_MAX + 1];
    bool replayed; /* else verified only */
    bool partial;  /* a copy with some tenants' ledgers: options.tenants */
    bool fast;     /* signatures: options.fast */
    uint32_t log_count;
    struct kedge_audit_log *logs; /* owned; main chain first; none when a log could not be read */
    enum kedge_audit_verdict verdict;
    struct kedge_audit_counts counts;
    /* Of replay: over all that was computed, not over what is recorded; the same for every build, instruction
     * set and number of threads. Zero after verify. */
    struct kedge_hash results;
    uint32_t anchor_count;
    struct kedge_audit_anchor *anchors; /* owned; ascending by size */
    uint32_t evidence_count;
    struct kedge_audit_evidence *evidence; /* owned; of each log and source the one that proves most */
    uint32_t refusal_count;
    struct kedge_audit_refusal *refusals; /* owned; as options.refusals */
    uint64_t error_count, note_count;     /* all, kept or not */
    uint32_t finding_count;
    struct kedge_audit_finding *findings; /* owned; in the order they were met */
};
void kedge_audit_report_deinit(struct kedge_audit_report *report);
/* The anchor that proves most of the main chain (newest), or the first that has its entry `index`; of one
 * kind; those that are trusted go before all others. NULL: there is none. */
const struct kedge_audit_anchor *kedge_audit_anchor_newest(const struct kedge_audit_report *report,
                                                           const struct kedge_anchor_kind *kind);
const struct kedge_audit_anchor *kedge_audit_anchor_first(const struct kedge_audit_anchor *anchors,
                                                          uint32_t count,
                                                          const struct kedge_anchor_kind *kind,
                                                          uint64_t index);

/* ---- audit ---- */

/* `what` is static storage such as "signatures"; total may be 0 when unknown. Called from one thread at a
 * time. */
typedef void kedge_audit_progress(void *arg, const char *what, uint64_t done, uint64_t total);

/* One entry of a log, judged. */
struct kedge_audit_entry {
    const char *log; /* origin */
    uint64_t index;
    const char
        *kind; /* of the statement; "checkpoint" of a tenant in the main chain; "malformed"; "withheld" */
    struct kedge_hash leaf;
    bool has_subject;
    struct kedge_hash subject; /* of a checkpoint: the root */
    uint32_t signer_count;     /* keys that the entry says signed it, SHA-256 of each */
    struct kedge_hash signers[KEDGE_DSSE_SIGNATURES_MAX];
    uint64_t codes; /* bit c: an error of code c about this entry or what it names; 0: good */
};
/* Another result than KEDGE_OK ends the audit with it. */
typedef int kedge_audit_each(void *arg, const struct kedge_audit_entry *entry);

/* A key file of a tenant's encrypted updates, or a folder of such (chain/store/blob/blob_keys.h). */
struct kedge_audit_blob_key {
    struct kedge_id tenant;
    const char *path;
};

struct kedge_audit_options {
    kedge_audit_each *each; /* may be NULL; called for every entry at the end, main chain first, in order */
    void *each_arg;
    /* This copy holds the ledgers of these tenants only, as a tenant's replica does: entries of the main
     * chain may be withheld (empty; the tree has their hashes), blobs and other ledgers may be absent. What
     * then cannot be checked is told in notes, all else must hold. None: the record is whole. */
    const struct kedge_id *tenants;
    size_t tenant_count;
    const struct kedge_trust_anchors *anchors; /* NULL: the trust file's */
    uint32_t threads;                          /* 0: one per processor, at most 64 */
    bool beside_coordinator; /* the folder is in use: open with locks; wants write access to the lock files */
    bool fast; /* of signatures by keys that are met often, what this program's own curve arithmetic accepts
                  counts; else libsodium decides on every one. For the whole process while the audit runs: no
                  two audits at a time that differ in it */
    bool live; /* unreferenced blobs and models not handed out yet are notes, not errors */
    uint32_t read_timeout_s; /* for reading one ledger; 0: 60 and one more per 2 MB */
    uint64_t table_bytes;    /* of tables on the heap, beyond which they lie in files of $TMPDIR; 0: 16 MiB */
    kedge_audit_progress *progress; /* may be NULL */
    void *progress_arg;
    const struct kedge_contact *contacts; /* openings that the auditor was shown: each must be committed to */
    size_t contact_count;
    const char *const
        *refusals; /* files of signed refusals that the auditor was shown; evidence lies beside them */
    size_t refusal_count;
    const struct kedge_audit_blob_key *blob_keys; /* of encrypted updates, besides STATE/keys/updates */
    size_t blob_key_count;
};

/* Everything short of re-executing arithmetic: logs, signatures, keys in force, order, lists, totals, blobs,
 * models, checkpoints seen earlier. trust NULL: self-consistent at most. seen_paths: files of one signed
 * checkpoint each. options may be NULL. KEDGE_OK with a report, whatever its verdict; an error only when
 * there is nothing to judge (KEDGE_E_NOT_FOUND, _DENIED, _IO, _NOMEM, unreadable seen_paths). */
KEDGE_NODISCARD int kedge_audit_verify(const char *dir, const struct kedge_trust *trust,
                                       const char *const *seen_paths, size_t seen_count,
                                       const struct kedge_audit_options *options,
                                       struct kedge_audit_report *ret, struct kedge_diag *reterr);
/* All of verify, then every decision again from its recorded inputs: first model, selection, grouping,
 * directions, newcomers, aggregates, steps. Results are only hashed. */
KEDGE_NODISCARD int kedge_audit_replay(const char *dir, const struct kedge_trust *trust,
                                       const char *const *seen_paths, size_t seen_count,
                                       const struct kedge_audit_options *options,
                                       struct kedge_audit_report *ret, struct kedge_diag *reterr);

/* Which models a record gives again: chain/audit/files/prune.h. */
struct kedge_audit_prune {
    const struct kedge_id *job; /* NULL: of all jobs that have ended */
    uint32_t keep_every;        /* models of every n-th round stay; 0: none of them */
    struct kedge_buf *ret;      /* digests, 32 bytes each, ascending */
};
/* kedge_audit_replay, and that. Nothing is removed. */
KEDGE_NODISCARD int kedge_audit_prunable(const char *dir, const struct kedge_trust *trust,
                                         const struct kedge_audit_options *options,
                                         const struct kedge_audit_prune *prune,
                                         struct kedge_audit_report *ret, struct kedge_diag *reterr);

#endif
