/* Kernels of your own, checked by ninfer-gate: `ninfer-gate selfcheck --library ./yours.so`.
 *
 * A shared library defines ninfer_abi and at least one of the two others. It is loaded into a process of its own, and
 * its functions are called from one thread. Names of formats are those of the registry, to the letter: Q4G64_F16S,
 * Q5G64_F16S, Q6G64_F16S, W8G32_F16S, NVFP4, FP8_E4M3FN_ROW_BF16S. All words are little-endian, all matrices [n, k] lie
 * row after row. Buffers are aligned to 64 bytes at least. Write nothing but the output, and all of it, padding too.
 */
#ifndef NINFER_KERNELS_H
#define NINFER_KERNELS_H

#include <stdint.h>

#define NINFER_ABI 1

enum {
    NINFER_OK = 0,
    NINFER_UNSUPPORTED = 1,       /* this format or dtype is not offered: it is left out, not held against you */
    NINFER_SOURCE_NOT_FINITE = 2, /* encode: the source holds NaN, infinity, or a word beyond binary32 */
    NINFER_SCALE_OVERFLOW = 3,    /* encode: the scale of a group is beyond binary16 */
    NINFER_SCALE_UNDERFLOW = 4,   /* encode: the scale of a row has no finite reciprocal (FP8 rows) */
    NINFER_FAILED = 5             /* no answer, for a reason of your own */
};

#ifdef __cplusplus
extern "C" {
#endif

/* NINFER_ABI of the header that the library was written for. */
int32_t ninfer_abi(void);

/* Source words into a payload of payload_bytes, in the layout of the format, by its encoder profile.
 *
 * dtype: "BF16", "F16" (16-bit words), "F32" or "F64". On a refusal set refused[0] to the row and refused[1] to the group
 * of the first group, in row-major order, that cannot be encoded (0 for FP8 rows); the payload is then not looked at.
 */
int32_t ninfer_encode(const char *format, const char *dtype, const void *source, uint64_t n, uint64_t k,
                      uint8_t *payload, uint64_t payload_bytes, uint64_t refused[2]);

/* A legal payload into the words that its weights stand for, [n, k].
 *
 * dtype: "FP32", 32-bit words, each exact product or quotient rounded once; or "BF16", those words rounded once more.
 * Rounding is to nearest, ties to even. Subnormal words are kept, and beyond the largest value lies infinity.
 */
int32_t ninfer_decode(const char *format, const uint8_t *payload, uint64_t payload_bytes, uint64_t n, uint64_t k,
                      const char *dtype, void *words);

#ifdef __cplusplus
}
#endif

#endif
