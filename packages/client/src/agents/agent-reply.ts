import { dataOf, isObject, textOf } from '../cloud-event.ts'

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
export function agentReply(raw: Readonly<Record<string, unknown>>): AgentReply {
  const [kind, value] = Object.entries(raw).find(([, each]) => isObject(each)) ?? []
  const body = isObject(value) ? value : {}
  const status = isObject(body['status']) ? body['status'] : {}
  const parts = [
    ...partsOf(body),
    ...listOf(body['artifacts']).flatMap(partsOf),
    ...partsOf(body['artifact']),
    ...partsOf(status['message']),
  ]
  const id = kind === 'task' ? textOf(body['id']) : textOf(body['taskId'])
  return {
    text: parts.flatMap((part) => textOf(part['text']) ?? []).join('\n'),
    data: parts.flatMap((part) => contentsOf(part)),
    contextId: textOf(body['contextId']),
    taskId: id === '' ? undefined : id,
    state: textOf(status['state'])
      ?.replace(/^TASK_STATE_/, '')
      .toLowerCase()
      .replaceAll('_', '-'),
    raw,
  }
}

type Part = Readonly<Record<string, unknown>>

function partsOf(value: unknown): readonly Part[] {
  return isObject(value) ? listOf(value['parts']).filter(isObject) : []
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function contentsOf(part: Part): readonly unknown[] {
  if (part['data'] !== undefined) return [part['data']]
  if (textOf(part['raw']) === undefined) return []
  return [dataOf({ data_base64: part['raw'] }, textOf(part['mediaType']))]
}
