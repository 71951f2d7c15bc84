/* STATE/tenants/T/refused/: what the sites of T sent and the coordinator refused, for as long as it is kept.
 *   SITE.HEX.refusal   the coordinator's signed statement "refused"; HEX: SHA-256 of the site's envelope
 *   SITE.HEX.envelope  the site's signed statement
 *   SITE.HEX.update    the refused file, where it came whole; HEX: its SHA-256 (encrypted as uploads are)
 * A site keeps the same of its own in SITE/refusals/. */
#ifndef KEDGE_CHAIN_STATE_REFUSED_H
#define KEDGE_CHAIN_STATE_REFUSED_H

#define KEDGE_REFUSED_DIR "refused"
#define KEDGE_REFUSED_REFUSAL "refusal"
#define KEDGE_REFUSED_ENVELOPE "envelope"
#define KEDGE_REFUSED_UPDATE "update"

/* Bounds of the coordinator, for each site and each tenant; bytes of files are in config.json. */
enum {
    KEDGE_REFUSED_PER_SITE = 32,
    KEDGE_REFUSED_PER_TENANT = 1024,
    KEDGE_REFUSED_FILES_PER_SITE = 4,
};

#endif
