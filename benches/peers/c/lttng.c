/* LTTng-UST's tracepoint, its call, and a way to connect a probe without a session. */
#define LTTNG_UST_TRACEPOINT_DEFINE
/* The provider's code, which records, is not linked: the probe that is connected counts. */
#define LTTNG_UST_TRACEPOINT_PROBE_DYNAMIC_LINKAGE
#include "lttng_peers.h"

#include <stddef.h>

_Static_assert(offsetof(struct lttng_ust_tracepoint, state) == 24, "src/peer/lttng.rs reads the state there");
_Static_assert(sizeof(((struct lttng_ust_tracepoint *)0)->state) == 4, "src/peer/lttng.rs reads an AtomicI32");

typedef void (*probe)(void *data, int a, int b, int64_t c);

void peers_lttng_fire(int a, int b, int64_t c)
{
    lttng_ust_do_tracepoint(peers, small, a, b, c);
}

int peers_lttng_connect(probe connected)
{
    return lttng_ust_tracepoint_provider_register("peers", "small", (void (*)(void))connected, NULL,
        lttng_ust_tracepoint_peers___small.signature);
}

int peers_lttng_disconnect(probe connected)
{
    return lttng_ust_tracepoint_provider_unregister("peers", "small", (void (*)(void))connected, NULL);
}
