import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'

import type { A2aMethod, WireVersion } from '../wire/index.ts'
import { findMethod } from '../wire/index.ts'
import { A2A_CODES, NativeError } from './errors.ts'

/** The parts of a request that decide whether it is an official call. */
export interface CallHead {
  /** True if the path ends in `/v0.3`. */
  readonly v03: boolean
  /** The header `A2A-Version`, or the parameter of that name; empty if absent. */
  readonly version: string
  /** The JSON-RPC method; undefined if it is not known. */
  readonly method: string | undefined
}

/** A call as an official SDK makes it. */
export interface OfficialCall {
  /** The version of A2A that the request is written in, and that the answer is written in. */
  readonly version: WireVersion
  /** Undefined for a method that A2A does not define. */
  readonly method: A2aMethod | undefined
  /** True for a method whose answer is an event stream. */
  readonly streams: boolean
}

const PATCHED = /^(\d+\.\d+)\.\d+$/

/**
 * Returns a request as an official call; undefined for one in the gateway's own dialect.
 *
 * The name of the method decides: the names of A2A 1.0 are official calls. The names of 0.3 are also those of the
 * dialect, so they are official calls only at `/v0.3` or with a version. A stream can be resumed in official calls
 * only, because the dialect has no such method.
 */
export function officialCall({ v03, version, method }: CallHead): OfficialCall | undefined {
  const named = method === undefined ? undefined : findMethod(method)
  if (named?.version === '1.0') return called('1.0', named.method)
  if (v03) return called('0.3', named?.method)
  if (named === undefined) return undefined
  return version !== '' || named.method.operation === 'resubscribe' ? called('0.3', named.method) : undefined
}

/**
 * Guesses whether a request is an official call that is refused before its method is known, or whose method could not be
 * read.
 */
export function guessOfficialCall(head: CallHead): OfficialCall | undefined {
  const known = officialCall(head)
  if (known !== undefined || head.method !== undefined || head.version === '') return known
  return called(withoutPatch(head.version) === '0.3' ? '0.3' : '1.0', undefined)
}

/**
 * Returns true for a method that only official calls have and whose answer is an event stream. Without official calls
 * it must not reach the agent: the agent would run it, and its answer could not be delivered.
 */
export function needsNativeStream(method: string): boolean {
  return officialCall({ v03: false, version: '', method })?.streams === true
}

function called(version: WireVersion, method: A2aMethod | undefined): OfficialCall {
  return { version, method, streams: method?.streams === true }
}

/** Returns a version without its patch number, which has no meaning in A2A. */
function withoutPatch(version: string): string {
  return PATCHED.exec(version)?.[1] ?? version
}

/** The versions that the gateway serves. */
const SUPPORTED: ReadonlySet<string> = new Set<WireVersion>(['1.0', '0.3'])
const SUPPORTED_TEXT = [...SUPPORTED].join(', ')

/** The most characters of a version that an error repeats. */
const SHOWN_CHARACTERS = 32

/** Returns the error for a version that the gateway does not serve. */
export function versionProblem({ version: answered }: OfficialCall, version: string): NativeError | undefined {
  if (version === '' || SUPPORTED.has(withoutPatch(version))) return undefined
  // A2A 0.3 has no code for this.
  const code = answered === '1.0' ? A2A_CODES.VERSION_NOT_SUPPORTED : JSON_RPC_CODES.INVALID_REQUEST
  const given = JSON.stringify(version.slice(0, SHOWN_CHARACTERS))
  return new NativeError(
    code,
    'VERSION_NOT_SUPPORTED',
    `the A2A version ${given} is not supported; the supported versions are ${SUPPORTED_TEXT}`,
    { metadata: { supportedVersions: SUPPORTED_TEXT } },
  )
}

/** Returns the error for a body that is not `application/json`. */
export function contentTypeError({ message }: JsonRpcError): NativeError {
  return new NativeError(A2A_CODES.CONTENT_TYPE_NOT_SUPPORTED, 'CONTENT_TYPE_NOT_SUPPORTED', message)
}

/** Returns the error for a stream that only official calls can open, while they are off. */
export function streamsAreOff(method: string): JsonRpcError {
  return new JsonRpcError(
    JSON_RPC_CODES.METHOD_NOT_FOUND,
    `method not found: ${method} is a call of the official A2A clients, which this server does not serve (CONNECTORSA2_A_NATIVE is off)`,
  )
}
