// 3x3 convolution of zero-padded maps by minimal filtering (filtering.h). Summed over the input channels the products of a
// place in a tile are a product of matrices, and these 24 take almost all of the time. The gradient of the weights is the
// same, transposed: with U the weights as the products see them,
//
//     dU = sum over tiles of (B2^T inputs B4) * (A2 d_outputs A4^T),    d_weights = G2^T dU G4.
//
// Arrays are dense: maps [M][H][W][C], weights [3][3][I][O], channels in sixteens. U lies in squares of channels that are
// worked on together. No sum depends on the number of threads.

#include <algorithm>
#include <memory>

#include "filtering.h"

namespace {

constexpr int CHUNK = 64;  // channels that are worked on together: their part of U stays in the second cache
constexpr int TILES = 24;  // tiles that are worked on together, for the same reason
constexpr int ROWS = 6;    // of a product of matrices that the registers hold, with WIDE vectors each
constexpr int STRIDE = TILES * CHUNK + 16;  // floats from place to place; a power of two would collide in the caches
constexpr int PARTS = 8, PART = 64;         // tiles are summed up in so many parts, if each has so many of them

// Floats that begin where a line of the cache does; what they are is not said.
class Buffer {
public:
    explicit Buffer(int64_t size) : lines(new Line[(size + 15) / 16]) {}
    float* data() { return lines[0].numbers; }

private:
    struct alignas(64) Line {
        float numbers[16];
    };
    std::unique_ptr<Line[]> lines;
};

struct Sizes {
    int64_t count, height, width;
    int64_t down() const { return (height + DOWN - 1) / DOWN; }
    int64_t across() const { return (width + ACROSS - 1) / ACROSS; }
    int64_t tiles() const { return count * down() * across(); }
};

// Some channels of maps that have `channels` of them.
template <class Number>
struct Maps {
    Number* first;
    Sizes sizes;
    int64_t channels;
    bool has(int64_t y, int64_t x) const { return y >= 0 && y < sizes.height && x >= 0 && x < sizes.width; }
    Number* at(int64_t image, int64_t y, int64_t x) const {
        return first + ((image * sizes.height + y) * sizes.width + x) * channels;
    }
};

struct Tile {
    int64_t image, y, x;  // of its first output
    Tile(const Sizes& s, int64_t number)
        : image(number / (s.down() * s.across())),
          y(DOWN * (number / s.across() % s.down())),
          x(ACROSS * (number % s.across())) {}
};

struct Range {
    int64_t from, count;
};

alignas(64) constexpr float ZEROS[CHUNK] = {};

// `out` [place][tile][channel]: the pixels of each tile, with this border around it, as the products see them.
template <class Transform, int H, int W, int BORDER>
void see(const Maps<const float>& maps, Range tiles, int64_t width, float* out) {
    for (int64_t t = 0; t < tiles.count; ++t, out += width) {
        const Tile tile(maps.sizes, tiles.from + t);
        const float* pixels[H][W];
        for (int y = 0; y < H; ++y)
            for (int x = 0; x < W; ++x) {
                const int64_t row = tile.y + y - BORDER, column = tile.x + x - BORDER;
                pixels[y][x] = maps.has(row, column) ? maps.at(tile.image, row, column) : ZEROS;
            }
        for (int64_t c = 0; c < width; c += LANES) {
            Floats given[H][W], seen[HIGH][LONG];
#pragma GCC unroll 24
            for (int p = 0; p < H * W; ++p) given[p / W][p % W] = load<Floats>(pixels[p / W][p % W] + c);
            transform<Transform>(given, seen);
#pragma GCC unroll 24
            for (int p = 0; p < PLACES; ++p) store(out + p * STRIDE + c, seen[p / LONG][p % LONG]);
        }
    }
}

// Calls `f(tile, channel, outputs)` for `products` [place][tile][channel].
template <class Function>
inline void for_outputs(const float* products, const Sizes& s, Range tiles, int64_t width, Function f) {
    for (int64_t t = 0; t < tiles.count; ++t, products += width) {
        const Tile tile(s, tiles.from + t);
        for (int64_t c = 0; c < width; c += LANES) {
            Floats found[HIGH][LONG], outputs[DOWN][ACROSS];
#pragma GCC unroll 24
            for (int p = 0; p < PLACES; ++p) found[p / LONG][p % LONG] = load<Floats>(products + p * STRIDE + c);
            transform<ProductsToOutputs>(found, outputs);
            f(tile, c, outputs);
        }
    }
}

int64_t chunk(int64_t channels, int64_t from) { return std::min<int64_t>(CHUNK, channels - from); }

// Where U of the chunk of channels from (i, o) on begins: [place][input][output].
int64_t square(int64_t i, int64_t o, int64_t inputs, int64_t outputs) {
    return PLACES * (o * inputs + i * chunk(outputs, o));
}

// Calls `f(from, stride from, to, stride to)` for every vector of weights [3][3][I][O], and for that of U which it is.
template <class Function>
void for_weights(int64_t inputs, int64_t outputs, Function f) {
#pragma omp for schedule(static)
    for (int64_t i = 0; i < inputs; ++i)
        for (int64_t o = 0; o < outputs; o += LANES) {
            const int64_t top = i / CHUNK * CHUNK, left = o / CHUNK * CHUNK, wide = chunk(outputs, left);
            const int64_t inside = square(top, left, inputs, outputs) + (i - top) * wide + o - left;
            f(i * outputs + o, inputs * outputs, inside, chunk(inputs, top) * wide);
        }
}

// A vector of each of H x W numbers, transformed to TO_H x TO_W.
template <class Transform, int H, int W, int TO_H, int TO_W>
inline void transform_one(const float* from, int64_t stride, float* to, int64_t to_stride) {
    Floats given[H][W], changed[TO_H][TO_W];
#pragma GCC unroll 24
    for (int p = 0; p < H * W; ++p) given[p / W][p % W] = load<Floats>(from + p * stride);
    transform<Transform>(given, changed);
#pragma GCC unroll 24
    for (int p = 0; p < TO_H * TO_W; ++p) store(to + p * to_stride, changed[p / TO_W][p % TO_W]);
}

// A matrix: the number in row r and column c is at first[r * row + c * column].
struct Matrix {
    const float* first;
    int64_t row, column;
};

// R rows and N vectors of the product of `left` and `right`, whose columns lie side by side, added to `out` or stored.
template <int R, int N>
inline void multiply(Matrix left, Matrix right, int64_t depth, bool add, float* out, int64_t out_row) {
    Floats sums[R][N] = {};
    for (int64_t k = 0; k < depth; ++k) {
        Floats columns[N];
#pragma GCC unroll 4
        for (int n = 0; n < N; ++n) columns[n] = load<Floats>(right.first + k * right.row + n * LANES);
#pragma GCC unroll 6
        for (int r = 0; r < R; ++r) {
            const float number = left.first[r * left.row + k * left.column];
#pragma GCC unroll 4
            for (int n = 0; n < N; ++n) sums[r][n] += number * columns[n];
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
        for (int n = 0; n < N; ++n) {
            float* to = out + r * out_row + n * LANES;
            store(to, add ? load<Floats>(to) + sums[r][n] : sums[r][n]);
        }
}

// Calls `f(tile, channel, outputs)` for all tiles and vectors of channels.
template <class Function>
void convolve(const float* maps, const Sizes& s, int64_t inputs, const float* weights, int64_t outputs, int threads,
              Function f) {
    Buffer u_buffer(PLACES * inputs * outputs);
    float* u = u_buffer.data();
#pragma omp parallel num_threads(threads)
    {
        for_weights(inputs, outputs, [&](int64_t plain, int64_t stride, int64_t seen, int64_t seen_stride) {
            transform_one<WeightsSeen, 3, 3, HIGH, LONG>(weights + plain, stride, u + seen, seen_stride);
        });
        Buffer seen_buffer(PLACES * STRIDE), product_buffer(PLACES * STRIDE);
        float *seen = seen_buffer.data(), *products = product_buffer.data();
#pragma omp for schedule(static) collapse(2)
        for (int64_t o = 0; o < outputs; o += CHUNK)
            for (int64_t from = 0; from < s.tiles(); from += TILES) {
                const Range tiles{from, std::min<int64_t>(TILES, s.tiles() - from)};
                const int64_t wide = chunk(outputs, o);
                for (int64_t i = 0; i < inputs; i += CHUNK) {
                    const int64_t deep = chunk(inputs, i);
                    see<InputsSeen, HIGH, LONG, 1>({maps + i, s, inputs}, tiles, deep, seen);
                    const float* part = u + square(i, o, inputs, outputs);
                    for (int p = 0; p < PLACES; ++p)
                        for (int64_t t = 0; t < tiles.count; t += ROWS)  // what lies behind the last tile is not used
                            for_blocks(wide, [&](auto n, int64_t c) {
                                const Matrix left{seen + p * STRIDE + t * deep, deep, 1};
                                const Matrix right{part + p * deep * wide + c, wide, 1};
                                multiply<ROWS, n>(left, right, deep, i > 0, products + p * STRIDE + t * wide + c, wide);
                            });
                }
                for_outputs(products, s, tiles, wide, [&](const Tile& tile, int64_t c, auto& found) { f(tile, o + c, found); });
            }
    }
}

}  // namespace

extern "C" {

void winograd(const float* maps, int64_t count, int64_t height, int64_t width, int64_t inputs, const float* weights,
              int64_t outputs, float* out, int threads) {
    const Maps<float> to{out, {count, height, width}, outputs};
    convolve(maps, to.sizes, inputs, weights, outputs, threads, [&](const Tile& tile, int64_t c, auto& found) {
#pragma GCC unroll 8
        for (int p = 0; p < DOWN * ACROSS; ++p) {
            const int64_t y = tile.y + p / ACROSS, x = tile.x + p % ACROSS;
            if (to.has(y, x)) store(to.at(tile.image, y, x) + c, found[p / ACROSS][p % ACROSS]);
        }
    });
}

// ReLU(max-pool(convolution + shift)): `out` is [M][H/2][W/2][O], the maps before are never written.
void winograd_pool_relu(const float* maps, int64_t count, int64_t height, int64_t width, int64_t inputs,
                        const float* weights, int64_t outputs, const float* shift, float* out, int threads) {
    const Maps<float> to{out, {count, height / 2, width / 2}, outputs};
    convolve(maps, {count, height, width}, inputs, weights, outputs, threads, [&](const Tile& tile, int64_t c, auto& found) {
        for (int x = 0; x < ACROSS; x += 2)
            if (to.has(tile.y / 2, (tile.x + x) / 2)) {
                const Floats four[4] = {found[0][x], found[0][x + 1], found[1][x], found[1][x + 1]};
                float* at = to.at(tile.image, tile.y / 2, (tile.x + x) / 2) + c;
                store_pooled(four, load<Floats>(shift + c), at, nullptr);
            }
    });
}

// `out` [3][3][I][O]: the gradient of the weights.
void winograd_weights(const float* maps, int64_t count, int64_t height, int64_t width, int64_t inputs,
                      const float* gradient, int64_t outputs, float* out, int threads) {
    const Sizes s{count, height, width};
    const int64_t size = PLACES * inputs * outputs;
    const int64_t squares = ((inputs + CHUNK - 1) / CHUNK) * ((outputs + CHUNK - 1) / CHUNK);
    int64_t parts = std::max<int64_t>(1, PARTS / squares);
    while (parts > 1 && s.tiles() < parts * PART) parts /= 2;
    Buffer sums_buffer(parts * size);
    float* sums = sums_buffer.data();
    if (s.tiles() == 0) std::fill_n(sums, size, 0.0f);
#pragma omp parallel num_threads(threads)
    {
        Buffer seen_buffer(PLACES * STRIDE), given_buffer(PLACES * STRIDE);
        float *seen = seen_buffer.data(), *given = given_buffer.data();
#pragma omp for schedule(static) collapse(3)
        for (int64_t part = 0; part < parts; ++part)
            for (int64_t o = 0; o < outputs; o += CHUNK)
                for (int64_t i = 0; i < inputs; i += CHUNK) {
                    const int64_t wide = chunk(outputs, o), deep = chunk(inputs, i);
                    float* mine = sums + part * size + square(i, o, inputs, outputs);
                    const int64_t begin = s.tiles() * part / parts, end = s.tiles() * (part + 1) / parts;
                    for (int64_t from = begin; from < end; from += TILES) {
                        const Range tiles{from, std::min<int64_t>(TILES, end - from)};
                        see<InputsSeen, HIGH, LONG, 1>({maps + i, s, inputs}, tiles, deep, seen);
                        see<GradientSeen, DOWN, ACROSS, 0>({gradient + o, s, outputs}, tiles, wide, given);
                        for (int p = 0; p < PLACES; ++p)
                            for_blocks(wide, [&](auto n, int64_t c) {
                                const auto rows = [&](auto r, int64_t row) {
                                    float* to = mine + (p * deep + row) * wide + c;
                                    const Matrix left{seen + p * STRIDE + row, 1, deep};
                                    const Matrix right{given + p * STRIDE + c, wide, 1};
                                    multiply<r, n>(left, right, tiles.count, from > begin, to, wide);
                                };
                                int64_t row = 0;
                                for (; row + ROWS <= deep; row += ROWS) rows(std::integral_constant<int, ROWS>{}, row);
                                for (; row < deep; row += 2) rows(std::integral_constant<int, 2>{}, row);
                            });
                    }
                }
#pragma omp for schedule(static)
        for (int64_t i = 0; i < size; ++i) {
            double sum = 0;
            for (int64_t part = 0; part < parts; ++part) sum += sums[part * size + i];
            sums[i] = static_cast<float>(sum);
        }
        for_weights(inputs, outputs, [&](int64_t plain, int64_t stride, int64_t seen, int64_t seen_stride) {
            transform_one<ProductsToWeights, HIGH, LONG, 3, 3>(sums + seen, seen_stride, out + plain, stride);
        });
    }
}
}
