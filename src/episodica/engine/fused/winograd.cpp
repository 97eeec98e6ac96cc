// 3x3 convolution of zero-padded maps by minimal filtering (filtering.h). Summed over the input channels the products of a
// place in a tile are a product of matrices, and these 24 take almost all of the time. The gradient of the weights is the
// same, transposed: with U the weights as the products see them,
//
//     dU = sum over tiles of (B2^T inputs B4) * (A2 d_outputs A4^T),    d_weights = G2^T dU G4.
//
// Maps are dense [M][H][W][C], channels in sixteens; weights lie as their strides say. U lies in squares of channels that are
// worked on together. No sum depends on the number of threads.

#include <algorithm>

#include "tiles.h"

namespace {

constexpr int64_t HELD = 1 << 22;    // floats of U that a larger cache holds; of more, several groups of tiles make use at once
constexpr int PARTS = 8, PART = 64;  // tiles are summed up in so many parts, if each has so many of them

int64_t chunk(int64_t channels, int64_t from) { return std::min<int64_t>(CHUNK, channels - from); }

// Where U of the chunk of channels from (i, o) on begins: [place][input][output].
int64_t square(int64_t i, int64_t o, int64_t inputs, int64_t outputs) {
    return PLACES * (o * inputs + i * chunk(outputs, o));
}

// Calls `f(input, first output, place in U, stride of U)` for every vector of outputs.
template <class Function>
void for_weights(int64_t inputs, int64_t outputs, Function f) {
#pragma omp for schedule(static)
    for (int64_t i = 0; i < inputs; ++i)
        for (int64_t o = 0; o < outputs; o += LANES) {
            const int64_t top = i / CHUNK * CHUNK, left = o / CHUNK * CHUNK, wide = chunk(outputs, left);
            const int64_t inside = square(top, left, inputs, outputs) + (i - top) * wide + o - left;
            f(i, o, inside, chunk(inputs, top) * wide);
        }
}

// The number of output o, input i, row y and column x is at first[o * output + i * input + y * row + x * column].
template <class Number>
struct Weights {
    Number* first;
    int64_t output, input, row, column;
    Number* at(int64_t o, int64_t i, int tap) const {
        return first + o * output + i * input + tap / 3 * row + tap % 3 * column;
    }
};

template <class Number>
Weights<Number> strided(Number* weights, const int64_t* strides) {
    return {weights, strides[0], strides[1], strides[2], strides[3]};
}

// U of the weights from one input to a vector of outputs.
inline void see_weights(const Weights<const float>& weights, int64_t i, int64_t o, float* u, int64_t stride) {
    Floats given[3][3], seen[HIGH][LONG];
    for (int tap = 0; tap < 9; ++tap) {
        const float* from = weights.at(o, i, tap);
        for (int lane = 0; lane < LANES; ++lane) given[tap / 3][tap % 3][lane] = from[lane * weights.output];
    }
    transform<WeightsSeen>(given, seen);
#pragma GCC unroll 24
    for (int p = 0; p < PLACES; ++p) store(u + p * stride, seen[p / LONG][p % LONG]);
}

// The way back, for gradients.
inline void store_weights(const float* u, int64_t stride, const Weights<float>& weights, int64_t i, int64_t o) {
    Floats seen[HIGH][LONG], found[3][3];
#pragma GCC unroll 24
    for (int p = 0; p < PLACES; ++p) seen[p / LONG][p % LONG] = load<Floats>(u + p * stride);
    transform<ProductsToWeights>(seen, found);
    for (int tap = 0; tap < 9; ++tap) {
        float* to = weights.at(o, i, tap);
        for (int lane = 0; lane < LANES; ++lane) to[lane * weights.output] = found[tap / 3][tap % 3][lane];
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

// Groups of tiles as the products see them, all their channels: looked at once for all outputs.
class Seen {
public:
    Seen(const Maps<const float>& maps, int64_t groups)
        : maps(maps), chunks((maps.channels + CHUNK - 1) / CHUNK), buffer(groups * chunks * PLACES * STRIDE) {}
    void look(int64_t from, int64_t end) {
        if (from == first) return;
        first = from;
        for (; from < end; from += TILES)
            for (int64_t i = 0; i < maps.channels; i += CHUNK) {
                const Range tiles{from, std::min<int64_t>(TILES, end - from)};
                const Maps<const float> some{maps.first + i, maps.sizes, maps.channels};
                see<InputsSeen, HIGH, LONG, 1>(some, tiles, chunk(maps.channels, i), at(from, i));
            }
    }
    float* at(int64_t from, int64_t channel) {
        return buffer.data() + ((from - first) / TILES * chunks + channel / CHUNK) * PLACES * STRIDE;
    }

private:
    Maps<const float> maps;
    int64_t chunks, first = -1;
    Buffer buffer;
};

// Calls `f(tile, channel, outputs)` for all tiles and vectors of channels, which writes to `to` in their order.
template <class Function>
void convolve(const Maps<const float>& maps, const Weights<const float>& weights, const Maps<float>& to, int threads,
              Function f) {
    const Sizes& s = maps.sizes;
    const int64_t inputs = maps.channels, outputs = to.channels;
    Buffer u_buffer(PLACES * inputs * outputs);
    float* u = u_buffer.data();
    const int64_t groups = outputs > CHUNK ? 1 + PLACES * inputs * outputs / HELD : 1;
#pragma omp parallel num_threads(threads)
    {
        for_weights(inputs, outputs, [&](int64_t i, int64_t o, int64_t place, int64_t stride) {
            see_weights(weights, i, o, u + place, stride);
        });
        Seen seen(maps, groups);
        Ahead<const float> read(maps, s, DOWN);
        Ahead<float> written(to, s, to.sizes.height < s.height ? 1 : DOWN);
        Buffer product_buffer(PLACES * STRIDE);
        float* products = product_buffer.data();
#pragma omp for schedule(static) collapse(2)
        for (int64_t first = 0; first < s.tiles(); first += groups * TILES)
            for (int64_t o = 0; o < outputs; o += CHUNK) {
                const int64_t wide = chunk(outputs, o), end = std::min(s.tiles(), first + groups * TILES);
                seen.look(first, end);
                read.need(end + s.across(), end + groups * TILES + s.across());  // a row more: tiles see their borders
                written.need(first, end + s.across());
                for (int64_t from = first; from < end; from += TILES) {
                    const Range tiles{from, std::min<int64_t>(TILES, end - from)};
                    for (int64_t i = 0; i < inputs; i += CHUNK) {
                        const int64_t deep = chunk(inputs, i);
                        const float *part = u + square(i, o, inputs, outputs), *given = seen.at(from, i);
                        for (int p = 0; p < PLACES; ++p)
                            for (int64_t t = 0; t < tiles.count; t += ROWS)  // what lies behind the last is not used
                                for_blocks(wide, [&](auto n, int64_t c) {
                                    const Matrix left{given + p * STRIDE + t * deep, deep, 1};
                                    const Matrix right{part + p * deep * wide + c, wide, 1};
                                    float* sums = products + p * STRIDE + t * wide + c;
                                    multiply<ROWS, n>(left, right, deep, i > 0, sums, wide);
                                    read.ask(8);
                                    written.ask(8);
                                });
                    }
                    const auto put = [&](const Tile& tile, int64_t c, auto& found) { f(tile, o + c, found); };
                    for_outputs(products, s, tiles, wide, put);
                }
            }
    }
}

}  // namespace

extern "C" {

void winograd(const float* maps, int64_t count, int64_t height, int64_t width, int64_t inputs, const float* weights,
              const int64_t* strides, int64_t outputs, float* out, int threads) {
    const Maps<float> to{out, {count, height, width}, outputs};
    const Maps<const float> from{maps, to.sizes, inputs};
    convolve(from, strided(weights, strides), to, threads, [&](const Tile& tile, int64_t c, auto& found) {
        for_pixels(to, tile, found, [&](float* at, Floats value) { store(at + c, value); });
    });
}

// leaky ReLU(convolution + shift).
void winograd_leaky(const float* maps, int64_t count, int64_t height, int64_t width, int64_t inputs,
                    const float* weights, const int64_t* strides, int64_t outputs, const float* shift, float slope,
                    float* out, int threads) {
    const Maps<float> to{out, {count, height, width}, outputs};
    const Maps<const float> from{maps, to.sizes, inputs};
    convolve(from, strided(weights, strides), to, threads, [&](const Tile& tile, int64_t c, auto& found) {
        const Floats level = load<Floats>(shift + c);
        for_pixels(to, tile, found, [&](float* at, Floats value) { store(at + c, leaky(value + level, slope)); });
    });
}

// ReLU(max-pool(convolution + shift)): `out` is [M][H/2][W/2][O], the maps before are never written.
void winograd_pool_relu(const float* maps, int64_t count, int64_t height, int64_t width, int64_t inputs,
                        const float* weights, const int64_t* strides, int64_t outputs, const float* shift, float* out,
                        int threads) {
    const Maps<float> to{out, {count, height / 2, width / 2}, outputs};
    const Maps<const float> from{maps, {count, height, width}, inputs};
    convolve(from, strided(weights, strides), to, threads, [&](const Tile& tile, int64_t c, auto& found) {
        for (int x = 0; x < ACROSS; x += 2)
            if (to.has(tile.y / 2, (tile.x + x) / 2)) {
                const Floats four[4] = {found[0][x], found[0][x + 1], found[1][x], found[1][x + 1]};
                float* at = to.at(tile.image, tile.y / 2, (tile.x + x) / 2) + c;
                store_pooled(four, load<Floats>(shift + c), at, nullptr);
            }
    });
}

// `out`: the gradient of the weights.
void winograd_weights(const float* maps, int64_t count, int64_t height, int64_t width, int64_t inputs,
                      const float* gradient, int64_t outputs, float* out, const int64_t* strides, int threads) {
    const Sizes s{count, height, width};
    const Maps<const float> read{maps, s, inputs}, given_back{gradient, s, outputs};
    const Weights<float> weights = strided(out, strides);
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
                    Ahead<const float> inputs_ahead(read, s, DOWN), gradient_ahead(given_back, s, DOWN);
                    for (int64_t from = begin; from < end; from += TILES) {
                        const Range tiles{from, std::min<int64_t>(TILES, end - from)};
                        see<InputsSeen, HIGH, LONG, 1>({maps + i, s, inputs}, tiles, deep, seen);
                        see<GradientSeen, DOWN, ACROSS, 0>({gradient + o, s, outputs}, tiles, wide, given);
                        inputs_ahead.need(from + TILES + s.across(), from + 2 * TILES + s.across());
                        gradient_ahead.need(from + TILES, from + 2 * TILES + s.across());
                        for (int p = 0; p < PLACES; ++p)
                            for_blocks(wide, [&](auto n, int64_t c) {
                                const auto rows = [&](auto r, int64_t row) {
                                    float* to = mine + (p * deep + row) * wide + c;
                                    const Matrix left{seen + p * STRIDE + row, 1, deep};
                                    const Matrix right{given + p * STRIDE + c, wide, 1};
                                    multiply<r, n>(left, right, tiles.count, from > begin, to, wide);
                                    inputs_ahead.ask(4);
                                    gradient_ahead.ask(4);
                                };
                                int64_t row = 0;
                                for (; row + ROWS <= deep; row += ROWS) rows(std::integral_constant<int, ROWS>{}, row);
                                for (; row < deep; row += 2) rows(std::integral_constant<int, 2>{}, row);
                            });
                    }
                }
#pragma omp for schedule(static)
        for (int64_t i = 0; i < size; i += 8) {
            Doubles sum = {};
            for (int64_t part = 0; part < parts; ++part) sum += load_widened(sums + part * size + i);
            store(sums + i, __builtin_convertvector(sum, Eight));
        }
        for_weights(inputs, outputs, [&](int64_t i, int64_t o, int64_t place, int64_t stride) {
            store_weights(sums + place, stride, weights, i, o);
        });
    }
}
}
