// SPDX-License-Identifier: MIT
/*
 * Signals to a thread that always requests: they are not later for it. For virtual
 * time on one CPU.
 */

#include <signal.h>
#include <string.h>
#include <time.h>

#include "helpers/delay_fixture.h"

/* 10 kHz, but no divisor of the tick's period: else all delays might miss the signals. */
#define PERIOD		(97 * TST_USEC)
#define SIGNALS_MAX	5000
/* It ends a delay, and so is followed by a switch to the hog. */
#define SWITCH		(10 * TST_USEC)
/* The worst one meets a tick or a softirq, with or without delays. */
#define WORST_TOLERANCE	(20 * TST_USEC)

/**
 * struct late - how late handlers ran, in ns, without the hog's time
 * @count: of them
 */
struct late {
	unsigned int count;
	uint64_t ns[SIGNALS_MAX];
};

/**
 * struct latency - how late the handler ran
 * @due: when the next signal is
 * @alone: by how much, if the hog did not run meanwhile
 * @beside: ... and if it did: two more switches
 */
struct latency {
	uint64_t due;
	struct late alone, beside;
};

static struct latency *latency;
static struct timed_hog hog;

static void on_signal(int signal, siginfo_t *info, void *context)
{
	uint64_t now = tst_now(), taken = hogged(&hog, latency->due, now);
	struct late *late = taken ? &latency->beside : &latency->alone;

	(void)signal, (void)context;
	if (late->count < SIGNALS_MAX)
		late->ns[late->count++] = now - latency->due - taken;
	/* Those that fell due before this one was delivered are no signals of their own. */
	latency->due += (1 + info->si_overrun) * PERIOD;
}

static timer_t start_signals(struct __test_metadata *_metadata, uint64_t first)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1 };
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	struct itimerspec interval = {
		.it_interval.tv_nsec = PERIOD,
		.it_value = tst_timespec(first),
	};
	timer_t timer = NULL;

	event._sigev_un._tid = gettid();
	EXPECT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	EXPECT_EQ(0, timer_create(CLOCK_MONOTONIC, &event, &timer));
	EXPECT_EQ(0, timer_settime(timer, TIMER_ABSTIME, &interval, NULL));
	return timer;
}

static uint64_t late_percentile(const struct late *late, unsigned int percent)
{
	return percentile(late->ns, late->count, percent);
}

static void finish(const char *name, struct late *late)
{
	sort(late->ns, late->count);
	printf("# %s: %u signals late by: half of the time %llu ns at most, 99 %% %llu ns, always %llu ns\n",
	       name, late->count, (unsigned long long)late_percentile(late, 50),
	       (unsigned long long)late_percentile(late, 99),
	       (unsigned long long)late_percentile(late, 100));
}

static void measure(struct __test_metadata *_metadata, FIXTURE_DATA(delay) *self,
		    const char *name, struct latency *into)
{
	uint64_t end;
	timer_t timer;

	latency = into;
	latency->due = tst_now() + TST_MSEC;
	timer = start_signals(_metadata, latency->due);
	end = tst_now() + RUN;
	while (tst_now() < end)
		tst_look(self->slot);
	timer_delete(timer);
	ASSERT_LE(1000, latency->alone.count);
	ASSERT_LE(ENOUGH, latency->beside.count);
	finish(name, &latency->alone);
	finish(name, &latency->beside);
}

TEST_F(delay, signals_are_not_later)
{
	static struct latency off, on;
	struct taskshared_counters counters;

	ASSERT_EQ(0, timed_hog_start(&hog));
	ASSERT_EQ(0, tst_write_delay_us("0"));
	measure(_metadata, self, "delay_us=0", &off);
	ASSERT_EQ(0, tst_write_delay_us("50"));
	fresh_slot(_metadata, self);
	measure(_metadata, self, "delay_us=50", &on);
	counters = settle(_metadata, self, "signals");
	timed_hog_stop(&hog);

	EXPECT_LE(late_percentile(&on.alone, 50), late_percentile(&off.alone, 50) + TOLERANCE);
	EXPECT_LE(late_percentile(&on.alone, 99), late_percentile(&off.alone, 99) + TOLERANCE);
	/* A signal that waited for the end of its delay: half of a cap, as a rule. */
	EXPECT_LE(late_percentile(&on.beside, 50), late_percentile(&off.beside, 50) + SWITCH);
	EXPECT_LE(late_percentile(&on.beside, 100),
		  late_percentile(&off.beside, 100) + WORST_TOLERANCE);
	/* On PREEMPT_RT they come from a real-time thread, beside which there are no delays. */
	if (tst_preempt_rt())
		return;
	EXPECT_LE(ENOUGH, counters.granted);
	/* A timer that is due that often meets one delay in two. */
	EXPECT_LE(counters.granted, counters.ended * 4);
}

TEST_HARNESS_MAIN
