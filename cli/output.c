#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

enum { BAR_WIDTH = 24, ANSWER_MAX = 256 * 1024 * 1024 };

int kedge_cli_dump(const json_t *o, size_t flags, struct kedge_buf *ret)
{
    size_t len = o ? json_dumpb(o, NULL, 0, flags) : 0;
    int err = len ? kedge_buf_reserve(ret, len) : KEDGE_E_NOMEM;
    if (!err) {
        ret->len += json_dumpb(o, (char *)ret->ptr + ret->len, len, flags);
    }
    return err;
}

static void print_json(json_t *o)
{
    struct kedge_buf text;
    kedge_buf_init(&text, ANSWER_MAX);
    if (kedge_cli_dump(o, JSON_COMPACT, &text) == KEDGE_OK) {
        printf("%.*s\n", (int)text.len, (const char *)text.ptr);
        fflush(stdout);
    }
    kedge_buf_deinit(&text);
    json_decref(o);
}

int kedge_cli_answer(struct kedge_cli *c, json_t *data, int code)
{
    if (c->json) {
        print_json(json_pack("{s:i,s:s,s:o}", "schema_version", 1, "status", "ok", "data",
                             data ? data : json_object()));
    } else {
        json_decref(data);
    }
    return code;
}

int kedge_cli_ok(struct kedge_cli *c, json_t *data)
{
    return kedge_cli_answer(c, data, 0);
}

int kedge_cli_fail(struct kedge_cli *c, int err, const struct kedge_diag *d)
{
    const char *text = d && d->text[0] ? d->text : kedge_strerror(err);
    const char *hint = d ? d->hint : "";
    fprintf(stderr, "kedge: %s\n", text);
    if (hint[0]) {
        fprintf(stderr, "  %s\n", hint);
    }
    if (c->json) {
        print_json(json_pack("{s:i,s:s,s:{s:s,s:s,s:s,s:i}}", "schema_version", 1, "status", "error", "error",
                             "code", kedge_err_code(err), "message", text, "hint", hint, "exit_code",
                             kedge_exit_code(err)));
    }
    return kedge_exit_code(err);
}

void kedge_cli_say(const struct kedge_cli *c, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vfprintf(c->json ? stderr : stdout, format, ap);
    va_end(ap);
    fflush(c->json ? stderr : stdout);
}

void kedge_cli_row(const struct kedge_cli *c, const struct kedge_column *columns, size_t count,
                   const char *const *cells)
{
    char line[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < count && used < sizeof line; i++) {
        int n = snprintf(line + used, sizeof line - used, "%s%*s", i ? "  " : "", columns[i].width, cells[i]);
        used += n > 0 ? (size_t)n : 0;
    }
    size_t len = strlen(line);
    while (len > 0 && line[len - 1] == ' ') {
        line[--len] = '\0';
    }
    kedge_cli_say(c, "%s\n", line);
}

void kedge_cli_head(const struct kedge_cli *c, const struct kedge_column *columns, size_t count)
{
    const char *titles[16];
    for (size_t i = 0; i < count && i < 16; i++) {
        titles[i] = columns[i].title;
    }
    kedge_cli_row(c, columns, count < 16 ? count : 16, titles);
}

void kedge_cli_progress(const struct kedge_cli *c, const char *label, uint64_t done, uint64_t total,
                        const char *text)
{
    (void)c;
    if (!isatty(STDERR_FILENO)) {
        return;
    }
    char bar[BAR_WIDTH + 1];
    uint64_t filled = total ? done * BAR_WIDTH / total : 0;
    for (uint64_t i = 0; i < BAR_WIDTH; i++) {
        bar[i] = i < filled ? '#' : '.';
    }
    bar[BAR_WIDTH] = '\0';
    fprintf(stderr, "\r\033[K%s [%s] %llu/%llu %.50s", label, bar, (unsigned long long)done,
            (unsigned long long)total, text);
    fflush(stderr);
}

void kedge_cli_progress_end(const struct kedge_cli *c)
{
    (void)c;
    if (isatty(STDERR_FILENO)) {
        fputs("\r\033[K", stderr);
    }
}
