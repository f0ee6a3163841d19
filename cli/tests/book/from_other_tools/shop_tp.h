#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER shop
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./shop_tp.h"
#if !defined(SHOP_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define SHOP_TP_H
#include <lttng/tracepoint.h>
LTTNG_UST_TRACEPOINT_EVENT(
    shop, answered,
    LTTNG_UST_TP_ARGS(unsigned, id, unsigned, size),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(unsigned, id, id) lttng_ust_field_integer(unsigned, size, size)))
#endif
#include <lttng/tracepoint-event.h>
