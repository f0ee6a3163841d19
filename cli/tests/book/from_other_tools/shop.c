// The program of the pages for those who come from LTTng, perf and bpftrace: REQUESTS, and how many seconds it stays.
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "shop_tp.h"
#include <stdlib.h>
#include <unistd.h>

__attribute__((noinline)) unsigned answer(unsigned id, unsigned size) {
    lttng_ust_tracepoint(shop, answered, id, size);
    return id + size;
}

int main(int count, char **arguments) {
    unsigned requests = count > 1 ? atoi(arguments[1]) : 1, stay = count > 2 ? atoi(arguments[2]) : 0;
    for (unsigned id = 0; id < requests; id++)
        answer(id, 64 * id);
    sleep(stay);
}
