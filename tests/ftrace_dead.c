// SPDX-License-Identifier: MIT
/*
 * ftrace gives up while the module's hooks are armed: they cannot be taken away any
 * more, and are called for ever. So the module must stay, whoever unloads it.
 */

#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helpers/beside_fixture.h"

/* Once for each boot, so with the default hook alone. */
TEST(rmmod_never_comes_back)
{
	FIXTURE_DATA(beside) beside = { .fd = -1 }, *self = &beside;
	uint64_t progress, end;
	int status;
	pid_t child;

	ASSERT_EQ(0, tst_pin(0));
	ASSERT_EQ(0, tst_hogs_start(&self->hog, 1, 0));
	ASSERT_EQ(0, tst_load(""));
	ASSERT_EQ(0, take_slot(self));
	EXPECT_LE(ENOUGH, grants(self));
	ASSERT_EQ(0, tst_insmod("/tests/ftrace_kill.ko", ""));
	EXPECT_EQ(TASKSHARED_HEALTH_FTRACE, health(self) & TASKSHARED_HEALTH_FTRACE);
	grants(self);

	/* Before the hooks are disarmed of themselves: that finds them stuck, too. */
	leave(_metadata, self);
	child = fork();
	if (!child) {
		/* Nobody waits for the end of its output. */
		close_range(0, ~0U, 0);
		syscall(SYS_delete_module, "taskshared", 0);
		_exit(0);
	}
	end = tst_now() + 3 * TST_SEC;
	progress = self->hog.progress;
	while (tst_now() < end)
		sched_yield();
	EXPECT_NE(progress, self->hog.progress);
	EXPECT_EQ(0, waitpid(child, &status, WNOHANG))
		TH_LOG("rmmod came back");
	EXPECT_EQ(0, access("/sys/module/taskshared", F_OK));
	EXPECT_NE(0, tst_unload());
	tst_hogs_stop(&self->hog, 1);
}

TEST_HARNESS_MAIN
