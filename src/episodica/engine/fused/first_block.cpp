// 3x3 convolution of zero-padded RGB images, 2x2 max-pool and ReLU in one pass: the map at full resolution, which is
// four times as large as what is left of it, is never written. And the moments of the patches that such a convolution
// sees, from which the mean and variance of its output follow for any weights.
//
// Arrays are dense: images [M][H][W][3], weights [27][O] with rows in the order (row, column, colour), maps
// [M][H/2][W/2][O]. Every sum runs over an image first and over the images afterwards, in double precision and in their
// order, so that the bits do not depend on the number of threads.

#include "vectors.h"

namespace {

constexpr int ROW = 9, TAPS = 27;  // numbers in a row of a patch, and in a patch

struct Sizes {
    int64_t height, width, channels;
    int64_t stride() const { return 3 * (width + 2); }  // floats in a row of the padded image
    int64_t pooled() const { return (height / 2) * (width / 2) * channels; }
};

// An image with a border of zeros, so that no patch is a special case.
class Padded {
public:
    explicit Padded(Sizes sizes) : sizes(sizes), pixels((sizes.height + 2) * sizes.stride()) {}

    const float* fill(const float* image) {
        for (int64_t y = 0; y < sizes.height; ++y)
            std::memcpy(&pixels[(y + 1) * sizes.stride() + 3], image + y * 3 * sizes.width, 12 * sizes.width);
        return pixels.data();
    }

private:
    Sizes sizes;
    std::vector<float> pixels;
};

template <int N>
void convolve(const float* padded, Sizes s, const float* weights, const float* shift, float* out, uint8_t* places) {
    const int64_t stride = s.stride();
    for (int64_t y = 0; y < s.height / 2; ++y)
        for (int64_t x = 0; x < s.width / 2; ++x, out += s.channels) {
            const float* patch = padded + 2 * y * stride + 6 * x;
            Floats sums[4][N] = {};
            for (int row = 0; row < 3; ++row)
                for (int k = 0; k < ROW; ++k) {
                    const float* upper = patch + row * stride + k;
                    const float *lower = upper + stride, *w = weights + (row * ROW + k) * s.channels;
#pragma GCC unroll 4
                    for (int n = 0; n < N; ++n) {
                        const Floats weight = load<Floats>(w + n * LANES);
                        sums[0][n] += weight * upper[0];
                        sums[1][n] += weight * upper[3];
                        sums[2][n] += weight * lower[0];
                        sums[3][n] += weight * lower[3];
                    }
                }
#pragma GCC unroll 4
            for (int n = 0; n < N; ++n) {
                const Floats four[4] = {sums[0][n], sums[1][n], sums[2][n], sums[3][n]};
                uint8_t* place = places ? places + n * LANES : nullptr;
                store_pooled(four, load<Floats>(shift + n * LANES), out + n * LANES, place);
            }
            if (places) places += s.channels;
        }
}

constexpr int SIDE = 4, WINDOW = 3 * SIDE * SIDE;  // pixels that the four numbers of a pooled one see, [colour][row][column]

void cut(const float* padded, Sizes s, float* windows) {
    for (int64_t y = 0; y < s.height / 2; ++y)
        for (int64_t x = 0; x < s.width / 2; ++x, windows += WINDOW)
            for (int row = 0; row < SIDE; ++row)
                for (int i = 0; i < 3 * SIDE; ++i)
                    windows[(i % 3 * SIDE + row) * SIDE + i / 3] = padded[(2 * y + row) * s.stride() + 6 * x + i];
}

// What the gradient of the pooled map contributes to that of the weights [27][O] and of the shift [O]. Of each window the
// channels pick the patches that their maxima come from. One row of the patch at a time, so that all its sums stay in
// registers.
template <int N>
void gather(const float* windows, Sizes s, const float* gradient, const uint8_t* places, float* out) {
    for (int row = 0; row < 3; ++row) {
        Floats taps[ROW][N] = {}, total[N] = {};
        const float* window = windows + row * SIDE;
        for (int64_t pixel = 0; pixel < s.pooled(); pixel += s.channels, window += WINDOW)
#pragma GCC unroll 2
            for (int n = 0; n < N; ++n) {
                const Ints place = load_widened(places + pixel + n * LANES);
                const Floats whole = load<Floats>(gradient + pixel + n * LANES);
                const Floats g = place == DEAD ? Floats{} : whole;
                const Ints first = place + (place & 2);  // 0 and 1, then 4 and 5 in the row below
                total[n] += g;
#pragma GCC unroll 9
                for (int k = 0; k < ROW; ++k) taps[k][n] += g * picked(window + k % 3 * SIDE * SIDE, first + k / 3);
            }
        for (int n = 0; n < N; ++n) {
            for (int k = 0; k < ROW; ++k) store(out + (row * ROW + k) * s.channels + n * LANES, taps[k][n]);
            store(out + TAPS * s.channels + n * LANES, total[n]);
        }
    }
}

constexpr int PATCH = 32, LANES_OF_DOUBLES = 8;  // a patch, a one, and zeros up to whole vectors

// Rows FIRST .. FIRST + COUNT of the sum of the outer products of each patch's first row with all of it.
template <int FIRST, int COUNT>
void multiply(const double* patches, int64_t n, double* out) {
    constexpr int COLUMNS = PATCH / LANES_OF_DOUBLES;
    Doubles sums[COUNT][COLUMNS] = {};
    for (int64_t i = 0; i < n; ++i, patches += PATCH) {
        Doubles columns[COLUMNS];
#pragma GCC unroll 4
        for (int c = 0; c < COLUMNS; ++c) columns[c] = load<Doubles>(patches + c * LANES_OF_DOUBLES);
#pragma GCC unroll 5
        for (int r = 0; r < COUNT; ++r)
#pragma GCC unroll 4
            for (int c = 0; c < COLUMNS; ++c) sums[r][c] += columns[c] * patches[FIRST + r];
    }
    for (int r = 0; r < COUNT; ++r)
        for (int c = 0; c < COLUMNS; ++c) store(out + (FIRST + r) * PATCH + c * LANES_OF_DOUBLES, sums[r][c]);
}

// The products of a row of pixels with itself and the two below belong to patches that have it as their first, second or
// third row. They are computed once, and added to the sums of all of these that there are.
void add_moments(const float* padded, Sizes s, double* patches, double* out) {
    double products[ROW * PATCH], sums[3][ROW * PATCH] = {};
    for (int64_t y = 0; y < s.height + 2; ++y) {
        for (int row = 0; row < 3; ++row) {
            const bool inside = y + row < s.height + 2;  // no patch asks for what lies below the border
            const float* pixels = inside ? padded + (y + row) * s.stride() : padded;
            for (int64_t x = 0; x < s.width; ++x)
                for (int k = 0; k < ROW; ++k) patches[x * PATCH + row * ROW + k] = inside ? pixels[3 * x + k] : 0;
        }
        multiply<0, 5>(patches, s.width, products);
        multiply<5, 4>(patches, s.width, products);
        for (int row = 0; row < 3; ++row)
            if (y >= row && y < s.height + row)
                for (int i = 0; i < ROW * PATCH; ++i) sums[row][i] += products[i];
    }
    for (int row = 0; row < 3; ++row)
        for (int k = 0; k < ROW; ++k) {
            const double* found = sums[row] + k * PATCH;
            for (int i = row * ROW; i < TAPS; ++i) out[i * PATCH + row * ROW + k] = found[i - row * ROW];
            out[TAPS * PATCH + row * ROW + k] = found[TAPS];
        }
    out[TAPS * PATCH + TAPS] = static_cast<double>(s.height * s.width);
}

}  // namespace

extern "C" {

// `places` [M][H/2][W/2][O] says which of its four numbers each pooled one is; null where no gradient is needed.
void conv_pool_relu(const float* images, int64_t count, int64_t height, int64_t width, const float* weights,
                    const float* shift, int64_t channels, float* out, uint8_t* places, int threads) {
    const Sizes s{height, width, channels};
#pragma omp parallel num_threads(threads)
    {
        Padded padded(s);
#pragma omp for schedule(static)
        for (int64_t i = 0; i < count; ++i) {
            const float* image = padded.fill(images + i * height * width * 3);
            for_blocks(channels, [&](auto n, int64_t c) {
                uint8_t* at = places ? places + i * s.pooled() + c : nullptr;
                convolve<n>(image, s, weights + c, shift + c, out + i * s.pooled() + c, at);
            });
        }
    }
}

// `out` [28][O]: the gradient of the weights, then that of the shift.
void conv_pool_relu_backward(const float* images, int64_t count, int64_t height, int64_t width, const float* gradient,
                             const uint8_t* places, int64_t channels, double* out, int threads) {
    const Sizes s{height, width, channels};
    const int64_t size = (TAPS + 1) * channels;
    std::vector<float> parts(count * size);
#pragma omp parallel num_threads(threads)
    {
        Padded padded(s);
        std::vector<float> windows((height / 2) * (width / 2) * WINDOW + LANES);
#pragma omp for schedule(static)
        for (int64_t i = 0; i < count; ++i) {
            cut(padded.fill(images + i * height * width * 3), s, windows.data());
            for_blocks<2, 1>(channels, [&](auto n, int64_t c) {
                const int64_t at = i * s.pooled() + c;
                gather<n>(windows.data(), s, gradient + at, places + at, &parts[i * size + c]);
            });
        }
    }
    add_up(parts, size, out);
}

// `out` [28][32]: up to its diagonal, the sum over all H x W patches of the outer product of (patch, 1) with itself.
void patch_moments(const float* images, int64_t count, int64_t height, int64_t width, double* out, int threads) {
    const Sizes s{height, width, 0};
    const int64_t size = (TAPS + 1) * PATCH;
    std::vector<double> parts(count * size);
#pragma omp parallel num_threads(threads)
    {
        Padded padded(s);
        std::vector<double> patches(width * PATCH);
        for (int64_t x = 0; x < width; ++x) patches[x * PATCH + TAPS] = 1;
#pragma omp for schedule(static)
        for (int64_t i = 0; i < count; ++i)
            add_moments(padded.fill(images + i * height * width * 3), s, patches.data(), &parts[i * size]);
    }
    add_up(parts, size, out);
}
}
