// SPDX-License-Identifier: MIT
/*
 * Beside a livepatch of schedule(). Where a hook at its entry is used only one of the
 * two can redirect it: whoever comes second is refused, by name. A probe on the call
 * (6.1) does not mind.
 */

#include <unistd.h>

#include "helpers/beside_fixture.h"

#define NAME	"livepatch_schedule"
#define MODULE	"/tests/" NAME ".ko"
#define PATCH	"/sys/kernel/livepatch/" NAME "/"
#define STATE	"/sys/kernel/debug/taskshared/state"

/* Gives 0 or the errno. */
static int patch(void)
{
	return tst_insmod(MODULE, "");
}

/*
 * Nearly all tasks sleep in schedule(), so that the patch stays in transition for them,
 * which its removal just turns round.
 */
static void unpatch(struct __test_metadata *_metadata)
{
	EXPECT_EQ(0, tst_write_file(PATCH "enabled", "0", 0));
	EXPECT_TRUE(tst_wait_until(access(PATCH "enabled", F_OK), 30000));
	EXPECT_TRUE(tst_wait_until(!tst_rmmod(NAME), 10000));
}

/* Is schedule() redirected now? */
static bool patched(void)
{
	return !access(PATCH "enabled", F_OK) && tst_schedule_is_traced();
}

/* Does the hook in use need to redirect schedule()? Only loading tells. */
static bool redirects(struct __test_metadata *_metadata, const char *parameters)
{
	bool redirects;

	EXPECT_EQ(0, tst_load(parameters));
	redirects = !tst_file_has(STATE, "hook call");
	EXPECT_TRUE(tst_unload_soon());
	return redirects;
}

static void check_beside(struct __test_metadata *_metadata, FIXTURE_DATA(beside) *self)
{
	EXPECT_LE(ENOUGH, grants(self) + grants(self));
	EXPECT_EQ(0, health(self));
}

TEST_F_TIMEOUT(beside, livepatch_that_is_there_first, 120)
{
	bool exclusive = redirects(_metadata, variant->parameters);

	ASSERT_EQ(0, patch());
	EXPECT_TRUE(patched());
	if (exclusive) {
		EXPECT_EQ(EBUSY, tst_load(variant->parameters));
		unpatch(_metadata);
		ASSERT_EQ(0, tst_load(variant->parameters));
		ASSERT_EQ(0, take_slot(self));
	} else {
		ASSERT_EQ(0, tst_load(variant->parameters));
		ASSERT_EQ(0, take_slot(self));
		check_beside(_metadata, self);
		unpatch(_metadata);
	}
	check_beside(_metadata, self);
	leave(_metadata, self);
	unload(_metadata, self);
}

/* While there are slots, and when there are none any more. */
TEST_F_TIMEOUT(beside, livepatch_that_comes_later, 120)
{
	bool exclusive = redirects(_metadata, variant->parameters);

	ASSERT_EQ(0, tst_load(variant->parameters));
	ASSERT_EQ(0, take_slot(self));
	check_beside(_metadata, self);
	if (exclusive) {
		EXPECT_EQ(EBUSY, patch());
		check_beside(_metadata, self);
		leave(_metadata, self);
		EXPECT_TRUE(tst_wait_until(!tst_state("armed"), 5000));
		ASSERT_EQ(0, patch());
		EXPECT_TRUE(patched());
		EXPECT_EQ(EBUSY, take_slot(self));
		close(self->fd);
		unpatch(_metadata);
		ASSERT_EQ(0, take_slot(self));
	} else {
		ASSERT_EQ(0, patch());
		EXPECT_TRUE(patched());
		check_beside(_metadata, self);
		unpatch(_metadata);
	}
	check_beside(_metadata, self);
	leave(_metadata, self);
	unload(_metadata, self);
}

/* Unloading beside it. */
TEST_F_TIMEOUT(beside, module_that_leaves_first, 120)
{
	ASSERT_EQ(0, tst_load(variant->parameters));
	EXPECT_TRUE(tst_wait_until(!tst_state("armed"), 5000));
	ASSERT_EQ(0, patch());
	unload(_metadata, self);
	EXPECT_TRUE(patched());
	unpatch(_metadata);
}

TEST_HARNESS_MAIN
