/* The two plans of `kedge job plan`. */
#ifndef KEDGE_CLI_JOB_JOB_PLAN_H
#define KEDGE_CLI_JOB_JOB_PLAN_H

#include "cli/cli.h"

/* For the sites of a job that has trained, by what they said; `job` is the word after --job. */
int kedge_cli_plan_of_sites(struct kedge_cli *c, const char *job);

#endif
