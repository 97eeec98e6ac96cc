// What the kernels share: vectors as wide as the processor's, channels in blocks of them, and sums over images.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace {

#if defined(__AVX512F__)
constexpr int LANES = 16, WIDE = 4;
#elif defined(__AVX__)
constexpr int LANES = 8, WIDE = 2;
#else
constexpr int LANES = 4, WIDE = 4;
#endif
constexpr int NARROW = 16 / LANES;  // vectors in 16 channels
constexpr int DEAD = 4;             // instead of the place of a maximum that ReLU cuts off

typedef float Floats __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t Ints __attribute__((vector_size(LANES * sizeof(int32_t))));
typedef double Doubles __attribute__((vector_size(64)));
typedef float Eight __attribute__((vector_size(32)));  // as many as there are doubles in a vector

template <class Vector, class Number>
inline Vector load(const Number* from) {
    Vector v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

template <class Vector, class Number>
inline void store(Number* to, Vector v) {
    std::memcpy(to, &v, sizeof v);
}

inline Ints load_widened(const uint8_t* from) {
    int32_t numbers[LANES];
    for (int i = 0; i < LANES; ++i) numbers[i] = from[i];
    return load<Ints>(numbers);
}

inline Doubles load_widened(const float* eight) { return __builtin_convertvector(load<Eight>(eight), Doubles); }

// from[place] for each of the places, which are less than 8; what lies behind may be read too.
inline Floats picked(const float* from, Ints places) {
#if defined(__AVX512F__)
    return _mm512_permutexvar_ps(reinterpret_cast<__m512i>(places), load<Floats>(from));
#elif defined(__AVX2__)
    return _mm256_permutevar8x32_ps(load<Floats>(from), reinterpret_cast<__m256i>(places));
#else
    Floats found;
    for (int i = 0; i < LANES; ++i) found[i] = from[places[i]];
    return found;
#endif
}

inline void store_narrowed(uint8_t* to, Ints v) {
    int32_t numbers[LANES];
    store(numbers, v);
    for (int i = 0; i < LANES; ++i) to[i] = static_cast<uint8_t>(numbers[i]);
}

// Calls `f(N, c)` for blocks of N vectors that begin at channel c: MOST of them where that divides the channels, or half.
template <int MOST = WIDE, int LEAST = NARROW, class Function>
inline void for_blocks(int64_t channels, Function f) {
    if constexpr (MOST > LEAST)
        if (channels % (MOST * LANES)) return for_blocks<MOST / 2, LEAST>(channels, f);
    for (int64_t c = 0; c < channels; c += MOST * LANES) f(std::integral_constant<int, MOST>{}, c);
}

struct Largest {
    Floats value;
    Ints place;
};

// The largest of four and which it was: the first of equals and the last that is not a number, as in torch.
inline Largest largest(const Floats (&four)[4]) {
    Largest found{four[0], Ints{}};
#pragma GCC unroll 3
    for (int i = 1; i < 4; ++i) {
        const Ints better = (four[i] > found.value) | (four[i] != four[i]);
        found.place = better ? Ints{} + i : found.place;
        found.value = better ? four[i] : found.value;
    }
    return found;
}

// The largest of four, after ReLU, and its place, or DEAD where ReLU cuts it off.
inline void store_pooled(const Floats (&four)[4], Floats shift, float* out, uint8_t* place) {
    const auto [value, which] = largest(four);
    const Floats best = value + shift;
    const Ints off = best <= Floats{};  // so that what is not a number is not cut off
    store(out, off ? Floats{} : best);
    if (place) store_narrowed(place, off ? Ints{} + DEAD : which);
}

// Leaky ReLU: plain ReLU where the slope is 0, nothing where it is 1. What is not a number stays so.
inline Floats leaky(Floats value, float slope) { return value > Floats{} ? value : slope * value; }

template <class Number>
void add_up(const std::vector<Number>& parts, int64_t size, double* out) {
    for (int64_t i = 0; i < size; ++i) out[i] = 0;
    for (auto part = parts.begin(); part != parts.end(); part += size)
        for (int64_t i = 0; i < size; ++i) out[i] += part[i];
}

}  // namespace
