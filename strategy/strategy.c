/* The table. Sources of the defaults: the papers named, and their authors' code where the paper is silent;
 * what Kedge changed stands in docs/modules/strategy.md. */
#include "strategy/strategy.h"

#include <string.h>

#include "grouping/shift.h"
#include "strategy/grouping.h"

/* Options that a strategy does not read still have a value in range; EXCEPT_X leaves X to the row. */
#define REST .adaptivity = 0.001, .shift = 0.2, .silhouette = 1, .most = KEDGE_GROUPS_USUAL
#define LR .server_lr = 1
#define BUFFER .buffer = 1
#define EDGES .edge_rounds = 1
#define MERGE .merge = 1
#define COMMON REST, LR, BUFFER, EDGES, MERGE
#define EXCEPT_LR REST, BUFFER, EDGES, MERGE
#define EXCEPT_BUFFER REST, LR, EDGES, MERGE
#define EXCEPT_EDGES REST, LR, BUFFER, MERGE

static const struct kedge_strategy rows[] = {
    /* one model */
    {.name = "fedavg",
     .title = "FedAvg",
     .what = "mean of the updates, weighted by samples",
     .source = "McMahan et al., AISTATS 2017",
     .local = &kedge_local_sgd,
     .uses = "",
     .weigh = kedge_weigh_samples,
     .defaults = {COMMON}},
    {.name = "fedprox",
     .title = "FedProx",
     .what = "FedAvg whose sites are pulled back to the model that they began with",
     .source = "Li et al., MLSys 2020",
     .local = &kedge_local_proximal,
     .uses = "proximal",
     .weigh = kedge_weigh_samples,
     .defaults = {COMMON, .proximal = 1}},
    {.name = "scaffold",
     .title = "SCAFFOLD",
     .what = "control variates take the sites' drift out of their gradients; twice the traffic",
     .source = "Karimireddy et al., ICML 2020",
     .local = &kedge_local_scaffold,
     .uses = "server_lr",
     .server = KEDGE_SERVER_CONTROL,
     .weigh = kedge_weigh_samples,
     .defaults = {COMMON}},
    {.name = "fednova",
     .title = "FedNova",
     .what = "updates count by their samples, whatever number of steps made them",
     .source = "Wang et al., NeurIPS 2020",
     .local = &kedge_local_sgd,
     .uses = "",
     .weigh = kedge_weigh_fednova,
     .defaults = {COMMON}},
    {.name = "fedavgm",
     .title = "FedAvgM",
     .what = "the server steps with momentum; a tenth of the step keeps the pace of FedAvg",
     .source = "Hsu, Qi, Brown, 2019 (arXiv 1909.06335)",
     .local = &kedge_local_sgd,
     .uses = "server_lr settle momentum",
     .server = KEDGE_SERVER_MOMENTUM,
     .weigh = kedge_weigh_samples,
     .defaults = {EXCEPT_LR, .server_lr = 0.1, .momentum = 0.9}},
    {.name = "fedadagrad",
     .title = "FedAdagrad",
     .what = "the server steps by Adagrad",
     .source = "Reddi et al., ICLR 2021",
     .local = &kedge_local_sgd,
     .uses = "server_lr settle momentum adaptivity",
     .server = KEDGE_SERVER_ADAGRAD,
     .weigh = kedge_weigh_samples,
     .defaults = {EXCEPT_LR, .server_lr = 0.1}},
    {.name = "fedyogi",
     .title = "FedYogi",
     .what = "the server steps by Yogi",
     .source = "Reddi et al., ICLR 2021",
     .local = &kedge_local_sgd,
     .uses = "server_lr settle momentum second_moment adaptivity",
     .server = KEDGE_SERVER_YOGI,
     .weigh = kedge_weigh_samples,
     .defaults = {EXCEPT_LR, .server_lr = 0.01, .momentum = 0.9, .second_moment = 0.99}},
    {.name = "fedadam",
     .title = "FedAdam",
     .what = "the server steps by Adam, without correction of the bias",
     .source = "Reddi et al., ICLR 2021",
     .local = &kedge_local_sgd,
     .uses = "server_lr settle momentum second_moment adaptivity",
     .server = KEDGE_SERVER_ADAM,
     .weigh = kedge_weigh_samples,
     .defaults = {EXCEPT_LR, .server_lr = 0.1, .momentum = 0.9, .second_moment = 0.99}},
    {.name = "qffl",
     .title = "q-FFL",
     .what = "sites with a larger loss count for more",
     .source = "Li et al., ICLR 2020",
     .local = &kedge_local_sgd,
     .uses = "fairness",
     .needs_loss = true,
     .weigh = kedge_weigh_qffl,
     .defaults = {COMMON, .fairness = 1}},
    {.name = "fedbuff",
     .title = "FedBuff",
     .what = "asynchronous: the server steps after so many updates, old ones count for less",
     .source = "Nguyen et al., AISTATS 2022",
     .local = &kedge_local_sgd,
     .uses = "buffer",
     .asynchronous = true,
     .weigh = kedge_weigh_fedbuff,
     .defaults = {EXCEPT_BUFFER, .buffer = 10}},
    {.name = "ditto",
     .title = "Ditto",
     .what = "beside FedAvg each site keeps a model of its own, pulled towards the shared one",
     .source = "Li et al., ICML 2021",
     .local = &kedge_local_ditto,
     .uses = "personal",
     .weigh = kedge_weigh_samples,
     .defaults = {COMMON, .personal = 1}},
    {.name = "fedper",
     .title = "FedPer",
     .what = "sites share all but the last layers of a model, which each keeps for itself",
     .source = "Arivazhagan et al., 2019 (arXiv 1912.00818)",
     .local = &kedge_local_head,
     .uses = "",
     .weigh = kedge_weigh_samples,
     .defaults = {COMMON}},
    {.name = "fedrep",
     .title = "FedRep",
     .what = "FedPer whose sites train their own layers first, then the shared ones",
     .source = "Collins et al., ICML 2021",
     .local = &kedge_local_head_first,
     .uses = "head_epochs",
     .weigh = kedge_weigh_samples,
     .defaults = {COMMON, .head_epochs = 10}},
    {.name = "adapters",
     .title = "Adapters",
     .what = "sites train and send a part of a model, over a frozen base that each fetches once",
     .source = "Hu et al., ICLR 2022 (LoRA)",
     .local = &kedge_local_adapters,
     .uses = "",
     .weigh = kedge_weigh_samples,
     .defaults = {COMMON}},
    {.name = "finetune",
     .title = "FedAvg and fine-tuning",
     .what = "FedAvg, judged after each site trained its model once more on its own data",
     .source = "what clustered and personal methods are to be held against",
     .local = &kedge_local_finetune,
     .uses = "",
     .comparison_only = true,
     .weigh = kedge_weigh_samples,
     .defaults = {COMMON}},
    {.name = "local",
     .title = "Local only",
     .what = "every site trains alone",
     .source = "what clustered and personal methods are to be held against",
     .local = &kedge_local_alone,
     .uses = "",
     .comparison_only = true,
     .weigh = kedge_weigh_samples,
     .defaults = {COMMON}},
    /* several models */
    {.name = "hierarchical",
     .title = "Hierarchical",
     .what = "an edge per tenant aggregates its sites; now and then the edges meet",
     .source = "Liu et al., ICC 2020 (HierFAVG)",
     .local = &kedge_local_sgd,
     .uses = "edge_rounds",
     .grouping = KEDGE_GROUPING_KIND_EDGE,
     .weigh = kedge_weigh_samples,
     .defaults = {EXCEPT_EDGES, .edge_rounds = 5}},
    {.name = "ifca",
     .title = "IFCA",
     .what = "a site takes the model with the least loss on its data; all models go out to all",
     .source = "Ghosh et al., NeurIPS 2020",
     .local = &kedge_local_sgd,
     .uses = "",
     .grouping = KEDGE_GROUPING_KIND_CHOICE,
     .needs_loss = true,
     .weigh = kedge_weigh_equal,
     .defaults = {COMMON}},
    {.name = "ifca-as-released",
     .title = "IFCA as released",
     .what = "IFCA with the fault of FlexCFL's published code: one update per group counts",
     .source = "morningD/FlexCFL, since August 2021",
     .local = &kedge_local_sgd,
     .uses = "",
     .grouping = KEDGE_GROUPING_KIND_CHOICE,
     .needs_loss = true,
     .comparison_only = true,
     .weigh = kedge_weigh_first,
     .defaults = {COMMON}},
    {.name = "fesem",
     .title = "FeSEM",
     .what = "a site takes the model nearest to its last one",
     .source = "Long et al., World Wide Web 2023 (arXiv 2005.01026)",
     .local = &kedge_local_sgd,
     .uses = "",
     .grouping = KEDGE_GROUPING_KIND_NEAREST,
     .weigh = kedge_weigh_equal,
     .defaults = {COMMON}},
    {.name = "fesem-as-released",
     .title = "FeSEM as released",
     .what = "FeSEM with the fault of FlexCFL's published code: one update per group counts",
     .source = "morningD/FlexCFL, since August 2021",
     .local = &kedge_local_sgd,
     .uses = "",
     .grouping = KEDGE_GROUPING_KIND_NEAREST,
     .comparison_only = true,
     .weigh = kedge_weigh_first,
     .defaults = {COMMON}},
    {.name = "cfl",
     .title = "CFL",
     .what = "FedAvg until a group's members pull apart, then the group is cut in two",
     .source = "Sattler, Müller, Samek, IEEE TNNLS 2021",
     .local = &kedge_local_sgd,
     .uses = "split_mean split_max split_after",
     .grouping = KEDGE_GROUPING_KIND_SPLIT,
     .everybody = true,
     .weigh = kedge_weigh_samples,
     .defaults = {COMMON, .split_mean = 0.4, .split_max = 1.6, .split_after = 20}},
    {.name = "fedclust",
     .title = "FedClust",
     .what = "one clustering of last-layer updates by a distance, no number of groups",
     .source = "Islam et al., ICPP 2024",
     .local = &kedge_local_sgd,
     .uses = "link",
     .grouping = KEDGE_GROUPING_KIND_ONESHOT,
     .weigh = kedge_weigh_samples,
     .defaults = {COMMON, .link = 0.5}},
    {.name = "flexcfl",
     .title = "FlexCFL",
     .what = "groups by the direction of a short pre-training; sites move when their data shift",
     .source = "Duan et al., IEEE TPDS 33(11), 2022",
     .local = &kedge_local_sgd,
     .uses = "refresh merge silhouette most",
     .grouping = KEDGE_GROUPING_KIND_FLEXCFL,
     .edc = KEDGE_EDC_UNIT,
     .weigh = kedge_weigh_samples,
     .defaults = {COMMON}},
    {.name = "flexcfl-plain",
     .title = "FlexCFL, plain EDC",
     .what = "FlexCFL whose updates keep their sizes when groups are made, as published",
     .source = "Duan et al., IEEE TPDS 33(11), 2022",
     .local = &kedge_local_sgd,
     .uses = "refresh merge silhouette most",
     .grouping = KEDGE_GROUPING_KIND_FLEXCFL,
     .edc = KEDGE_EDC_PLAIN,
     .weigh = kedge_weigh_samples,
     .defaults = {COMMON}},
    {.name = "flexcfl-madc",
     .title = "FlexCFL, MADC",
     .what = "FlexCFL by mean differences of cosines and complete linkage",
     .source = "Duan et al., IEEE TPDS 33(11), 2022",
     .local = &kedge_local_sgd,
     .uses = "refresh merge silhouette most",
     .grouping = KEDGE_GROUPING_KIND_FLEXCFL,
     .edc = KEDGE_EDC_MADC,
     .weigh = kedge_weigh_samples,
     .defaults = {COMMON}},
    {.name = "rac",
     .title = "FlexCFL, random assignment",
     .what = "ablation: newcomers join a random group",
     .source = "Duan et al., IEEE TPDS 33(11), 2022",
     .local = &kedge_local_sgd,
     .uses = "",
     .grouping = KEDGE_GROUPING_KIND_RANDOM,
     .edc = KEDGE_EDC_UNIT,
     .comparison_only = true,
     .weigh = kedge_weigh_samples,
     .defaults = {COMMON}},
    {.name = "rcc",
     .title = "FlexCFL, random centres",
     .what = "ablation: directions are the pre-training updates of random sites",
     .source = "Duan et al., IEEE TPDS 33(11), 2022",
     .local = &kedge_local_sgd,
     .uses = "",
     .grouping = KEDGE_GROUPING_KIND_CENTRES,
     .comparison_only = true,
     .weigh = kedge_weigh_samples,
     .defaults = {COMMON}},
    {.name = "flexcfl-adaptive",
     .title = "FlexCFL, adaptive",
     .what = "one group at first, which is cut while its sites' own test samples say so",
     .source = "docs/modules/strategy.md",
     .local = &kedge_local_sgd,
     .uses = "trial_every most",
     .grouping = KEDGE_GROUPING_KIND_FLEXCFL,
     .edc = KEDGE_EDC_UNIT,
     .choose = KEDGE_CHOOSE_ONE,
     .weigh = kedge_weigh_samples,
     .defaults = {COMMON, .trial_every = 5}},
};

size_t kedge_strategy_count(void)
{
    return sizeof rows / sizeof rows[0];
}

const struct kedge_strategy *kedge_strategy_at(size_t i)
{
    KEDGE_ASSERT(i < kedge_strategy_count());
    return &rows[i];
}

const struct kedge_strategy *kedge_strategy_find(const char *name)
{
    for (size_t i = 0; i < kedge_strategy_count(); i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

bool kedge_strategy_drifted(double drift)
{
    return drift > KEDGE_DRIFT_MOST;
}

/* Compression changes single values of an update and gives the difference to the next one. A mean over
 * rounds loses little by that; what looks at one update alone (its length, its direction, its rank among
 * others) does. The text is the end of a message to the owner of the job. */
const char *kedge_strategy_refuses_compact(const struct kedge_strategy *strategy, bool sparse, bool mean)
{
    if (strategy->local->variate) {
        return "the change of a control variate must come as it was made, or the server's is not the mean of "
               "the "
               "sites'";
    }
    if (strategy->local->sends_nothing) {
        return "its sites send nothing";
    }
    if (strategy->weigh == kedge_weigh_qffl) {
        return "updates weigh by their lengths, which compression changes";
    }
    const char *grouping = kedge_grouping_row(strategy->grouping)->needs_whole;
    if (grouping) {
        return grouping;
    }
    return sparse && !mean
               ? "a value that was not sent is no vote for zero, so that only the mean is what it says"
               : NULL;
}

/* `uses` is a list of words, so that a row is read like a sentence; words are compared whole. */
bool kedge_strategy_uses(const struct kedge_strategy *strategy, const struct kedge_strategy_option *option)
{
    const size_t len = strlen(option->name);
    for (const char *at = strategy->uses; *at;) {
        size_t word = strcspn(at, " ");
        if (word == len && memcmp(at, option->name, len) == 0) {
            return true;
        }
        at += word + (at[word] == ' ');
    }
    return false;
}
