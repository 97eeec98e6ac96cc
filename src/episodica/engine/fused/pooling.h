// 2x2 windows of maps: what max-pools look at, and where their gradients go.
//
// Arrays are dense: maps [M][H][W][O], pooled ones [M][H/2][W/2][O].
#pragma once

#include "vectors.h"

namespace {

struct Sizes {
    int64_t height, width, channels;
    int64_t full() const { return height * width * channels; }
    int64_t pooled() const { return (height / 2) * (width / 2) * channels; }
    int64_t at(int64_t y, int64_t x) const { return (y * width + x) * channels; }
};

// Calls `f(offsets of a window's four pixels, offset of the pooled one)`.
template <class Function>
inline void for_windows(Sizes s, Function f) {
    int64_t pooled = 0;
    for (int64_t y = 0; y + 1 < s.height; y += 2)
        for (int64_t x = 0; x + 1 < s.width; x += 2, pooled += s.channels) {
            const int64_t first = s.at(y, x), below = s.at(y + 1, x);
            const int64_t pixels[4] = {first, first + s.channels, below, below + s.channels};
            f(pixels, pooled);
        }
}

// What comes back to a window: a gradient, and the number of the pixel that it goes to, if it goes to any.
struct Arrival {
    Floats gradient;
    Ints place;
};

// scale * gradient + tilt * map + level: the gradient where it goes, and what the statistics add everywhere.
// `arrival(offset of the pooled pixel)` says what comes back.
template <int N, class Function>
void spread(const float* map, Sizes s, const float* scale, const float* tilt, const float* level, Function arrival,
            float* out) {
    const auto statistics = [&](int64_t pixel, int n) {
        return load<Floats>(tilt + n * LANES) * load<Floats>(map + pixel + n * LANES) + load<Floats>(level + n * LANES);
    };
    for_windows(s, [&](const int64_t (&pixels)[4], int64_t pooled) {
        for (int n = 0; n < N; ++n) {
            const auto [gradient, place] = arrival(pooled + n * LANES);
            const Floats g = gradient * load<Floats>(scale + n * LANES);
            for (int i = 0; i < 4; ++i)
                store(out + pixels[i] + n * LANES, statistics(pixels[i], n) + (place == i ? g : Floats{}));
        }
    });
    const auto outside = [&](int64_t pixel) {
        for (int n = 0; n < N; ++n) store(out + pixel + n * LANES, statistics(pixel, n));
    };
    if (s.height % 2)
        for (int64_t x = 0; x < s.width; ++x) outside(s.at(s.height - 1, x));
    if (s.width % 2)
        for (int64_t y = 0; y < s.height - s.height % 2; ++y) outside(s.at(y, s.width - 1));
}

// Calls `f(N, i, c)` for blocks of N vectors of channels of every map.
template <class Function>
void for_maps(int64_t count, const Sizes& s, int threads, Function f) {
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t i = 0; i < count; ++i) for_blocks(s.channels, [&](auto n, int64_t c) { f(n, i, c); });
}

}  // namespace
