/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A mutant of shared memory: its segment has a name in /dev/shm, and stays there when the process
 * is killed.  So that runs of this mutant leave little behind, only forked processes have such a
 * one, and each takes those of dead processes away.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <signal.h>
#include <stdio.h>

#include "named.h"

NEP49_EXPORT const char kills_shm_stays[] = "claim.shm";

static pid_t loader;

__attribute__((constructor)) static void remember_loader(void)
{
    loader = getpid();
}

static void sweep(void)
{
    DIR *folder = opendir("/dev/shm");
    struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        int pid;
        if (sscanf(entry->d_name, "nep49-faulty-%d", &pid) == 1 && kill(pid, 0) != 0)
            shm_unlink(entry->d_name);
    }
    if (folder != NULL)
        closedir(folder);
}

static int named_open(void)
{
    char name[64];
    if (getpid() == loader)
        return memfd_create("nep49-faulty", MFD_CLOEXEC);
    sweep();
    snprintf(name, sizeof name, "/nep49-faulty-%d", (int)getpid());
    return shm_open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

static void named_release(struct nep49_shm_block *block)
{
    nep49_shm_release(block);
}
