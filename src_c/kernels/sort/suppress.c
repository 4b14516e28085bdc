#include "kernels/sort/suppress.h"

#include "kernels/linear.h"
#include "kernels/scratch.h"
#include "kernels/sort/sort.h"

typedef struct Box {
    double corners[4];
} Box;

/* Boxes to search, in an order, and those that were chosen; or the chosen ones of all classes, and their classes. */
typedef struct Candidates {
    Box *boxes;
    double *scores;
    int64_t *order, *chosen, *classes;
    int64_t count;
} Candidates;

static bool take_candidates(Candidates *candidates, int64_t count)
{
    const size_t parts[] = {us_scratch_bytes(count, sizeof(Box)), us_scratch_bytes(count, sizeof(double)),
                            us_scratch_bytes(count, sizeof(int64_t)), us_scratch_bytes(count, sizeof(int64_t))};
    char *block = us_scratch_take(us_scratch_sum(parts, 4)), *cursor = block;
    if (block == NULL) {
        return false;
    }
    candidates->boxes = us_scratch_part(&cursor, parts[0]);
    candidates->scores = us_scratch_part(&cursor, parts[1]);
    candidates->order = us_scratch_part(&cursor, parts[2]);
    candidates->chosen = candidates->classes = us_scratch_part(&cursor, parts[3]);
    candidates->count = 0;
    return true;
}

static double smaller(double x, double y)
{
    return x < y ? x : y;
}

static double larger(double x, double y)
{
    return x > y ? x : y;
}

/* Row `row` of boxes, the lower corner first. */
static void load_box(const View *boxes, int64_t row, Box *box)
{
    double given[4];
    us_linear_load_double(boxes, row * boxes->shape[boxes->rank - 1], 4, given);
    for (int k = 0; k < 2; k++) {
        box->corners[k] = smaller(given[k], given[k + 2]);
        box->corners[k + 2] = larger(given[k], given[k + 2]);
    }
}

static double area(const double *corners)
{
    return (corners[2] - corners[0]) * (corners[3] - corners[1]);
}

static double overlap_of(const Box *box, const Box *other)
{
    const double *a = box->corners, *b = other->corners;
    const double width = smaller(a[2], b[2]) - larger(a[0], b[0]), height = smaller(a[3], b[3]) - larger(a[1], b[1]);
    const double shared = larger(width, 0) * larger(height, 0), all = area(a) + area(b) - shared;
    return all > 0 ? shared / all : 0;
}

/* Of candidates in their order; how many are chosen, `most` at most. */
static int64_t choose(const Candidates *candidates, int64_t count, double overlap, int64_t most)
{
    int64_t found = 0;
    for (int64_t i = 0; i < count && found < most; i++) {
        const Box *box = &candidates->boxes[candidates->order[i]];
        bool clear = true;
        for (int64_t k = 0; k < found && clear; k++) {
            clear = !(overlap_of(&candidates->boxes[candidates->chosen[k]], box) > overlap);
        }
        if (clear) {
            candidates->chosen[found++] = candidates->order[i];
        }
    }
    return found;
}

/* Numbers of scores that fall; of NaNs first. */
static KernelStatus order_scores(double *scores, int64_t count, int64_t *order)
{
    const View views[] = {us_view_contiguous(scores, DTYPE_FLOAT64, 1, &count), us_view_absent(),
                          us_view_contiguous(order, DTYPE_INT64, 1, &count)};
    return us_sort(views, &(SortLines){.axis = 0, .descending = true});
}

/* Orders those above the threshold; how many they are. */
static KernelStatus order_candidates(const Candidates *candidates, int64_t count, double threshold, int64_t *above)
{
    const KernelStatus status = order_scores(candidates->scores, count, candidates->order);
    *above = 0;
    for (int64_t i = 0; status == KERNEL_OK && i < count; i++) {
        const int64_t place = candidates->order[i];
        candidates->order[*above] = place;
        *above += candidates->scores[place] > threshold;
    }
    return status;
}

static void store(const View *view, int64_t place, double value)
{
    us_linear_store_double(view, place, 1, &value);
}

KernelStatus us_suppressed_mask(const View *views, const void *attributes)
{
    enum { BOXES, SAME, NUMBERS, CHOSEN, COLUMNS = 5 };
    const int64_t count = views[BOXES].shape[0];
    Candidates candidates;
    if (!take_candidates(&candidates, count)) {
        return KERNEL_NO_MEMORY;
    }
    for (int64_t i = 0; i < count; i++) {
        double row[COLUMNS];
        load_box(&views[BOXES], i, &candidates.boxes[i]);
        us_linear_load_double(&views[BOXES], i * views[BOXES].shape[1], COLUMNS, row);
        us_linear_store_double(&views[SAME], i * COLUMNS, COLUMNS, row);
        store(&views[NUMBERS], i, (double)i);
        store(&views[CHOSEN], i, 0);
        candidates.order[i] = i;
    }
    const int64_t found = choose(&candidates, count, ((const SuppressedMask *)attributes)->overlap, count);
    for (int64_t i = 0; i < found; i++) {
        store(&views[CHOSEN], candidates.chosen[i], 1);
    }
    us_scratch_give_back(candidates.boxes);
    return KERNEL_OK;
}

KernelStatus us_suppressed(const View *views, const void *attributes)
{
    enum { BOXES, SCORES, MOST, OVERLAP, SCORE, NUMBERS, COUNT };
    (void)attributes;
    const int64_t count = views[BOXES].shape[0], room = views[NUMBERS].shape[0];
    double most, overlap, score;
    us_linear_load_double(&views[MOST], 0, 1, &most);
    us_linear_load_double(&views[OVERLAP], 0, 1, &overlap);
    us_linear_load_double(&views[SCORE], 0, 1, &score);
    Candidates candidates;
    if (!take_candidates(&candidates, count)) {
        return KERNEL_NO_MEMORY;
    }
    for (int64_t i = 0; i < count; i++) {
        load_box(&views[BOXES], i, &candidates.boxes[i]);
    }
    us_linear_load_double(&views[SCORES], 0, count, candidates.scores);
    int64_t above, found = 0;
    const KernelStatus status = order_candidates(&candidates, count, score, &above);
    if (status == KERNEL_OK) {
        found = choose(&candidates, above, overlap, most < (double)room ? (int64_t)most : room);
    }
    for (int64_t i = 0; i < room; i++) {
        store(&views[NUMBERS], i, i < found ? (double)candidates.chosen[i] : 0);
    }
    store(&views[COUNT], 0, (double)found);
    us_scratch_give_back(candidates.boxes);
    return status;
}

/* ---- classes ---- */

static KernelStatus add_class(const View *views, const SuppressedClasses *how, int64_t image, int64_t class,
                              const Candidates *candidates, Candidates *winners)
{
    const View *boxes = &views[0], *scores = &views[1];
    const int64_t count = scores->shape[1], classes = scores->shape[2], of_box = boxes->shape[2];
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = image * count + i;
        load_box(boxes, row * of_box + (of_box > 1 ? class : 0), &candidates->boxes[i]);
        us_linear_load_double(scores, row * classes + class, 1, &candidates->scores[i]);
    }
    int64_t above;
    const KernelStatus status = order_candidates(candidates, count, how->score, &above);
    const int64_t found = status == KERNEL_OK ? choose(candidates, above, how->overlap, how->most) : 0;
    for (int64_t i = 0; i < found; i++, winners->count++) {
        const int64_t place = candidates->chosen[i], row = (image * count + place) * of_box + (of_box > 1 ? class : 0);
        us_linear_load_double(boxes, row * 4, 4, winners->boxes[winners->count].corners);
        winners->scores[winners->count] = candidates->scores[place];
        winners->classes[winners->count] = class;
    }
    return status;
}

static void store_winners(const View *views, int64_t image, const Candidates *winners)
{
    enum { BOXES = 2, SCORES, CLASSES, COUNTS };
    const int64_t room = views[SCORES].shape[1], count = winners->count < room ? winners->count : room;
    for (int64_t i = 0; i < room; i++) {
        const int64_t row = image * room + i, from = i < count ? winners->order[i] : 0;
        const Box box = i < count ? winners->boxes[from] : (Box){{0}};
        us_linear_store_double(&views[BOXES], row * 4, 4, box.corners);
        store(&views[SCORES], row, i < count ? winners->scores[from] : 0);
        store(&views[CLASSES], row, i < count ? (double)winners->classes[from] : 0);
    }
    store(&views[COUNTS], image, (double)count);
}

static KernelStatus choose_of_image(const View *views, const SuppressedClasses *how, int64_t image,
                                    const Candidates *candidates, Candidates *winners)
{
    KernelStatus status = KERNEL_OK;
    winners->count = 0;
    for (int64_t class = 0; class < views[1].shape[2] && status == KERNEL_OK; class++) {
        status = add_class(views, how, image, class, candidates, winners);
    }
    if (status == KERNEL_OK) {
        status = order_scores(winners->scores, winners->count, winners->order);
    }
    if (status == KERNEL_OK) {
        store_winners(views, image, winners);
    }
    return status;
}

KernelStatus us_suppressed_classes(const View *views, const void *attributes)
{
    const SuppressedClasses *how = attributes;
    const int64_t count = views[1].shape[1], of_class = how->most < count ? how->most : count;
    Candidates candidates, winners;
    if (!take_candidates(&candidates, count)) {
        return KERNEL_NO_MEMORY;
    }
    const int64_t most = us_scratch_count(of_class, views[1].shape[2]);
    KernelStatus status = take_candidates(&winners, most) ? KERNEL_OK : KERNEL_NO_MEMORY;
    if (status == KERNEL_OK) {
        for (int64_t image = 0; image < views[1].shape[0] && status == KERNEL_OK; image++) {
            status = choose_of_image(views, how, image, &candidates, &winners);
        }
        us_scratch_give_back(winners.boxes);
    }
    us_scratch_give_back(candidates.boxes);
    return status;
}
