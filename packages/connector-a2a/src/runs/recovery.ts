import type { JsonObject } from '@signalbox/http-kit'
import { JSON_RPC_CODES } from '@signalbox/http-kit'
import { pauseAfter } from '@signalbox/broker-core/internal'

import { A2A_CODES } from '../native/errors.ts'
import { STREAM_FAILURES } from '../stream/failures.ts'
import { asBytes } from '../stream/native-events.ts'
import type { A2aMethod, WireVersion } from '../wire/index.ts'
import { isObject, METHODS, parsedJson } from '../wire/index.ts'
import { logText, withGap } from './logged-events.ts'
import type { RunWriter } from './run-writer.ts'
import type { SeenTask } from './seen-task.ts'
import { phaseOf } from './seen-task.ts'

/** An agent, as the recovery of a run asks it. */
export interface RecoveredAgent {
  /**
   * Calls a method with the id of a task, in the version of the run. The events of a stream are written into the run;
   * resolves when it has ended, with undefined, or with the JSON text of a plain answer; `null` if there is none.
   */
  readonly ask: (method: A2aMethod, params: JsonObject) => Promise<string | null | undefined>
  /** Aborted when this node stops. */
  readonly stopped: AbortSignal
}

/** The number of attempts without any news of the task after which it counts as lost. */
const ATTEMPTS = 6

/** The pauses between them: 1 s, 2 s, 4 s … */
const BACKOFF = { firstMs: 1_000, longestMs: 10_000 }

/**
 * Continues a run whose connection to the agent was cut: subscribes to its task, or reads it until it is over. A task
 * that the agent does not know any more has failed. Resolves when the run has ended, or another node continues it.
 */
export async function recoverRun(writer: RunWriter, { ask, stopped }: RecoveredAgent): Promise<void> {
  for (let failures = 0; !stopped.aborted; failures++) {
    await writer.written()
    const { task, wire } = writer
    if (writer.isOver) return
    if (wire === undefined || task === undefined) {
      const failure = wire === undefined ? STREAM_FAILURES.NO_TERMINAL_EVENT : STREAM_FAILURES.AGENT_LOST
      return end(writer, failure)
    }
    if (task.phase !== 'open') return end(writer, undefined)
    if (failures >= ATTEMPTS) return fail(writer, task, wire)
    if (failures > 0) await pauseAfter(failures, { signal: stopped, backoff: BACKOFF })
    const { sequence } = writer
    const refusal = await ask(METHODS.resubscribe, { id: task.taskId })
    if (refusal === undefined) {
      // Its events were news, and they may have been the last.
      if (writer.sequence > sequence) failures = -1
      continue
    }
    const answer = await ask(METHODS.get, { id: task.taskId })
    const known = typeof answer === 'string' ? readAnswer(answer, wire) : undefined
    if (known === 'unknown') return fail(writer, task, wire)
    if (known === undefined) continue
    if (phaseOf(stateOf(known)) === 'open') continue
    writeTask(writer, known, wire)
    return end(writer, undefined)
  }
}

/** Writes the last event of a run. */
function end(writer: RunWriter, failure: (typeof STREAM_FAILURES)[keyof typeof STREAM_FAILURES] | undefined): void {
  const converter = writer.events(writer.wire)
  const { text, end: mark } = failure === undefined ? converter.ended() : converter.failure(failure)
  writer.reopen()
  writer.push(text, mark)
}

/** Ends the run of a task that the agent has lost. */
function fail(writer: RunWriter, { taskId, contextId }: SeenTask, wire: WireVersion): void {
  const timestamp = new Date().toISOString()
  const metadata = { 'signalbox.reason': 'AGENT_LOST' }
  const update = { taskId, contextId: contextId ?? (wire === '1.0' ? undefined : ''), metadata }
  const result =
    wire === '1.0'
      ? { statusUpdate: { ...update, status: { state: 'TASK_STATE_FAILED', timestamp } } }
      : { kind: 'status-update', ...update, status: { state: 'failed', timestamp }, final: true }
  writer.reopen()
  writer.push(responseText(result), undefined)
  end(writer, undefined)
}

function writeTask(writer: RunWriter, task: JsonObject, wire: WireVersion): void {
  const result = withGap(wire === '1.0' ? { task } : { kind: 'task', ...task }, { from: writer.sequence + 1 })
  writer.reopen()
  writer.push(responseText(result), undefined)
}

function responseText(result: unknown): string {
  return logText(undefined, asBytes(JSON.stringify({ jsonrpc: '2.0', id: null, result })))
}

/** Returns the task in an answer to `GetTask`; `unknown` if the agent does not know it. */
function readAnswer(text: string, wire: WireVersion): JsonObject | 'unknown' | undefined {
  const response = parsedJson(text)
  if (!isObject(response)) return undefined
  const { error, result } = response
  if (isObject(error)) return GONE.has(error['code']) ? 'unknown' : undefined
  const task = wire === '1.0' && isObject(result) && isObject(result['task']) ? result['task'] : result
  return isObject(task) ? task : undefined
}

/** An agent without the method, or without the task, has nothing to say of it. */
const GONE: ReadonlySet<unknown> = new Set([A2A_CODES.TASK_NOT_FOUND, JSON_RPC_CODES.METHOD_NOT_FOUND])

function stateOf({ status }: JsonObject): unknown {
  return isObject(status) ? status['state'] : undefined
}
