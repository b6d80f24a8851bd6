import { Buffer } from 'node:buffer'

import type { Steps } from '@signalbox/http-kit'
import { errorText, isJsonObject, memberText } from '@signalbox/http-kit/internal'

import { errorDetails, limitDetails } from '../native/errors.ts'
import { agentRestError, restErrorText } from '../rest/rest-error.ts'
import type { WireVersion } from '../wire/index.ts'
import { parseForTranslation, StreamTranslation, translateError, UntranslatableError } from '../wire/index.ts'
import type { ServerSentEvent } from './event-reader.ts'
import type { ClientText, EventConverter, FailureEncoder } from './events.ts'
import type { StreamFailure } from './failures.ts'
import { STREAM_FAILURES } from './failures.ts'
import { parseData } from './own-events.ts'

/** The versions of A2A that the agent and the caller speak. */
export interface Versions {
  readonly from: WireVersion
  readonly to: WireVersion
}

/** The time for which a status that may be the last is held back while the agent is silent, in ms. */
const LONGEST_HOLD_MS = 1_000

/**
 * Passes on the results and errors of an agent's stream in the caller's binding, unchanged or
 * translated to the caller's version of A2A. The stream ends when the agent ends it, and only then.
 */
export class NativeEvents implements EventConverter {
  readonly #encoder: EventEncoder
  readonly #versions: Versions
  /** Set if the versions differ. */
  readonly #translation: StreamTranslation | undefined
  /** The time since when the translation holds a status back. */
  #heldSince: number | undefined
  #failed = false

  constructor(encoder: EventEncoder, versions: Versions) {
    this.#encoder = encoder
    this.#versions = versions
    const { from, to } = versions
    this.#translation = from === to ? undefined : new StreamTranslation(from, to)
  }

  next({ data }: ServerSentEvent): ClientText | undefined {
    const text = this.#response(data)
    return text === undefined ? this.failure(STREAM_FAILURES.INVALID_RESPONSE) : someText(text)
  }

  cutOff({ data }: ServerSentEvent): ClientText | undefined {
    return someText(this.#response(data) ?? '')
  }

  quiet(now: number): ClientText | undefined {
    if (this.#translation?.holds !== true) this.#heldSince = undefined
    else if (now - (this.#heldSince ??= now) >= LONGEST_HOLD_MS) return someText(this.#rest())
    return undefined
  }

  rest(): ClientText | undefined {
    return someText(this.#rest())
  }

  get holds(): boolean {
    return this.#translation?.holds === true
  }

  /** @inheritdoc The gateway relays event streams only, so there is no other body. */
  *plainAnswer(): Steps<ClientText> {
    yield
    return this.failure(STREAM_FAILURES.INVALID_RESPONSE)
  }

  ended(): ClientText {
    return { text: this.#rest() + END_COMMENT, end: this.#failed ? 'error' : 'done' }
  }

  broken(): ClientText {
    return this.failure(STREAM_FAILURES.INTERRUPTED)
  }

  failure(failure: StreamFailure): ClientText {
    const { text, code } = this.#encoder.failure(failure)
    return { text: this.#rest() + text, end: code }
  }

  /**
   * Returns the caller's events for a JSON-RPC response of the agent: none if the translation holds
   * it back. Undefined for any other data.
   */
  #response(data: string): string | undefined {
    const source = parseData(data)
    if (source === undefined || source === 'invalid') return undefined
    const { text, value } = source
    if (!isJsonObject(value) || value['jsonrpc'] !== '2.0') return undefined
    const { error } = value
    this.#failed = isJsonObject(error)
    const member = this.#failed ? 'error' : 'result'
    if (!this.#failed && error !== undefined && error !== null) return undefined
    const content = memberText(text, member)
    if (content === undefined) return undefined
    if (this.#translation === undefined) return this.#encoder[member](content)
    return member === 'error' ? this.#translatedError(content) : this.#translatedResult(this.#translation, content)
  }

  #translatedError(content: string): string | undefined {
    const error = parseForTranslation(fromBytes(content))
    if (!isJsonObject(error)) return undefined
    const { from, to } = this.#versions
    return this.#encoder.error(asBytes(JSON.stringify(translateError(from, to, error))))
  }

  #translatedResult(translation: StreamTranslation, content: string): string | undefined {
    this.#heldSince = undefined
    try {
      return this.#resultEvents(translation.next(parseForTranslation(fromBytes(content))))
    } catch (error) {
      if (error instanceof UntranslatableError) return undefined
      throw error
    }
  }

  /** Returns the events that the translation still holds back. */
  #rest(): string {
    return this.#resultEvents(this.#translation?.end() ?? [])
  }

  #resultEvents(results: readonly unknown[]): string {
    return results.map((result) => this.#encoder.result(asBytes(JSON.stringify(result)))).join('')
  }
}

function someText(text: string): ClientText | undefined {
  return text === '' ? undefined : { text, end: undefined }
}

/**
 * Writes the events of a stream in one binding of A2A. The content is JSON source text without line ends, with one
 * character for each byte, and so is the event.
 */
export interface EventEncoder extends FailureEncoder {
  result(content: string): string
  /** @param content A JSON-RPC error object of the agent */
  error(content: string): string
}

/** Returns the encoder of events that are JSON-RPC responses with this id, JSON source text. */
export function rpcEvents(id: string): EventEncoder {
  const idBytes = asBytes(id)
  const start = `data: {"jsonrpc":"2.0","id":${idBytes},`
  return {
    ...rpcFailures(idBytes),
    result: (content) => `${start}"result":${content}}\n\n`,
    error: (content) => `${start}"error":${content}}\n\n`,
  }
}

/** Returns the encoder of the failures of a stream whose events are JSON-RPC responses with this id. */
export function rpcFailures(id: string): FailureEncoder {
  return {
    failure({ message, native: { code, reason, setting } }) {
      return { text: `data: ${errorText(id, code, message, errorDetails(reason, limitDetails(setting)))}\n\n`, code }
    },
  }
}

/** The encoder of the HTTP+JSON binding: an event is a result itself, or an error with its own event name. */
export const REST_EVENTS: EventEncoder = {
  result: (content) => `data: ${content}\n\n`,
  error(content) {
    const error = parseForTranslation(fromBytes(content))
    return errorEvent(asBytes(restErrorText(agentRestError(isJsonObject(error) ? error : {}))))
  },
  failure({ message, native: { code, reason, setting } }) {
    return {
      text: errorEvent(restErrorText({ code, message, reason, details: errorDetails(reason, limitDetails(setting)) })),
      code,
    }
  },
}

function errorEvent(text: string): string {
  return `event: error\ndata: ${text}\n\n`
}

/** A comment that ends a stream. The last frame needs a text, and A2A has no event for the end. */
const END_COMMENT = ': end\n\n'

/** Returns the text of bytes that {@link asBytes} has returned. */
export function fromBytes(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString()
}

/** Returns a text with one character for each byte of its UTF-8 form, as streams are relayed. */
export function asBytes(text: string): string {
  return Buffer.from(text).toString('latin1')
}
