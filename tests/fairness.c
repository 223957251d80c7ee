// SPDX-License-Identifier: MIT
/*
 * A thread that asks for delays gets no more of the CPU than one that does not,
 * and one that gives the CPU back early no less. For virtual time on one CPU.
 */

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "kselftest_harness.h"
#include "helpers/taskshared_test.h"

#define HOGS	2
#define RUN	(2 * TST_SEC)

enum manner { QUIET, NEVER_YIELDS, YIELDS_BY_CALL, YIELDS_BY_SCHED_YIELD };

static const char * const manners[] = {
	[QUIET] = "no requests",
	[NEVER_YIELDS] = "never yields",
	[YIELDS_BY_CALL] = "yields by the call",
	[YIELDS_BY_SCHED_YIELD] = "yields by sched_yield",
};

FIXTURE(fairness) {
	int fd;
	struct task_sharedinfo *slot;
	struct tst_hog hogs[HOGS];
};

FIXTURE_SETUP(fairness)
{
	ASSERT_EQ(0, tst_pin(0));
	self->fd = tst_open();
	ASSERT_LE(0, self->fd)
		TH_LOG("%s: %s", TASKSHARED_DEVICE, strerror(errno));
	self->slot = tst_slot(self->fd);
	ASSERT_NE(NULL, self->slot);
	ASSERT_EQ(0, tst_hogs_start(self->hogs, HOGS, 0));
}

FIXTURE_TEARDOWN(fairness)
{
	self->slot->sched_delay = 0;
	tst_hogs_stop(self->hogs, HOGS);
	close(self->fd);
}

/* The thread's share of the CPU, in thousandths of a per cent. */
static unsigned int share(FIXTURE_DATA(fairness) *self, enum manner manner)
{
	uint64_t begun = tst_now(), used = tst_cpu_time();
	struct taskshared_counters before, after;
	unsigned int result, word;

	tst_counters(self->fd, 0, &before);
	while (tst_now() < begun + RUN) {
		if (manner == QUIET)
			continue;
		word = self->slot->sched_delay;
		if (word == TASK_PREEMPT_DELAY_GRANTED) {
			if (manner == YIELDS_BY_CALL)
				ioctl(self->fd, TASKSHARED_IOC_YIELD, 0);
			else if (manner == YIELDS_BY_SCHED_YIELD)
				sched_yield();
		} else if (word != TASK_PREEMPT_DELAY_REQ) {
			tst_request(self->slot);
		}
	}
	self->slot->sched_delay = 0;
	used = tst_cpu_time() - used;
	result = (unsigned int)(used * 100000 / (tst_now() - begun));
	tst_counters(self->fd, 0, &after);
	after = tst_difference(&after, &before);
	printf("# %s: %u.%03u %% of the CPU\n", manners[manner], result / 1000, result % 1000);
	tst_print_counters(manners[manner], &after);
	return result;
}

TEST_F(fairness, two_hogs)
{
	unsigned int quiet, other;
	int manner;

	quiet = share(self, QUIET);
	/* A third of the CPU, or the comparison means nothing. */
	EXPECT_LE(31000, quiet);
	EXPECT_LE(quiet, 36000);
	for (manner = NEVER_YIELDS; manner <= YIELDS_BY_SCHED_YIELD; manner++) {
		struct taskshared_counters counters;
		__u64 granted;

		ASSERT_EQ(0, tst_counters(self->fd, 0, &counters));
		granted = counters.granted;
		other = share(self, manner);
		ASSERT_EQ(0, tst_counters(self->fd, 0, &counters));
		EXPECT_LE(50, counters.granted - granted)
			TH_LOG("%s: too few delays to tell anything", manners[manner]);
		EXPECT_LE(other * 100, quiet * 105)
			TH_LOG("%s: more than 5 %% above its share", manners[manner]);
		EXPECT_GE(other * 100, quiet * 95)
			TH_LOG("%s: more than 5 %% below its share", manners[manner]);
	}
}

TEST_HARNESS_MAIN
