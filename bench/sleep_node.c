/* A subagent that costs nothing: sleeps as its sub-question says ("sleep 0.25"), then writes output.txt.
   With --task dr_x/N1 it is a node of ours; with `SECONDS FILE` it is a step of another engine. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void pause_for(double seconds) {
    struct timespec t = {(time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9)};
    nanosleep(&t, NULL);
}

int main(int argc, char **argv) {
    double start = now(), seconds = 0;
    char path[4096], text[8192] = "";
    const char *task = NULL;
    for (int i = 1; i + 1 < argc; i++)
        if (!strcmp(argv[i], "--task")) task = argv[i + 1];
    if (task) {
        snprintf(path, sizeof path, "temp/%s/context.json", task);
        FILE *in = fopen(path, "r");
        if (!in) return 1;
        size_t n = fread(text, 1, sizeof text - 1, in);
        text[n] = 0;
        fclose(in);
        char *at = strstr(text, "\"sub_question\"");
        at = at ? strstr(at, "sleep ") : NULL;
        if (!at) return 2;
        seconds = atof(at + 6);
        snprintf(path, sizeof path, "temp/%s/output.txt", task);
    } else {
        if (argc < 3) return 2;
        seconds = atof(argv[1]);
        snprintf(path, sizeof path, "%s", argv[2]);
    }
    pause_for(seconds);
    FILE *out = fopen(path, "w");
    if (!out) return 1;
    fprintf(out, "[结论] It slept. start=%.6f end=%.6f\n\n来源：/dev/null — \"slept\"\n\n[ROUND END]\n", start, now());
    fclose(out);
    return 0;
}
