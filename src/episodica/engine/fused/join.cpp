// Where the two ways through a residual block meet: a batch-norm of each, their sum, 2x2 max-pool and leaky ReLU in one pass
// over both maps, after those of the statistics; and back in two. The normed maps and their sum are never written.
//
// Arrays are dense: maps [M][H][W][O], pooled ones [M][H/2][W/2][O]. Sums run over an image first and over the images
// afterwards, in double precision and in their order, so that the bits do not depend on the number of threads.

#include "pooling.h"

namespace {

constexpr int BELOW = 4;  // is added to the place of a maximum that is not above zero

template <int N>
void join_pool(const float* a, const float* b, Sizes s, const float* scale_a, const float* scale_b, const float* shift,
               float slope, float* out, uint8_t* places) {
    for_windows(s, [&](const int64_t (&pixels)[4], int64_t pooled) {
        for (int n = 0; n < N; ++n) {
            const Floats factor_a = load<Floats>(scale_a + n * LANES), factor_b = load<Floats>(scale_b + n * LANES);
            Floats four[4];
            for (int i = 0; i < 4; ++i) {
                const int64_t at = pixels[i] + n * LANES;
                four[i] = factor_a * load<Floats>(a + at) + factor_b * load<Floats>(b + at);
            }
            const auto [value, place] = largest(four);
            const Floats best = value + load<Floats>(shift + n * LANES);
            store(out + pooled + n * LANES, leaky(best, slope));
            if (places) store_narrowed(places + pooled + n * LANES, best > Floats{} ? place : place + BELOW);
        }
    });
}

// The gradient of a maximum before the leaky ReLU, and its place.
inline Arrival arriving(const float* gradient, const uint8_t* place, float slope) {
    const Floats g = load<Floats>(gradient);
    const Ints found = load_widened(place);
    return {found >= BELOW ? slope * g : g, found & (BELOW - 1)};
}

// Sums over one map of that gradient and of its products with the deviations of where it goes from the means.
template <int N>
void sum(const float* a, const float* b, Sizes s, const float* mean_a, const float* mean_b, float slope,
         const float* gradient, const uint8_t* places, float* out) {
    Floats plain[N] = {}, product_a[N] = {}, product_b[N] = {};
    for_windows(s, [&](const int64_t (&pixels)[4], int64_t pooled) {
        for (int n = 0; n < N; ++n) {
            const auto [g, place] = arriving(gradient + pooled + n * LANES, places + pooled + n * LANES, slope);
            Floats value_a = load<Floats>(a + pixels[0] + n * LANES), value_b = load<Floats>(b + pixels[0] + n * LANES);
            for (int i = 1; i < 4; ++i) {
                value_a = place == i ? load<Floats>(a + pixels[i] + n * LANES) : value_a;
                value_b = place == i ? load<Floats>(b + pixels[i] + n * LANES) : value_b;
            }
            plain[n] += g;
            product_a[n] += g * (value_a - load<Floats>(mean_a + n * LANES));
            product_b[n] += g * (value_b - load<Floats>(mean_b + n * LANES));
        }
    });
    for (int n = 0; n < N; ++n) {
        store(out + n * LANES, plain[n]);
        store(out + s.channels + n * LANES, product_a[n]);
        store(out + 2 * s.channels + n * LANES, product_b[n]);
    }
}

}  // namespace

extern "C" {

// leaky ReLU(max-pool(scale_a * a + scale_b * b + shift)). `places` [M][H/2][W/2][O] says which of its four numbers each
// pooled one is, plus BELOW where it is not above zero; null where no gradient is needed.
void join(const float* a, int64_t count, int64_t height, int64_t width, int64_t channels, const float* b,
          const float* scale_a, const float* scale_b, const float* shift, float slope, float* out, uint8_t* places,
          int threads) {
    const Sizes s{height, width, channels};
    for_maps(count, s, threads, [&](auto n, int64_t i, int64_t c) {
        const int64_t at = i * s.full() + c, to = i * s.pooled() + c;
        uint8_t* place = places ? places + to : nullptr;
        join_pool<n>(a + at, b + at, s, scale_a + c, scale_b + c, shift + c, slope, out + to, place);
    });
}

// `out` [3][O]: sums over all maps of the gradient before the leaky ReLU and of its products with the deviations from the
// means, of `a` and of `b`.
void join_sums(const float* a, int64_t count, int64_t height, int64_t width, int64_t channels, const float* b,
               const float* mean_a, const float* mean_b, float slope, const float* gradient, const uint8_t* places,
               double* out, int threads) {
    const Sizes s{height, width, channels};
    std::vector<float> parts(count * 3 * channels);
    for_maps(count, s, threads, [&](auto n, int64_t i, int64_t c) {
        const int64_t full = i * s.full() + c, at = i * s.pooled() + c;
        const float *g = gradient + at, *of_a = a + full, *of_b = b + full;
        sum<n>(of_a, of_b, s, mean_a + c, mean_b + c, slope, g, places + at, &parts[i * 3 * channels + c]);
    });
    add_up(parts, 3 * channels, out);
}

// For one of the maps: scale * (the gradient before the leaky ReLU, where it goes) + tilt * maps + level.
void join_backward(const float* maps, int64_t count, int64_t height, int64_t width, int64_t channels,
                   const float* scale, const float* tilt, const float* level, float slope, const float* gradient,
                   const uint8_t* places, float* out, int threads) {
    const Sizes s{height, width, channels};
    for_maps(count, s, threads, [&](auto n, int64_t i, int64_t c) {
        const int64_t at = i * s.pooled() + c;
        const auto arrival = [&](int64_t p) { return arriving(gradient + at + p, places + at + p, slope); };
        spread<n>(maps + i * s.full() + c, s, scale + c, tilt + c, level + c, arrival, out + i * s.full() + c);
    });
}
}
