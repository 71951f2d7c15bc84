/* The one file that knows libarchive. Only tar is read, only through filters that are built in:
 * libarchive would start programs for others.
 *
 * An archive comes from a stranger. So names are taken apart and put together again, links and devices
 * are refused, files are made with O_EXCL and O_NOFOLLOW in a folder of the auditor's own (mode 0700),
 * and bytes, members and depth are bounded; a path out of the folder, a file written through a link and a
 * bomb are what this is against. */
#include "chain/audit/files/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chain/state/tree.h"
#include "common/base/mem.h"
#include "common/base/try.h"

enum { BLOCK = 1 << 18, DEPTH_MAX = 16, NAME_MAX_BYTES = 255, ENTRIES_MAX = 16 << 20 };
static const uint64_t disk_reserve = (uint64_t)256 << 20;

struct unpacking {
    const char *path; /* of the archive */
    struct archive *archive;
    struct kedge_unpacked *to;
    struct kedge_archive_limits left;
    uint8_t *block;
    struct kedge_diag *d;
};

bool kedge_archive_is(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* A member's name for a message: others wrote it. */
struct shown {
    char s[81];
};
static struct shown show(const char *name)
{
    struct shown r;
    size_t i = 0;
    for (; name && name[i] && i + 1 < sizeof r.s; i++) {
        uint8_t c = (uint8_t)name[i];
        r.s[i] = c < 0x20 || c > 0x7e ? '?' : (char)c;
    }
    r.s[i] = '\0';
    return r;
}

static int refuse(const struct unpacking *u, int err, const char *name, const char *why)
{
    return kedge_diag_set(u->d, err, "%s: \"%s\": %s", u->path, show(name).s, why);
}

/* What libarchive says: its words may quote the archive. */
static int fail(const struct unpacking *u)
{
    int e = archive_errno(u->archive);
    int err = e == ENOMEM ? KEDGE_E_NOMEM : e == EIO ? KEDGE_E_IO : KEDGE_E_FORMAT;
    const char *text = archive_error_string(u->archive);
    return kedge_diag_set(u->d, err, "%s: not a whole tar archive (.tar, .tar.gz, .tar.zst): %s", u->path,
                          show(text ? text : "unreadable").s);
}

/* The path below the folder, without "./" and a final "/"; NULL when a name may not stand there. *ret has
 * room for a path. An empty one is the folder itself. Nothing of the archive's spelling is kept: empty
 * parts and "." fall away, ".." and control bytes refuse the archive, and what is left cannot lead out of
 * the folder. */
static bool clean_path(const char *name, char *ret)
{
    size_t len = 0;
    unsigned depth = 0;
    if (name[0] == '/') {
        return false;
    }
    for (const char *p = name; *p;) {
        size_t part = strcspn(p, "/");
        bool dots = (part == 1 && p[0] == '.') || (part == 2 && p[0] == '.' && p[1] == '.');
        if (dots && part == 2) {
            return false;
        }
        if (part > 0 && !dots) {
            if (part > NAME_MAX_BYTES || ++depth > DEPTH_MAX || len + part + 2 > KEDGE_PATH_MAX / 2) {
                return false;
            }
            for (size_t i = 0; i < part; i++) {
                if ((uint8_t)p[i] < 0x20 || (uint8_t)p[i] == 0x7f) {
                    return false;
                }
            }
            if (len > 0) {
                ret[len++] = '/';
            }
            memcpy(ret + len, p, part);
            len += part;
        }
        p += part + (p[part] == '/');
    }
    ret[len] = '\0';
    return true;
}

/* Folders on the way to a file. */
static int make_parent(const struct unpacking *u, char *path)
{
    char *slash = strrchr(path, '/');
    *slash = '\0';
    int err = kedge_dir_make(path, 0700, u->d);
    *slash = '/';
    return err;
}

/* Not more bytes than are left, and no more than a call of libarchive gives. Sizes in headers are not
 * believed; bytes are counted as they come out of the decompressor, and the archive is refused when they
 * exceed what this machine can take. */
static int copy_data(struct unpacking *u, const char *name, int fd)
{
    for (;;) {
        la_ssize_t n = archive_read_data(u->archive, u->block, BLOCK); /* holes are read as zeros */
        if (n == 0) {
            return KEDGE_OK;
        }
        if (n < 0) {
            return fail(u);
        }
        if ((uint64_t)n > u->left.bytes) {
            return refuse(u, KEDGE_E_TOO_LONG, name, "the archive holds more bytes than this machine takes");
        }
        u->left.bytes -= (uint64_t)n;
        int err = kedge_fd_write(fd, kedge_view_of(u->block, (size_t)n));
        if (err) {
            return kedge_diag_set(u->d, err, "%s: cannot write: %s", u->to->root, strerror(errno));
        }
    }
}

/* A second member of the same name is refused and not overwritten: two readers of such an archive could
 * see two records. */
static int unpack_file(struct unpacking *u, const char *name, char *path)
{
    KEDGE_TRY(make_parent(u, path));
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return errno == EEXIST || errno == EISDIR || errno == ENOTDIR
                   ? refuse(u, KEDGE_E_FORMAT, name, "stands in the archive twice")
                   : kedge_diag_set(u->d, kedge_errno(errno), "%s: cannot write: %s", u->to->root,
                                    strerror(errno));
    }
    int err = copy_data(u, name, fd);
    return close(fd) == 0 || err ? err : kedge_diag_set(u->d, KEDGE_E_IO, "%s: cannot write", u->to->root);
}

/* The type is looked at after hard and symbolic links, which libarchive reports beside a type of their
 * own. */
static int unpack_entry(struct unpacking *u, struct archive_entry *entry)
{
    char below[KEDGE_PATH_MAX], path[KEDGE_PATH_MAX];
    const char *name = archive_entry_pathname(entry);
    if (u->left.entries-- == 0) {
        return kedge_diag_set(u->d, KEDGE_E_TOO_LONG, "%s: too many files", u->path);
    }
    if (!name || !clean_path(name, below)) {
        return refuse(u, KEDGE_E_FORMAT, name,
                      "a path that a record does not have: absolute, with \"..\", too deep or too long");
    }
    __LA_MODE_T type = archive_entry_filetype(entry);
    if (archive_entry_hardlink(entry) || archive_entry_symlink(entry)
        || (type != AE_IFREG && type != AE_IFDIR)) {
        return refuse(u, KEDGE_E_FORMAT, name, "a link or device; a record has files and folders only");
    }
    if (below[0] == '\0') {
        return type == AE_IFDIR ? KEDGE_OK : refuse(u, KEDGE_E_FORMAT, name, "a file without a name");
    }
    int err = kedge_path_join(path, u->to->root, below);
    if (err) {
        return refuse(u, err, name, "path too long");
    }
    return type == AE_IFDIR ? kedge_dir_make(path, 0700, u->d) : unpack_file(u, name, path);
}

static int unpack_all(struct unpacking *u)
{
    for (;;) {
        struct archive_entry *entry;
        int r = archive_read_next_header(u->archive, &entry);
        if (r == ARCHIVE_EOF) {
            return KEDGE_OK;
        }
        KEDGE_TRY(r == ARCHIVE_OK ? unpack_entry(u, entry) : fail(u));
    }
}

/* The record: here, or in the one folder that is here. Archives are often made of a folder and not of its
 * content, so one folder alone at the top is gone into, once. */
static void find_record(struct kedge_unpacked *to)
{
    char state[KEDGE_PATH_MAX], only[KEDGE_PATH_MAX] = "";
    size_t count = 0;
    memcpy(to->dir, to->root, sizeof to->dir);
    if ((kedge_path_join(state, to->root, "config.json") == KEDGE_OK && access(state, F_OK) == 0)
        || (kedge_path_join(state, to->root, "state") == KEDGE_OK && access(state, F_OK) == 0)) {
        return;
    }
    DIR *dir = opendir(to->root);
    for (struct dirent *e; dir && (e = readdir(dir)) != NULL;) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            count++;
            snprintf(only, sizeof only, "%s", e->d_name);
        }
    }
    if (dir) {
        closedir(dir);
    }
    if (count == 1 && kedge_path_join(to->dir, to->root, only) != KEDGE_OK) {
        memcpy(to->dir, to->root, sizeof to->dir);
    }
}

/* ---- the keeper ---- */

/* Waits for the end of the unpacker, however it comes: then nobody writes to the pipe any more. */
static _Noreturn void keep(const char *root, int fd)
{
    static const int deaf_to[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE};
    char byte;
    for (size_t i = 0; i < sizeof deaf_to / sizeof deaf_to[0]; i++) {
        (void)signal(deaf_to[i], SIG_IGN); /* Ctrl-C reaches both */
    }
    for (int i = 0; i < 3; i++) {
        close(i); /* a reader of our output must not wait for us */
    }
    ssize_t n;
    do {
        n = read(fd, &byte, 1);
    } while (n > 0 || (n < 0 && errno == EINTR));
    (void)!kedge_dir_remove(root);
    _exit(0);
}

/* Without one it works, too, but a killed audit leaves its folder. A child that waits on a pipe and
 * removes the folder when the auditor ends, also by a signal that cannot be caught: what was unpacked may
 * be confidential. */
static void start_keeper(struct kedge_unpacked *to)
{
    int ends[2];
    to->keeper = to->alive = -1;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return;
    }
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[1]);
        keep(to->root, ends[0]);
    }
    close(ends[0]);
    if (pid < 0) {
        close(ends[1]);
        return;
    }
    to->keeper = (int)pid;
    to->alive = ends[1];
}

static void end_keeper(struct kedge_unpacked *u)
{
    if (u->alive >= 0) {
        close(u->alive);
        while (waitpid((pid_t)u->keeper, NULL, 0) < 0 && errno == EINTR) {
        }
        u->alive = -1;
    }
}

static int open_archive(struct unpacking *u)
{
    u->archive = archive_read_new();
    u->block = kedge_mem_new(1, BLOCK);
    if (!u->archive || !u->block) {
        return kedge_diag_set(u->d, KEDGE_E_NOMEM, "%s: out of memory", u->path);
    }
    int zstd = archive_read_support_filter_zstd(u->archive);
    if (archive_read_support_format_tar(u->archive) != ARCHIVE_OK
        || archive_read_support_filter_gzip(u->archive) != ARCHIVE_OK || zstd != ARCHIVE_OK) {
        return kedge_diag_set(u->d, KEDGE_E_BUG, "libarchive was built without tar, gzip or zstd");
    }
    return archive_read_open_filename(u->archive, u->path, BLOCK) == ARCHIVE_OK ? KEDGE_OK : fail(u);
}

/* Without a bound from the caller, what the disk has but a reserve: an archive must not fill the disk
 * that others write to. */
static int make_root(struct unpacking *u)
{
    const char *tmp = getenv("TMPDIR");
    struct statvfs disk;
    int n = snprintf(u->to->root, sizeof u->to->root, "%s/kedge-audit-XXXXXX",
                     tmp && tmp[0] == '/' ? tmp : "/tmp");
    if (n < 0 || (size_t)n >= sizeof u->to->root / 2) {
        return kedge_diag_set(u->d, KEDGE_E_TOO_LONG, "$TMPDIR: path too long");
    }
    if (!mkdtemp(u->to->root)) {
        return kedge_diag_set(u->d, kedge_errno(errno), "%s: cannot make a folder: %s", u->to->root,
                              strerror(errno));
    }
    if (u->left.bytes == 0 && statvfs(u->to->root, &disk) == 0) {
        uint64_t room = (uint64_t)disk.f_bavail * disk.f_frsize;
        u->left.bytes = room > disk_reserve ? room - disk_reserve : 0;
    }
    return KEDGE_OK;
}

int kedge_archive_unpack(const char *path, const struct kedge_archive_limits *limits,
                         struct kedge_unpacked *ret, struct kedge_diag *reterr)
{
    struct kedge_unpacked to;
    struct unpacking u = {.path = path, .to = &to, .d = reterr};
    u.left = limits ? *limits : (struct kedge_archive_limits){0, 0};
    u.left.entries = u.left.entries ? u.left.entries : ENTRIES_MAX;
    KEDGE_TRY(make_root(&u));
    start_keeper(&to);
    int err = open_archive(&u);
    if (!err) {
        err = unpack_all(&u);
    }
    kedge_mem_free(u.block);
    if (u.archive) {
        archive_read_free(u.archive);
    }
    if (err) {
        (void)!kedge_dir_remove(to.root);
        end_keeper(&to);
        return err;
    }
    find_record(&to);
    *ret = to;
    return KEDGE_OK;
}

int kedge_archive_remove(struct kedge_unpacked *u, struct kedge_diag *reterr)
{
    int err = kedge_dir_remove(u->root);
    end_keeper(u);
    return err ? kedge_diag_set(reterr, err, "%s: what was unpacked cannot be removed", u->root) : KEDGE_OK;
}

/* ---- packing ---- */

enum packing_as { PACK_NONE, PACK_PLAIN, PACK_GZIP, PACK_ZSTD };

static enum packing_as packing_of(const char *name)
{
    static const struct {
        const char *end;
        enum packing_as as;
    } ends[] = {{".tar", PACK_PLAIN}, {".tar.gz", PACK_GZIP}, {".tgz", PACK_GZIP}, {".tar.zst", PACK_ZSTD}};
    size_t len = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        size_t end = strlen(ends[i].end);
        if (len > end && strcmp(name + len - end, ends[i].end) == 0) {
            return ends[i].as;
        }
    }
    return PACK_NONE;
}

bool kedge_archive_is_name(const char *name)
{
    return packing_of(name) != PACK_NONE;
}

static int pack_fail(struct archive *a, const char *path, struct kedge_diag *d)
{
    int e = archive_errno(a);
    const char *text = archive_error_string(a);
    return kedge_diag_set(d, e > 0 ? kedge_errno(e) : KEDGE_E_IO, "%s: cannot be written: %s", path,
                          show(text ? text : "unknown").s);
}

static int open_pack(struct archive *a, enum packing_as as, const char *path, struct kedge_diag *d)
{
    int filter = as == PACK_GZIP   ? archive_write_add_filter_gzip(a)
                 : as == PACK_ZSTD ? archive_write_add_filter_zstd(a)
                                   : archive_write_add_filter_none(a);
    if (filter != ARCHIVE_OK || archive_write_set_format_pax_restricted(a) != ARCHIVE_OK) {
        return kedge_diag_set(d, KEDGE_E_BUG, "libarchive was built without tar, gzip or zstd");
    }
    if (as == PACK_GZIP) { /* the same record is the same bytes */
        (void)archive_write_set_filter_option(a, "gzip", "timestamp", NULL);
    }
    return archive_write_open_filename(a, path) == ARCHIVE_OK ? KEDGE_OK : pack_fail(a, path, d);
}

static int put_content(struct archive *a, int fd, uint8_t *block, const char *from, const char *path,
                       struct kedge_diag *d)
{
    for (;;) {
        ssize_t n = read(fd, block, BLOCK);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? kedge_diag_set(d, kedge_errno(errno), "%s: %s", from, strerror(errno)) : KEDGE_OK;
        }
        if (archive_write_data(a, block, (size_t)n) != (la_ssize_t)n) {
            return pack_fail(a, path, d);
        }
    }
}

/* Owner, time and rights of this machine stay out of the archive: the same record gives the same bytes,
 * and tells nothing about the computer that packed it. */
static int put_member(struct archive *a, const char *dir, const char *name, uint8_t *block, const char *path,
                      struct kedge_diag *d)
{
    char from[KEDGE_PATH_MAX];
    bool is_dir = name[strlen(name) - 1] == '/';
    struct archive_entry *entry = archive_entry_new();
    int fd = -1, err = entry ? kedge_path_join(from, dir, name) : KEDGE_E_NOMEM;
    if (err) {
        archive_entry_free(entry);
        return kedge_diag_set(d, err, "%s: %s", name, kedge_strerror(err));
    }
    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, is_dir ? AE_IFDIR : AE_IFREG);
    archive_entry_set_perm(entry, is_dir ? 0755 : 0644);
    archive_entry_set_mtime(entry, 0, 0);
    if (!is_dir) {
        fd = kedge_file_open(from, O_RDONLY | O_NOFOLLOW, d);
        int64_t size = fd < 0 ? 0 : kedge_file_size(from);
        err = fd < 0     ? fd
              : size < 0 ? kedge_diag_set(d, (int)size, "%s: cannot be looked at", from)
                         : KEDGE_OK;
        archive_entry_set_size(entry, size < 0 ? 0 : size);
    }
    if (!err && archive_write_header(a, entry) != ARCHIVE_OK) {
        err = pack_fail(a, path, d);
    }
    err = err || is_dir ? err : put_content(a, fd, block, from, path, d);
    archive_entry_free(entry);
    if (fd >= 0) {
        close(fd);
    }
    return err;
}

int kedge_archive_pack(const char *dir, const char *name, const char *path, struct kedge_diag *reterr)
{
    struct kedge_tree tree;
    enum packing_as as = packing_of(name);
    if (as == PACK_NONE) {
        return kedge_diag_set(reterr, KEDGE_E_ARG,
                              "%s: expected a name that ends in .tar, .tar.gz or .tar.zst", show(name).s);
    }
    int err = kedge_tree_list_all(dir, &tree, reterr);
    if (err) {
        return err;
    }
    struct archive *a = archive_write_new();
    uint8_t *block = kedge_mem_new(1, BLOCK);
    err =
        a && block ? open_pack(a, as, path, reterr) : kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory");
    for (size_t i = 0; i < tree.count && !err; i++) {
        err = put_member(a, dir, tree.names[i], block, path, reterr);
    }
    if (!err && archive_write_close(a) != ARCHIVE_OK) {
        err = pack_fail(a, path, reterr);
    }
    if (a) {
        archive_write_free(a);
    }
    kedge_mem_free(block);
    kedge_tree_deinit(&tree);
    return err;
}
