// SPDX-License-Identifier: MIT
/*
 * Beside others that sit on schedule(), there first or later: delays are granted, or
 * loading is refused, or delays are lost and `health` says so; which of these is known.
 */

#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "helpers/beside_fixture.h"

/* Whether the kernel counts how often a BPF program runs. */
#define RUN_COUNTS	"/proc/sys/kernel/bpf_stats_enabled"

/* The others */

static int perf_fd = -1, program_fd = -1, link_fd = -1;

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

/* Does nothing and returns 0. */
static int program_on(enum bpf_attach_type where)
{
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	struct bpf_prog_load_opts options = {
		.sz = sizeof(options), .expected_attach_type = where,
	};
	struct btf *btf = btf__load_vmlinux_btf();
	int id = btf ? btf__find_by_name_kind(btf, "schedule", BTF_KIND_FUNC) : -1;

	btf__free(btf);
	if (id < 0)
		return errno;
	options.attach_btf_id = (__u32)id;
	program_fd = bpf_prog_load(BPF_PROG_TYPE_TRACING, "beside", "GPL", insns,
				   ARRAY_SIZE(insns), &options);
	if (program_fd < 0)
		return errno;
	link_fd = bpf_raw_tracepoint_open(NULL, program_fd);
	if (link_fd < 0)
		return errno;
	return tst_write_file(RUN_COUNTS, "1", 0);
}

static int fentry_on(void)
{
	return program_on(BPF_TRACE_FENTRY);
}

static int fexit_on(void)
{
	return program_on(BPF_TRACE_FEXIT);
}

static int program_off(void)
{
	close(link_fd);
	close(program_fd);
	program_fd = -1;
	return tst_write_file(RUN_COUNTS, "0", 0);
}

static bool program_ran(void)
{
	struct bpf_prog_info info = { 0 };
	__u32 size = sizeof(info);

	return !bpf_obj_get_info_by_fd(program_fd, &info, &size) && info.run_cnt;
}

/* Does the other one, too, see what it wants to? */
static bool other_sees(void)
{
	char text[4096], *line, *rest = text;
	uint64_t count;

	if (program_fd >= 0)
		return program_ran();
	if (perf_fd >= 0)
		return read(perf_fd, &count, sizeof(count)) == sizeof(count) && count;
	if (tst_read_file(TRACEFS "trace", text, sizeof(text)) < 0)
		return false;
	while ((line = strsep(&rest, "\n")))
		if (line[0] != '#' && strstr(line, "schedule"))
			return true;
	return false;
}

enum outcome { GRANTED, REFUSED, LOST, GRANTED_OR_LOST };

/**
 * struct other - somebody else on schedule()
 * @first: what comes of it with a kprobe at the entry, if the other is there first
 * @later: ... and if it comes later; with the hook chosen by default it is always GRANTED
 */
static const struct other {
	const char *name;
	int (*on)(void);
	int (*off)(void);
	enum outcome first, later;
} others[] = {
	{ "function tracer", tracer_on, tracer_off, GRANTED, GRANTED },
	/* Replaces the return address, by which the hook knows who calls, before it or after. */
	{ "function graph tracer", graph_on, tracer_off, GRANTED, GRANTED_OR_LOST },
	/* The kernel cannot give a probe the right to redirect later on. */
	{ "kprobe", kprobe_on, probe_off, REFUSED, GRANTED },
	/* Replaces the return address. */
	{ "kretprobe", kretprobe_on, probe_off, REFUSED, LOST },
	{ "perf", perf_on, perf_off, GRANTED, GRANTED },
	{ "BPF program at the entry", fentry_on, program_off, GRANTED, GRANTED },
	{ "BPF program at the exit", fexit_on, program_off, GRANTED, GRANTED },
};

static enum outcome expected(const struct other *other, bool kprobe, bool first)
{
	if (!kprobe)
		return GRANTED;
	return first ? other->first : other->later;
}

/* The kernel log says why. */
static void check_refused(struct __test_metadata *_metadata, const struct other *other,
			  const char *parameters)
{
	ASSERT_EQ(0, other->on());
	EXPECT_EQ(ENOENT, tst_load(parameters));
	EXPECT_EQ(0, other->off());
}

static void check_beside(struct __test_metadata *_metadata, FIXTURE_DATA(beside) *self,
			 const char *parameters, const struct other *other, bool first,
			 enum outcome outcome)
{
	uint64_t granted;

	if (first)
		ASSERT_EQ(0, other->on());
	ASSERT_EQ(0, tst_load(parameters));
	ASSERT_EQ(0, take_slot(self));
	if (!first)
		ASSERT_EQ(0, other->on());

	granted = grants(self);
	printf("# %llu delays, health %#x\n", (unsigned long long)granted, health(self));
	if (outcome == GRANTED_OR_LOST)
		outcome = granted < ENOUGH ? LOST : GRANTED;
	EXPECT_EQ(outcome == LOST, granted < ENOUGH);
	EXPECT_EQ(outcome == LOST ? TASKSHARED_HEALTH_LOST : 0, health(self));
	EXPECT_TRUE(other_sees());
	EXPECT_EQ(0, other->off());

	EXPECT_LE(ENOUGH, grants(self) + grants(self));
	EXPECT_EQ(0, health(self));
	leave(_metadata, self);
	unload(_metadata, self);
}

TEST_F_TIMEOUT(beside, others_on_schedule, 200)
{
	unsigned int i, first;

	for (i = 0; i < ARRAY_SIZE(others); i++) {
		for (first = 0; first <= 1; first++) {
			enum outcome outcome = expected(&others[i], variant->kprobe, first);

			printf("# %s, %s\n", others[i].name, first ? "there first" : "comes later");
			if (outcome == REFUSED)
				check_refused(_metadata, &others[i], variant->parameters);
			else
				check_beside(_metadata, self, variant->parameters, &others[i],
					     first, outcome);
		}
	}
}

TEST_HARNESS_MAIN
