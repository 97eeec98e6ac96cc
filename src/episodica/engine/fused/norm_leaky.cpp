// Batch-norm and leaky ReLU of a convolution's output, without a pool: two passes forward (the statistics, as for all
// batch-norms, then everything else) and two backward. Which side of zero a number was on is computed again, not kept.
//
// Arrays are dense: maps [M][H][W][O]. Sums run over an image first and over the images afterwards, in double precision and
// in their order, so that the bits do not depend on the number of threads.

#include "vectors.h"

namespace {

// The gradient before the leaky ReLU, from the one behind it.
inline Floats before(Floats gradient, Floats normed, float slope) {
    return normed > Floats{} ? gradient : slope * gradient;
}

// Sums over one map of that gradient and of its product with the deviation from the mean.
template <int N>
void sum(const float* map, const float* gradient, int64_t pixels, int64_t channels, const float* mean,
         const float* scale, const float* shift, float slope, float* out) {
    Floats plain[N] = {}, product[N] = {};
    for (int64_t p = 0; p < pixels; ++p)
        for (int n = 0; n < N; ++n) {
            const int64_t at = p * channels + n * LANES;
            const Floats x = load<Floats>(map + at);
            const Floats normed = load<Floats>(scale + n * LANES) * x + load<Floats>(shift + n * LANES);
            const Floats g = before(load<Floats>(gradient + at), normed, slope);
            plain[n] += g;
            product[n] += g * (x - load<Floats>(mean + n * LANES));
        }
    for (int n = 0; n < N; ++n) {
        store(out + n * LANES, plain[n]);
        store(out + channels + n * LANES, product[n]);
    }
}

}  // namespace

extern "C" {

// leaky ReLU(scale * maps + shift).
void norm_leaky(const float* maps, int64_t count, int64_t height, int64_t width, int64_t channels, const float* scale,
                const float* shift, float slope, float* out, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t p = 0; p < count * height * width; ++p)
        for (int64_t c = 0; c < channels; c += LANES) {
            const int64_t at = p * channels + c;
            const Floats normed = load<Floats>(scale + c) * load<Floats>(maps + at) + load<Floats>(shift + c);
            store(out + at, leaky(normed, slope));
        }
}

// `out` [2][O]: sums over all maps of the gradient before the leaky ReLU and of its product with the deviation from the mean.
void norm_leaky_sums(const float* maps, int64_t count, int64_t height, int64_t width, int64_t channels,
                     const float* mean, const float* scale, const float* shift, float slope, const float* gradient,
                     double* out, int threads) {
    const int64_t pixels = height * width;
    std::vector<float> parts(count * 2 * channels);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t i = 0; i < count; ++i)
        for_blocks(channels, [&](auto n, int64_t c) {
            const int64_t at = i * pixels * channels + c;
            float* to = &parts[i * 2 * channels + c];
            sum<n>(maps + at, gradient + at, pixels, channels, mean + c, scale + c, shift + c, slope, to);
        });
    add_up(parts, 2 * channels, out);
}

// scale * (the gradient before the leaky ReLU) + tilt * maps + level, where the last two are what the statistics add.
void norm_leaky_backward(const float* maps, int64_t count, int64_t height, int64_t width, int64_t channels,
                         const float* scale, const float* shift, float slope, const float* tilt, const float* level,
                         const float* gradient, float* out, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t p = 0; p < count * height * width; ++p)
        for (int64_t c = 0; c < channels; c += LANES) {
            const int64_t at = p * channels + c;
            const Floats x = load<Floats>(maps + at), factor = load<Floats>(scale + c);
            const Floats g = before(load<Floats>(gradient + at), factor * x + load<Floats>(shift + c), slope);
            store(out + at, factor * g + (load<Floats>(tilt + c) * x + load<Floats>(level + c)));
        }
}
}
