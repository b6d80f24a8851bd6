import { isJsonObject, memberText } from '@signalbox/http-kit'
import type { WireVersion } from '../../wire/index.ts'

import { parseForTranslation, StreamTranslation, translateError, UntranslatableError } from '../../wire/index.ts'

import { parseData } from '../dialects/event-data.ts'
import type { StreamFailure } from '../events.ts'
import type { ServerSentEvent } from '../reader/event-reader.ts'
import type { ClientText, EventConverter } from '../relay/event-converter.ts'
import { STREAM_FAILURES } from '../stream-failures.ts'
import type { NativeFrames } from './native-frames.ts'
import { asBytes, END_COMMENT, fromBytes } from './native-frames.ts'

/** The versions of A2A that the agent and the caller speak. */
export interface Versions {
  readonly from: WireVersion
  readonly to: WireVersion
}

/**
 * The time for which a status that may be the last is held back while the agent is silent, in ms.
 */
const LONGEST_HOLD_MS = 1_000

/**
 * Passes on the results and errors of an agent's stream in the frames of the caller, unchanged or
 * translated to the caller's version of A2A. The stream ends when the agent ends it, and only then.
 */
export class NativeEvents implements EventConverter {
  readonly #frames: NativeFrames
  readonly #versions: Versions
  /** Set if the versions differ. */
  readonly #translation: StreamTranslation | undefined
  /** The time since when the translation holds a status back. */
  #heldSince: number | undefined
  #failed = false

  constructor(frames: NativeFrames, versions: Versions) {
    this.#frames = frames
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

  /** @inheritdoc The gateway relays event streams only, so there is no other body. */
  plainAnswer(): ClientText {
    return this.failure(STREAM_FAILURES.INVALID_RESPONSE)
  }

  ended(): ClientText {
    return { text: this.#rest() + END_COMMENT, end: this.#failed ? 'error' : 'done' }
  }

  broken(): ClientText {
    return this.failure(STREAM_FAILURES.INTERRUPTED)
  }

  failure(failure: StreamFailure): ClientText {
    const { text, code } = this.#frames.failure(failure)
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
    if (this.#translation === undefined) return this.#frames[member](content)
    return member === 'error' ? this.#translatedError(content) : this.#translatedResult(this.#translation, content)
  }

  #translatedError(content: string): string | undefined {
    const error = parseForTranslation(fromBytes(content))
    if (!isJsonObject(error)) return undefined
    const { from, to } = this.#versions
    return this.#frames.error(asBytes(JSON.stringify(translateError(from, to, error))))
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
    return results.map((result) => this.#frames.result(asBytes(JSON.stringify(result)))).join('')
  }
}

function someText(text: string): ClientText | undefined {
  return text === '' ? undefined : { text, end: undefined }
}
