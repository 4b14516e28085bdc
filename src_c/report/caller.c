#include "report/caller.h"

#include "report/fork.h"
#include "report/report.h"
#include "report/source_line.h"

#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

/* ---- objects: files of code in this process ---- */

typedef struct Object {
    char file[PATH_MAX];
    uintptr_t load_address; /* add to the file's addresses */
    bool is_program;        /* the executable */
} Object;

typedef struct Search {
    uintptr_t address;
    Object *object;
} Search;

static int match_object(struct dl_phdr_info *info, size_t size, void *argument)
{
    (void)size;
    Search *search = argument;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && search->address - info->dlpi_addr - segment->p_vaddr < segment->p_memsz) {
            bool is_program = info->dlpi_name == NULL || info->dlpi_name[0] == '\0';
            snprintf(search->object->file, sizeof search->object->file, "%s",
                     is_program ? "/proc/self/exe" : info->dlpi_name);
            search->object->load_address = info->dlpi_addr;
            search->object->is_program = is_program;
            return 1;
        }
    }
    return 0;
}

static bool find_object(uintptr_t address, Object *object)
{
    Search search = {address, object};
    return dl_iterate_phdr(match_object, &search) != 0;
}

/* The folder above the SDK trees, as the file system names it; "" when we are part of the program. */
static char sdk[PATH_MAX];
static bool is_static; /* one file holds the program and us */

static void find_sdk(void)
{
    Object own;
    char path[PATH_MAX];
    if (!find_object((uintptr_t)us_find_caller, &own)) {
        return;
    }
    is_static = own.is_program;
    if (!is_static && realpath(own.file, path) != NULL) {
        for (int levels = 0; levels < 2; levels++) { /* SDK/lib/libunderstudy.so */
            char *slash = strrchr(path, '/');
            *(slash != NULL ? slash : path) = '\0';
        }
        strcpy(sdk, path);
    }
}

/* The library of `understudy trace`, which stands between a program and us, lies in a user's caches. */
static bool notes_calls(const char *path)
{
    static const char name[] = "/libunderstudy-calls";
    const char *last = strrchr(path, '/');
    return last != NULL && strncmp(last, name, sizeof name - 1) == 0;
}

static bool is_ours(const Object *object)
{
    static const char *const folders[] = {"/lib/libunderstudy.so", "/ascend/", "/maca/", "/ftdsp/"};
    char path[PATH_MAX];
    size_t length = strlen(sdk);
    if (object->is_program || realpath(object->file, path) == NULL) {
        return false;
    }
    if (notes_calls(path)) {
        return true;
    }
    if (strncmp(path, sdk, length) != 0) {
        return false;
    }
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        if (strncmp(path + length, folders[i], strlen(folders[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- what is known of an address: looked up once ---- */

typedef struct Known {
    uintptr_t address;
    bool ours, in_program;
    uintptr_t offset; /* in the file */
    bool is_read;     /* from here on: */
    SourceLine source;
    char file[64]; /* without folders */
} Known;

enum { KNOWN_LIMIT = 1024 };
static Known *known[KNOWN_LIMIT];
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void guard_lock(void)
{
    us_fork_waits_for(&known_lock);
}

static void look_up(Known *entry, bool read)
{
    Object object;
    /* The address behind a call may belong to the next line, or to the next function. */
    uintptr_t call = entry->address - 1;
    if (!find_object(call, &object)) {
        return;
    }
    entry->ours = is_ours(&object);
    entry->in_program = object.is_program;
    entry->offset = call - object.load_address;
    entry->is_read = read;
    if (read && !entry->ours) {
        char path[PATH_MAX];
        us_source_line(object.file, entry->offset, &entry->source);
        const char *name = realpath(object.file, path) != NULL ? strrchr(path, '/') : NULL;
        snprintf(entry->file, sizeof entry->file, "%.63s", name != NULL ? name + 1 : object.file);
    }
}

/* What is known; with `read` also its names. All zero when there is no memory. */
static Known find_known(const void *address, bool read)
{
    Known found = {.address = 0};
    Known **slot = &known[((uintptr_t)address >> 1) % KNOWN_LIMIT];
    pthread_mutex_lock(&known_lock);
    *slot = *slot != NULL ? *slot : calloc(1, sizeof **slot);
    if (*slot != NULL) {
        if ((*slot)->address != (uintptr_t)address || (read && !(*slot)->is_read)) {
            **slot = (Known){.address = (uintptr_t)address};
            look_up(*slot, read);
        }
        found = **slot;
    }
    pthread_mutex_unlock(&known_lock);
    return found;
}

/* ---- frames ---- */

enum { FRAME_LIMIT = 64 };

typedef struct Frames {
    const void *addresses[FRAME_LIMIT];
    int count;
} Frames;

static _Unwind_Reason_Code take_frame(struct _Unwind_Context *context, void *argument)
{
    Frames *frames = argument;
    uintptr_t address = _Unwind_GetIP(context);
    if (address == 0 || frames->count == FRAME_LIMIT) {
        return _URC_END_OF_STACK;
    }
    frames->addresses[frames->count++] = (const void *)address;
    return _URC_NO_REASON;
}

static Frames find_frames(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_sdk);
    Frames frames = {.count = 0};
    _Unwind_Backtrace(take_frame, &frames);
    return frames;
}

/* The first frame that is the program's; in a static program: the one that called the public function. */
static int first_of_program(const Frames *frames)
{
    const char *function = us_current_function();
    bool inside = false;
    for (int i = 0; i < frames->count; i++) {
        Known entry = find_known(frames->addresses[i], is_static);
        bool is_public = is_static && strcmp(entry.source.function, function) == 0;
        if (is_static ? inside && !is_public : !entry.ours) {
            return i;
        }
        inside = is_public;
    }
    return frames->count;
}

bool us_callers_are_wanted(void)
{
    return us_log_enabled(LOG_LEVEL_WARN) || us_environment_text("UNDERSTUDY_CHECK", NULL) != NULL;
}

const void *us_find_caller(void)
{
    Frames frames = find_frames();
    int first = first_of_program(&frames);
    return first < frames.count ? frames.addresses[first] : NULL;
}

const void *us_find_interrupted(const void *instruction)
{
    Frames frames = find_frames();
    int i = 0;
    while (i < frames.count && frames.addresses[i] != instruction) {
        i++;
    }
    const void *here = (const char *)instruction + 1; /* as if it were a call */
    for (; i < frames.count; i++) {
        const void *address = frames.addresses[i] == instruction ? here : frames.addresses[i];
        if (find_known(address, true).source.file[0] != '\0') {
            return address;
        }
    }
    return here;
}

void us_log_calls(void)
{
    if (!us_log_enabled(LOG_LEVEL_INFO)) {
        return;
    }
    Frames frames = find_frames();
    for (int i = first_of_program(&frames); i < frames.count; i++) {
        Place place = us_place(frames.addresses[i]);
        if (place.text[0] != '\0') {
            us_log(LOG_LEVEL_INFO, "  called%s", place.text);
        }
    }
}

/* ---- text ---- */

/* Of the C++ library, when the program has it. */
extern char *__cxa_demangle(const char *name, char *buffer, size_t *length, int *status) __attribute__((weak));

static void readable_function(const char *name, char *text, size_t size)
{
    bool is_mangled = strncmp(name, "_Z", 2) == 0;
    char *demangled = is_mangled && __cxa_demangle != NULL ? __cxa_demangle(name, NULL, NULL, NULL) : NULL;
    snprintf(text, size, "%s", demangled != NULL ? demangled : name);
    free(demangled);
}

Place us_place(const void *caller)
{
    Place place = {""};
    if (caller == NULL) {
        return place;
    }
    Known entry = find_known(caller, true);
    const SourceLine *source = &entry.source;
    char function[128];
    readable_function(source->function, function, sizeof function);
    if (source->file[0] != '\0') {
        snprintf(place.text, sizeof place.text, " at %s:%u%s%s", source->file, source->line,
                 function[0] != '\0' ? " in " : "", function);
    } else if (function[0] != '\0') {
        snprintf(place.text, sizeof place.text, " in %s of %s", function, entry.file);
    } else if (entry.in_program) {
        snprintf(place.text, sizeof place.text, " at %s+0x%zx", entry.file, (size_t)entry.offset);
    }
    return place;
}
