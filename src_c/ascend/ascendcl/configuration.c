#include "ascend/ascendcl/configuration.h"
#include "ascend/ascendcl/runtime.h"

#include "acl/acl_base.h"
#include "report/hash.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NESTING_LIMIT = 64, FILE_SIZE_LIMIT = 10 * 1024 * 1024 };

/* ---- a JSON reader that only looks for some values ---- */

typedef struct Reader {
    const char *at, *end;
    int depth;
    char outer[32]; /* the member of the outermost object that is being read */
    Wanted *wanted;
    size_t wanted_count;
} Reader;

static bool read_value(Reader *reader);

static void skip_space(Reader *reader)
{
    while (reader->at < reader->end && strchr(" \t\r\n", *reader->at) != NULL && *reader->at != '\0') {
        reader->at++;
    }
}

static bool accept(Reader *reader, char wanted)
{
    skip_space(reader);
    if (reader->at == reader->end || *reader->at != wanted) {
        return false;
    }
    reader->at++;
    return true;
}

/* A string; `text` (may be NULL) gets it without quotes, escapes left as they are, cut to `size`. */
static bool read_string(Reader *reader, char *text, size_t size)
{
    if (!accept(reader, '"')) {
        return false;
    }
    const char *first = reader->at;
    while (reader->at < reader->end && *reader->at != '"') {
        if ((unsigned char)*reader->at < 0x20) {
            return false;
        }
        reader->at += *reader->at == '\\' && reader->end - reader->at > 1 ? 2 : 1;
    }
    if (reader->at >= reader->end) {
        return false;
    }
    if (text != NULL) {
        snprintf(text, size, "%.*s", (int)(reader->at - first), first);
    }
    reader->at++;
    return true;
}

static bool read_word(Reader *reader)
{
    static const char *const words[] = {[0] = "true", [1] = "false", [2] = "null"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t length = strlen(words[i]);
        if ((size_t)(reader->end - reader->at) >= length && memcmp(reader->at, words[i], length) == 0) {
            reader->at += length;
            return true;
        }
    }
    return false;
}

static bool read_digits(Reader *reader)
{
    const char *first = reader->at;
    while (reader->at < reader->end && isdigit((unsigned char)*reader->at)) {
        reader->at++;
    }
    return reader->at > first;
}

static bool read_number(Reader *reader)
{
    accept(reader, '-');
    if (!read_digits(reader) || (accept(reader, '.') && !read_digits(reader))) {
        return false;
    }
    if (reader->at < reader->end && (*reader->at == 'e' || *reader->at == 'E')) {
        reader->at++;
        if (reader->at < reader->end && (*reader->at == '+' || *reader->at == '-')) {
            reader->at++;
        }
        return read_digits(reader);
    }
    return true;
}

/* Keeps the value that was read from `first` on, a text without its quotes, if somebody wants it. */
static void keep_value(Reader *reader, const char *outer, const char *name, const char *first)
{
    for (size_t i = 0; i < reader->wanted_count; i++) {
        Wanted *wanted = &reader->wanted[i];
        if (strcmp(wanted->outer, outer) == 0 && strcmp(wanted->name, name) == 0) {
            size_t quotes = *first == '"';
            wanted->given = true;
            snprintf(wanted->value, sizeof wanted->value, "%.*s", (int)(reader->at - first - 2 * (ptrdiff_t)quotes),
                     first + quotes);
        }
    }
}

static bool read_member(Reader *reader)
{
    char name[64];
    if (!read_string(reader, name, sizeof name) || !accept(reader, ':')) {
        return false;
    }
    skip_space(reader);
    const char *first = reader->at;
    const int depth = reader->depth;
    if (depth == 1) {
        snprintf(reader->outer, sizeof reader->outer, "%.31s", name);
    }
    bool well_formed = read_value(reader);
    if (well_formed && depth <= 2) {
        keep_value(reader, depth == 1 ? "" : reader->outer, name, first);
    }
    return well_formed;
}

/* The inside of { } or [ ]. */
static bool read_list(Reader *reader, char closing, bool (*read_item)(Reader *))
{
    if (accept(reader, closing)) {
        return true;
    }
    do {
        if (!read_item(reader)) {
            return false;
        }
    } while (accept(reader, ','));
    return accept(reader, closing);
}

static bool read_value(Reader *reader)
{
    skip_space(reader);
    if (reader->at == reader->end || reader->depth == NESTING_LIMIT) {
        return false;
    }
    char first = *reader->at;
    if (first == '{' || first == '[') {
        reader->at++;
        reader->depth++;
        bool well_formed = first == '{' ? read_list(reader, '}', read_member) : read_list(reader, ']', read_value);
        reader->depth--;
        return well_formed;
    }
    if (first == '"') {
        return read_string(reader, NULL, 0);
    }
    return first == '-' || isdigit((unsigned char)first) ? read_number(reader) : read_word(reader);
}

static bool read_document(Reader *reader)
{
    bool well_formed = read_value(reader);
    skip_space(reader);
    return well_formed && reader->at == reader->end;
}

/* ---- the file ---- */

/* The whole file in memory that the caller frees; NULL after a refusal. */
static char *read_file(Call *call, const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    us_require(call, file != NULL, "configPath", "missing", ACL_ERROR_INVALID_FILE, "%s cannot be opened", path);
    if (call->status != 0) {
        return NULL;
    }
    char *text = malloc(FILE_SIZE_LIMIT + 2);
    us_require(call, text != NULL, "configPath", "memory", ACL_ERROR_BAD_ALLOC, "no host memory to read %s", path);
    if (text != NULL) {
        *length = fread(text, 1, FILE_SIZE_LIMIT + 1, file);
        us_require(call, !ferror(file), "configPath", "missing", ACL_ERROR_INVALID_FILE, "%s cannot be read", path);
        us_require(call, *length > 0 && *length <= FILE_SIZE_LIMIT, "configPath", "size", ACL_ERROR_INVALID_FILE_SIZE,
                   "%s must hold 1 to %d bytes", path, (int)FILE_SIZE_LIMIT);
    }
    fclose(file);
    if (call->status != 0) {
        free(text);
        return NULL;
    }
    text[*length] = '\0';
    return text;
}

char *acl_read_json(Call *call, const char *path, Wanted *wanted, size_t count, size_t *length)
{
    char *text = read_file(call, path, length);
    if (text == NULL) {
        return NULL;
    }
    Reader reader = {.at = text, .end = text + *length, .wanted = wanted, .wanted_count = count};
    us_require(call, read_document(&reader), "configPath", "json", ACL_ERROR_PARSE_FILE,
               "%s is not JSON at byte %zu", path, (size_t)(reader.at - text));
    if (call->status != 0) {
        free(text);
        return NULL;
    }
    return text;
}

/* -1: not given; -2: given, but no number. */
static long number_of(const Wanted *wanted)
{
    char *end = NULL;
    long number = strtol(wanted->value, &end, 10);
    bool valid = end != wanted->value && *end == '\0' && number >= 0;
    return !wanted->given ? -1 : valid ? number : -2;
}

void acl_read_configuration(Call *call, const char *path, Configuration *configuration)
{
    if (call->status != 0 || path == NULL || path[0] == '\0') {
        return;
    }
    enum { DEVICE, MODE, PROFILER, DUMP };
    Wanted wanted[DUMP + DUMP_WANTED] = {[DEVICE] = {.outer = "defaultDevice", .name = "default_device"},
                                         [MODE] = {.outer = "", .name = "err_msg_mode"},
                                         [PROFILER] = {.outer = "profiler", .name = "switch"}};
    acl_want_dump(wanted + DUMP);
    char *text = acl_read_json(call, path, wanted, DUMP + DUMP_WANTED, &configuration->size);
    long mode = number_of(&wanted[MODE]);
    long device = number_of(&wanted[DEVICE]);
    us_require(call, mode == -1 || mode == 0 || mode == 1, "configPath", "message-mode", ACL_ERROR_INVALID_PARAM,
               "err_msg_mode in %s is neither 0 nor 1", path);
    us_require(call, device >= -1 && device <= INT32_MAX, "configPath", "default-device", ACL_ERROR_INVALID_PARAM,
               "default_device in %s is no device number", path);
    const Runtime *runtime = acl_runtime();
    const int32_t devices = runtime != NULL ? runtime->platform->device_count : 0;
    us_require(call, devices == 0 || device < devices, "configPath", "default-device", ACL_ERROR_INVALID_PARAM,
               "default_device in %s is %ld; the last device is %d", path, device, (int)devices - 1);
    acl_require_dump(call, wanted + DUMP, &configuration->dump);
    if (call->status != 0) {
        free(text);
        return;
    }
    configuration->fingerprint = us_hash(text, configuration->size);
    configuration->default_device = (int32_t)device;
    configuration->messages_of_process = mode == 1;
    configuration->profiles = wanted[PROFILER].given && strcmp(wanted[PROFILER].value, "on") == 0;
    configuration->text = text;
}
