/* gnuplot is optional: whoever has none keeps the scripts, and is told. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "common/base/os/clock.h"
#include "common/base/os/file.h"
#include "common/base/os/process.h"
#include "sim/learn/plot.h"

enum { NAP_MS = 10, WAIT_MS = 120000, NO_PROGRAM = 127 };

static int wait_for(struct kedge_process *p)
{
    int status = -1;
    for (uint32_t waited = 0; waited < WAIT_MS; waited += NAP_MS) {
        if (kedge_process_poll(p, &status)) {
            return status;
        }
        kedge_os_sleep_ms(NAP_MS);
    }
    kedge_process_stop(p, SIGKILL, 0);
    return -1;
}

static int no_gnuplot(struct kedge_diag *d, const char *path)
{
    (void)kedge_diag_set(d, KEDGE_E_NOT_FOUND, "gnuplot is not installed: no pictures were drawn");
    (void)kedge_diag_hint(d, "install gnuplot-nox, then: gnuplot %s (in its folder)", path);
    return KEDGE_E_NOT_FOUND;
}

int kedge_learn_plot_draw(const char *dir, const char *name, struct kedge_view script,
                          struct kedge_diag *reterr)
{
    char path[KEDGE_PATH_MAX], log[KEDGE_PATH_MAX], file[64];
    struct kedge_process p;
    snprintf(file, sizeof file, "%.40s.gp", name);
    int err = kedge_path_join(path, dir, file);
    err = err ? err : kedge_path_join(log, dir, "gnuplot.log");
    err = err ? err : kedge_file_write(path, script, 0644, reterr);
    if (err) {
        return err;
    }
    (void)unlink(log);
    const char *const argv[] = {"gnuplot", file, NULL};
    struct kedge_process_options options = {
        .argv = argv, .directory = dir, .stderr_path = log, .die_with_parent = true};
    err = kedge_process_start(&options, &p, reterr);
    if (err) {
        return err == KEDGE_E_NOT_FOUND ? no_gnuplot(reterr, path) : err;
    }
    int status = wait_for(&p);
    if (status == NO_PROGRAM) {
        return no_gnuplot(reterr, path);
    }
    if (status != 0) {
        return kedge_diag_set(reterr, KEDGE_E_IO, "gnuplot failed on %s: see %s", path, log);
    }
    if (kedge_file_size(log) == 0) {
        (void)unlink(log);
    }
    return KEDGE_OK;
}
