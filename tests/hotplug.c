// SPDX-License-Identifier: MIT
/*
 * CPUs that come and go, and threads that are moved from CPU to CPU, while all of
 * them ask for delays. A delay ends with the pass through the scheduler that the
 * move is, a thread that asked for nothing is never touched, and no timer goes off
 * on another CPU than its own (the kernel would warn). TASKSHARED_HOTPLUG_ROUNDS
 * says how often a CPU goes and comes back.
 */

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "kselftest_harness.h"
#include "helpers/taskshared_test.h"

#define DEFAULT_ROUNDS	200
/* Most of a round is waiting for RCU, which has a shorter way. */
#define HURRY		"/sys/kernel/rcu_expedited"
#define THREADS		6

/**
 * struct report - what a thread saw
 * @delays: of its own
 * @moved: ... in which it came to another CPU
 * @touched: writes to the slot of a thread that did not ask
 */
struct report {
	uint64_t delays;
	uint64_t moved;
	uint64_t touched;
	int error;
	struct taskshared_counters counters;
};

static struct report reports[THREADS];

/* Every other thread asks for delays, and the rest pretend that one runs. */
static bool asks(unsigned int index)
{
	return index % 2 == 0;
}

/* Delays end by the cap more often than not. */
static void finish_delay(int fd, struct task_sharedinfo *slot, uint64_t nr)
{
	if (nr % 4 == 1)
		ioctl(fd, TASKSHARED_IOC_YIELD, 0);
	else if (nr % 4 == 3)
		sched_yield();
	else
		while (slot->sched_delay == TASK_PREEMPT_DELAY_GRANTED)
			;
}

static void ask(struct tst_crew *crew, struct task_sharedinfo *slot, struct report *report)
{
	int cpu;

	while (!crew->leave) {
		if (tst_look(slot) != TASK_PREEMPT_DELAY_GRANTED)
			continue;
		cpu = sched_getcpu();
		finish_delay(crew->fd, slot, report->delays++);
		report->moved += sched_getcpu() != cpu;
	}
	slot->sched_delay = 0;
	ioctl(crew->fd, TASKSHARED_IOC_YIELD, 0);
}

/* The end of a delay writes 0 over GRANTED, but this thread has none. */
static void pretend(struct tst_crew *crew, struct task_sharedinfo *slot, struct report *report)
{
	while (!crew->leave) {
		slot->sched_delay = TASK_PREEMPT_DELAY_GRANTED;
		while (!crew->leave && slot->sched_delay == TASK_PREEMPT_DELAY_GRANTED)
			;
		report->touched += slot->sched_delay != TASK_PREEMPT_DELAY_GRANTED;
	}
}

static void work(struct tst_member *member)
{
	struct tst_crew *crew = member->crew;
	unsigned int index = (unsigned int)(member - crew->members);
	struct report *report = &reports[index];
	struct task_sharedinfo *slot = tst_slot(crew->fd);

	if (!slot) {
		report->error = errno;
		return;
	}
	if (asks(index))
		ask(crew, slot, report);
	else
		pretend(crew, slot, report);
	if (tst_counters(crew->fd, 0, &report->counters))
		report->error = errno;
}

/**
 * struct mover - a thread that moves those of a crew all the time
 * @moves: how often one was allowed another CPU
 */
struct mover {
	struct tst_crew *crew;
	pthread_t thread;
	volatile bool stop;
	uint64_t moves;
};

static void *move(void *arg)
{
	struct mover *self = arg;
	uint64_t random = 88172645463325252ULL, r;
	cpu_set_t set;

	while (!self->stop) {
		r = tst_random(&random);
		CPU_ZERO(&set);
		CPU_SET((r >> 8) % (unsigned int)sysconf(_SC_NPROCESSORS_CONF), &set);
		/* Fails for a CPU that is gone. */
		if (!sched_setaffinity(self->crew->members[(r >> 32) % THREADS].tid,
				       sizeof(set), &set))
			self->moves++;
		/* A move takes a stop task, beside which there is no delay: not too many. */
		tst_sleep(TST_MSEC);
	}
	return NULL;
}

static int set_online(int cpu, bool online)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
	return tst_write_file(path, online ? "1" : "0", 0);
}

static bool all_add_up(struct tst_crew *crew, const char **message)
{
	struct taskshared_counters now;
	unsigned int i;

	for (i = 0; i < THREADS; i++) {
		*message = "no counters";
		if (tst_counters(crew->fd, crew->members[i].tid, &now) ||
		    !tst_adds_up(&now, message))
			return false;
		*message = "more than one delay active";
		if (now.active > 1)
			return false;
	}
	*message = "no totals";
	return !tst_totals(&now) && tst_adds_up(&now, message);
}

/* Does a thread get a delay on @cpu, beside another one? */
static bool granted_on(int fd, int cpu)
{
	uint64_t end = tst_now() + 10 * TST_SEC;
	struct taskshared_counters before, after;
	struct task_sharedinfo *slot = tst_slot(fd);
	struct tst_hog hog;
	bool granted = false;

	if (!slot || tst_pin(cpu) || tst_hogs_start(&hog, 1, cpu))
		return false;
	tst_counters(fd, 0, &before);
	while (!granted && tst_now() < end) {
		if (slot->sched_delay != TASK_PREEMPT_DELAY_GRANTED)
			tst_request(slot);
		tst_counters(fd, 0, &after);
		granted = after.granted != before.granted;
	}
	slot->sched_delay = 0;
	ioctl(fd, TASKSHARED_IOC_YIELD, 0);
	tst_hogs_stop(&hog, 1);
	return granted;
}

FIXTURE(hotplug) {
	struct tst_crew crew;
	struct mover mover;
	struct taskshared_counters before;
};

FIXTURE_SETUP(hotplug)
{
	unsigned int i;

	self->crew = (struct tst_crew){ .count = THREADS, .work = work, .fd = tst_open() };
	ASSERT_LE(0, self->crew.fd)
		TH_LOG("%s: %s", TASKSHARED_DEVICE, strerror(errno));
	ASSERT_LE(2, tst_cpus());
	ASSERT_EQ(0, tst_write_file(HURRY, "1", 0));
	ASSERT_EQ(0, tst_totals(&self->before));
	ASSERT_EQ(0, tst_crew_start(&self->crew));
	for (i = 0; i < THREADS; i++)
		ASSERT_EQ(0, self->crew.members[i].error);
	self->mover = (struct mover){ .crew = &self->crew };
	ASSERT_EQ(0, pthread_create(&self->mover.thread, NULL, move, &self->mover));
}

FIXTURE_TEARDOWN(hotplug)
{
	int cpu;

	for (cpu = 1; cpu < sysconf(_SC_NPROCESSORS_CONF); cpu++)
		set_online(cpu, true);
	tst_write_file(HURRY, "0", 0);
	close(self->crew.fd);
}

static void check_reports(struct __test_metadata *_metadata, FIXTURE_DATA(hotplug) *self)
{
	struct taskshared_counters sum = { 0 }, totals;
	uint64_t delays = 0, moved = 0;
	const char *message;
	unsigned int i;

	for (i = 0; i < THREADS; i++) {
		EXPECT_EQ(0, reports[i].error);
		EXPECT_TRUE(tst_adds_up(&reports[i].counters, &message))
			TH_LOG("thread %u: %s", i, message);
		EXPECT_EQ(0, reports[i].counters.active);
		EXPECT_EQ(0, reports[i].touched);
		if (!asks(i))
			EXPECT_EQ(0, reports[i].counters.requested);
		tst_add(&sum, &reports[i].counters);
		delays += reports[i].delays;
		moved += reports[i].moved;
	}
	ASSERT_EQ(0, tst_totals(&totals));
	EXPECT_TRUE(tst_adds_up(&totals, &message))
		TH_LOG("totals: %s", message);
	totals = tst_difference(&totals, &self->before);
	tst_print_counters("totals", &totals);
	printf("# %llu delays seen, %llu of them ended on another CPU, %llu moves\n",
	       (unsigned long long)delays, (unsigned long long)moved,
	       (unsigned long long)self->mover.moves);
	EXPECT_LE(1, moved);
	EXPECT_EQ(0, totals.active);
	EXPECT_TRUE(tst_same(&sum, &totals, &message))
		TH_LOG("threads and totals: %s", message);
}

TEST_F_TIMEOUT(hotplug, cpus_come_and_go, 600)
{
	const char *word = getenv("TASKSHARED_HOTPLUG_ROUNDS"), *message;
	int round, rounds = word ? atoi(word) : DEFAULT_ROUNDS, cpus = tst_cpus(), cpu;
	uint64_t begun = tst_now();
	unsigned int wrong = 0;

	for (round = 0; round < rounds; round++) {
		/* The first one cannot go. */
		cpu = 1 + round % (cpus - 1);
		ASSERT_EQ(0, set_online(cpu, false));
		wrong += !all_add_up(&self->crew, &message);
		ASSERT_EQ(0, set_online(cpu, true));
		if (wrong)
			break;
	}
	EXPECT_EQ(0, wrong)
		TH_LOG("round %d: %s", round, message);
	printf("# %d times in %llu ms\n", round,
	       (unsigned long long)((tst_now() - begun) / TST_MSEC));
	self->mover.stop = true;
	pthread_join(self->mover.thread, NULL);
	tst_crew_stop(&self->crew);
	check_reports(_metadata, self);

	EXPECT_EQ(cpus, tst_cpus());
	for (cpu = 0; cpu < cpus; cpu++)
		EXPECT_TRUE(granted_on(self->crew.fd, cpu))
			TH_LOG("no delay on CPU %d any more", cpu);
}

TEST_HARNESS_MAIN
