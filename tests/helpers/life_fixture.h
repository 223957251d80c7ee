/* SPDX-License-Identifier: MIT */
/*
 * What the tests of life and death have in common: a hog on CPU 0, a thread that enters
 * a delay there, and a look at what is left at the end.
 */
#ifndef TASKSHARED_LIFE_FIXTURE_H
#define TASKSHARED_LIFE_FIXTURE_H

#include <sched.h>

#include "kselftest_harness.h"
#include "helpers/taskshared_test.h"

#define GONE_MS		5000
#define DELAY_MS	10000
#define ROUNDS		20

static inline unsigned int word_of(const struct task_sharedinfo *slot)
{
	return slot->sched_delay;
}

static inline pid_t tid_of(const struct task_sharedinfo *slot)
{
	return (pid_t)*(const volatile __u32 *)&slot->tid;
}

static inline struct task_sharedinfo *at(void *window, long long offset)
{
	return (struct task_sharedinfo *)((char *)window + offset);
}

/* Requests until it sees a delay begin; not the one in which it may be. */
static inline bool enter_delay(struct task_sharedinfo *slot)
{
	uint64_t end = tst_now() + DELAY_MS * TST_MSEC;

	slot->sched_delay = 0;
	sched_yield();
	while (tst_look(slot) != TASK_PREEMPT_DELAY_GRANTED)
		if (tst_late(end))
			return false;
	return true;
}

/* Another thread's: what it reads is what the kernel has just written. */
static inline bool sees_delay(const struct task_sharedinfo *slot)
{
	uint64_t end = tst_now() + DELAY_MS * TST_MSEC;

	while (word_of(slot) != TASK_PREEMPT_DELAY_GRANTED)
		if (tst_late(end))
			return false;
	return true;
}

static inline bool no_delay_runs(void)
{
	struct taskshared_counters totals;

	return !tst_totals(&totals) && !totals.active;
}

static inline void expect_sums(struct __test_metadata *_metadata)
{
	struct taskshared_counters totals;
	const char *message;

	ASSERT_EQ(0, tst_totals(&totals));
	tst_print_counters("totals", &totals);
	EXPECT_TRUE(tst_adds_up(&totals, &message))
		TH_LOG("%s", message);
	EXPECT_EQ(0, totals.active);
}

static inline void expect_nothing_held(struct __test_metadata *_metadata)
{
	EXPECT_TRUE(tst_nothing_held_soon())
		TH_LOG("pools %lld, files %lld, pages %lld, slots %lld", tst_state("pools"),
		       tst_state("files"), tst_state("pages"), tst_state("slots"));
}

/* With a hog on CPU 0, without which there are no delays. */
static inline void begin(struct __test_metadata *_metadata, struct tst_hog *hog)
{
	expect_nothing_held(_metadata);
	ASSERT_EQ(0, tst_hogs_start(hog, 1, 0));
}

static inline void end(struct __test_metadata *_metadata, struct tst_hog *hog)
{
	tst_hogs_stop(hog, 1);
	expect_nothing_held(_metadata);
	expect_sums(_metadata);
}

/* The device, and a slot of the calling thread, on the CPU with the hog. */
static inline struct task_sharedinfo *begin_life(int *fd)
{
	*fd = tst_pin(0) ? -1 : tst_open();
	return *fd < 0 ? NULL : tst_slot(*fd);
}

#endif /* TASKSHARED_LIFE_FIXTURE_H */
