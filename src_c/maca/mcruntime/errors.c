/* The thread's last error, and what errors are called. */
#include "maca/mcruntime/runtime.h"

typedef struct ErrorText {
    mcError_t error;
    const char *name, *text;
} ErrorText;

#include "maca/mcruntime/error_texts.inc"

enum { ERROR_TEXT_COUNT = sizeof error_texts / sizeof error_texts[0] };

static const ErrorText *find_text(mcError_t error)
{
    static const ErrorText unknown = {mcErrorUnknown, "mcErrorUnknown", "an error code that does not exist"};
    for (int i = 0; i < ERROR_TEXT_COUNT; i++) {
        if (error_texts[i].error == error) {
            return &error_texts[i];
        }
    }
    return &unknown;
}

const char *mcGetErrorString(mcError_t e)
{
    return find_text(e)->text;
}

const char *mcGetErrorName(mcError_t e)
{
    return find_text(e)->name;
}

/* A fault of queued work is reported by whoever asks next, and cannot be cleared (CUDA: sticky errors). */
static mcError_t device_error(void)
{
    Platform *platform = maca_platform();
    int ordinal = maca_device_ordinal();
    Device *device = platform == NULL || ordinal >= platform->device_count ? NULL : platform->devices[ordinal];
    return device == NULL ? mcSuccess : maca_error_of_fault(us_device_fault(device, NULL));
}

mcError_t mcPeekAtLastError(void)
{
    mcError_t error = device_error();
    return error != mcSuccess ? error : maca_last_error();
}

mcError_t mcGetLastError(void)
{
    mcError_t error = mcPeekAtLastError();
    maca_set_last_error(mcSuccess);
    return error;
}
