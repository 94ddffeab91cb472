/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Leaves a file in /dev/shm if the process is killed.  To leave few of them in a test run, only
 * forked processes make one, and each removes those of dead processes.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <signal.h>
#include <stdio.h>

#include "named.h"

static pid_t loader;
__attribute__((constructor)) static void set_loader(void)
{
    loader = getpid();
}

static void remove_files_of_the_dead(void)
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
    remove_files_of_the_dead();
    snprintf(name, sizeof name, "/nep49-faulty-%d", (int)getpid());
    return shm_open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}
static void named_release(struct nep49_shm_block *block)
{
    nep49_shm_release(block);
}
OBJECT(shm_stays, "claim.shm", FUNCTIONS(named));
