// SPDX-License-Identifier: MIT
/*
 * Eight threads, one spinlock, delays that are yielded, expire or end otherwise:
 * every delay is counted once, in the thread's counters and in the totals, and
 * every snapshot taken meanwhile adds up. Holds in real time, on several CPUs, as
 * well as in virtual time.
 */

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "kselftest_harness.h"
#include "helpers/taskshared_test.h"

#define THREADS		8
#define RUN_MS		1000
#define HOLD		(10 * TST_USEC)
#define OUTSIDE		(5 * TST_USEC)

static struct {
	volatile bool locked;
	volatile uint64_t sections;
} __attribute__((aligned(128))) lock;

struct result {
	struct taskshared_counters counters;
	uint64_t sections;
	int error;
};

static struct result results[THREADS];

static void take(void)
{
	while (__atomic_test_and_set(&lock.locked, __ATOMIC_ACQUIRE))
		;
}

/* The delay is over: one thread in four each way. */
static void give_back(int fd, unsigned int index)
{
	switch (index % 4) {
	case 0:
		ioctl(fd, TASKSHARED_IOC_YIELD, 0);
		break;
	case 1:
		sched_yield();
		break;
	case 2:
		tst_sleep(TST_USEC);
		break;
	default:
		break;
	}
}

static void contend(struct tst_member *member)
{
	struct tst_crew *crew = member->crew;
	unsigned int index = (unsigned int)(member - crew->members);
	struct task_sharedinfo *slot;
	__u16 was;

	slot = tst_slot(crew->fd);
	if (!slot) {
		results[index].error = errno;
		return;
	}
	while (!crew->leave) {
		tst_request(slot);
		take();
		tst_spin(HOLD);
		lock.sections++;
		__atomic_clear(&lock.locked, __ATOMIC_RELEASE);
		was = slot->sched_delay;
		slot->sched_delay = 0;
		if (was == TASK_PREEMPT_DELAY_GRANTED)
			give_back(crew->fd, index);
		results[index].sections++;
		tst_spin(OUTSIDE);
	}
	/* Nothing may be counted after this thread's figures were read. */
	ioctl(crew->fd, TASKSHARED_IOC_YIELD, 0);
	if (tst_counters(crew->fd, 0, &results[index].counters))
		results[index].error = errno;
}

static bool grows(const struct taskshared_counters *a, const struct taskshared_counters *b)
{
	return b->requested >= a->requested && b->granted >= a->granted &&
	       b->denied >= a->denied && b->yielded >= a->yielded &&
	       b->expired >= a->expired && b->ended >= a->ended &&
	       b->delay_ns >= a->delay_ns && b->delay_max_ns >= a->delay_max_ns &&
	       b->overrun_ns >= a->overrun_ns;
}

TEST(identity)
{
	struct taskshared_counters last[THREADS] = { 0 }, now, before, totals, sum = { 0 };
	unsigned int i, looks = 0, wrong = 0, busy = 0;
	struct tst_crew crew = { .count = THREADS, .work = contend };
	uint64_t end, sections = 0;
	const char *message = "";

	crew.fd = tst_open();
	ASSERT_LE(0, crew.fd)
		TH_LOG("%s: %s", TASKSHARED_DEVICE, strerror(errno));
	ASSERT_EQ(0, tst_totals(&before));
	ASSERT_EQ(0, tst_crew_start(&crew));
	for (i = 0; i < THREADS; i++)
		ASSERT_EQ(0, crew.members[i].error);

	end = tst_now() + RUN_MS * TST_MSEC;
	while (tst_now() < end) {
		for (i = 0; i < THREADS; i++) {
			ASSERT_EQ(0, tst_counters(crew.fd, crew.members[i].tid, &now));
			looks++;
			busy += now.active != 0;
			if (now.active <= 1 && tst_adds_up(&now, &message) && grows(&last[i], &now)) {
				last[i] = now;
				continue;
			}
			if (!wrong++)
				TH_LOG("thread %u: %s", i, *message ? message : "a counter fell");
		}
		ASSERT_EQ(0, tst_totals(&totals));
		if (!tst_adds_up(&totals, &message) && !wrong++)
			TH_LOG("totals: %s", message);
		if (totals.active > THREADS && !wrong++)
			TH_LOG("totals: %llu delays active", (unsigned long long)totals.active);
		/* A timer that ends wakes a real-time thread there, beside which are no delays. */
		tst_sleep((tst_preempt_rt() ? 9 : 1) * TST_MSEC);
	}
	tst_crew_stop(&crew);
	EXPECT_EQ(0, wrong);
	EXPECT_LE(THREADS * 2, looks);

	for (i = 0; i < THREADS; i++) {
		struct taskshared_counters *mine = &results[i].counters;

		EXPECT_EQ(0, results[i].error);
		EXPECT_TRUE(tst_adds_up(mine, &message))
			TH_LOG("thread %u: %s", i, message);
		EXPECT_EQ(0, mine->active);
		sections += results[i].sections;
		tst_add(&sum, mine);
	}
	ASSERT_EQ(0, tst_totals(&totals));
	EXPECT_TRUE(tst_adds_up(&totals, &message))
		TH_LOG("totals: %s", message);
	totals = tst_difference(&totals, &before);
	tst_print_counters("totals", &totals);
	printf("# %llu sections, %u snapshots, %u of them inside a delay\n",
	       (unsigned long long)sections, looks, busy);

	EXPECT_EQ(lock.sections, sections);
	EXPECT_LE(1, totals.granted);
	/*
	 * With several emulated CPUs a delay may be over before anybody sees it, and on
	 * PREEMPT_RT a real-time thread waits after most interrupts.
	 */
	if (tst_cpus() == 1 && !tst_preempt_rt()) {
		EXPECT_LE(10, totals.granted);
		EXPECT_LE(1, totals.yielded);
	}
	EXPECT_EQ(0, totals.active);
	EXPECT_TRUE(tst_same(&sum, &totals, &message))
		TH_LOG("threads and totals: %s", message);
	close(crew.fd);
}

TEST_HARNESS_MAIN
