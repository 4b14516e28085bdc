/* Rank tables: JSON files that list the devices of a communicator, each with its "rank_id". */
#ifndef HCCL_RANK_TABLE_H
#define HCCL_RANK_TABLE_H

#include "ranks/room.h"
#include "report/report.h"

typedef struct RankTable {
    uint32_t ranks;
    uint64_t number; /* of the text: the same for all ranks that have the same table */
} RankTable;

/* Rules clusterInfo/null, missing, size, memory, syntax, status and ranks. */
RankTable hccl_read_rank_table(Call *call, const char *path);

/* A hash of the text, neither 0 nor 1. */
uint64_t hccl_number_of(const char *text, size_t length);

#endif
