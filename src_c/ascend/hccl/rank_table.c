#include "ascend/hccl/rank_table.h"

#include "hccl/hccl.h"
#include "report/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 4096, SIZE_LIMIT = 1 << 24, WORD_BYTES = 32, DEPTH_LIMIT = 64 };
#define BLANKS " \t\r\n"
#define MARKS "{}[],:"

uint64_t hccl_number_of(const char *text, size_t length)
{
    return us_hash(text, length) | 2;
}

/* For the caller to free. */
static char *read_text(Call *call, const char *path, size_t *length)
{
    us_require(call, path != NULL, "clusterInfo", "null", HCCL_E_PTR, "clusterInfo is NULL");
    us_require(call, strnlen(path, PATH_BYTES) < PATH_BYTES, "clusterInfo", "size", HCCL_E_PARA,
               "clusterInfo is longer than %d bytes", PATH_BYTES);
    FILE *file = call->status == 0 ? fopen(path, "rbe") : NULL;
    us_require(call, file != NULL, "clusterInfo", "missing", HCCL_E_OPEN_FILE_FAILURE, "%s cannot be read", path);
    char *text = call->status == 0 ? malloc(SIZE_LIMIT + 1) : NULL;
    us_require(call, text != NULL, "clusterInfo", "memory", HCCL_E_MEMORY, "no host memory to read %s", path);
    *length = text != NULL ? fread(text, 1, SIZE_LIMIT, file) : 0;
    us_require(call, *length < SIZE_LIMIT, "clusterInfo", "size", HCCL_E_PARA, "%s has more than %d bytes", path,
               SIZE_LIMIT - 1);
    if (file != NULL) {
        fclose(file);
    }
    if (text != NULL) {
        text[*length] = '\0';
    }
    return text;
}

/* Behind the string that begins here; NULL: it has no end. */
static const char *skip_string(const char *text)
{
    for (text++; *text != '\0' && *text != '"'; text++) {
        text += text[0] == '\\' && text[1] != '\0';
    }
    return *text == '"' ? text + 1 : NULL;
}

/* Behind the object that begins here; NULL: it is none, or a bracket or a string in it is not closed. */
static const char *skip_object(const char *text)
{
    char closing[DEPTH_LIMIT];
    int depth = 0;
    if (*text != '{') {
        return NULL;
    }
    do {
        const bool opens = *text == '{' || *text == '[', closes = *text == '}' || *text == ']';
        if ((opens && depth == DEPTH_LIMIT) || (closes && *text != closing[depth - 1])) {
            return NULL;
        }
        if (opens) {
            closing[depth] = *text == '{' ? '}' : ']';
        }
        depth += opens - closes;
        text = *text == '"' ? skip_string(text) : *text != '\0' ? text + 1 : NULL;
    } while (text != NULL && depth > 0);
    return text;
}

static bool is_object(const char *text)
{
    static const char BYTE_ORDER_MARK[] = "\xef\xbb\xbf";
    text += strncmp(text, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)) == 0 ? strlen(BYTE_ORDER_MARK) : 0;
    const char *behind = skip_object(text + strspn(text, BLANKS));
    return behind != NULL && behind[strspn(behind, BLANKS)] == '\0';
}

/* The next string or number, without quotes and cut to the room that there is; NULL: there is none. */
static const char *next_word(const char *text, char *word)
{
    text += strspn(text, BLANKS MARKS);
    const bool quoted = *text == '"';
    const char *behind = quoted ? skip_string(text) : text + strcspn(text, BLANKS MARKS "\"");
    const size_t length = (size_t)(behind - text) - (quoted ? 2 : 0);
    snprintf(word, WORD_BYTES, "%.*s", (int)(length < WORD_BYTES ? length : WORD_BYTES - 1), text + quoted);
    return *text == '\0' ? NULL : behind;
}

static bool is_key(const char *word, const char *behind)
{
    return behind[strspn(behind, BLANKS)] == ':' && (strcmp(word, "rank_id") == 0 || strcmp(word, "status") == 0);
}

/* Marks the rank that a word names. False: it is none, or was there before. */
static bool mark(const char *word, bool *seen)
{
    char *end;
    const unsigned long rank = strtoul(word, &end, 10);
    const bool fresh = word[0] >= '0' && word[0] <= '9' && *end == '\0' && rank < RANK_LIMIT && !seen[rank];
    if (fresh) {
        seen[rank] = true;
    }
    return fresh;
}

static uint32_t count_ranks(Call *call, const char *text)
{
    char key[WORD_BYTES], value[WORD_BYTES];
    bool seen[RANK_LIMIT] = {false};
    uint32_t ranks = 0, gapless = 0;
    for (const char *place = text; call->status == 0 && (place = next_word(place, key)) != NULL;) {
        if (is_key(key, place)) {
            const char *behind = next_word(place, value);
            us_require(call, key[0] != 's' || strcmp(value, "completed") == 0, "clusterInfo", "status", HCCL_E_UNAVAIL,
                       "the table's status is %s; it must be completed", value);
            us_require(call, key[0] != 'r' || mark(value, seen), "clusterInfo", "ranks", HCCL_E_PARA,
                       "a rank_id is %s: they are 0 to %d, each once", value, RANK_LIMIT - 1);
            ranks += key[0] == 'r';
            place = behind != NULL ? behind : place;
        }
    }
    while (gapless < RANK_LIMIT && seen[gapless]) {
        gapless++;
    }
    us_require(call, ranks > 0 && gapless == ranks, "clusterInfo", "ranks", HCCL_E_PARA,
               "the table has %u rank_ids, of which %u follow each other from 0 on", (unsigned)ranks, (unsigned)gapless);
    return ranks;
}

RankTable hccl_read_rank_table(Call *call, const char *path)
{
    size_t length = 0;
    char *text = read_text(call, path, &length);
    RankTable table = {0};
    if (call->status == 0) {
        us_require(call, is_object(text), "clusterInfo", "syntax", HCCL_E_PARA,
                   "%s is no object of JSON: it does not begin and end as one, or a string or a bracket is not closed", path);
        table = (RankTable){count_ranks(call, text), hccl_number_of(text, length)};
    }
    free(text);
    return table;
}
