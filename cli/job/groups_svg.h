/* The picture of a job's groups. */
#ifndef KEDGE_CLI_JOB_GROUPS_SVG_H
#define KEDGE_CLI_JOB_GROUPS_SVG_H

#include <jansson.h>

#include "common/base/bytes.h"

/* An SVG of what `kedge job groups` tells (chain/view/groups_view.h, with a picture): a dot a site, a
 * diamond a group's direction, colours and shapes by group, names on hovering. */
void kedge_cli_groups_svg(const json_t *answer, struct kedge_buf *out);

#endif
