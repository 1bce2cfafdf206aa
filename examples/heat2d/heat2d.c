/* SPDX-License-Identifier: BSD-3-Clause */
/* Heat in a plate: the two-dimensional heat equation on the grid of a picture, its cells shared out
 * in blocks among the ranks. Usage: heat2d [picture [result.png [steps]]]
 *
 * How it communicates. Each block is surrounded by a halo, HALO cells deep, that holds copies of
 * the neighbours' cells. A deep halo is good for HALO steps: with every step one more ring of it is
 * out of date. So there is one exchange with the eight neighbours every HALO steps, and it is
 * hidden:
 *   1. post the receives, first, so that a neighbour who is ready can write into our memory;
 *   2. send our edges;
 *   3. compute the cells that need no halo;
 *   4. wait for the halo, and compute the frame around them.
 * The three kinds of neighbours need messages of three sizes: 1152 bytes for a corner, and for the
 * picture that comes with the example on four ranks, 36 KiB for a side and 144 KiB for top and
 * bottom.
 *
 * The result must be that of one processor to the last bit: rank 0 computes that, too, and
 * compares. */
#include "picture.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HALO = 12, REFINE = 4, DIRECTIONS = 9, CENTRE = 4 };
static const double conductivity = 0.2; /* times time step / cell size squared; stable below 0.25 */

/* A block of the grid with its halo. Cell (0, 0) is the first that the rank owns; halo cells have
 * coordinates below 0 and from nx or ny on. */
typedef struct {
  int width, height;         /* of the whole grid */
  int x0, y0, nx, ny;        /* the cells this rank owns */
  int halo;                  /* depth */
  int neighbour[DIRECTIONS]; /* rank in direction 3 * (dy + 1) + dx + 1, or MPI_PROC_NULL */
  double *now, *next;        /* (nx + 2 halo) * (ny + 2 halo) cells each */
  double *edge[DIRECTIONS], *arriving[DIRECTIONS]; /* contiguous, what the messages carry */
} Block;

typedef struct {
  int x, y, nx, ny;
} Rectangle; /* of cells, in a block's coordinates */

static void* allocate(size_t bytes) {
  void* memory = calloc(bytes ? bytes : 1, 1);
  if (!memory) {
    fprintf(stderr, "heat2d: no memory for %zu bytes\n", bytes);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return memory;
}

static size_t stride(const Block* b) {
  return (size_t)(b->nx + 2 * b->halo);
}

static size_t cell(const Block* b, int x, int y) {
  return (size_t)(y + b->halo) * stride(b) + (size_t)(x + b->halo);
}

/* ------------------------------------------------------------------ computing ---------------- */

/* One step in a rectangle, except the cells on the rim of the grid, whose temperature is given. */
static void sweep(Block* b, int x, int y, int x_end, int y_end) {
  if (x + b->x0 < 1) x = 1 - b->x0;
  if (y + b->y0 < 1) y = 1 - b->y0;
  if (x_end + b->x0 > b->width - 1) x_end = b->width - 1 - b->x0;
  if (y_end + b->y0 > b->height - 1) y_end = b->height - 1 - b->y0;
  const size_t row = stride(b);
  for (; y < y_end; ++y) {
    const double* restrict u = b->now + cell(b, 0, y);
    double* restrict v = b->next + cell(b, 0, y);
    for (int i = x; i < x_end; ++i) {
      const double around = (u[i - 1] + u[i + 1]) + (u[i - (int)row] + u[i + (int)row]);
      v[i] = u[i] + conductivity * (around - 4.0 * u[i]);
    }
  }
}

static void turn(Block* b) {
  double* old = b->now;
  b->now = b->next;
  b->next = old;
}

/* ------------------------------------------------------------------ communicating ------------ */

/* Our own cells at the edge in a direction, or the halo cells beyond it. */
static Rectangle strip(const Block* b, int direction, int beyond) {
  const int d[2] = {direction % 3 - 1, direction / 3 - 1}, n[2] = {b->nx, b->ny};
  int start[2], length[2];
  for (int k = 0; k < 2; ++k) {
    length[k] = d[k] == 0 ? n[k] : b->halo;
    start[k] = d[k] <= 0 ? 0 : n[k] - b->halo;
    if (beyond) start[k] += d[k] * b->halo;
  }
  return (Rectangle){start[0], start[1], length[0], length[1]};
}

static size_t cells_in(Rectangle r) {
  return (size_t)r.nx * (size_t)r.ny;
}

static void pack(const Block* b, Rectangle r, double* out) {
  for (int y = r.y; y < r.y + r.ny; ++y, out += r.nx)
    memcpy(out, b->now + cell(b, r.x, y), sizeof(double) * (size_t)r.nx);
}

/* Into both buffers: the rim of the grid, which no step writes, must be in both. */
static void unpack(Block* b, Rectangle r, const double* in) {
  for (int y = r.y; y < r.y + r.ny; ++y, in += r.nx) {
    memcpy(b->now + cell(b, r.x, y), in, sizeof(double) * (size_t)r.nx);
    memcpy(b->next + cell(b, r.x, y), in, sizeof(double) * (size_t)r.nx);
  }
}

/* `halo` steps: one exchange, hidden behind the first step. */
static void advance(Block* b) {
  MPI_Request receives[DIRECTIONS], sends[DIRECTIONS];
  const int h = b->halo;
  for (int d = 0; d < DIRECTIONS; ++d) /* a message travels in direction d; its tag says so */
    MPI_Irecv(b->arriving[d], (int)cells_in(strip(b, d, 1)), MPI_DOUBLE, b->neighbour[d],
              DIRECTIONS - 1 - d, MPI_COMM_WORLD, &receives[d]);
  for (int d = 0; d < DIRECTIONS; ++d) {
    if (b->neighbour[d] != MPI_PROC_NULL) pack(b, strip(b, d, 0), b->edge[d]);
    MPI_Isend(b->edge[d], (int)cells_in(strip(b, d, 0)), MPI_DOUBLE, b->neighbour[d], d,
              MPI_COMM_WORLD, &sends[d]);
  }
  sweep(b, 1, 1, b->nx - 1, b->ny - 1);

  MPI_Waitall(DIRECTIONS, receives, MPI_STATUSES_IGNORE);
  for (int d = 0; d < DIRECTIONS; ++d)
    if (b->neighbour[d] != MPI_PROC_NULL) unpack(b, strip(b, d, 1), b->arriving[d]);
  const int r = h - 1; /* how far into the halo the first step reaches */
  sweep(b, -r, -r, b->nx + r, 1);
  sweep(b, -r, b->ny - 1, b->nx + r, b->ny + r);
  sweep(b, -r, 1, 1, b->ny - 1);
  sweep(b, b->nx - 1, 1, b->nx + r, b->ny - 1);
  turn(b);

  for (int reach = h - 2; reach >= 0; --reach) {
    sweep(b, -reach, -reach, b->nx + reach, b->ny + reach);
    turn(b);
  }
  MPI_Waitall(DIRECTIONS, sends, MPI_STATUSES_IGNORE);
}

/* ------------------------------------------------------------------ setting up --------------- */

/* Part `index` of `parts` of a length: where it starts. */
static int part_start(int length, int parts, int index) {
  return (int)((long)length * index / parts);
}

/* The ranks stand in a rectangle as square as possible, not fewer columns than rows. */
static int most_square_columns(int size) {
  int columns = 1;
  while (columns * columns < size || size % columns)
    ++columns;
  return columns;
}

static Block make_block(int width, int height, int columns, int rows, int rank) {
  Block b = {.width = width, .height = height, .halo = HALO};
  const int column = rank % columns, row = rank / columns;
  b.x0 = part_start(width, columns, column);
  b.y0 = part_start(height, rows, row);
  b.nx = part_start(width, columns, column + 1) - b.x0;
  b.ny = part_start(height, rows, row + 1) - b.y0;
  if (b.nx < HALO || b.ny < HALO) {
    fprintf(stderr,
            "heat2d: a block of %d x %d cells is smaller than the halo of %d; use fewer ranks or a "
            "larger picture\n",
            b.nx, b.ny, HALO);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  const size_t cells = stride(&b) * (size_t)(b.ny + 2 * HALO);
  b.now = allocate(sizeof(double) * cells);
  b.next = allocate(sizeof(double) * cells);
  for (int d = 0; d < DIRECTIONS; ++d) {
    const int c = column + d % 3 - 1, r = row + d / 3 - 1;
    const int inside = c >= 0 && c < columns && r >= 0 && r < rows && d != CENTRE;
    b.neighbour[d] = inside ? r * columns + c : MPI_PROC_NULL;
    const size_t bytes = inside ? sizeof(double) * cells_in(strip(&b, d, 0)) : 0;
    b.edge[d] = allocate(bytes);
    b.arriving[d] = allocate(bytes);
  }
  return b;
}

static void free_block(Block* b) {
  free(b->now);
  free(b->next);
  for (int d = 0; d < DIRECTIONS; ++d) {
    free(b->edge[d]);
    free(b->arriving[d]);
  }
}

static Rectangle owned(const Block* b) {
  return (Rectangle){0, 0, b->nx, b->ny};
}

/* Rank 0 cuts the field in blocks and sends each rank its own. */
static void share_out(Block* b, const double* field, int columns, int rows, int rank) {
  double* mine = allocate(sizeof(double) * cells_in(owned(b)));
  const int size = columns * rows;
  for (int r = rank == 0 ? size - 1 : -1; r >= 0; --r) {
    const int x0 = part_start(b->width, columns, r % columns);
    const int y0 = part_start(b->height, rows, r / columns);
    const int nx = part_start(b->width, columns, r % columns + 1) - x0;
    const int ny = part_start(b->height, rows, r / columns + 1) - y0;
    double* out = r == 0 ? mine : allocate(sizeof(double) * (size_t)nx * (size_t)ny);
    for (int y = 0; y < ny; ++y)
      memcpy(out + (size_t)y * (size_t)nx, field + (size_t)(y0 + y) * (size_t)b->width + x0,
             sizeof(double) * (size_t)nx);
    if (r == 0) continue;
    MPI_Send(out, nx * ny, MPI_DOUBLE, r, 0, MPI_COMM_WORLD);
    free(out);
  }
  if (rank != 0) MPI_Recv(mine, b->nx * b->ny, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  unpack(b, owned(b), mine);
  free(mine);
}

/* The opposite: rank 0 puts the blocks together; it takes them one by one, the others wait. */
static void collect(const Block* b, double* field, int columns, int rows, int rank) {
  double* mine = allocate(sizeof(double) * cells_in(owned(b)));
  pack(b, owned(b), mine);
  if (rank != 0) {
    MPI_Send(mine, b->nx * b->ny, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
  } else {
    for (int r = 0; r < columns * rows; ++r) {
      const int x0 = part_start(b->width, columns, r % columns);
      const int y0 = part_start(b->height, rows, r / columns);
      const int nx = part_start(b->width, columns, r % columns + 1) - x0;
      const int ny = part_start(b->height, rows, r / columns + 1) - y0;
      double* in = r == 0 ? mine : allocate(sizeof(double) * (size_t)nx * (size_t)ny);
      if (r != 0) MPI_Recv(in, nx * ny, MPI_DOUBLE, r, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      for (int y = 0; y < ny; ++y)
        memcpy(field + (size_t)(y0 + y) * (size_t)b->width + x0, in + (size_t)y * (size_t)nx,
               sizeof(double) * (size_t)nx);
      if (r != 0) free(in);
    }
  }
  free(mine);
}

/* ------------------------------------------------------------------ the run ------------------ */

static void show_progress(const Block* b, int step, int steps, double start, int rank) {
  double hottest = 0, highest = 0, sum = 0, total = 0;
  for (int y = 0; y < b->ny; ++y)
    for (int x = 0; x < b->nx; ++x) {
      const double t = b->now[cell(b, x, y)];
      if (t > hottest) hottest = t;
      sum += t;
    }
  MPI_Reduce(&hottest, &highest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Reduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("  step %5d of %d   hottest %.4f   mean %.4f   %6.2f s\n", step, steps, highest,
           total / ((double)b->width * b->height), MPI_Wtime() - start);
    fflush(stdout);
  }
}

/* The whole grid on this rank alone; the same arithmetic, so the same bits. */
static int same_as_serial(const double* start, const double* result, int width, int height,
                          int steps) {
  Block b = {.width = width, .height = height, .nx = width, .ny = height};
  const size_t bytes = sizeof(double) * (size_t)width * (size_t)height;
  b.now = allocate(bytes);
  b.next = allocate(bytes);
  memcpy(b.now, start, bytes);
  memcpy(b.next, start, bytes);
  for (int step = 0; step < steps; ++step) {
    sweep(&b, 0, 0, width, height);
    turn(&b);
  }
  const int same = memcmp(b.now, result, bytes) == 0;
  free(b.now);
  free(b.next);
  return same;
}

static int check_and_draw(const double* start, const double* result, int width, int height,
                          int steps, const char* file) {
  const double begin = MPI_Wtime();
  if (!same_as_serial(start, result, width, height, steps)) {
    fprintf(stderr, "heat2d: WRONG: the result differs from the serial solution\n");
    return 1;
  }
  printf("  equal to the serial solution, bit by bit (computed in %.2f s)\n", MPI_Wtime() - begin);
  if (picture_write(file, start, result, width, height) != 0) return 1;
  printf("  temperatures before and after: %s\n", file);
  return 0;
}

int main(int argc, char** argv) {
  int rank, size, grid[3] = {0, 0, 0}; /* width, height, steps */
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const char* input = argc > 1 ? argv[1] : "pavement.png";
  const char* output = argc > 2 ? argv[2] : "heat2d.png";
  double *field = NULL, *result = NULL;
  if (rank == 0) {
    field = picture_read(input, REFINE, &grid[0], &grid[1]);
    if (!field) MPI_Abort(MPI_COMM_WORLD, 1);
    const int wanted = argc > 3 ? atoi(argv[3]) : 240;
    grid[2] = (wanted + HALO - 1) / HALO * HALO; /* whole exchanges */
    result = allocate(sizeof(double) * (size_t)grid[0] * (size_t)grid[1]);
  }
  MPI_Bcast(grid, 3, MPI_INT, 0, MPI_COMM_WORLD);
  const int columns = most_square_columns(size), rows = size / columns;
  const int steps = grid[2], exchanges = steps / HALO;
  Block b = make_block(grid[0], grid[1], columns, rows, rank);
  if (rank == 0)
    printf("heat2d: %d x %d cells, %d steps, %d x %d ranks, a halo of %d cells every %d steps\n",
           grid[0], grid[1], steps, columns, rows, HALO, HALO);
  share_out(&b, field, columns, rows, rank);

  const double start = MPI_Wtime();
  for (int k = 1; k <= exchanges; ++k) {
    advance(&b);
    if (k % ((exchanges + 9) / 10) == 0 || k == exchanges)
      show_progress(&b, k * HALO, steps, start, rank);
  }
  collect(&b, result, columns, rows, rank);

  int failed = 0;
  if (rank == 0) failed = check_and_draw(field, result, grid[0], grid[1], steps, output);
  MPI_Bcast(&failed, 1, MPI_INT, 0, MPI_COMM_WORLD);
  free_block(&b);
  free(field);
  free(result);
  MPI_Finalize();
  return failed;
}
