/* What this machine has of Kedge's own: programs, libraries, data files. */
#include <dlfcn.h>
#include <string.h>

#include "cli/doctor/doctor.h"
#include "common/base/os/file.h"
#include "common/base/os/process.h"

#define OPENSSL_3 0x30000000ul

/* Each program is asked for its version by running it: what the file system calls kedge-train may be of
 * another release, and the contract between the programs is that of one version. */
static void check_programs(struct kedge_doctor *k)
{
    static const char *const names[] = {"kedge-coordinator", "kedge-client", "kedge-train"};
    char own[KEDGE_PATH_MAX] = "", said[KEDGE_DOCTOR_VERSION_LEN] = "";
    if (kedge_process_own_dir(own, sizeof own) != KEDGE_OK) {
        own[0] = '\0';
    }
    if (!kedge_doctor_ask_version("/proc/self/exe", said)) {
        kedge_doctor_say(k, KEDGE_DOCTOR_WARN, "program kedge", "is /proc mounted?",
                         "cannot ask for its version");
        return;
    }
    const char *space = strrchr(said, ' ');
    const char *version = space ? space + 1 : said;
    kedge_doctor_say(k, KEDGE_DOCTOR_OK, "program kedge", "", "%s in %s", said, own);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        kedge_doctor_program(k, own, names[i], version);
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

/* Asked of the libraries by their own symbols. They may be linked in statically; then there is no symbol to
 * find, which is no fault. */
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

/* Only kedge poc needs these files, so their absence is a warning. The places are the installed one and those
 * of a build folder. */
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

void kedge_doctor_machine(struct kedge_doctor *k, const char *dir)
{
    check_programs(k);
    check_libraries(k);
    kedge_doctor_crypto(k);
    kedge_doctor_processor(k);
    check_data(k);
    kedge_doctor_limits(k, dir);
}
