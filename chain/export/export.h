/* The export of a verified record: files that others' tools read, in one folder that is made whole or not at
 * all. docs/modules/export.md lists the files. The same record, keys, options and time give the same bytes.
 *
 * A tenant's statements, its name and the names of its sites leave the record only when the tenant is named
 * in the options; the main chain's statements hold salted ids alone. */
#ifndef KEDGE_CHAIN_EXPORT_EXPORT_H
#define KEDGE_CHAIN_EXPORT_EXPORT_H

#include "chain/audit/audit.h"
#include "crypto/p256.h"
#include "crypto/sign.h"

enum { KEDGE_EXPORT_MODELS_MAX = 64, KEDGE_EXPORT_TIMESTAMPS_MAX = 16 };

struct kedge_export_options {
    const struct kedge_trust *trust; /* required */
    const char *const *seen;         /* files of checkpoints seen earlier, as kedge_audit_verify takes them */
    size_t seen_count;
    const char *const *models; /* files of released models; none: all releases */
    size_t model_count;
    const struct kedge_id *tenants; /* whose statements may leave */
    size_t tenant_count;
    bool all_tenants;
    const char *const *timestamps; /* files of RFC 3161 replies over exported checkpoints */
    size_t timestamp_count;
    const char *tsa_ca;               /* file of the authority's CA certificates; required with timestamps */
    struct kedge_key_pair key;        /* signs the attestations */
    struct kedge_p256_key model_key;  /* signs the models */
    int64_t time_s;                   /* POSIX seconds that the attestations state */
    const char *tool;                 /* "kedge 0.1.0" */
    struct kedge_audit_options audit; /* of the verification that comes first */
};

struct kedge_export_summary {
    uint64_t files, bytes;
    uint32_t models, rounds, statements, proofs, attestations, timestamps;
    int64_t time_s; /* that was stated */
};

/* Verifies the record in dir and writes the export to the new folder out. KEDGE_E_EXISTS: there is something
 * at out. KEDGE_E_VERIFY: the record does not verify (reterr has the first finding), a model file is not a
 * release, or a token is not about an exported checkpoint. KEDGE_E_NOT_FOUND: no model has been released. In
 * every error nothing is left at out. */
KEDGE_NODISCARD int kedge_export(const char *dir, const char *out, const struct kedge_export_options *options,
                                 struct kedge_export_summary *ret, struct kedge_diag *reterr);

#endif
