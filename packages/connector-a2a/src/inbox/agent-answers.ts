import type { JsonObject } from '@signalbox/http-kit'

import type { ServerSentEvent } from '../stream/event-reader.ts'
import type { ClientText, EventConverter } from '../stream/events.ts'
import { fromBytes } from '../stream/native-events.ts'
import type { A2aMethod, WireVersion } from '../wire/index.ts'
import { isObject, parsedJson, StreamTranslation, UntranslatableError } from '../wire/index.ts'

/** Collects the results of an agent, in A2A 1.0. */
export class AgentAnswers {
  readonly #method: A2aMethod
  #translation: StreamTranslation | undefined
  #results: JsonObject[] = []
  /** The message of the agent's last error. */
  error: string | undefined

  constructor(method: A2aMethod) {
    this.#method = method
  }

  /** Returns the converter that collects the events of an agent that speaks this version. */
  from(wire: WireVersion): EventConverter {
    this.#translation = new StreamTranslation(wire, '1.0')
    const nothing: ClientText = { text: '', end: undefined }
    const next = ({ data }: ServerSentEvent): ClientText => {
      this.add(fromBytes(data))
      return nothing
    }
    return {
      next,
      cutOff: next,
      *plainAnswer() {
        yield
        return nothing
      },
      ended: () => nothing,
      broken: () => nothing,
      failure: () => nothing,
    }
  }

  /** Adds the text of a JSON-RPC response. */
  add(text: string): void {
    const response = parsedJson(text)
    if (!isObject(response)) return
    const { error, result } = response
    if (isObject(error)) this.error = String(error['message'])
    else if (this.#translation !== undefined) this.#addEvents(this.#translation, result)
    // A plain answer came translated. GetTask and CancelTask answer with the task itself.
    else if (isObject(result)) this.#results.push(IS_TASK.has(this.#method.operation) ? { task: result } : result)
  }

  /** Returns the results since the last call. */
  take(): readonly JsonObject[] {
    const results = this.#results
    this.#results = []
    return results
  }

  #addEvents(translation: StreamTranslation, result: unknown): void {
    try {
      for (const event of translation.next(result)) if (isObject(event)) this.#results.push(event)
    } catch (error) {
      if (!(error instanceof UntranslatableError)) throw error
    }
  }
}

const IS_TASK: ReadonlySet<string> = new Set(['get', 'cancel'])

/** Returns the id of the task in a result; undefined if it names none. */
export function taskIn({ artifactUpdate, statusUpdate, task }: JsonObject): string | undefined {
  const update = isObject(statusUpdate) ? statusUpdate : artifactUpdate
  const id = isObject(task) ? task['id'] : isObject(update) ? update['taskId'] : undefined
  return typeof id === 'string' && id !== '' ? id : undefined
}

/** Returns a result with the ids under which its caller knows the task. */
export function renamed(result: JsonObject, taskId: string, contextId: string): JsonObject {
  const ids = { taskId, contextId }
  const message = (given: unknown): unknown => (isObject(given) ? { ...given, ...ids } : given)
  const status = (given: unknown): unknown =>
    isObject(given) && given['message'] !== undefined ? { ...given, message: message(given['message']) } : given
  const { artifactUpdate, message: answer, statusUpdate, task } = result
  if (isObject(task)) {
    const { history } = task
    const messages = Array.isArray(history) ? { history: history.map(message) } : {}
    return { task: { ...task, id: taskId, contextId, status: status(task['status']), ...messages } }
  }
  if (isObject(statusUpdate))
    return { statusUpdate: { ...statusUpdate, ...ids, status: status(statusUpdate['status']) } }
  if (isObject(artifactUpdate)) return { artifactUpdate: { ...artifactUpdate, ...ids } }
  return { message: message(answer) }
}
