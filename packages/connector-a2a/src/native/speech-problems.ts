import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'

import type { WireVersion } from '../wire/index.ts'
import { A2A_CODES } from './error-info.ts'
import { NativeError } from './native-error.ts'
import { withoutPatch } from './speech.ts'
import type { NativeSpeech } from './speech.ts'

/** The versions that the gateway serves. */
const SUPPORTED: ReadonlySet<string> = new Set<WireVersion>(['1.0', '0.3'])
const SUPPORTED_TEXT = [...SUPPORTED].join(', ')

/** The most characters of a version that an error repeats. */
const SHOWN_CHARACTERS = 32

/** Returns the error for a version that the gateway does not serve. */
export function versionProblem({ version: spoken }: NativeSpeech, version: string): NativeError | undefined {
  if (version === '' || SUPPORTED.has(withoutPatch(version))) return undefined
  // A2A 0.3 has no code for this.
  const code = spoken === '1.0' ? A2A_CODES.VERSION_NOT_SUPPORTED : JSON_RPC_CODES.INVALID_REQUEST
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
