import type { JsonObject } from '@signalbox/http-kit'

import { isObject } from '../wire/index.ts'
import type { RunChunk, RunLog } from './run-log.ts'
import type { RunResult } from './run-results.ts'
import { RunResults } from './run-results.ts'
import type { TaskPhase } from './seen-task.ts'
import { phaseOf } from './seen-task.ts'

/** The member of a task's metadata with its place in an inbox. It is true until the next status. */
export const DELIVERY = 'signalbox.delivery'

/** The answer that the events of a run add up to, in A2A 1.0: its task as it is now, or a message. */
export class FoldedTask {
  #task: Record<string, unknown> | undefined
  #message: JsonObject | undefined
  #error: JsonObject | undefined

  /** The task, or undefined before an event names one. */
  get task(): JsonObject | undefined {
    return this.#task
  }

  /** The error of the agent. */
  get error(): JsonObject | undefined {
    return this.#error
  }

  /** The result of `SendMessage`: `{task}` or `{message}`; undefined before an event has one. */
  get result(): JsonObject | undefined {
    if (this.#message !== undefined) return { message: this.#message }
    return this.#task && { task: this.#task }
  }

  get phase(): TaskPhase {
    if (this.#message !== undefined || this.#error !== undefined) return 'over'
    const { status } = this.#task ?? {}
    return isObject(status) ? phaseOf(status['state']) : 'open'
  }

  /** Adds the next result of a run. */
  add({ error, result }: RunResult): void {
    if (error !== undefined) this.#error = error
    this.addResult(result)
  }

  /** Adds a result of a stream of A2A 1.0. */
  addResult(result: unknown): void {
    if (!isObject(result)) return
    const { artifactUpdate, message, statusUpdate, task } = result
    if (isObject(message)) this.#message = message
    if (isObject(task)) this.#task = { ...task }
    if (isObject(statusUpdate)) this.#addStatus(statusUpdate)
    if (isObject(artifactUpdate)) this.#addArtifact(artifactUpdate)
  }

  #addStatus({ taskId: id, contextId, status }: JsonObject): void {
    const { history, metadata, ...task } = this.#task ?? { id, contextId }
    const message = isObject(status) ? status['message'] : undefined
    const before = listOf(history)
    // Clients read the messages of a task in its history.
    const isNew = isObject(message) && !before.some((one) => isObject(one) && one['messageId'] === message['messageId'])
    const now = isNew ? [...before, message] : before
    const { [DELIVERY]: _, ...rest } = isObject(metadata) ? metadata : {}
    this.#task = {
      ...task,
      status,
      ...(now.length === 0 ? {} : { history: now }),
      ...(Object.keys(rest).length === 0 ? {} : { metadata: rest }),
    }
  }

  #addArtifact({ taskId: id, contextId, artifact, append }: JsonObject): void {
    if (!isObject(artifact)) return
    const { artifacts, ...task } = this.#task ?? { id, contextId, status: { state: 'TASK_STATE_WORKING' } }
    const now = [...listOf(artifacts)]
    const at = now.findIndex((one) => isObject(one) && one['artifactId'] === artifact['artifactId'])
    const known: unknown = now[at]
    if (!isObject(known)) now.push(artifact)
    else
      now[at] =
        append === true ? { ...known, parts: [...listOf(known['parts']), ...listOf(artifact['parts'])] } : artifact
    this.#task = { ...task, artifacts: now }
  }
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** A run as its log shows it now. */
export interface FoldedRun {
  readonly folded: FoldedTask
  /** The last chunk; undefined if there is none. */
  readonly last: RunChunk | undefined
}

/** Reads a whole run. @param folded The task to which the run is added. @throws BrokerError ENGINE_UNAVAILABLE */
export async function foldRun(log: RunLog, run: string, folded = new FoldedTask()): Promise<FoldedRun> {
  const results = new RunResults()
  let last: RunChunk | undefined
  for (let chunk = await log.first(run); chunk !== undefined; chunk = await log.read(run, chunk.number + 1)) {
    for (const result of results.read(chunk)) folded.add(result)
    last = chunk
  }
  return { folded, last }
}
