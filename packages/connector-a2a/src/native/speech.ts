import type { A2aMethod, WireVersion } from '../wire/index.ts'
import { findMethod } from '../wire/index.ts'

/** The parts of a request that decide how its caller speaks A2A. */
export interface Spoken {
  /** True if the path ends in `/v0.3`. */
  readonly v03: boolean
  /** The header `A2A-Version`, or the parameter of that name; empty if absent. */
  readonly version: string
  /** The JSON-RPC method; undefined if it is not known. */
  readonly method: string | undefined
}

/** A call as an official SDK makes it. */
export interface NativeSpeech {
  /** The version of A2A that the request is written in, and that the answer is written in. */
  readonly version: WireVersion
  /** Undefined for a method that A2A does not define. */
  readonly method: A2aMethod | undefined
  /** True for a method whose answer is an event stream. */
  readonly streams: boolean
}

const PATCHED = /^(\d+\.\d+)\.\d+$/

/**
 * Returns how the caller of a request speaks A2A; undefined for the gateway's own dialect.
 *
 * The name of the method decides: the names of A2A 1.0 are official calls. The names of 0.3 are also those of the
 * dialect, so they are official calls only at `/v0.3` or with a version. A stream can be resumed in official calls
 * only, because the dialect has no such method.
 */
export function speechOf({ v03, version, method }: Spoken): NativeSpeech | undefined {
  const named = method === undefined ? undefined : findMethod(method)
  if (named?.version === '1.0') return speech('1.0', named.method)
  if (v03) return speech('0.3', named?.method)
  if (named === undefined) return undefined
  return version !== '' || named.method.operation === 'resubscribe' ? speech('0.3', named.method) : undefined
}

/**
 * Returns how the caller of a request speaks that is refused before its method is known, or whose method could not be
 * read.
 */
export function guessedSpeech(spoken: Spoken): NativeSpeech | undefined {
  const known = speechOf(spoken)
  if (known !== undefined || spoken.method !== undefined || spoken.version === '') return known
  return speech(withoutPatch(spoken.version) === '0.3' ? '0.3' : '1.0', undefined)
}

/**
 * Returns true for a method that only official calls have and whose answer is an event stream. Without official calls
 * it must not reach the agent: the agent would run it, and its answer could not be delivered.
 */
export function needsNativeStream(method: string): boolean {
  return speechOf({ v03: false, version: '', method })?.streams === true
}

function speech(version: WireVersion, method: A2aMethod | undefined): NativeSpeech {
  return { version, method, streams: method?.streams === true }
}

/** Returns a version without its patch number, which has no meaning in A2A. */
export function withoutPatch(version: string): string {
  return PATCHED.exec(version)?.[1] ?? version
}
