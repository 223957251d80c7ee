// SPDX-License-Identifier: MIT
/* The trace events, against the counters of the thread they tell about. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "kselftest_harness.h"
#include "helpers/taskshared_test.h"

#define TRACEFS "/sys/kernel/tracing/"
#define RUN	(100 * TST_MSEC)

/* What the trace holds of one event, for one thread. */
struct told {
	unsigned long count;
	unsigned long long delay_ns;
	unsigned long long overrun_ns;
};

/* @extra: what the event must say in addition, or "". */
static struct told told(pid_t tid, const char *event, const char *extra)
{
	FILE *trace = fopen(TRACEFS "trace", "re");
	unsigned long long length, overrun;
	char line[512], name[64], *at;
	struct told told = { 0 };

	if (!trace)
		abort();
	snprintf(name, sizeof(name), "taskshared_%s: tid=%d", event, tid);
	while (fgets(line, sizeof(line), trace)) {
		at = strstr(line, name);
		if (!at || !strstr(at, extra))
			continue;
		told.count++;
		at = strstr(at, "delay_ns=");
		if (at && sscanf(at, "delay_ns=%llu overrun_ns=%llu", &length, &overrun) == 2) {
			told.delay_ns += length;
			told.overrun_ns += overrun;
		}
	}
	fclose(trace);
	return told;
}

FIXTURE(trace)
{
	int fd;
	struct task_sharedinfo *slot;
	struct tst_hog hog;
};

FIXTURE_SETUP(trace)
{
	ASSERT_EQ(0, tst_pin(0));
	self->fd = tst_open();
	self->slot = tst_slot(self->fd);
	ASSERT_NE(NULL, self->slot);
	ASSERT_EQ(0, tst_hogs_start(&self->hog, 1, 0));
	ASSERT_EQ(0, tst_write_file(TRACEFS "buffer_size_kb", "512", 0));
	ASSERT_EQ(0, tst_write_file(TRACEFS "trace", "", O_TRUNC));
	ASSERT_EQ(0, tst_write_file(TRACEFS "events/taskshared/enable", "1", 0));
}

FIXTURE_TEARDOWN(trace)
{
	EXPECT_EQ(0, tst_write_file(TRACEFS "events/taskshared/enable", "0", 0));
	tst_hogs_stop(&self->hog, 1);
}

enum answer { KEEP, YIELD, ASK_AGAIN };

static void request(FIXTURE_DATA(trace) *self, enum answer answer)
{
	uint64_t end = tst_now() + RUN;

	while (tst_now() < end) {
		if (self->slot->sched_delay != TASK_PREEMPT_DELAY_GRANTED || answer == ASK_AGAIN)
			tst_request(self->slot);
		else if (answer == YIELD)
			ioctl(self->fd, TASKSHARED_IOC_YIELD);
	}
	self->slot->sched_delay = 0;
	ioctl(self->fd, TASKSHARED_IOC_YIELD);
}

TEST_F(trace, tells_what_the_counters_do)
{
	struct taskshared_counters counters;
	struct told yielded, expired, ended;

	request(self, KEEP);
	request(self, YIELD);
	request(self, ASK_AGAIN);
	ASSERT_EQ(0, tst_write_delay_us("0"));
	request(self, KEEP);
	ASSERT_EQ(0, tst_write_delay_us("50"));

	ASSERT_EQ(0, tst_counters(self->fd, 0, &counters));
	tst_print_counters("counters", &counters);
	/* So that none of the lines below says 0 = 0. */
	EXPECT_LT(0, counters.granted);
	EXPECT_LT(0, counters.denied);
	EXPECT_LT(0, counters.refused_off);
	EXPECT_LT(0, counters.yielded);
	EXPECT_LT(0, counters.expired);

	EXPECT_EQ(counters.granted, told(gettid(), "grant", "cap_ns=50000").count);
	EXPECT_EQ(counters.denied, told(gettid(), "deny", "").count);
	EXPECT_EQ(counters.refused_off, told(gettid(), "refuse", "cause=off").count);
	EXPECT_EQ(counters.refused_work, told(gettid(), "refuse", "cause=work").count);
	EXPECT_EQ(counters.refused_rt, told(gettid(), "refuse", "cause=rt").count);
	EXPECT_EQ(counters.requested - counters.granted - counters.denied,
		  told(gettid(), "refuse", "").count);

	yielded = told(gettid(), "yield", "");
	expired = told(gettid(), "expire", "");
	ended = told(gettid(), "end", "");
	EXPECT_EQ(counters.yielded, yielded.count);
	EXPECT_EQ(counters.expired, expired.count);
	EXPECT_EQ(counters.ended, ended.count);
	EXPECT_EQ(counters.delay_ns, yielded.delay_ns + expired.delay_ns + ended.delay_ns);
	EXPECT_EQ(counters.overrun_ns,
		  yielded.overrun_ns + expired.overrun_ns + ended.overrun_ns);
}

TEST_HARNESS_MAIN
