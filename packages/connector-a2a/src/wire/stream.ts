import type { WireVersion } from '@signalbox/registry'

import { UntranslatableError } from './untranslatable.ts'

/** Translates the results of one event stream. */
export class StreamTranslation {
  readonly #from: WireVersion
  readonly #to: WireVersion

  constructor(from: WireVersion, to: WireVersion) {
    this.#from = from
    this.#to = to
  }

  /**
   * Returns the results to send after a result of the agent: none, one or two.
   * @throws UntranslatableError if the result is not an event of its version
   */
  next(result: unknown): unknown[] {
    if (this.#from === this.#to) return [result]
    throw new UntranslatableError('streams are not translated yet')
  }

  /** Returns the results that remain to be sent when the agent's stream ends. */
  end(): unknown[] {
    return []
  }
}
