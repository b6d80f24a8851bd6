import { derivedLimits } from './memory.ts'

/** Limits of one verified caller. 0 is no limit. */
export interface CallerLimits {
  /** Requests per second, as a token bucket that holds twice as many; 0 is no limit. @default 0 */
  readonly requestsPerSecond: number
  /** Concurrent requests, including long polls and excluding streams; 0 is no limit. @default 1024 */
  readonly requestsInFlight: number
  /**
   * Bytes of request bodies, replies and answers in memory; 0 is no limit.
   * @default half of the process's, at most 67108864
   */
  readonly bodyBytes: number
  /** Open SSE streams and WebSockets; 0 is no limit. @default 256 */
  readonly streams: number
}

/**
 * Limits of the whole process. 0 is no limit. An anonymous caller, which is a network address, may use half of each.
 */
export interface ProcessLimits {
  /** Concurrent requests, including long polls and excluding streams; 0 is no limit. @default 16384 */
  readonly requestsInFlight: number
  /**
   * Bytes of request bodies, replies and answers in memory; 0 is no limit.
   * @default a quarter of the memory that the process may use, at most 1073741824
   */
  readonly bodyBytes: number
  /** Open SSE streams and WebSockets; 0 is no limit. @default 4096 */
  readonly streams: number
  /**
   * Bytes of answers and streams that readers have not read; 0 is no limit. One caller may use half.
   * @default an eighth of the memory that the process may use, at most 268435456
   */
  readonly unreadBytes: number
  /**
   * Share of the heap limit, or of the memory of the container or machine, in percent. Above it, large bodies, calls of
   * agents and new streams are refused; 0 is no limit.
   * @default 85
   */
  readonly memoryPercent: number
}

/** Limits of a caller and of the process. */
export interface AdmissionLimits {
  readonly caller: CallerLimits
  readonly process: ProcessLimits
}

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
