#include "ascend/ascendcl/callback_list.h"

#include <string.h>

/* With the lock held: NULL when there is none. */
static Callback *find(CallbackLists *lists, CallbackOccasion occasion, const Callback *wanted)
{
    for (size_t i = 0; i < lists->counts[occasion]; i++) {
        Callback *entry = &lists->entries[occasion][i];
        if (strcmp(entry->name, wanted->name) == 0 && entry->type == wanted->type &&
            (wanted->function == NULL || entry->function == wanted->function)) {
            return entry;
        }
    }
    return NULL;
}

bool callbacks_have(Runtime *runtime, CallbackOccasion occasion, const Callback *wanted)
{
    pthread_mutex_lock(&runtime->callbacks->lock);
    bool found = find(runtime->callbacks, occasion, wanted) != NULL;
    pthread_mutex_unlock(&runtime->callbacks->lock);
    return found;
}

bool callbacks_add(Runtime *runtime, CallbackOccasion occasion, const Callback *added)
{
    CallbackLists *lists = runtime->callbacks;
    pthread_mutex_lock(&lists->lock);
    Callback *entry = find(lists, occasion, added);
    if (entry == NULL && lists->counts[occasion] < CALLBACK_LIMIT) {
        entry = &lists->entries[occasion][lists->counts[occasion]++];
    }
    if (entry != NULL) {
        *entry = *added;
    }
    pthread_mutex_unlock(&lists->lock);
    return entry != NULL;
}

void callbacks_remove(Runtime *runtime, CallbackOccasion occasion, const Callback *wanted)
{
    CallbackLists *lists = runtime->callbacks;
    pthread_mutex_lock(&lists->lock);
    Callback *entry = find(lists, occasion, wanted);
    if (entry != NULL) {
        Callback *end = &lists->entries[occasion][lists->counts[occasion]--];
        memmove(entry, entry + 1, (size_t)(end - (entry + 1)) * sizeof *entry);
    }
    pthread_mutex_unlock(&lists->lock);
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
