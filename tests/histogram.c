// SPDX-License-Identifier: MIT
/* debugfs: histogram, against the counters of a thread that never yields. */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "kselftest_harness.h"
#include "helpers/taskshared_test.h"

#define DEBUGFS		"/sys/kernel/debug/taskshared/"
#define HISTOGRAM	DEBUGFS "histogram"
#define RESET		DEBUGFS "histogram_reset"
#define RUN		(200 * TST_MSEC)
#define ENOUGH		10
/* The cap less the time by which its timer is set early. */
#define LONG_US		45
#define SHORT_US	5

struct lengths {
	unsigned long delays;
	unsigned long longs;
	unsigned long shorts;
};

/* The lines of one process, or of "all". */
static bool read_lengths(const char *whose, struct lengths *lengths)
{
	char text[8192], *line, *rest = text, name[16], below[16];
	unsigned long from, delays;

	*lengths = (struct lengths){ 0 };
	if (tst_read_file(HISTOGRAM, text, sizeof(text)) < 0)
		return false;
	if (strcmp(strsep(&rest, "\n"), "process from_us below_us delays"))
		return false;
	while ((line = strsep(&rest, "\n")) && *line) {
		if (sscanf(line, "%15s %lu %15s %lu", name, &from, below, &delays) != 4)
			return false;
		if (strcmp(name, whose))
			continue;
		printf("# %s\n", line);
		lengths->delays += delays;
		if (from >= LONG_US)
			lengths->longs += delays;
		if (from < SHORT_US)
			lengths->shorts += delays;
	}
	return true;
}

FIXTURE(histogram)
{
	int fd;
	struct task_sharedinfo *slot;
	struct tst_hog hog;
	char pid[16];
};

FIXTURE_SETUP(histogram)
{
	ASSERT_EQ(0, tst_pin(0));
	self->fd = tst_open();
	self->slot = tst_slot(self->fd);
	ASSERT_NE(NULL, self->slot);
	ASSERT_EQ(0, tst_hogs_start(&self->hog, 1, 0));
	snprintf(self->pid, sizeof(self->pid), "%d", getpid());
	ASSERT_EQ(0, tst_write_file(RESET, "0", 0));
}

FIXTURE_TEARDOWN(histogram)
{
	tst_hogs_stop(&self->hog, 1);
}

/* Asks all the time; gives the CPU back at once, or never. */
static void request(FIXTURE_DATA(histogram) *self, bool yield)
{
	uint64_t end = tst_now() + RUN;

	while (tst_now() < end)
		if (tst_look(self->slot) == TASK_PREEMPT_DELAY_GRANTED && yield)
			ioctl(self->fd, TASKSHARED_IOC_YIELD);
	self->slot->sched_delay = 0;
	ioctl(self->fd, TASKSHARED_IOC_YIELD);
}

/* What both tell must agree. */
static void check(struct __test_metadata *_metadata, FIXTURE_DATA(histogram) *self,
		  struct taskshared_counters *counters, struct lengths *lengths)
{
	struct lengths all;

	ASSERT_EQ(0, tst_counters(self->fd, 0, counters));
	tst_print_counters("counters", counters);
	ASSERT_TRUE(read_lengths("all", &all));
	ASSERT_TRUE(read_lengths(self->pid, lengths));
	EXPECT_LE(ENOUGH, counters->granted);
	EXPECT_EQ(counters->granted, lengths->delays);
	EXPECT_EQ(lengths->delays, all.delays);
}

TEST_F(histogram, tells_how_long_delays_were)
{
	struct taskshared_counters counters;
	struct lengths lengths;

	request(self, false);
	check(_metadata, self, &counters, &lengths);
	/* A few may have been ended by something else that wanted the CPU. */
	EXPECT_LE(ENOUGH, counters.expired);
	EXPECT_LE(counters.expired, lengths.longs);
	EXPECT_LE(lengths.longs, counters.granted);
}

TEST_F(histogram, tells_short_ones)
{
	struct taskshared_counters counters;
	struct lengths lengths;

	request(self, true);
	check(_metadata, self, &counters, &lengths);
	EXPECT_LE(ENOUGH, counters.yielded);
	/* An interrupt may come between. */
	EXPECT_LE(counters.yielded * 3, lengths.shorts * 4);
}

TEST_F(histogram, is_reset_by_0_alone)
{
	struct taskshared_counters counters;
	struct lengths before, after;

	request(self, false);
	check(_metadata, self, &counters, &before);
	EXPECT_EQ(EINVAL, tst_write_file(RESET, "1", 0));
	EXPECT_EQ(EINVAL, tst_write_file(RESET, "reset", 0));
	EXPECT_EQ(EINVAL, tst_write_file(RESET, "", 0));
	check(_metadata, self, &counters, &after);
	EXPECT_EQ(before.delays, after.delays);

	EXPECT_EQ(0, tst_write_file(RESET, "0\n", 0));
	ASSERT_TRUE(read_lengths("all", &after));
	EXPECT_EQ(0, after.delays);
	ASSERT_TRUE(read_lengths(self->pid, &after));
	EXPECT_EQ(0, after.delays);
}

/* Under lockdown a file in debugfs that anybody may write is not readable. */
TEST_F(histogram, is_for_reading_alone)
{
	struct stat file;

	ASSERT_EQ(0, stat(HISTOGRAM, &file));
	EXPECT_EQ(0400, file.st_mode & 07777);
	ASSERT_EQ(0, stat(RESET, &file));
	EXPECT_EQ(0200, file.st_mode & 07777);
}

TEST_HARNESS_MAIN
