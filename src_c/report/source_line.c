/* Reads symbol tables and the line tables of DWARF 2 to 5 (its section 6.2). Nothing in the file is believed: each read is
 * within the file, or ends the search. Compressed sections and separate files of debug information are not read. */
#include "report/source_line.h"

#include "report/descriptor.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes that are left to read. After reading past the end everything is 0. */
typedef struct Bytes {
    const uint8_t *next, *end;
} Bytes;

static uint64_t left(const Bytes *bytes)
{
    return (uint64_t)(bytes->end - bytes->next);
}

static void skip(Bytes *bytes, uint64_t count)
{
    bytes->next = count <= left(bytes) ? bytes->next + count : bytes->end;
}

static uint64_t number(Bytes *bytes, size_t size)
{
    uint64_t value = 0;
    if (size <= sizeof value && size <= left(bytes)) {
        memcpy(&value, bytes->next, size); /* this machine's files are little-endian, as it is */
    }
    skip(bytes, size);
    return value;
}

static uint64_t unsigned_leb(Bytes *bytes)
{
    uint64_t value = 0;
    for (unsigned shift = 0; left(bytes) > 0; shift += 7) {
        uint8_t byte = *bytes->next++;
        value |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
        if (byte < 0x80) {
            break;
        }
    }
    return value;
}

static int64_t signed_leb(Bytes *bytes)
{
    const uint8_t *first = bytes->next;
    uint64_t value = unsigned_leb(bytes);
    unsigned bits = 7 * (unsigned)(bytes->next - first);
    bool negative = bits > 0 && (bytes->next[-1] & 0x40) != 0;
    return (int64_t)(negative && bits < 64 ? value | UINT64_MAX << bits : value);
}

/* A string that ends within the bytes; "" otherwise. */
static const char *string(Bytes *bytes)
{
    const uint8_t *zero = left(bytes) > 0 ? memchr(bytes->next, 0, left(bytes)) : NULL;
    const char *text = zero != NULL ? (const char *)bytes->next : "";
    bytes->next = zero != NULL ? zero + 1 : bytes->end;
    return text;
}

static const char *string_at(Bytes table, uint64_t offset)
{
    skip(&table, offset);
    return string(&table);
}

/* ---- the file ---- */

typedef struct Elf {
    Bytes all;
    const Elf64_Shdr *sections;
    unsigned count;
    Bytes names;
} Elf;

static Bytes part(const Elf *elf, uint64_t offset, uint64_t size)
{
    Bytes bytes = elf->all;
    skip(&bytes, offset);
    bytes.end = size <= left(&bytes) ? bytes.next + size : bytes.next;
    return bytes;
}

static Bytes content(const Elf *elf, const Elf64_Shdr *section)
{
    bool readable = section->sh_type != SHT_NOBITS && (section->sh_flags & SHF_COMPRESSED) == 0;
    return part(elf, section->sh_offset, readable ? section->sh_size : 0);
}

static bool read_sections(Elf *elf)
{
    Elf64_Ehdr header;
    if (left(&elf->all) < sizeof header) {
        return false;
    }
    memcpy(&header, elf->all.next, sizeof header);
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shoff % 8 != 0) {
        return false;
    }
    Bytes table = part(elf, header.e_shoff, (uint64_t)header.e_shnum * sizeof(Elf64_Shdr));
    elf->sections = (const Elf64_Shdr *)(const void *)table.next;
    elf->count = (unsigned)(left(&table) / sizeof(Elf64_Shdr));
    if (header.e_shstrndx < elf->count) {
        elf->names = content(elf, &elf->sections[header.e_shstrndx]);
    }
    return true;
}

static Bytes section_named(const Elf *elf, const char *name)
{
    for (unsigned i = 0; i < elf->count; i++) {
        if (strcmp(string_at(elf->names, elf->sections[i].sh_name), name) == 0) {
            return content(elf, &elf->sections[i]);
        }
    }
    return (Bytes){elf->all.end, elf->all.end};
}

static void find_function(const Elf *elf, uint64_t address, SourceLine *found)
{
    for (unsigned i = 0; i < elf->count && found->function[0] == '\0'; i++) {
        const Elf64_Shdr *section = &elf->sections[i];
        if ((section->sh_type != SHT_SYMTAB && section->sh_type != SHT_DYNSYM) || section->sh_link >= elf->count) {
            continue;
        }
        Bytes strings = content(elf, &elf->sections[section->sh_link]);
        for (Bytes symbols = content(elf, section); left(&symbols) >= sizeof(Elf64_Sym);) {
            Elf64_Sym symbol;
            memcpy(&symbol, symbols.next, sizeof symbol);
            skip(&symbols, sizeof symbol);
            if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && address - symbol.st_value < symbol.st_size) {
                snprintf(found->function, sizeof found->function, "%s", string_at(strings, symbol.st_name));
                break;
            }
        }
    }
}

/* ---- line tables ---- */

typedef struct Strings {
    Bytes text, line; /* .debug_str, .debug_line_str */
} Strings;

/* The names of a table's files: where their list begins, and how its entries look. */
typedef struct Files {
    unsigned version;
    size_t offset_size;
    Bytes folders, files; /* version 5: from the description of the format on */
} Files;

typedef struct Entry {
    const char *name;
    uint64_t folder;
} Entry;

enum { FORMS = 8 }; /* kinds of content that one entry may have */

typedef struct Format {
    unsigned count;
    struct {
        uint64_t content, form;
    } parts[FORMS];
} Format;

static Format read_format(Bytes *bytes)
{
    Format format = {.count = (unsigned)number(bytes, 1)};
    for (unsigned i = 0; i < format.count; i++) {
        uint64_t content = unsigned_leb(bytes), form = unsigned_leb(bytes);
        if (i < FORMS) {
            format.parts[i].content = content;
            format.parts[i].form = form;
        }
    }
    format.count = format.count < FORMS ? format.count : 0;
    return format;
}

/* DW_FORM_…: those that an entry's name, folder, time, size and digest may have. False: another. */
static bool read_form(Bytes *bytes, uint64_t form, size_t offset_size, const Strings *strings, const char **text,
                      uint64_t *value)
{
    switch (form) {
    case 0x08: *text = string(bytes); return true;
    case 0x0e: *text = string_at(strings->text, number(bytes, offset_size)); return true;
    case 0x1f: *text = string_at(strings->line, number(bytes, offset_size)); return true;
    case 0x0b: *value = number(bytes, 1); return true;
    case 0x05: *value = number(bytes, 2); return true;
    case 0x06: *value = number(bytes, 4); return true;
    case 0x07: *value = number(bytes, 8); return true;
    case 0x0f: *value = unsigned_leb(bytes); return true;
    case 0x1e: skip(bytes, 16); return true;
    case 0x09: skip(bytes, unsigned_leb(bytes)); return true;
    default: return false;
    }
}

/* Entry `wanted` of a list of version 5; `bytes` is then behind the list. */
static Entry listed(Bytes *bytes, uint64_t wanted, size_t offset_size, const Strings *strings)
{
    enum { NAME = 1, FOLDER = 2 };
    Entry found = {"", 0};
    Format format = read_format(bytes);
    uint64_t count = unsigned_leb(bytes);
    for (uint64_t i = 0; i < count && format.count > 0 && left(bytes) > 0; i++) {
        Entry entry = {"", 0};
        for (unsigned p = 0; p < format.count; p++) {
            const char *text = "";
            uint64_t value = 0;
            if (!read_form(bytes, format.parts[p].form, offset_size, strings, &text, &value)) {
                return found;
            }
            entry.name = format.parts[p].content == NAME ? text : entry.name;
            entry.folder = format.parts[p].content == FOLDER ? value : entry.folder;
        }
        found = i == wanted ? entry : found;
    }
    return found;
}

/* The same before version 5, where the first entry is number 1 and folder 0 is where the compiler ran. */
static Entry listed_before_5(Bytes *bytes, uint64_t wanted, bool are_files)
{
    Entry found = {"", 0};
    for (uint64_t i = 1; left(bytes) > 0; i++) {
        Entry entry = {string(bytes), 0};
        if (entry.name[0] == '\0') {
            break;
        }
        if (are_files) {
            entry.folder = unsigned_leb(bytes);
            unsigned_leb(bytes); /* time */
            unsigned_leb(bytes); /* size */
        }
        found = i == wanted ? entry : found;
    }
    return found;
}

/* The file's name as the compiler was told it: with its folder, unless that is where the compiler ran. */
static void name_file(Bytes lists, const Files *files, const Strings *strings, uint64_t file, SourceLine *found)
{
    Bytes again = lists;
    Entry entry, folder;
    if (files->version >= 5) {
        listed(&lists, 0, files->offset_size, strings);
        entry = listed(&lists, file, files->offset_size, strings);
        folder = listed(&again, entry.folder, files->offset_size, strings);
    } else {
        listed_before_5(&lists, 0, false);
        entry = listed_before_5(&lists, file, true);
        folder = listed_before_5(&again, entry.folder, false);
    }
    bool inside = entry.folder != 0 && entry.name[0] != '/' && folder.name[0] != '\0';
    snprintf(found->file, sizeof found->file, "%s%s%s", inside ? folder.name : "", inside ? "/" : "", entry.name);
}

typedef struct Row {
    uint64_t address, file, line;
} Row;

typedef struct Machine {
    uint64_t wanted;
    Row row, before;
    bool has_before;
} Machine;

/* A row of the table begins at the present address, so the one before ends there. */
static bool emit(Machine *machine, bool ends)
{
    bool hit = machine->has_before && machine->before.address != 0 && machine->before.address <= machine->wanted &&
               machine->wanted < machine->row.address;
    if (!hit) {
        machine->before = machine->row;
        machine->has_before = !ends;
        machine->row = ends ? (Row){0, 1, 1} : machine->row;
    }
    return hit;
}

typedef struct Program {
    uint8_t shortest, line_range, opcode_base;
    int8_t line_base;
    const uint8_t *lengths; /* operands of the standard operations, from 1 on */
} Program;

static bool run_extended(Bytes *bytes, Machine *machine)
{
    enum { END_SEQUENCE = 1, SET_ADDRESS = 2 };
    uint64_t size = unsigned_leb(bytes);
    Bytes operation = *bytes;
    operation.end = size < left(bytes) ? bytes->next + size : bytes->end;
    skip(bytes, size);
    uint64_t code = number(&operation, 1);
    if (code == SET_ADDRESS) {
        machine->row.address = number(&operation, left(&operation));
    }
    return code == END_SEQUENCE && emit(machine, true);
}

static bool run_standard(uint8_t code, Bytes *bytes, const Program *program, Machine *machine)
{
    enum { COPY = 1, ADVANCE_PC, ADVANCE_LINE, SET_FILE, CONST_ADD_PC = 8, FIXED_ADVANCE_PC = 9 };
    switch (code) {
    case COPY: return emit(machine, false);
    case ADVANCE_PC: machine->row.address += unsigned_leb(bytes) * program->shortest; return false;
    case ADVANCE_LINE: machine->row.line += (uint64_t)signed_leb(bytes); return false;
    case SET_FILE: machine->row.file = unsigned_leb(bytes); return false;
    case CONST_ADD_PC:
        machine->row.address += (uint64_t)((255 - program->opcode_base) / program->line_range * program->shortest);
        return false;
    case FIXED_ADVANCE_PC: machine->row.address += number(bytes, 2); return false;
    default:
        for (unsigned i = 0; i < program->lengths[code - 1]; i++) {
            unsigned_leb(bytes);
        }
        return false;
    }
}

static bool run_special(uint8_t code, const Program *program, Machine *machine)
{
    unsigned adjusted = code - program->opcode_base;
    machine->row.address += (uint64_t)(adjusted / program->line_range) * program->shortest;
    machine->row.line += (uint64_t)(int64_t)(program->line_base + (int)(adjusted % program->line_range));
    return emit(machine, false);
}

/* One compilation's table; true when the address is in it. */
static bool search_table(Bytes bytes, size_t offset_size, const Strings *strings, uint64_t address, SourceLine *found)
{
    Files files = {.version = (unsigned)number(&bytes, 2), .offset_size = offset_size};
    skip(&bytes, files.version >= 5 ? 2 : 0); /* sizes of addresses and segments */
    Bytes operations = bytes;
    uint64_t header_size = number(&operations, offset_size);
    bytes = operations;
    skip(&operations, header_size);
    Program program = {.shortest = (uint8_t)number(&bytes, 1)};
    skip(&bytes, files.version >= 4 ? 2 : 1); /* operations per instruction, default_is_stmt */
    program.line_base = (int8_t)number(&bytes, 1);
    program.line_range = (uint8_t)number(&bytes, 1);
    program.opcode_base = (uint8_t)number(&bytes, 1);
    program.lengths = bytes.next;
    if (files.version < 2 || files.version > 5 || program.line_range == 0 || program.opcode_base == 0 ||
        left(&bytes) < program.opcode_base) {
        return false;
    }
    skip(&bytes, program.opcode_base - 1u);
    Machine machine = {.wanted = address, .row = {0, 1, 1}};
    bool hit = false;
    while (!hit && left(&operations) > 0) {
        uint8_t code = (uint8_t)number(&operations, 1);
        hit = code >= program.opcode_base ? run_special(code, &program, &machine)
              : code == 0                 ? run_extended(&operations, &machine)
                                          : run_standard(code, &operations, &program, &machine);
    }
    if (hit) {
        found->line = (unsigned)machine.before.line;
        name_file(bytes, &files, strings, machine.before.file, found);
    }
    return hit;
}

static void find_line(const Elf *elf, uint64_t address, SourceLine *found)
{
    Strings strings = {section_named(elf, ".debug_str"), section_named(elf, ".debug_line_str")};
    Bytes tables = section_named(elf, ".debug_line");
    while (left(&tables) > 4) {
        size_t offset_size = 4;
        uint64_t size = number(&tables, 4);
        if (size == 0xffffffff) { /* 64-bit format */
            offset_size = 8;
            size = number(&tables, 8);
        }
        Bytes table = tables;
        table.end = size <= left(&tables) ? tables.next + size : tables.end;
        skip(&tables, size);
        if (search_table(table, offset_size, &strings, address, found)) {
            return;
        }
    }
}

void us_source_line(const char *elf_file, uint64_t address, SourceLine *found)
{
    *found = (SourceLine){.line = 0};
    int file = us_descriptor(open(elf_file, O_RDONLY | O_CLOEXEC));
    struct stat status;
    if (file < 0) {
        return;
    }
    bool known = fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
    size_t size = known ? (size_t)status.st_size : 0;
    void *bytes = known ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
    close(file);
    if (bytes == MAP_FAILED) {
        return;
    }
    Elf elf = {.all = {bytes, (const uint8_t *)bytes + size}};
    elf.names = (Bytes){elf.all.end, elf.all.end};
    if (read_sections(&elf)) {
        find_function(&elf, address, found);
        find_line(&elf, address, found);
    }
    munmap(bytes, size);
}
