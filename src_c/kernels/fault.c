#include "kernels/kernels.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char sentence[256];

KernelStatus us_kernel_fault(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    return KERNEL_FAULT;
}

const char *us_kernel_fault_text(void)
{
    return sentence;
}
