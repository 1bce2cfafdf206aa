// SPDX-License-Identifier: BSD-3-Clause
// An MPI program for the launch tests. Usage: launch_program ACTION [NUMBER]
//   trivial       MPI_Init, MPI_Finalize
//   sets          by a session alone: a line of each process set but MPI's own, with the sum of its
//                 ranks' numbers in the job, added up by its members
//   hello         a line of rank, size and appnum
//   asked         a line of what MPI_INFO_ENV says was asked for
//   work SECONDS  messages of all sizes between all ranks, checked, and collectives
//   abort CODE    rank 1 calls MPI_Abort while the others wait for it
//   abort-late CODE  rank 1 calls MPI_Abort when all have printed and wait, or compute, as rank 2
//   no-finalize   rank 1 ends without MPI_Finalize while the others wait for it
//   ends-unbegun  rank 1 kills itself between its first call and the one that begins MPI, while the
//                 others wait for it
//   ends-unmet SECONDS  the last rank kills itself at once; so long after, the others wait for it
//   wrong-tag     rank 0 waits for tag 5, rank 1 has sent tag 6
//   test-loop     the same, rank 0 by calling MPI_Test again and again
//   test-circle   ranks 0 and 1 wait for each other, rank 0 by calling MPI_Test again and again
//   probe         ranks 0 and 1 wait for each other, rank 0 in MPI_Mprobe for tag 5, rank 1 in
//                 MPI_Probe for any
//   partitions    rank 1 waits for the 4 partitions of a send of 2, of which one is never marked
//   children      ranks 0 and 1 and those that they spawn wait for each other
//   window        rank 1 waits for a message while the others make a window
//   ring SECONDS [ROUNDS]  a message goes round all ranks, again and again; in that round the last
//                 rank kills itself
//   circle [NAME [TEXT]]  every rank prints TEXT and waits for the next, in MPI_COMM_WORLD by that
//                 name (- for its own)
//   late SECONDS  rank 1 waits so long for a message of rank 0
//   collective    rank 1 ends while the others are in their third barrier
//   different     rank 0 is in a barrier, the others in broadcasts
//   lock          rank 1 holds a lock of rank 0 and waits for a message, the others wait for it
//   lock-silent   the same, but rank 1 computes
//   fence         rank 1 ends while the others are in their second fence
//   post          rank 0 waits for rank 1 to post, rank 1 for ranks 0 and 2 to complete another
//                 window
#include <mpi.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { longest = 300000 };

static int rank, size;
static double* number_of_mine; /* memory of a window */

static void hello(void) {
  int *appnum, found;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &appnum, &found);
  printf("rank %d of %d, app %d\n", rank, size, found ? *appnum : -1);
}

static void asked(void) {
  static const char* const keys[] = {"maxprocs", "soft"};
  char values[2][MPI_MAX_INFO_VAL];
  for (int i = 0; i < 2; ++i) {
    int length = MPI_MAX_INFO_VAL, found;
    MPI_Info_get_string(MPI_INFO_ENV, keys[i], &length, values[i], &found);
    if (!found) strcpy(values[i], "not there");
  }
  printf("rank %d: maxprocs %s, soft %s\n", rank, values[0], values[1]);
}

/* Of a set that this process is not in, the rank is MPI_UNDEFINED and the sum 0. */
static void show_set(MPI_Session session, const char* name, int number) {
  MPI_Group group;
  MPI_Group_from_session_pset(session, name, &group);
  int members, place, sum = 0, found, length = MPI_MAX_INFO_VAL;
  char told[MPI_MAX_INFO_VAL] = "";
  MPI_Group_size(group, &members);
  MPI_Group_rank(group, &place);
  MPI_Info info;
  MPI_Session_get_pset_info(session, name, &info);
  MPI_Info_get_string(info, "mpi_size", &length, told, &found);
  MPI_Info_free(&info);
  if (place != MPI_UNDEFINED) {
    MPI_Comm comm;
    MPI_Comm_create_from_group(group, name, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Allreduce(&number, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPI_Comm_disconnect(&comm);
  }
  printf("process %d: %s has %d (%s), place %d, sum %d\n", number, name, members, told,
         place == MPI_UNDEFINED ? -1 : place, sum);
  MPI_Group_free(&group);
}

/* Which rank this process is; it takes no MPI_Init, and no network. */
static int number_in(MPI_Session session) {
  MPI_Group world;
  int number;
  MPI_Group_from_session_pset(session, "mpi://WORLD", &world);
  MPI_Group_rank(world, &number);
  MPI_Group_free(&world);
  return number;
}

static void sets(void) {
  MPI_Session session;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  const int number = number_in(session);
  int count;
  MPI_Session_get_num_psets(session, MPI_INFO_NULL, &count);
  for (int n = 0; n < count; ++n) {
    char name[MPI_MAX_PSET_NAME_LEN];
    int length = sizeof name;
    MPI_Session_get_nth_pset(session, MPI_INFO_NULL, n, &length, name);
    if (strncmp(name, "mpi://", 6) != 0) show_set(session, name, number);
  }
  MPI_Session_finalize(&session);
}

/* One round: every rank sends to every other, a size that changes with the round. */
static void exchange(int round) {
  static unsigned char in[longest], out[longest];
  static const int sizes[] = {0, 8, 4000, 20000, longest};
  const int bytes = sizes[round % 5];
  for (int step = 1; step < size; ++step) {
    const int to = (rank + step) % size, from = (rank + size - step) % size;
    memset(out, rank + round, (size_t)bytes);
    MPI_Sendrecv(out, bytes, MPI_BYTE, to, round, in, bytes, MPI_BYTE, from, round, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (int i = 0; i < bytes; i += 997) {
      if (in[i] != (unsigned char)(from + round)) {
        fprintf(stderr, "rank %d, round %d: byte %d from rank %d is wrong\n", rank, round, i, from);
        MPI_Abort(MPI_COMM_WORLD, 50);
      }
    }
  }
}

static void work(double seconds) {
  const double begin = MPI_Wtime();
  int go_on = 1;
  for (int round = 0; go_on; ++round) {
    exchange(round);
    go_on = MPI_Wtime() - begin < seconds;
    MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
}

static void wait_for(int source, int tag) {
  int value;
  MPI_Recv(&value, 1, MPI_INT, source, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void kill_myself(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  fprintf(stderr, "killed-%ld.%09ld\n", (long)now.tv_sec, now.tv_nsec);
  raise(SIGKILL);
}

static void ring(double seconds, int rounds_of_last) {
  const double begin = MPI_Wtime();
  const int from = (rank + size - 1) % size, to = (rank + 1) % size;
  for (int go_on = 1, rounds = 1; go_on; ++rounds) {
    if (rank == size - 1 && rounds == rounds_of_last) kill_myself();
    if (rank == 0) go_on = MPI_Wtime() - begin < seconds;
    if (rank == 0) MPI_Send(&go_on, 1, MPI_INT, to, 0, MPI_COMM_WORLD);
    int round;
    MPI_Recv(&round, 1, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank != 0) MPI_Send(&round, 1, MPI_INT, to, 0, MPI_COMM_WORLD);
    if (rank != 0) go_on = round;
  }
}

static void test_for(int source, int tag) {
  int value, done = 0;
  MPI_Request request;
  MPI_Irecv(&value, 1, MPI_INT, source, tag, MPI_COMM_WORLD, &request);
  while (!done)
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

static void probe(void) {
  MPI_Message message;
  if (rank == 0) MPI_Mprobe(1, 5, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
  if (rank == 1) MPI_Probe(0, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void partitions(void) {
  static char data[400];
  MPI_Request request;
  if (rank == 0)
    MPI_Psend_init(data, 2, 200, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  else
    MPI_Precv_init(data, 4, 100, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  MPI_Start(&request);
  if (rank == 0) MPI_Pready(1, request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void children(const char* program) {
  char* arguments[] = {(char[]){"children"}, NULL};
  MPI_Comm others;
  int value;
  MPI_Comm_get_parent(&others);
  if (others == MPI_COMM_NULL)
    MPI_Comm_spawn(program, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &others,
                   MPI_ERRCODES_IGNORE);
  MPI_Recv(&value, 1, MPI_INT, rank, 1, others, MPI_STATUS_IGNORE);
}

/* Collectives that one rank calls otherwise than the others. */
static void unequal(const char* how, int other) {
  int in[5] = {0}, out[5];
  MPI_Barrier(MPI_COMM_WORLD); /* makes what they share */
  if (strcmp(how, "count") == 0)
    MPI_Allreduce(in, out, other ? 5 : 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  else if (strcmp(how, "operation") == 0)
    MPI_Allreduce(in, out, 4, MPI_INT, other ? MPI_MAX : MPI_SUM, MPI_COMM_WORLD);
  else if (strcmp(how, "root") == 0)
    MPI_Reduce(in, out, 4, MPI_INT, MPI_SUM, other ? 1 : 0, MPI_COMM_WORLD);
  else if (strcmp(how, "roots") == 0) { /* neither root waits for anybody */
    MPI_Bcast(in, 4, MPI_INT, other ? size - 1 : 0, MPI_COMM_WORLD);
    MPI_Allreduce(in, out, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  } else if (other)
    MPI_Barrier(MPI_COMM_WORLD);
  else
    MPI_Bcast(in, 4, MPI_INT, 2, MPI_COMM_WORLD);
}

static void end_unbegun(void) {
  MPI_Session session;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  if (number_in(session) == 1) raise(SIGKILL);
  MPI_Session_finalize(&session);
}

int main(int argc, char** argv) {
  const char* action = argc > 1 ? argv[1] : "";
  const double number = argc > 2 ? atof(argv[2]) : 0;
  if (strcmp(action, "sets") == 0) {
    sets();
    return 0;
  }
  if (strcmp(action, "ends-unbegun") == 0) end_unbegun();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (strcmp(action, "hello") == 0) {
    hello();
  } else if (strcmp(action, "asked") == 0) {
    asked();
  } else if (strcmp(action, "work") == 0) {
    work(number);
  } else if (strcmp(action, "late") == 0) {
    if (rank == 0) usleep((useconds_t)(number * 1e6));
    if (rank == 0) MPI_Send(&size, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    if (rank == 1) wait_for(0, 0);
  } else if (strcmp(action, "abort") == 0) {
    if (rank == 1) MPI_Abort(MPI_COMM_WORLD, (int)number);
    wait_for(1, 0);
  } else if (strcmp(action, "abort-late") == 0) {
    printf("rank %d waits", rank); /* not flushed, as there is no end of line */
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) usleep(100000);
    if (rank == 1) MPI_Abort(MPI_COMM_WORLD, (int)number);
    if (rank == 2) pause();
    wait_for(1, 0);
  } else if (strcmp(action, "no-finalize") == 0) {
    if (rank == 1) exit(0);
    wait_for(1, 0);
  } else if (strcmp(action, "ends-unbegun") == 0) {
    MPI_Barrier(MPI_COMM_WORLD);
  } else if (strcmp(action, "ends-unmet") == 0) {
    if (rank == size - 1) raise(SIGKILL);
    usleep((useconds_t)(number * 1e6));
    wait_for(size - 1, 0);
  } else if (strcmp(action, "wrong-tag") == 0) {
    if (rank == 1) MPI_Send(&rank, 1, MPI_INT, 0, 6, MPI_COMM_WORLD);
    if (rank == 0) wait_for(1, 5);
  } else if (strcmp(action, "test-loop") == 0) {
    if (rank == 1) MPI_Send(&rank, 1, MPI_INT, 0, 6, MPI_COMM_WORLD);
    if (rank == 0) test_for(1, 5);
  } else if (strcmp(action, "test-circle") == 0) {
    if (rank == 0) test_for(1, 5);
    if (rank == 1) wait_for(0, 5);
  } else if (strcmp(action, "probe") == 0) {
    probe();
  } else if (strcmp(action, "partitions") == 0) {
    partitions();
  } else if (strcmp(action, "children") == 0) {
    children(argv[0]);
  } else if (strcmp(action, "window") == 0) {
    MPI_Win win;
    if (rank == 1) wait_for(0, 1);
    MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &number_of_mine, &win);
  } else if (strcmp(action, "ring") == 0) {
    ring(number, argc > 3 ? atoi(argv[3]) : 0);
  } else if (strcmp(action, "collective") == 0) {
    for (int i = 0; i < 2 || (i < 3 && rank != 1); ++i)
      MPI_Barrier(MPI_COMM_WORLD);
  } else if (strcmp(action, "collective-once") == 0) {
    int sum = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  } else if (strcmp(action, "different") == 0) {
    int value = 0;
    if (rank == 0)
      MPI_Barrier(MPI_COMM_WORLD);
    else /* another root each */
      MPI_Bcast(&value, 1, MPI_INT, size - rank, MPI_COMM_WORLD);
  } else if (strcmp(action, "unequal") == 0) {
    unequal(argv[2], rank == size - 1);
  } else if (strncmp(action, "lock", 4) == 0) {
    MPI_Win win;
    MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &number_of_mine, &win);
    MPI_Win_set_name(win, "temperatures");
    if (rank == 1) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1 && strcmp(action, "lock") == 0) wait_for(0, 1);
    if (rank == 1) pause();
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
  } else if (strcmp(action, "fence") == 0) {
    MPI_Win win;
    MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &number_of_mine, &win);
    MPI_Win_fence(0, win);
    if (rank != 1) MPI_Win_fence(0, win);
  } else if (strcmp(action, "post") == 0) {
    MPI_Win first, second;
    MPI_Group world, origins, target;
    const int others[] = {0, 2}, one[] = {1};
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 2, others, &origins);
    MPI_Group_incl(world, 1, one, &target);
    MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &number_of_mine, &first);
    MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &number_of_mine, &second);
    MPI_Win_set_name(first, "pressures");
    MPI_Win_set_name(second, "temperatures");
    if (rank == 0) {
      MPI_Win_start(target, 0, first);
      MPI_Win_complete(first);
    } else if (rank == 1) {
      MPI_Win_post(origins, 0, second);
      MPI_Win_wait(second);
    }
  } else if (strcmp(action, "circle") == 0) {
    if (argc > 2 && strcmp(argv[2], "-") != 0) MPI_Comm_set_name(MPI_COMM_WORLD, argv[2]);
    if (argc > 3) printf("%s", argv[3]); /* not flushed */
    wait_for((rank + 1) % size, 3);
  } else if (strcmp(action, "trivial") != 0) {
    fprintf(stderr, "launch_program: no such action: %s\n", action);
    MPI_Abort(MPI_COMM_WORLD, 51);
  }
  MPI_Finalize();
  return 0;
}
