import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** The duration of a tick of `/proc/PID/stat`, in microseconds. */
const TICK_MICROS = 1_000_000 / Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))

/**
 * Returns the CPU time of a process without instrument, with all its threads, in microseconds. The resolution is one
 * tick, mostly 10 ms. Linux only.
 */
export function cpuMicrosOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The name, in parentheses, may contain any character. User and system time are fields 14 and 15.
  const [user = Number.NaN, system = Number.NaN] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
    .map(Number)
  return (user + system) * TICK_MICROS
}
