/* What sessions of LTTng-UST record, in its own words: each workload twice, for two sessions that run side by side. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER peers_session

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "lttng_session.h"

#if !defined(PEERS_SESSION_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define PEERS_SESSION_H

#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT_CLASS(peers_session, numbers, LTTNG_UST_TP_ARGS(int, a, int, b, int64_t, c),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, a, a) lttng_ust_field_integer(int, b, b)
            lttng_ust_field_integer(int64_t, c, c)))

LTTNG_UST_TRACEPOINT_EVENT_CLASS(peers_session, text, LTTNG_UST_TP_ARGS(const char *, name, uint64_t, n),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_string(name, name) lttng_ust_field_integer(uint64_t, n, n)))

LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(peers_session, numbers, peers_session, snapshot_numbers,
    LTTNG_UST_TP_ARGS(int, a, int, b, int64_t, c))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(peers_session, numbers, peers_session, discard_numbers,
    LTTNG_UST_TP_ARGS(int, a, int, b, int64_t, c))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(peers_session, text, peers_session, snapshot_text,
    LTTNG_UST_TP_ARGS(const char *, name, uint64_t, n))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(peers_session, text, peers_session, discard_text,
    LTTNG_UST_TP_ARGS(const char *, name, uint64_t, n))

#endif

#include <lttng/tracepoint-event.h>
