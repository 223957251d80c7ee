// SPDX-License-Identifier: MIT
/*
 * What a program may do to the mapping of its slot, and what not: cut, moved,
 * protected, advised, locked, handed to the kernel's other interfaces. Whatever
 * comes of it, nobody else gets hold of the page, and the kernel, which reads and writes
 * the slot through an address of its own, does not even notice. errnos.c has the plain
 * errors of mmap, slot.c what is refused to fork, dumps and pipes. For virtual time.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <linux/io_uring.h>
#include <linux/userfaultfd.h>

#include "kselftest_harness.h"
#include "helpers/after_exec.h"
#include "helpers/taskshared_test.h"

#define SLOTS_PER_PAGE	32
#define GONE_MS		5000
#define RW		(PROT_READ | PROT_WRITE)
#define RAM_DISK	"/dev/ram0"
#define GROUP		"/sys/fs/cgroup/taskshared_memory"
/* What the kernel never writes: the rest of the owner's line. */
#define MARK		0x3c
/* Some slices of the hog. */
#define SLICES		(40 * TST_MSEC)

/* Memory as seen by system calls, which answer EFAULT where a program would die. */

static int ends[2];

static bool readable(const volatile void *address)
{
	char byte;

	return write(ends[1], (const void *)address, 1) == 1 && read(ends[0], &byte, 1) == 1;
}

/* Leaves what is there as it is. */
static bool writable(volatile void *address)
{
	char byte;

	if (!readable(address) || write(ends[1], (void *)address, 1) != 1)
		return false;
	if (read(ends[0], (void *)address, 1) == 1)
		return true;
	return read(ends[0], &byte, 1) != 1;
}

/* The first mapping of the device; NULL if there is none. */
static void *first_mapping(size_t *size)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start, end;
	void *found = NULL;
	char line[512];

	while (maps && !found && fgets(line, sizeof(line), maps)) {
		if (!strstr(line, TASKSHARED_DEVICE) ||
		    sscanf(line, "%lx-%lx ", &start, &end) != 2)
			continue;
		found = (void *)start;
		*size = end - start;
	}
	if (maps)
		fclose(maps);
	return found;
}

static void unmap_all(void)
{
	size_t size;
	void *area;

	while ((area = first_mapping(&size)))
		munmap(area, size);
}

FIXTURE(memory) {
	int fd;
	struct task_sharedinfo *slot;
	void *page;
	size_t size;
	struct tst_hog hog;
};

static void find_slot(struct __test_metadata *_metadata, FIXTURE_DATA(memory) *self)
{
	self->slot = tst_slot(self->fd);
	ASSERT_NE(NULL, self->slot);
	self->page = tst_page_of(self->slot);
}

static volatile __u8 *mark_of(const FIXTURE_DATA(memory) *self)
{
	return &self->slot->__reserved_owner[30];
}

FIXTURE_SETUP(memory)
{
	EXPECT_TRUE(tst_nothing_held_soon());
	ASSERT_EQ(0, tst_pin(0));
	ASSERT_EQ(0, pipe(ends));
	ASSERT_EQ(0, tst_hogs_start(&self->hog, 1, 0));
	self->size = tst_page_size();
	self->fd = tst_open();
	ASSERT_LE(0, self->fd)
		TH_LOG("%s: %s", TASKSHARED_DEVICE, strerror(errno));
	find_slot(_metadata, self);
	*mark_of(self) = MARK;
}

FIXTURE_TEARDOWN(memory)
{
	struct taskshared_counters totals;
	const char *message;

	tst_hogs_stop(&self->hog, 1);
	ioctl(self->fd, TASKSHARED_IOC_RELEASE);
	unmap_all();
	close(self->fd);
	EXPECT_TRUE(tst_nothing_held_soon())
		TH_LOG("pools %lld, files %lld, pages %lld, slots %lld", tst_state("pools"),
		       tst_state("files"), tst_state("pages"), tst_state("slots"));
	ASSERT_EQ(0, tst_totals(&totals));
	EXPECT_TRUE(tst_adds_up(&totals, &message))
		TH_LOG("%s", message);
	EXPECT_EQ(0, totals.active);
}

static uint64_t granted(const FIXTURE_DATA(memory) *self)
{
	struct taskshared_counters counters;

	return tst_counters(self->fd, 0, &counters) ? 0 : counters.granted;
}

/* The slot is where it was, with what was in it, and the kernel heeds it. */
static bool works(const FIXTURE_DATA(memory) *self)
{
	uint64_t end = tst_now() + GONE_MS * TST_MSEC;

	if (*mark_of(self) != MARK || self->slot->tid != (__u32)gettid())
		return false;
	while (tst_look(self->slot) != TASK_PREEMPT_DELAY_GRANTED)
		if (tst_late(end))
			return false;
	self->slot->sched_delay = 0;
	ioctl(self->fd, TASKSHARED_IOC_YIELD);
	return true;
}

/* Nothing of it has become what the header says it cannot become. */
static bool is_special(const void *address)
{
	char flags[512];

	return tst_vm_flags(address, flags, sizeof(flags)) && strstr(flags, " dc") &&
	       strstr(flags, " dd") && strstr(flags, " de") && strstr(flags, " pf") &&
	       strstr(flags, " io") && !strstr(flags, " ex") && !strstr(flags, " me") &&
	       !strstr(flags, " lo");
}

/* Without a mapping */

TEST_F(memory, delay_without_mapping)
{
	struct taskshared_counters counters;
	unsigned int i;

	for (i = 1; i <= 5; i++) {
		tst_request(self->slot);
		unmap_all();
		EXPECT_EQ(0, close(self->fd));
		EXPECT_EQ(0, tst_state("files"));
		EXPECT_EQ(1, tst_state("slots"));
		tst_spin(SLICES);
		/* The delay has begun and ended where this thread could not look. */
		self->fd = tst_open();
		ASSERT_LE(0, self->fd);
		ASSERT_EQ(0, tst_counters(self->fd, 0, &counters));
		EXPECT_EQ(i, counters.granted);
		EXPECT_EQ(0, counters.active);
		find_slot(_metadata, self);
		EXPECT_EQ(0, self->slot->sched_delay);
		EXPECT_EQ(MARK, *mark_of(self));
	}
}

enum end { BY_EXIT, BY_SIGNAL, BY_EXEC, BY_RELEASE };

/* Ends with a request, and neither a mapping nor a file. */
static int end_without_mapping(void *arg)
{
	enum end how = *(enum end *)arg;
	int fd = tst_open();
	struct task_sharedinfo *slot = fd < 0 ? NULL : tst_slot(fd);

	if (!slot)
		return 90;
	tst_request(slot);
	unmap_all();
	if (how == BY_RELEASE)
		return ioctl(fd, TASKSHARED_IOC_RELEASE) || tst_state("slots") != 1;
	/* exec wants a descriptor to try. */
	prepare_exec(fd, 1);
	if (how != BY_EXEC)
		close(fd);
	tst_spin(SLICES / 4);
	if (how == BY_SIGNAL)
		raise(SIGKILL);
	if (how == BY_EXEC)
		exec_again();
	return 0;
}

TEST_F(memory, end_without_mapping)
{
	enum end how;

	for (how = BY_EXIT; how <= BY_RELEASE; how++) {
		EXPECT_EQ(how == BY_SIGNAL ? 256 + SIGKILL : 0,
			  tst_in_child(end_without_mapping, &how));
		EXPECT_TRUE(tst_wait_until(tst_state("pools") == 1 && tst_state("slots") == 1 &&
					   tst_state("pages") == 1, GONE_MS))
			TH_LOG("way %d", how);
	}
	EXPECT_TRUE(works(self));
}

/* Windows */

#define PAGES	4

/* Threads that fill so many pages, with this one's. */
static void start_crew(struct __test_metadata *_metadata, FIXTURE_DATA(memory) *self,
		       struct tst_crew *crew)
{
	unsigned int i;

	*crew = (struct tst_crew){ .fd = self->fd, .count = PAGES * SLOTS_PER_PAGE - 1 };
	ASSERT_EQ(0, tst_crew_start(crew));
	for (i = 0; i < crew->count; i++)
		EXPECT_EQ(0, crew->members[i].error);
	EXPECT_EQ(PAGES, tst_state("pages"));
}

/* Does this memory show the slots of that page? */
static bool shows(const struct tst_crew *crew, const void *memory, size_t page)
{
	long long from = (long long)(page * tst_page_size()), to = from + (long long)tst_page_size();
	unsigned int i;

	for (i = 0; i < crew->count; i++) {
		const struct tst_member *member = &crew->members[i];
		const char *slot = (const char *)memory + member->offset - from;

		if (member->offset >= from && member->offset < to &&
		    ((const volatile struct task_sharedinfo *)slot)->tid != (__u32)member->tid)
			return false;
	}
	return true;
}

/* Each set of pages is cut out of a window, one after the other; the rest stays. */
TEST_F(memory, every_part_of_a_window)
{
	unsigned int cut, page;
	struct tst_crew crew;
	char *window;

	start_crew(_metadata, self, &crew);
	for (cut = 0; cut < 1U << PAGES; cut++) {
		window = tst_map_window(self->fd, PAGES * self->size);
		ASSERT_NE(NULL, window);
		for (page = 0; page < PAGES; page++)
			if (cut >> page & 1)
				EXPECT_EQ(0, munmap(window + page * self->size, self->size));
		for (page = 0; page < PAGES; page++) {
			char *memory = window + page * self->size;

			EXPECT_EQ(!(cut >> page & 1),
				  readable(memory) && shows(&crew, memory, page));
		}
		EXPECT_EQ(0, munmap(window, PAGES * self->size));
		EXPECT_EQ(1, tst_count_mappings());
	}
	tst_crew_stop(&crew);
	EXPECT_TRUE(works(self));
}

/* Side by side they are not one; one call can cut into both. */
TEST_F(memory, several_windows)
{
	struct taskshared_info info = { 0 };
	char *left, *right, *all;
	struct tst_crew crew;

	start_crew(_metadata, self, &crew);
	ASSERT_EQ(0, ioctl(self->fd, TASKSHARED_IOC_INFO, &info));
	all = tst_map_window(self->fd, 0);
	ASSERT_NE(NULL, all);
	left = mmap(NULL, 2 * PAGES * self->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, left);
	right = left + PAGES * self->size;
	ASSERT_EQ(left, mmap(left, PAGES * self->size, RW, MAP_SHARED | MAP_FIXED, self->fd,
			     TASKSHARED_WINDOW));
	ASSERT_EQ(right, mmap(right, PAGES * self->size, RW, MAP_SHARED | MAP_FIXED, self->fd,
			      TASKSHARED_WINDOW));
	EXPECT_EQ(4, tst_count_mappings());
	EXPECT_TRUE(shows(&crew, left + 3 * self->size, 3));
	EXPECT_TRUE(shows(&crew, right, 0));
	/* One writes, all see it. */
	left[3 * self->size + 20] = 0x42;
	EXPECT_EQ(0x42, right[3 * self->size + 20]);
	EXPECT_EQ(0x42, all[3 * self->size + 20]);

	EXPECT_EQ(0, munmap(left + 3 * self->size, 2 * self->size));
	EXPECT_TRUE(shows(&crew, left + 2 * self->size, 2));
	EXPECT_FALSE(readable(right));
	EXPECT_TRUE(shows(&crew, right + self->size, 1));
	EXPECT_EQ(0, munmap(all, info.window_size));
	EXPECT_TRUE(shows(&crew, right + 3 * self->size, 3));
	EXPECT_EQ(0, munmap(left, 2 * PAGES * self->size));
	tst_crew_stop(&crew);
	EXPECT_TRUE(works(self));
}

/* The system call itself: the C library has an opinion on offsets, too. */
static int map_errno(size_t length, unsigned long offset, int flags, int fd)
{
	long area = syscall(SYS_mmap, NULL, length, RW, flags, fd, offset);

	if (area == -1)
		return errno;
	munmap((void *)area, length);
	return 0;
}

static void expect_map(struct __test_metadata *_metadata, FIXTURE_DATA(memory) *self,
		       size_t length, unsigned long offset, int expected)
{
	EXPECT_EQ(expected, map_errno(length, offset, MAP_SHARED, self->fd))
		TH_LOG("length %#zx, offset %#lx", length, offset);
}

TEST_F(memory, lengths_and_offsets_at_the_borders)
{
	struct taskshared_info info = { 0 };
	const size_t page = self->size;
	unsigned long offset;

	ASSERT_EQ(0, ioctl(self->fd, TASKSHARED_IOC_INFO, &info));
	/* Lengths are rounded up to pages before the module sees them. */
	for (offset = 0; offset <= TASKSHARED_WINDOW; offset += TASKSHARED_WINDOW) {
		expect_map(_metadata, self, 0, offset, EINVAL);
		expect_map(_metadata, self, 1, offset, 0);
		expect_map(_metadata, self, page - 1, offset, 0);
		expect_map(_metadata, self, page + 1, offset, offset ? 0 : EINVAL);
		expect_map(_metadata, self, ~0UL - page, offset, ENOMEM);
		expect_map(_metadata, self, page, offset + 1, EINVAL);
		expect_map(_metadata, self, page, offset - 1, EINVAL);
		expect_map(_metadata, self, page, offset + page - 1, EINVAL);
	}
	expect_map(_metadata, self, info.window_size, TASKSHARED_WINDOW, 0);
	expect_map(_metadata, self, info.window_size - 1, TASKSHARED_WINDOW, 0);
	expect_map(_metadata, self, info.window_size + 1, TASKSHARED_WINDOW, EINVAL);
	expect_map(_metadata, self, page, TASKSHARED_WINDOW + info.window_size, EINVAL);
	/* Beyond what a file can have: the kernel's own word. */
	expect_map(_metadata, self, page, -page, EOVERFLOW);
	EXPECT_EQ(1, tst_count_mappings());
	EXPECT_EQ(1, tst_state("slots"));

	/* Copies up to the last byte, and not one more. */
	EXPECT_EQ(0, munmap((char *)self->page + page, page));
	EXPECT_TRUE(readable((char *)self->page + page - 1));
	EXPECT_FALSE(readable((char *)self->page + page));
	EXPECT_TRUE(works(self));
}

TEST_F(memory, flags_of_mmap)
{
	static const int taken[] = {
		MAP_SHARED | MAP_POPULATE, MAP_SHARED | MAP_LOCKED, MAP_SHARED | MAP_NORESERVE,
		MAP_SHARED_VALIDATE, MAP_SHARED | MAP_POPULATE | MAP_LOCKED,
	};
	void *same;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(taken); i++) {
		EXPECT_EQ(0, map_errno(self->size, 0, taken[i], self->fd));
		EXPECT_EQ(0, map_errno(self->size, TASKSHARED_WINDOW, taken[i], self->fd));
	}
	EXPECT_EQ(EOPNOTSUPP, map_errno(self->size, 0, MAP_SHARED_VALIDATE | MAP_SYNC, self->fd));
	EXPECT_EQ(EINVAL, map_errno(self->size, 0, MAP_SHARED | MAP_GROWSDOWN, self->fd));
	EXPECT_EQ(EINVAL, map_errno(self->size, 0, MAP_SHARED | MAP_HUGETLB, self->fd));
	/* Over itself */
	same = mmap(self->page, self->size, RW, MAP_SHARED | MAP_FIXED, self->fd, 0);
	EXPECT_EQ(self->page, same);
	EXPECT_EQ(1, tst_count_mappings());
	EXPECT_EQ(1, tst_state("slots"));
	EXPECT_TRUE(works(self));
}

/* mremap */

/* A free place for so many pages. */
static char *place_for(size_t size)
{
	char *place = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return place == MAP_FAILED ? NULL : place;
}

TEST_F(memory, moved)
{
	const int fixed = MREMAP_MAYMOVE | MREMAP_FIXED;
	size_t within = (size_t)((char *)self->slot - (char *)self->page);
	char *place = place_for(4 * self->size), *window;

	ASSERT_NE(NULL, place);
	/* Neither a second one nor one that leaves the first behind. */
	EXPECT_EQ(MAP_FAILED, mremap(self->page, 0, self->size, MREMAP_MAYMOVE));
	EXPECT_EQ(MAP_FAILED, mremap(self->page, self->size, self->size,
				     MREMAP_MAYMOVE | MREMAP_DONTUNMAP));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(1, tst_count_mappings());

	EXPECT_EQ(place, mremap(self->page, self->size, self->size, fixed, place));
	EXPECT_FALSE(readable(self->page));
	self->page = place;
	self->slot = (struct task_sharedinfo *)(place + within);
	EXPECT_TRUE(works(self));
	EXPECT_TRUE(is_special(place));

	/* Two pages of a window become one, and that one grows no more. */
	window = tst_map_window(self->fd, 2 * self->size);
	ASSERT_NE(NULL, window);
	EXPECT_EQ(window, mremap(window, 2 * self->size, self->size, 0));
	EXPECT_FALSE(readable(window + self->size));
	EXPECT_EQ(MAP_FAILED, mremap(window, self->size, 2 * self->size, 0));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(MAP_FAILED, mremap(window, self->size, 2 * self->size, MREMAP_MAYMOVE));
	EXPECT_EQ(EFAULT, errno);
	/* Shrunk while it is moved. */
	EXPECT_EQ(0, munmap(window, self->size));
	window = tst_map_window(self->fd, 2 * self->size);
	ASSERT_NE(NULL, window);
	EXPECT_EQ(place + 2 * self->size, mremap(window, 2 * self->size, self->size, fixed,
						 place + 2 * self->size));
	EXPECT_EQ(MARK, place[2 * self->size + within +
			      offsetof(struct task_sharedinfo, __reserved_owner) + 30]);
	EXPECT_EQ(2, tst_count_mappings());
	EXPECT_TRUE(works(self));
}

/* An old way to another part of the file: the same rules as for mmap. */
TEST_F(memory, remapped)
{
	char *window = tst_map_window(self->fd, self->size);
	unsigned long page = TASKSHARED_WINDOW / self->size;

	ASSERT_NE(NULL, window);
	EXPECT_EQ(0, syscall(SYS_remap_file_pages, window, self->size, 0, page, 0));
	EXPECT_EQ(0, memcmp(window, self->page, self->size));
	EXPECT_TRUE(is_special(window));
	EXPECT_EQ(-1, syscall(SYS_remap_file_pages, window, self->size, 0, 1UL, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_TRUE(works(self));
}

/* Protection */

TEST_F(memory, protected)
{
	uint64_t before = granted(self);

	/* The kernel's answer comes all the same, when the program may not write, ... */
	tst_request(self->slot);
	ASSERT_EQ(0, mprotect(self->page, self->size, PROT_READ));
	EXPECT_TRUE(readable(self->slot));
	EXPECT_FALSE(writable(self->slot));
	tst_spin(SLICES);
	EXPECT_EQ(before + 1, granted(self));
	EXPECT_EQ(0, self->slot->sched_delay);

	/* ... and when it may not even look. */
	ASSERT_EQ(0, mprotect(self->page, self->size, RW));
	EXPECT_TRUE(writable(self->slot));
	tst_request(self->slot);
	ASSERT_EQ(0, mprotect(self->page, self->size, PROT_NONE));
	EXPECT_FALSE(readable(self->slot));
	tst_spin(SLICES);
	EXPECT_EQ(before + 2, granted(self));
	ASSERT_EQ(0, mprotect(self->page, self->size, RW));
	EXPECT_EQ(0, self->slot->sched_delay);
	EXPECT_TRUE(works(self));
}

TEST_F(memory, file_not_open_for_writing)
{
	int fd = open(TASKSHARED_DEVICE, O_RDONLY | O_CLOEXEC);
	struct task_sharedinfo *page;

	ASSERT_LE(0, fd);
	EXPECT_EQ(EACCES, map_errno(self->size, 0, MAP_SHARED, fd));
	page = mmap(NULL, self->size, PROT_READ, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, page);
	EXPECT_NE(NULL, tst_find(page, self->size, gettid()));
	EXPECT_FALSE(writable(page));
	EXPECT_EQ(-1, mprotect(page, self->size, RW));
	EXPECT_EQ(EACCES, errno);
	close(fd);

	fd = open(TASKSHARED_DEVICE, O_WRONLY | O_CLOEXEC);
	ASSERT_LE(0, fd);
	EXPECT_EQ(EACCES, map_errno(self->size, 0, MAP_SHARED, fd));
	close(fd);
	EXPECT_TRUE(works(self));
}

/* Programs for which what they can read is executable, too. */
TEST_F(memory, not_executable_by_personality)
{
	int before = personality(0xffffffff);
	void *window;

	ASSERT_LE(0, personality((unsigned int)before | READ_IMPLIES_EXEC));
	EXPECT_EQ(0, mprotect(self->page, self->size, PROT_READ));
	EXPECT_EQ(0, mprotect(self->page, self->size, RW));
	window = tst_map_window(self->fd, self->size);
	EXPECT_LE(0, personality((unsigned int)before));
	EXPECT_TRUE(is_special(self->page));
	if (window)
		EXPECT_TRUE(is_special(window));
	EXPECT_TRUE(works(self));
}

/* madvise */

#define MADV_GUARD_INSTALL_	102
#define MADV_GUARD_REMOVE_	103

/* What must fail, on every kernel; the rest may have an effect that nobody sees. */
static const struct {
	const char *name;
	int advice;
	bool refused;
} advices[] = {
	{ "NORMAL", MADV_NORMAL, false },
	{ "RANDOM", MADV_RANDOM, false },
	{ "SEQUENTIAL", MADV_SEQUENTIAL, false },
	{ "WILLNEED", MADV_WILLNEED, false },
	{ "DONTNEED", MADV_DONTNEED, true },
	{ "FREE", MADV_FREE, true },
	{ "REMOVE", MADV_REMOVE, true },
	{ "DONTFORK", MADV_DONTFORK, false },
	{ "DOFORK", MADV_DOFORK, true },
	{ "MERGEABLE", MADV_MERGEABLE, false },
	{ "UNMERGEABLE", MADV_UNMERGEABLE, false },
	{ "HUGEPAGE", MADV_HUGEPAGE, false },
	{ "NOHUGEPAGE", MADV_NOHUGEPAGE, false },
	{ "DONTDUMP", MADV_DONTDUMP, false },
	{ "DODUMP", MADV_DODUMP, true },
	{ "WIPEONFORK", MADV_WIPEONFORK, true },
	{ "KEEPONFORK", MADV_KEEPONFORK, false },
	{ "COLD", MADV_COLD, false },
	{ "PAGEOUT", MADV_PAGEOUT, false },
	{ "POPULATE_READ", MADV_POPULATE_READ, true },
	{ "POPULATE_WRITE", MADV_POPULATE_WRITE, true },
	{ "DONTNEED_LOCKED", 24, true },
	{ "COLLAPSE", 25, true },
	{ "HWPOISON", MADV_HWPOISON, true },
	{ "SOFT_OFFLINE", 101, true },
	{ "GUARD_INSTALL", MADV_GUARD_INSTALL_, true },
	{ "GUARD_REMOVE", MADV_GUARD_REMOVE_, false },
};

static int no_mapping_in_child(void *slot)
{
	return tst_count_mappings() || readable(slot);
}

TEST_F(memory, every_advice)
{
	unsigned int i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(advices); i++) {
		ret = madvise(self->page, self->size, advices[i].advice);
		if (advices[i].refused)
			EXPECT_EQ(-1, ret)
				TH_LOG("%s was taken", advices[i].name);
		EXPECT_TRUE(is_special(self->page))
			TH_LOG("%s has changed what the mapping is", advices[i].name);
		EXPECT_TRUE(works(self))
			TH_LOG("after %s", advices[i].name);
		EXPECT_EQ(0, tst_in_child(no_mapping_in_child, self->slot))
			TH_LOG("after %s the mapping was inherited", advices[i].name);
	}
}

static int advise_from_outside(void *page)
{
	static const int some[] = { MADV_COLD, MADV_PAGEOUT, MADV_WILLNEED, 25, MADV_DONTNEED };
	int pidfd = (int)syscall(SYS_pidfd_open, getppid(), 0);
	struct iovec there = { page, tst_page_size() };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(some); i++)
		syscall(SYS_process_madvise, pidfd, &there, 1, some[i], 0);
	return pidfd < 0;
}

TEST_F(memory, advised_by_another_process)
{
	EXPECT_EQ(0, tst_in_child(advise_from_outside, self->page));
	EXPECT_TRUE(is_special(self->page));
	EXPECT_TRUE(works(self));
}

/* mlock */

/* Locked memory by /proc/self/status, in KiB. */
static long locked(void)
{
	char text[8192], *line;

	if (tst_read_file("/proc/self/status", text, sizeof(text)) < 0)
		return -1;
	line = strstr(text, "VmLck:");
	return line ? strtol(line + 6, NULL, 10) : -1;
}

/* Neither counted as locked nor marked so: it is pinned and charged already. */
TEST_F(memory, locked)
{
	long before = locked();
	void *window;

	EXPECT_LE(0, before);
	EXPECT_EQ(0, mlock(self->page, self->size));
	EXPECT_EQ(0, mlock2(self->page, self->size, MLOCK_ONFAULT));
	EXPECT_EQ(before, locked());
	EXPECT_TRUE(is_special(self->page));
	EXPECT_TRUE(works(self));
	EXPECT_EQ(0, munlock(self->page, self->size));
	EXPECT_EQ(before, locked());

	ASSERT_EQ(0, mlockall(MCL_CURRENT | MCL_FUTURE));
	EXPECT_TRUE(is_special(self->page));
	before = locked();
	window = tst_map_window(self->fd, 0);
	EXPECT_NE(NULL, window);
	EXPECT_EQ(before, locked());
	EXPECT_TRUE(is_special(window));
	EXPECT_TRUE(works(self));
	EXPECT_EQ(0, munlockall());
	EXPECT_TRUE(works(self));
}

/* userfaultfd */

TEST_F(memory, userfaultfd_is_refused)
{
	static const __u64 modes[] = {
		UFFDIO_REGISTER_MODE_MISSING, UFFDIO_REGISTER_MODE_WP,
		UFFDIO_REGISTER_MODE_MINOR,
	};
	int uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register plain, ours;
	char *ordinary = mmap(NULL, self->size, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_copy copy = {
		.dst = (uintptr_t)self->page, .src = (uintptr_t)ordinary, .len = self->size,
	};
	unsigned int i;

	ASSERT_LE(0, uffd);
	ASSERT_EQ(0, ioctl(uffd, UFFDIO_API, &api));
	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		ours = (struct uffdio_register){
			.range = { (uintptr_t)self->page, self->size }, .mode = modes[i],
		};
		EXPECT_EQ(EINVAL, tst_call(uffd, UFFDIO_REGISTER, &ours));
	}
	plain = (struct uffdio_register){
		.range = { (uintptr_t)ordinary, self->size }, .mode = modes[0],
	};
	EXPECT_EQ(0, tst_call(uffd, UFFDIO_REGISTER, &plain))
		TH_LOG("not even ordinary memory can be registered");
	EXPECT_NE(0, tst_call(uffd, UFFDIO_COPY, &copy));
	EXPECT_EQ(0, tst_call(uffd, UFFDIO_UNREGISTER, &plain.range));
	close(uffd);
	EXPECT_TRUE(works(self));
}

/* Other processes */

struct outside {
	void *memory;
	bool reachable;
};

static int process_vm_gives(struct iovec *here, struct iovec *there, bool reachable)
{
	ssize_t expected = reachable ? (ssize_t)here->iov_len : -1;

	if (process_vm_readv(getppid(), here, 1, there, 1, 0) != expected)
		return 1;
	if (!reachable && errno != EFAULT)
		return 2;
	if (process_vm_writev(getppid(), here, 1, there, 1, 0) != expected)
		return 3;
	return !reachable && errno != EFAULT ? 4 : 0;
}

static int proc_mem_gives(struct iovec *here, struct iovec *there, bool reachable)
{
	ssize_t expected = reachable ? (ssize_t)here->iov_len : -1;
	off_t offset = (off_t)(uintptr_t)there->iov_base;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", getppid());
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return 5;
	if (pread(fd, here->iov_base, here->iov_len, offset) != expected)
		return 6;
	if (!reachable && errno != EIO)
		return 7;
	if (pwrite(fd, here->iov_base, here->iov_len, offset) != expected)
		return 8;
	return !reachable && errno != EIO ? 9 : 0;
}

static int reach_from_outside(void *arg)
{
	const struct outside *outside = arg;
	char copy[64] = { 0 };
	struct iovec here = { copy, sizeof(copy) }, there = { outside->memory, sizeof(copy) };
	int code = process_vm_gives(&here, &there, outside->reachable);

	return code ? code : proc_mem_gives(&here, &there, outside->reachable);
}

TEST_F(memory, out_of_reach_of_other_processes)
{
	char ordinary[64] = { 0 };
	struct outside outside = { ordinary, true };

	EXPECT_EQ(0, tst_in_child(reach_from_outside, &outside))
		TH_LOG("not even ordinary memory can be reached");
	outside = (struct outside){ self->slot, false };
	EXPECT_EQ(0, tst_in_child(reach_from_outside, &outside))
		TH_LOG("the number is that of the check in process_vm_gives() and proc_mem_gives()");
	/* Nor can the process itself reach it in that way. */
	EXPECT_TRUE(works(self));
}

/* io_uring: memory that the kernel holds on to */

static int register_buffers(int ring, void *memory, size_t size)
{
	struct iovec buffer = { memory, size };

	if (syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, &buffer, 1))
		return errno;
	syscall(SYS_io_uring_register, ring, IORING_UNREGISTER_BUFFERS, NULL, 0);
	return 0;
}

TEST_F(memory, io_uring_is_refused)
{
	struct io_uring_params parameters = { 0 };
	struct io_uring_buf_reg provided = {
		.ring_addr = (uintptr_t)self->page, .ring_entries = 8,
	};
	char *ordinary = place_for(self->size), *window;
	int ring = (int)syscall(SYS_io_uring_setup, 4, &parameters);
	size_t within = (size_t)((char *)self->slot - (char *)self->page);

	ASSERT_LE(0, ring)
		TH_LOG("%s", strerror(errno));
	ASSERT_EQ(0, mprotect(ordinary, self->size, RW));
	EXPECT_EQ(0, register_buffers(ring, ordinary, self->size))
		TH_LOG("not even ordinary memory can be registered");
	EXPECT_EQ(EFAULT, register_buffers(ring, self->page, self->size));
	EXPECT_EQ(EFAULT, register_buffers(ring, self->slot, 1));
	EXPECT_EQ(EFAULT, register_buffers(ring, (char *)self->page + self->size - 1, 1));
	window = tst_map_window(self->fd, 0);
	ASSERT_NE(NULL, window);
	EXPECT_EQ(EFAULT, register_buffers(ring, window + within, TST_SLOT_SIZE));
	EXPECT_EQ(EFAULT, register_buffers(ring, window, 16 * self->size));
	EXPECT_NE(0, syscall(SYS_io_uring_register, ring, IORING_REGISTER_PBUF_RING, &provided,
			     1));
	close(ring);
	EXPECT_TRUE(works(self));
}

/* A file that it holds is a file like any other. */
TEST_F(memory, io_uring_holds_a_file)
{
	struct io_uring_params parameters = { 0 };
	int ring = (int)syscall(SYS_io_uring_setup, 4, &parameters);
	int other = tst_open();

	ASSERT_LE(0, ring);
	ASSERT_EQ(0, syscall(SYS_io_uring_register, ring, IORING_REGISTER_FILES, &other, 1));
	EXPECT_EQ(0, close(other));
	EXPECT_EQ(2, tst_state("files"));
	EXPECT_EQ(0, close(ring));
	EXPECT_TRUE(tst_wait_until(tst_state("files") == 1, GONE_MS));
	EXPECT_TRUE(works(self));
}

/* The rings themselves in memory that the program gives (6.5); 6.1 refuses the flag. */
TEST_F(memory, io_uring_has_no_rings_in_it)
{
	/* IORING_SETUP_NO_MMAP */
	struct io_uring_params parameters = { .flags = 1U << 14 };
	char *window = tst_map_window(self->fd, self->size);

	/* sq_off.user_addr and cq_off.user_addr, which came with it. */
	memcpy((char *)&parameters.sq_off + 32, &self->page, sizeof(self->page));
	memcpy((char *)&parameters.cq_off + 32, &window, sizeof(window));
	EXPECT_EQ(-1, syscall(SYS_io_uring_setup, 4, &parameters));
	EXPECT_TRUE(works(self));
}

/* Direct I/O */

TEST_F(memory, direct_io_is_refused)
{
	char *ordinary = place_for(self->size);
	int disk = open(RAM_DISK, O_RDWR | O_DIRECT | O_CLOEXEC);
	char *window = tst_map_window(self->fd, self->size);

	if (disk < 0 && errno == ENOENT)
		SKIP(return, "there is no " RAM_DISK);
	ASSERT_LE(0, disk)
		TH_LOG("%s", strerror(errno));
	ASSERT_NE(NULL, window);
	ASSERT_EQ(0, mprotect(ordinary, self->size, RW));
	EXPECT_EQ(self->size, pwrite(disk, ordinary, self->size, 0));
	EXPECT_EQ(self->size, pread(disk, ordinary, self->size, 0))
		TH_LOG("not even ordinary memory can be used");
	EXPECT_EQ(-1, pread(disk, self->page, self->size, 0));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(-1, pwrite(disk, self->page, self->size, 0));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(-1, pread(disk, window, self->size, 0));
	EXPECT_EQ(EFAULT, errno);
	/* By copying it can be done, as with any memory. */
	EXPECT_EQ(0, fcntl(disk, F_SETFL, 0));
	EXPECT_EQ(1, pread(disk, (char *)mark_of(self) + 1, 1, 0));
	close(disk);
	EXPECT_TRUE(works(self));
}

/* Two ends of a connection over the loopback device. */
static int connect_loopback(int *from, int *to)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	socklen_t length = sizeof(address);

	*from = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (void *)&address, length) || listen(listener, 1) ||
	    getsockname(listener, (void *)&address, &length) ||
	    connect(*from, (void *)&address, length) ||
	    setsockopt(*from, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof(one)))
		return -1;
	*to = accept(listener, NULL, NULL);
	close(listener);
	return *to < 0 ? -1 : 0;
}

TEST_F(memory, sent_without_copying)
{
	char *ordinary = place_for(self->size);
	int from, to;

	ASSERT_EQ(0, mprotect(ordinary, self->size, RW));
	ASSERT_EQ(0, connect_loopback(&from, &to))
		TH_LOG("%s", strerror(errno));
	EXPECT_EQ(TST_SLOT_SIZE, send(from, ordinary, TST_SLOT_SIZE, MSG_ZEROCOPY));
	EXPECT_EQ(-1, send(from, self->slot, TST_SLOT_SIZE, MSG_ZEROCOPY));
	EXPECT_EQ(EFAULT, errno);
	/* With copying. */
	EXPECT_EQ(TST_SLOT_SIZE, send(from, self->slot, TST_SLOT_SIZE, 0));
	close(from);
	close(to);
	EXPECT_TRUE(works(self));
}

/* The page stays where it is */

static void write_number(const char *file, const char *number)
{
	tst_write_file(file, number, 0);
}

TEST_F(memory, not_moved_elsewhere)
{
	int node = 0, status = 0;
	unsigned long nodes = 1;
	long moved;

	/* MPOL_BIND, MPOL_MF_MOVE: move what is elsewhere, if it can be moved. */
	syscall(SYS_mbind, self->page, self->size, 2, &nodes, 2UL, 2);
	EXPECT_TRUE(works(self));
	moved = syscall(SYS_move_pages, 0, 1UL, &self->page, &node, &status, 2);
	EXPECT_TRUE(moved || status < 0)
		TH_LOG("move_pages() %ld, status %d", moved, status);
	write_number("/proc/sys/vm/compact_memory", "1");
	write_number("/proc/sys/vm/drop_caches", "3");
	EXPECT_TRUE(works(self));
}

/* In the group: has a slot; its child takes more memory than the group may have. */
static int under_pressure(void *unused)
{
	struct _test_data_memory self = { .fd = tst_open() };
	const size_t much = 64 << 20;
	struct task_sharedinfo *slot;
	char events[256];
	pid_t child;
	int code = 0;
	size_t i;

	(void)unused;
	slot = self.fd < 0 ? NULL : tst_slot(self.fd);
	if (!slot || tst_write_file(GROUP "/cgroup.procs", "0", 0))
		return 1;
	self.slot = slot;
	*mark_of(&self) = MARK;
	child = fork();
	if (!child) {
		char *memory = place_for(much);

		mprotect(memory, much, RW);
		for (i = 0; i < much; i += tst_page_size())
			memory[i] = 1;
		while (1)
			pause();
	}
	if (!tst_wait_until(tst_read_file(GROUP "/memory.events", events, sizeof(events)) > 0 &&
			    !strstr(events, "high 0\n"), GONE_MS))
		code = 2;
	/* By hand, too; it is said to fail when there is too little to be had. */
	tst_write_file(GROUP "/memory.reclaim", "4M", 0);
	madvise(tst_page_of(slot), tst_page_size(), MADV_PAGEOUT);
	if (!code && !works(&self))
		code = 3;
	kill(child, SIGKILL);
	tst_wait_child(child);
	return code;
}

TEST_F(memory, pressure_in_a_cgroup)
{
	ASSERT_EQ(0, tst_write_file("/sys/fs/cgroup/cgroup.subtree_control", "+memory", 0));
	ASSERT_TRUE(!mkdir(GROUP, 0755) || errno == EEXIST);
	EXPECT_EQ(0, tst_write_file(GROUP "/memory.high", "16M", 0));
	EXPECT_EQ(0, tst_in_child(under_pressure, NULL))
		TH_LOG("the number is that of the check in under_pressure()");
	EXPECT_TRUE(tst_wait_until(!rmdir(GROUP), GONE_MS));
	EXPECT_EQ(0, tst_write_file("/sys/fs/cgroup/cgroup.subtree_control", "-memory", 0));
	EXPECT_TRUE(works(self));
}

TEST_HARNESS_MAIN
