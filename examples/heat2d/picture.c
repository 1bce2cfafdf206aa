/* SPDX-License-Identifier: BSD-3-Clause */
#include "picture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The stb headers are the whole library: its code is compiled here. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wall"
#define STB_IMAGE_IMPLEMENTATION
#include <stb/stb_image.h>
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <stb/stb_image_write.h>
#pragma GCC diagnostic pop

/* The pixel value between four pixels, in parts of one pixel. */
static double between(const unsigned char* pixels, int width, int height, double x, double y) {
  x = fmin(fmax(x, 0.0), width - 1.0);
  y = fmin(fmax(y, 0.0), height - 1.0);
  const int i = x < width - 1 ? (int)x : width - 2;
  const int j = y < height - 1 ? (int)y : height - 2;
  const double a = x - i, b = y - j;
  const unsigned char* p = pixels + (size_t)j * (size_t)width + i;
  const double upper = p[0] * (1 - a) + p[1] * a;
  const double lower = p[width] * (1 - a) + p[width + 1] * a;
  return (upper * (1 - b) + lower * b) / 255.0;
}

double* picture_read(const char* file, int refine, int* width, int* height) {
  int w, h, channels;
  unsigned char* pixels = stbi_load(file, &w, &h, &channels, 1);
  if (!pixels || w < 2 || h < 2) {
    fprintf(stderr, "heat2d: cannot read the picture %s: %s\n", file,
            pixels ? "it needs at least 2 x 2 pixels" : stbi_failure_reason());
    stbi_image_free(pixels);
    return NULL;
  }
  *width = w * refine;
  *height = h * refine;
  double* field = malloc(sizeof(double) * (size_t)*width * (size_t)*height);
  if (!field) {
    fprintf(stderr, "heat2d: no memory for %d x %d cells\n", *width, *height);
  } else {
    for (int j = 0; j < *height; ++j)
      for (int i = 0; i < *width; ++i)
        field[(size_t)j * (size_t)*width + i] =
            between(pixels, w, h, (i + 0.5) / refine - 0.5, (j + 0.5) / refine - 0.5);
  }
  stbi_image_free(pixels);
  return field;
}

static unsigned char channel(double value) {
  return (unsigned char)(255.0 * fmin(fmax(value, 0.0), 1.0) + 0.5);
}

/* Black, violet, red, yellow, white: lightness grows evenly with the temperature. */
static void colour(double t, unsigned char* rgb) {
  t = sqrt(fmin(fmax(t, 0.0), 1.0)); /* shows the low temperatures, where most of the plate is */
  rgb[0] = channel(t < 0.6 ? t / 0.6 : 1.0);
  rgb[1] = channel((t - 0.4) / 0.5);
  rgb[2] = channel(t < 0.3 ? t * 1.3 : t < 0.6 ? 0.39 - (t - 0.3) * 1.3 : (t - 0.75) / 0.25);
}

/* One field at half size: each pixel is the mean of two by two cells. */
static void draw(unsigned char* pixels, const double* field, int width, int height) {
  for (int j = 0; j < height / 2; ++j)
    for (int i = 0; i < width / 2; ++i) {
      const double* cell = field + (size_t)(2 * j) * (size_t)width + 2 * i;
      const double mean = (cell[0] + cell[1] + cell[width] + cell[width + 1]) / 4;
      colour(mean, pixels + 3 * ((size_t)j * (size_t)(width / 2) + (size_t)i));
    }
}

int picture_write(const char* file, const double* above, const double* below, int width,
                  int height) {
  const int w = width / 2, h = height / 2;
  unsigned char* pixels = malloc(3 * (size_t)w * (size_t)(2 * h));
  if (!pixels) {
    fprintf(stderr, "heat2d: no memory for the picture\n");
    return -1;
  }
  draw(pixels, above, width, height);
  draw(pixels + 3 * (size_t)w * (size_t)h, below, width, height);
  const int written = stbi_write_png(file, w, 2 * h, 3, pixels, 3 * w);
  free(pixels);
  if (!written) fprintf(stderr, "heat2d: cannot write the picture %s\n", file);
  return written ? 0 : -1;
}
