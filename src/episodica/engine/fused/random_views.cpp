// Random views of images: a window of the zero-padded image, mirrored or not, with another brightness, contrast and colour.
// All of it is done to one image before the next, so that its numbers stay in the caches.
//
// Arrays are dense: images and views [M][H][W][3].

#include <algorithm>

#include "vectors.h"

namespace {

constexpr float GREY[3] = {0.299f, 0.587f, 0.114f};  // ITU-R 601
constexpr int LEVELS = 256;

inline float bounded(float value) { return std::min(std::max(value, 0.0f), 1.0f); }

inline float grey(float red, float green, float blue) { return GREY[0] * red + GREY[1] * green + GREY[2] * blue; }

// Three planes with what `level` makes of the pixels of the window, zeros where it is outside of the image.
void cut(const uint8_t* image, int64_t height, int64_t width, int64_t top, int64_t left, bool mirrored,
         const float* level, std::vector<float>* planes) {
    for (int64_t y = 0; y < height; ++y) {
        const bool inside = y + top >= 0 && y + top < height;
        for (int64_t x = 0; x < width; ++x) {
            const int64_t from = left + (mirrored ? width - 1 - x : x);
            const bool seen = inside && from >= 0 && from < width;
            const int64_t pixel = 3 * ((y + top) * width + from);
            for (int c = 0; c < 3; ++c) planes[c][y * width + x] = seen ? level[image[pixel + c]] : 0.0f;
        }
    }
}

float mean(const std::vector<float>& plane) {
    constexpr size_t STEP = sizeof(Doubles) / sizeof(double);
    const size_t whole = plane.size() / STEP * STEP;
    Doubles sums{};
    for (size_t p = 0; p < whole; p += STEP) sums += load_widened(&plane[p]);
    double sum = 0;
    for (size_t i = 0; i < STEP; ++i) sum += sums[i];
    for (size_t p = whole; p < plane.size(); ++p) sum += plane[p];
    return static_cast<float>(sum / plane.size());
}

}  // namespace

extern "C" {

// Of each image: where its window begins (`top`, `left`, negative in the padding), whether it is mirrored, and by what
// brightness, contrast and colour are multiplied; of each colour: what its numbers are multiplied by and what is added.
void random_views(const uint8_t* images, int64_t count, int64_t height, int64_t width, const int64_t* top,
                  const int64_t* left, const uint8_t* mirrored, const float* brightness, const float* contrast,
                  const float* colour, const float* factor, const float* offset, float* out, int threads) {
    const int64_t pixels = height * width;
#pragma omp parallel num_threads(threads)
    {
        std::vector<float> planes[3];
        for (auto& plane : planes) plane.resize(pixels);
        float level[LEVELS];
#pragma omp for schedule(static)
        for (int64_t i = 0; i < count; ++i) {
            for (int v = 0; v < LEVELS; ++v) level[v] = bounded(brightness[i] * (v / 255.0f));
            cut(images + 3 * i * pixels, height, width, top[i], left[i], mirrored[i], level, planes);
            const float mean_grey = grey(mean(planes[0]), mean(planes[1]), mean(planes[2]));
            const float *red = planes[0].data(), *green = planes[1].data(), *blue = planes[2].data();
            const float flat = 1 - contrast[i], dull = 1 - colour[i];
            float* view = out + 3 * i * pixels;
            for (int64_t p = 0; p < pixels; ++p) {
                const float r = bounded(red[p] + flat * (mean_grey - red[p]));
                const float g = bounded(green[p] + flat * (mean_grey - green[p]));
                const float b = bounded(blue[p] + flat * (mean_grey - blue[p]));
                const float own = grey(r, g, b);
                view[3 * p] = factor[0] * bounded(r + dull * (own - r)) + offset[0];
                view[3 * p + 1] = factor[1] * bounded(g + dull * (own - g)) + offset[1];
                view[3 * p + 2] = factor[2] * bounded(b + dull * (own - b)) + offset[2];
            }
        }
    }
}
}
