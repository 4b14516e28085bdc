/* mx-smi: a stand-in for the driver's tool. Prints the emulated devices under the field names that scripts look for.
 *
 *   mx-smi             a table of the devices and of the processes on them
 *   mx-smi -L          a line for each device
 *
 * Every process has emulated devices of its own, so nobody else's memory or processes are seen here. What an emulated
 * device does not have, power and temperature, is "-". Uses only the vendor's interface. */
#include <mc_runtime.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(mcError_t status, const char *function)
{
    if (status != mcSuccess) {
        fprintf(stderr, "mx-smi: %s gives %d\n", function, (int)status);
        exit(1);
    }
}

static int count_devices(void)
{
    int count = 0;
    return mcGetDeviceCount(&count) == mcSuccess ? count : 0;
}

typedef struct Card {
    mcDeviceProp_t properties;
    char bus[32];
    size_t used, total; /* mebibytes */
} Card;

static Card card_of(int number)
{
    Card card;
    size_t free_bytes = 0, total_bytes = 0;
    memset(&card, 0, sizeof card);
    check(mcSetDevice(number), "mcSetDevice");
    check(mcGetDeviceProperties(&card.properties, number), "mcGetDeviceProperties");
    check(mcDeviceGetPCIBusId(card.bus, sizeof card.bus, number), "mcDeviceGetPCIBusId");
    check(mcMemGetInfo(&free_bytes, &total_bytes), "mcMemGetInfo");
    card.used = (total_bytes - free_bytes) >> 20;
    card.total = total_bytes >> 20;
    return card;
}

static void print_table(int count)
{
    static const char edge[] = "+------------------------------------+---------------------+----------------------+";
    static const char whole[] = "+---------------------------------------------------------------------------------+";
    printf("mx-smi  version: %s (Understudy, emulated)\n\n", UNDERSTUDY_VERSION);
    printf("%-50s: %d\n%s\n", "Attached GPUs", count, edge);
    printf("| %-12s%-23s| %-20s| %-21s|\n", "GPU", "NAME", "Bus-id", "GPU-Util");
    printf("| %-12s%-23s| %-20s| %-21s|\n", "Temp", "Power", "Memory-Usage", "");
    puts("|====================================+=====================+======================|");
    for (int i = 0; i < count; i++) {
        Card card = card_of(i);
        char usage[48];
        snprintf(usage, sizeof usage, "%zu/%zu MiB", card.used, card.total);
        printf("| %-12d%-23.22s| %-20s| %-21s|\n", i, card.properties.name, card.bus, "0%");
        printf("| %-12s%-23s| %-20s| %-21s|\n%s\n", "-", "-", usage, "", edge);
    }
    printf("\n%s\n| %-80s|\n", whole, "Process:");
    printf("| %-6s%16s  %-28s%-28s|\n", "GPU", "PID", "Process Name", "GPU Memory Usage(MiB)");
    puts("|=================================================================================|");
    printf("| %-80s|\n%s\n", "no process found", whole);
}

static void print_list(int count)
{
    for (int i = 0; i < count; i++) {
        Card card = card_of(i);
        printf("GPU#%d  %s  %s\n", i, card.properties.name, card.bus);
    }
}

int main(int count, char **words)
{
    if (count == 1) {
        print_table(count_devices());
        return 0;
    }
    if (count == 2 && (strcmp(words[1], "-L") == 0 || strcmp(words[1], "--list") == 0)) {
        print_list(count_devices());
        return 0;
    }
    fputs("usage: mx-smi [-L]\n", stderr);
    return 1;
}
