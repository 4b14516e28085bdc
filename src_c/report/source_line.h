/* Names of places in a program: its own symbols, and the lines its debug information tells. */
#ifndef UNDERSTUDY_SOURCE_LINE_H
#define UNDERSTUDY_SOURCE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct SourceLine {
    char function[128]; /* as the linker names it; "" when not known */
    char file[256];     /* as the compiler was told it; "" when there is no debug information */
    unsigned line;
} SourceLine;

/* What an ELF file of this machine says of an address, counted as in the file. Reads the file anew each time; a damaged
 * file gives no names. */
void us_source_line(const char *elf_file, uint64_t address, SourceLine *found);

#endif
