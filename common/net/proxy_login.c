/* The login at a proxy: from a file of its own, which nobody else may read, to what RFC 7617 has of it. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/bytes.h"
#include "common/base/os/file.h"
#include "common/base/text.h"
#include "common/net/client.h"
#include "common/net/proxy.h"
#include "crypto/sign.h"

static const char expected[] = "expected one line, USER:PASSWORD, of at most 255 bytes";

/* Control characters would end the line of the request. */
static bool is_login(const char *text)
{
    const char *colon = strchr(text, ':');
    bool fine = colon && colon > text;
    for (size_t i = 0; text[i] && fine; i++) {
        fine = (unsigned char)text[i] >= 0x20 && text[i] != 0x7f;
    }
    return fine;
}

int kedge_net_login_read(const char *path, char ret[KEDGE_NET_LOGIN_MAX + 1], struct kedge_diag *reterr)
{
    char line[KEDGE_NET_LOGIN_MAX + 3];
    struct stat st = {.st_mode = 0};
    int fd = kedge_file_open(path, O_RDONLY | O_NOFOLLOW, reterr);
    if (fd < 0) {
        return fd;
    }
    ssize_t n = fstat(fd, &st) == 0 && (st.st_mode & 077) == 0 ? read(fd, line, sizeof line - 1) : -1;
    close(fd);
    if ((st.st_mode & 077) != 0) {
        (void)kedge_diag_set(reterr, KEDGE_E_DENIED,
                             "%s: a password with mode %04o, which others than its owner may use", path,
                             (unsigned)(st.st_mode & 07777));
        (void)kedge_diag_hint(reterr, "chmod 600 %s", path);
        return KEDGE_E_DENIED;
    }
    if (n < 0) {
        return kedge_diag_set(reterr, KEDGE_E_IO, "%s: cannot be read", path);
    }
    line[n] = '\0';
    size_t len = strcspn(line, "\r\n");
    bool whole = strlen(line) == (size_t)n && strspn(line + len, "\r\n") == (size_t)n - len;
    line[len] = '\0';
    int err = whole && len <= KEDGE_NET_LOGIN_MAX && is_login(line)
                  ? KEDGE_OK
                  : kedge_diag_set(reterr, KEDGE_E_FORMAT, "%s: %s", path, expected);
    if (!err) {
        memcpy(ret, line, len + 1);
    }
    kedge_wipe(line, sizeof line);
    return err;
}

int kedgei_proxy_basic(const char *login, char ret[KEDGE_PROXY_BASIC_MAX], struct kedge_diag *reterr)
{
    struct kedge_buf out;
    size_t len = strnlen(login, KEDGE_NET_LOGIN_MAX + 1);
    if (len > KEDGE_NET_LOGIN_MAX || !is_login(login)) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "the proxy's login: %s", expected);
    }
    kedge_buf_init(&out, KEDGE_PROXY_BASIC_MAX);
    int err = kedge_buf_reserve(&out, KEDGE_PROXY_BASIC_MAX); /* never moved: no copy stays */
    if (!err) {
        kedge_base64_put(&out, kedge_view_of(login, len));
        err = out.err;
    }
    if (!err) {
        memcpy(ret, out.ptr, out.len);
        ret[out.len] = '\0';
    }
    if (out.ptr) {
        kedge_wipe(out.ptr, out.len);
    }
    kedge_buf_deinit(&out);
    return err;
}
