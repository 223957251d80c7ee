/* SPDX-License-Identifier: MIT */
/*
 * A thread with a slot beside hogs: the fixture of the tests of delays, what such a
 * thread sees, and how long a delay may be. For virtual time on one CPU: the
 * lengths asserted here mean nothing where the host can stop the guest.
 */
#ifndef TASKSHARED_DELAY_FIXTURE_H
#define TASKSHARED_DELAY_FIXTURE_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "kselftest_harness.h"
#include "helpers/taskshared_test.h"

#define CAP		(50 * TST_USEC)
/* From the cap to the moment the thread is off the CPU: the timer's interrupt. */
#define TOLERANCE	(2 * TST_USEC)
/*
 * The cap binds in user mode. What the kernel's own interrupts and softirqs take
 * when the cap is reached inside of one comes on top; about one delay in 500 meets
 * the tick that way.
 */
#define INTERRUPTED	(20 * TST_USEC)
/* Time slices are 3 to 4 ms: some 50 of them. */
#define RUN		(400 * TST_MSEC)
#define ENOUGH		20

FIXTURE(delay) {
	int fd;
	struct task_sharedinfo *slot;
	struct tst_hog hogs[2];
	unsigned int nr_hogs;
	struct taskshared_counters before;
};

static inline void start_hogs(struct __test_metadata *_metadata, FIXTURE_DATA(delay) *self,
			      unsigned int count)
{
	ASSERT_EQ(0, tst_hogs_start(self->hogs, count, 0));
	self->nr_hogs = count;
}

static inline uint64_t hog_progress(FIXTURE_DATA(delay) *self)
{
	return self->hogs[0].progress + self->hogs[1].progress;
}

/* A new slot, and with it counters that begin at zero. */
static inline void fresh_slot(struct __test_metadata *_metadata, FIXTURE_DATA(delay) *self)
{
	if (self->slot)
		ASSERT_EQ(0, ioctl(self->fd, TASKSHARED_IOC_RELEASE, 0));
	self->slot = tst_slot(self->fd);
	ASSERT_NE(NULL, self->slot);
	ASSERT_EQ(0, tst_totals(&self->before));
}

FIXTURE_SETUP(delay)
{
	ASSERT_EQ(0, tst_pin(0));
	self->fd = tst_open();
	ASSERT_LE(0, self->fd)
		TH_LOG("%s: %s", TASKSHARED_DEVICE, strerror(errno));
	EXPECT_EQ(0, tst_write_delay_us("50"));
	EXPECT_TRUE(tst_wait_until(tst_state("slots") == 0, 5000));
	fresh_slot(_metadata, self);
}

FIXTURE_TEARDOWN(delay)
{
	if (self->slot)
		self->slot->sched_delay = 0;
	tst_hogs_stop(self->hogs, self->nr_hogs);
	close(self->fd);
	tst_write_delay_us("50");
}

/*
 * No more requests, no running delay; then the counters, which must add up and be
 * what the totals have grown by.
 */
static inline struct taskshared_counters settle(struct __test_metadata *_metadata,
						FIXTURE_DATA(delay) *self, const char *name)
{
	struct taskshared_counters mine, totals;
	const char *message;

	self->slot->sched_delay = 0;
	ioctl(self->fd, TASKSHARED_IOC_YIELD, 0);
	EXPECT_EQ(0, tst_counters(self->fd, 0, &mine));
	EXPECT_EQ(0, tst_totals(&totals));
	tst_print_counters(name, &mine);
	EXPECT_TRUE(tst_adds_up(&mine, &message))
		TH_LOG("%s", message);
	EXPECT_TRUE(tst_adds_up(&totals, &message))
		TH_LOG("totals: %s", message);
	EXPECT_EQ(0, mine.active);
	EXPECT_EQ(0, mine.refused_cap);

	totals = tst_difference(&totals, &self->before);
	EXPECT_TRUE(tst_same(&mine, &totals, &message))
		TH_LOG("thread and totals: %s", message);
	return mine;
}

/**
 * struct seen - what a thread sees of its delays
 * @grants: how often the word began to read GRANTED
 * @longest: longest time for which it did, as user mode sees it
 * @late: delays that were longer than the cap allows, by the counters
 * @zeros: how often it read 0 then
 * @stale: ... and how often it still read GRANTED after another thread had run
 * @others: ... and how often it read something else
 */
struct seen {
	unsigned int grants;
	uint64_t longest;
	unsigned int late;
	unsigned int zeros;
	unsigned int stale;
	unsigned int others;
};

/*
 * Watches the word, without touching it, from the moment it reads GRANTED on until
 * it does not.
 */
static inline void watch_delay(FIXTURE_DATA(delay) *self, struct seen *seen)
{
	uint64_t first = tst_now(), last = first, now, progress = hog_progress(self), after;
	unsigned int word;

	seen->grants++;
	while (1) {
		now = tst_now();
		after = hog_progress(self);
		word = self->slot->sched_delay;
		if (word != TASK_PREEMPT_DELAY_GRANTED)
			break;
		/* At @now, and so at its reading, the delay was still running. */
		if (after != progress) {
			seen->stale++;
			break;
		}
		last = now;
	}
	if (word == 0)
		seen->zeros++;
	else if (word != TASK_PREEMPT_DELAY_GRANTED)
		seen->others++;
	if (last - first > seen->longest)
		seen->longest = last - first;
}

/* Always requests, never yields. */
static inline struct seen never_yield(FIXTURE_DATA(delay) *self, uint64_t duration, uint64_t cap)
{
	struct taskshared_counters before, after;
	uint64_t end = tst_now() + duration;
	struct seen seen = { 0 };

	tst_counters(self->fd, 0, &before);
	while (tst_now() < end) {
		if (tst_look(self->slot) != TASK_PREEMPT_DELAY_GRANTED)
			continue;
		watch_delay(self, &seen);
		/* What has ended since the last look: as a rule this one delay. */
		tst_counters(self->fd, 0, &after);
		if (after.delay_ns - before.delay_ns >
		    (after.expired + after.ended - before.expired - before.ended) *
		    (cap + TOLERANCE))
			seen.late++;
		before = after;
	}
	return seen;
}

static inline int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static inline void sort(uint64_t *values, size_t count)
{
	qsort(values, count, sizeof(values[0]), compare);
}

/* Of sorted values. */
static inline uint64_t percentile(const uint64_t *values, size_t count, unsigned int percent)
{
	return values[(count - 1) * percent / 100];
}

/**
 * struct timed_hog - a hog that tells when it had the CPU last
 * @begin: of its last time slice
 * @end: of it, or now
 */
struct timed_hog {
	pthread_t thread;
	volatile uint64_t begin;
	volatile uint64_t end;
	volatile bool stop;
};

/* Longer than an interrupt, shorter than the time between two slices. */
#define SLICE_GAP	(50 * TST_USEC)

static inline void *timed_hog_run(void *arg)
{
	struct timed_hog *hog = arg;
	uint64_t now;

	while (!hog->stop) {
		now = tst_now();
		if (now - hog->end > SLICE_GAP)
			hog->begin = now;
		hog->end = now;
	}
	return NULL;
}

/* On the caller's CPU. Gives 0 or the errno. */
static inline int timed_hog_start(struct timed_hog *hog)
{
	return pthread_create(&hog->thread, NULL, timed_hog_run, hog);
}

static inline void timed_hog_stop(struct timed_hog *hog)
{
	hog->stop = true;
	pthread_join(hog->thread, NULL);
}

/* How much of the time from @from to @to was in its last slice. */
static inline uint64_t hogged(const struct timed_hog *hog, uint64_t from, uint64_t to)
{
	uint64_t begin = hog->begin > from ? hog->begin : from;
	uint64_t end = hog->end < to ? hog->end : to;

	return end > begin ? end - begin : 0;
}

#endif /* TASKSHARED_DELAY_FIXTURE_H */
