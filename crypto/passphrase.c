/* A passphrase on the command line is seen by every user of the machine, and in an environment variable by
 * every child process. So it comes from a file of mode 0600 or from the terminal, and the environment
 * holds no more than the file's name.
 *
 * At the terminal, echo and signals are off while it is typed: Ctrl-C would end the program and leave the
 * person's terminal without echo. It is read as a character instead. */
#include "crypto/passphrase.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "common/base/os/file.h"

enum { CTRL_C = 3 };

static const char *file_path;
static bool may_ask;
static char remembered[KEDGE_PASSPHRASE_MAX + 1]; /* what a person typed */

void kedge_passphrase_use_file(const char *path)
{
    file_path = path;
}

void kedge_passphrase_use_terminal(void)
{
    may_ask = true;
}

void kedge_passphrase_forget(void)
{
    kedge_wipe(remembered, sizeof remembered);
}

static const char *source_file(void)
{
    const char *env = getenv("KEDGE_PASSPHRASE_FILE");
    return file_path ? file_path : env && env[0] ? env : NULL;
}

/* Bytes up to the end of the line, into line[KEDGE_PASSPHRASE_MAX + 1]. Byte by byte, so that nothing of
 * what follows the line is taken from a pipe or terminal; a NUL or a line that is too long is refused and
 * not cut, for a cut passphrase would open nothing later. */
static int read_line(int fd, const char *what, char *line, struct kedge_diag *d)
{
    size_t len = 0;
    for (;;) {
        char c;
        ssize_t n = read(fd, &c, 1);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            int e = errno;
            return kedge_diag_set(d, kedge_errno(e), "%s: cannot read the passphrase: %s", what, strerror(e));
        }
        if (n == 0 || c == '\n') {
            break;
        }
        if (c == CTRL_C) {
            return kedge_diag_set(d, KEDGE_E_CANCELLED, "%s: no passphrase was given", what);
        }
        if (len == KEDGE_PASSPHRASE_MAX || c == '\0') {
            (void)kedge_diag_set(d, KEDGE_E_KEY, "%s: expected a passphrase of at most %d bytes in one line",
                                 what, KEDGE_PASSPHRASE_MAX);
            (void)kedge_diag_hint(d, "the first line is the passphrase, text without NUL");
            return KEDGE_E_KEY;
        }
        line[len++] = c;
    }
    len -= len > 0 && line[len - 1] == '\r';
    line[len] = '\0';
    if (len == 0) {
        (void)kedge_diag_set(d, KEDGE_E_KEY, "%s: the passphrase is empty", what);
        (void)kedge_diag_hint(d, "the first line is the passphrase");
        return KEDGE_E_KEY;
    }
    return KEDGE_OK;
}

/* A pipe or descriptor (/dev/fd/3) has no permissions that mean anything, so the mode is asked of regular
 * files only. */
static int read_file(const char *path, char *line, struct kedge_diag *d)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) != 0) {
        int e = errno;
        if (fd >= 0) {
            close(fd);
        }
        return kedge_diag_set(d, kedge_errno(e), "%s: cannot open the passphrase file: %s", path,
                              strerror(e));
    }
    int err = KEDGE_OK;
    if (S_ISDIR(st.st_mode)) {
        (void)kedge_diag_set(d, KEDGE_E_IO, "%s: a folder, expected a file with a passphrase", path);
        (void)kedge_diag_hint(d, "name the file whose first line is the passphrase");
        err = KEDGE_E_IO;
    }
    if (S_ISREG(st.st_mode) && (st.st_mode & 077) != 0) {
        (void)kedge_diag_set(d, KEDGE_E_DENIED,
                             "%s: passphrase file with mode %04o, which others than its owner may use", path,
                             (unsigned)(st.st_mode & 07777));
        (void)kedge_diag_hint(d, "chmod 600 %s", path);
        err = KEDGE_E_DENIED;
    }
    if (!err) {
        err = read_line(fd, path, line, d);
    }
    close(fd);
    return err;
}

/* A line from the terminal that nobody sees. */
static int ask(const char *question, const char *path, char *line, struct kedge_diag *d)
{
    struct termios old, quiet;
    char text[512];
    int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 || tcgetattr(fd, &old) != 0) {
        if (fd >= 0) {
            close(fd);
        }
        (void)kedge_diag_set(d, KEDGE_E_DENIED,
                             "%s: a passphrase is needed, and there is no terminal to ask at", path);
        return kedge_diag_hint(
            d, "name the file with its passphrase: --passphrase-file FILE or $KEDGE_PASSPHRASE_FILE");
    }
    quiet = old;
    quiet.c_lflag &= ~(tcflag_t)(ECHO | ECHONL | ISIG); /* Ctrl-C must not leave the terminal silent: */
    quiet.c_cc[VEOL] = CTRL_C;                          /* it ends the line and is read */
    int n = snprintf(text, sizeof text, "%s %.400s: ", question, path);
    bool silent = tcsetattr(fd, TCSAFLUSH, &quiet) == 0; /* before it asks: who is quick is not seen either */
    int err = silent && n > 0 && write(fd, text, (size_t)n) == n
                  ? read_line(fd, "terminal", line, d)
                  : kedge_diag_set(d, KEDGE_E_IO, "terminal: cannot be made silent");
    (void)tcsetattr(fd, TCSAFLUSH, &old);
    (void)!write(fd, "\n", 1);
    close(fd);
    return err;
}

static int hand_out(const char *line, struct kedge_buf *ret, const char *path, struct kedge_diag *d)
{
    int err = kedge_buf_reserve(ret, KEDGE_PASSPHRASE_MAX); /* never moved: no copy stays */
    if (err) {
        return kedge_diag_set(d, err, "%s: %s", path, kedge_strerror(err));
    }
    kedge_buf_put_str(ret, line);
    return ret->err;
}

/* `again` says that the last one did not fit: a file is not read a second time, as it would give the
 * same; a person is asked, and what was typed is remembered for the next key of this run. */
int kedge_passphrase_get(const char *key_path, bool again, struct kedge_buf *ret, struct kedge_diag *reterr)
{
    char line[KEDGE_PASSPHRASE_MAX + 1];
    const char *file = source_file();
    int err = KEDGE_OK;
    if (file && !again) {
        err = read_file(file, line, reterr);
    } else if (file || !may_ask || !reterr) {
        (void)kedge_diag_set(
            reterr, again ? KEDGE_E_VERIFY : KEDGE_E_DENIED,
            again ? "%s: another passphrase than this key was sealed with, or the file is damaged"
                  : "%s: the key is sealed with a passphrase",
            key_path);
        (void)kedge_diag_hint(reterr,
                              again ? "the passphrase is the first line of %s"
                                    : "name the file with it: --passphrase-file FILE or %s",
                              again && file ? file : "$KEDGE_PASSPHRASE_FILE");
        return again ? KEDGE_E_VERIFY : KEDGE_E_DENIED;
    } else if (remembered[0] && !again) {
        memcpy(line, remembered, sizeof line);
    } else {
        err = ask(again ? "That did not fit. Passphrase of" : "Passphrase of", key_path, line, reterr);
        if (!err) {
            memcpy(remembered, line, sizeof remembered);
        }
    }
    if (!err) {
        err = hand_out(line, ret, key_path, reterr);
    }
    kedge_wipe(line, sizeof line);
    return err;
}

/* Typed twice, since nobody sees it; a key that is sealed with a slip of the finger is lost. */
int kedge_passphrase_new(const char *key_path, struct kedge_buf *ret, struct kedge_diag *reterr)
{
    char line[KEDGE_PASSPHRASE_MAX + 1], second[KEDGE_PASSPHRASE_MAX + 1];
    const char *file = source_file();
    int err = file      ? read_file(file, line, reterr)
              : may_ask ? ask("New passphrase for", key_path, line, reterr)
                        : kedge_diag_set(reterr, KEDGE_E_DENIED, "%s: no passphrase was given", key_path);
    if (!err && !file) {
        err = ask("The same again for", key_path, second, reterr);
        if (!err && strcmp(line, second) != 0) {
            err = kedge_diag_set(reterr, KEDGE_E_VERIFY, "the two passphrases differ; nothing was changed");
        }
        kedge_wipe(second, sizeof second);
    }
    if (!err) {
        err = hand_out(line, ret, key_path, reterr);
    }
    kedge_wipe(line, sizeof line);
    return err;
}
