// SPDX-License-Identifier: MIT
/*
 * A thread that asks for delays gets no more of the CPU than one that does not,
 * and one that gives the CPU back early no less. For virtual time on one CPU.
 */

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "helpers/taskshared_test.h"

#define MAX_HOGS	2
/* An interruption as long as this is another thread's turn. */
#define TURN		(200 * TST_USEC)
#define ENOUGH		50

#define AUTOGROUP	"/proc/sys/kernel/sched_autogroup_enabled"
#define CGROUPS		"/sys/fs/cgroup/"
#define CGROUP		CGROUPS "taskshared-fairness"

enum manner { QUIET, NEVER_YIELDS, YIELDS_BY_CALL, YIELDS_BY_SCHED_YIELD };

static const struct {
	const char *name;
	uint64_t run;
} manners[] = {
	[QUIET] = { "no requests", 2 * TST_SEC },
	[NEVER_YIELDS] = { "never yields", 5 * TST_SEC },
	[YIELDS_BY_CALL] = { "yields by the call", 2 * TST_SEC },
	[YIELDS_BY_SCHED_YIELD] = { "yields by sched_yield", 2 * TST_SEC },
};

/**
 * struct setting - who shares the CPU with the thread that asks
 * @hogs: threads, of another process
 * @nice: of the one that asks
 * @quota: ... and its bandwidth, as text for cpu.max
 * @sessions: two of them, one for the hogs and one for the thread that asks
 */
struct setting {
	unsigned int hogs;
	int nice;
	const char *quota;
	bool sessions;
};

/**
 * struct share - of the CPU, in millionths
 * @charged: by the kernel's account
 * @seen: by the thread's own: a clock that goes on without a leap
 * @granted: delays
 * @error: errno, if there is no result
 */
struct share {
	uint64_t charged;
	uint64_t seen;
	uint64_t granted;
	int error;
};

static void ask(int fd, struct task_sharedinfo *slot, enum manner manner)
{
	if (manner == QUIET || tst_look(slot) != TASK_PREEMPT_DELAY_GRANTED)
		return;
	if (manner == YIELDS_BY_CALL)
		ioctl(fd, TASKSHARED_IOC_YIELD, 0);
	else if (manner == YIELDS_BY_SCHED_YIELD)
		sched_yield();
}

/* The moment at which the thread gets the CPU back. */
static uint64_t next_turn(void)
{
	uint64_t last = tst_now(), now;

	while ((now = tst_now()) < last + TURN)
		last = now;
	return now;
}

/* From turn to turn, so that no part of one is counted. */
static void measure(int fd, struct task_sharedinfo *slot, enum manner manner,
		    struct share *share)
{
	uint64_t begun = next_turn(), used = tst_cpu_time(), last = begun, now, gap;
	uint64_t end = begun + manners[manner].run, seen = 0;

	while (1) {
		now = tst_now();
		gap = now - last;
		last = now;
		if (gap < TURN)
			seen += gap;
		else if (now >= end)
			break;
		ask(fd, slot, manner);
	}
	slot->sched_delay = 0;
	used = tst_cpu_time() - used;
	share->charged = used * 1000000 / (now - begun);
	share->seen = seen * 1000000 / (now - begun);
}

struct asker {
	const struct setting *setting;
	enum manner manner;
	struct share *share;
};

static int settle_in(const struct setting *setting)
{
	if (tst_pin(0) || setpriority(PRIO_PROCESS, 0, setting->nice) ||
	    (setting->sessions && setsid() < 0))
		return errno;
	return setting->quota ? tst_write_file(CGROUP "/cgroup.procs", "0", 0) : 0;
}

static int ask_in_child(void *arg)
{
	struct taskshared_counters counters;
	struct asker *self = arg;
	struct share *share = self->share;
	struct task_sharedinfo *slot;
	int fd;

	share->error = settle_in(self->setting);
	if (share->error)
		return 1;
	fd = tst_open();
	slot = tst_slot(fd);
	if (!slot) {
		share->error = errno;
		return 1;
	}
	measure(fd, slot, self->manner, share);
	tst_counters(fd, 0, &counters);
	share->granted = counters.granted;
	printf("# %s: %llu.%04llu %% of the CPU charged, %llu.%04llu %% seen\n",
	       manners[self->manner].name, (unsigned long long)share->charged / 10000,
	       (unsigned long long)share->charged % 10000,
	       (unsigned long long)share->seen / 10000,
	       (unsigned long long)share->seen % 10000);
	tst_print_counters(manners[self->manner].name, &counters);
	return 0;
}

/* A process of hogs; its id. */
static pid_t start_hogs(const struct setting *setting)
{
	struct tst_hog hogs[MAX_HOGS];
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if ((setting->sessions && setsid() < 0) || tst_hogs_start(hogs, setting->hogs, 0))
		_exit(1);
	while (1)
		pause();
}

FIXTURE(fairness) {
	struct share *share;
};

FIXTURE_SETUP(fairness)
{
	/* Children write to it. */
	self->share = mmap(NULL, sizeof(*self->share), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->share);
}

FIXTURE_TEARDOWN(fairness)
{
	munmap(self->share, sizeof(*self->share));
}

static struct share run(struct __test_metadata *_metadata, FIXTURE_DATA(fairness) *self,
			const struct setting *setting, enum manner manner)
{
	struct asker asker = { .setting = setting, .manner = manner, .share = self->share };
	pid_t hogs = start_hogs(setting);

	memset(self->share, 0, sizeof(*self->share));
	EXPECT_LT(0, hogs);
	EXPECT_EQ(0, tst_in_child(ask_in_child, &asker))
		TH_LOG("%s: %s", manners[manner].name, strerror(self->share->error));
	kill(hogs, SIGKILL);
	EXPECT_EQ(256 + SIGKILL, tst_wait_child(hogs));
	return *self->share;
}

/*
 * @expected: the share by rights, in millionths. Without requests it has to come out
 * too, or the comparison means nothing; a quota may be used up to some per cent less.
 */
static void check_quiet(struct __test_metadata *_metadata, const struct share *quiet,
			uint64_t expected)
{
	EXPECT_GE(quiet->charged * 100, expected * 95);
	EXPECT_LE(quiet->charged * 100, expected * 101);
	EXPECT_GE(quiet->seen * 100, expected * 95);
	EXPECT_LE(quiet->seen * 100, expected * 101);
	EXPECT_EQ(0, quiet->granted);
}

/* A delay for nothing in each slice of 4 ms would be 1.2 % more: half of that shows. */
static void check_not_more(struct __test_metadata *_metadata, const struct share *share,
			   uint64_t expected, const char *name)
{
	EXPECT_LE(ENOUGH, share->granted)
		TH_LOG("%s: too few delays to tell anything", name);
	EXPECT_LE(share->charged * 1000, expected * 1005)
		TH_LOG("%s: more than 0.5 %% above its share", name);
	EXPECT_LE(share->seen * 1000, expected * 1005)
		TH_LOG("%s: runs on without being charged", name);
}

static void check_setting(struct __test_metadata *_metadata, FIXTURE_DATA(fairness) *self,
			  const struct setting *setting, uint64_t expected)
{
	struct share share;

	share = run(_metadata, self, setting, QUIET);
	check_quiet(_metadata, &share, expected);
	share = run(_metadata, self, setting, NEVER_YIELDS);
	check_not_more(_metadata, &share, expected, manners[NEVER_YIELDS].name);
}

TEST_F(fairness, two_hogs)
{
	const struct setting setting = { .hogs = 2 };
	const uint64_t expected = 1000000 / 3;
	struct share quiet, other;
	enum manner manner;

	quiet = run(_metadata, self, &setting, QUIET);
	check_quiet(_metadata, &quiet, expected);
	for (manner = NEVER_YIELDS; manner <= YIELDS_BY_SCHED_YIELD; manner++) {
		other = run(_metadata, self, &setting, manner);
		check_not_more(_metadata, &other, expected, manners[manner].name);
		EXPECT_GE(other.seen * 100, quiet.seen * 99)
			TH_LOG("%s: more than 1 %% below its share", manners[manner].name);
	}
}

/* The kernel's weights: 1024 at nice 0, 110 at nice 10. */
TEST_F(fairness, nice_10)
{
	const struct setting setting = { .hogs = 1, .nice = 10 };

	check_setting(_metadata, self, &setting, 110 * 1000000ULL / (110 + 1024));
}

/* Sessions share the CPU, and then the threads in each. */
TEST_F(fairness, autogroup)
{
	const struct setting setting = { .hogs = 2, .sessions = true };
	char before[8];

	if (tst_read_file(AUTOGROUP, before, sizeof(before)) < 0)
		SKIP(return, "this kernel has no autogroups");
	ASSERT_EQ(0, tst_write_file(AUTOGROUP, "1", 0));
	check_setting(_metadata, self, &setting, 1000000 / 2);
	EXPECT_EQ(0, tst_write_file(AUTOGROUP, before, 0));
}

/* With a period so short that a delay in each would show. */
TEST_F(fairness, quota_of_a_cgroup)
{
	const struct setting setting = { .hogs = 1, .quota = "2000 10000" };

	ASSERT_EQ(0, tst_write_file(CGROUPS "cgroup.subtree_control", "+cpu", 0));
	ASSERT_EQ(0, mkdir(CGROUP, 0755));
	EXPECT_EQ(0, tst_write_file(CGROUP "/cpu.max", setting.quota, 0));
	check_setting(_metadata, self, &setting, 1000000 / 5);
	EXPECT_EQ(0, rmdir(CGROUP));
	EXPECT_EQ(0, tst_write_file(CGROUPS "cgroup.subtree_control", "-cpu", 0));
}

TEST_HARNESS_MAIN
