import { Buffer } from 'node:buffer'

import { encodeText, isBrokerError } from '@signalbox/broker-core'
import { pauseAfter } from '@signalbox/broker-core/internal'
import { JsonRpcError } from '@signalbox/http-kit'
import { internalError } from '@signalbox/http-kit/internal'

import type { InputNeeded, ToolOutcome } from '../tools/tool.ts'
import { resultMembers } from '../tools/tool.ts'
import type { ResolvedTaskOptions } from './options.ts'
import type { StoredTask, TaskRecord } from './task-record.ts'
import { NO_RESULT, restingRecord, taskMembers } from './task-record.ts'

/** The tasks of this node, as the end of one of them uses them. */
export interface TaskWriter {
  readonly options: ResolvedTaskOptions
  readonly closed: boolean
  readonly failed: (error: unknown) => void
  write(next: StoredTask): Promise<StoredTask>
  remove(id: string, sequence: number): Promise<void>
}

/** A task whose call this node runs. The end of the call is written once; no method rejects. */
export class OwnedTask {
  readonly #tasks: TaskWriter
  readonly #task: StoredTask
  readonly #release: () => void

  /** @param release Called when the call has ended */
  constructor(tasks: TaskWriter, task: StoredTask, release: () => void) {
    this.#tasks = tasks
    this.#task = task
    this.#release = release
  }

  /** The members of the answer that creates the task, as JSON text. */
  get members(): string {
    const { id, record } = this.#task
    return taskMembers(id, record, this.#tasks.options.pollIntervalMs)
  }

  /** Stores the outcome of the call. Resolves when it is durable, or when another write came first. */
  async finish(outcome: ToolOutcome): Promise<void> {
    const { input } = outcome
    if (input === undefined) await this.#complete(outcome)
    else await this.#end({ ...this.#asking(input), status: 'input_required' })
  }

  /** Stores the failure of the call, as {@link finish} does. */
  async fail(error: unknown): Promise<void> {
    const { code, message } = error instanceof JsonRpcError ? error : internalError(error)
    await this.#end({ status: 'failed', statusMessage: message, error: { code, message } })
  }

  /** Removes a task that its client never learned of. */
  async drop(): Promise<void> {
    const { id, sequence } = this.#task
    this.#release()
    await this.#tasks.remove(id, sequence).catch((error: unknown) => {
      if (!isBrokerError(error, 'CONFLICT')) this.#tasks.failed(error)
    })
  }

  async #complete(outcome: ToolOutcome): Promise<void> {
    const { maxResultBytes } = this.#tasks.options
    const members = resultMembers(outcome)
    const bytes = typeof members === 'string' ? Buffer.byteLength(members) : members.byteLength
    const isTooLarge = bytes + '{}'.length > maxResultBytes
    const result = isTooLarge ? NO_RESULT : encodeText(`{${String(members)}}`)
    if (isTooLarge || (await this.#end({ status: 'completed' }, result)) === 'too large') {
      const text = `RESULT_TOO_LARGE: The result has ${bytes} bytes; a task stores at most ${maxResultBytes}, or the store takes less. The call has run: do not repeat it, but ask for less data.`
      await this.#end({ status: 'completed' }, encodeText(`{${String(resultMembers({ text, isError: true }))}}`))
    }
  }

  /** A key is unique among all requests of the task. */
  #asking({ requests, state }: InputNeeded): Pick<TaskRecord, 'rounds' | 'requests' | 'state'> {
    const rounds = this.#task.record.rounds + 1
    const named = Object.entries(requests).map(([name, request]) => [requestKey(name, rounds), request] as const)
    return { rounds, requests: Object.fromEntries(named), state }
  }

  async #end(change: Partial<TaskRecord>, result: Uint8Array = NO_RESULT): Promise<'done' | 'too large'> {
    const { id, sequence, record } = this.#task
    try {
      for (;;) {
        const next = restingRecord(record, change, this.#tasks.options.ttlMs)
        try {
          await this.#tasks.write({ id, sequence, record: next, result })
          return 'done'
        } catch (error) {
          if (isBrokerError(error, 'MESSAGE_TOO_LARGE')) return 'too large'
          // The task was cancelled, or another node found this one to have stopped.
          if (isBrokerError(error, 'CONFLICT')) return 'done'
          this.#tasks.failed(error)
          if (!isBrokerError(error, 'ENGINE_UNAVAILABLE')) return 'done'
        }
        if (this.#tasks.closed) return 'done'
        await pauseAfter(1, { ref: false })
      }
    } finally {
      this.#release()
    }
  }
}

/** Returns the key of a request: its name, and the round in which the task asks it. */
function requestKey(name: string, round: number): string {
  return `${name}-${round}`
}

/** Returns the name of the request with this key. */
export function requestName(key: string): string {
  return key.slice(0, key.lastIndexOf('-'))
}
