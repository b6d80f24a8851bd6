import type { ClientContext } from './client-context.ts'
import type { Problem } from './errors.ts'
import { SignalboxError } from './errors.ts'

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

/**
 * A schema of a library that implements Standard Schema 1, such as Zod, Valibot, ArkType and TypeBox. Data is
 * validated before it is sent and before a handler gets it.
 */
export interface Schema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
  }
}

export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] }

export interface SchemaIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

/** Returns received data as the handler wants it. @throws SignalboxError DATA_INVALID */
export type Decode<T> = (data: unknown) => Promise<T>

/** Returns the check of received data. Without a schema the data passes with the type that the caller names. */
export function decoderOf<T>(schema: Schema<unknown, T> | undefined): Decode<T> {
  if (schema !== undefined) return (data) => validated(schema, data, 'the received data')
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `queue<Job>('jobs')` is the caller's word for it
  return (data) => Promise.resolve(data as T)
}

/**
 * Returns the data as the schema converts it.
 * @throws SignalboxError DATA_INVALID
 */
async function validated<Output>(schema: Schema<unknown, Output>, data: unknown, what: string): Promise<Output> {
  const result = await schema['~standard'].validate(data)
  if (result.issues === undefined) return result.value
  const problems = result.issues.map(problemOf)
  const list = problems.map(({ name, allowed }) => (name === undefined ? allowed : `${name}: ${allowed}`)).join('; ')
  throw new SignalboxError('DATA_INVALID', `${what} does not match the schema: ${list}`, { problems })
}

function problemOf({ message, path = [] }: SchemaIssue): Problem {
  if (path.length === 0) return { allowed: message }
  const name = path.map((segment) => String(typeof segment === 'object' ? segment.key : segment)).join('.')
  return { name, allowed: message }
}
