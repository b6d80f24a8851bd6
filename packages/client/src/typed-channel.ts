import type { ClientContext } from './client-context.ts'
import type { Decode, Schema } from './schema.ts'
import { decoderOf, validated } from './schema.ts'

/** A channel, the type of its data, and the client that reaches it. */
export class TypedChannel<Output, Input> {
  readonly context: ClientContext
  readonly name: string
  /** @throws SignalboxError DATA_INVALID */
  readonly decode: Decode<Output>
  readonly #schema: Schema<Input, Output> | undefined

  constructor(context: ClientContext, name: string, schema: Schema<Input, Output> | undefined) {
    this.context = context
    this.name = name
    this.decode = decoderOf(schema)
    this.#schema = schema
  }

  /**
   * Checks data before it is sent.
   * @throws SignalboxError DATA_INVALID
   */
  async check(data: Input): Promise<void> {
    if (this.#schema !== undefined) await validated(this.#schema, data, 'the data')
  }
}
