// SPDX-License-Identifier: MIT
// The header in a C++17 program, beside names of its own.
#include "taskshared.h"

#include <cstdio>
#include <mutex>

namespace app
{
std::mutex mutex;
thread_local int depth;
} // namespace app

int main()
{
	struct taskshared_info info = {};
	taskshared_counters counters = {};
	task_sharedinfo *slot = nullptr;
	{
		taskshared_begin();
		std::lock_guard<std::mutex> guard(app::mutex);
		app::depth++;
		taskshared_end();
	}
	int err = taskshared_get_info(&info);
	if (err != taskshared_status())
		return 1;
	taskshared_get_counters(0, &counters);
	if ((task_getshared(TASK_SHAREDINFO, 0, &slot) == 0) != (err == 0))
		return 1;
	std::printf("# %s\n", taskshared_strerror(err));
	return 0;
}
