/* SPDX-License-Identifier: BSD-3-Clause */
/* Pictures in and out: a grey one becomes temperatures, temperatures become a coloured one. */
#ifndef HEAT2D_PICTURE_H
#define HEAT2D_PICTURE_H

/* Reads a picture (PNG, PGM, JPEG, ...) as temperatures from 0 to 1, refined `refine` times in each
 * direction by interpolation. Gives width * height values in rows, to be freed by the caller; null,
 * with a message on stderr, if the file cannot be read. */
double* picture_read(const char* file, int refine, int* width, int* height);

/* Writes two fields of the same size, one above the other, as a PNG of half the size, coloured from
 * black (0) over red and yellow to white (1). Gives 0, or -1 with a message on stderr. */
int picture_write(const char* file, const double* above, const double* below, int width,
                  int height);

#endif
