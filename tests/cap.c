// SPDX-License-Identifier: MIT
/*
 * The cap: what delay_us says is how long a delay lasts. For virtual time on one
 * CPU.
 */

#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>

#include "helpers/delay_fixture.h"

static void check_never_yield(struct __test_metadata *_metadata, FIXTURE_DATA(delay) *self,
			      const char *name, uint64_t cap)
{
	struct taskshared_counters counters;
	struct seen seen;

	seen = never_yield(self, RUN, cap);
	counters = settle(_metadata, self, name);
	printf("# %s: longest seen from user space %llu ns, by the counters %llu ns, %u of %u late\n",
	       name, (unsigned long long)seen.longest, (unsigned long long)counters.delay_max_ns,
	       seen.late, seen.grants);

	EXPECT_LE(ENOUGH, counters.granted);
	EXPECT_LE(ENOUGH, seen.grants);
	/* In user mode never past the cap; with all interrupts, all but a few. */
	EXPECT_LE(seen.longest, cap + TOLERANCE);
	EXPECT_LE(seen.late * 50, seen.grants);
	/* Nearly all of it, but for what the timer and the way out of the kernel need. */
	EXPECT_GE(seen.longest, cap - 2 * TOLERANCE);
	EXPECT_LE(counters.delay_max_ns, cap + (seen.late ? INTERRUPTED : TOLERANCE));
	/* It gets what it was promised, too, but for what the timer needs. */
	EXPECT_GE(counters.delay_ns, counters.expired * (cap - TOLERANCE));
	EXPECT_EQ(0, counters.yielded);
	EXPECT_EQ(0, counters.denied);
	/* Every one expires, but for what else may want the CPU just then. */
	EXPECT_LE(counters.ended * 10, counters.granted);
	EXPECT_LE(counters.overrun_ns, counters.expired * TOLERANCE);
	/* Once it is over the word tells so. */
	EXPECT_EQ(seen.grants, seen.zeros);
	EXPECT_EQ(0, seen.stale);
	EXPECT_EQ(0, seen.others);
}

TEST_F(delay, expires_at_the_cap_beside_one_hog)
{
	start_hogs(_metadata, self, 1);
	check_never_yield(_metadata, self, "one hog", CAP);
}

TEST_F(delay, expires_at_the_cap_beside_two_hogs)
{
	start_hogs(_metadata, self, 2);
	check_never_yield(_metadata, self, "two hogs", CAP);
}

TEST_F(delay, delay_us_sets_the_cap)
{
	static const struct {
		const char *text;
		uint64_t cap;
	} caps[] = {
		{ "20", 20 * TST_USEC }, { "5", 5 * TST_USEC }, { "10", 10 * TST_USEC },
		{ "50", 50 * TST_USEC },
	};
	struct taskshared_info info;
	unsigned int i;

	start_hogs(_metadata, self, 1);
	for (i = 0; i < ARRAY_SIZE(caps); i++) {
		ASSERT_EQ(0, tst_write_delay_us(caps[i].text));
		memset(&info, 0, sizeof(info));
		ASSERT_EQ(0, ioctl(self->fd, TASKSHARED_IOC_INFO, &info));
		EXPECT_EQ(caps[i].cap, info.cap_ns);
		fresh_slot(_metadata, self);
		check_never_yield(_metadata, self, caps[i].text, caps[i].cap);
	}
}

TEST_F(delay, delay_us_0_stops_all)
{
	struct taskshared_counters counters;
	struct seen seen;

	start_hogs(_metadata, self, 1);
	ASSERT_EQ(0, tst_write_delay_us("0"));
	seen = never_yield(self, RUN, CAP);
	/* The request stays for later. */
	EXPECT_EQ(TASK_PREEMPT_DELAY_REQ, self->slot->sched_delay);
	counters = settle(_metadata, self, "off");
	EXPECT_EQ(0, seen.grants);
	EXPECT_EQ(0, counters.granted);
	EXPECT_LE(ENOUGH, counters.refused_off);
	EXPECT_EQ(counters.requested, counters.refused_off);

	ASSERT_EQ(0, tst_write_delay_us("50"));
	seen = never_yield(self, RUN, CAP);
	counters = settle(_metadata, self, "on again");
	EXPECT_LE(ENOUGH, counters.granted);
}

/* Writes while a delay runs: that one keeps its cap, and the next one has the new one. */

/* Something else wanted the CPU: nothing to learn from that delay. */
#define UNCLEAR	UINT64_MAX

/* The length of the next delay, in which @text, if any, is written; 0: none came. */
static uint64_t next_delay(FIXTURE_DATA(delay) *self, const char *text)
{
	uint64_t end = tst_now() + 50 * TST_MSEC;
	struct taskshared_counters before, after;
	struct seen seen = { 0 };

	tst_counters(self->fd, 0, &before);
	while (tst_look(self->slot) != TASK_PREEMPT_DELAY_GRANTED)
		if (tst_now() > end)
			return 0;
	if (text && tst_write_delay_us(text))
		abort();
	watch_delay(self, &seen);
	tst_counters(self->fd, 0, &after);
	if (after.granted != before.granted + 1 || after.expired != before.expired + 1)
		return UNCLEAR;
	return after.delay_ns - before.delay_ns;
}

TEST_F(delay, delay_us_written_inside_a_delay)
{
	static const struct {
		const char *text;
		uint64_t old, new;
	} writes[] = {
		{ "5", 50 * TST_USEC, 5 * TST_USEC },
		{ "50", 5 * TST_USEC, 50 * TST_USEC },
	};
	unsigned int i, clear = 0, late = 0;
	uint64_t during, next;

	start_hogs(_metadata, self, 1);
	for (i = 0; i < 20; i++) {
		during = next_delay(self, writes[i % 2].text);
		next = next_delay(self, NULL);
		if (during == UNCLEAR || next == UNCLEAR)
			continue;
		clear++;
		EXPECT_LE(writes[i % 2].old - TOLERANCE, during);
		EXPECT_LE(during, writes[i % 2].old + INTERRUPTED);
		EXPECT_LE(writes[i % 2].new - TOLERANCE, next);
		EXPECT_LE(next, writes[i % 2].new + INTERRUPTED);
		late += next > writes[i % 2].new + TOLERANCE;
	}
	settle(_metadata, self, "written inside");
	EXPECT_LE(ENOUGH / 2, clear);
	EXPECT_LE(late * 5, clear);
}

TEST_F(delay, delay_us_0_written_inside_a_delay)
{
	struct taskshared_counters counters;
	uint64_t during;

	start_hogs(_metadata, self, 1);
	do {
		ASSERT_EQ(0, tst_write_delay_us("50"));
		fresh_slot(_metadata, self);
		during = next_delay(self, "0");
	} while (during == UNCLEAR);
	EXPECT_LE(CAP - TOLERANCE, during);
	EXPECT_LE(during, CAP + INTERRUPTED);
	EXPECT_EQ(0, next_delay(self, NULL));
	counters = settle(_metadata, self, "0 inside");
	EXPECT_EQ(1, counters.granted);
	EXPECT_LE(1, counters.refused_off);
}

TEST_HARNESS_MAIN
