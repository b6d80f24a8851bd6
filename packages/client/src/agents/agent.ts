import type { ClientContext } from '../client-context.ts'
import { callSignal } from '../client-context.ts'
import { dataOf, isObject, objectOf, parsed, asString } from '../cloud-event.ts'
import { readStream } from '../event-stream.ts'
import type { Duration } from '../time.ts'
import { wholeSeconds } from '../time.ts'
import type { Call } from '../transport.ts'
import { registryFailure, rpcError, rpcFailure } from './agent-failure.ts'

export interface AgentCallOptions {
  /** Continues a conversation: the `contextId` of a reply. */
  readonly contextId?: string | undefined
  /** Continues a task: the `taskId` of a reply. */
  readonly taskId?: string | undefined
  /** Agents recognize a repeated message by its id. @default a random id */
  readonly messageId?: string | undefined
  /** The time that the agent may take, 1 s to 1 h, in whole seconds. @default the server's, 5 min */
  readonly timeout?: Duration | undefined
  readonly signal?: AbortSignal | undefined
}

/** The longest time-out of the gateway, in ms. */
const LONGEST_MS = 3_600_000

/** Added to the time that the gateway waits, in ms. */
const MARGIN_MS = 5000

/** A registered agent. The gateway translates for agents of A2A 0.3. */
export class Agent {
  readonly #context: ClientContext
  readonly #id: string

  /** @internal */
  constructor(context: ClientContext, id: string) {
    this.#context = context
    this.#id = id
  }

  /** Sends a text, or parts of A2A 1.0, and returns the agent's reply: a message or a task. */
  async send(message: string | readonly object[], options: AgentCallOptions = {}): Promise<AgentReply> {
    const result = await this.call('SendMessage', { message: messageOf(message, options) }, options)
    return agentReply(result)
  }

  /** Sends a text, or parts of A2A 1.0, and yields the agent's events. A stream that breaks is an error. */
  async *stream(
    message: string | readonly object[],
    options: AgentCallOptions = {},
  ): AsyncGenerator<AgentReply, void, void> {
    const call = this.#rpc('SendStreamingMessage', { message: messageOf(message, options) }, options)
    const { transport, silenceMs } = this.#context
    for await (const event of readStream(transport, call, silenceMs, rpcFailure)) {
      if (event === 'open') continue
      const body = objectOf(parsed(event.data), 'an event of an agent')
      if (isObject(body['error'])) throw rpcError(body['error'], 200)
      yield agentReply(objectOf(body['result'], 'an event of an agent'))
    }
    call.signal?.throwIfAborted()
  }

  /** Calls any method of A2A 1.0, such as `GetTask`, and returns its result. */
  async call(
    method: string,
    params: object,
    options: Pick<AgentCallOptions, 'timeout' | 'signal'> = {},
  ): Promise<Readonly<Record<string, unknown>>> {
    const { text } = await this.#context.transport.call(this.#rpc(method, params, options), rpcFailure)
    return objectOf(objectOf(parsed(text), 'the answer of an agent')['result'], 'the result of an agent')
  }

  /** Returns the agent card, as it was registered. */
  async card(options: { readonly signal?: AbortSignal | undefined } = {}): Promise<Readonly<Record<string, unknown>>> {
    const signal = callSignal(this.#context, options.signal)
    const path = `/agents/${encodeURIComponent(this.#id)}`
    const { text } = await this.#context.transport.call(
      { method: 'GET', path, repeatable: true, signal },
      registryFailure,
    )
    return objectOf(parsed(text), 'the card')
  }

  #rpc(method: string, params: object, { timeout, signal }: Pick<AgentCallOptions, 'timeout' | 'signal'>): Call {
    const seconds = timeout === undefined ? undefined : wholeSeconds('timeout', timeout, 1, 3600)
    return {
      method: 'POST',
      path: `/a2a/${encodeURIComponent(this.#id)}`,
      headers: {
        'Content-Type': 'application/json',
        'A2A-Version': '1.0',
        ...(seconds === undefined ? {} : { Prefer: `wait=${seconds}` }),
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: crypto.randomUUID(), method, params }),
      waitMs: seconds === undefined ? LONGEST_MS : seconds * 1000 + MARGIN_MS,
      // The agent may have acted, and not every agent recognizes a repeated message.
      repeatable: false,
      signal: callSignal(this.#context, signal),
    }
  }
}

function messageOf(message: string | readonly object[], { contextId, taskId, messageId }: AgentCallOptions): object {
  return {
    messageId: messageId ?? crypto.randomUUID(),
    role: 'ROLE_USER',
    parts: typeof message === 'string' ? [{ text: message }] : message,
    contextId,
    taskId,
  }
}

/** A result of an agent, or an event of its stream, in the form of A2A 1.0. */
export interface AgentReply {
  /** The text of the message, or of the artifacts and the status of the task. */
  readonly text: string
  /** The JSON and the bytes among the parts. */
  readonly data: readonly unknown[]
  /** The conversation: pass it to the next `send`. */
  readonly contextId: string | undefined
  readonly taskId: string | undefined
  /** The state of the task, such as `completed` and `failed`; `undefined` for a message. */
  readonly state: string | undefined
  /** The whole result or event, as A2A 1.0 has it. */
  readonly raw: Readonly<Record<string, unknown>>
}

/** Returns the reply of a result of `SendMessage`, or of an event of `SendStreamingMessage`. */
function agentReply(raw: Readonly<Record<string, unknown>>): AgentReply {
  const [kind, value] = Object.entries(raw).find(([, each]) => isObject(each)) ?? []
  const body = isObject(value) ? value : {}
  const status = isObject(body['status']) ? body['status'] : {}
  const parts = [
    ...partsOf(body),
    ...listOf(body['artifacts']).flatMap(partsOf),
    ...partsOf(body['artifact']),
    ...partsOf(status['message']),
  ]
  const id = kind === 'task' ? asString(body['id']) : asString(body['taskId'])
  return {
    ...contentOf(parts),
    contextId: asString(body['contextId']),
    taskId: id === '' ? undefined : id,
    state: asString(status['state'])
      ?.replace(/^TASK_STATE_/, '')
      .toLowerCase()
      .replaceAll('_', '-'),
    raw,
  }
}

type Part = Readonly<Record<string, unknown>>

/** Returns the texts of parts, a line each, and their other contents. */
export function contentOf(parts: readonly Part[]): Pick<AgentReply, 'text' | 'data'> {
  return {
    text: parts.flatMap((part) => asString(part['text']) ?? []).join('\n'),
    data: parts.flatMap((part) => contentsOf(part)),
  }
}

/** Returns the parts of a message or an artifact. */
export function partsOf(value: unknown): readonly Part[] {
  return isObject(value) ? listOf(value['parts']).filter(isObject) : []
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function contentsOf(part: Part): readonly unknown[] {
  if (part['data'] !== undefined) return [part['data']]
  if (asString(part['raw']) === undefined) return []
  return [dataOf({ data_base64: part['raw'] }, asString(part['mediaType']))]
}
