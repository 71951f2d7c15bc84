/* What kedge-train finds of CUDA: it is asked, so that no doctor loads a driver. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/doctor/doctor.h"
#include "common/base/os/file.h"
#include "common/base/os/process.h"

/* A driver that wakes its devices up may take seconds. */
enum { DEVICES_MS = 20000, SAID_MAX = 8192 };

/* What stands after "KEY: " in one of the lines; false: no such line. */
static bool find_line(const char *text, const char *key, char *out, size_t size)
{
    size_t len = strlen(key);
    for (const char *line = text; line && *line;) {
        const char *end = strchr(line, '\n');
        if (strncmp(line, key, len) == 0 && strncmp(line + len, ": ", 2) == 0) {
            const char *value = line + len + 2;
            snprintf(out, size, "%.*s", (int)(end ? (size_t)(end - value) : strlen(value)), value);
            return true;
        }
        line = end ? end + 1 : NULL;
    }
    return false;
}

static bool ask_trainer(char *out, size_t size)
{
    char own[KEDGE_PATH_MAX] = "", path[KEDGE_PATH_MAX];
    bool beside = kedge_process_own_dir(own, sizeof own) == KEDGE_OK
                  && kedge_path_join(path, own, "kedge-train") == KEDGE_OK && access(path, X_OK) == 0;
    return kedge_doctor_ask(beside ? path : "kedge-train", "--devices", DEVICES_MS, out, size);
}

void kedge_doctor_device(struct kedge_doctor *k, const json_t *policy)
{
    const char *device = json_string_value(json_object_get(policy, "device"));
    const bool wanted = device && strcmp(device, "cpu") != 0 && !json_object_get(policy, "trainer");
    const enum kedge_doctor_level missing = wanted ? KEDGE_DOCTOR_WARN : KEDGE_DOCTOR_OK;
    const char *otherwise = wanted ? "; jobs are trained on the processor" : "; policy.json asks for none";
    char said[SAID_MAX], what[SAID_MAX];
    if (!ask_trainer(said, sizeof said)) {
        kedge_doctor_say(k, missing, "CUDA", "", "kedge-train cannot be asked for devices");
        return;
    }
    if (find_line(said, "module", what, sizeof what)) {
        kedge_doctor_say(k, KEDGE_DOCTOR_OK, "CUDA module", "", "%s", what);
    } else if (find_line(said, "no module", what, sizeof what)) {
        kedge_doctor_say(k, missing, "CUDA module",
                         wanted
                             ? "build with nvcc (cmake says \"CUDA: kedge-train-cuda.so\") and install the "
                               "module beside kedge-train or in ../lib/kedge"
                             : "",
                         "%s%s", what, otherwise);
    }
    if (find_line(said, "device", what, sizeof what)) {
        kedge_doctor_say(k, KEDGE_DOCTOR_OK, "CUDA device", "", "%s%s", what,
                         wanted ? "" : "; policy.json does not ask for it (\"device\": \"cuda\")");
    } else if (find_line(said, "no device", what, sizeof what)) {
        kedge_doctor_say(
            k, missing, "CUDA device",
            wanted ? "install the NVIDIA driver; in a container or a service, let it see /dev/nvidia*" : "",
            "%s%s", what, otherwise);
    }
    if (wanted && json_integer_value(json_object_get(policy, "memory_max")) > 0) {
        kedge_doctor_say(k, KEDGE_DOCTOR_WARN, "CUDA device", "take \"memory_max\" out of policy.json",
                         "\"memory_max\" bounds address space, of which CUDA takes more than a machine has "
                         "memory");
    }
}
