/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Colours in OKLab (Bjoern Ottosson, 2020), where equal steps look equal: the lightness rises
 * steadily from trough to crest, while the hue goes from violet by blue to a pale green.  Files by
 * libpng.
 */
#include "picture.h"

#include "base/text.h"

#ifdef HAVE_LIBPNG

#include <errno.h>
#include <math.h>
#include <png.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Linear light to what a screen is told. */
static unsigned char encode(double light)
{
    double clipped = fmin(fmax(light, 0), 1);
    double value = clipped <= 0.0031308 ? 12.92 * clipped : 1.055 * pow(clipped, 1 / 2.4) - 0.055;
    return (unsigned char)lround(255 * value);
}

/* The colour of `lightness` 0 to 1, of that chroma and hue, as red, green and blue. */
static void from_oklab(double lightness, double chroma, double hue, unsigned char *rgb)
{
    double a = chroma * cos(hue), b = chroma * sin(hue);
    double l = pow(lightness + 0.3963377774 * a + 0.2158037573 * b, 3);
    double m = pow(lightness - 0.1055613458 * a - 0.0638541728 * b, 3);
    double s = pow(lightness - 0.0894841775 * a - 1.2914855480 * b, 3);
    rgb[0] = encode(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s);
    rgb[1] = encode(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s);
    rgb[2] = encode(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s);
}

/* The colour of a height from -1 to 1, under a light of this brightness (1: as on a flat place). */
static void colour(double height, double brightness, unsigned char *rgb)
{
    /* Small waves would be lost beside large ones without this. */
    double level = (1 + copysign(pow(fabs(height), 0.75), height)) / 2;
    double lightness = (0.18 + 0.78 * level) * fmin(fmax(brightness, 0.3), 1.25);
    from_oklab(lightness, 0.03 + 0.11 * sin(M_PI * level), (280 - 95 * level) * M_PI / 180, rgb);
}

/* How much of the light from the top left a place with these slopes catches. */
static double brightness(double right, double down)
{
    static const double light[] = {-0.5, -0.6, 0.75};
    double caught = -light[0] * right - light[1] * down + light[2];
    return 0.55 + 0.45 * caught / light[2] / sqrt(right * right + down * down + 1);
}

/* Beyond the edge the surface is as at the edge. */
static double at(const double *heights, int side, int row, int column)
{
    row = row < 0 ? 0 : row >= side ? side - 1 : row;
    column = column < 0 ? 0 : column >= side ? side - 1 : column;
    return heights[(size_t)row * side + column];
}

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* A height that few places pass, to which the colours are stretched.  0 without memory. */
static double usual_height(const double *heights, size_t count)
{
    double *sorted = calloc(count, sizeof *sorted);
    if (sorted == NULL)
        return 0;
    for (size_t i = 0; i < count; i++)
        sorted[i] = isfinite(heights[i]) ? fabs(heights[i]) : 0;
    qsort(sorted, count, sizeof *sorted, by_value);
    double height = fmax(sorted[count - 1 - count / 500], 1e-300);
    free(sorted);
    return height;
}

static void paint(const double *heights, int side, double highest, unsigned char *rgb)
{
    double steepness = 0.2 * side / 2; /* of slopes over two points, exaggerated for the eye */
    for (int row = 0; row < side; row++) {
        for (int column = 0; column < side; column++) {
            double height = at(heights, side, row, column) / highest;
            double right = at(heights, side, row, column + 1) - at(heights, side, row, column - 1);
            double down = at(heights, side, row + 1, column) - at(heights, side, row - 1, column);
            double light = brightness(steepness * right, steepness * down);
            bool finite = isfinite(height) && isfinite(light);
            colour(finite ? fmin(fmax(height, -1), 1) : 0, finite ? light : 0, rgb);
            rgb += 3;
        }
    }
}

/* A new file beside `path`, with the permissions that fopen would give; NULL with errno set. */
static FILE *open_beside(const char *path, char *beside, size_t room)
{
    if (snprintf(beside, room, "%s.XXXXXX", path) >= (int)room) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    int fd = mkstemp(beside);
    if (fd < 0)
        return NULL;
    mode_t mask = umask(0);
    umask(mask);
    FILE *file = fchmod(fd, 0666 & ~mask) == 0 ? fdopen(fd, "wb") : NULL;
    if (file == NULL) {
        close(fd);
        unlink(beside);
    }
    return file;
}

/* NULL, or what went wrong. */
static const char *write_png(FILE *file, const unsigned char *rgb, int side)
{
    png_image image = {
        .version = PNG_IMAGE_VERSION,
        .width = (png_uint_32)side,
        .height = (png_uint_32)side,
        .format = PNG_FORMAT_RGB,
    };
    const char *wrong = NULL;
    errno = 0;
    if (!png_image_write_to_stdio(&image, file, 0, rgb, 0, NULL))
        wrong = errno != 0 ? strerror(errno) : text_safe(image.message);
    if (fclose(file) != 0 && wrong == NULL)
        wrong = strerror(errno);
    return wrong;
}

/* Beside first, so that nobody ever finds half of it. */
static const char *write_file(const char *path, const unsigned char *rgb, int side)
{
    char beside[4096];
    FILE *file = open_beside(path, beside, sizeof beside);
    if (file == NULL)
        return text("%s: %s", text_safe(path), strerror(errno));
    const char *wrong = write_png(file, rgb, side);
    if (wrong == NULL && rename(beside, path) != 0)
        wrong = strerror(errno);
    if (wrong == NULL)
        return NULL;
    unlink(beside);
    return text("%s: %s", text_safe(path), wrong);
}

const char *picture_write(const char *path, const double *heights, int side)
{
    size_t count = (size_t)side * side;
    unsigned char *rgb = calloc(count, 3);
    double highest = rgb != NULL ? usual_height(heights, count) : 0;
    const char *wrong = "there is no memory for it";
    if (highest > 0) {
        paint(heights, side, highest, rgb);
        wrong = write_file(path, rgb, side);
    }
    free(rgb);
    return wrong;
}

#else

const char *picture_write(const char *path, const double *heights, int side)
{
    (void)heights;
    (void)side;
    return text("%s: this program was built without libpng", text_safe(path));
}

#endif
