/* What a run's folder says of each site: sites.csv (who it is), sites.jsonl (a line per round: groups and
 * accuracies), models/group-N.safetensors. Inside of sim/learn. */
#ifndef KEDGE_SIM_LEARN_REPORT_REPORT_SITES_H
#define KEDGE_SIM_LEARN_REPORT_REPORT_SITES_H

#include "common/base/bytes.h"
#include "sim/learn/learn.h"

/* A line per site, behind one of titles; "group" is the true one, empty where there is none. */
void kedge_learn_put_sites(const struct kedge_learn_view *v, struct kedge_buf *out);
/* {"round":…,"group":[…],"accuracy":[…]} and a line feed; null where a site has none. */
void kedge_learn_put_sites_line(const struct kedge_learn_view *v, struct kedge_buf *out);
/* A field of a CSV file, in quotes where it needs them. */
void kedge_learn_put_csv_text(struct kedge_buf *out, const char *text);
/* The model of a group as a safetensors file. */
KEDGE_NODISCARD int kedge_learn_put_model(const struct kedge_model_spec *model, const float *values,
                                          struct kedge_buf *out, struct kedge_diag *reterr);

#endif
