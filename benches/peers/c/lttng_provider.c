/* What records: a shared object, so that nothing of LTTng's runs in the program before a session is wanted. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#include "lttng_session.h"
