/* A certificate only carries a key through TLS (tls_openssl.c looks at nothing else), so everything in it
 * follows from the key: the serial number, the names, dates without meaning. A key has one certificate,
 * byte for byte, apart from its name, and nothing has to be stored, renewed or revoked. */
#include "crypto/cert.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "common/base/text.h"
#include "crypto/openssl.h"

/* The serial follows from the key (20 bytes, positive: RFC 5280 §4.1.2.2), so that a key has one certificate.
 */
static bool set_serial(X509 *cert, const struct kedge_public_key *key)
{
    struct kedge_hash h;
    kedge_public_key_hash(key, &h);
    h.b[0] = (uint8_t)((h.b[0] & 0x7f) | 0x40);
    BIGNUM *n = BN_bin2bn(h.b, 20, NULL);
    bool ok = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(cert)) != NULL;
    BN_free(n);
    return ok;
}

static bool set_names(X509 *cert, const char *common_name)
{
    X509_NAME *name = X509_NAME_new();
    bool ok = name
              && X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)common_name, -1,
                                            -1, 0)
                     == 1
              && X509_set_subject_name(cert, name) == 1 && X509_set_issuer_name(cert, name) == 1;
    X509_NAME_free(name);
    return ok;
}

static bool add_extension(X509 *cert, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, cert, cert, NULL, NULL, 0);
    X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    bool ok = ext && X509_add_ext(cert, ext, -1) == 1;
    X509_EXTENSION_free(ext);
    return ok;
}

/* No CA, no dates that mean anything, no trust in names: whom a key belongs to is said by the ledger and
 * not by a certificate.  */
static bool fill(X509 *cert, EVP_PKEY *key, const struct kedge_public_key *public_key,
                 const char *common_name)
{
    char san[32 + 2 * KEDGE_KEY_LEN] = "URI:kedge:";
    kedge_hex_encode(public_key->b, KEDGE_KEY_LEN, san + strlen(san));
    return X509_set_version(cert, X509_VERSION_3) == 1 && set_serial(cert, public_key)
           && ASN1_TIME_set_string_X509(X509_getm_notBefore(cert), "20200101000000Z") == 1
           && ASN1_TIME_set_string_X509(X509_getm_notAfter(cert), "99991231235959Z") == 1
           && set_names(cert, common_name) && X509_set_pubkey(cert, key) == 1
           && add_extension(cert, NID_basic_constraints, "critical,CA:FALSE")
           && add_extension(cert, NID_key_usage, "critical,digitalSignature")
           && add_extension(cert, NID_subject_alt_name, san)
           && X509_sign(cert, key, NULL) > 0; /* Ed25519 has no digest of its own to choose */
}

int kedge_cert_self_signed(const struct kedge_key_pair *pair, const char *common_name,
                           struct kedge_buf *ret_pem)
{
    size_t len = strlen(common_name);
    if (len == 0 || len > KEDGE_CERT_NAME_MAX || !kedge_utf8_is_valid(kedge_view_of(common_name, len))) {
        return KEDGE_E_ARG;
    }
    EVP_PKEY *key = kedgei_pkey_private(pair);
    X509 *cert = X509_new();
    BIO *bio = BIO_new(BIO_s_mem());
    int err = KEDGE_E_NOMEM;
    if (key && cert && bio && fill(cert, key, &pair->public, common_name)
        && PEM_write_bio_X509(bio, cert) == 1) {
        err = kedgei_bio_take(bio, ret_pem);
    }
    BIO_free(bio);
    X509_free(cert);
    EVP_PKEY_free(key);
    ERR_clear_error();
    return err;
}
