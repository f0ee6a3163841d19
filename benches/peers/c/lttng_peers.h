/* The tracepoint of the benches, in LTTng-UST's own words. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER peers

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "lttng_peers.h"

#if !defined(PEERS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define PEERS_H

#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(peers, small, LTTNG_UST_TP_ARGS(int, a, int, b, int64_t, c),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, a, a) lttng_ust_field_integer(int, b, b)
            lttng_ust_field_integer(int64_t, c, c)))

#endif

#include <lttng/tracepoint-event.h>
