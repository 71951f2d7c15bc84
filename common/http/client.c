/* POST over HTTPS for companions of the coordinator (anchors, witnesses elsewhere). libcurl does
 * the work; this file takes away what could lead elsewhere: other protocols, redirects, plain HTTP
 * to other machines. The answer goes into a buffer with a bound, and a longer one ends the
 * transfer. */
#include "common/http/client.h"

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"

enum { HOST_MAX = 255, HEADER_MAX = 128 };

struct kedge_http {
    CURL *curl;
    struct curl_slist *headers;
    char host[HOST_MAX + 1]; /* for messages */
    struct kedge_buf *into;
};

static bool begins(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

/* The host between "://" and the next of "/:?#", without a user's name before an '@'. */
static void take_host(const char *url, char out[HOST_MAX + 1])
{
    const char *from = strstr(url, "://");
    from = from ? from + 3 : url;
    size_t len = strcspn(from, "/?#");
    const char *at = memchr(from, '@', len);
    if (at) {
        len -= (size_t)(at + 1 - from);
        from = at + 1;
    }
    size_t host = from[0] == '[' ? strcspn(from, "]") + 1 : strcspn(from, ":/?#");
    host = host < len ? host : len;
    snprintf(out, HOST_MAX + 1, "%.*s", (int)(host < HOST_MAX ? host : HOST_MAX), from);
}

/* By these three spellings only. Another name for this machine could be made to point elsewhere by
 * the party that answers its look-ups. */
static bool is_loopback(const char *host)
{
    return strcmp(host, "127.0.0.1") == 0 || strcmp(host, "[::1]") == 0 || strcmp(host, "localhost") == 0;
}

static size_t take_body(char *bytes, size_t size, size_t count, void *arg)
{
    struct kedge_http *h = arg;
    kedge_buf_put(h->into, bytes, size * count);
    return h->into->err ? 0 : size * count; /* 0: stop the transfer */
}

/* Redirects are not followed: the address is the operator's, and what it names must not be able to
 * send requests on to others. A proxy from the environment is not asked for the machine itself. No
 * signals: this runs in threads. */
static bool set_options(struct kedge_http *h, const char *url)
{
    CURL *c = h->curl;
    bool ok = curl_easy_setopt(c, CURLOPT_URL, url) == CURLE_OK;
    ok = ok && curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK;
    ok = ok && curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK;
    ok = ok && curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L) == CURLE_OK;
    ok = ok && curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)KEDGE_HTTP_CONNECT_MS) == CURLE_OK;
    ok = ok && curl_easy_setopt(c, CURLOPT_HTTPHEADER, h->headers) == CURLE_OK;
    ok = ok && curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_body) == CURLE_OK;
    ok = ok && curl_easy_setopt(c, CURLOPT_WRITEDATA, h) == CURLE_OK;
    if (is_loopback(h->host)) {
        ok = ok && curl_easy_setopt(c, CURLOPT_PROXY, "") == CURLE_OK;
    }
    return ok;
}

int kedge_http_open(const struct kedge_http_options *options, struct kedge_http **ret,
                    struct kedge_diag *reterr)
{
    const char *url = options->url;
    char host[HOST_MAX + 1], header[HEADER_MAX];
    take_host(url, host);
    bool plain = begins(url, "http://");
    if (strlen(url) > KEDGE_HTTP_URL_MAX || !host[0] || (!plain && !begins(url, "https://"))) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "%s: expected https://HOST…, at most %d characters",
                              options->what, (int)KEDGE_HTTP_URL_MAX);
    }
    if (plain && !options->plain && !is_loopback(host)) {
        return kedge_diag_set(reterr, KEDGE_E_ARG,
                              "%s: plain http:// only to this machine (127.0.0.1), not to %s: use https://",
                              options->what, host);
    }
    struct kedge_http *h = kedge_mem_new(1, sizeof *h);
    if (!h || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        kedge_mem_free(h);
        return KEDGE_E_NOMEM;
    }
    memcpy(h->host, host, sizeof host);
    h->curl = curl_easy_init();
    snprintf(header, sizeof header, "content-type: %s", options->content_type);
    h->headers = curl_slist_append(NULL, header);
    if (!h->curl || !h->headers || !set_options(h, url)) {
        kedge_http_close(h);
        return kedge_diag_set(reterr, KEDGE_E_ARG, "%s: libcurl does not take it", options->what);
    }
    *ret = h;
    return KEDGE_OK;
}

void kedge_http_close(struct kedge_http *h)
{
    if (h) {
        curl_slist_free_all(h->headers);
        curl_easy_cleanup(h->curl);
        curl_global_cleanup();
        kedge_mem_free(h);
    }
}

/* What of libcurl's codes means that no byte of the request got there. */
static int err_of(CURLcode code)
{
    switch ((int)code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
        return KEDGE_E_UNREACHABLE;
    case CURLE_PEER_FAILED_VERIFICATION:
        return KEDGE_E_PEER_AUTH;
    case CURLE_OPERATION_TIMEDOUT:
        return KEDGE_E_TIMEOUT;
    case CURLE_OUT_OF_MEMORY:
        return KEDGE_E_NOMEM;
    default:
        return KEDGE_E_CLOSED;
    }
}

int kedge_http_post(struct kedge_http *h, struct kedge_view body, uint32_t timeout_ms, unsigned *ret_status,
                    struct kedge_buf *ret, struct kedge_diag *reterr)
{
    long status = 0;
    h->into = ret;
    (void)curl_easy_setopt(h->curl, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    (void)curl_easy_setopt(h->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
    (void)curl_easy_setopt(h->curl, CURLOPT_POSTFIELDS, (const char *)body.ptr);
    CURLcode code = curl_easy_perform(h->curl);
    h->into = NULL;
    if (ret->err) {
        return kedge_diag_set(reterr, ret->err, "%s: an answer of more than %zu bytes", h->host, ret->max);
    }
    if (code != CURLE_OK) {
        return kedge_diag_set(reterr, err_of(code), "%s: %s", h->host, curl_easy_strerror(code));
    }
    (void)curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &status);
    if (ret_status) {
        *ret_status = status > 0 && status < 1000 ? (unsigned)status : 0;
    } else if (status != KEDGE_HTTP_STATUS_OK) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "%s: HTTP status %ld", h->host, status);
    }
    return KEDGE_OK;
}
