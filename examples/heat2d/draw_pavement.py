#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws pavement.png, the picture that heat2d starts from: a macadam road, that is, broken stones
of all sizes, some of them hot, with cold joints between. Usage: draw_pavement.py [file]"""
import math
import random
import struct
import sys
import zlib

WIDTH, HEIGHT = 768, 192
LETTERS = {  # five by seven, one string a row
    "M": ["#...#", "##.##", "#.#.#", "#.#.#", "#...#", "#...#", "#...#"],
    "A": [".###.", "#...#", "#...#", "#####", "#...#", "#...#", "#...#"],
    "C": [".###.", "#...#", "#....", "#....", "#....", "#...#", ".###."],
    "D": ["####.", "#...#", "#...#", "#...#", "#...#", "#...#", "####."],
}
WORD = "MACADAM"
CELL = 14  # pixels of one letter dot


def in_word(x, y):
    """Whether the word's stroke covers this place."""
    column = (x - (WIDTH - (6 * len(WORD) - 1) * CELL) / 2) / CELL
    row = (y - (HEIGHT - 7 * CELL) / 2) / CELL
    if not (0 <= row < 7 and 0 <= column < 6 * len(WORD) - 1):
        return False
    letter, dot = divmod(int(column), 6)
    return dot < 5 and LETTERS[WORD[letter]][int(row)][dot] == "#"


def stones(rng):
    """Centres on a jittered grid, each with the heat of its stone."""
    step = 7
    centres = {}
    for j in range(-2, HEIGHT // step + 3):
        for i in range(-2, WIDTH // step + 3):
            x, y = (i + rng.uniform(0.05, 0.95)) * step, (j + rng.uniform(0.05, 0.95)) * step
            glow = 245 if in_word(x, y) else (150 if rng.random() < 0.03 else rng.randint(15, 55))
            centres[i, j] = (x, y, glow)
    return step, centres


def pixel(x, y, step, centres):
    """The nearest stone's heat, dark in the joint between two stones."""
    i, j = int(x // step), int(y // step)
    near = sorted((math.hypot(x - cx, y - cy), glow)
                  for cx, cy, glow in (centres[i + a, j + b]
                                       for a in (-2, -1, 0, 1, 2) for b in (-2, -1, 0, 1, 2)
                                       if (i + a, j + b) in centres))
    joint = near[1][0] - near[0][0]
    return int(near[0][1] * min(1.0, 0.15 + joint / 3.0))


def chunk(kind, data):
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))


def main():
    step, centres = stones(random.Random(1820))
    rows = b"".join(b"\0" + bytes(pixel(x + 0.5, y + 0.5, step, centres) for x in range(WIDTH))
                    for y in range(HEIGHT))
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 0, 0, 0, 0)  # 8-bit grey
    with open(sys.argv[1] if len(sys.argv) > 1 else "pavement.png", "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) +
                   chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


if __name__ == "__main__":
    main()
