/* The CPU's table. */
#include "client/train/net.h"
#include "tests/contract/train_ops.h"

int main(void)
{
    kedge_train_set_threads(1);
    return train_ops_suite(&kedge_ops_cpu, 1e-4) != 0;
}
