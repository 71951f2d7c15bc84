/* Requests that are with the application, and what it answers. An answer comes in pieces: the head
 * with the first one, and when a piece has left the application is asked for the next, at the
 * offset where it continues. So an answer of any length needs the memory of one piece, and the
 * application keeps no state between them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/net/web/http_state.h"

enum { HEAD_TEXT_MAX = 1024 };

/* The server whose thread this is: it finds its outbox without being woken. */
static _Thread_local const struct kedge_http_server *handling;

/* ---- heads of answers ---- */

/* IMF-fixdate (RFC 9110 §5.6.7), in no locale's words. */
static void format_date(uint64_t unix_s, char out[32])
{
    static const char days[] = "ThuFriSatSunMonTueWed"; /* the first of January 1970 was a Thursday */
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    uint64_t day = unix_s / 86400, second = unix_s % 86400;
    /* Civil date from days, with years that begin in March: the leap day is their last. */
    uint64_t shifted = day + 719468, era = shifted / 146097, doe = shifted % 146097;
    uint64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    uint64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
    uint64_t month = mp < 10 ? mp + 3 : mp - 9, year = (yoe + era * 400 + (month <= 2 ? 1 : 0)) % 10000;
    snprintf(out, 32, "%.3s, %02u %.3s %04u %02u:%02u:%02u GMT", days + 3 * (day % 7),
             (unsigned)(doy - (153 * mp + 2) / 5 + 1), months + 3 * (month - 1), (unsigned)year,
             (unsigned)(second / 3600), (unsigned)(second / 60 % 60), (unsigned)(second % 60));
}

/* Length of the head in out[HEAD_TEXT_MAX], 0 when it does not fit. */
static size_t format_head(const struct kedge_http_answer *a, bool closes, char out[HEAD_TEXT_MAX])
{
    char date[32];
    format_date(kedge_os_unix_ms() / 1000, date);
    int n = snprintf(out, HEAD_TEXT_MAX,
                     "HTTP/1.1 %u %s\r\nDate: %s\r\nContent-Type: %s\r\nContent-Length: %" PRIu64
                     "\r\nCache-Control: %s\r\n%s%s\r\n",
                     a->status, kedge_http_reason(a->status), date, a->content_type, a->len,
                     a->cache_control ? a->cache_control : "no-store", a->fields ? a->fields : "",
                     closes ? "Connection: close\r\n" : "");
    return n > 0 && n < HEAD_TEXT_MAX ? (size_t)n : 0;
}

static struct kedgei_http_out *new_out(const char *head, size_t head_len, struct kedge_view body)
{
    size_t len = head_len + body.len;
    struct kedgei_http_out *out = kedge_mem_new(1, sizeof *out + len);
    if (out) {
        out->len = len;
        memcpy(out->bytes, head, head_len);
        if (body.len > 0) {
            memcpy(out->bytes + head_len, body.ptr, body.len);
        }
    }
    return out;
}

static size_t status_text(unsigned status, char out[64])
{
    int n = snprintf(out, 64, "%u %s\n", status, kedge_http_reason(status));
    return n > 0 ? (size_t)n : 0;
}

static struct kedge_http_answer status_answer(unsigned status, size_t len)
{
    return (struct kedge_http_answer){
        .status = status, .content_type = "text/plain; charset=utf-8", .len = len};
}

/* An answer of the server's own, to a request that the application never sees. */
struct kedgei_http_out *kedgei_http_refusal(unsigned status, bool with_body)
{
    char head[HEAD_TEXT_MAX], text[64];
    size_t len = status_text(status, text);
    struct kedge_http_answer a = status_answer(status, len);
    a.fields = status == 405                    ? "Allow: GET, HEAD\r\n"
               : status == 503 || status == 429 ? "Retry-After: 1\r\n"
                                                : NULL;
    size_t head_len = format_head(&a, true, head);
    return new_out(head, head_len, kedge_view_of(text, with_body ? len : 0));
}

/* ---- over to the application and back ---- */

void kedgei_http_request_free(struct kedge_http_request *req)
{
    if (req) {
        kedge_mem_free(req->out);
        kedge_mem_free(req);
    }
}

/* The request holds the session and the server until it comes back, whatever becomes of them
 * meanwhile. */
void kedgei_http_hand_over(struct kedge_http_request *req)
{
    struct kedge_http_server *server = req->server;
    pthread_mutex_lock(&server->hub.mutex);
    req->session->refs++;
    server->hub.refs++;
    server->counters.requests += req->begun ? 0 : 1;
    server->counters.held++;
    pthread_mutex_unlock(&server->hub.mutex);
    handling = server;
    server->handler(server->arg, req, req->given);
    handling = NULL;
}

const struct kedge_http_head *kedge_http_request_head(const struct kedge_http_request *req)
{
    return &req->head;
}

uint32_t kedge_http_request_party(const struct kedge_http_request *req)
{
    return req->session->party;
}

/* Gives the request back: into the outbox, or, when nobody is left to send, away. */
static void finish(struct kedge_http_request *req)
{
    struct kedge_http_server *server = req->server;
    pthread_mutex_lock(&server->hub.mutex);
    server->counters.held--;
    if (server->hub.closed) {
        kedgei_http_session_drop(req->session);
        kedgei_http_server_drop(server);
        kedgei_http_request_free(req);
        return;
    }
    kedgei_hub_put(&server->hub, &req->held, handling != server);
    pthread_mutex_unlock(&server->hub.mutex);
}

/* The piece is one that may come now. */
static bool is_piece(const struct kedge_http_request *req, struct kedge_view piece)
{
    return piece.len <= KEDGE_HTTP_PIECE_MAX && piece.len <= req->left && (piece.len > 0) == (req->left > 0);
}

/* A piece that does not fit what was announced is a mistake of the application: without `out` the
 * client gets an error or, once the answer has begun, an early end. */
void kedge_http_reply(struct kedge_http_request *req, const struct kedge_http_answer *answer,
                      struct kedge_view piece)
{
    char head[HEAD_TEXT_MAX];
    size_t head_len = format_head(answer, req->head.closes, head);
    bool is_head = req->head.method == KEDGE_HTTP_HEAD;
    req->left = is_head ? 0 : answer->len;
    piece = is_head ? kedge_view_of(NULL, 0) : piece;
    if (head_len > 0 && !req->begun && is_piece(req, piece)) {
        req->begun = true;
        req->party = answer->party;
        req->out = new_out(head, head_len, piece);
        req->left -= piece.len;
        req->given += piece.len;
    }
    finish(req);
}

void kedge_http_reply_more(struct kedge_http_request *req, struct kedge_view piece)
{
    if (req->begun && is_piece(req, piece)) {
        req->out = new_out("", 0, piece);
        req->left -= piece.len;
        req->given += piece.len;
    }
    finish(req);
}

void kedge_http_abort(struct kedge_http_request *req)
{
    finish(req);
}

void kedge_http_reply_status(struct kedge_http_request *req, unsigned status, const char *fields)
{
    char text[64];
    size_t len = status_text(status, text);
    struct kedge_http_answer a = status_answer(status, len);
    a.fields = fields;
    kedge_http_reply(req, &a, kedge_view_of(text, len));
}

void kedgei_http_drain(struct kedgei_hub *hub)
{
    struct kedge_http_server *server = (struct kedge_http_server *)hub;
    for (struct kedgei_held *list = kedgei_hub_take(hub), *next; list; list = next) {
        struct kedge_http_request *req = (struct kedge_http_request *)list;
        struct kedgei_http_session *s = req->session;
        next = list->next;
        kedgei_http_answered(s, req);
        pthread_mutex_lock(&hub->mutex);
        kedgei_http_session_drop(s);
        kedgei_http_server_drop(server); /* unlocks; the owner still holds a reference */
    }
}

void kedgei_http_close_outbox(struct kedge_http_server *server)
{
    struct kedgei_held *list = kedgei_hub_take(&server->hub);
    pthread_mutex_lock(&server->hub.mutex);
    for (struct kedgei_held *next; list; list = next) {
        struct kedge_http_request *req = (struct kedge_http_request *)list;
        next = list->next;
        kedgei_http_session_drop(req->session);
        server->hub.refs--; /* the owner's remains */
        kedgei_http_request_free(req);
    }
    pthread_mutex_unlock(&server->hub.mutex);
}
