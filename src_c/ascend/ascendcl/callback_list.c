#include "ascend/ascendcl/callback_list.h"

#include <string.h>

static bool is_meant(const Callback *entry, const Callback *wanted)
{
    return strcmp(entry->name, wanted->name) == 0 && entry->type == wanted->type &&
           (wanted->name[0] != '\0' || entry->function == wanted->function);
}

/* With the lock held: NULL when there is none. */
static Callback *find(CallbackLists *lists, CallbackOccasion occasion, const Callback *wanted)
{
    for (size_t i = 0; i < lists->counts[occasion]; i++) {
        Callback *entry = &lists->entries[occasion][i];
        if (is_meant(entry, wanted)) {
            return entry;
        }
    }
    return NULL;
}

/* With the lock held: false when the list is full. */
static bool append(CallbackLists *lists, CallbackOccasion occasion, const Callback *added)
{
    bool fits = lists->counts[occasion] < CALLBACK_LIMIT;
    if (fits) {
        lists->entries[occasion][lists->counts[occasion]++] = *added;
    }
    return fits;
}

bool callbacks_add(Runtime *runtime, CallbackOccasion occasion, const Callback *added)
{
    CallbackLists *lists = runtime->callbacks;
    pthread_mutex_lock(&lists->lock);
    Callback *entry = find(lists, occasion, added);
    if (entry != NULL) {
        *entry = *added;
    }
    bool done = entry != NULL || append(lists, occasion, added);
    pthread_mutex_unlock(&lists->lock);
    return done;
}

CallbackAdded callbacks_add_new(Runtime *runtime, CallbackOccasion occasion, const Callback *added)
{
    CallbackLists *lists = runtime->callbacks;
    pthread_mutex_lock(&lists->lock);
    CallbackAdded result = find(lists, occasion, added) != NULL ? CALLBACK_IS_THERE
                           : append(lists, occasion, added)     ? CALLBACK_IS_NEW
                                                                : CALLBACKS_ARE_FULL;
    pthread_mutex_unlock(&lists->lock);
    return result;
}

bool callbacks_remove(Runtime *runtime, CallbackOccasion occasion, const Callback *wanted)
{
    CallbackLists *lists = runtime->callbacks;
    pthread_mutex_lock(&lists->lock);
    Callback *entry = find(lists, occasion, wanted);
    if (entry != NULL) {
        Callback *end = &lists->entries[occasion][lists->counts[occasion]--];
        memmove(entry, entry + 1, (size_t)(end - (entry + 1)) * sizeof *entry);
    }
    pthread_mutex_unlock(&lists->lock);
    return entry != NULL;
}

size_t callbacks_copy(Runtime *runtime, CallbackOccasion occasion, Callback copy[CALLBACK_LIMIT])
{
    CallbackLists *lists = runtime->callbacks;
    pthread_mutex_lock(&lists->lock);
    size_t count = lists->counts[occasion];
    memcpy(copy, lists->entries[occasion], count * sizeof *copy);
    pthread_mutex_unlock(&lists->lock);
    return count;
}

size_t callbacks_claim(Runtime *runtime, CallbackOccasion occasion, const Callback *wanted, uint64_t start,
                       Callback copy[CALLBACK_LIMIT])
{
    CallbackLists *lists = runtime->callbacks;
    size_t count = 0;
    pthread_mutex_lock(&lists->lock);
    for (size_t i = 0; i < lists->counts[occasion]; i++) {
        Callback *entry = &lists->entries[occasion][i];
        if ((wanted == NULL || is_meant(entry, wanted)) && entry->told != start) {
            entry->told = start;
            copy[count++] = *entry;
        }
    }
    pthread_mutex_unlock(&lists->lock);
    return count;
}
