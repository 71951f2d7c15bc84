/* Sponge of 25 lanes of 64 bits, rate 136 bytes, capacity 64 bytes. Lanes are little-endian on every machine:
 * they are loaded and stored byte by byte. */
#include "chain/anchor/keccak256.h"

#include <string.h>

enum { LANES = 25, RATE = 136, ROUNDS = 24 };

static const uint64_t round_constants[ROUNDS] = {
    0x0000000000000001, 0x0000000000008082, 0x800000000000808a, 0x8000000080008000, 0x000000000000808b,
    0x0000000080000001, 0x8000000080008081, 0x8000000000008009, 0x000000000000008a, 0x0000000000000088,
    0x0000000080008009, 0x000000008000000a, 0x000000008000808b, 0x800000000000008b, 0x8000000000008089,
    0x8000000000008003, 0x8000000000008002, 0x8000000000000080, 0x000000000000800a, 0x800000008000000a,
    0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008,
};
/* The walk of ρ and π through the lanes, from lane 1 on. */
static const uint8_t walk[LANES - 1] = {10, 7,  11, 17, 18, 3, 5,  16, 8,  21, 24, 4,
                                        15, 23, 19, 13, 12, 2, 20, 14, 22, 9,  6,  1};
static const uint8_t rotations[LANES - 1] = {1,  3,  6,  10, 15, 21, 28, 36, 45, 55, 2,  14,
                                             27, 41, 56, 8,  25, 43, 62, 18, 39, 61, 20, 44};

static uint64_t rotate(uint64_t v, unsigned by)
{
    return v << by | v >> (64 - by);
}

static void permute(uint64_t a[LANES])
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t c[5], row[5];
        for (unsigned x = 0; x < 5; x++) { /* θ */
            c[x] = a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20];
        }
        for (unsigned i = 0; i < LANES; i++) {
            a[i] ^= c[(i + 4) % 5] ^ rotate(c[(i + 1) % 5], 1);
        }
        uint64_t lane = a[1];
        for (unsigned i = 0; i < LANES - 1; i++) { /* ρ and π */
            uint64_t next = a[walk[i]];
            a[walk[i]] = rotate(lane, rotations[i]);
            lane = next;
        }
        for (unsigned y = 0; y < LANES; y += 5) { /* χ */
            memcpy(row, a + y, sizeof row);
            for (unsigned x = 0; x < 5; x++) {
                a[y + x] = row[x] ^ (~row[(x + 1) % 5] & row[(x + 2) % 5]);
            }
        }
        a[0] ^= round_constants[round]; /* ι */
    }
}

static void absorb(uint64_t a[LANES], const uint8_t block[RATE])
{
    for (unsigned i = 0; i < RATE; i++) {
        a[i / 8] ^= (uint64_t)block[i] << (8 * (i % 8));
    }
    permute(a);
}

void kedgei_keccak256_padded(struct kedge_view bytes, uint8_t padding, struct kedge_hash *ret_hash)
{
    uint64_t a[LANES] = {0};
    uint8_t last[RATE] = {0};
    while (bytes.len >= RATE) {
        absorb(a, bytes.ptr);
        bytes.ptr += RATE;
        bytes.len -= RATE;
    }
    if (bytes.len > 0) {
        memcpy(last, bytes.ptr, bytes.len);
    }
    last[bytes.len] = padding;
    last[RATE - 1] |= 0x80;
    absorb(a, last);
    for (unsigned i = 0; i < KEDGE_HASH_LEN; i++) {
        ret_hash->b[i] = (uint8_t)(a[i / 8] >> (8 * (i % 8)));
    }
}

void kedge_keccak256(struct kedge_view bytes, struct kedge_hash *ret_hash)
{
    kedgei_keccak256_padded(bytes, 0x01, ret_hash);
}
