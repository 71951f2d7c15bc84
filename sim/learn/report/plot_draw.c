/* gnuplot is optional: without it the scripts are kept, and the user is told. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/os/clock.h"
#include "common/base/os/file.h"
#include "common/base/os/process.h"
#include "common/base/try.h"
#include "sim/learn/report/plot.h"

enum { NAP_MS = 10, WAIT_MS = 120000, NO_PROGRAM = 127, SVG_MAX = 64 << 20 };

/* gnuplot writes colours as attributes, which a style sheet overrides where the screen is dark. A colour that
 * it writes otherwise stays as it is. */
static const char dark_style[] =
    "\n<style>@media "
    "(prefers-color-scheme:dark){[fill=\"#ffffff\"]{fill:#0f1318}[color=\"black\"]{color:#d5dce4}"
    "[fill=\"black\"],[fill=\"rgb(68,68,68)\"]{fill:#d5dce4}"
    "[stroke=\"black\"],[stroke=\"rgb( 68,  68,  68)\"]{stroke:#9aa5b1}"
    "[stroke=\"rgb(208, 208, 208)\"]{stroke:#36404b}[stroke=\"rgb(255, 255, 255)\"]{stroke:#0f1318}"
    "[stroke=\"rgb(  0, 114, 178)\"]{stroke:#3f9fe0}[fill=\"rgb(  0, 114, 178)\"]{fill:#3f9fe0}"
    "[stroke=\"rgb(  0,   0,   0)\"]{stroke:#e6edf3}[fill=\"rgb(  0,   0,   0)\"]{fill:#e6edf3}}</style>";

static int add_dark_style(const char *dir, const char *name, struct kedge_diag *reterr)
{
    static const char after[] = "</desc>";
    struct kedge_buf svg KEDGE_CLEANUP(kedge_buf_deinit), out KEDGE_CLEANUP(kedge_buf_deinit);
    char path[KEDGE_PATH_MAX], file[64];
    kedge_buf_init(&svg, SVG_MAX);
    kedge_buf_init(&out, SVG_MAX + sizeof dark_style);
    snprintf(file, sizeof file, "%.40s.svg", name);
    int err = kedge_path_join(path, dir, file);
    if (err || !kedge_file_exists(path)) {
        return err; /* a script that draws no such file */
    }
    KEDGE_TRY(kedge_file_read(path, &svg, reterr));
    const uint8_t *at = svg.len > 0 ? memmem(svg.ptr, svg.len, after, sizeof after - 1) : NULL;
    if (!at) {
        return KEDGE_OK;
    }
    size_t head = (size_t)(at - svg.ptr) + sizeof after - 1;
    kedge_buf_put(&out, svg.ptr, head);
    kedge_buf_put_str(&out, dark_style);
    kedge_buf_put(&out, svg.ptr + head, svg.len - head);
    return out.err ? out.err : kedge_file_write(path, kedge_buf_view(&out), 0644, reterr);
}

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
    KEDGE_TRY(kedge_path_join(path, dir, file));
    KEDGE_TRY(kedge_path_join(log, dir, "gnuplot.log"));
    KEDGE_TRY(kedge_file_write(path, script, 0644, reterr));
    (void)unlink(log);
    const char *const argv[] = {"gnuplot", file, NULL};
    struct kedge_process_options options = {
        .argv = argv, .directory = dir, .stderr_path = log, .die_with_parent = true};
    int err = kedge_process_start(&options, &p, reterr);
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
    return add_dark_style(dir, name, reterr);
}
