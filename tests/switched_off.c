// SPDX-License-Identifier: MIT
/*
 * What the hooks stand on, switched off: delays are lost, nothing more, and `health`
 * says so.
 */

#include "helpers/beside_fixture.h"

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
	unload(_metadata, self);
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
	unload(_metadata, self);
}

TEST_HARNESS_MAIN
