// SPDX-License-Identifier: MIT
/*
 * What the module costs programs that do not use it, and those that do, in a pipe
 * round trip between two processes (two context switches) and in a system call. For
 * virtual time, where a nanosecond is an instruction. Loads the module itself, to
 * compare with the kernel without it.
 *
 * The lines "# cost NAME VALUE" are what tests/cost-table reads.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "helpers/taskshared_test.h"

/*
 * The median of many batches, each much shorter than the time between two ticks, has
 * no tick in it. The fastest would not do: 7.3 has some that are much cheaper, in
 * which the scheduler need not touch a timer.
 */
#define BATCHES		11
/*
 * And of many pairs of processes the mean of the quarter in the middle. They differ by
 * 0.1 %: it matters which of the CPU's few address space ids they get, and which way
 * their vruntimes lie. And on 7.3 up to a third of them, soon after boot, are of the
 * cheap kind.
 */
#define PAIRS		32
#define ROUND_TRIPS	50
#define CALLS		1000

/* Limits, as parts of the cost without the module. */
#define NOTHING		0.001
#define BESIDE		(linux_6_1() ? 0.007 : 0.015)
/* Instructions for each switch of a thread with a slot. */
#define SWITCH		150

/* Give and take of a byte between two processes; the child is the other one. */
struct pair {
	int to[2];
	int from[2];
	pid_t child;
};

struct cost {
	double round_trip;
	double call;
};

/* There a probe on the very call is possible, which costs others nothing. */
static bool linux_6_1(void)
{
	struct utsname name;

	return !uname(&name) && !strncmp(name.release, "6.1.", 4);
}

static bool attach(void)
{
	int fd = tst_open();

	return fd >= 0 && tst_slot_offset(fd) >= 0;
}

static void echo_bytes(struct pair *pair, bool slots)
{
	char byte;

	if (slots && !attach())
		_exit(1);
	while (read(pair->to[0], &byte, 1) == 1)
		if (write(pair->from[1], &byte, 1) != 1)
			_exit(1);
	_exit(0);
}

static void round_trips(struct pair *pair)
{
	char byte = 0;
	int i;

	for (i = 0; i < ROUND_TRIPS; i++)
		if (write(pair->to[1], &byte, 1) != 1 || read(pair->from[0], &byte, 1) != 1)
			_exit(1);
}

static void calls(struct pair *unused)
{
	int i;

	(void)unused;
	for (i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double typical(void (*batch)(struct pair *pair), struct pair *pair, int count)
{
	double length[BATCHES];
	uint64_t begun;
	int i;

	/* The first ones find cold caches and a scheduler that has not settled. */
	for (i = 0; i < 4; i++)
		batch(pair);
	for (i = 0; i < BATCHES; i++) {
		begun = tst_now();
		batch(pair);
		length[i] = (double)(tst_now() - begun) / count;
	}
	qsort(length, BATCHES, sizeof(length[0]), compare);
	return length[BATCHES / 2];
}

/* In a process of its own, so that slots it takes go with it. */
static void measure(struct pair *pair, bool slots, struct cost *cost)
{
	if (slots && !attach())
		_exit(1);
	cost->round_trip = typical(round_trips, pair, ROUND_TRIPS);
	cost->call = typical(calls, pair, CALLS);
}

static struct cost cost_of_pair(struct __test_metadata *_metadata, bool slots)
{
	struct cost cost = { 0 };
	struct pair pair;
	int result[2], status;
	pid_t pid;

	ASSERT_EQ(0, pipe(pair.to));
	ASSERT_EQ(0, pipe(pair.from));
	ASSERT_EQ(0, pipe(result));
	pair.child = fork();
	if (!pair.child)
		echo_bytes(&pair, slots);
	pid = fork();
	if (!pid) {
		measure(&pair, slots, &cost);
		_exit(write(result[1], &cost, sizeof(cost)) != sizeof(cost));
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);
	ASSERT_EQ((ssize_t)sizeof(cost), read(result[0], &cost, sizeof(cost)));
	kill(pair.child, SIGKILL);
	waitpid(pair.child, &status, 0);
	close(pair.to[0]);
	close(pair.to[1]);
	close(pair.from[0]);
	close(pair.from[1]);
	close(result[0]);
	close(result[1]);
	return cost;
}

static double middle_mean(double *values)
{
	double sum = 0;
	int i;

	qsort(values, PAIRS, sizeof(values[0]), compare);
	for (i = PAIRS * 3 / 8; i < PAIRS * 5 / 8; i++)
		sum += values[i];
	return sum / (PAIRS / 4);
}

static struct cost cost_of(struct __test_metadata *_metadata, bool slots)
{
	double round_trip[PAIRS], call[PAIRS];
	struct cost cost;
	int i;

	for (i = 0; i < PAIRS; i++) {
		cost = cost_of_pair(_metadata, slots);
		round_trip[i] = cost.round_trip;
		call[i] = cost.call;
	}
	return (struct cost){ middle_mean(round_trip), middle_mean(call) };
}

/* A process that has a slot and sleeps. */
static pid_t start_holder(void)
{
	pid_t holder = fork();

	if (!holder) {
		if (!attach())
			_exit(1);
		pause();
	}
	return holder;
}

static void print_cost(const char *name, const struct cost *cost, const struct cost *without)
{
	printf("# cost %s round_trip %.0f\n# cost %s round_trip_percent %+.2f\n# cost %s call %.1f\n",
	       name, cost->round_trip, name,
	       100 * (cost->round_trip / without->round_trip - 1), name, cost->call);
}

FIXTURE(cost)
{
	struct cost without;
};

FIXTURE_SETUP(cost)
{
	self->without = cost_of(_metadata, false);
	print_cost("without", &self->without, &self->without);
	ASSERT_EQ(0, tst_load(""));
}

FIXTURE_TEARDOWN(cost)
{
	EXPECT_TRUE(tst_unload_soon());
}

static void expect_equal(struct __test_metadata *_metadata, const struct cost *cost,
			 const struct cost *without)
{
	EXPECT_LE(cost->round_trip, without->round_trip * (1 + NOTHING));
	EXPECT_LE(cost->call, without->call * (1 + NOTHING));
}

TEST_F(cost, nothing_without_slots)
{
	struct cost loaded, after;
	pid_t holder;

	loaded = cost_of(_metadata, false);
	print_cost("loaded", &loaded, &self->without);
	expect_equal(_metadata, &loaded, &self->without);

	holder = start_holder();
	ASSERT_TRUE(tst_wait_until(tst_state("armed") == 1, 5000));
	kill(holder, SIGKILL);
	waitpid(holder, NULL, 0);
	ASSERT_TRUE(tst_wait_until(tst_state("armed") == 0, 5000));
	/* The kernel still frees what ftrace had patched in. */
	tst_sleep(2 * TST_SEC);
	after = cost_of(_metadata, false);
	print_cost("after", &after, &self->without);
	expect_equal(_metadata, &after, &self->without);
}

TEST_F(cost, little_while_slots_exist)
{
	struct cost beside, own;
	pid_t holder;
	double each;

	holder = start_holder();
	ASSERT_TRUE(tst_wait_until(tst_state("armed") == 1, 5000));
	beside = cost_of(_metadata, false);
	own = cost_of(_metadata, true);
	kill(holder, SIGKILL);
	waitpid(holder, NULL, 0);

	each = (own.round_trip - self->without.round_trip) / 2;
	print_cost("beside", &beside, &self->without);
	print_cost("own", &own, &self->without);
	printf("# cost own switch %.0f\n", each);

	EXPECT_LE(beside.round_trip, self->without.round_trip * (1 + BESIDE));
	EXPECT_LE(beside.call, self->without.call * (1 + NOTHING));
	EXPECT_LE(each, SWITCH);
	EXPECT_LE(own.call, self->without.call * (1 + NOTHING));
}

TEST_HARNESS_MAIN
