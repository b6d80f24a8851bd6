import { totalmem } from 'node:os'
import { getHeapStatistics } from 'node:v8'

/** Returns the memory of the container, or of the machine if the container has no limit, in bytes. */
function machineMemory(): number {
  const container = process.constrainedMemory()
  const machine = totalmem()
  // Without a limit Node returns 0, or a number larger than any memory.
  return container > 0 && container < machine ? container : machine
}

/**
 * Returns the memory that limits derive from, in bytes: V8's heap limit, or the container's memory if that is less. By
 * default V8 takes half of the container's memory for the heap; the rest is for buffers, code and threads.
 */
function usableMemory(): number {
  return Math.min(getHeapStatistics().heap_size_limit, machineMemory())
}

/** Returns the larger share in use, from 0 to 1: of V8's heap limit, or of the memory of the container or machine. */
export function usedShare(): number {
  const { rss, heapUsed } = process.memoryUsage()
  return Math.max(heapUsed / getHeapStatistics().heap_size_limit, rss / machineMemory())
}

const MIB = 2 ** 20

/** The limits in bytes that derive from the memory of the process. */
export interface DerivedLimits {
  /** Bytes of request bodies, replies and answers, of all callers. */
  readonly processBodyBytes: number
  /** The same of one verified caller. */
  readonly callerBodyBytes: number
  /** Bytes that clients have not read. */
  readonly unreadBytes: number
  /** Bytes in transit of all streams of agents that a node relays. */
  readonly streamBytes: number
  /** The estimated memory of agent cards. */
  readonly cardBytes: number
}

/**
 * Returns the limits for an amount of memory. Together they are at most nine sixteenths of it; what a body or reply
 * takes while it is converted fits into the rest.
 */
export function derivedLimits(memory = usableMemory()): DerivedLimits {
  const part = (share: number, most: number): number => Math.floor(Math.min(memory / share, most * MIB))
  const processBodyBytes = part(4, 1_024)
  return {
    processBodyBytes,
    callerBodyBytes: Math.min(64 * MIB, Math.floor(processBodyBytes / 2)),
    unreadBytes: part(8, 256),
    streamBytes: part(16, 64),
    cardBytes: part(8, 1_024),
  }
}
