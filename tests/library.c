// SPDX-License-Identifier: MIT
/*
 * libtaskshared against the real device. For virtual time on one CPU, where a hog
 * makes the kernel ask for the CPU again and again.
 */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>

#include <taskshared.h>

#include "kselftest_harness.h"
#include "helpers/taskshared_test.h"

static struct task_sharedinfo *attached_slot(void)
{
	return taskshared_attach() ? NULL : taskshared_get_slot();
}

TEST(attach_is_lazy_and_idempotent)
{
	struct task_sharedinfo *slot, *proposed = NULL;

	EXPECT_EQ(NULL, taskshared_get_slot());
	taskshared_begin();
	slot = taskshared_get_slot();
	ASSERT_NE(NULL, slot);
	EXPECT_EQ((__u32)gettid(), slot->tid);
	EXPECT_EQ(TASK_PREEMPT_DELAY_REQ, slot->sched_delay);
	taskshared_begin();
	taskshared_end();
	EXPECT_EQ(TASK_PREEMPT_DELAY_REQ, slot->sched_delay);
	taskshared_end();
	EXPECT_EQ(0, slot->sched_delay);

	EXPECT_EQ(slot, attached_slot());
	EXPECT_EQ(0, taskshared_status());
	EXPECT_EQ(0, task_getshared(TASK_SHAREDINFO, 0, &proposed));
	EXPECT_EQ(slot, proposed);
	EXPECT_EQ(-1, task_getshared(TASK_SHAREDINFO, 1, &proposed));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(0, taskshared_yield());
	EXPECT_EQ(1, tst_count_mappings());
}

/*
 * Every delay granted inside a section is given back by its end, but for the few
 * that something else ended before, a kernel thread that was woken for instance.
 */
TEST(sections_yield)
{
	struct taskshared_counters counters;
	struct tst_hog hog;
	uint64_t end;

	ASSERT_EQ(0, tst_pin(0));
	ASSERT_EQ(0, taskshared_attach());
	ASSERT_EQ(0, tst_hogs_start(&hog, 1, 0));
	end = tst_now() + 500 * TST_MSEC;
	while (tst_now() < end) {
		taskshared_begin();
		tst_spin(10 * TST_USEC);
		taskshared_end();
	}
	tst_hogs_stop(&hog, 1);
	ASSERT_EQ(0, taskshared_get_counters(0, &counters));
	tst_print_counters("sections", &counters);
	EXPECT_LE(20, counters.granted);
	EXPECT_EQ(counters.granted, counters.yielded + counters.ended);
	EXPECT_LE(counters.ended, counters.granted / 20);
	EXPECT_EQ(0, counters.denied);
	EXPECT_LE(counters.delay_max_ns, 20 * TST_USEC);
}

static void *section(void *arg)
{
	(void)arg;
	taskshared_begin();
	taskshared_end();
	return (void *)(long)taskshared_status();
}

TEST(thread_end_releases)
{
	pthread_t thread;
	void *error;
	int i;

	ASSERT_NE(NULL, attached_slot());
	for (i = 0; i < 100; i++) {
		ASSERT_EQ(0, pthread_create(&thread, NULL, section, NULL));
		ASSERT_EQ(0, pthread_join(thread, &error));
		ASSERT_EQ(NULL, error);
	}
	EXPECT_EQ(1, tst_state("slots"));
	taskshared_detach();
	EXPECT_EQ(0, tst_state("slots"));
}

static int child_of_fork(void)
{
	struct task_sharedinfo *mine;

	if (taskshared_get_slot())
		return 1;
	/* It was open in the parent, and is a no-op here. */
	taskshared_end();
	taskshared_begin();
	mine = taskshared_get_slot();
	if (!mine || mine->tid != (__u32)gettid())
		return 2;
	taskshared_end();
	return taskshared_status() ? 3 : 0;
}

TEST(fork_in_a_section)
{
	struct task_sharedinfo *slot = attached_slot();
	int status;
	pid_t pid;

	ASSERT_NE(NULL, slot);
	taskshared_begin();
	pid = fork();
	if (!pid)
		_exit(child_of_fork());
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ((__u32)gettid(), slot->tid);
	/* The request is the parent's still, or has led to a delay that ended in waitpid(). */
	EXPECT_TRUE(slot->sched_delay == TASK_PREEMPT_DELAY_REQ || !slot->sched_delay);
	taskshared_end();
	EXPECT_EQ(0, slot->sched_delay);
}

TEST_HARNESS_MAIN
