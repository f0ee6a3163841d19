/* The tracepoints of the sessions, and their calls. What records is in a shared object that is loaded when a session is wanted. */
#define LTTNG_UST_TRACEPOINT_DEFINE
#define LTTNG_UST_TRACEPOINT_PROBE_DYNAMIC_LINKAGE
#include "lttng_session.h"

#include <stddef.h>

_Static_assert(offsetof(struct lttng_ust_tracepoint, state) == 24, "src/peer/lttng_session.rs reads the state there");

void peers_lttng_snapshot_numbers(int a, int b, int64_t c)
{
    lttng_ust_do_tracepoint(peers_session, snapshot_numbers, a, b, c);
}

void peers_lttng_discard_numbers(int a, int b, int64_t c)
{
    lttng_ust_do_tracepoint(peers_session, discard_numbers, a, b, c);
}

void peers_lttng_snapshot_text(const char *name, uint64_t n)
{
    lttng_ust_do_tracepoint(peers_session, snapshot_text, name, n);
}

void peers_lttng_discard_text(const char *name, uint64_t n)
{
    lttng_ust_do_tracepoint(peers_session, discard_text, name, n);
}
