/* What commands print: one object of JSON, or text for people; errors with what to do; tables; progress.
 *
 * Two rules hold for every line. Text of others (names, reasons, error messages of a coordinator) goes
 * through put_text, which shows control characters instead of sending them to the terminal, where they could
 * rewrite what was printed before. And with --format json everything for people goes to standard error, so
 * that standard output is exactly one object. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/keys_used.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/try.h"

enum {
    BAR_WIDTH = 24,
    BAR_LEAST = 4,
    ANSWER_MAX = 256 * 1024 * 1024,
    REAL_DIGITS = 15 /* 0.1 is told as 0.1 */
};

/* Twice over the object, first for the length alone: an answer may be large, and its text is then written
 * once into room that is known to be enough. */
int kedge_cli_dump(const json_t *o, size_t flags, struct kedge_buf *ret)
{
    size_t len = o ? json_dumpb(o, NULL, 0, flags) : 0;
    KEDGE_TRY(len ? kedge_buf_reserve(ret, len) : KEDGE_E_NOMEM);
    ret->len += json_dumpb(o, (char *)ret->ptr + ret->len, len, flags);
    return KEDGE_OK;
}

/* What others wrote may come from a record that is older than what is refused today: nothing of it is obeyed.
 */
static void put_text(FILE *to, struct kedge_view text)
{
    for (size_t i = 0; i < text.len;) {
        char shown[KEDGE_CHAR_SHOWN_MAX];
        size_t len;
        i += kedge_char_show(kedge_view_of(text.ptr + i, text.len - i), shown, &len);
        (void)fwrite(shown, 1, len, to);
    }
}

/* Jansson escapes everything beyond ASCII and below a blank, but not DEL, which some terminals obey. */
void kedge_cli_put_ascii(struct kedge_view json)
{
    const uint8_t *at = json.ptr, *end = json.len ? json.ptr + json.len : json.ptr;
    while (at < end) {
        const uint8_t *del = memchr(at, 0x7f, (size_t)(end - at));
        (void)fwrite(at, 1, (size_t)((del ? del : end) - at), stdout);
        at = del ? del + 1 : end;
        if (del) {
            fputs("\\u007f", stdout);
        }
    }
    fflush(stdout);
}

static void print_json(json_t *o)
{
    struct kedge_buf text;
    kedge_buf_init(&text, ANSWER_MAX);
    int err = kedge_cli_dump(o, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(REAL_DIGITS), &text);
    if (!err) {
        kedge_buf_put_str(&text, "\n");
        kedge_cli_put_ascii(kedge_buf_view(&text));
    }
    kedge_buf_deinit(&text);
    json_decref(o);
}

/* An answer that could not be made is no answer: jansson gives NULL for it, and that is told as a bug and not
 * as success. Without --format json the words were said already, and the data go. */
int kedge_cli_answer(struct kedge_cli *c, json_t *data, int code)
{
    if (!data) {
        return kedge_cli_fail(c, KEDGE_E_BUG, NULL);
    }
    if (c->json) {
        print_json(json_pack("{s:i,s:s,s:o}", "schema_version", 1, "status", "ok", "data", data));
    } else {
        json_decref(data);
    }
    return code;
}

int kedge_cli_ok(struct kedge_cli *c, json_t *data)
{
    return kedge_cli_answer(c, data, 0);
}

/* What to do next, for errors that say no more than what happened. Whether the coordinator told it (`told`)
 * or this machine decides where to look. */
static const char *default_hint(const struct kedge_cli *c, int err)
{
    switch (err) {
    case KEDGE_E_USAGE:
    case KEDGE_E_ARG:
    case KEDGE_E_FORMAT:
    case KEDGE_E_TOO_LONG:
        return "correct what is named above; kedge COMMAND -h and docs/cli.md tell what is expected";
    case KEDGE_E_NOT_FOUND:
        return c->told ? "see what there is: kedge tenant list, kedge site list, kedge job list"
                       : "check the name, and from which folder it is meant";
    case KEDGE_E_DENIED:
        return c->told ? "another key may do this: an operator's, or that of the tenant's admin"
                       : "check the owner and mode of what is named above";
    case KEDGE_E_EXISTS:
        return "choose another name, or go on with what there is";
    case KEDGE_E_STATE:
        return "see how it stands: kedge status, kedge job show JOB";
    case KEDGE_E_IO:
        return "check the path, its permissions and the disk; kedge doctor looks closer";
    case KEDGE_E_DISK_FULL:
        return "make room on this disk, or make it writable, then try again";
    case KEDGE_E_PEER_AUTH:
        return "compare --server-key with what kedge status shows at the coordinator";
    case KEDGE_E_KEY:
        return "name a private key in PEM as kedge makes them, or restore it from its backup";
    default:
        break;
    }
    switch (kedge_err_class(err)) {
    case KEDGE_CLASS_RETRY:
        return "try again in a moment; kedge status tells whether the coordinator answers, kedge doctor "
               "looks closer";
    case KEDGE_CLASS_FULL:
        return c->told ? "wait until some of what is named above is free, or have the limit raised"
                       : "make room (memory, disk), then try again";
    case KEDGE_CLASS_UNKNOWN:
        return "look whether it happened before trying again: kedge status, kedge job list";
    case KEDGE_CLASS_CORRUPT:
        return "kedge doctor DIR and kedge audit verify tell how far it goes; restore from a backup";
    case KEDGE_CLASS_BUG:
        return "a bug: please report the command and what it printed";
    case KEDGE_CLASS_OK:
    case KEDGE_CLASS_REJECT:
        break;
    }
    return "docs/errors.md tells what this code stands for";
}

/* A message may quote bytes that are no text, or be cut within a character. */
static json_t *text_json(const char *s)
{
    char ascii[KEDGE_DIAG_TEXT_MAX];
    json_t *o = json_string(s);
    size_t n = 0;
    for (; !o && s[n] && n + 1 < sizeof ascii; n++) {
        ascii[n] = (unsigned char)s[n] < 0x80 ? s[n] : '?';
    }
    ascii[n] = '\0';
    return o ? o : json_string(ascii);
}

/* A line for each key that was used. */
static void say_keys(const json_t *keys)
{
    const json_t *row;
    size_t i;
    json_array_foreach(keys, i, row)
    {
        const char *option = json_string_value(json_object_get(row, "option"));
        const char *file = json_string_value(json_object_get(row, "file"));
        const char *public = json_string_value(json_object_get(row, "public"));
        kedge_cli_say_aside("  used %s %s, whose public key is %s\n", option, file,
                            public ? public : "not to be read");
    }
}

/* Every error of every command is printed here, so that it always has three parts: what happened, what to do,
 * and, where keys may be the reason, which were used. In JSON the object goes to stdout and the words to
 * stderr as well. */
int kedge_cli_fail_as(struct kedge_cli *c, int err, const struct kedge_diag *d, int code)
{
    const char *text = d && d->text[0] ? d->text : kedge_strerror(err);
    const char *hint = d && d->hint[0] ? d->hint : default_hint(c, err);
    kedge_cli_progress_end(c);
    fputs("kedge: ", stderr);
    put_text(stderr, kedge_view_str(text));
    fputs("\n  ", stderr);
    put_text(stderr, kedge_view_str(hint));
    fputs("\n", stderr);
    json_t *keys = kedge_cli_keys_used(c, err);
    say_keys(keys);
    if (c->json) {
        json_t *error = json_pack("{s:s,s:o,s:o,s:i}", "code", kedge_err_code(err), "message",
                                  text_json(text), "hint", text_json(hint), "exit_code", code);
        if (keys) {
            json_object_set(error, "keys", keys);
        }
        print_json(json_pack("{s:i,s:s,s:o}", "schema_version", 1, "status", "error", "error", error));
    }
    json_decref(keys);
    return code;
}

/* What this machine keeps from us, and files or answers that are not what they should be. From the
 * coordinator the same codes are its answer ("refused", 4, or "no", 1); found here they mean that nothing was
 * answered (3). */
static bool cannot_be_read(int err)
{
    return err == KEDGE_E_DENIED || err == KEDGE_E_PEER_AUTH || err == KEDGE_E_KEY || err == KEDGE_E_FORMAT
           || err == KEDGE_E_TOO_LONG || err == KEDGE_E_VERSION;
}

/* The exit code says who answered. "Not found" by the coordinator is an answer (1); a file that this machine
 * may not read is none (3), although the same code from the coordinator is its refusal (4). */
int kedge_cli_fail(struct kedge_cli *c, int err, const struct kedge_diag *d)
{
    int code = kedge_exit_code(err);
    if (c->told && err == KEDGE_E_NOT_FOUND) {
        code = 1;
    } else if (!c->told && cannot_be_read(err)) {
        code = 3;
    }
    return kedge_cli_fail_as(c, err, d, code);
}

/* Formatted first and filtered as a whole: the format's own words are harmless, its arguments may not be. */
static void KEDGE_PRINTF(2, 0) say(FILE *to, const char *format, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, format, ap);
    char *text = n > 0 ? kedge_mem_new((size_t)n + 1, 1) : NULL;
    if (text) {
        vsnprintf(text, (size_t)n + 1, format, again);
        put_text(to, kedge_view_str(text));
    }
    va_end(again);
    kedge_mem_free(text);
    fflush(to);
}

void kedge_cli_say(const struct kedge_cli *c, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    say(c->json ? stderr : stdout, format, ap);
    va_end(ap);
}

void kedge_cli_say_aside(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    say(stderr, format, ap);
    va_end(ap);
}

/* ---- tables ---- */

enum { COLUMNS_MAX = 16, LINE_COLUMNS = 100, CELL_MAX = 256, WORD_COLUMNS = 60 };

/* Columns that UTF-8 text takes, one a character. */
static size_t columns_of(const char *s)
{
    size_t n = 0;
    for (; *s; s++) {
        n += ((unsigned char)*s & 0xc0) != 0x80;
    }
    return n;
}

/* So many bytes make these columns, whole characters only: a cut within one would be no text. */
static size_t bytes_of(const char *s, size_t columns)
{
    size_t i = 0;
    for (size_t n = 0; s[i]; i++) {
        n += ((unsigned char)s[i] & 0xc0) != 0x80;
        if (n > columns) {
            break;
        }
    }
    return i;
}

struct kedge_cli_word kedge_cli_word(const char *text)
{
    struct kedge_cli_word word;
    size_t all = strlen(text), len = bytes_of(text, WORD_COLUMNS);
    len = len < 4 * WORD_COLUMNS ? len : 4 * WORD_COLUMNS; /* bytes that are no text */
    snprintf(word.s, sizeof word.s, "%.*s%s", (int)len, text, len < all ? "…" : "");
    return word;
}

static size_t width_of(const struct kedge_column *column)
{
    return (size_t)(column->width < 0 ? -column->width : column->width);
}

static size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Columns are as wide as their widest cell needs, within a line of 100: cells that are too long give way from
 * the last one on, as the first columns are mostly names, by which people find the row. */
void kedge_cli_row(const struct kedge_cli *c, const struct kedge_column *columns, size_t count,
                   const char *const *cells)
{
    size_t widths[COLUMNS_MAX], whole = 0;
    char line[COLUMNS_MAX * (CELL_MAX + 8)];
    size_t used = 0;
    for (size_t i = 0; i < count && i < COLUMNS_MAX; i++) {
        bool last = i + 1 == count; /* needs no blanks after it */
        widths[i] = max_size(last && columns[i].width < 0 ? 0 : width_of(&columns[i]), columns_of(cells[i]));
        whole += widths[i] + (i ? 2 : 0);
    }
    for (size_t i = count < COLUMNS_MAX ? count : COLUMNS_MAX; i-- > 0 && whole > LINE_COLUMNS;) {
        size_t width = width_of(&columns[i]); /* the last cells give way first */
        size_t spare = widths[i] > width ? widths[i] - width : 0;
        spare = spare < whole - LINE_COLUMNS ? spare : whole - LINE_COLUMNS;
        widths[i] -= spare;
        whole -= spare;
    }
    for (size_t i = 0; i < count && i < COLUMNS_MAX; i++) {
        size_t has = columns_of(cells[i]), fits = has > widths[i] ? widths[i] - 1 : has;
        size_t pad = widths[i] - (has > widths[i] ? widths[i] : has);
        size_t bytes = bytes_of(cells[i], fits < CELL_MAX ? fits : CELL_MAX);
        int n = snprintf(line + used, sizeof line - used, "%s%*s%.*s%s%*s", i ? "  " : "",
                         columns[i].width < 0 ? 0 : (int)pad, "", (int)bytes, cells[i],
                         has > widths[i] ? "…" : "", columns[i].width < 0 ? (int)pad : 0, "");
        used += n > 0 ? (size_t)n : 0;
        if (used >= sizeof line) {
            break;
        }
    }
    size_t len = strlen(line);
    while (len > 0 && line[len - 1] == ' ') {
        line[--len] = '\0';
    }
    kedge_cli_say(c, "%s\n", line);
}

void kedge_cli_head(const struct kedge_cli *c, const struct kedge_column *columns, size_t count)
{
    const char *titles[COLUMNS_MAX];
    for (size_t i = 0; i < count && i < COLUMNS_MAX; i++) {
        titles[i] = columns[i].title;
    }
    kedge_cli_row(c, columns, count < COLUMNS_MAX ? count : COLUMNS_MAX, titles);
}

/* ---- progress ---- */

#define PLAIN_NS UINT64_C(10000000000) /* between plain lines */
enum { TERMINAL_COLUMNS = 80, TERMINAL_COLUMNS_MAX = 200 };

static bool is_terminal(void)
{
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) && term && term[0] && strcmp(term, "dumb") != 0;
}

/* A line that is longer than the terminal could not be drawn over. */
static size_t terminal_columns(void)
{
    struct winsize w;
    uint64_t n = ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 ? w.ws_col : 0;
    const char *said = getenv("COLUMNS");
    if (n == 0 && (!said || kedge_decimal_decode(kedge_view_str(said), UINT32_MAX, &n) != KEDGE_OK)) {
        n = 0;
    }
    return n == 0 ? TERMINAL_COLUMNS : n < TERMINAL_COLUMNS_MAX ? (size_t)n : TERMINAL_COLUMNS_MAX;
}

/* Without a terminal, in a log file or a pipe, progress is a line every ten seconds and nothing for what
 * takes less. */
static void say_plainly(const char *label, uint64_t done, uint64_t total, const char *text)
{
    static uint64_t said_ns, said_done = UINT64_MAX;
    uint64_t now = kedge_os_now_ns();
    if (done == said_done || (said_ns && now - said_ns < PLAIN_NS)) {
        said_ns = said_ns ? said_ns : now; /* what takes less than that needs no line */
        return;
    }
    if (said_ns) {
        fprintf(stderr, "%s: %llu of %llu%s%s\n", kedge_text_shown(label).s, (unsigned long long)done,
                (unsigned long long)total, text[0] ? ", " : "", kedge_text_shown(text).s);
        fflush(stderr);
        said_done = done;
    }
    said_ns = now;
}

static bool drawn; /* there is a line to draw over */

/* "label [####....] 3/10 text" in the columns that there are: the bar gives way first, then the end of the
 * line. */
static void draw(const char *label, uint64_t done, uint64_t total, const char *text)
{
    char bar[BAR_WIDTH + 3] = "", line[TERMINAL_COLUMNS_MAX + 64];
    char counts[48];
    snprintf(counts, sizeof counts, "%llu/%llu", (unsigned long long)done, (unsigned long long)total);
    size_t columns = terminal_columns() - 1; /* the last one would wrap */
    size_t others = columns_of(label) + columns_of(counts) + columns_of(text) + sizeof " [] " + 1;
    size_t width = columns > others ? columns - others : 0;
    width = width < BAR_WIDTH ? width : BAR_WIDTH;
    uint64_t filled = total ? (done < total ? done : total) * width / total : 0;
    for (size_t i = 0; width >= BAR_LEAST && i < width + 2; i++) {
        bar[i] = i == 0 ? '[' : i == width + 1 ? ']' : i <= filled ? '#' : '.';
    }
    snprintf(line, sizeof line, "%.64s %s%s%s %.64s", label, bar, bar[0] ? " " : "", counts, text);
    line[bytes_of(line, columns)] = '\0';
    fputs("\r\033[K", stderr);
    put_text(stderr, kedge_view_str(line));
    fflush(stderr);
    drawn = true;
}

void kedge_cli_progress(const struct kedge_cli *c, const char *label, uint64_t done, uint64_t total,
                        const char *text)
{
    (void)c;
    if (is_terminal()) {
        draw(label, done, total, text);
    } else {
        say_plainly(label, done, total, text);
    }
}

/* Cleared before anything else is printed; a caller that forgets it would leave half a line behind. */
void kedge_cli_progress_end(const struct kedge_cli *c)
{
    (void)c;
    if (drawn) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
        drawn = false;
    }
}
