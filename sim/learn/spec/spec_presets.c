/* Settings of published experiments under short names, as JSON that the reader takes like anybody's file:
 * what a preset means can be read off it. The common ones: 300 rounds of 20 sites, 10 epochs, batches of 10,
 * 50 steps of pre-training, 20 sites a group for the cold start, also where FedClust leaves no number of
 * groups. */
#include "sim/learn/spec/spec_json.h"

#define MNIST "\"world\":{\"data\":{\"images\":\"mnist\",\"partition\":\"mnist\",\"sites\":1000}}"
#define FASHION "\"world\":{\"data\":{\"images\":\"fashion-mnist\",\"partition\":\"fashion\",\"sites\":500}}"
#define LETTERS(images) \
    "\"world\":{\"data\":{\"images\":\"" images "\",\"partition\":\"letters\",\"sites\":200}}"
#define COMMON "\"rounds\":300," SETTINGS
#define SETTINGS "\"sites_per_round\":20," TRAINING
#define TRAINING                                                                                         \
    "\"local_epochs\":10,\"batch\":10,\"l2\":0.001,\"pretrain_steps\":50,\"bound\":2047,\"weight_max\":" \
    "100000"
#define MCLR "\"model\":{\"preset\":\"mclr\",\"inputs\":784,\"classes\":10}"
#define MLP(hidden) "\"model\":{\"preset\":\"mlp\",\"inputs\":784,\"hidden\":" hidden ",\"classes\":10}"

static const struct kedge_learn_preset presets[] = {
    {"mnist-1000-mclr", "MNIST, 1000 sites with two digits each, logistic regression",
     "{" MNIST "," MCLR "," COMMON ",\"learning_rate\":0.03,\"groups\":3,\"pretrain_sites\":60}"},
    {"mnist-1000-mlp", "the same with a hidden layer of 128",
     "{" MNIST "," MLP("128") "," COMMON ",\"learning_rate\":0.03,\"groups\":3,\"pretrain_sites\":60}"},
    {"fashion-500-mclr", "Fashion-MNIST, 500 sites with five classes each, logistic regression",
     "{" FASHION "," MCLR "," COMMON ",\"learning_rate\":0.005,\"groups\":5,\"pretrain_sites\":100}"},
    {"fashion-500-mlp", "the same with a hidden layer of 128",
     "{" FASHION "," MLP("128") "," COMMON ",\"learning_rate\":0.02,\"groups\":5,\"pretrain_sites\":100}"},
    {"letters-digits-mclr",
     "the recipe of FlexCFL's ten letters on MNIST's digits: 200 sites, three classes each",
     "{" LETTERS("mnist") "," MCLR "," COMMON
                          ",\"learning_rate\":0.003,\"groups\":5,\"pretrain_sites\":100}"},
    {"letters-fashion-mclr", "the same recipe on images of Fashion-MNIST",
     "{" LETTERS("fashion-mnist") "," MCLR "," COMMON
                                  ",\"learning_rate\":0.003,\"groups\":5,\"pretrain_sites\":100}"},
    {"letters-digits-mlp", "letters-digits with a hidden layer of 512",
     "{" LETTERS("mnist") "," MLP("512") "," COMMON
                                         ",\"learning_rate\":0.003,\"groups\":5,\"pretrain_sites\":100}"},
    {"letters-fashion-mlp", "letters-fashion with a hidden layer of 512",
     "{" LETTERS("fashion-mnist") "," MLP(
         "512") "," COMMON ",\"learning_rate\":0.003,\"groups\":5,\"pretrain_sites\":100}"},
    {"synthetic-1-1", "Synthetic(1,1): 100 sites, each with a model and features of its own, no files needed",
     "{\"world\":{\"data\":{\"images\":\"\",\"partition\":\"synthetic\",\"sites\":100,\"alpha\":1,\"beta\":1}"
     "},"
     "\"model\":{\"preset\":\"mclr\",\"inputs\":60,\"classes\":10}," COMMON
     ",\"learning_rate\":0.01,\"groups\":5,\"pretrain_sites\":100}"},
    {"digits", "the small digits that come with Kedge, 40 sites with uneven shares of the labels: a second",
     "{\"world\":{\"data\":{\"images\":\"digits/"
     "digits-images.idx\",\"partition\":\"dirichlet\",\"sites\":40,\"alpha\":0.3}},"
     "\"model\":{\"preset\":\"mclr\",\"inputs\":64,\"classes\":10}," TRAINING
     ",\"learning_rate\":0.05,\"groups\":3,\"pretrain_sites\":60,\"rounds\":30,\"sites_per_round\":10}"},
    {"rotated-mnist", "four planted groups of 50 sites by rotation: seconds, and the truth is known",
     "{\"world\":{\"data\":{\"images\":\"mnist\",\"partition\":\"rotated\",\"sites\":200}}," MCLR "," SETTINGS
     ",\"learning_rate\":0.05,\"groups\":4,\"pretrain_sites\":80,\"rounds\":20}"},
};

const struct kedge_learn_preset *kedge_learn_preset_at(size_t i)
{
    return i < sizeof presets / sizeof presets[0] ? &presets[i] : NULL;
}
