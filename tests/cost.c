// SPDX-License-Identifier: MIT
/*
 * What the module costs programs that do not use it, and those that do, in a pipe
 * round trip (two context switches or more) and a system call. For virtual time,
 * where a nanosecond is an instruction.
 */

#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "helpers/taskshared_test.h"

#define ROUND_TRIPS	5000
#define CALLS		20000

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

static bool round_trip(struct pair *pair)
{
	char byte = 0;

	return write(pair->to[1], &byte, 1) == 1 && read(pair->from[0], &byte, 1) == 1;
}

/* In a process of its own, so that slots it takes go with it. */
static void measure(struct pair *pair, bool slots, struct cost *cost)
{
	uint64_t begun;
	int i;

	if (slots && !attach())
		_exit(1);
	for (i = 0; i < 100; i++)
		if (!round_trip(pair))
			_exit(1);

	begun = tst_now();
	for (i = 0; i < ROUND_TRIPS; i++)
		round_trip(pair);
	cost->round_trip = (double)(tst_now() - begun) / ROUND_TRIPS;

	begun = tst_now();
	for (i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
	cost->call = (double)(tst_now() - begun) / CALLS;
}

static struct cost cost_of(struct __test_metadata *_metadata, bool slots)
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
	return cost;
}

TEST(cost)
{
	struct cost none, beside, own, after;
	pid_t holder;

	ASSERT_TRUE(tst_wait_until(tst_state("armed") == 0, 5000));
	none = cost_of(_metadata, false);

	holder = fork();
	if (!holder) {
		if (!attach())
			_exit(1);
		pause();
	}
	ASSERT_TRUE(tst_wait_until(tst_state("armed") == 1, 5000));
	beside = cost_of(_metadata, false);
	own = cost_of(_metadata, true);
	kill(holder, SIGKILL);
	waitpid(holder, NULL, 0);

	ASSERT_TRUE(tst_wait_until(tst_state("armed") == 0, 5000));
	/* The kernel still frees what ftrace had patched in. */
	tst_sleep(2 * TST_SEC);
	after = cost_of(_metadata, false);

	printf("# pipe round trip, instructions: no slot anywhere %.0f, slots elsewhere %.0f (%+.2f %%), both with slots %.0f (%+.2f %%)\n",
	       none.round_trip, beside.round_trip,
	       100 * (beside.round_trip / none.round_trip - 1), own.round_trip,
	       100 * (own.round_trip / none.round_trip - 1));
	printf("# system call, instructions: no slot anywhere %.1f, slots elsewhere %.1f, own slot %.1f\n",
	       none.call, beside.call, own.call);
	printf("# after the last slot: pipe round trip %.0f, system call %.1f\n",
	       after.round_trip, after.call);

	/* On 6.1 a pre-empting wake-up runs into the breakpoint on the call. */
	EXPECT_LE(beside.round_trip, none.round_trip * 1.06);
	/* Two switches of threads that have slots. */
	EXPECT_LE(own.round_trip, beside.round_trip + 2 * 150);
	EXPECT_LE(beside.call, none.call + 1);
	EXPECT_LE(own.call, none.call + 1);
	EXPECT_LE(after.round_trip, none.round_trip * 1.005);
}

TEST_HARNESS_MAIN
