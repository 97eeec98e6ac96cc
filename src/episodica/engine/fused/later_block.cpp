// Batch-norm, 2x2 max-pool and ReLU of a convolution's output in as few passes over it as there can be: two forward (the
// statistics, then everything else) and two backward (the sums that the statistics call for, then everything else).
//
// Arrays are dense: maps [M][H][W][O], pooled ones [M][H/2][W/2][O]. Sums run over an image first and over the images
// afterwards, in double precision and in their order, so that the bits do not depend on the number of threads.

#include "pooling.h"

namespace {

// Mean, and sum of squared deviations from it, of each channel of one map.
template <int N>
void moments(const float* map, Sizes s, double* mean, double* squares) {
    const int64_t pixels = s.height * s.width;
    Floats sum[N] = {}, rest[N] = {}, square[N] = {}, middle[N];
    for (int64_t p = 0; p < pixels; ++p)
        for (int n = 0; n < N; ++n) sum[n] += load<Floats>(map + p * s.channels + n * LANES);
    for (int n = 0; n < N; ++n) middle[n] = sum[n] / static_cast<float>(pixels);
    for (int64_t p = 0; p < pixels; ++p)
        for (int n = 0; n < N; ++n) {
            const Floats deviation = load<Floats>(map + p * s.channels + n * LANES) - middle[n];
            rest[n] += deviation;
            square[n] += deviation * deviation;
        }
    // Deviations from a rounded mean are small, and their sum tells how far off it is.
    for (int n = 0; n < N; ++n)
        for (int i = 0; i < LANES; ++i) {
            const double off = static_cast<double>(rest[n][i]) / pixels;
            mean[n * LANES + i] = middle[n][i] + off;
            squares[n * LANES + i] = square[n][i] - pixels * off * off;
        }
}

template <int N>
void pool(const float* map, Sizes s, const float* scale, const float* shift, float* out, uint8_t* places) {
    for_windows(s, [&](const int64_t (&pixels)[4], int64_t pooled) {
        for (int n = 0; n < N; ++n) {
            const Floats factor = load<Floats>(scale + n * LANES);
            Floats four[4];
            for (int i = 0; i < 4; ++i) four[i] = factor * load<Floats>(map + pixels[i] + n * LANES);
            uint8_t* place = places ? places + pooled + n * LANES : nullptr;
            store_pooled(four, load<Floats>(shift + n * LANES), out + pooled + n * LANES, place);
        }
    });
}

// Sums over one map of the gradient and of its product with the deviation of where it goes from the mean.
template <int N>
void sum(const float* map, Sizes s, const float* mean, const float* gradient, const uint8_t* places, float* out) {
    Floats plain[N] = {}, product[N] = {};
    for_windows(s, [&](const int64_t (&pixels)[4], int64_t pooled) {
        for (int n = 0; n < N; ++n) {
            const Ints place = load_widened(places + pooled + n * LANES);
            const Floats g = place == DEAD ? Floats{} : load<Floats>(gradient + pooled + n * LANES);
            Floats value = load<Floats>(map + pixels[0] + n * LANES);
            for (int i = 1; i < 4; ++i) value = place == i ? load<Floats>(map + pixels[i] + n * LANES) : value;
            plain[n] += g;
            product[n] += g * (value - load<Floats>(mean + n * LANES));
        }
    });
    for (int n = 0; n < N; ++n) {
        store(out + n * LANES, plain[n]);
        store(out + s.channels + n * LANES, product[n]);
    }
}

}  // namespace

extern "C" {

// `out` [2][O]: mean and variance (of the population) of each channel.
void channel_moments(const float* maps, int64_t count, int64_t height, int64_t width, int64_t channels, double* out,
                     int threads) {
    const Sizes s{height, width, channels};
    std::vector<double> parts(count * 2 * channels);
    for_maps(count, s, threads, [&](auto n, int64_t i, int64_t c) {
        double* mean = &parts[i * 2 * channels + c];
        moments<n>(maps + i * s.full() + c, s, mean, mean + channels);
    });
    add_up(parts, 2 * channels, out);
    for (int64_t c = 0; c < channels; ++c) {
        const double mean = out[c] / count;
        double between = 0;
        for (int64_t i = 0; i < count; ++i) {
            const double deviation = parts[i * 2 * channels + c] - mean;
            between += deviation * deviation;
        }
        out[c] = mean;
        out[channels + c] = out[channels + c] / (count * height * width) + between / count;
    }
}

// `places` [M][H/2][W/2][O] says which of its four numbers each pooled one is; null where no gradient is needed.
void norm_pool_relu(const float* maps, int64_t count, int64_t height, int64_t width, int64_t channels,
                    const float* scale, const float* shift, float* out, uint8_t* places, int threads) {
    const Sizes s{height, width, channels};
    for_maps(count, s, threads, [&](auto n, int64_t i, int64_t c) {
        uint8_t* at = places ? places + i * s.pooled() + c : nullptr;
        pool<n>(maps + i * s.full() + c, s, scale + c, shift + c, out + i * s.pooled() + c, at);
    });
}

// `out` [2][O]: sums over all maps of the gradient and of its product with the deviation of where it goes from the mean.
void norm_pool_relu_sums(const float* maps, int64_t count, int64_t height, int64_t width, int64_t channels,
                         const float* mean, const float* gradient, const uint8_t* places, double* out, int threads) {
    const Sizes s{height, width, channels};
    std::vector<float> parts(count * 2 * channels);
    for_maps(count, s, threads, [&](auto n, int64_t i, int64_t c) {
        const int64_t at = i * s.pooled() + c;
        sum<n>(maps + i * s.full() + c, s, mean + c, gradient + at, places + at, &parts[i * 2 * channels + c]);
    });
    add_up(parts, 2 * channels, out);
}

void norm_pool_relu_backward(const float* maps, int64_t count, int64_t height, int64_t width, int64_t channels,
                             const float* scale, const float* tilt, const float* level, const float* gradient,
                             const uint8_t* places, float* out, int threads) {
    const Sizes s{height, width, channels};
    for_maps(count, s, threads, [&](auto n, int64_t i, int64_t c) {
        const auto arrival = [&](int64_t p) {
            const int64_t at = i * s.pooled() + c + p;
            return Arrival{load<Floats>(gradient + at), load_widened(places + at)};
        };
        spread<n>(maps + i * s.full() + c, s, scale + c, tilt + c, level + c, arrival, out + i * s.full() + c);
    });
}
}
