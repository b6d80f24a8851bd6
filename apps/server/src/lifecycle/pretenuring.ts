import v8 from 'node:v8'

/**
 * Switches V8's allocation-site pretenuring off. If many requests wait, V8 learns that the objects
 * of a request live long, and then allocates such objects, including those of short requests, in
 * the old generation. There they are garbage that keeps whole requests alive, and collections that
 * took 5 ms take 20 to 40 ms (docs/decisions/0005).
 *
 * Called after the start: compiled code is valid only for the flags that it was compiled with. With
 * a changed flag Node compiles the modules that are part of it again, a tenth of a start.
 */
export function disablePretenuring(): void {
  v8.setFlagsFromString('--no-allocation-site-pretenuring')
}
