// SPDX-License-Identifier: MIT
/*
 * Signals to a thread that always requests: they are not later for it, and no delay
 * begins before one. For virtual time on one CPU.
 */

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
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

/* SIGUSR1 to the calling thread, at @first and every @period from then on. */
static timer_t start_signals(struct __test_metadata *_metadata, uint64_t first, uint64_t period,
			     void (*handler)(int signal, siginfo_t *info, void *context))
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1 };
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
	struct itimerspec interval = {
		.it_interval = tst_timespec(period),
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
	timer = start_signals(_metadata, latency->due, PERIOD, on_signal);
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

/* Another thread wants the CPU at the moment of a signal, or in the next few microseconds. */

#define MEETING		TST_MSEC
#define MEETINGS	(RUN / MEETING)

/**
 * struct meeting - signals, and a thread that goes before all others of the fair class
 * @first: when the first signal comes; one every MEETING from then on
 * @spread: the thread wakes after the signal by less than that, in ns
 * @slot: of the thread that gets the signals
 * @handled: signals
 * @granted: ... whose handler began in a delay
 */
struct meeting {
	pthread_t thread;
	volatile uint64_t first;
	uint64_t spread;
	struct task_sharedinfo *slot;
	volatile unsigned int handled;
	volatile unsigned int granted;
};

static struct meeting meeting;

static void *wake_after_the_signal(void *arg)
{
	struct timespec at;
	unsigned int i;

	(void)arg;
	setpriority(PRIO_PROCESS, (id_t)gettid(), -20);
	prctl(PR_SET_TIMERSLACK, 1);
	while (!meeting.first)
		tst_sleep(TST_MSEC);
	for (i = 0; i < MEETINGS; i++) {
		at = tst_timespec(meeting.first + i * MEETING + i % 32 * meeting.spread / 32);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
	}
	return NULL;
}

static void on_meeting(int signal, siginfo_t *info, void *context)
{
	meeting.granted += meeting.slot->sched_delay == TASK_PREEMPT_DELAY_GRANTED;
	(void)signal, (void)info, (void)context;
	meeting.handled++;
}

static struct taskshared_counters meet(struct __test_metadata *_metadata,
				       FIXTURE_DATA(delay) *self, const char *name,
				       uint64_t spread)
{
	struct taskshared_counters counters;
	timer_t timer;

	meeting = (struct meeting){ .spread = spread, .slot = self->slot };
	EXPECT_EQ(0, pthread_create(&meeting.thread, NULL, wake_after_the_signal, NULL));
	meeting.first = tst_now() + 10 * TST_MSEC;
	timer = start_signals(_metadata, meeting.first, MEETING, on_meeting);
	while (tst_now() < meeting.first + RUN)
		tst_look(self->slot);
	timer_delete(timer);
	pthread_join(meeting.thread, NULL);
	counters = settle(_metadata, self, name);
	printf("# %s: %u signals handled, %u of the handlers began in a delay\n", name,
	       meeting.handled, meeting.granted);
	EXPECT_LE(MEETINGS * 9 / 10, meeting.handled);
	return counters;
}

TEST_F(delay, none_begins_while_a_signal_is_pending)
{
	struct taskshared_counters counters;

	counters = meet(_metadata, self, "at once", 0);
	/* On PREEMPT_RT they come from a real-time thread, beside which there are no delays. */
	if (!tst_preempt_rt())
		EXPECT_LE(MEETINGS / 2, counters.refused_work);
}

TEST_F(delay, none_begins_on_the_way_to_a_handler)
{
	meet(_metadata, self, "shortly after", 4 * TST_USEC);
	EXPECT_EQ(0, meeting.granted);
}

/* A handler that takes several time slices: not one on granted time. */

#define LONG_HANDLERS	20
#define LONG		(20 * TST_MSEC)

static void handle_long(int signal)
{
	uint64_t end = tst_now() + LONG;

	(void)signal;
	while (!tst_late(end))
		meeting.granted += meeting.slot->sched_delay != 0;
	meeting.handled++;
}

TEST_F(delay, none_in_a_handler)
{
	struct sigaction action = { .sa_handler = handle_long };
	struct taskshared_counters counters;
	long switches;

	meeting = (struct meeting){ .slot = self->slot };
	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	start_hogs(_metadata, self, 1);
	switches = tst_involuntary_switches();
	while (meeting.handled < LONG_HANDLERS) {
		tst_request(self->slot);
		raise(SIGUSR1);
	}
	switches = tst_involuntary_switches() - switches;
	counters = settle(_metadata, self, "handlers");
	printf("# handlers: %ld involuntary switches\n", switches);
	EXPECT_LE(LONG_HANDLERS, switches);
	EXPECT_EQ(0, meeting.granted);
	/* Between the request and the signal there is a moment. */
	EXPECT_LE(counters.granted, 2);

	/* After them all is as ever. */
	never_yield(self, RUN, CAP);
	counters = settle(_metadata, self, "after them");
	EXPECT_LE(ENOUGH, counters.granted);
}

/* Delivered to nobody: the request stands. */
TEST_F(delay, ignored_ones_leave_the_request)
{
	sigset_t ignored, old;
	unsigned int i, lost = 0;

	/* By default a SIGCHLD is ignored; one that is blocked stays pending all the same. */
	sigemptyset(&ignored);
	sigaddset(&ignored, SIGCHLD);
	for (i = 0; i < 100; i++) {
		ASSERT_EQ(0, sigprocmask(SIG_BLOCK, &ignored, &old));
		ASSERT_EQ(0, raise(SIGCHLD));
		tst_request(self->slot);
		ASSERT_EQ(0, sigprocmask(SIG_SETMASK, &old, NULL));
		lost += self->slot->sched_delay != TASK_PREEMPT_DELAY_REQ;
	}
	/* Now and then something else wants the CPU just then. */
	EXPECT_LE(lost, 10);
}

TEST_HARNESS_MAIN
