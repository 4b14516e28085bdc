/* Typed forms of the allocation functions for C++: no cast to void ** at the call. */
#ifndef MACA_MC_RUNTIME_API_TEMPLATE_WRAPPER_H
#define MACA_MC_RUNTIME_API_TEMPLATE_WRAPPER_H

#include "mc_runtime_api.h"

#ifdef __cplusplus

template <class T> static inline mcError_t mcMalloc(T **p, size_t size)
{
    return ::mcMalloc(reinterpret_cast<void **>(p), size);
}

template <class T> static inline mcError_t mcMallocHost(T **p, size_t size, unsigned int flags = mcMallocHostDefault)
{
    return ::mcMallocHost(reinterpret_cast<void **>(p), size, flags);
}

template <class T> static inline mcError_t mcMallocManaged(T **p, size_t size, unsigned int flags = mcMemAttachGlobal)
{
    return ::mcMallocManaged(reinterpret_cast<void **>(p), size, flags);
}

static inline mcError_t mcEventCreate(mcEvent_t *event, unsigned int flags)
{
    return ::mcEventCreateWithFlags(event, flags);
}

#endif
#endif
