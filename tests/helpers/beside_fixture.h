/* SPDX-License-Identifier: MIT */
/*
 * A thread that asks for delays, beside others that sit on the functions the module
 * hooks: the fixture of tests that load and unload the module themselves.
 */
#ifndef TASKSHARED_BESIDE_FIXTURE_H
#define TASKSHARED_BESIDE_FIXTURE_H

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "kselftest_harness.h"
#include "helpers/taskshared_test.h"

#define TRACEFS	"/sys/kernel/tracing/"
#define KPROBES	"/sys/kernel/debug/kprobes/"
#define ENOUGH	3
/* Some hundred ticks. */
#define LIMIT	(4 * TST_SEC)

FIXTURE(beside)
{
	struct tst_hog hog;
	int fd;
	struct task_sharedinfo *slot;
};

FIXTURE_VARIANT(beside)
{
	const char *parameters;
	/* whether it is a kprobe at the entry of schedule() */
	bool kprobe;
};

FIXTURE_VARIANT_ADD(beside, auto)
{
	.parameters = "",
};

FIXTURE_VARIANT_ADD(beside, kprobe)
{
	.parameters = "hook=kprobe",
	.kprobe = true,
};

FIXTURE_SETUP(beside)
{
	ASSERT_EQ(0, tst_pin(0));
	ASSERT_EQ(0, tst_hogs_start(&self->hog, 1, 0));
	self->fd = -1;
}

FIXTURE_TEARDOWN(beside)
{
	tst_hogs_stop(&self->hog, 1);
	tst_unload_soon();
}

static inline uint32_t health(FIXTURE_DATA(beside) *self)
{
	struct taskshared_info info = { 0 };

	return ioctl(self->fd, TASKSHARED_IOC_INFO, &info) ? ~0U : info.health;
}

/* 0 or the errno. */
static inline int take_slot(FIXTURE_DATA(beside) *self)
{
	self->fd = tst_open();
	if (self->fd < 0 || tst_slot_offset(self->fd) < 0)
		return errno;
	self->slot = tst_slot(self->fd);
	return self->slot ? 0 : errno;
}

static inline void leave(struct __test_metadata *_metadata, FIXTURE_DATA(beside) *self)
{
	struct taskshared_counters counters;
	const char *message;

	self->slot->sched_delay = 0;
	ioctl(self->fd, TASKSHARED_IOC_YIELD);
	ASSERT_EQ(0, tst_counters(self->fd, 0, &counters));
	tst_print_counters("counters", &counters);
	EXPECT_TRUE(tst_adds_up(&counters, &message))
		TH_LOG("%s", message);
	EXPECT_EQ(0, ioctl(self->fd, TASKSHARED_IOC_RELEASE));
	munmap(self->slot, tst_page_size());
	close(self->fd);
	self->fd = -1;
}

/* Requests until some delays were granted, or it is clear that none are. */
static inline uint64_t grants(FIXTURE_DATA(beside) *self)
{
	struct taskshared_counters counters;
	uint64_t end = tst_now() + LIMIT, before;

	if (tst_counters(self->fd, 0, &counters))
		return 0;
	before = counters.granted;
	do {
		uint64_t slice = tst_now() + 20 * TST_MSEC;

		while (!tst_late(slice))
			tst_look(self->slot);
		if (tst_counters(self->fd, 0, &counters))
			return 0;
	} while (counters.granted - before < ENOUGH && !health(self) && tst_now() < end);
	return counters.granted - before;
}

/* Unloads the module: nothing of it is left, and threads take turns as ever. */
static inline void unload(struct __test_metadata *_metadata, FIXTURE_DATA(beside) *self)
{
	uint64_t progress;

	EXPECT_TRUE(tst_unload_soon());
	EXPECT_FALSE(tst_file_has(KPROBES "list", "[taskshared]"));
	EXPECT_FALSE(tst_file_has(TRACEFS "enabled_functions", "taskshared"));
	EXPECT_FALSE(tst_file_has(TRACEFS "enabled_functions", "x64_sys_sched_yield"));
	progress = self->hog.progress;
	tst_sleep(20 * TST_MSEC);
	EXPECT_NE(progress, self->hog.progress);
}

#endif /* TASKSHARED_BESIDE_FIXTURE_H */
