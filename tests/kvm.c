// SPDX-License-Identifier: MIT
/*
 * A thread that runs a virtual CPU: when its guest is interrupted it passes through
 * the scheduler on a way of its own, in the KVM_RUN call. No delay is granted there,
 * and one that was granted before ends there in time. For virtual time on one CPU.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>

#include <linux/kvm.h>

#include "kselftest_harness.h"
#include "helpers/taskshared_test.h"

#define CAP		(50 * TST_USEC)
/* Out of the guest and into the host's scheduler. */
#define TOLERANCE	(20 * TST_USEC)
#define RUN		(400 * TST_MSEC)
#define ENOUGH		20

/* Where the guest's only page is, and in it "jmp ." */
#define GUEST_PAGE	0x1000
static const unsigned char guest_code[] = { 0xeb, 0xfe };

FIXTURE(kvm) {
	int fd;
	struct task_sharedinfo *slot;
	struct tst_hog hog;
	int dev;
	int vm;
	int vcpu;
	void *page;
	timer_t timer;
};

static void on_alarm(int signal)
{
	(void)signal;
}

/* A timer whose signal brings this thread back from the guest. */
static int make_timer(timer_t *timer)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM };
	struct sigaction action = { .sa_handler = on_alarm };

	event._sigev_un._tid = gettid();
	return sigaction(SIGALRM, &action, NULL) || timer_create(CLOCK_MONOTONIC, &event, timer);
}

/* A machine with one page and one CPU in real mode. */
static int make_guest(FIXTURE_DATA(kvm) *self)
{
	struct kvm_regs regs = { .rip = GUEST_PAGE, .rflags = 2 };
	struct kvm_userspace_memory_region region = {
		.guest_phys_addr = GUEST_PAGE,
		.memory_size = tst_page_size(),
	};
	struct kvm_sregs sregs;

	self->page = mmap(NULL, tst_page_size(), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (self->page == MAP_FAILED)
		return -1;
	memcpy(self->page, guest_code, sizeof(guest_code));
	region.userspace_addr = (uintptr_t)self->page;

	self->vm = ioctl(self->dev, KVM_CREATE_VM, 0);
	if (self->vm < 0 || ioctl(self->vm, KVM_SET_USER_MEMORY_REGION, &region))
		return -1;
	self->vcpu = ioctl(self->vm, KVM_CREATE_VCPU, 0);
	if (self->vcpu < 0 || ioctl(self->vcpu, KVM_GET_SREGS, &sregs))
		return -1;
	sregs.cs.base = 0;
	sregs.cs.selector = 0;
	return ioctl(self->vcpu, KVM_SET_SREGS, &sregs) ||
	       ioctl(self->vcpu, KVM_SET_REGS, &regs) ? -1 : 0;
}

FIXTURE_SETUP(kvm)
{
	self->dev = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	if (self->dev < 0 && errno == ENOENT)
		SKIP(return, "this machine has no KVM");
	ASSERT_LE(0, self->dev);
	ASSERT_EQ(0, tst_pin(0));
	self->fd = tst_open();
	ASSERT_LE(0, self->fd)
		TH_LOG("%s: %s", TASKSHARED_DEVICE, strerror(errno));
	self->slot = tst_slot(self->fd);
	ASSERT_NE(NULL, self->slot);
	ASSERT_EQ(0, make_timer(&self->timer));
	ASSERT_EQ(0, make_guest(self))
		TH_LOG("no guest: %s", strerror(errno));
	ASSERT_EQ(0, tst_hogs_start(&self->hog, 1, 0));
}

FIXTURE_TEARDOWN(kvm)
{
	self->slot->sched_delay = 0;
	tst_hogs_stop(&self->hog, 1);
	timer_delete(self->timer);
	close(self->vcpu);
	close(self->vm);
	close(self->dev);
	close(self->fd);
}

/* Is in the guest for @ns, and in nothing else. */
static bool run_guest(FIXTURE_DATA(kvm) *self, uint64_t ns)
{
	struct itimerspec once = { .it_value = tst_timespec(ns) };

	timer_settime(self->timer, 0, &once, NULL);
	return ioctl(self->vcpu, KVM_RUN, 0) < 0 && errno == EINTR;
}

TEST_F(kvm, no_delay_in_the_guest)
{
	uint64_t begun, used, elapsed;
	struct taskshared_counters counters;
	long switches;

	/* The pages the guest needs are there from now on. */
	ASSERT_TRUE(run_guest(self, TST_MSEC));
	begun = tst_now();
	used = tst_cpu_time();
	switches = tst_involuntary_switches();
	tst_request(self->slot);
	EXPECT_TRUE(run_guest(self, RUN));
	self->slot->sched_delay = 0;
	switches = tst_involuntary_switches() - switches;
	used = tst_cpu_time() - used;
	elapsed = tst_now() - begun;
	ASSERT_EQ(0, tst_counters(self->fd, 0, &counters));
	tst_print_counters("in the guest", &counters);
	printf("# in the guest: %ld involuntary switches, %llu of %llu us\n", switches,
	       (unsigned long long)(used / TST_USEC), (unsigned long long)(elapsed / TST_USEC));

	EXPECT_LE(ENOUGH, switches);
	/* Before and after KVM_RUN it is a thread like any other. */
	EXPECT_LE(counters.requested, 1);
	EXPECT_LE(elapsed * 45, used * 100);
	EXPECT_LE(used * 100, elapsed * 55);
}

TEST_F(kvm, delay_ends_in_the_guest)
{
	struct taskshared_counters counters;
	uint64_t end = tst_now() + 2 * RUN;
	unsigned int delays = 0, stale = 0;
	const char *message;

	while (delays < 2 * ENOUGH && tst_now() < end) {
		tst_request(self->slot);
		while (self->slot->sched_delay != TASK_PREEMPT_DELAY_GRANTED && tst_now() < end)
			;
		EXPECT_TRUE(run_guest(self, TST_MSEC));
		stale += self->slot->sched_delay == TASK_PREEMPT_DELAY_GRANTED;
		delays++;
	}
	ASSERT_EQ(0, tst_counters(self->fd, 0, &counters));
	tst_print_counters("into the guest", &counters);
	EXPECT_TRUE(tst_adds_up(&counters, &message))
		TH_LOG("%s", message);
	EXPECT_LE(ENOUGH, delays);
	EXPECT_EQ(0, stale);
	EXPECT_LE(ENOUGH, counters.granted);
	EXPECT_LE(ENOUGH / 2, counters.expired);
	EXPECT_LE(counters.delay_max_ns, CAP + TOLERANCE);
}

TEST_HARNESS_MAIN
