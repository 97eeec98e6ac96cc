// The matrices of minimal filtering (Winograd 1980; Lavin and Gray 2016) for tiles of 2 x 4 outputs of a 3x3 convolution,
// which see 4 x 6 inputs:
//
//     outputs = A2^T ((G2 weights G4^T) * (B2^T inputs B4)) A4,
//
// where * goes number by number: 24 products instead of 72. The matrices evaluate polynomials at points and interpolate
// them: 0, 1, -1 and infinity for 2 outputs; 0, 3/4, -3/4, 3/2, -3/2 and infinity for 4. With these, rounding errors are about
// those of torch's sums; tiles of 4 x 4 outputs would exceed them.
#pragma once

#include "vectors.h"

namespace {

constexpr int DOWN = 2, ACROSS = 4;                // outputs of a tile
constexpr int HIGH = DOWN + 2, LONG = ACROSS + 2;  // inputs of a tile
constexpr int PLACES = HIGH * LONG;

constexpr float NEAR = 0.75f, FAR = 1.5f, NEAR2 = NEAR * NEAR, FAR2 = FAR * FAR;  // points of 4 outputs
constexpr float AT_NULL = 1 / (NEAR2 * FAR2);  // of each point: one over the product of its differences to the others
constexpr float AT_NEAR = 1 / (2 * NEAR2 * (NEAR2 - FAR2)), AT_FAR = 1 / (2 * FAR2 * (FAR2 - NEAR2));

// Each gives a matrix times a column: B^T, A^T, A, G, G^T, of the kind that the number of values asks for.

struct InputsSeen {
    static void apply(const Floats (&d)[HIGH], Floats (&out)[HIGH]) {
        out[0] = d[2] - d[0];
        out[1] = d[2] + d[1];
        out[2] = d[2] - d[1];
        out[3] = d[3] - d[1];
    }
    static void apply(const Floats (&d)[LONG], Floats (&out)[LONG]) {
        const Floats near_even = d[4] - FAR2 * d[2], near_odd = NEAR * (d[3] - FAR2 * d[1]);
        const Floats far_even = d[4] - NEAR2 * d[2], far_odd = FAR * (d[3] - NEAR2 * d[1]);
        out[0] = d[4] - (NEAR2 + FAR2) * d[2] + NEAR2 * FAR2 * d[0];
        out[1] = near_even + near_odd;
        out[2] = near_even - near_odd;
        out[3] = far_even + far_odd;
        out[4] = far_even - far_odd;
        out[5] = d[5] - (NEAR2 + FAR2) * d[3] + NEAR2 * FAR2 * d[1];
    }
};

struct ProductsToOutputs {
    static void apply(const Floats (&m)[HIGH], Floats (&out)[DOWN]) {
        out[0] = m[0] + m[1] + m[2];
        out[1] = m[1] - m[2] + m[3];
    }
    static void apply(const Floats (&m)[LONG], Floats (&out)[ACROSS]) {
        const Floats near_even = m[1] + m[2], near_odd = NEAR * (m[1] - m[2]);
        const Floats far_even = m[3] + m[4], far_odd = FAR * (m[3] - m[4]);
        out[0] = m[0] + near_even + far_even;
        out[1] = near_odd + far_odd;
        out[2] = NEAR2 * near_even + FAR2 * far_even;
        out[3] = NEAR2 * near_odd + FAR2 * far_odd + m[5];
    }
};

struct GradientSeen {
    static void apply(const Floats (&g)[DOWN], Floats (&out)[HIGH]) {
        out[0] = g[0];
        out[1] = g[0] + g[1];
        out[2] = g[0] - g[1];
        out[3] = g[1];
    }
    static void apply(const Floats (&g)[ACROSS], Floats (&out)[LONG]) {
        const Floats near_even = g[0] + NEAR2 * g[2], near_odd = NEAR * (g[1] + NEAR2 * g[3]);
        const Floats far_even = g[0] + FAR2 * g[2], far_odd = FAR * (g[1] + FAR2 * g[3]);
        out[0] = g[0];
        out[1] = near_even + near_odd;
        out[2] = near_even - near_odd;
        out[3] = far_even + far_odd;
        out[4] = far_even - far_odd;
        out[5] = g[3];
    }
};

struct WeightsSeen {
    static void apply(const Floats (&w)[3], Floats (&out)[HIGH]) {
        const Floats even = 0.5f * (w[0] + w[2]), odd = 0.5f * w[1];
        out[0] = -w[0];
        out[1] = even + odd;
        out[2] = even - odd;
        out[3] = w[2];
    }
    static void apply(const Floats (&w)[3], Floats (&out)[LONG]) {
        const Floats near_even = AT_NEAR * (w[0] + NEAR2 * w[2]), near_odd = AT_NEAR * NEAR * w[1];
        const Floats far_even = AT_FAR * (w[0] + FAR2 * w[2]), far_odd = AT_FAR * FAR * w[1];
        out[0] = AT_NULL * w[0];
        out[1] = near_even + near_odd;
        out[2] = near_even - near_odd;
        out[3] = far_even + far_odd;
        out[4] = far_even - far_odd;
        out[5] = w[2];
    }
};

struct ProductsToWeights {
    static void apply(const Floats (&u)[HIGH], Floats (&out)[3]) {
        const Floats even = 0.5f * (u[1] + u[2]);
        out[0] = even - u[0];
        out[1] = 0.5f * (u[1] - u[2]);
        out[2] = even + u[3];
    }
    static void apply(const Floats (&u)[LONG], Floats (&out)[3]) {
        const Floats near_even = AT_NEAR * (u[1] + u[2]), far_even = AT_FAR * (u[3] + u[4]);
        out[0] = near_even + far_even + AT_NULL * u[0];
        out[1] = AT_NEAR * NEAR * (u[1] - u[2]) + AT_FAR * FAR * (u[3] - u[4]);
        out[2] = NEAR2 * near_even + FAR2 * far_even + u[5];
    }
};

// The matrix of 2 outputs on the columns of `from`, then that of 4 outputs on the rows of what it gives.
template <class Transform, int H, int W, int TO_H, int TO_W>
inline void transform(const Floats (&from)[H][W], Floats (&to)[TO_H][TO_W]) {
    Floats half[TO_H][W];
#pragma GCC unroll 6
    for (int x = 0; x < W; ++x) {
        Floats column[H], changed[TO_H];
#pragma GCC unroll 4
        for (int y = 0; y < H; ++y) column[y] = from[y][x];
        Transform::apply(column, changed);
#pragma GCC unroll 4
        for (int y = 0; y < TO_H; ++y) half[y][x] = changed[y];
    }
#pragma GCC unroll 4
    for (int y = 0; y < TO_H; ++y) Transform::apply(half[y], to[y]);
}

}  // namespace
