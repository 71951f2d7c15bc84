/* Reproducible streams of random numbers: xoshiro256** seeded by splitmix64 (Blackman and Vigna,
 * "Scrambled Linear Pseudorandom Number Generators", 2021). Not for secrets. The same seed, purpose
 * and two numbers give the same stream on every machine, for selections, splits and first weights
 * are drawn again by auditors. */
#include "common/base/rng.h"

#include "common/base/err.h"

static uint64_t splitmix(uint64_t *x)
{
    uint64_t z = *x += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Purpose and numbers go through the mixer one after the other, so that streams of neighbouring
 * rounds or sites have nothing in common. */
void kedge_rng_init(struct kedge_rng *rng, uint64_t seed, enum kedge_rng_purpose purpose, uint64_t a,
                    uint64_t b)
{
    uint64_t x = seed;
    x = splitmix(&x) ^ (uint64_t)purpose;
    x = splitmix(&x) ^ a;
    x = splitmix(&x) ^ b;
    for (int i = 0; i < 4; i++) {
        rng->s[i] = splitmix(&x);
    }
}

static uint64_t rotl(uint64_t v, int k)
{
    return v << k | v >> (64 - k);
}

uint64_t kedge_rng_u64(struct kedge_rng *rng)
{
    uint64_t *s = rng->s;
    uint64_t out = rotl(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return out;
}

/* Numbers beyond the largest multiple of n are drawn again: without that small results would be a
 * little more likely. Fewer than two draws are needed in the mean. */
uint64_t kedge_rng_below(struct kedge_rng *rng, uint64_t n)
{
    KEDGE_ASSERT(n > 0);
    uint64_t limit = UINT64_MAX - UINT64_MAX % n; /* a multiple of n */
    uint64_t v;
    do {
        v = kedge_rng_u64(rng);
    } while (v >= limit);
    return v % n;
}

/* 53 bits, as many as a double holds exactly: 0 to below 1 in equal steps. */
double kedge_rng_unit(struct kedge_rng *rng)
{
    return (double)(kedge_rng_u64(rng) >> 11) * 0x1.0p-53;
}

/* The beginning of a Fisher-Yates shuffle: the first k items are a sample without repetition, in
 * random order. */
void kedge_rng_sample(struct kedge_rng *rng, uint32_t *items, size_t n, size_t k)
{
    for (size_t i = 0; i < k && i < n; i++) {
        size_t j = i + (size_t)kedge_rng_below(rng, n - i);
        uint32_t t = items[i];
        items[i] = items[j];
        items[j] = t;
    }
}
