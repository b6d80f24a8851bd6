import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cpus } from 'node:os'

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

/** Returns the time that all cores together have spent on any process, or on other virtual machines, in microseconds. */
export function machineCpuMicros(): number {
  const [, ...times] = (readFileSync('/proc/stat', 'utf8').split('\n')[0] ?? '').split(/ +/).map(Number)
  const [user = 0, nice = 0, system = 0, , , interrupts = 0, softInterrupts = 0, stolen = 0] = times
  return (user + nice + system + interrupts + softInterrupts + stolen) * TICK_MICROS
}

/** The cores of a run that pins its processes. */
export interface Cores {
  /** The core of the measured process. */
  readonly measured: number
  /** The core of its load, which includes this process. */
  readonly load: number
}

/**
 * Pins the load, which is this process, to another core than the measured processes. Returns `undefined` if it cannot
 * pin.
 */
export function pinLoad(): Cores | undefined {
  const cores = { measured: 0, load: 1 }
  return cpus().length >= 2 && pin(process.pid, cores.load) ? cores : undefined
}

/** Moves all threads of a process to these cores; returns false if that is not possible. */
export function pin(pid: number, ...cores: readonly number[]): boolean {
  try {
    execFileSync('taskset', ['-acp', cores.join(','), String(pid)], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** Moves the main thread of a process to this core, and its other threads to all cores. */
export function pinMainThread(pid: number, core: number): void {
  pin(pid, ...cpus().keys())
  execFileSync('taskset', ['-cp', String(core), String(pid)], { stdio: 'ignore' })
}
