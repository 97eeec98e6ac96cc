// 3x3 convolution of zero-padded maps by minimal filtering, F(2x2, 3x3) of Winograd (Lavin and Gray 2016). Two by two
// outputs see four by four inputs, and
//
//     outputs = A^T (U * (B^T inputs B)) A,    U = G weights G^T,
//
// where * goes number by number: 16 products instead of 36. Summed over the input channels they are 16 products of
// matrices, which take almost all of the time. The gradient of the weights is the same, transposed:
//
//     dU = sum over tiles of (B^T inputs B) * (A d_outputs A^T),    d_weights = G^T dU G.
//
// A and B are written out below, G is the caller's. Arrays are dense: maps [M][H][W][C], U and dU [16][I][O], channels in
// sixteens. No sum depends on the number of threads.

#include <algorithm>

#include "vectors.h"

namespace {

constexpr int PLACES = 16;  // numbers in a tile of inputs
constexpr int CHUNK = 64;   // channels that are worked on together: their part of U stays in the second cache
constexpr int TILES = 48;   // tiles that are worked on together, for the same reason
constexpr int ROWS = 6;     // of a product of matrices that the registers hold, with WIDE vectors each
constexpr int STRIDE = TILES * CHUNK + 16;  // floats from place to place; a power of two would collide in the caches
constexpr int PARTS = 8;    // of the tiles, summed up by whichever thread is free

struct alignas(64) Line {
    float numbers[16];
};

// Floats that begin where a line of the cache does.
class Buffer {
public:
    explicit Buffer(int64_t size) : lines((size + 15) / 16) {}
    float* data() { return lines.data()->numbers; }

private:
    std::vector<Line> lines;
};

struct Sizes {
    int64_t count, height, width;
    int64_t down() const { return (height + 1) / 2; }
    int64_t across() const { return (width + 1) / 2; }
    int64_t tiles() const { return count * down() * across(); }
};

// Some channels of maps that have `channels` of them.
template <class Number>
struct Maps {
    Number* first;
    Sizes sizes;
    int64_t channels;
    Number* at(int64_t image, int64_t y, int64_t x) const {
        return first + ((image * sizes.height + y) * sizes.width + x) * channels;
    }
    bool has(int64_t y, int64_t x) const { return y >= 0 && y < sizes.height && x >= 0 && x < sizes.width; }
};

struct Tile {
    int64_t image, y, x;  // of its first output
    Tile(const Sizes& s, int64_t number)
        : image(number / (s.down() * s.across())),
          y(2 * (number / s.across() % s.down())),
          x(2 * (number % s.across())) {}
};

struct Range {
    int64_t from, count;
};

alignas(64) constexpr float ZEROS[CHUNK] = {};

// The pixels from (top, left) on, or zeros where there are none.
template <int SIDE>
inline void find(const Maps<const float>& maps, int64_t image, int64_t top, int64_t left,
                 const float* (&pixels)[SIDE][SIDE]) {
    for (int y = 0; y < SIDE; ++y)
        for (int x = 0; x < SIDE; ++x)
            pixels[y][x] = maps.has(top + y, left + x) ? maps.at(image, top + y, left + x) : ZEROS;
}

inline void times_b(const Floats (&d)[4], Floats (&out)[4]) {
    out[0] = d[0] - d[2];
    out[1] = d[1] + d[2];
    out[2] = d[2] - d[1];
    out[3] = d[1] - d[3];
}

inline void times_a(const Floats (&m)[4], Floats (&out)[2]) {
    out[0] = m[0] + m[1] + m[2];
    out[1] = m[1] - m[2] - m[3];
}

inline void times_a_transposed(Floats first, Floats second, Floats (&out)[4]) {
    out[0] = first;
    out[1] = first + second;
    out[2] = first - second;
    out[3] = -second;
}

// `out` [16][tile][channel]: B^T inputs B.
void transform_inputs(const Maps<const float>& maps, Range tiles, int64_t width, float* out) {
    for (int64_t t = 0; t < tiles.count; ++t, out += width) {
        const Tile tile(maps.sizes, tiles.from + t);
        const float* pixels[4][4];
        find(maps, tile.image, tile.y - 1, tile.x - 1, pixels);
        for (int64_t c = 0; c < width; c += LANES) {
            Floats half[4][4], four[4];
#pragma GCC unroll 4
            for (int x = 0; x < 4; ++x) {
                const Floats column[4] = {load<Floats>(pixels[0][x] + c), load<Floats>(pixels[1][x] + c),
                                          load<Floats>(pixels[2][x] + c), load<Floats>(pixels[3][x] + c)};
                times_b(column, four);
                for (int y = 0; y < 4; ++y) half[y][x] = four[y];
            }
#pragma GCC unroll 4
            for (int y = 0; y < 4; ++y) {
                times_b(half[y], four);
                for (int x = 0; x < 4; ++x) store(out + (4 * y + x) * STRIDE + c, four[x]);
            }
        }
    }
}

// A^T products A, for `products` [16][tile][channel].
void transform_products(const float* products, Range tiles, int64_t width, const Maps<float>& maps) {
    for (int64_t t = 0; t < tiles.count; ++t, products += width) {
        const Tile tile(maps.sizes, tiles.from + t);
        for (int64_t c = 0; c < width; c += LANES) {
            Floats half[2][4], two[2];
#pragma GCC unroll 4
            for (int x = 0; x < 4; ++x) {
                Floats column[4];
                for (int y = 0; y < 4; ++y) column[y] = load<Floats>(products + (4 * y + x) * STRIDE + c);
                times_a(column, two);
                for (int y = 0; y < 2; ++y) half[y][x] = two[y];
            }
#pragma GCC unroll 2
            for (int y = 0; y < 2; ++y) {
                times_a(half[y], two);
                for (int x = 0; x < 2; ++x)
                    if (maps.has(tile.y + y, tile.x + x))
                        store(maps.at(tile.image, tile.y + y, tile.x + x) + c, two[x]);
            }
        }
    }
}

// `out` [16][tile][channel]: A d_outputs A^T.
void transform_gradient(const Maps<const float>& maps, Range tiles, int64_t width, float* out) {
    for (int64_t t = 0; t < tiles.count; ++t, out += width) {
        const Tile tile(maps.sizes, tiles.from + t);
        const float* pixels[2][2];
        find(maps, tile.image, tile.y, tile.x, pixels);
        for (int64_t c = 0; c < width; c += LANES) {
            Floats left[4], right[4], four[4];
            times_a_transposed(load<Floats>(pixels[0][0] + c), load<Floats>(pixels[1][0] + c), left);
            times_a_transposed(load<Floats>(pixels[0][1] + c), load<Floats>(pixels[1][1] + c), right);
#pragma GCC unroll 4
            for (int y = 0; y < 4; ++y) {
                times_a_transposed(left[y], right[y], four);
                for (int x = 0; x < 4; ++x) store(out + (4 * y + x) * STRIDE + c, four[x]);
            }
        }
    }
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

int64_t chunk(int64_t channels, int64_t from) { return std::min<int64_t>(CHUNK, channels - from); }

}  // namespace

extern "C" {

// `weights` are U.
void winograd(const float* maps, int64_t count, int64_t height, int64_t width, int64_t inputs, const float* weights,
              int64_t outputs, float* out, int threads) {
    const Sizes s{count, height, width};
#pragma omp parallel num_threads(threads)
    {
        Buffer seen_buffer(PLACES * STRIDE), product_buffer(PLACES * STRIDE);
        float *seen = seen_buffer.data(), *products = product_buffer.data();
#pragma omp for schedule(static) collapse(2)
        for (int64_t o = 0; o < outputs; o += CHUNK)
            for (int64_t from = 0; from < s.tiles(); from += TILES) {
                const Range tiles{from, std::min<int64_t>(TILES, s.tiles() - from)};
                const int64_t wide = chunk(outputs, o);
                for (int64_t i = 0; i < inputs; i += CHUNK) {
                    const int64_t deep = chunk(inputs, i);
                    transform_inputs({maps + i, s, inputs}, tiles, deep, seen);
                    for (int p = 0; p < PLACES; ++p)
                        for (int64_t t = 0; t < tiles.count; t += ROWS)  // what lies behind the last tile is not used
                            for_blocks(wide, [&](auto n, int64_t c) {
                                const Matrix left{seen + p * STRIDE + t * deep, deep, 1};
                                const Matrix right{weights + (p * inputs + i) * outputs + o + c, outputs, 1};
                                multiply<ROWS, n>(left, right, deep, i > 0, products + p * STRIDE + t * wide + c, wide);
                            });
                }
                transform_products(products, tiles, wide, {out + o, s, outputs});
            }
    }
}

// `out` is dU.
void winograd_weights(const float* maps, int64_t count, int64_t height, int64_t width, int64_t inputs,
                      const float* gradient, int64_t outputs, float* out, int threads) {
    const Sizes s{count, height, width};
    const int64_t size = PLACES * inputs * outputs;
    const int64_t squares = ((inputs + CHUNK - 1) / CHUNK) * ((outputs + CHUNK - 1) / CHUNK);
    const int64_t parts = std::max<int64_t>(1, PARTS / squares);
    Buffer sums_buffer(parts * size);
    float* sums = sums_buffer.data();
#pragma omp parallel num_threads(threads)
    {
        Buffer seen_buffer(PLACES * STRIDE), given_buffer(PLACES * STRIDE);
        float *seen = seen_buffer.data(), *given = given_buffer.data();
#pragma omp for schedule(static) collapse(3)
        for (int64_t part = 0; part < parts; ++part)
            for (int64_t o = 0; o < outputs; o += CHUNK)
                for (int64_t i = 0; i < inputs; i += CHUNK) {
                    const int64_t wide = chunk(outputs, o), deep = chunk(inputs, i);
                    const int64_t end = s.tiles() * (part + 1) / parts;
                    for (int64_t from = s.tiles() * part / parts; from < end; from += TILES) {
                        const Range tiles{from, std::min<int64_t>(TILES, end - from)};
                        transform_inputs({maps + i, s, inputs}, tiles, deep, seen);
                        transform_gradient({gradient + o, s, outputs}, tiles, wide, given);
                        for (int p = 0; p < PLACES; ++p)
                            for_blocks(wide, [&](auto n, int64_t c) {
                                const auto rows = [&](auto r, int64_t row) {
                                    float* to = sums + part * size + (p * inputs + i + row) * outputs + o + c;
                                    const Matrix left{seen + p * STRIDE + row, 1, deep};
                                    const Matrix right{given + p * STRIDE + c, wide, 1};
                                    multiply<r, n>(left, right, tiles.count, true, to, outputs);
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
            out[i] = static_cast<float>(sum);
        }
    }
}
}
