/* RFC 3161 time stamps, as a kind of anchor: a signed checkpoint, and an authority's reply over its bytes. */
#include <inttypes.h>
#include <string.h>

#include "chain/anchor/kind.h"
#include "chain/anchor/stamp.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/json/json.h"

static int claim(const struct kedge_anchor_files *files, const struct kedge_anchor_main *main,
                 const struct kedge_trust_anchors *trust, struct kedge_anchor_claim *ret,
                 struct kedge_diag *reterr)
{
    struct kedge_stamp s;
    const char *ca = trust->tsa_ca;
    KEDGE_TRY(kedge_stamp_check(files->note, files->anchor, kedge_view_str(main->origin), main->vkey,
                                ca ? kedge_view_str(ca) : kedge_view_of(NULL, 0), &s, reterr));
    if (s.size != files->number) {
        return kedge_diag_set(reterr, KEDGE_E_VERIFY, "its checkpoint is of another size than its name says");
    }
    *ret = (struct kedge_anchor_claim){.size = s.size,
                                       .root = s.root,
                                       .time_s = s.token.time_s,
                                       .trusted = ca != NULL,
                                       .proven = true,
                                       .vouched = main->vkey != NULL};
    memcpy(ret->by, s.token.authority, strnlen(s.token.authority, sizeof ret->by - 1));
    return KEDGE_OK;
}

/* ---- whose word counts ---- */

static bool is_named(const struct kedge_trust_anchors *trust)
{
    return trust->tsa_ca != NULL;
}

/* Text of certificates. Whether there is a usable one is for those who verify with them to say. */
static int trust_read(const json_t *v, struct kedge_trust_anchors *io, struct kedge_diag *d)
{
    size_t len = json_string_length(v);
    if (!json_is_string(v) || len == 0 || len > KEDGE_TSA_PEM_MAX
        || !strstr(json_string_value(v), "-----BEGIN CERTIFICATE-----")) {
        return kedgei_trust_bad(d, "tsa_ca", "certificates in PEM");
    }
    for (size_t i = 0; i < len; i++) {
        uint8_t c = (uint8_t)json_string_value(v)[i];
        if ((c < 0x20 && c != '\n' && c != '\t') || c >= 0x7f) {
            return kedgei_trust_bad(d, "tsa_ca", "certificates in PEM, ASCII with LF");
        }
    }
    io->tsa_ca = kedge_mem_strdup(json_string_value(v));
    return io->tsa_ca ? KEDGE_OK : kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory");
}

static void trust_tell(const struct kedge_trust_anchors *trust, struct kedge_buf *out)
{
    struct kedge_hash digest;
    char hex[KEDGE_HASH_HEX_LEN + 1];
    kedge_sha256(kedge_view_str(trust->tsa_ca), &digest);
    kedge_hash_hex(&digest, hex);
    kedge_buf_printf(out, "- SHA-256 of the certificates of time-stamping authorities: %s\n", hex);
}

static void trust_free(struct kedge_trust_anchors *io)
{
    kedge_mem_free(io->tsa_ca);
}

static int option_take(char *text, struct kedge_trust_anchors *io)
{
    io->tsa_ca = text;
    return KEDGE_OK;
}

/* ---- telling ---- */

static void say(const struct kedge_anchor_claim *c, const char *when, struct kedge_buf *out)
{
    kedge_buf_printf(out,
                     "Time-stamped: the main chain's first %" PRIu64 " entries existed at %s, says %s.\n",
                     c->size, when, c->by);
}

static void from(const struct kedge_anchor_claim *c, const char *when, struct kedge_buf *out)
{
    if (*when) {
        kedge_buf_printf(out, "%s, %s", when, c->by);
    }
}

static const char *text_of(const json_t *row, const char *member)
{
    const char *text = json_string_value(json_object_get(row, member));
    return text ? text : "";
}

static void explain(const json_t *row, const char *aside, struct kedge_buf *out)
{
    const char *by = text_of(row, "by");
    kedge_buf_printf(out, "%s, time stamp over entries 0…%lld of the main chain%s%s%s; %s",
                     text_of(row, "time"), (long long)json_integer_value(json_object_get(row, "entries")) - 1,
                     *by ? " by " : "", by, aside, text_of(row, "file"));
}

const struct kedge_anchor_kind kedge_anchor_tsa = {
    .name = "tsa",
    .suffix = ".tsr",
    .note_suffix = ".note",
    .most = KEDGE_TSR_MAX,
    .told = "rfc3161",
    .plural = "time stamps",
    .title = "RFC 3161 time stamps",
    .source = "time-stamp",
    .who = "which an authority stamped",
    .claim = claim,
    .trust_key = "tsa_ca",
    .option = "tsa-ca",
    .option_usage = "--tsa-ca CA.pem",
    .option_form = "certificates in PEM",
    .whose = "the authority's certificates (--tsa-ca FILE)",
    .unusable = "tsa_ca: expected certificates in PEM, and there is none",
    .option_is_file = true,
    .is_named = is_named,
    .trust_read = trust_read,
    .trust_tell = trust_tell,
    .trust_free = trust_free,
    .option_take = option_take,
    .say = say,
    .from = from,
    .explain = explain,
};
