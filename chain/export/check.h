/* An export, judged by itself: without the record, a network or trust in its maker. What it cannot say
 * is whether anything was left out of the logs or computed wrongly: that needs the record (chain/audit). */
#ifndef KEDGE_CHAIN_EXPORT_CHECK_H
#define KEDGE_CHAIN_EXPORT_CHECK_H

#include "chain/audit/audit.h"

struct kedge_export_check_options {
    const struct kedge_trust
        *trust;         /* required: keys of the logs, the coordinator and the tenants' first admins */
    const char *keys;   /* folder with attestations.pub.pem and models.pub.pem; NULL: the export's own */
    const char *tsa_ca; /* file of CA certificates; NULL: time stamps are not judged */
};

struct kedge_export_check {
    uint64_t files, bytes;
    uint32_t models, statements, proofs, attestations, timestamps;
    uint32_t timestamps_not_judged;
    uint32_t checkpoints; /* signed, and of the history under which the entries are proved */
    uint64_t
        final_entries; /* of the main chain: cosigned by the quorum that the trust file demands, if any */
};

/* KEDGE_OK: every file is what the signed manifest says and there is no other; every attestation is the
 * exporter's; every entry is in its log under one checkpoint of the trusted log key, and signed by a key that
 * was in force; every other checkpoint is signed, too, and of the same history; releases have the quorum of
 * witnesses that the trust file demands; every model has the exporter's signature and is a release of the
 * main chain; every time stamp is of such a checkpoint. KEDGE_E_VERIFY or KEDGE_E_FORMAT name the first file
 * for which that is not so; KEDGE_E_NOT_FOUND: no export here. */
KEDGE_NODISCARD int kedge_export_check(const char *dir, const struct kedge_export_check_options *options,
                                       struct kedge_export_check *ret, struct kedge_diag *reterr);

#endif
