import { totalmem } from 'node:os'
import { getHeapStatistics } from 'node:v8'

/** Limits of one verified caller. 0 means no limit. */
export interface CallerLimits {
  /** Requests per second, as a token bucket that holds twice as many; 0 means no limit. @default 0 */
  readonly requestsPerSecond: number
  /** Concurrent requests, including long polls and excluding streams; 0 means no limit. @default 1024 */
  readonly requestsInFlight: number
  /**
   * Bytes of request bodies, replies and answers in memory; 0 means no limit.
   * @default half of the process's, at most 67108864
   */
  readonly bodyBytes: number
  /** Open SSE streams and WebSockets; 0 means no limit. @default 256 */
  readonly streams: number
}

/**
 * Limits of the whole process. 0 means no limit. An anonymous caller, which is a network address, may use half of each.
 */
export interface ProcessLimits {
  /** Concurrent requests, including long polls and excluding streams; 0 means no limit. @default 16384 */
  readonly requestsInFlight: number
  /**
   * Bytes of request bodies, replies and answers in memory; 0 means no limit.
   * @default a quarter of the memory that the process may use, at most 1073741824
   */
  readonly bodyBytes: number
  /** Open SSE streams and WebSockets; 0 means no limit. @default 4096 */
  readonly streams: number
  /**
   * Bytes of answers and streams that readers have not read; 0 means no limit. One caller may use half.
   * @default an eighth of the memory that the process may use, at most 268435456
   */
  readonly unreadBytes: number
  /**
   * Share of the heap limit, or of the memory of the container or machine, in percent. Above it, large bodies, calls of
   * agents and new streams are refused; 0 means no limit.
   * @default 85
   */
  readonly memoryPercent: number
}

/** Limits of a caller and of the process. */
export interface AdmissionLimits {
  readonly caller: CallerLimits
  readonly process: ProcessLimits
}

/** The limits that can refuse a caller, as label values. */
export const LIMIT_NAMES = [
  'caller_rate',
  'caller_requests',
  'caller_body_bytes',
  'caller_streams',
  'caller_unread_bytes',
  'process_requests',
  'process_body_bytes',
  'process_streams',
  'process_unread_bytes',
  'memory',
] as const

/** One of {@link LIMIT_NAMES}. */
export type LimitName = (typeof LIMIT_NAMES)[number]

const MIB = 2 ** 20

const derived = derivedLimits()

/** The limits that apply without other settings. Those of bytes derive from the memory that the process may use. */
export const DEFAULT_LIMITS: AdmissionLimits = {
  caller: { requestsPerSecond: 0, requestsInFlight: 1_024, bodyBytes: derived.callerBodyBytes, streams: 256 },
  process: {
    requestsInFlight: 16_384,
    bodyBytes: derived.processBodyBytes,
    streams: 4_096,
    unreadBytes: derived.unreadBytes,
    memoryPercent: 85,
  },
}

/** The part of {@link ProcessLimits} that one account may use. */
export interface AccountLimits {
  readonly requestsPerSecond: number
  readonly requestsInFlight: number
  readonly bodyBytes: number
  readonly streams: number
  readonly unreadBytes: number
}

/** The enforced limits. */
export interface EffectiveLimits {
  readonly process: ProcessLimits
  readonly verified: AccountLimits
  readonly anonymous: AccountLimits
}

/** Limits up to this value are not halved: a half would refuse normal callers and protect no others. */
const UNDIVIDED = 100

/** Returns the part of a process limit that one caller may use: half of it. 0, no limit, stays 0. */
export function half(limit: number): number {
  return Math.max(Math.min(limit, UNDIVIDED), Math.floor(limit / 2))
}

/** Returns the limits to enforce. @throws RangeError for a limit that is not a number of at least 0 */
export function effectiveLimits({ caller, process }: AdmissionLimits): EffectiveLimits {
  for (const [name, value] of [...Object.entries(caller), ...Object.entries(process)]) {
    if (!(value >= 0)) throw new RangeError(`limits: ${name} is ${value}; it must be a number of at least 0`)
  }
  const { requestsPerSecond } = caller
  return {
    process,
    verified: { ...caller, unreadBytes: half(process.unreadBytes) },
    anonymous: {
      requestsPerSecond,
      requestsInFlight: half(process.requestsInFlight),
      bodyBytes: half(process.bodyBytes),
      streams: half(process.streams),
      unreadBytes: half(process.unreadBytes),
    },
  }
}

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
