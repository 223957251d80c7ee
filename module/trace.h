/* SPDX-License-Identifier: GPL-2.0-only */
/* Trace events, for perf, trace-cmd and bpftrace. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM taskshared

#if !defined(_TASKSHARED_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TASKSHARED_TRACE_H

#include <linux/tracepoint.h>

/* A delay begins: it ends after @cap_ns at the latest. */
TRACE_EVENT(taskshared_grant,
	TP_PROTO(pid_t tid, u64 cap_ns),
	TP_ARGS(tid, cap_ns),
	TP_STRUCT__entry(
		__field(pid_t, tid)
		__field(u64, cap_ns)
	),
	TP_fast_assign(
		__entry->tid = tid;
		__entry->cap_ns = cap_ns;
	),
	TP_printk("tid=%d cap_ns=%llu", __entry->tid, __entry->cap_ns)
);

/* Asked again inside a delay. */
TRACE_EVENT(taskshared_deny,
	TP_PROTO(pid_t tid),
	TP_ARGS(tid),
	TP_STRUCT__entry(
		__field(pid_t, tid)
	),
	TP_fast_assign(
		__entry->tid = tid;
	),
	TP_printk("tid=%d", __entry->tid)
);

#define taskshared_show_refusal(cause)				\
	__print_symbolic(cause,					\
			 { TASKSHARED_REFUSED_OFF, "off" },	\
			 { TASKSHARED_REFUSED_WORK, "work" },	\
			 { TASKSHARED_REFUSED_CLASS, "class" },	\
			 { TASKSHARED_REFUSED_RT, "rt" },	\
			 { TASKSHARED_REFUSED_CAP, "cap" })

/* A request that was not granted; the causes are those of the counters. */
TRACE_EVENT(taskshared_refuse,
	TP_PROTO(pid_t tid, int cause),
	TP_ARGS(tid, cause),
	TP_STRUCT__entry(
		__field(pid_t, tid)
		__field(int, cause)
	),
	TP_fast_assign(
		__entry->tid = tid;
		__entry->cause = cause;
	),
	TP_printk("tid=%d cause=%s", __entry->tid, taskshared_show_refusal(__entry->cause))
);

DECLARE_EVENT_CLASS(taskshared_over,
	TP_PROTO(pid_t tid, u64 delay_ns, u64 overrun_ns),
	TP_ARGS(tid, delay_ns, overrun_ns),
	TP_STRUCT__entry(
		__field(pid_t, tid)
		__field(u64, delay_ns)
		__field(u64, overrun_ns)
	),
	TP_fast_assign(
		__entry->tid = tid;
		__entry->delay_ns = delay_ns;
		__entry->overrun_ns = overrun_ns;
	),
	TP_printk("tid=%d delay_ns=%llu overrun_ns=%llu", __entry->tid, __entry->delay_ns,
		  __entry->overrun_ns)
);

/* A delay is over: the thread gave the CPU back, ... */
DEFINE_EVENT(taskshared_over, taskshared_yield,
	TP_PROTO(pid_t tid, u64 delay_ns, u64 overrun_ns),
	TP_ARGS(tid, delay_ns, overrun_ns));

/* ... reached the cap, ... */
DEFINE_EVENT(taskshared_over, taskshared_expire,
	TP_PROTO(pid_t tid, u64 delay_ns, u64 overrun_ns),
	TP_ARGS(tid, delay_ns, overrun_ns));

/* ... or passed through the scheduler otherwise. */
DEFINE_EVENT(taskshared_over, taskshared_end,
	TP_PROTO(pid_t tid, u64 delay_ns, u64 overrun_ns),
	TP_ARGS(tid, delay_ns, overrun_ns));

#endif /* _TASKSHARED_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
