import { Buffer } from 'node:buffer'

import { isJsonObject, readJson } from '@signalbox/http-kit'

import { memberOf } from '../../wire/index.ts'

/** Larger responses are not parsed for the task that they began. */
const MAX_RESPONSE_BYTES = 1024 * 1024

/** Every response that names a task has one of these texts. Others are not parsed. */
const MENTIONS = ['"taskId"', '"task_id"', '"task"', '"status"'].map((text) => Buffer.from(text))

/** A stream names its task in its first events. */
const MAX_STREAM_BYTES = 65_536

/** Returns the id of the task that a response names, in any dialect; undefined if it names none. */
export function startedTask(body: Uint8Array): string | undefined {
  if (body.byteLength > MAX_RESPONSE_BYTES) return undefined
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  return MENTIONS.some((text) => bytes.includes(text)) ? taskIn(bytes.toString()) : undefined
}

/** Finds the task in the first events of a stream. */
export class StreamedTask {
  readonly #found: (taskId: string) => void
  #rest = ''
  #bytes = 0
  #done = false

  /** @param found Called at most once */
  constructor(found: (taskId: string) => void) {
    this.#found = found
  }

  /** Reads a chunk of the stream. Does nothing after the first events. */
  read(chunk: Buffer): void {
    if (this.#done) return
    this.#bytes += chunk.byteLength
    // Cut characters do not matter: an id with one is not found, and its owner is not remembered.
    const lines = (this.#rest + chunk.toString()).split(/\r\n|\n|\r/)
    this.#rest = lines.pop() ?? ''
    for (const line of lines) {
      const taskId = line.startsWith('data:') ? taskIn(line.slice('data:'.length)) : undefined
      if (taskId === undefined) continue
      this.#end()
      this.#found(taskId)
      return
    }
    if (this.#bytes > MAX_STREAM_BYTES) this.#end()
  }

  #end(): void {
    this.#done = true
    this.#rest = ''
  }
}

function taskIn(text: string): string | undefined {
  const value = readJson(text)?.value
  if (!isJsonObject(value)) return undefined
  const outcome = value['result'] ?? value['payload'] ?? value
  if (!isJsonObject(outcome)) return undefined
  // A task itself, with `kind` in A2A 0.3 and without it before.
  if (outcome['kind'] === 'task' || isJsonObject(outcome['status'])) {
    return textIn(outcome, 'taskId') ?? textIn(outcome, 'id')
  }
  for (const member of ['task', 'statusUpdate', 'artifactUpdate', 'message']) {
    const inner = memberOf(outcome, member)
    if (isJsonObject(inner)) return textIn(inner, member === 'task' ? 'id' : 'taskId')
  }
  return textIn(outcome, 'taskId')
}

function textIn(object: { readonly [member: string]: unknown }, member: string): string | undefined {
  const value = memberOf(object, member)
  return typeof value === 'string' && value !== '' ? value : undefined
}
