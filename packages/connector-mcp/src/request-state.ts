import { Buffer } from 'node:buffer'
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

import type { BrokerHandle } from '@signalbox/broker-core'
import { KeyedLog } from '@signalbox/broker-core/internal'
import type { JsonObject } from '@signalbox/http-kit'
import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'
import { canonicalJson, compileLater, isJsonObject } from '@signalbox/http-kit/internal'
import type { Static } from 'typebox'
import { Type } from 'typebox'

/** Time for which a client may answer, in ms. */
const VALID_MS = 15 * 60_000

const MAC_BYTES = 32

const object = Type.Unsafe<JsonObject>({ type: 'object' })
const objects = Type.Record(Type.String(), object)

const OpenInputSchema = Type.Object({
  /** The end of the state, in ms since the epoch. */
  expiresMs: Type.Number(),
  /** The requests without a response, by key. */
  requests: objects,
  /** The responses to other requests of the same round. */
  responses: objects,
  /** The tool's own notes, with which it continues the call. */
  state: object,
})

/** A call that waits for input, as its client keeps it. */
export type OpenInput = Readonly<Omit<Static<typeof OpenInputSchema>, 'expiresMs'>>

const schema = compileLater(OpenInputSchema)

/** The caller and the digest of a call. A state is valid for both only. */
export interface CallIdentity {
  readonly principal: string
  readonly digest: string
}

/** Returns the identity of a call. It does not depend on the order of members in the arguments. */
export function callIdentity(principal: string, tool: string, args: unknown): CallIdentity {
  const digest = createHash('sha256').update(`tools/call ${tool} ${canonicalJson(args)}`)
  return { principal, digest: digest.digest('base64url') }
}

/** The second part of a call that asked for input. */
export interface CallRetry {
  readonly requestState: string
  readonly responses: JsonObject
}

/** Writes and reads the `requestState` of calls that wait for input. The server keeps nothing. */
export class RequestStates {
  readonly #key: StateKey
  #loaded: Promise<Uint8Array> | undefined

  constructor(key: StateKey) {
    this.#key = key
  }

  /** Returns a state that only the same caller can use, for the same call, and for 15 minutes. */
  async write(call: CallIdentity, input: OpenInput): Promise<string> {
    const text = JSON.stringify({ expiresMs: Date.now() + VALID_MS, ...input })
    const mac = macOf(await this.#load(), call, text)
    return `${mac.toString('base64url')}.${Buffer.from(text).toString('base64url')}`
  }

  /**
   * Returns the input of a repeated call: the requests that are still open, and all responses so far.
   * @throws JsonRpcError -32602 for an invalid response, a state of another call, and one that is changed or expired
   */
  async answer(call: CallIdentity, { requestState, responses }: CallRetry): Promise<OpenInput> {
    const asked = await this.#read(call, requestState)
    const given = { ...asked.responses, ...readResponses(Object.keys(asked.requests), responses) }
    return { requests: openRequests(asked.requests, given), responses: given, state: asked.state }
  }

  async #read(call: CallIdentity, requestState: string): Promise<OpenInput> {
    const [mac = '', encoded = ''] = requestState.split('.')
    const text = Buffer.from(encoded, 'base64url').toString()
    const given = Buffer.from(mac, 'base64url')
    const key = await this.#load()
    if (given.byteLength !== MAC_BYTES || !timingSafeEqual(given, macOf(key, call, text))) {
      throw invalid('requestState was not issued to this caller for this call')
    }
    const input: unknown = JSON.parse(text)
    if (!schema.Check(input)) throw invalid('requestState is of another version of this server')
    if (input.expiresMs < Date.now()) throw invalid('requestState has expired')
    return input
  }

  /** A failure to load the key is not kept. */
  #load(): Promise<Uint8Array> {
    this.#loaded ??= this.#key().catch((error: unknown) => {
      this.#loaded = undefined
      const text = 'the key for requestState is not available at the moment; try again in some seconds'
      throw new JsonRpcError(JSON_RPC_CODES.INTERNAL_ERROR, text, { cause: error })
    })
    return this.#loaded
  }
}

/** Returns the members of the result that asks for input, as JSON text. */
export function inputMembers({ requests }: OpenInput, requestState: string): string {
  return `"inputRequests":${JSON.stringify(requests)},"requestState":${JSON.stringify(requestState)}`
}

/** No text can be moved between the parts: a digest has one length, and a line break cannot be in base64 or JSON. */
function macOf(key: Uint8Array, { principal, digest }: CallIdentity, text: string): Buffer {
  return createHmac('sha256', key).update(`${digest}\n${text}\n${principal}`).digest()
}

function invalid(reason: string): JsonRpcError {
  return new JsonRpcError(
    JSON_RPC_CODES.INVALID_PARAMS,
    `invalid params: ${reason}; call the tool without requestState and inputResponses`,
  )
}

const ACTIONS: ReadonlySet<unknown> = new Set(['accept', 'decline', 'cancel'])

/**
 * Returns the responses to requests of the server. Responses to other requests are ignored.
 * @param keys The keys of the requests
 * @throws JsonRpcError -32602
 */
export function readResponses(keys: readonly string[], responses: JsonObject): Readonly<Record<string, JsonObject>> {
  const answered = keys.filter((key) => Object.hasOwn(responses, key))
  return Object.fromEntries(answered.map((key) => [key, readResponse(key, responses[key])]))
}

function readResponse(key: string, response: unknown): JsonObject {
  if (isJsonObject(response) && ACTIONS.has(response['action'])) return response
  throw new JsonRpcError(
    JSON_RPC_CODES.INVALID_PARAMS,
    `invalid params: inputResponses[${JSON.stringify(key)}] must be an object with the action accept, decline or cancel`,
  )
}

/** Returns the requests without a response. */
export function openRequests(
  requests: Readonly<Record<string, JsonObject>>,
  responses: Readonly<Record<string, JsonObject>>,
): Readonly<Record<string, JsonObject>> {
  return Object.fromEntries(Object.entries(requests).filter(([key]) => !Object.hasOwn(responses, key)))
}

/** Returns the key that signs the state of calls that wait for input. */
export type StateKey = () => Promise<Uint8Array>

/** The compacted events store of the key, and its key there. */
const CHANNEL = '_AGENTS_.mcp'
const NAME = 'state-key'

const KEY_BYTES = 32

/** Returns a random key, which no other process knows. */
export function randomStateKey(): StateKey {
  const key = randomBytes(KEY_BYTES)
  return async () => key
}

/**
 * Returns the key on the broker's own channel `_AGENTS_.mcp`, which all nodes share. The first use creates it.
 * @param system The handle for reserved channels
 */
export function brokerStateKey(system: BrokerHandle): StateKey {
  const log = new KeyedLog(system, CHANNEL)
  return async () => validKey((await log.ensure(NAME, () => ({ body: randomBytes(KEY_BYTES) })))?.body)
}

/** With a short key any client could sign. */
function validKey(key: Uint8Array | undefined): Uint8Array {
  if (key?.byteLength === KEY_BYTES) return key
  throw new Error(`the key ${NAME} in ${CHANNEL} has ${key?.byteLength ?? 0} bytes; it must have ${KEY_BYTES}`)
}
