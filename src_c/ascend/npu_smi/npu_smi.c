/* npu-smi: a stand-in for the driver's tool. Prints the emulated devices under the field names that scripts look for.
 *
 *   npu-smi info                     a table of the devices and of the processes on them
 *   npu-smi info -l                  how many there are, one by one
 *   npu-smi info -m                  which numbers they have
 *   npu-smi info -t memory|usages|common [-i NUMBER]
 *
 * Every process has emulated devices of its own, so nobody else's memory or processes are seen here. What an emulated
 * device does not have, power and temperature, is "-". Uses only the vendor's interface. */
#include <acl/acl.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Chip {
    const char *name; /* without "Ascend" */
    char bus[32];
    size_t used, total; /* megabytes */
} Chip;

static void check(aclError status, const char *function)
{
    if (status != ACL_SUCCESS) {
        fprintf(stderr, "npu-smi: %s gives %d\n", function, (int)status);
        exit(1);
    }
}

static uint32_t count_devices(void)
{
    uint32_t count = 0;
    aclError status = aclrtGetDeviceCount(&count);
    return status == ACL_SUCCESS ? count : 0;
}

static Chip chip_of(uint32_t number)
{
    const char *name = aclrtGetSocName();
    Chip chip = {.name = strncmp(name, "Ascend", 6) == 0 ? name + 6 : name};
    size_t free_bytes = 0, total_bytes = 0;
    check(aclrtSetDevice((int32_t)number), "aclrtSetDevice");
    check(aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total_bytes), "aclrtGetMemInfo");
    const aclError status = aclrtDeviceGetPCIBusId((int32_t)number, chip.bus, sizeof chip.bus);
    if (status == ACL_ERROR_RT_FEATURE_NOT_SUPPORT) { /* Ascend910 */
        snprintf(chip.bus, sizeof chip.bus, "NA");
    } else {
        check(status, "aclrtDeviceGetPCIBusId");
    }
    chip.used = (total_bytes - free_bytes) >> 20;
    chip.total = total_bytes >> 20;
    return chip;
}

static void line(char edge, const char *pattern)
{
    for (const char *c = pattern; *c != '\0'; c++) {
        putchar(*c == '-' ? edge : *c);
    }
    putchar('\n');
}

static const char EDGE[] =
    "+---------------------------+---------------+----------------------------------------------------+";

static void print_table(uint32_t count)
{
    puts("+------------------------------------------------------------------------------------------------+");
    printf("| npu-smi %-24s Version: %-52s |\n", UNDERSTUDY_VERSION, UNDERSTUDY_VERSION " (Understudy, emulated)");
    line('-', EDGE);
    printf("| %-5s %-19s | %-13s | %-11s %-11s %-26s |\n", "NPU", "Name", "Health", "Power(W)", "Temp(C)",
           "Hugepages-Usage(page)");
    printf("| %-5s %-19s | %-13s | %-11s %-20s %-17s |\n", "Chip", "", "Bus-Id", "AICore(%)", "Memory-Usage(MB)",
           "HBM-Usage(MB)");
    line('=', EDGE);
    for (uint32_t i = 0; i < count; i++) {
        Chip chip = chip_of(i);
        char usage[48];
        snprintf(usage, sizeof usage, "%zu / %zu", chip.used, chip.total);
        printf("| %-5u %-19s | %-13s | %-11s %-11s %-26s |\n", i, chip.name, "OK", "-", "-", "0 / 0");
        printf("| %-5u %-19s | %-13s | %-11s %-20s %-17s |\n", 0U, "", chip.bus, "0", "0 / 0", usage);
        line(i + 1 < count ? '-' : '=', EDGE);
    }
    line('-', EDGE);
    printf("| %-5s %-19s | %-13s | %-24s %-25s |\n", "NPU", "Chip", "Process id", "Process name", "Process memory(MB)");
    line('=', EDGE);
    for (uint32_t i = 0; i < count; i++) {
        printf("| No running processes found in NPU %-60u |\n", i);
        line(i + 1 < count ? '-' : '=', EDGE);
    }
}

static void field(const char *name, const char *value)
{
    printf("\t%-30s : %s\n", name, value);
}

static void number_field(const char *name, size_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%zu", value);
    field(name, text);
}

static void print_list(uint32_t count)
{
    number_field("Total Count", count);
    for (uint32_t i = 0; i < count; i++) {
        putchar('\n');
        number_field("NPU ID", i);
        number_field("Chip Count", 1);
    }
}

static void print_mapping(uint32_t count)
{
    printf("\t%-30s %-30s %-30s %s\n", "NPU ID", "Chip ID", "Chip Logic ID", "Chip Name");
    for (uint32_t i = 0; i < count; i++) {
        printf("\t%-30u %-30u %-30u %s\n", i, 0U, i, chip_of(i).name);
    }
}

static bool print_kind(const char *kind, uint32_t number)
{
    Chip chip = chip_of(number);
    bool memory = strcmp(kind, "memory") == 0;
    bool usages = strcmp(kind, "usages") == 0;
    bool common = strcmp(kind, "common") == 0;
    if (!memory && !usages && !common) {
        return false;
    }
    number_field("NPU ID", number);
    number_field("Chip Count", 1);
    putchar('\n');
    if (memory || usages) {
        number_field("HBM Capacity(MB)", chip.total);
    }
    if (usages || common) {
        number_field("Aicore Usage Rate(%)", 0);
    }
    number_field("HBM Usage Rate(%)", chip.total > 0 ? 100 * chip.used / chip.total : 0);
    if (common) {
        field("Temperature(C)", "-");
        field("NPU Real-time Power(W)", "-");
    }
    number_field("Chip ID", 0);
    return true;
}

static int usage(void)
{
    fputs("usage: npu-smi info [-l | -m | -t memory|usages|common [-i NUMBER]] | -v\n", stderr);
    return 1;
}

int main(int count, char **words)
{
    if (count == 2 && strcmp(words[1], "-v") == 0) {
        puts("npu-smi version: " UNDERSTUDY_VERSION " (Understudy, emulated)");
        return 0;
    }
    if (count < 2 || strcmp(words[1], "info") != 0) {
        return usage();
    }
    check(aclInit(NULL), "aclInit");
    const uint32_t devices = count_devices();
    const char *kind = NULL;
    long chosen = -1;
    if (count == 2) {
        print_table(devices);
        return 0;
    }
    for (int i = 2; i < count; i++) {
        if (count == 3 && strcmp(words[i], "-l") == 0) {
            print_list(devices);
            return 0;
        }
        if (count == 3 && strcmp(words[i], "-m") == 0) {
            print_mapping(devices);
            return 0;
        }
        const char *value = i + 1 < count ? words[i + 1] : "";
        if (strcmp(words[i], "-t") == 0) {
            kind = value;
        } else if (strcmp(words[i], "-i") == 0) {
            char *end = NULL;
            chosen = strtol(value, &end, 10);
            if (*value == '\0' || *end != '\0' || chosen < 0 || chosen >= (long)devices) {
                fprintf(stderr, "npu-smi: there is no NPU \"%s\"\n", value);
                return 1;
            }
        } else if (strcmp(words[i], "-c") != 0) {
            return usage();
        }
        i++;
    }
    if (kind == NULL) {
        return usage();
    }
    for (uint32_t i = 0; i < devices; i++) {
        if ((chosen < 0 || chosen == (long)i) && !print_kind(kind, i)) {
            return usage();
        }
    }
    return 0;
}
