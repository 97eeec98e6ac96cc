// Maps in tiles of 2 x 4 outputs, which minimal filtering works on (filtering.h): from pixels to what the products see, and from
// products to outputs. Some tiles and channels are worked on together, so that what they need stays in the caches.
//
// Arrays are dense: maps [M][H][W][C], channels in sixteens.
#pragma once

#include <algorithm>
#include <memory>

#include "filtering.h"

namespace {

constexpr int CHUNK = 64;  // channels that are worked on together: their part of U stays in the second cache
constexpr int TILES = 24;  // tiles that are worked on together, for the same reason
constexpr int ROWS = 6;    // of a product of matrices that the registers hold, with WIDE vectors each
constexpr int STRIDE = TILES * CHUNK + 16;  // floats from place to place; a power of two would collide in the caches

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

// Asks for what tiles read or write of maps before it is their turn: some lines of the cache at a time, beside arithmetic
// that needs none of them. Otherwise every group of tiles would begin and end by waiting for memory.
template <class Number>
class Ahead {
public:
    Ahead(const Maps<Number>& maps, const Sizes& tiled, int64_t rows) : maps(maps), tiled(tiled), rows(rows) {}
    void need(int64_t from, int64_t end) {
        next = std::max(next, at(from));
        last = at(end);
    }
    void ask(int lines) {
        for (; lines && next < last; --lines, next += LINE) __builtin_prefetch(maps.first + next, !std::is_const_v<Number>);
    }

private:
    static constexpr int LINE = 16;  // floats
    Maps<Number> maps;
    Sizes tiled;
    int64_t rows, next = 0, last = 0;  // rows of pixels in one of tiles; floats from the first one on
    int64_t at(int64_t number) const {
        const Tile tile(tiled, std::min(number, tiled.tiles()));
        return maps.at(tile.image, tile.y / DOWN * rows, 0) - maps.first;
    }
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

// Calls `f(pixel, output)` for the outputs of a tile that lie inside of the maps.
template <class Function>
inline void for_pixels(const Maps<float>& maps, const Tile& tile, const Floats (&outputs)[DOWN][ACROSS], Function f) {
#pragma GCC unroll 8
    for (int p = 0; p < DOWN * ACROSS; ++p) {
        const int64_t y = tile.y + p / ACROSS, x = tile.x + p % ACROSS;
        if (maps.has(y, x)) f(maps.at(tile.image, y, x), outputs[p / ACROSS][p % ACROSS]);
    }
}

}  // namespace
