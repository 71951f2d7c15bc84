/* Programs, cryptography, processor and limits of this machine. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "client/doctor/doctor.h"
#include "common/base/os/clock.h"
#include "common/base/os/file.h"
#include "common/base/os/process.h"
#include "common/base/text.h"
#include "crypto/hash.h"
#include "crypto/sign.h"

enum { ANSWER_MS = 3000, CPUINFO_MAX = 4 * 1024 * 1024, FILES_LOW = 1024 };
#define DISK_LEAST ((uint64_t)100 << 20)
#define DISK_GOOD ((uint64_t)1 << 30)

/* ---- programs ---- */

/* A program that hangs must not hang the doctor: its output is read until it ends, the room is full or the
 * time is over, and then it is stopped. */
bool kedge_doctor_ask(const char *program, const char *option, uint32_t timeout_ms, char *out, size_t size)
{
    const char *const argv[] = {program, option, NULL};
    struct kedge_process_options options = {.argv = argv, .pipe_stdout = true, .die_with_parent = true};
    struct kedge_process p;
    size_t len = 0;
    if (kedge_process_start(&options, &p, NULL) != KEDGE_OK) {
        return false;
    }
    uint64_t end = kedge_os_now_ns() + (uint64_t)timeout_ms * 1000000u;
    struct pollfd wait = {.fd = p.out_fd, .events = POLLIN};
    while (len + 1 < size && kedge_os_now_ns() < end && poll(&wait, 1, 100) >= 0) {
        ssize_t n = wait.revents ? read(p.out_fd, out + len, size - 1 - len) : 1;
        if (n <= 0) {
            break;
        }
        len += wait.revents ? (size_t)n : 0;
    }
    out[len] = '\0';
    kedge_process_stop(&p, SIGTERM, 100);
    return out[0] != '\0';
}

bool kedge_doctor_ask_version(const char *program, char out[KEDGE_DOCTOR_VERSION_LEN])
{
    bool said = kedge_doctor_ask(program, "--version", ANSWER_MS, out, KEDGE_DOCTOR_VERSION_LEN);
    if (said) {
        out[strcspn(out, "\r\n")] = '\0';
    }
    return said && out[0] != '\0';
}

void kedge_doctor_program(struct kedge_doctor *k, const char *own, const char *name, const char *version)
{
    static const char mend[] = "install all programs of one build into one folder: cmake --install BUILD";
    char path[KEDGE_PATH_MAX], said[KEDGE_DOCTOR_VERSION_LEN], what[KEDGE_DOCTOR_VERSION_LEN];
    snprintf(what, sizeof what, "program %s", name);
    bool beside = own[0] && kedge_path_join(path, own, name) == KEDGE_OK && access(path, X_OK) == 0;
    if (!kedge_doctor_ask_version(beside ? path : name, said)) {
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

/* FIPS 180-4 and RFC 8032 §7.1 TEST 1: that hash and signature are those of everybody else. A library that
 * was built wrongly would give keys and logs that no other machine accepts. */
void kedge_doctor_crypto(struct kedge_doctor *k)
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

/* ---- processor and limits ---- */

/* Flags are words in a line: "avx2" must not be found in "avx2_vnni". */
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

void kedge_doctor_processor(struct kedge_doctor *k)
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

void kedge_doctor_limits(struct kedge_doctor *k, const char *dir)
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
