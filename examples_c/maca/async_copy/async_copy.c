/* gcc async_copy.c -I$MACA_PATH/include -I$MACA_PATH/include/mcr -L$MACA_PATH/lib -lmcruntime -o async_copy
 *
 * Moves an image through the device in bands: two streams copy bands of page-locked memory there, fill a border, and
 * copy the result back, while the host waits for events. Also shows memory that host and device share. */
#include <mc_runtime.h>

enum { WIDTH = 96, HEIGHT = 64, BANDS = 4, BAND_ROWS = HEIGHT / BANDS, BAND_BYTES = WIDTH * BAND_ROWS, STREAMS = 2 };
enum { BORDER = 0xff };

static void expect(mcError_t error, const char *what)
{
    if (error != mcSuccess) {
        fprintf(stderr, "%s: %s (%s)\n", what, mcGetErrorString(error), mcGetErrorName(error));
        exit(1);
    }
}

static unsigned char *page_locked_image(void)
{
    void *image = NULL;
    expect(mcMallocHost(&image, WIDTH * HEIGHT, mcMallocHostDefault), "mcMallocHost");
    return (unsigned char *)image;
}

static unsigned long sum(const unsigned char *bytes, size_t count)
{
    unsigned long total = 0;
    for (size_t i = 0; i < count; i++) {
        total += bytes[i];
    }
    return total;
}

/* Sends one band through the device: copy there, overwrite its first row, copy back. */
static void queue_band(unsigned char *to, const unsigned char *from, unsigned char *device, mcStream_t stream)
{
    expect(mcMemcpyAsync(device, from, BAND_BYTES, mcMemcpyHostToDevice, stream), "copy to the device");
    expect(mcMemsetAsync(device, BORDER, WIDTH, stream), "border");
    expect(mcMemcpyAsync(to, device, BAND_BYTES, mcMemcpyDeviceToHost, stream), "copy to the host");
}

static void process_image(void)
{
    unsigned char *source = page_locked_image();
    unsigned char *result = page_locked_image();
    void *device = NULL;
    mcStream_t streams[STREAMS];
    mcEvent_t begin, done[STREAMS];
    float milliseconds = -1.0f;

    for (int i = 0; i < WIDTH * HEIGHT; i++) {
        source[i] = (unsigned char)(i % 100);
    }
    expect(mcMalloc(&device, WIDTH * HEIGHT), "mcMalloc");
    expect(mcEventCreate(&begin), "mcEventCreate");
    for (int i = 0; i < STREAMS; i++) {
        expect(mcStreamCreateWithFlags(&streams[i], mcStreamNonBlocking), "mcStreamCreateWithFlags");
        expect(mcEventCreate(&done[i]), "mcEventCreate");
    }

    expect(mcEventRecord(begin, streams[0]), "mcEventRecord");
    for (int band = 0; band < BANDS; band++) {
        size_t offset = (size_t)band * BAND_BYTES;
        queue_band(result + offset, source + offset, (unsigned char *)device + offset, streams[band % STREAMS]);
    }
    for (int i = 0; i < STREAMS; i++) {
        expect(mcEventRecord(done[i], streams[i]), "mcEventRecord");
    }
    for (int i = 0; i < STREAMS; i++) {
        expect(mcEventSynchronize(done[i]), "mcEventSynchronize");
    }
    expect(mcEventElapsedTime(&milliseconds, begin, done[STREAMS - 1]), "mcEventElapsedTime");

    printf("an image of %dx%d bytes, in %d bands over %d streams\n", WIDTH, HEIGHT, BANDS, STREAMS);
    for (int band = 0; band < BANDS; band++) {
        printf("border sum[%d] = %lu\n", band, sum(result + (size_t)band * BAND_BYTES, WIDTH));
    }
    for (int band = 0; band < BANDS; band++) {
        printf("inside sum[%d] = %lu\n", band, sum(result + (size_t)band * BAND_BYTES + WIDTH, BAND_BYTES - WIDTH));
    }
    printf("the events %s\n", milliseconds >= 0.0f ? "took times" : "took no times");

    for (int i = 0; i < STREAMS; i++) {
        expect(mcStreamDestroy(streams[i]), "mcStreamDestroy");
        expect(mcEventDestroy(done[i]), "mcEventDestroy");
    }
    expect(mcEventDestroy(begin), "mcEventDestroy");
    expect(mcFree(device), "mcFree");
    expect(mcFreeHost(source), "mcFreeHost");
    expect(mcFreeHost(result), "mcFreeHost");
}

/* Managed memory: the host writes, the device fills a part, the host reads, without a copy. */
static void share_memory(void)
{
    void *shared = NULL;
    expect(mcMallocManaged(&shared, 16, mcMemAttachGlobal), "mcMallocManaged");
    memset(shared, 1, 16);
    expect(mcMemset((char *)shared + 4, 2, 8), "mcMemset");
    for (int i = 0; i < 16; i++) {
        printf("shared byte[%d] = %d\n", i, ((const unsigned char *)shared)[i]);
    }
    expect(mcFree(shared), "mcFree");
}

/* A mistake on purpose: the direction does not fit the pointers. The error is remembered until it is asked for. */
static void make_a_mistake(void)
{
    char bytes[4] = "abc";
    void *device = NULL;
    expect(mcMalloc(&device, sizeof bytes), "mcMalloc");
    mcError_t error = mcMemcpy(device, bytes, sizeof bytes, mcMemcpyDeviceToHost);
    mcError_t first = mcGetLastError();
    mcError_t second = mcGetLastError();
    printf("a copy in the wrong direction gives %s\n", mcGetErrorName(error));
    printf("errors = %d %d %d\n", error, first, second);
    expect(mcFree(device), "mcFree");
}

int main(void)
{
    int count = 0;
    expect(mcGetDeviceCount(&count), "mcGetDeviceCount");
    expect(mcSetDevice(0), "mcSetDevice");
    mcDeviceProp_t properties;
    expect(mcGetDeviceProperties(&properties, 0), "mcGetDeviceProperties");
    printf("device 0: %s, wave size %d\n", properties.name, properties.waveSize);
    process_image();
    share_memory();
    make_a_mistake();
    expect(mcDeviceSynchronize(), "mcDeviceSynchronize");
    return 0;
}
