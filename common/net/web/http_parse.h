/* The head of an HTTP/1.1 request (RFC 9110, 9112), read so strictly that no two programs can disagree about
 * where it ends: CRLF only, no folded lines, no Transfer-Encoding, and no bodies: GET and HEAD have none, and
 * other methods are not served here. What is refused is refused with the status to answer. Pure. */
#ifndef KEDGE_COMMON_NET_WEB_HTTP_PARSE_H
#define KEDGE_COMMON_NET_WEB_HTTP_PARSE_H

#include "common/base/bytes.h"

enum {
    KEDGE_HTTP_HEAD_MAX = 8192,   /* bytes of a request's head, its empty line included */
    KEDGE_HTTP_TARGET_MAX = 1024, /* characters of a request's target */
    KEDGE_HTTP_FIELDS_MAX = 64,   /* header fields of a request */
};

enum kedge_http_method { KEDGE_HTTP_GET, KEDGE_HTTP_HEAD };

/* What Range asks for: "bytes=first-last", "bytes=first-" (last UINT64_MAX) or "bytes=-last" (the last so
 * many, is_suffix). One range; everything else that RFC 9110 §14.2 knows is ignored, as it allows. */
struct kedge_http_range {
    bool present, is_suffix;
    uint64_t first, last;
};

/* Views borrow from the bytes that were parsed. */
struct kedge_http_head {
    enum kedge_http_method method;
    struct kedge_view target;        /* begins with '/', visible ASCII, as it came: nothing is decoded */
    struct kedge_view authorization; /* value of the field, len 0: absent */
    struct kedge_http_range range;   /* not present with If-Range: there are no validators here */
    bool closes;                     /* the connection ends with the answer */
};

/* Looks for the end of a head in `in`, whose first `seen` bytes were looked at before. 0 with *ret_len the
 * length of the head, or 0 while it is not whole; else the status with which to refuse what cannot become
 * one. */
unsigned kedge_http_find_end(struct kedge_view in, size_t seen, size_t *ret_len);
/* 0, or the status to answer: 400, 405, 414, 417, 431, 505. `head` is a whole one, with its empty line. *ret
 * is written only with 0. */
unsigned kedge_http_parse(struct kedge_view head, struct kedge_http_head *ret);
/* What a range means for a body of `total` bytes: false when it cannot be satisfied (416). */
bool kedge_http_range_resolve(const struct kedge_http_range *range, uint64_t total, uint64_t *ret_offset,
                              uint64_t *ret_len);
/* The token of "Bearer TOKEN" (RFC 6750 §2.1; the scheme in any case); false unless it is one. */
bool kedge_http_bearer(struct kedge_view authorization, struct kedge_view *ret_token);
/* "Not Found"; static storage, "Unknown" for a status that is not used here. */
const char *kedge_http_reason(unsigned status);

#endif
