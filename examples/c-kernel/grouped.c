/* The four grouped formats in plain C99: an example of a library that `ninfer-gate selfcheck --library` can check.
 *
 * Compile without contraction, or a multiplication and an addition may become one instruction that rounds once:
 *
 *     cc -std=c99 -O2 -ffp-contract=off -fPIC -shared -o grouped.so grouped.c -lm
 */
#include "ninfer_kernels.h"

#include <math.h>
#include <string.h>

typedef struct {
    const char *name;
    unsigned bits;  /* of a code */
    uint64_t group; /* weights under one scale */
    int qmax;
} format_t;

static const format_t FORMATS[] = {
    {"Q4G64_F16S", 4, 64, 7}, {"Q5G64_F16S", 5, 64, 15}, {"Q6G64_F16S", 6, 64, 31}, {"W8G32_F16S", 8, 32, 127}};

/* row-split-k128-v1: 32 bytes of low nibbles (W8: of whole codes) a group, then the bits above, then the scales. */
typedef struct {
    uint64_t groups; /* of a row, padding included */
    uint64_t high_bytes, high, scales, size;
} layout_t;

static uint64_t align_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

static const format_t *find_format(const char *name)
{
    for (size_t i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++)
        if (strcmp(FORMATS[i].name, name) == 0)
            return &FORMATS[i];
    return NULL;
}

static layout_t layout_of(const format_t *f, uint64_t n, uint64_t k)
{
    layout_t at;
    at.groups = align_up(k, 128) / f->group;
    at.high_bytes = f->bits == 8 ? 0 : (f->bits - 4) * f->group / 8;
    at.high = align_up(n * at.groups * 32, 256);
    at.scales = at.high + align_up(n * at.groups * at.high_bytes, 256);
    at.size = at.scales + n * at.groups * 2;
    return at;
}

static float float_of(uint32_t word)
{
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

static uint32_t word_of(float value)
{
    uint32_t word;
    memcpy(&word, &value, sizeof word);
    return word;
}

/* The exact binary32 word of a binary16 word that is neither infinite nor NaN. */
static uint32_t widen16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 0x3ff;
    if (exponent == 0)
        return sign | word_of((float)fraction * 0x1p-24f); /* exact: an integer times a power of two */
    return sign | (exponent + 112) << 23 | fraction << 13;
}

/* The binary16 word nearest to a positive binary32 word, ties to even; 0x7c00 beyond the largest. */
static uint16_t narrow16(uint32_t word)
{
    int exponent = (int)(word >> 23) - 112;
    uint32_t fraction = (word & 0x7fffff) | 0x800000;
    int drop = exponent > 0 ? 13 : 14 - exponent; /* bits of the significand that do not fit */
    if (exponent >= 31)
        return 0x7c00;
    if (drop > 24)
        return 0; /* below half of the smallest word */
    uint32_t rest = fraction & ((1u << drop) - 1), half = 1u << (drop - 1);
    uint32_t kept = fraction >> drop;
    kept += rest > half || (rest == half && (kept & 1));
    return (uint16_t)((exponent > 0 ? (uint32_t)(exponent - 1) << 10 : 0) + kept); /* a carry moves the exponent on */
}

/* BF16 out of a binary32 word that is not NaN. */
static uint16_t narrow_bf16(uint32_t word) { return (uint16_t)((word + 0x7fff + (word >> 16 & 1)) >> 16); }

/* The source word as binary32, or a word with all exponent bits set when it is not finite there. */
static uint32_t load(const void *source, char kind, uint64_t i)
{
    if (kind == 'b')
        return (uint32_t)((const uint16_t *)source)[i] << 16;
    if (kind == 'h') {
        uint16_t word = ((const uint16_t *)source)[i];
        return (word & 0x7c00) == 0x7c00 ? 0x7f800000 : widen16(word);
    }
    if (kind == 'd')
        return word_of((float)((const double *)source)[i]); /* rounds to nearest even, to infinity beyond */
    return ((const uint32_t *)source)[i];
}

static char kind_of(const char *dtype)
{
    static const char *const names[] = {"BF16", "F16", "F32", "F64"};
    for (int i = 0; i < 4; i++)
        if (strcmp(names[i], dtype) == 0)
            return "bhfd"[i];
    return 0;
}

static void put(const format_t *f, const layout_t *at, uint8_t *payload, uint64_t group, uint64_t lane, int code)
{
    uint32_t word = (uint32_t)code & ((1u << f->bits) - 1), above = f->bits - 4;
    uint8_t *base = payload + group * 32, *high = payload + at->high + group * at->high_bytes;
    if (f->bits == 8) {
        base[lane] = (uint8_t)word;
        return;
    }
    base[lane / 2] |= (uint8_t)((word & 15) << (lane % 2 * 4)); /* the even lane in the low nibble */
    for (uint32_t bit = 0; bit < above; bit++)
        high[(lane * above + bit) / 8] |= (uint8_t)((word >> (4 + bit) & 1) << ((lane * above + bit) % 8));
}

static int get(const format_t *f, const layout_t *at, const uint8_t *payload, uint64_t group, uint64_t lane)
{
    const uint8_t *base = payload + group * 32, *high = payload + at->high + group * at->high_bytes;
    uint32_t above = f->bits - 4;
    if (f->bits == 8)
        return (int8_t)base[lane];
    int word = base[lane / 2] >> (lane % 2 * 4) & 15;
    for (uint32_t bit = 0; bit < above; bit++)
        word |= (high[(lane * above + bit) / 8] >> ((lane * above + bit) % 8) & 1) << (4 + bit);
    return word >= 1 << (f->bits - 1) ? word - (1 << f->bits) : word;
}

int32_t ninfer_abi(void) { return NINFER_ABI; }

int32_t ninfer_encode(const char *format, const char *dtype, const void *source, uint64_t n, uint64_t k,
                      uint8_t *payload, uint64_t payload_bytes, uint64_t refused[2])
{
    const format_t *f = find_format(format);
    char kind = kind_of(dtype);
    if (!f || !kind)
        return NINFER_UNSUPPORTED;
    layout_t at = layout_of(f, n, k);
    if (payload_bytes != at.size)
        return NINFER_FAILED;
    memset(payload, 0, payload_bytes); /* padding lanes, padding groups and the gaps between planes */
    for (uint64_t row = 0; row < n; row++)
        for (uint64_t g = 0; g * f->group < k; g++) {
            uint64_t first = row * k + g * f->group, group = row * at.groups + g;
            uint64_t lanes = k - g * f->group < f->group ? k - g * f->group : f->group;
            uint32_t amax = 0; /* magnitudes order like their words */
            refused[0] = row, refused[1] = g;
            for (uint64_t lane = 0; lane < lanes; lane++) {
                uint32_t magnitude = load(source, kind, first + lane) & 0x7fffffff;
                amax = magnitude > amax ? magnitude : amax;
            }
            if (amax >= 0x7f800000)
                return NINFER_SOURCE_NOT_FINITE;
            if (amax == 0)
                continue;
            uint16_t scale = narrow16(word_of(float_of(amax) / (float)f->qmax));
            if (scale >= 0x7c00)
                return NINFER_SCALE_OVERFLOW;
            if (scale == 0)
                scale = 1; /* the smallest scale stands in for one that rounded to zero */
            memcpy(payload + at.scales + 2 * group, &scale, 2);
            float inverse = 1.0f / float_of(widen16(scale)); /* reciprocal first: dividing picks other codes at ties */
            for (uint64_t lane = 0; lane < lanes; lane++) {
                float code = nearbyintf(float_of(load(source, kind, first + lane)) * inverse);
                float least = f->bits == 8 ? -127.0f : (float)(-f->qmax - 1);
                code = code < least ? least : code > (float)f->qmax ? (float)f->qmax : code;
                put(f, &at, payload, group, lane, (int)code);
            }
        }
    return NINFER_OK;
}

int32_t ninfer_decode(const char *format, const uint8_t *payload, uint64_t payload_bytes, uint64_t n, uint64_t k,
                      const char *dtype, void *words)
{
    const format_t *f = find_format(format);
    int wide = strcmp(dtype, "FP32") == 0;
    if (!f || (!wide && strcmp(dtype, "BF16") != 0))
        return NINFER_UNSUPPORTED;
    layout_t at = layout_of(f, n, k);
    if (payload_bytes != at.size)
        return NINFER_FAILED;
    for (uint64_t row = 0; row < n; row++)
        for (uint64_t column = 0; column < k; column++) {
            uint64_t group = row * at.groups + column / f->group;
            uint16_t scale;
            memcpy(&scale, payload + at.scales + 2 * group, 2);
            int code = get(f, &at, payload, group, column % f->group);
            uint32_t word = word_of((float)code * float_of(widen16(scale))); /* +0 for code 0: code zero has no sign */
            if (wide)
                ((uint32_t *)words)[row * k + column] = word;
            else
                ((uint16_t *)words)[row * k + column] = narrow_bf16(word);
        }
    return NINFER_OK;
}
