// SPDX-License-Identifier: MIT
/*
 * Beside others that sit on schedule(), and with what the hooks stand on switched
 * off. Delays may be lost, never more than that, and `health` says so.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "kselftest_harness.h"
#include "helpers/taskshared_test.h"

#define TRACEFS	"/sys/kernel/tracing/"
#define ENOUGH	3
/* Some hundred ticks. */
#define LIMIT	(4 * TST_SEC)

/* The others */

static int perf_fd = -1;

static int tracer(const char *name)
{
	return tst_write_file(TRACEFS "set_ftrace_filter", "schedule\n", O_TRUNC) ?:
	       tst_write_file(TRACEFS "current_tracer", name, 0);
}

static int tracer_on(void)
{
	return tracer("function");
}

static int graph_on(void)
{
	return tracer("function_graph");
}

static int tracer_off(void)
{
	return tst_write_file(TRACEFS "current_tracer", "nop", 0) ?:
	       tst_write_file(TRACEFS "set_ftrace_filter", "\n", O_TRUNC);
}

static int probe(const char *definition)
{
	return tst_write_file(TRACEFS "kprobe_events", definition, O_APPEND) ?:
	       tst_write_file(TRACEFS "events/kprobes/beside/enable", "1", 0);
}

static int kprobe_on(void)
{
	return probe("p:beside schedule\n");
}

static int kretprobe_on(void)
{
	return probe("r:beside schedule\n");
}

static int probe_off(void)
{
	return tst_write_file(TRACEFS "events/kprobes/beside/enable", "0", 0) ?:
	       tst_write_file(TRACEFS "kprobe_events", "-:beside\n", O_APPEND);
}

static int perf_on(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 100 * TST_USEC,
		.sample_type = PERF_SAMPLE_IP,
	};

	perf_fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	return perf_fd < 0 ? errno : 0;
}

static int perf_off(void)
{
	close(perf_fd);
	perf_fd = -1;
	return 0;
}

/* Does the other one, too, see what it wants to? */
static bool other_sees(void)
{
	char text[4096], *line, *rest = text;
	uint64_t count;

	if (perf_fd >= 0)
		return read(perf_fd, &count, sizeof(count)) == sizeof(count) && count;
	if (tst_read_file(TRACEFS "trace", text, sizeof(text)) < 0)
		return false;
	while ((line = strsep(&rest, "\n")))
		if (line[0] != '#' && strstr(line, "schedule"))
			return true;
	return false;
}

static const struct other {
	const char *name;
	int (*on)(void);
	int (*off)(void);
} others[] = {
	{ "function tracer", tracer_on, tracer_off },
	{ "function graph tracer", graph_on, tracer_off },
	{ "kprobe", kprobe_on, probe_off },
	{ "kretprobe", kretprobe_on, probe_off },
	{ "perf", perf_on, perf_off },
};

FIXTURE(beside)
{
	struct tst_hog hog;
	int fd;
	struct task_sharedinfo *slot;
};

FIXTURE_VARIANT(beside)
{
	const char *parameters;
};

FIXTURE_VARIANT_ADD(beside, auto)
{
	.parameters = "",
};

FIXTURE_VARIANT_ADD(beside, kprobe)
{
	.parameters = "hook=kprobe",
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

static uint32_t health(FIXTURE_DATA(beside) *self)
{
	struct taskshared_info info = { 0 };

	return ioctl(self->fd, TASKSHARED_IOC_INFO, &info) ? ~0U : info.health;
}

/* 0 or the errno. */
static int take_slot(FIXTURE_DATA(beside) *self)
{
	self->fd = tst_open();
	if (self->fd < 0 || tst_slot_offset(self->fd) < 0)
		return errno;
	self->slot = tst_slot(self->fd);
	return self->slot ? 0 : errno;
}

static void leave(struct __test_metadata *_metadata, FIXTURE_DATA(beside) *self)
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
static uint64_t grants(FIXTURE_DATA(beside) *self)
{
	struct taskshared_counters counters;
	uint64_t end = tst_now() + LIMIT, before;

	if (tst_counters(self->fd, 0, &counters))
		return 0;
	before = counters.granted;
	do {
		uint64_t slice = tst_now() + 20 * TST_MSEC;

		while (!tst_late(slice))
			if (self->slot->sched_delay != TASK_PREEMPT_DELAY_GRANTED)
				tst_request(self->slot);
		if (tst_counters(self->fd, 0, &counters))
			return 0;
	} while (counters.granted - before < ENOUGH && !health(self) && tst_now() < end);
	return counters.granted - before;
}

static void check_beside(struct __test_metadata *_metadata, FIXTURE_DATA(beside) *self,
			 const char *parameters, const struct other *other, bool first)
{
	uint64_t granted;
	int error;

	printf("# %s, %s\n", other->name, first ? "there first" : "comes later");
	if (first)
		ASSERT_EQ(0, other->on());
	error = tst_load(parameters);
	if (error) {
		/* A clear refusal: the kernel log says why. */
		printf("# refused: %s\n", strerror(error));
		EXPECT_TRUE(first);
		EXPECT_TRUE(error == EBUSY || error == ENOENT);
		EXPECT_EQ(0, other->off());
		return;
	}
	ASSERT_EQ(0, take_slot(self));
	if (!first)
		ASSERT_EQ(0, other->on());

	granted = grants(self);
	printf("# %llu delays, health %#x\n", (unsigned long long)granted, health(self));
	if (granted < ENOUGH)
		EXPECT_EQ(TASKSHARED_HEALTH_LOST, health(self));
	EXPECT_TRUE(other_sees());
	EXPECT_EQ(0, other->off());

	EXPECT_LE(ENOUGH, grants(self) + grants(self));
	EXPECT_EQ(0, health(self));
	leave(_metadata, self);
	EXPECT_TRUE(tst_unload_soon());
}

/* Each of them twice, with seconds for those that are blind. */
TEST_F_TIMEOUT(beside, others_on_schedule, 120)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(others); i++) {
		check_beside(_metadata, self, variant->parameters, &others[i], true);
		check_beside(_metadata, self, variant->parameters, &others[i], false);
	}
}

/* What the hooks stand on */

static const struct toggle {
	const char *path;
	uint32_t health;
} toggles[] = {
	{ "/proc/sys/kernel/ftrace_enabled", TASKSHARED_HEALTH_FTRACE },
	{ "/sys/kernel/debug/kprobes/enabled", TASKSHARED_HEALTH_KPROBES },
};

/*
 * Whether the hook in use needs it is known once the module is loaded. Newer kernels
 * do not let anybody switch ftrace off.
 */
static bool needed(struct __test_metadata *_metadata, FIXTURE_DATA(beside) *self,
		   const struct toggle *toggle)
{
	int error = tst_write_file(toggle->path, "0", 0);
	bool needed;

	if (error == EOPNOTSUPP) {
		printf("# %s: cannot be switched off\n", toggle->path);
		return false;
	}
	EXPECT_EQ(0, error);
	self->fd = tst_open();
	needed = health(self) & toggle->health;
	EXPECT_EQ(0, tst_write_file(toggle->path, "1", 0));
	close(self->fd);
	/* sched_yield() is hooked by ftrace in any case. */
	EXPECT_TRUE(needed || toggle->health != TASKSHARED_HEALTH_FTRACE);
	return needed;
}

static void check_toggle(struct __test_metadata *_metadata, FIXTURE_DATA(beside) *self,
			 const char *parameters, const struct toggle *toggle)
{
	/* Before the first slot. */
	ASSERT_EQ(0, tst_write_file(toggle->path, "0", 0));
	EXPECT_EQ(EAGAIN, take_slot(self));
	EXPECT_EQ(toggle->health, health(self));
	ASSERT_EQ(0, tst_write_file(toggle->path, "1", 0));
	close(self->fd);
	ASSERT_EQ(0, take_slot(self));
	EXPECT_LE(ENOUGH, grants(self));

	/* While there is one. */
	ASSERT_EQ(0, tst_write_file(toggle->path, "0", 0));
	grants(self);
	EXPECT_EQ(toggle->health, health(self) & toggle->health);
	ASSERT_EQ(0, tst_write_file(toggle->path, "1", 0));
	EXPECT_LE(ENOUGH, grants(self) + grants(self));
	EXPECT_EQ(0, health(self));

	/* Unloading in that state, and loading. */
	ASSERT_EQ(0, tst_write_file(toggle->path, "0", 0));
	leave(_metadata, self);
	EXPECT_TRUE(tst_unload_soon());
	EXPECT_EQ(EAGAIN, tst_load(parameters));
	ASSERT_EQ(0, tst_write_file(toggle->path, "1", 0));
	ASSERT_EQ(0, tst_load(parameters));
}

TEST_F_TIMEOUT(beside, switched_off, 60)
{
	unsigned int i;

	ASSERT_EQ(0, tst_load(variant->parameters));
	for (i = 0; i < ARRAY_SIZE(toggles); i++) {
		if (!needed(_metadata, self, &toggles[i]))
			continue;
		printf("# %s\n", toggles[i].path);
		check_toggle(_metadata, self, variant->parameters, &toggles[i]);
	}
	EXPECT_TRUE(tst_unload_soon());
}

TEST_HARNESS_MAIN
