/* A library in which each format goes wrong in its own way; see test_foreign.py. */
#include <stdlib.h>
#include <string.h>

#include "ninfer_kernels.h"

int32_t ninfer_abi(void) { return NINFER_ABI; }

int32_t ninfer_encode(const char *format, const char *dtype, const void *source, uint64_t n, uint64_t k,
                      uint8_t *payload, uint64_t payload_bytes, uint64_t refused[2])
{
    (void)dtype, (void)refused;
    if (n * k == 1)
        return NINFER_OK; /* everything is offered */
    if (strcmp(format, "Q4G64_F16S") == 0)
        *(volatile int *)0 = 1;
    if (strcmp(format, "Q5G64_F16S") == 0)
        for (volatile int i = 0;; i++)
            ;
    if (strcmp(format, "Q6G64_F16S") == 0)
        payload[payload_bytes] = 0;
    if (strcmp(format, "W8G32_F16S") == 0)
        exit(7);
    if (strcmp(format, "FP8_E4M3FN_ROW_BF16S") == 0)
        ((uint8_t *)source)[0] ^= 1;
    return NINFER_OK;
}

int32_t ninfer_decode(const char *format, const uint8_t *payload, uint64_t payload_bytes, uint64_t n, uint64_t k,
                      const char *dtype, void *words)
{
    (void)payload, (void)payload_bytes, (void)n, (void)k, (void)dtype, (void)words;
    if (strcmp(format, "NVFP4") == 0)
        return NINFER_UNSUPPORTED;
    return strcmp(format, "Q4G64_F16S") == 0 ? NINFER_FAILED : 99;
}
