import { isJsonObject, memberText } from '@signalbox/http-kit'

import { parseData } from '../dialects/event-data.ts'
import type { StreamFailure } from '../events.ts'
import type { ServerSentEvent } from '../reader/event-reader.ts'
import type { ClientText, EventConverter } from '../relay/event-converter.ts'
import { STREAM_FAILURES } from '../stream-failures.ts'
import type { StreamForm } from '../stream-form.ts'
import { asBytes, END_COMMENT, nativeForm, responseEvent } from './native-frames.ts'

/**
 * Passes on the results and errors of an agent's stream, unchanged, as responses with the caller's
 * id. The stream ends when the agent ends it, and only then.
 */
export class NativeEvents implements EventConverter {
  readonly #id: string
  readonly #form: StreamForm
  #failed = false

  /** @param id The source text of the id of the caller's request */
  constructor(id: string) {
    this.#id = asBytes(id)
    this.#form = nativeForm(this.#id)
  }

  next({ data }: ServerSentEvent): ClientText {
    return this.#response(data) ?? this.failure(STREAM_FAILURES.INVALID_RESPONSE)
  }

  cutOff({ data }: ServerSentEvent): ClientText | undefined {
    return this.#response(data)
  }

  /** @inheritdoc The gateway relays event streams only, so there is no other body. */
  plainAnswer(body: string): ClientText {
    return this.next({ event: undefined, data: body.replaceAll('\r', ' ') })
  }

  ended(): ClientText {
    return { text: END_COMMENT, end: this.#failed ? 'error' : 'done' }
  }

  broken(): ClientText {
    return this.failure(STREAM_FAILURES.INTERRUPTED)
  }

  failure(failure: StreamFailure): ClientText {
    const { text, code } = this.#form.failure(failure)
    return { text, end: code }
  }

  /** Returns the caller's response for a JSON-RPC response of the agent; undefined for any other data. */
  #response(data: string): ClientText | undefined {
    const source = parseData(data)
    if (source === undefined || source === 'invalid') return undefined
    const { text, value } = source
    if (!isJsonObject(value) || value['jsonrpc'] !== '2.0') return undefined
    const { error } = value
    this.#failed = isJsonObject(error)
    const member = this.#failed ? 'error' : 'result'
    if (!this.#failed && error !== undefined && error !== null) return undefined
    const content = memberText(text, member)
    return content === undefined ? undefined : { text: responseEvent(this.#id, member, content), end: undefined }
  }
}
