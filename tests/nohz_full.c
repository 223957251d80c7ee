// SPDX-License-Identifier: MIT
/*
 * A CPU that has no tick while one thread runs on it alone (nohz_full=1 on the
 * kernel command line): a delay is granted there as elsewhere, and its own timer
 * ends it where no tick would.
 */

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "kselftest_harness.h"
#include "helpers/taskshared_test.h"

#define CPU	1
#define DELAYS	100
#define LIMIT	(20 * TST_SEC)

FIXTURE(nohz_full) {
	int fd;
	struct task_sharedinfo *slot;
	struct taskshared_counters before;
};

FIXTURE_SETUP(nohz_full)
{
	char cpus[64];

	if (tst_read_file("/sys/devices/system/cpu/nohz_full", cpus, sizeof(cpus)) < 0)
		SKIP(return, "this kernel has no nohz_full");
	ASSERT_STREQ("1\n", cpus)
		TH_LOG("boot with nohz_full=1");
	ASSERT_EQ(0, tst_pin(CPU));
	self->fd = tst_open();
	ASSERT_LE(0, self->fd)
		TH_LOG("%s: %s", TASKSHARED_DEVICE, strerror(errno));
	self->slot = tst_slot(self->fd);
	ASSERT_NE(NULL, self->slot);
	ASSERT_EQ(0, tst_totals(&self->before));
}

FIXTURE_TEARDOWN(nohz_full)
{
	close(self->fd);
}

/*
 * Asks until there were @DELAYS delays, without giving any back; how many. By the
 * counters: where the host stops the guest, a delay is often over before its thread
 * sees it.
 */
static uint64_t ask(FIXTURE_DATA(nohz_full) *self)
{
	struct taskshared_counters counters = { 0 };
	uint64_t end = tst_now() + LIMIT, slice;

	while (counters.granted < DELAYS && tst_now() < end) {
		slice = tst_now() + 10 * TST_MSEC;
		while (!tst_late(slice))
			tst_look(self->slot);
		if (tst_counters(self->fd, 0, &counters))
			return 0;
	}
	return counters.granted;
}

static void check(struct __test_metadata *_metadata, FIXTURE_DATA(nohz_full) *self,
		  const char *name, uint64_t delays)
{
	struct taskshared_counters mine, totals;
	const char *message;

	self->slot->sched_delay = 0;
	ioctl(self->fd, TASKSHARED_IOC_YIELD, 0);
	ASSERT_EQ(0, tst_counters(self->fd, 0, &mine));
	ASSERT_EQ(0, tst_totals(&totals));
	totals = tst_difference(&totals, &self->before);
	tst_print_counters(name, &mine);
	EXPECT_LE(DELAYS, delays);
	EXPECT_TRUE(tst_adds_up(&mine, &message))
		TH_LOG("%s", message);
	EXPECT_LE(delays, mine.granted);
	EXPECT_EQ(0, mine.active);
	EXPECT_EQ(0, mine.refused_cap);
	/* Nothing else ends them, as a rule. */
	EXPECT_LE(mine.granted / 2, mine.expired);
	EXPECT_TRUE(tst_same(&mine, &totals, &message))
		TH_LOG("thread and totals: %s", message);
}

/* With two threads on the CPU the tick is there. */
TEST_F(nohz_full, beside_a_hog)
{
	struct tst_hog hog;
	uint64_t delays;

	ASSERT_EQ(0, tst_hogs_start(&hog, 1, CPU));
	delays = ask(self);
	tst_hogs_stop(&hog, 1);
	check(_metadata, self, "beside a hog", delays);
}

/**
 * struct sleeper - a thread that is woken now and then
 * @turns: how often it ran
 */
struct sleeper {
	pthread_t thread;
	volatile bool stop;
	uint64_t turns;
};

static void *sleep_and_run(void *arg)
{
	struct sleeper *self = arg;

	tst_pin(CPU);
	while (!self->stop) {
		tst_sleep(5 * TST_MSEC);
		self->turns++;
	}
	return NULL;
}

/* The thread is alone again and again, and the tick goes and comes. */
TEST_F(nohz_full, beside_a_sleeper)
{
	struct sleeper sleeper = { 0 };
	uint64_t delays;

	ASSERT_EQ(0, pthread_create(&sleeper.thread, NULL, sleep_and_run, &sleeper));
	delays = ask(self);
	sleeper.stop = true;
	pthread_join(sleeper.thread, NULL);
	check(_metadata, self, "beside a sleeper", delays);
	printf("# the sleeper ran %llu times\n", (unsigned long long)sleeper.turns);
	EXPECT_LE(delays / 4, sleeper.turns);
}

TEST_HARNESS_MAIN
