/* Which device a task is trained on. A device that could not be opened is not tried again in this process:
 * opening one that is not there may take seconds, and each round would pay for it. One that failed at work is
 * another matter (kedge-train's leave_device): it is opened anew for the next task. */
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

bool kedge_choice_is_cuda(struct kedge_choice *choice, const struct kedge_task *task, bool *ret_first)
{
    char *text = choice->cause;
    *ret_first = false;
    if (task->device == KEDGE_TASK_CPU || choice->failed) {
        return false;
    }
    if (choice->dev && choice->precision == task->precision) {
        return true;
    }
    kedge_choice_close(choice);
    const struct kedge_ops_config config = {
        .sites = 1, .threads = task->threads, .precision = task->precision};
    choice->ops = choice->ops ? choice->ops : kedge_cuda_load(text, sizeof choice->cause);
    if (choice->ops && choice->ops->open(&config, &choice->dev, text, sizeof choice->cause) == KEDGE_OK) {
        choice->precision = task->precision;
        return true;
    }
    choice->dev = NULL;
    choice->failed = *ret_first = true;
    (void)snprintf(choice->why, sizeof choice->why, "CUDA is not used: %s; training goes on on the processor",
                   text);
    return false;
}
