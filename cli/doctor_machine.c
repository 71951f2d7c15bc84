/* Programs, libraries, processor, data files, limits of this machine. */
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "common/base/os/clock.h"
#include "common/base/os/process.h"
#include "crypto/hash.h"

enum { VERSION_LEN = 64, ANSWER_MS = 3000, CPUINFO_MAX = 4 * 1024 * 1024, FILES_LOW = 1024 };
#define OPENSSL_3 0x30000000ul
#define DISK_LEAST ((uint64_t)100 << 20)
#define DISK_GOOD ((uint64_t)1 << 30)

/* ---- programs ---- */

/* What "PROGRAM --version" prints, without its line feed; false when it does not run. */
static bool ask_version(const char *program, char out[VERSION_LEN])
{
    const char *const argv[] = {program, "--version", NULL};
    struct kedge_process_options options = {.argv = argv, .pipe_stdout = true, .die_with_parent = true};
    struct kedge_process p;
    size_t len = 0;
    if (kedge_process_start(&options, &p, NULL) != KEDGE_OK) {
        return false;
    }
    uint64_t end = kedge_os_now_ns() + (uint64_t)ANSWER_MS * 1000000u;
    struct pollfd wait = {.fd = p.out_fd, .events = POLLIN};
    while (len + 1 < VERSION_LEN && kedge_os_now_ns() < end && poll(&wait, 1, 100) >= 0) {
        ssize_t n = wait.revents ? read(p.out_fd, out + len, VERSION_LEN - 1 - len) : 1;
        if (n <= 0) {
            break;
        }
        len += wait.revents ? (size_t)n : 0;
    }
    out[len] = '\0';
    out[strcspn(out, "\r\n")] = '\0';
    kedge_process_stop(&p, SIGTERM, 100);
    return out[0] != '\0';
}

static void check_program(struct kedge_doctor *k, const char *own, const char *name, const char *version)
{
    static const char mend[] = "install all programs of one build into one folder: cmake --install BUILD";
    char path[KEDGE_PATH_MAX], said[VERSION_LEN], what[VERSION_LEN];
    snprintf(what, sizeof what, "program %s", name);
    bool beside = own[0] && kedge_path_join(path, own, name) == KEDGE_OK && access(path, X_OK) == 0;
    if (!ask_version(beside ? path : name, said)) {
        kedge_doctor_say(k, KEDGE_DOCTOR_FAIL, what, mend, "neither beside kedge (%s) nor in PATH", own);
        return;
    }
    const char *space = strrchr(said, ' ');
    if (strncmp(said, name, strlen(name)) != 0 || !space || strcmp(space + 1, version) != 0) {
        kedge_doctor_say(k, KEDGE_DOCTOR_FAIL, what, mend, "says \"%s\", expected %s %s", said, name,
                         version);
    } else {
        kedge_doctor_say(k, beside ? KEDGE_DOCTOR_OK : KEDGE_DOCTOR_WARN, what,
                         beside ? "" : "it was found in PATH only: is it of the same build?", "%s", said);
    }
}

static void check_programs(struct kedge_doctor *k)
{
    static const char *const names[] = {"kedge-coordinator", "kedge-client", "kedge-train"};
    char own[KEDGE_PATH_MAX] = "", said[VERSION_LEN] = "";
    if (kedge_process_own_dir(own, sizeof own) != KEDGE_OK) {
        own[0] = '\0';
    }
    if (!ask_version("/proc/self/exe", said)) {
        kedge_doctor_say(k, KEDGE_DOCTOR_WARN, "program kedge", "is /proc mounted?",
                         "cannot ask for its version");
        return;
    }
    const char *space = strrchr(said, ' ');
    const char *version = space ? space + 1 : said;
    kedge_doctor_say(k, KEDGE_DOCTOR_OK, "program kedge", "", "%s in %s", said, own);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        check_program(k, own, names[i], version);
    }
}

/* ---- libraries: what is really loaded, not what was compiled against ---- */

typedef const char *text_fn(void);
typedef unsigned long number_fn(void);
typedef char *lmdb_fn(int *major, int *minor, int *patch);

/* Function pointers and object pointers differ in C; POSIX lets them be copied for dlsym. */
static bool find_symbol(const char *name, void *ret_fn, size_t len)
{
    void *p = dlsym(RTLD_DEFAULT, name);
    memcpy(ret_fn, &p, len);
    return p != NULL;
}

static void say_unknown(struct kedge_doctor *k, const char *what)
{
    kedge_doctor_say(k, KEDGE_DOCTOR_OK, what, "", "linked in, does not tell its version");
}

static void check_libraries(struct kedge_doctor *k)
{
    text_fn *sodium = NULL;
    number_fn *openssl = NULL;
    lmdb_fn *lmdb = NULL;
    if (!find_symbol("OpenSSL_version_num", &openssl, sizeof openssl)) {
        say_unknown(k, "library OpenSSL");
    } else {
        unsigned long v = openssl();
        kedge_doctor_say(k, v >= OPENSSL_3 ? KEDGE_DOCTOR_OK : KEDGE_DOCTOR_FAIL, "library OpenSSL",
                         v >= OPENSSL_3 ? "" : "install libssl3", "%lu.%lu.%lu", v >> 28, v >> 20 & 0xff,
                         v >> 4 & 0xffff);
    }
    if (find_symbol("sodium_version_string", &sodium, sizeof sodium)) {
        kedge_doctor_say(k, KEDGE_DOCTOR_OK, "library libsodium", "", "%s", sodium());
    } else {
        say_unknown(k, "library libsodium");
    }
    if (find_symbol("mdb_version", &lmdb, sizeof lmdb)) {
        kedge_doctor_say(k, KEDGE_DOCTOR_OK, "library LMDB", "", "%s", lmdb(NULL, NULL, NULL));
    } else {
        say_unknown(k, "library LMDB");
    }
    kedge_doctor_say(k, KEDGE_DOCTOR_OK, "library jansson", "", "%s", jansson_version_str());
}

/* FIPS 180-4 and RFC 8032 §7.1 TEST 1: that hash and signature are those of everybody else. */
static void check_crypto(struct kedge_doctor *k)
{
    static const char abc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    static const char seed_hex[] = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
    static const char sig_hex[] = "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
                                  "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b";
    char hex[2 * KEDGE_SIGNATURE_LEN + 1];
    struct kedge_hash h;
    struct kedge_seed seed;
    struct kedge_key_pair pair;
    struct kedge_signature sig;
    kedge_sha256(kedge_view_str("abc"), &h);
    kedge_hash_hex(&h, hex);
    bool fine = strcmp(hex, abc) == 0
                && kedge_hex_decode(kedge_view_str(seed_hex), seed.b, sizeof seed.b) == KEDGE_OK;
    if (fine) {
        kedge_key_from_seed(&seed, &pair);
        kedge_sign(kedge_view_of("", 0), &pair, &sig);
        kedge_hex_encode(sig.b, sizeof sig.b, hex);
        fine =
            strcmp(hex, sig_hex) == 0 && kedge_verify(kedge_view_of("", 0), &sig, &pair.public) == KEDGE_OK;
    }
    kedge_doctor_say(k, fine ? KEDGE_DOCTOR_OK : KEDGE_DOCTOR_FAIL, "cryptography",
                     fine ? "" : "reinstall libsodium and OpenSSL", "%s",
                     fine ? "SHA-256 and Ed25519 give the published results"
                          : "published results are not met");
}

/* ---- processor, data, limits ---- */

static bool has_word(const char *line, size_t len, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= len; i++) {
        bool begins = i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t';
        bool ends = i + n == len || line[i + n] == ' ';
        if (begins && ends && memcmp(line + i, word, n) == 0) {
            return true;
        }
    }
    return false;
}

static void check_processor(struct kedge_doctor *k)
{
    struct kedge_buf text;
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    kedge_buf_init(&text, CPUINFO_MAX);
    if (kedge_file_read("/proc/cpuinfo", &text, NULL) == KEDGE_OK) {
        kedge_buf_put_u8(&text, 0);
    }
    const char *s = text.len && !text.err ? (const char *)text.ptr : "";
    const char *flags = strstr(s, "\nflags");
    flags = flags ? flags : strstr(s, "\nFeatures"); /* ARM's name for it */
    size_t len = flags ? strcspn(flags + 1, "\n") + 1 : 0;
    bool wide = flags && (has_word(flags, len, "avx2") || has_word(flags, len, "asimd"));
    bool sha = flags && (has_word(flags, len, "sha_ni") || has_word(flags, len, "sha2"));
    kedge_doctor_say(k, KEDGE_DOCTOR_OK, "processor", "",
                     "%ld cores; wide integers: %s; SHA-256 in hardware: %s%s", count, wide ? "yes" : "no",
                     sha ? "yes" : "no", wide && sha ? "" : " (results are the same, only slower)");
    kedge_buf_deinit(&text);
}

static void check_data(struct kedge_doctor *k)
{
    static const char *const places[] = {"../share/kedge/data/digits/digits-images.idx",
                                         "../../../data/digits/digits-images.idx",
                                         "../../data/digits/digits-images.idx"};
    char own[KEDGE_PATH_MAX], path[KEDGE_PATH_MAX];
    bool found = kedge_file_exists("data/digits/digits-images.idx");
    for (size_t i = 0; i < 3 && !found && kedge_process_own_dir(own, sizeof own) == KEDGE_OK; i++) {
        found = kedge_path_join(path, own, places[i]) == KEDGE_OK && kedge_file_exists(path);
    }
    kedge_doctor_say(k, found ? KEDGE_DOCTOR_OK : KEDGE_DOCTOR_WARN, "data",
                     found ? "" : "kedge poc needs it: run inside of the checkout; your own jobs do not",
                     "%s", found ? "the digits are there" : "data/digits was not found");
}

static void check_limits(struct kedge_doctor *k, const char *dir)
{
    struct rlimit files;
    struct statvfs disk;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        bool low = files.rlim_cur < FILES_LOW;
        kedge_doctor_say(k, low ? KEDGE_DOCTOR_WARN : KEDGE_DOCTOR_OK, "open files",
                         low ? "raise it: ulimit -n 16384, or LimitNOFILE=16384 in the service" : "",
                         "%llu at once: enough for about %llu sites at a coordinator",
                         (unsigned long long)files.rlim_cur,
                         (unsigned long long)(files.rlim_cur > 64 ? (files.rlim_cur - 64) / 2 : 0));
    }
    if (statvfs(dir, &disk) != 0) {
        kedge_doctor_say(k, KEDGE_DOCTOR_FAIL, "disk", "is the folder readable?", "cannot look at %s", dir);
        return;
    }
    uint64_t room = (uint64_t)disk.f_bavail * disk.f_frsize;
    kedge_doctor_say(k,
                     room < DISK_LEAST  ? KEDGE_DOCTOR_FAIL
                     : room < DISK_GOOD ? KEDGE_DOCTOR_WARN
                                        : KEDGE_DOCTOR_OK,
                     "disk", room < DISK_GOOD ? "make room: a running job halts when the disk is full" : "",
                     "%.1f GB free at %s", (double)room / 1e9, dir);
}

void kedge_doctor_machine(struct kedge_doctor *k, const char *dir)
{
    check_programs(k);
    check_libraries(k);
    check_crypto(k);
    check_processor(k);
    check_data(k);
    check_limits(k, dir);
}
