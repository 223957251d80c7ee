// SPDX-License-Identifier: MIT
/*
 * The delay: when it is granted, how long it lasts, how it ends, and what the
 * counters say of it. For virtual time on one CPU: the lengths asserted here mean
 * nothing where the host can stop the guest.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>

#include "helpers/delay_fixture.h"

/* Requests, and yields as soon as it sees that a delay was granted. */
static void check_yield(struct __test_metadata *_metadata, FIXTURE_DATA(delay) *self,
			const char *name, bool by_ioctl)
{
	uint64_t end = tst_now() + RUN;
	struct taskshared_counters counters;
	unsigned int seen = 0, told = 0, still = 0, gave = 0;
	uint64_t progress;
	int ret;

	while (tst_now() < end) {
		if (tst_look(self->slot) == TASK_PREEMPT_DELAY_GRANTED) {
			seen++;
			progress = hog_progress(self);
			ret = by_ioctl ? ioctl(self->fd, TASKSHARED_IOC_YIELD, 0) : sched_yield();
			EXPECT_LE(0, ret);
			told += ret == 1;
			gave += hog_progress(self) != progress;
			still += self->slot->sched_delay == TASK_PREEMPT_DELAY_GRANTED;
		}
	}
	counters = settle(_metadata, self, name);
	printf("# %s: %u delays seen, %u times the hog ran during the call\n", name, seen, gave);
	EXPECT_LE(ENOUGH, seen);
	/* The scheduler may pick the same thread again, but not as a rule. */
	EXPECT_LE(seen, gave * 4);
	EXPECT_EQ(0, still)
		TH_LOG("the word read GRANTED after the yield");
	/* One that expired between the look and the call may be missing. */
	EXPECT_LE(counters.yielded, seen + 1);
	EXPECT_LE(seen * 19, counters.yielded * 20);
	if (by_ioctl) {
		/* A yield after the cap is counted as expired. */
		EXPECT_LE(told, counters.yielded + counters.expired);
		EXPECT_LE(counters.yielded, told + 1);
	} else {
		EXPECT_EQ(0, told);
	}
	EXPECT_EQ(0, counters.denied);
	/* Short: a look at the word and a system call. */
	EXPECT_LE(counters.delay_ns, counters.granted * 10 * TST_USEC);
}

TEST_F(delay, yield_call)
{
	start_hogs(_metadata, self, 1);
	check_yield(_metadata, self, "yield call", true);
}

TEST_F(delay, plain_sched_yield)
{
	start_hogs(_metadata, self, 1);
	check_yield(_metadata, self, "sched_yield", false);
}

TEST_F(delay, yield_without_a_delay)
{
	struct taskshared_counters counters;
	unsigned int i, ones = 0;

	/* Alone on the CPU nobody asks for it: no delay, whatever the word says. */
	for (i = 0; i < 1000; i++) {
		self->slot->sched_delay = i % 4;
		ones += ioctl(self->fd, TASKSHARED_IOC_YIELD, 0) != 0;
		sched_yield();
	}
	counters = settle(_metadata, self, "no delay");
	EXPECT_LE(ones, counters.yielded);
	EXPECT_LE(counters.yielded, 2);
}

/* Anything but REQ is no request. */
TEST_F(delay, other_values_are_no_request)
{
	static const __u16 values[] = { 0, 2, 3, 4, 0x100, 0x101, 0x8001, 0xffff };
	struct taskshared_counters counters;
	unsigned int i;
	uint64_t end;
	long switches;

	start_hogs(_metadata, self, 1);
	switches = tst_involuntary_switches();
	for (i = 0; i < ARRAY_SIZE(values); i++) {
		end = tst_now() + RUN / 4;
		while (tst_now() < end)
			self->slot->sched_delay = values[i];
	}
	switches = tst_involuntary_switches() - switches;
	counters = settle(_metadata, self, "other values");
	EXPECT_LE(ENOUGH, switches);
	EXPECT_EQ(0, counters.requested);
}

/* The other way round: in user mode a request is granted nearly every time. */
TEST_F(delay, request_is_granted)
{
	struct taskshared_counters counters;
	long switches;

	start_hogs(_metadata, self, 1);
	switches = tst_involuntary_switches();
	never_yield(self, RUN, CAP);
	switches = tst_involuntary_switches() - switches;
	counters = settle(_metadata, self, "user mode");
	printf("# user mode: %ld involuntary switches\n", switches);
	EXPECT_LE(ENOUGH, switches);
	EXPECT_GE((long)counters.granted * 10, switches * 8);
}

/* Asks again inside a delay. */
TEST_F(delay, denied_on_a_second_request)
{
	uint64_t end = tst_now() + RUN;
	struct taskshared_counters counters;
	unsigned int seen = 0, denied = 0, granted = 0, others = 0, word;

	start_hogs(_metadata, self, 1);
	while (tst_now() < end) {
		if (tst_look(self->slot) != TASK_PREEMPT_DELAY_GRANTED)
			continue;
		seen++;
		tst_request(self->slot);
		do
			word = self->slot->sched_delay;
		while (word == TASK_PREEMPT_DELAY_REQ && tst_now() < end);
		if (word == TASK_PREEMPT_DELAY_DENIED)
			denied++;
		/* The delay had ended before: it was a first request. */
		else if (word == TASK_PREEMPT_DELAY_GRANTED)
			granted++;
		else if (tst_now() < end)
			others++;
	}
	counters = settle(_metadata, self, "asked twice");
	printf("# asked twice: %u grants seen, %u denied\n", seen, denied);
	EXPECT_LE(ENOUGH, seen);
	EXPECT_LE(seen * 9, denied * 10);
	EXPECT_EQ(0, others);
	EXPECT_LE(denied, counters.denied);
	EXPECT_LE(counters.denied, denied + 1);
	EXPECT_LE(counters.delay_max_ns, CAP + INTERRUPTED);
}

/* No chain: whatever the thread writes, a delay is followed by somebody else. */

static void write_always(FIXTURE_DATA(delay) *self, unsigned int word, uint64_t *random)
{
	(void)word, (void)random;
	tst_request(self->slot);
}

static void write_off_and_on(FIXTURE_DATA(delay) *self, unsigned int word, uint64_t *random)
{
	(void)word, (void)random;
	self->slot->sched_delay = 0;
	tst_request(self->slot);
}

static void write_random(FIXTURE_DATA(delay) *self, unsigned int word, uint64_t *random)
{
	static const __u16 values[] = { 1, 1, 0, 1, 0x101, 1, 3, 1 };

	(void)word;
	self->slot->sched_delay = values[tst_random(random) % ARRAY_SIZE(values)];
}

/* Pretends that delays run. */
static void write_granted(FIXTURE_DATA(delay) *self, unsigned int word, uint64_t *random)
{
	(void)word;
	self->slot->sched_delay = 1 + tst_random(random) % 2;
}

static void write_after_grant(FIXTURE_DATA(delay) *self, unsigned int word, uint64_t *random)
{
	(void)random;
	if (word != TASK_PREEMPT_DELAY_REQ)
		tst_request(self->slot);
}

/* Lets go of the slot in the middle of a delay and takes one that knows of none. */
static void take_new_slot(FIXTURE_DATA(delay) *self, unsigned int word, uint64_t *random)
{
	(void)random;
	if (word == TASK_PREEMPT_DELAY_GRANTED) {
		ioctl(self->fd, TASKSHARED_IOC_RELEASE, 0);
		tst_slot_offset(self->fd);
	}
	tst_request(self->slot);
}

/* Goes into the kernel and back, which is not a pass through the scheduler. */
static void call_kernel(FIXTURE_DATA(delay) *self, unsigned int word, uint64_t *random)
{
	(void)word;
	tst_request(self->slot);
	if (tst_random(random) % 8 == 0)
		getppid();
}

static const struct pattern {
	const char *name;
	void (*write)(FIXTURE_DATA(delay) *self, unsigned int word, uint64_t *random);
	/* the word does not tell when a delay runs */
	bool lies;
	/*
	 * The cap may be reached in the kernel. A kernel that preempts itself there,
	 * and picks the same thread again, calls nobody: the end of the delay is noticed
	 * some time later.
	 */
	bool kernel;
} patterns[] = {
	{ "always", write_always, false, false },
	{ "off and on", write_off_and_on, false, false },
	{ "random", write_random, false, false },
	{ "lies", write_granted, true, false },
	{ "after grant", write_after_grant, false, false },
	{ "new slot", take_new_slot, false, false },
	{ "with system calls", call_kernel, false, true },
};

/**
 * struct chain - what came of a pattern
 * @grants: how often the word began to read GRANTED
 * @longest: longest time from a grant on in which nobody else ran
 * @repicked: how often the thread ran on after the cap, the delay being over: the
 *	scheduler was asked, and picked the same thread again
 * @running: ... the delay not being over
 * @chained: how often one delay followed another without anybody else in between,
 *	and sooner than the scheduler could ask for the CPU again by itself
 */
struct chain {
	unsigned int grants;
	uint64_t longest;
	unsigned int repicked;
	unsigned int running;
	unsigned int chained;
};

/* Less than a tick. */
#define SOON	(500 * TST_USEC)

/*
 * Others are the hog, whose progress is cheap to look at, or rarely a kernel
 * thread, which shows in the number of switches.
 */
static struct chain run_pattern(FIXTURE_DATA(delay) *self, const struct pattern *pattern)
{
	uint64_t end = tst_now() + RUN * 3 / 4, first = 0, last = 0, progress = 0, now, after;
	uint64_t random = 88172645463325252ULL;
	struct taskshared_counters counters;
	unsigned int word, before = 0;
	struct chain chain = { 0 };
	long switches = 0;

	while ((now = tst_now()) < end) {
		after = hog_progress(self);
		word = self->slot->sched_delay;
		if (pattern->lies)
			word = TASK_PREEMPT_DELAY_REQ;
		if (after != progress) {
			progress = after;
			first = 0;
			last = 0;
		}
		if (first && now - first > CAP + TOLERANCE) {
			tst_counters(self->fd, 0, &counters);
			if (tst_involuntary_switches() == switches) {
				chain.repicked += !counters.active;
				chain.running += counters.active != 0;
			}
			first = 0;
		}
		if (first && now - first > chain.longest)
			chain.longest = now - first;
		if (word == TASK_PREEMPT_DELAY_GRANTED && before != word) {
			chain.grants++;
			if (last && now - last < SOON && tst_involuntary_switches() == switches)
				chain.chained++;
			switches = tst_involuntary_switches();
			last = tst_now();
			first = last;
		}
		before = word;
		pattern->write(self, word, &random);
	}
	return chain;
}

TEST_F(delay, no_chain)
{
	struct taskshared_counters totals;
	struct chain chain;
	const char *message;
	unsigned int i;

	start_hogs(_metadata, self, 1);
	for (i = 0; i < ARRAY_SIZE(patterns); i++) {
		/* In totals, as one pattern changes the slot. */
		fresh_slot(_metadata, self);
		chain = run_pattern(self, &patterns[i]);
		self->slot->sched_delay = 0;
		ioctl(self->fd, TASKSHARED_IOC_YIELD, 0);
		ASSERT_EQ(0, tst_totals(&totals));
		EXPECT_TRUE(tst_adds_up(&totals, &message))
			TH_LOG("%s: %s", patterns[i].name, message);
		totals = tst_difference(&totals, &self->before);
		tst_print_counters(patterns[i].name, &totals);
		printf("# %s: %u grants seen, longest %llu ns, %u times picked again, %u in a row\n",
		       patterns[i].name, chain.grants, (unsigned long long)chain.longest,
		       chain.repicked, chain.chained);
		EXPECT_LE(5, totals.granted)
			TH_LOG("%s", patterns[i].name);
		if (!patterns[i].lies)
			EXPECT_LE(5, chain.grants)
				TH_LOG("%s: too few grants seen", patterns[i].name);
		EXPECT_LE(chain.repicked * 4, chain.grants * 3)
			TH_LOG("%s: the CPU is not given back", patterns[i].name);
		/* The newest kernels also ask for the CPU in the middle of a tick, rarely. */
		EXPECT_LE(chain.chained * 10, chain.grants)
			TH_LOG("%s: one delay after the other", patterns[i].name);
		if (!patterns[i].kernel)
			EXPECT_EQ(0, chain.running)
				TH_LOG("%s: a delay runs on past the cap", patterns[i].name);
		/* The longest one of all so far, in whatever test. */
		EXPECT_LE(totals.delay_max_ns, patterns[i].kernel ? 4 * CAP : CAP + INTERRUPTED)
			TH_LOG("%s", patterns[i].name);
	}
}

/* The return from a system call is not delayed. */

#define ZEROS (256 * 1024)

/* Looks at the need to reschedule on its way, and takes long. */
static void read_zeros(void *buffer)
{
	static int fd = -1;

	if (fd < 0)
		fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	if (read(fd, buffer, ZEROS) != ZEROS)
		abort();
}

/* Does not, so that the scheduler has to wait for its return. */
static void poll_many(void *buffer)
{
	static int ends[2];
	struct pollfd *fds = buffer;
	unsigned int i;

	if (!ends[0]) {
		if (pipe(ends))
			abort();
		for (i = 0; i < 1000; i++)
			fds[i] = (struct pollfd){ .fd = ends[0], .events = POLLIN };
	}
	if (poll(fds, 1000, 0))
		abort();
}

static void check_system_call(struct __test_metadata *_metadata, FIXTURE_DATA(delay) *self,
			      const char *name, void (*call)(void *buffer))
{
	struct taskshared_counters counters;
	uint64_t begun, end;
	unsigned int calls = 0, lost = 0;
	void *buffer = calloc(1, ZEROS);
	long switches;

	ASSERT_NE(NULL, buffer);
	call(buffer);
	switches = tst_involuntary_switches();
	begun = tst_now();
	end = begun + RUN;
	while (tst_now() < end) {
		tst_request(self->slot);
		call(buffer);
		/* The request stays for later. */
		lost += self->slot->sched_delay == 0;
		calls++;
	}
	switches = tst_involuntary_switches() - switches;
	counters = settle(_metadata, self, name);
	printf("# %s: %u calls, %ld involuntary switches, %u requests lost\n", name, calls,
	       switches, lost);
	EXPECT_LE(ENOUGH, switches);
	EXPECT_LE((long)counters.granted * 20, switches);
	EXPECT_LE((long)lost * 20, switches);
	free(buffer);
}

TEST_F(delay, system_call_that_may_be_preempted)
{
	start_hogs(_metadata, self, 1);
	check_system_call(_metadata, self, "read", read_zeros);
}

TEST_F(delay, system_call_return)
{
	start_hogs(_metadata, self, 1);
	check_system_call(_metadata, self, "poll", poll_many);
}

/* Ends otherwise */

TEST_F(delay, ends_when_the_thread_blocks)
{
	uint64_t end = tst_now() + RUN;
	struct taskshared_counters counters;
	unsigned int seen = 0, still = 0;

	start_hogs(_metadata, self, 1);
	while (tst_now() < end) {
		if (tst_look(self->slot) == TASK_PREEMPT_DELAY_GRANTED) {
			seen++;
			tst_sleep(100 * TST_USEC);
			still += self->slot->sched_delay == TASK_PREEMPT_DELAY_GRANTED;
		}
	}
	counters = settle(_metadata, self, "blocks");
	EXPECT_LE(ENOUGH / 2, seen);
	EXPECT_EQ(0, still)
		TH_LOG("the word read GRANTED after the thread had slept");
	EXPECT_LE(seen * 9, counters.ended * 10);
	EXPECT_EQ(0, counters.yielded);
	EXPECT_LE(counters.delay_ns, counters.granted * 15 * TST_USEC);
}

TEST_F(delay, snapshot_inside_a_delay)
{
	uint64_t end = tst_now() + RUN;
	struct taskshared_counters counters;
	unsigned int seen = 0, active = 0, wrong = 0;
	const char *message;

	start_hogs(_metadata, self, 1);
	while (tst_now() < end) {
		if (tst_look(self->slot) == TASK_PREEMPT_DELAY_GRANTED) {
			seen++;
			tst_counters(self->fd, 0, &counters);
			active += counters.active == 1;
			wrong += counters.active > 1 || !tst_adds_up(&counters, &message);
			while (self->slot->sched_delay == TASK_PREEMPT_DELAY_GRANTED)
				;
		}
	}
	settle(_metadata, self, "looked at");
	EXPECT_LE(ENOUGH, seen);
	EXPECT_LE(seen * 9, active * 10);
	EXPECT_EQ(0, wrong);
}

/* A signal ends a delay before its handler runs. */

static struct task_sharedinfo *handler_slot;
static volatile unsigned int handler_runs, handler_granted, handler_in_delay;
static volatile bool in_delay;

static void on_signal(int signal)
{
	(void)signal;
	handler_granted += handler_slot->sched_delay == TASK_PREEMPT_DELAY_GRANTED;
	handler_in_delay += in_delay;
	in_delay = false;
	handler_runs++;
}

TEST_F(delay, signal_handler_gets_no_granted_time)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct itimerspec interval = {
		.it_interval.tv_nsec = 70 * TST_USEC, .it_value.tv_nsec = 70 * TST_USEC,
	};
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1 };
	struct taskshared_counters counters;
	uint64_t end;
	timer_t timer;

	event._sigev_un._tid = gettid();
	handler_slot = self->slot;
	start_hogs(_metadata, self, 1);
	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	ASSERT_EQ(0, timer_create(CLOCK_MONOTONIC, &event, &timer));
	ASSERT_EQ(0, timer_settime(timer, 0, &interval, NULL));
	end = tst_now() + RUN;
	while (tst_now() < end)
		in_delay = tst_look(self->slot) == TASK_PREEMPT_DELAY_GRANTED;
	timer_delete(timer);
	EXPECT_LE(500, handler_runs);

	/*
	 * On PREEMPT_RT a timer's signals come from a real-time thread, beside which there
	 * are no delays. So some more that come from here.
	 */
	end = tst_now() + RUN;
	while (tst_now() < end) {
		in_delay = tst_look(self->slot) == TASK_PREEMPT_DELAY_GRANTED;
		if (in_delay)
			syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1);
	}
	counters = settle(_metadata, self, "signals");
	printf("# signals: the handler ran %u times, %u times in what was a delay, %u times in one that went on\n",
	       handler_runs, handler_in_delay, handler_granted);
	EXPECT_LE(ENOUGH / 4, handler_in_delay);
	EXPECT_EQ(0, handler_granted);
	EXPECT_LE(ENOUGH / 4, counters.ended);
}

/* Threads that are gone, or let go of their slot, in the middle of a delay. */

struct leaver {
	int fd;
	bool by_exit;
	unsigned int seen;
};

static void *leave_inside_a_delay(void *arg)
{
	uint64_t end = tst_now() + 50 * TST_MSEC;
	struct leaver *self = arg;
	struct task_sharedinfo *slot;

	tst_pin(0);
	slot = tst_slot(self->fd);
	if (!slot)
		return NULL;
	/* The first delay may be over before it is seen: on PREEMPT_RT a softirq is a thread. */
	while (tst_look(slot) != TASK_PREEMPT_DELAY_GRANTED)
		if (tst_now() > end)
			return NULL;
	self->seen++;
	if (!self->by_exit)
		ioctl(self->fd, TASKSHARED_IOC_RELEASE, 0);
	return NULL;
}

static void check_leaver(struct __test_metadata *_metadata, FIXTURE_DATA(delay) *self,
			 const char *name, bool by_exit)
{
	struct leaver leaver = { .fd = self->fd, .by_exit = by_exit };
	struct taskshared_counters totals;
	const char *message;
	pthread_t thread;
	int i;

	start_hogs(_metadata, self, 1);
	/* Some of them see no delay in their time. */
	for (i = 0; i < 5 * ENOUGH && leaver.seen < ENOUGH; i++) {
		ASSERT_EQ(0, pthread_create(&thread, NULL, leave_inside_a_delay, &leaver));
		pthread_join(thread, NULL);
	}
	EXPECT_TRUE(tst_wait_until(tst_state("slots") == 1, 5000));
	ASSERT_EQ(0, tst_totals(&totals));
	EXPECT_TRUE(tst_adds_up(&totals, &message))
		TH_LOG("totals: %s", message);
	totals = tst_difference(&totals, &self->before);
	tst_print_counters(name, &totals);
	EXPECT_LE(ENOUGH, leaver.seen);
	EXPECT_LE(leaver.seen, totals.granted);
	EXPECT_EQ(0, totals.active);
	EXPECT_LE(leaver.seen * 3, totals.ended * 4);
}

TEST_F(delay, ends_with_the_thread)
{
	check_leaver(_metadata, self, "exit", true);
}

TEST_F(delay, ends_with_the_slot)
{
	check_leaver(_metadata, self, "release", false);
}

/* A real-time thread is not delayed. */

struct waker {
	volatile bool ready;
	volatile bool stop;
};

static void *wake_now_and_then(void *arg)
{
	struct waker *self = arg;

	tst_set_fifo(2);
	self->ready = true;
	while (!self->stop)
		tst_sleep(2 * TST_MSEC);
	return NULL;
}

TEST_F(delay, real_time_thread_is_not_delayed)
{
	struct taskshared_counters counters;
	struct waker waker = { 0 };
	pthread_t thread;
	struct seen seen;

	ASSERT_EQ(0, pthread_create(&thread, NULL, wake_now_and_then, &waker));
	ASSERT_TRUE(tst_wait_until(waker.ready, 1000));
	ASSERT_EQ(0, tst_set_fifo(1));
	seen = never_yield(self, RUN / 2, CAP);
	EXPECT_EQ(TASK_PREEMPT_DELAY_REQ, self->slot->sched_delay);
	waker.stop = true;
	tst_set_fifo(0);
	pthread_join(thread, NULL);
	counters = settle(_metadata, self, "SCHED_FIFO");
	EXPECT_EQ(0, seen.grants);
	EXPECT_EQ(0, counters.granted);
	EXPECT_LE(ENOUGH, counters.refused_class);
}

/* What the fair class runs is delayed, beside a hog of the same policy. */
static void check_policy(struct __test_metadata *_metadata, FIXTURE_DATA(delay) *self,
			 const char *name, int policy)
{
	struct sched_param param = { 0 };
	struct taskshared_counters counters;
	struct seen seen;

	/* Inherited by the hog. */
	ASSERT_EQ(0, sched_setscheduler(0, policy, &param));
	start_hogs(_metadata, self, 1);
	seen = never_yield(self, RUN, CAP);
	ASSERT_EQ(0, sched_setscheduler(0, SCHED_OTHER, &param));
	counters = settle(_metadata, self, name);
	EXPECT_LE(ENOUGH, seen.grants);
	EXPECT_LE(ENOUGH, counters.granted);
	EXPECT_EQ(0, counters.refused_class);
	EXPECT_LE(seen.longest, CAP + TOLERANCE);
}

TEST_F(delay, batch_thread_is_delayed)
{
	check_policy(_metadata, self, "SCHED_BATCH", SCHED_BATCH);
}

TEST_F(delay, idle_thread_is_delayed)
{
	check_policy(_metadata, self, "SCHED_IDLE", SCHED_IDLE);
}

/* A real-time thread that wakes beside one that always asks for delays. */

#define PERIODS_MAX	2000

/**
 * struct cyclic - a thread that wakes in periods, and how late
 * @period: in ns
 * @periods: how many
 * @done: all of them
 * @late: by how much, in ns, in rising order when done
 */
struct cyclic {
	uint64_t period;
	int periods;
	volatile bool done;
	uint64_t late[PERIODS_MAX];
};

static void sleep_until(uint64_t when)
{
	struct timespec at = tst_timespec(when);

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static void *wake_every_period(void *arg)
{
	struct cyclic *cyclic = arg;
	uint64_t next;
	int i;

	tst_pin(0);
	tst_set_fifo(50);
	/* The tick comes at a multiple of the period: half a period away from it. */
	next = tst_now();
	next += cyclic->period / 2 - next % cyclic->period;
	for (i = 0; i < cyclic->periods; i++) {
		next += cyclic->period;
		sleep_until(next);
		cyclic->late[i] = tst_now() - next;
	}
	sort(cyclic->late, cyclic->periods);
	cyclic->done = true;
	return NULL;
}

static uint64_t late_percentile(const struct cyclic *cyclic, int percent)
{
	return percentile(cyclic->late, cyclic->periods, percent);
}

static void print_latency(const struct cyclic *cyclic)
{
	printf("# a SCHED_FIFO thread is late by: half of the time %llu ns at most, 99 %% %llu ns, always %llu ns\n",
	       (unsigned long long)late_percentile(cyclic, 50),
	       (unsigned long long)late_percentile(cyclic, 99),
	       (unsigned long long)late_percentile(cyclic, 100));
}

static void real_time_latency(FIXTURE_DATA(delay) *self, struct cyclic *cyclic)
{
	pthread_t thread;

	cyclic->done = false;
	if (pthread_create(&thread, NULL, wake_every_period, cyclic))
		abort();
	while (!cyclic->done)
		tst_look(self->slot);
	pthread_join(thread, NULL);
	print_latency(cyclic);
}

/*
 * Once a second the kernel sums up its memory statistics, for some 130 us with
 * preemption off. No test is so long.
 */
static void put_off_statistics(void)
{
	if (tst_write_file("/proc/sys/vm/stat_interval", "600", 0))
		abort();
	/* Those that are due already. */
	tst_sleep(2 * TST_SEC);
}

/*
 * One wake-up in thousands finds the kernel busy for some microseconds, with delays or
 * without, and so makes two runs differ. One that waits for a delay differs by tens of
 * them, in every run.
 */
#define ATTEMPTS	3

static bool as_without(const struct cyclic *on, const struct cyclic *off)
{
	/* On PREEMPT_RT the timer wakes a thread that wakes this one. */
	uint64_t tolerance = tst_preempt_rt() ? 5 * TST_USEC : TOLERANCE;

	return late_percentile(on, 50) <= late_percentile(off, 50) + TOLERANCE &&
	       late_percentile(on, 99) <= late_percentile(off, 99) + tolerance &&
	       late_percentile(on, 100) <= late_percentile(off, 100) + tolerance;
}

TEST_F(delay, real_time_waiter_gets_the_cpu)
{
	static struct cyclic off = { .period = 200 * TST_USEC, .periods = 2000 };
	static struct cyclic on = { .period = 200 * TST_USEC, .periods = 2000 };
	struct taskshared_counters counters;
	unsigned int i = 0;

	put_off_statistics();
	start_hogs(_metadata, self, 1);
	do {
		ASSERT_EQ(0, tst_write_delay_us("0"));
		real_time_latency(self, &off);
		ASSERT_EQ(0, tst_write_delay_us("50"));
		fresh_slot(_metadata, self);
		real_time_latency(self, &on);
		counters = settle(_metadata, self, "beside real time");
		/* It was in its way. */
		EXPECT_LE(on.periods / 4, counters.refused_rt);
	} while (!as_without(&on, &off) && ++i < ATTEMPTS);
	EXPECT_TRUE(as_without(&on, &off));
}

/* The same thread, woken by a timer that the requester sets when a delay has begun. */
#define INTO_THE_DELAY	(20 * TST_USEC)
#define WAKES		200

/**
 * struct alarm - a thread that is woken by a timer, and how late
 * @timer: wakes it
 * @ready: it waits, or is about to
 * @due: when, or 0
 * @set: the timer was set in time
 * @cyclic: how late
 */
struct alarm {
	int timer;
	volatile bool ready;
	volatile uint64_t due;
	volatile bool set;
	struct cyclic cyclic;
};

static void *wake_by_timer(void *arg)
{
	struct alarm *alarm = arg;
	struct cyclic *cyclic = &alarm->cyclic;
	uint64_t count;
	int i;

	tst_pin(0);
	tst_set_fifo(50);
	alarm->ready = true;
	for (i = 0; i < cyclic->periods; i += alarm->set) {
		if (read(alarm->timer, &count, sizeof(count)) != sizeof(count))
			abort();
		cyclic->late[i] = tst_now() - alarm->due;
		alarm->due = 0;
	}
	sort(cyclic->late, cyclic->periods);
	cyclic->done = true;
	return NULL;
}

static void set_alarm(struct alarm *alarm)
{
	struct itimerspec at = { 0 };

	alarm->set = false;
	alarm->due = tst_now() + INTO_THE_DELAY;
	at.it_value = tst_timespec(alarm->due);
	timerfd_settime(alarm->timer, TFD_TIMER_ABSTIME, &at, NULL);
	/* Not if the hog had the CPU meanwhile. */
	if (tst_now() < alarm->due)
		alarm->set = true;
}

/* @delays: set the timer at the begin of each delay, else now and then. */
static void alarm_latency(FIXTURE_DATA(delay) *self, struct alarm *alarm, bool delays)
{
	uint64_t next = 0;
	pthread_t thread;

	alarm->ready = false;
	alarm->cyclic.done = false;
	alarm->timer = timerfd_create(CLOCK_MONOTONIC, 0);
	if (alarm->timer < 0 || pthread_create(&thread, NULL, wake_by_timer, alarm))
		abort();
	while (!alarm->ready)
		tst_sleep(TST_MSEC);
	while (!alarm->cyclic.done) {
		if (alarm->due)
			continue;
		if (delays ? tst_look(self->slot) != TASK_PREEMPT_DELAY_GRANTED : tst_now() < next)
			continue;
		set_alarm(alarm);
		next = tst_now() + TST_MSEC;
	}
	pthread_join(thread, NULL);
	close(alarm->timer);
	print_latency(&alarm->cyclic);
}

TEST_F(delay, real_time_waiter_ends_a_delay)
{
	static struct alarm off = { .cyclic.periods = WAKES }, on = { .cyclic.periods = WAKES };
	struct taskshared_counters counters;
	unsigned int i = 0;

	put_off_statistics();
	start_hogs(_metadata, self, 1);
	do {
		ASSERT_EQ(0, tst_write_delay_us("0"));
		alarm_latency(self, &off, false);
		ASSERT_EQ(0, tst_write_delay_us("50"));
		fresh_slot(_metadata, self);
		alarm_latency(self, &on, true);
		counters = settle(_metadata, self, "real time inside delays");
		/* Nearly each of them ended one. */
		EXPECT_LE(WAKES * 9 / 10, counters.ended);
	} while (!as_without(&on.cyclic, &off.cyclic) && ++i < ATTEMPTS);
	EXPECT_TRUE(as_without(&on.cyclic, &off.cyclic));
}

/*
 * Signals that end a delay and then turn out to be ignored: those of terminal stops,
 * in a process group of its own session.
 */
static int requests_under_ignored_signals(void)
{
	struct sigevent event = {
		.sigev_notify = SIGEV_SIGNAL,
		.sigev_signo = SIGTTIN,
	};
	struct itimerspec often = { { 0, 40000 }, { 0, 40000 } };
	uint64_t end = tst_now() + RUN;
	struct taskshared_counters counters;
	struct task_sharedinfo *slot;
	long switches;
	timer_t timer;
	int fd = tst_open();

	slot = tst_slot(fd);
	if (!slot || setsid() < 0 || timer_create(CLOCK_MONOTONIC, &event, &timer) ||
	    timer_settime(timer, 0, &often, NULL))
		return 1;
	switches = tst_involuntary_switches();
	while (tst_now() < end)
		tst_request(slot);
	switches = tst_involuntary_switches() - switches;
	timer_delete(timer);
	if (tst_counters(fd, 0, &counters))
		return 2;
	tst_print_counters("ignored signals", &counters);
	printf("# ignored signals: %ld involuntary switches\n", switches);
	fflush(stdout);
	/* The scheduler may pick the same thread again, but not a hundred times. */
	return counters.granted > 4 * (unsigned long)switches + 10 ? 3 : 0;
}

TEST_F(delay, ignored_signals_do_not_chain)
{
	int status;
	pid_t pid;

	start_hogs(_metadata, self, 1);
	pid = fork();
	if (!pid)
		_exit(requests_under_ignored_signals());
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, WEXITSTATUS(status));
	EXPECT_TRUE(WIFEXITED(status));
}

TEST_HARNESS_MAIN
