/* The tracepoints of bench-lttng: the fields of tacho's records, for LTTng-UST. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER tacho_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "lttng_tp.h"

#if !defined(TACHO_BENCH_LTTNG_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define TACHO_BENCH_LTTNG_TP_H

#include <stdint.h>

#include <lttng/tracepoint.h>

/* The macros are a language of their own. */
/* clang-format off */
LTTNG_UST_TRACEPOINT_EVENT(tacho_bench, park, LTTNG_UST_TP_ARGS(uint32_t, loop),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint32_t, loop, loop)))

LTTNG_UST_TRACEPOINT_EVENT(tacho_bench, unpark, LTTNG_UST_TP_ARGS(uint32_t, ready),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint32_t, ready, ready)))

LTTNG_UST_TRACEPOINT_EVENT(tacho_bench, poll_begin,
			   LTTNG_UST_TP_ARGS(uint32_t, kind, uint64_t, task),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint32_t, kind, kind)
						       lttng_ust_field_integer(uint64_t, task,
									       task)))

LTTNG_UST_TRACEPOINT_EVENT(tacho_bench, poll_end, LTTNG_UST_TP_ARGS(uint32_t, result),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint32_t, result, result)))

LTTNG_UST_TRACEPOINT_EVENT(tacho_bench, wake, LTTNG_UST_TP_ARGS(uint64_t, task),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint64_t, task, task)))

LTTNG_UST_TRACEPOINT_EVENT(tacho_bench, two_numbers,
			   LTTNG_UST_TP_ARGS(int64_t, first, int64_t, second),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int64_t, first, first)
						       lttng_ust_field_integer(int64_t, second,
									       second)))

/* Never enabled. */
LTTNG_UST_TRACEPOINT_EVENT(tacho_bench, unused, LTTNG_UST_TP_ARGS(uint64_t, task),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint64_t, task, task)))
/* clang-format on */

#endif

#include <lttng/tracepoint-event.h>
