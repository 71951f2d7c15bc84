#include "client/train/choose.h"

#include <stdio.h>

#include "client/train/cuda_load.h"
#include "common/base/err.h"

void kedge_choice_close(struct kedge_choice *choice)
{
    if (choice->dev) {
        choice->ops->close(choice->dev);
        choice->dev = NULL;
    }
}

bool kedge_choice_is_cuda(struct kedge_choice *choice, const struct kedge_task *task, char *ret_why)
{
    char text[256] = "";
    ret_why[0] = '\0';
    if (task->device == KEDGE_TASK_CPU || choice->failed) {
        return false;
    }
    if (choice->dev && choice->fast == task->fast) {
        return true;
    }
    kedge_choice_close(choice);
    const struct kedge_ops_config config = {.sites = 1, .threads = task->threads, .fast = task->fast};
    choice->ops = choice->ops ? choice->ops : kedge_cuda_load(text, sizeof text);
    if (choice->ops && choice->ops->open(&config, &choice->dev, text, sizeof text) == KEDGE_OK) {
        choice->fast = task->fast;
        return true;
    }
    choice->dev = NULL;
    choice->failed = true;
    (void)snprintf(ret_why, KEDGE_CHOICE_TEXT, "CUDA is not used: %s; training goes on on the processor",
                   text);
    return false;
}
