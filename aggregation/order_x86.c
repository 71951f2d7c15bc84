/* The bodies of order_impl.h for x86-64-v3: eight columns per instruction. */
#include "aggregation/order_impl.h"

#if defined(__x86_64__)
#define AVX2 __attribute__((target("avx2")))

AVX2 void kedgei_order_avx2(const struct kedgei_order_block *block)
{
    kedgei_order_block_body(block, KEDGEI_ORDER_LANES);
}

AVX2 void kedgei_order_many_avx2(const struct kedgei_order_block *block)
{
    kedgei_order_block_body(block, KEDGEI_ORDER_LANES_MANY);
}

AVX2 void kedgei_order_keys_avx2(const struct kedgei_order_network *network, int64_t *rows)
{
    kedgei_order_keys_body(network, rows);
}
#else
typedef int kedgei_order_x86_unused; /* a translation unit holds at least one declaration */
#endif
