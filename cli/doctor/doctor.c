/* kedge doctor: looks at an installation, and at a folder of it, and says what is wrong and how to mend it.
 */
#include "cli/doctor/doctor.h"

#include <string.h>

#include "cli/local.h"
#include "common/base/try.h"

/* Checks are told one by one as they are made, since some take seconds, and gathered for the answer in JSON.
 * They know nothing of either: client/doctor calls put_line. */
struct sink {
    struct kedge_cli *c;
    json_t *checks;
};

/* "ok    what: detail", and below it how to mend it. */
static void put_line(void *arg, enum kedge_doctor_level level, const char *what, const char *detail,
                     const char *mend)
{
    static const char *const shown[] = {"ok  ", "warn", "FAIL"}, *const coded[] = {"ok", "warn", "fail"};
    const struct sink *sink = arg;
    kedge_cli_say(sink->c, "%s  %s: %s\n", shown[level], what, detail);
    if (mend[0]) {
        kedge_cli_say(sink->c, "      %s\n", mend);
    }
    json_array_append_new(sink->checks, json_pack("{s:s,s:s,s:s,s:s}", "level", coded[level], "what", what,
                                                  "detail", detail, "mend", mend));
}

/* DIR itself, or the state folder inside what kedge poc leaves. */
static int find_folder(const char *dir, char out[KEDGE_PATH_MAX], struct kedge_diag *d)
{
    static const char *const marks[] = {"config.json", "site.json"};
    char path[KEDGE_PATH_MAX];
    KEDGE_TRY(kedge_cli_may_look(dir, d));
    for (size_t i = 0; i < 2; i++) {
        if (kedge_path_join(path, dir, marks[i]) == KEDGE_OK && kedge_file_exists(path)) {
            return kedge_path_join(out, dir, ".");
        }
    }
    if (kedge_path_join(path, dir, "state/config.json") == KEDGE_OK && kedge_file_exists(path)) {
        return kedge_path_join(out, dir, "state");
    }
    (void)kedge_diag_set(d, KEDGE_E_NOT_FOUND,
                         "%s: neither a state folder (config.json) nor a site's (site.json)", dir);
    (void)kedge_diag_hint(d, "make one: kedge init DIR, or kedge-client --site DIR --enroll-file TOKEN");
    return KEDGE_E_NOT_FOUND;
}

/* The order is from the machine to the folder to the network, so that a missing library is told before the
 * checks that need it. Records are read before TLS is tried: the network starts threads, after which this
 * process could not fork to read a store (cli/local.c). The exit code is 1 for a failure and 0 for warnings.
 */
int kedge_cmd_doctor(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct sink sink = {.c = c};
    struct kedge_doctor k = {.line = put_line, .arg = &sink};
    char folder[KEDGE_PATH_MAX] = "";
    if (!kedge_cli_no_more(c, 1)) {
        return 2;
    }
    const char *dir = kedge_cli_argument(c, 0);
    int err = dir ? find_folder(dir, folder, &d) : KEDGE_OK;
    if (err) {
        return kedge_cli_fail(c, err, &d);
    }
    sink.checks = json_array();
    kedge_doctor_machine(&k, dir ? folder : ".");
    err = dir ? kedge_doctor_folder(&k, folder) : KEDGE_OK;
    if (err) {
        json_decref(sink.checks);
        return kedge_cli_fail(c, err, NULL);
    }
    kedge_doctor_loopback(&k);
    if (dir) {
        kedge_doctor_site_server(&k, folder);
    }
    if (k.failures) {
        kedge_cli_say(c, "%u thing%s to mend.\n", k.failures, k.failures == 1 ? "" : "s");
    } else {
        kedge_cli_say(c, "All well%s.\n", k.warnings ? ", but read the warnings" : "");
    }
    return kedge_cli_answer(c,
                            json_pack("{s:b,s:i,s:i,s:o}", "well", k.failures == 0, "failures",
                                      (int)k.failures, "warnings", (int)k.warnings, "checks", sink.checks),
                            k.failures ? 1 : 0);
}
