/* Tokens that a coordinator gives out: printed alone on standard output, for a script's sake, or written into
 * a file that only its owner can read and then left out of the answer. */
#include <stdio.h>

#include "cli/cli.h"
#include "common/base/os/file.h"
#include "common/base/try.h"

enum { TOKEN_FILE_MAX = 4096 };

/* The buffer is wiped: a secret that is freed may turn up in later memory. */
static int put_line(const char *path, const char *line, struct kedge_diag *d)
{
    struct kedge_buf text;
    kedge_buf_init(&text, TOKEN_FILE_MAX);
    kedge_buf_put_str(&text, line);
    kedge_buf_put_str(&text, "\n");
    int err = text.err ? text.err : kedge_file_write(path, kedge_buf_view(&text), 0600, d);
    if (text.ptr) {
        kedge_wipe(text.ptr, text.len);
    }
    kedge_buf_deinit(&text);
    return err;
}

/* Printed or written where nobody looks at it: it may not hold anything that a terminal or a shell obeys. */
static bool is_token(const char *text)
{
    size_t n = 0;
    for (; text[n]; n++) {
        if (text[n] <= ' ' || text[n] > '~') {
            return false;
        }
    }
    return n > 0 && n < TOKEN_FILE_MAX;
}

int kedge_cli_token(const struct kedge_cli *c, json_t *answer, const char *out, struct kedge_diag *d)
{
    const char *token = kedge_cli_text(answer, "token");
    if (!is_token(token)) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "the coordinator gave no token, or one that is none");
    }
    if (!out) {
        if (!c->json) {
            puts(token);
            fflush(stdout);
        }
        return KEDGE_OK;
    }
    KEDGE_TRY(put_line(out, token, d));
    json_object_del(answer, "token"); /* where asked for, and nowhere else */
    json_object_set_new(answer, "file", json_string(out));
    return KEDGE_OK;
}
