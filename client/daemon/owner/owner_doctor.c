/* kedge-client doctor: what is wrong with this site, its folder and its device, and how to mend it. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "client/daemon/owner/owner.h"
#include "client/doctor/doctor.h"
#include "common/base/os/file.h"
#include "common/base/os/process.h"
#include "common/base/text.h"

struct sink {
    bool json;
    json_t *checks;
};

static int usage(FILE *out, int code)
{
    fputs("Usage: kedge-client doctor --site DIR [--format json|text] [--try-trainers [--seconds N]]\n"
          "What is wrong with the site in DIR, this device and the way to the coordinator, and how to mend "
          "it.\n"
          "  --try-trainers  start each trainer that policy.json names, in its sandbox and without data, and "
          "see\n"
          "                  whether it answers as the contract has it\n"
          "  --seconds N     how long each may take to answer (60, or its own seconds_max)\n"
          "Exit codes: 0 all is well, 1 there is something to mend, 2 usage, 3 no site there.\n",
          out);
    return code;
}

static void put_line(void *arg, enum kedge_doctor_level level, const char *what, const char *detail,
                     const char *mend)
{
    static const char *const shown[] = {"ok  ", "warn", "FAIL"}, *const coded[] = {"ok", "warn", "fail"};
    struct sink *sink = arg;
    if (sink->json) {
        json_array_append_new(sink->checks, json_pack("{s:s,s:s,s:s,s:s}", "level", coded[level], "what",
                                                      what, "detail", detail, "mend", mend));
        return;
    }
    printf("%s  %s: %s\n", shown[level], what, kedge_text_shown(detail).s);
    if (mend[0]) {
        printf("      %s\n", kedge_text_shown(mend).s);
    }
}

static void check_programs(struct kedge_doctor *k)
{
    char own[KEDGE_PATH_MAX] = "", said[KEDGE_DOCTOR_VERSION_LEN] = "";
    if (kedge_process_own_dir(own, sizeof own) != KEDGE_OK
        || !kedge_doctor_ask_version("/proc/self/exe", said)) {
        kedge_doctor_say(k, KEDGE_DOCTOR_WARN, "program kedge-client", "is /proc mounted?",
                         "cannot ask for its version");
        return;
    }
    const char *space = strrchr(said, ' ');
    kedge_doctor_say(k, KEDGE_DOCTOR_OK, "program kedge-client", "", "%s in %s", said, own);
    kedge_doctor_program(k, own, "kedge-train", space ? space + 1 : said);
}

/* Forks come first: none may follow the threads of the network. */
static int examine(const struct kedgei_owner_asked *asked)
{
    const char *dir = asked->dir;
    const bool json = asked->json;
    struct sink sink = {json, json_array()};
    struct kedge_doctor k = {.line = put_line, .arg = &sink};
    check_programs(&k);
    kedge_doctor_crypto(&k);
    kedge_doctor_processor(&k);
    kedge_doctor_limits(&k, dir);
    kedge_doctor_site(&k, dir);
    kedgei_owner_energy(&k, dir);
    if (asked->try_trainers) {
        kedgei_owner_try_trainers(&k, dir, asked->seconds);
    }
    kedge_doctor_site_server(&k, dir);
    if (json) {
        json_t *answer = json_pack("{s:i,s:s,s:{s:b,s:i,s:i,s:O}}", "schema_version", 1, "status", "ok",
                                   "data", "well", k.failures == 0, "failures", (int)k.failures, "warnings",
                                   (int)k.warnings, "checks", sink.checks);
        (void)json_dumpf(answer, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
        puts("");
        json_decref(answer);
    } else if (k.failures) {
        printf("%u thing%s to mend.\n", k.failures, k.failures == 1 ? "" : "s");
    } else {
        printf("All well%s.\n", k.warnings ? ", but read the warnings" : "");
    }
    json_decref(sink.checks);
    return k.failures ? 1 : 0;
}

int kedge_client_doctor_main(int argc, char **argv)
{
    struct kedge_diag d = {.text = "", .hint = ""};
    char path[KEDGE_PATH_MAX];
    struct kedgei_owner_asked asked = {.may_try = true};
    int code;
    if (!kedgei_owner_options(argc, argv, &asked, &code, usage)) {
        return code;
    }
    if (kedge_path_join(path, asked.dir, "site.json") != KEDGE_OK || !kedge_file_exists(path)) {
        int err = kedge_diag_set(&d, KEDGE_E_NOT_FOUND, "%s: no site here (site.json is missing)", asked.dir);
        (void)kedge_diag_hint(&d, "enrol it: kedge-client --site %s --enroll-file TOKENFILE", asked.dir);
        return kedgei_owner_fail(asked.json, err, &d);
    }
    return examine(&asked);
}
