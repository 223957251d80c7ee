// SPDX-License-Identifier: MIT
/*
 * A BPF scheduler runs: threads of its class are not delayed, nor is anybody while one
 * of them waits; fair threads beside it are as ever; it may come and go. For virtual
 * time on one CPU.
 */

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "helpers/bpf_scheduler.h"
#include "helpers/delay_fixture.h"

#ifndef SCHED_EXT
#define SCHED_EXT	7
#endif

/* Its time slices are of 20 ms. */
#define SOME		5

/* On kernels that can. */
static int start(struct __test_metadata *_metadata, bool partial)
{
	int scheduler = bpf_scheduler_start(partial);

	EXPECT_LE(0, scheduler)
		TH_LOG("no BPF scheduler: %s", strerror(errno));
	EXPECT_TRUE(tst_wait_until(bpf_scheduler_runs(), 5000));
	return scheduler;
}

static struct taskshared_counters requests(struct __test_metadata *_metadata,
					   FIXTURE_DATA(delay) *self, const char *name)
{
	uint64_t progress = hog_progress(self);

	fresh_slot(_metadata, self);
	never_yield(self, RUN, CAP);
	EXPECT_NE(progress, hog_progress(self))
		TH_LOG("%s: the hog had no turn", name);
	return settle(_metadata, self, name);
}

TEST_F(delay, all_threads_are_of_its_class)
{
	struct taskshared_counters counters;
	int scheduler;

	if (!bpf_scheduler_known())
		SKIP(return, "this kernel is built without sched_ext");
	start_hogs(_metadata, self, 1);
	scheduler = start(_metadata, false);
	counters = requests(_metadata, self, "while it runs");
	EXPECT_EQ(0, counters.granted);
	EXPECT_LE(SOME, counters.refused_class);
	EXPECT_TRUE(bpf_scheduler_stop(scheduler));

	counters = requests(_metadata, self, "after it");
	EXPECT_LE(ENOUGH, counters.granted);
	EXPECT_EQ(0, counters.refused_class);
}

static void *be_of_its_class(void *arg)
{
	struct sched_param param = { 0 };
	struct tst_hog *hog = arg;

	if (sched_setscheduler(0, SCHED_EXT, &param))
		return (void *)(long)errno;
	while (!hog->stop)
		hog->progress++;
	return NULL;
}

TEST_F(delay, some_threads_are_of_its_class)
{
	struct taskshared_counters counters;
	struct tst_hog other = { 0 };
	void *error;
	int scheduler;

	if (!bpf_scheduler_known())
		SKIP(return, "this kernel is built without sched_ext");
	start_hogs(_metadata, self, 1);
	scheduler = start(_metadata, true);
	counters = requests(_metadata, self, "none of its class");
	EXPECT_LE(ENOUGH, counters.granted);

	ASSERT_EQ(0, pthread_create(&other.thread, NULL, be_of_its_class, &other));
	/* It has no turn while others run; that it is there shows in what is refused. */
	tst_sleep(50 * TST_MSEC);
	counters = requests(_metadata, self, "one of its class waits");
	EXPECT_EQ(0, counters.granted);
	EXPECT_LE(ENOUGH, counters.refused_rt);
	other.stop = true;
	pthread_join(other.thread, &error);
	EXPECT_EQ(NULL, error);

	counters = requests(_metadata, self, "it is gone");
	EXPECT_LE(ENOUGH, counters.granted);
	EXPECT_TRUE(bpf_scheduler_stop(scheduler));
}

/* Requests while schedulers come and go. */

/**
 * struct requester - a thread that asks all the time
 * @stop: set it to end the thread
 * @counters: its own, at the end
 */
struct requester {
	pthread_t thread;
	int fd;
	volatile bool stop;
	struct taskshared_counters counters;
};

static void *ask(void *arg)
{
	struct requester *self = arg;
	struct task_sharedinfo *slot = tst_slot(self->fd);

	while (slot && !self->stop)
		tst_look(slot);
	if (!slot)
		return (void *)(long)errno;
	slot->sched_delay = 0;
	ioctl(self->fd, TASKSHARED_IOC_YIELD, 0);
	return (void *)(long)(tst_counters(self->fd, 0, &self->counters) ? errno : 0);
}

TEST_F(delay, schedulers_come_and_go)
{
	struct requester requester = { .fd = self->fd };
	const char *message;
	int i, scheduler;
	void *error;

	if (!bpf_scheduler_known())
		SKIP(return, "this kernel is built without sched_ext");
	start_hogs(_metadata, self, 1);
	ASSERT_EQ(0, pthread_create(&requester.thread, NULL, ask, &requester));
	for (i = 0; i < 10; i++) {
		tst_sleep(50 * TST_MSEC);
		scheduler = start(_metadata, i % 2);
		tst_sleep(50 * TST_MSEC);
		EXPECT_TRUE(bpf_scheduler_stop(scheduler));
	}
	requester.stop = true;
	pthread_join(requester.thread, &error);
	EXPECT_EQ(NULL, error);
	tst_print_counters("come and go", &requester.counters);
	EXPECT_TRUE(tst_adds_up(&requester.counters, &message))
		TH_LOG("%s", message);
	EXPECT_LE(ENOUGH, requester.counters.granted);
	EXPECT_LE(SOME, requester.counters.refused_class);
	EXPECT_EQ(0, requester.counters.active);
}

/* Loading and unloading while one runs. */
TEST_F(delay, the_module_comes_and_goes)
{
	struct taskshared_counters counters;
	int scheduler;

	if (!bpf_scheduler_known())
		SKIP(return, "this kernel is built without sched_ext");
	scheduler = start(_metadata, false);
	ASSERT_EQ(0, ioctl(self->fd, TASKSHARED_IOC_RELEASE, 0));
	munmap(self->slot, tst_page_size());
	close(self->fd);
	ASSERT_TRUE(tst_unload_soon());
	ASSERT_EQ(0, tst_load(""));
	self->fd = tst_open();
	self->slot = NULL;
	EXPECT_TRUE(bpf_scheduler_stop(scheduler));
	start_hogs(_metadata, self, 1);
	counters = requests(_metadata, self, "loaded beside one");
	EXPECT_LE(ENOUGH, counters.granted);
}

TEST_HARNESS_MAIN
