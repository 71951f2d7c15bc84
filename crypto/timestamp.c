/* RFC 3161 tokens say that a hash existed at a time, on the word of an authority that an auditor chooses
 * by its CA certificates. OpenSSL parses and verifies; here replies are bounded before they are parsed,
 * nothing may follow the structure, and only SHA-256 over the very bytes in question counts.
 *
 * The signer's chain is checked for the moment that the token names and not for now: a record must still
 * verify when the authority's certificate has run out. */
#include "crypto/timestamp.h"

#include <openssl/asn1.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ts.h>
#include <openssl/x509_vfy.h>
#include <string.h>

#include "crypto/openssl.h"

static bool set_nonce(TS_REQ *req, const uint64_t *nonce)
{
    ASN1_INTEGER *n = nonce ? ASN1_INTEGER_new() : NULL;
    bool fine = !nonce || (n && ASN1_INTEGER_set_uint64(n, *nonce) == 1 && TS_REQ_set_nonce(req, n) == 1);
    ASN1_INTEGER_free(n);
    return fine;
}

/* The authority's certificate is asked for with the token (cert_req), so that the token can be verified
 * years later without looking for it. */
int kedge_timestamp_query(struct kedge_view data, const uint64_t *nonce, struct kedge_buf *ret_der)
{
    struct kedge_hash digest;
    kedge_sha256(data, &digest);
    TS_REQ *req = TS_REQ_new();
    TS_MSG_IMPRINT *imprint = TS_MSG_IMPRINT_new();
    X509_ALGOR *algo = X509_ALGOR_new();
    uint8_t *der = NULL;
    int len = -1;
    if (req && imprint && algo && X509_ALGOR_set0(algo, OBJ_nid2obj(NID_sha256), V_ASN1_NULL, NULL) == 1
        && TS_MSG_IMPRINT_set_algo(imprint, algo) == 1
        && TS_MSG_IMPRINT_set_msg(imprint, digest.b, sizeof digest.b) == 1 && TS_REQ_set_version(req, 1) == 1
        && TS_REQ_set_msg_imprint(req, imprint) == 1 && set_nonce(req, nonce)
        && TS_REQ_set_cert_req(req, 1) == 1) {
        len = i2d_TS_REQ(req, &der);
    }
    if (len > 0) {
        kedge_buf_put(ret_der, der, (size_t)len);
    }
    OPENSSL_free(der);
    X509_ALGOR_free(algo);
    TS_MSG_IMPRINT_free(imprint);
    TS_REQ_free(req);
    ERR_clear_error();
    return len > 0 ? ret_der->err : KEDGE_E_NOMEM;
}

/* Replies come over the network from an authority that need not be honest to us: bounded, and used up to
 * the last byte. */
static TS_RESP *decode(struct kedge_view reply)
{
    if (reply.len == 0 || reply.len > KEDGE_TSR_MAX) {
        return NULL;
    }
    const uint8_t *at = reply.ptr;
    TS_RESP *resp = d2i_TS_RESP(NULL, &at, (long)reply.len);
    if (resp && at != reply.ptr + reply.len) {
        TS_RESP_free(resp);
        return NULL;
    }
    return resp;
}

/* Seconds since 1970; false when t is no time that fits. As days and seconds since 1970, so that no calendar
 * is computed here and no time zone of this machine enters. */
static bool posix_time(const ASN1_GENERALIZEDTIME *t, int64_t *ret_s)
{
    ASN1_TIME *epoch = ASN1_TIME_set(NULL, 0);
    int days = 0, seconds = 0;
    bool fine = epoch && t && ASN1_TIME_diff(&days, &seconds, epoch, t) == 1 && days >= 0 && seconds >= 0;
    ASN1_TIME_free(epoch);
    *ret_s = (int64_t)days * 86400 + seconds;
    return fine;
}

static bool read_serial(const ASN1_INTEGER *serial, char out[43])
{
    BIGNUM *n = serial && ASN1_STRING_length(serial) <= 20 ? ASN1_INTEGER_to_BN(serial, NULL) : NULL;
    char *hex = n ? BN_bn2hex(n) : NULL;
    bool fine = hex && strlen(hex) < 43;
    if (fine) {
        memcpy(out, hex, strlen(hex) + 1);
    }
    OPENSSL_free(hex);
    BN_free(n);
    return fine;
}

/* The token's claims. Everything that is told of a token is read before it is verified; what is told to
 * people only counts once kedge_timestamp_verify has succeeded. */
static int read_info(TS_RESP *resp, struct kedge_timestamp *ret)
{
    const TS_STATUS_INFO *status = TS_RESP_get_status_info(resp);
    long code = status ? ASN1_INTEGER_get(TS_STATUS_INFO_get0_status(status)) : -1;
    TS_TST_INFO *info = TS_RESP_get_tst_info(resp);
    if ((code != TS_STATUS_GRANTED && code != TS_STATUS_GRANTED_WITH_MODS) || !info) {
        return KEDGE_E_FORMAT;
    }
    struct kedge_timestamp t = {.time_s = 0};
    TS_MSG_IMPRINT *imprint = TS_TST_INFO_get_msg_imprint(info);
    const X509_ALGOR *algo = imprint ? TS_MSG_IMPRINT_get_algo(imprint) : NULL;
    const ASN1_OCTET_STRING *msg = imprint ? TS_MSG_IMPRINT_get_msg(imprint) : NULL;
    const ASN1_OBJECT *oid = NULL, *policy = TS_TST_INFO_get_policy_id(info);
    if (algo) {
        X509_ALGOR_get0(&oid, NULL, NULL, algo);
    }
    if (!oid || OBJ_obj2nid(oid) != NID_sha256 || !msg || ASN1_STRING_length(msg) != KEDGE_HASH_LEN) {
        return KEDGE_E_FORMAT;
    }
    memcpy(t.imprint.b, ASN1_STRING_get0_data(msg), KEDGE_HASH_LEN);
    int len = policy ? OBJ_obj2txt(t.policy, sizeof t.policy, policy, 1) : 0;
    if (len <= 0 || (size_t)len >= sizeof t.policy || !posix_time(TS_TST_INFO_get_time(info), &t.time_s)
        || !read_serial(TS_TST_INFO_get_serial(info), t.serial)) {
        return KEDGE_E_FORMAT;
    }
    const ASN1_INTEGER *nonce = TS_TST_INFO_get_nonce(info);
    t.has_nonce = nonce && ASN1_INTEGER_get_uint64(&t.nonce, nonce) == 1;
    *ret = t;
    return KEDGE_OK;
}

int kedge_timestamp_parse(struct kedge_view reply, struct kedge_timestamp *ret)
{
    TS_RESP *resp = decode(reply);
    int err = resp ? read_info(resp, ret) : KEDGE_E_FORMAT;
    TS_RESP_free(resp);
    ERR_clear_error();
    return err;
}

/* A store of the CA certificates, asked about that moment; NULL when there is none. */
static X509_STORE *make_store(struct kedge_view ca_pem, int64_t time_s)
{
    if (ca_pem.len == 0 || ca_pem.len > KEDGE_TSA_PEM_MAX) {
        return NULL;
    }
    BIO *bio = BIO_new_mem_buf(ca_pem.ptr, (int)ca_pem.len);
    X509_STORE *store = X509_STORE_new();
    int count = 0;
    X509 *cert = NULL;
    while (bio && store && count < KEDGE_TSA_CERTS_MAX
           && (cert = PEM_read_bio_X509(bio, NULL, kedgei_refuse_passphrase, NULL)) != NULL) {
        count += X509_STORE_add_cert(store, cert) == 1;
        X509_free(cert);
    }
    BIO_free(bio);
    if (count == 0) {
        X509_STORE_free(store);
        return NULL;
    }
    X509_VERIFY_PARAM_set_time(X509_STORE_get0_param(store), (time_t)time_s);
    return store;
}

/* Subject of the one who signed; after verification. */
static void read_authority(TS_RESP *resp, struct kedge_timestamp *t)
{
    STACK_OF(X509) *signers = PKCS7_get0_signers(TS_RESP_get_token(resp), NULL, 0);
    BIO *bio = BIO_new(BIO_s_mem());
    char *text = NULL;
    if (signers && sk_X509_num(signers) > 0 && bio
        && X509_NAME_print_ex(bio, X509_get_subject_name(sk_X509_value(signers, 0)), 0, XN_FLAG_RFC2253)
               >= 0) {
        long len = BIO_get_mem_data(bio, &text);
        size_t n = len < 0 ? 0 : len > KEDGE_TSA_NAME_MAX ? KEDGE_TSA_NAME_MAX : (size_t)len;
        if (n > 0) {
            memcpy(t->authority, text, n);
        }
        t->authority[n] = '\0';
    }
    BIO_free(bio);
    sk_X509_free(signers);
}

/* The store and the imprint belong to the context after they are set, which is why the early way out
 * frees both and the late one does not. */
static int verify(TS_RESP *resp, const struct kedge_hash *digest, X509_STORE *store)
{
    TS_VERIFY_CTX *ctx = TS_VERIFY_CTX_new();
    uint8_t *imprint = OPENSSL_memdup(digest->b, sizeof digest->b);
    if (!ctx || !imprint) {
        TS_VERIFY_CTX_free(ctx);
        OPENSSL_free(imprint);
        X509_STORE_free(store);
        return KEDGE_E_NOMEM;
    }
    (void)TS_VERIFY_CTX_set_flags(ctx, TS_VFY_VERSION | TS_VFY_IMPRINT | TS_VFY_SIGNATURE);
    (void)TS_VERIFY_CTX_set_imprint(ctx, imprint, sizeof digest->b); /* both now belong to ctx */
    (void)TS_VERIFY_CTX_set_store(ctx, store);
    int fine = TS_RESP_verify_response(ctx, resp);
    TS_VERIFY_CTX_free(ctx);
    return fine == 1 ? KEDGE_OK : KEDGE_E_VERIFY;
}

/* The imprint is compared here first, so that "about other bytes" is told apart from "not signed by that
 * authority". */
int kedge_timestamp_verify(struct kedge_view reply, struct kedge_view data, struct kedge_view ca_pem,
                           struct kedge_timestamp *ret, struct kedge_diag *reterr)
{
    struct kedge_timestamp t;
    struct kedge_hash digest;
    TS_RESP *resp = decode(reply);
    int err = resp ? read_info(resp, &t) : KEDGE_E_FORMAT;
    kedge_sha256(data, &digest);
    if (err) {
        (void)kedge_diag_set(reterr, err, "no RFC 3161 reply that grants a token over a SHA-256 digest");
    } else if (!kedge_hash_eq(&digest, &t.imprint)) {
        err = kedge_diag_set(reterr, KEDGE_E_VERIFY, "the token is about other bytes");
    } else {
        X509_STORE *store = make_store(ca_pem, t.time_s);
        err = store ? verify(resp, &digest, store)
                    : kedge_diag_set(reterr, KEDGE_E_KEY, "no CA certificate in PEM found");
        if (store && err) {
            const char *data_text = NULL;
            int flags = 0;
            unsigned long code = ERR_peek_last_error_data(&data_text, &flags);
            const char *reason = ERR_reason_error_string(code);
            (void)kedge_diag_set(reterr, err, "the token does not verify: %s%s%s",
                                 reason ? reason : "openssl", data_text && data_text[0] ? ", " : "",
                                 data_text && (flags & ERR_TXT_STRING) ? data_text : "");
        }
    }
    if (!err) {
        read_authority(resp, &t);
        *ret = t;
    }
    TS_RESP_free(resp);
    ERR_clear_error();
    return err;
}
